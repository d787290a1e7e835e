"""CDI specifications, versions 0.3 to 1.0, as YAML or JSON: whole, truncated, or with a template's placeholders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from berth.base import yaml_tree
from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.config_path import path_of
from berth.evidence.formats.container_facts import CdiDevice, CdiSpec
from berth.evidence.formats.toml_tables import table, word
from berth.evidence.piece import Piece

_LOOKS = re.compile(rb"""^[^\n#]{0,200}["']?cdiVersion["']?\s*:""", re.MULTILINE)
_BEGIN = re.compile(
    r"""^(?:---\s*\n)?[ \t]*(?:\{\s*)?["']?(?:cdiVersion|containerEdits|devices|kind)["']?\s*:""", re.MULTILINE
)
_PLACEHOLDER = re.compile(r"\{\{[^{}]*\}\}")
_LINE = re.compile(
    r"""["']?(?P<key>cdiVersion|kind|name|path|hostPath|containerPath)["']?\s*:\s*["']?(?P<value>[^"',\s]+)"""
)
_DRIVER = re.compile(r"(?:--host-driver-version=|lib(?:cuda|nvidia-ml)\.so\.)(\d+\.\d+(?:\.\d+)?)")
_FILES = (".json", ".yaml")  # what a registry reads
LONGEST = 8 * 2**20


def looks_like(head: bytes) -> bool:
    return b"cdiVersion" in head and _LOOKS.search(head) is not None


def read(piece: Piece) -> Iterator[Fact]:
    text = _PLACEHOLDER.sub("", piece.text[:LONGEST])
    path, driver = path_of(piece.source, text), _DRIVER.search(text)
    whole = _whole(text)
    spec = whole or _by_line(text)
    kind = word(spec.get("kind"))
    devices = spec.get("devices")
    common = table(spec, "containerEdits")
    if not kind and not devices:
        return
    yield CdiSpec(
        kind=kind,
        version=str(spec.get("cdiVersion") or ""),
        path=path,
        devices=tuple(
            CdiDevice(name=str(one.get("name") or ""), nodes=_nodes(table(one, "containerEdits")))
            for one in (devices if isinstance(devices, list) else ())
            if isinstance(one, dict)
        ),
        nodes=_nodes(common),
        mounts=_paths(common, "mounts", "hostPath"),
        hooks=tuple(dict.fromkeys(_paths(common, "hooks", "path"))),
        environment=tuple(one for one in _list(common, "env") if isinstance(one, str)),
        driver=driver[1] if driver else "",
        is_broken=not whole and len(text) < LONGEST and piece.source.endswith(_FILES),
        origin=Origin(
            source=piece.source or path,
            kind=piece.kind,
            text=text.strip()[:LONGEST_TEXT],
            line=1,
            node=piece.node,
            pod=piece.pod,
        ),
    )


def _whole(text: str) -> dict[str, Any]:
    """The document, also where a prompt stands above it."""
    begin = _BEGIN.search(text)
    for part in (text, text[begin.start() :] if begin else ""):
        try:
            found = yaml_tree.parse(part)
        except (yaml_tree.YAMLError, RecursionError, ValueError):
            continue
        if isinstance(found, dict) and "cdiVersion" in found:
            return found
    return {}


def _by_line(text: str) -> dict[str, Any]:
    """What lines of a truncated document say by themselves: version, kind, names, device nodes."""
    spec: dict[str, Any] = {"devices": [], "containerEdits": {"deviceNodes": []}}
    into: list[dict[str, str]] = spec["containerEdits"]["deviceNodes"]
    for line in text.splitlines():
        if line.startswith("containerEdits"):
            into = spec["containerEdits"]["deviceNodes"]
        for found in _LINE.finditer(line):
            key, value = found["key"], found["value"]
            if key in ("cdiVersion", "kind"):
                spec.setdefault(key, value)
            elif key == "name":
                device: dict[str, Any] = {"name": value, "containerEdits": {"deviceNodes": []}}
                spec["devices"].append(device)
                into = device["containerEdits"]["deviceNodes"]
            elif key == "path" and value.startswith("/dev/"):
                into.append({"path": value})
    return spec


def _list(edits: dict[str, Any], key: str) -> list[Any]:
    found = edits.get(key)
    return found if isinstance(found, list) else []


def _nodes(edits: dict[str, Any]) -> tuple[str, ...]:
    return _paths(edits, "deviceNodes", "path")


def _paths(edits: dict[str, Any], key: str, field: str) -> tuple[str, ...]:
    return tuple(str(one[field]) for one in _list(edits, key) if isinstance(one, dict) and one.get(field))


FORMAT = Format(name="CDI specification", kinds=("cdi",), looks_like=looks_like, read=read)
