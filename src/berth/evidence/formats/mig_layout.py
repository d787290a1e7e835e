"""Layouts of MIG that mig-parted and the MIG manager apply: `mig-configs` of version v1, file or ConfigMap."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from berth.base import yaml_tree
from berth.evidence.fact import Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

_HEAD = re.compile(rb"(?m)^\s*mig-configs:")


class MigPart(Struct, frozen=True, gc=False):
    """What some of a node's GPUs shall be."""

    devices: tuple[int, ...] = ()  # empty: all of them
    filters: tuple[str, ...] = ()  # "0x233010DE"
    is_enabled: bool = False
    profiles: Mapping[str, int] = {}


class MigLayout(Fact, frozen=True, kw_only=True):
    """A layout by its name, which the label nvidia.com/mig.config asks for."""

    name: str
    parts: tuple[MigPart, ...] = ()


def read(piece: Piece) -> Iterator[Fact]:
    for tree in _trees(piece.raw):
        layouts = tree.get("mig-configs") if isinstance(tree, dict) else None
        for name, parts in layouts.items() if isinstance(layouts, dict) else ():
            if isinstance(parts, list):
                yield MigLayout(
                    origin=Origin(piece.source, piece.kind or "mig-config", f"mig-configs: {name}", node=piece.node),
                    name=str(name),
                    parts=tuple(_part(part) for part in parts if isinstance(part, dict)),
                )


def _trees(raw: bytes) -> Iterator[Any]:
    """The document, or the one under a key of a ConfigMap that was pasted in part."""
    start = _HEAD.search(raw)
    body = raw[start.start() :] if start else raw
    for text in (raw, body, _unindented(body)):
        try:
            tree = yaml_tree.parse(text)
        except (yaml_tree.YAMLError, RecursionError, ValueError):
            continue
        if isinstance(tree, dict) and "mig-configs" in tree:
            yield tree
            return


def _unindented(raw: bytes) -> bytes:
    lines = raw.lstrip(b"\n").split(b"\n")
    indent = len(lines[0]) - len(lines[0].lstrip())
    return b"\n".join(line[indent:] for line in lines if not line[:indent].strip())


def _part(part: dict[str, Any]) -> MigPart:
    devices, filters, profiles = part.get("devices"), part.get("device-filter"), part.get("mig-devices")
    return MigPart(
        devices=tuple(one for one in devices if isinstance(one, int)) if isinstance(devices, list) else (),
        filters=tuple(map(str, filters if isinstance(filters, list) else [filters] if filters else [])),
        is_enabled=part.get("mig-enabled") is True,
        profiles={str(name): count for name, count in profiles.items() if isinstance(count, int)}
        if isinstance(profiles, dict)
        else {},
    )


def looks_like(head: bytes) -> object:
    return b"mig-configs:" in head and _HEAD.search(head)


MIG_LAYOUT = Format("layouts of MIG", ("mig-config",), looks_like, read)
