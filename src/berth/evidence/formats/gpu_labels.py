"""Labels by themselves: those of a node as one JSON map, what the tests of GPU Feature Discovery expect (regular
expressions), and profiles of nodes that simulators use.

Versions known: GPU Feature Discovery 0.4 to 0.20 (`gfd` files are `key=value`, stated.py reads these);
`KWOKNodeProfile` v1alpha1 of AI Cluster Runtime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.base import yaml_tree
from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.cluster_facts import NodeSeen
from berth.evidence.piece import Piece

_EXPECTED = re.compile(r"^(?P<key>nvidia\\\.com\\/[^\s=]+)(?:=(?P<pattern>.*))?$")
_DEAR = re.compile(r"[+*}]\)?[+*{]")  # repeated repetition: a search could take for ever
_EXPECTED_HEAD = re.compile(rb"(?m)^nvidia\\\.com\\/")
_MAP_HEAD = re.compile(
    rb"^\s*\{\s*(?:\"[\w./-]+\"\s*:\s*\"[^\"]*\"\s*,\s*)*?\"(?:nvidia\.com|feature\.node\.kubernetes\.io)/[\w.-]+\"\s*:\s*\""
)
_MAP_PAIR = re.compile(r'"(?P<key>[\w./-]+)"\s*:\s*"(?P<value>[^"]*)"')
_PROFILE_HEAD = re.compile(rb"(?m)^kind: *\w*NodeProfile\b")


class LabelExpected(Fact, frozen=True, kw_only=True):
    """A label that must be there, both halves as regular expressions."""

    key: str
    pattern: str

    def is_met_by(self, key: str, value: str) -> bool:
        return re.fullmatch(self.key, key) is not None and re.fullmatch(self.pattern, value) is not None


class NodeProfile(Fact, frozen=True, kw_only=True):
    """What a class of nodes has. Zero and "" where it is not said."""

    name: str
    instance_type: str = ""
    product: str = ""
    gpus: int = 0
    memory_mib: int = 0  # of one GPU
    driver: str = ""


def read_expected(piece: Piece) -> Iterator[Fact]:
    for number, line in enumerate(piece.text.splitlines(), 1):
        if found := _EXPECTED.match(line.strip()):
            key = found["key"].replace("\\/", "/")
            pattern = (found["pattern"] or ".*").replace("\\/", "/")
            # "[a|b]" of those files means a choice, not a set of characters.
            pattern = re.sub(r"\[((?:[\w-]+\|)+[\w-]+)\]", r"(?:\1)", pattern)
            pattern = re.sub(r"\[([a-z]{4,})\]", r"(?:\1)", pattern)
            if _DEAR.search(key) or _DEAR.search(pattern):
                continue
            try:
                re.compile(key), re.compile(pattern)
            except (re.error, OverflowError, RecursionError):  # of a file that is damaged
                continue
            yield LabelExpected(
                origin=Origin(piece.source, "node-labels", line.strip()[:LONGEST_TEXT], line=number),
                key=key, pattern=pattern,
            )  # fmt: skip


def read_map(piece: Piece) -> Iterator[Fact]:
    """`kubectl get node -o jsonpath={.metadata.labels}`; one that is cut off as far as it goes."""
    labels = {pair["key"]: pair["value"] for pair in _MAP_PAIR.finditer(piece.text)}
    if labels:
        shown = ", ".join(f"{key}={value}" for key, value in labels.items() if key.startswith("nvidia.com/"))
        origin = Origin(piece.source, piece.kind or "node-labels", shown[:LONGEST_TEXT], line=1, node=piece.node)
        yield NodeSeen(origin=origin, name=piece.node or labels.get("kubernetes.io/hostname", ""), labels=labels)


def read_profile(piece: Piece) -> Iterator[Fact]:
    try:
        tree = yaml_tree.parse(piece.raw)
    except (yaml_tree.YAMLError, RecursionError, ValueError):
        return
    spec = tree.get("spec") if isinstance(tree, dict) else None
    gpu = spec.get("gpu") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(gpu, dict):
        return
    meta = tree.get("metadata")
    yield NodeProfile(
        origin=Origin(piece.source, "node-labels", "kind: NodeProfile", line=1),
        name=str(meta.get("name", "")) if isinstance(meta, dict) else "",
        instance_type=str(spec.get("instanceType", "")),
        product=str(gpu.get("product", "")),
        gpus=_whole(gpu.get("count")),
        memory_mib=_whole(gpu.get("memory")),
        driver=str(gpu.get("driver", "")),
    )


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | str) and str(value).isdigit() else 0


def _holds_expected(head: bytes) -> object:
    return b"nvidia\\.com" in head and _EXPECTED_HEAD.search(head)


def _holds_profile(head: bytes) -> object:
    return b"NodeProfile" in head and _PROFILE_HEAD.search(head)


LABEL_MAP = Format("labels of a node as a map", ("node-labels", "node-json"), _MAP_HEAD.match, read_map)
GFD_EXPECTED = Format("labels that must be written", ("node-labels",), _holds_expected, read_expected)
NODE_PROFILE = Format("profile of a class of nodes", ("node-labels",), _holds_profile, read_profile)
