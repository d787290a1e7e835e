"""Configuration of the NVIDIA device plugin: a file, a ConfigMap with several, what the plugin says that it runs with.

Versions known: config v1 of plugin 0.12 to 0.20. The reader goes by lines and indents and not by a YAML parser, since
what people show is mostly a part of it, and a file that the plugin itself refuses must still be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

_HEAD = re.compile(
    rb"(?m)^\s*\"?(?:timeSlicing|renameByDefault|failRequestsGreaterThanOne|migStrategy|mps)\"?\s*:(?=\s|\{|$)"
)
_LINE = re.compile(r"^(?P<indent>[ \t]*(?:- +)?)\"?(?P<key>[A-Za-z][\w./-]*)\"?\s*:(?:\s+(?P<value>.*?))?\s*,?\s*$")
_PREFIX = re.compile(r"^(?:\d{4}[-/]\d\d[-/]\d\d[T ]\S+ (?:std(?:out|err) F )?)+")  # what a log puts before each line
_BLOCK = re.compile(r"^[|>][-+]?\d?$")
_TRUE = {"true": True, "false": False}
_SHARING_OPTIONS = ("renameByDefault", "failRequestsGreaterThanOne", "resources")
_KINDS = ("timeSlicing", "mps")
_OF_ALL = ("sharing", *_KINDS, "flags", "plugin", "gfd", "version", "data")


class SharedResource(Struct, frozen=True, gc=False):
    name: str = ""
    replicas: int = 0
    rename: str = ""


class PluginConfig(Fact, frozen=True, kw_only=True):
    """One configuration, as written or as in effect. "" and None where it is not said."""

    key: str = ""  # of the ConfigMap
    is_in_effect: bool = False  # printed by the plugin itself
    mig_strategy: str = ""
    kind: str = ""  # timeSlicing, mps
    renames: bool | None = None
    refuses_more_than_one: bool | None = None
    resources: tuple[SharedResource, ...] = ()
    misplaced: tuple[str, ...] = ()  # options under the wrong heading, which the plugin drops: "flags.renameByDefault"
    discovery: str = ""
    list_strategies: tuple[str, ...] = ()

    @property
    def replicas(self) -> int:
        return max((one.replicas for one in self.resources), default=0)


class _Draft:
    """A configuration while its lines are read."""

    def __init__(self, key: str, first: int) -> None:
        self.key, self.first = key, first
        self.values: dict[str, str] = {}
        self.resources: list[dict[str, str]] = []
        self.misplaced: list[str] = []
        self.kind = ""
        self.text: list[str] = []

    @property
    def says_something(self) -> bool:
        options = {"migStrategy", *_SHARING_OPTIONS} & set(self.values)
        return bool(self.kind or self.resources or self.misplaced or options)


def read(piece: Piece) -> Iterator[Fact]:
    is_in_effect = "Running with config" in piece.text
    for draft in _drafts(piece.text, is_in_effect):
        if draft.says_something:
            yield _config(draft, piece, is_in_effect)


def _drafts(text: str, is_in_effect: bool) -> Iterator[_Draft]:
    draft, path = _Draft("", 1), list[tuple[int, str]]()
    is_on = not is_in_effect
    for number, line in enumerate(text.splitlines(), 1):
        if is_in_effect:  # a log: each start prints its configuration anew
            if "Running with config" in line:
                yield draft
                draft, path, is_on = _Draft("", number), [], True
            elif is_on and re.match(r"^(?:\d{4}\S+ \S* ?\S* ?)?\}\s*$", line) and draft.says_something:
                is_on = False
            line = _PREFIX.sub("", line)
        found = _LINE.match(line) if is_on else None
        if not found:
            continue
        indent, key = len(found["indent"]), found["key"]
        value = (found["value"] or "").split(" #")[0].strip().strip(",").strip("\"'")
        while path and path[-1][0] >= indent:
            path.pop()
        if _BLOCK.match(value):  # a key of a ConfigMap, and under it a configuration
            yield draft
            draft, path = _Draft(key, number), [(indent, key)]
            continue
        _take(draft, [name for _, name in path], key, value, "-" in found["indent"])
        draft.text.append(line.strip())
        path.append((indent, key))
    yield draft


def _take(draft: _Draft, path: list[str], key: str, value: str, is_new: bool) -> None:
    """One line: under which headings, its key and value, and whether it begins an item of a list."""
    if key in _KINDS and value not in ("null", "{}"):
        draft.kind = draft.kind or key
    in_resources = "resources" in path and "sharing" in (path or ["sharing"])
    if key in ("name", "replicas", "rename") and (in_resources or not set(path) & {"metadata", "gpus", "mig", "spec"}):
        if is_new or not draft.resources or key in draft.resources[-1]:
            draft.resources.append({})
        draft.resources[-1][key] = value
        return
    known_parent = next((name for name in reversed(path) if name in _OF_ALL), "")
    if key in _SHARING_OPTIONS and known_parent in ("flags", "plugin", "gfd"):
        draft.misplaced.append(f"{known_parent}.{key}")
        return
    if key in _SHARING_OPTIONS and known_parent == "sharing":
        draft.misplaced.append(f"sharing.{key}")
        return
    if not path or known_parent:
        draft.values.setdefault(key, value)


def _config(draft: _Draft, piece: Piece, is_in_effect: bool) -> PluginConfig:
    values = draft.values
    resources = tuple(
        SharedResource(one.get("name", ""), _whole(one.get("replicas", "")), one.get("rename", ""))
        for one in draft.resources
        if one.get("replicas") or one.get("name", "").startswith("nvidia.com/")
    )  # fmt: skip
    words = (*_SHARING_OPTIONS, *_KINDS, "replicas", "migStrategy")
    quoted = [line for line in draft.text if any(word in line for word in words)]
    return PluginConfig(
        origin=Origin(
            piece.source,
            piece.kind or "configmap",
            "; ".join(quoted)[:LONGEST_TEXT],
            line=draft.first,
            node=piece.node,
            pod=piece.pod,
        ),
        key=draft.key or _key_of(piece),
        is_in_effect=is_in_effect,
        mig_strategy=values.get("migStrategy", ""),
        kind=draft.kind,
        renames=_TRUE.get(values.get("renameByDefault", "")),
        refuses_more_than_one=_TRUE.get(values.get("failRequestsGreaterThanOne", "")),
        resources=resources if draft.kind or "sharing" not in values else (),
        misplaced=tuple(draft.misplaced),
        discovery=values.get("deviceDiscoveryStrategy", ""),
    )


def _whole(words: str) -> int:
    return int(words) if words.isdigit() else 0


def _key_of(piece: Piece) -> str:
    """A value of a ConfigMap is a piece of its own, named after its key: `ConfigMap gpu-operator/sharing any`."""
    found = re.search(r"ConfigMap \S+ (\S+)$", piece.source)
    return found[1] if found else ""


def looks_like(head: bytes) -> object:
    said = b"timeSlicing" in head or b"mps" in head or b"migStrategy" in head
    return (said or b"renameByDefault" in head or b"failRequestsGreaterThanOne" in head) and _HEAD.search(head)


PLUGIN_CONFIG = Format("configuration of the device plugin", ("configmap",), looks_like, read)
