"""Dumps of a cluster: what `kubectl get … -o json|yaml`, must-gather and the like leave in files.

A dump is read object by object into wire Structs, and the kinds that decide nothing are passed over. What is
broken ends in `BadInput` (exit code 3); what is absent, passed over or doubtful ends in a note.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from berth.base.errors import UNREADABLE, BadInput
from berth.base.units import counted
from berth.sources import dump_json, dump_yaml, own_kinds
from berth.sources.dump_files import PROBE_BYTES, Content, DumpFile, files_of, looks_like_objects
from berth.sources.dump_kinds import is_checked, type_of
from berth.sources.dump_refusals import not_an_object, object_name

_HOW = "Dump with: kubectl get nodes,pods -A -o json > dump.json"


class Found(msgspec.Struct, frozen=True, gc=False):
    """One object that is read: a Struct of `berth.kube`, or a plain mapping. `file` is where it stands, as the
    `number`th object."""

    api_version: str
    kind: str
    value: Any
    file: str
    number: int = 0


class Dump:
    """The objects of a dump, to be read once; afterwards `notes` says what was seen besides.

    Raises BadInput with exit code 3 where the dump cannot be read, or holds no Kubernetes objects.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.notes: list[str] = []
        self.passed_over: Counter[str] = Counter()
        self.refused: dict[str, str] = {}  # kind (`nodes`; "" where it is not said): what the API server said
        self._other_files: list[str] = []
        self._objects = 0
        self._told_of: set[tuple[str, str]] = set()  # kinds that are nearly one of Berth's

    def __iter__(self) -> Iterator[Found]:
        files = 0
        for file in files_of(self.path, self._other_files):
            files += 1
            yield from self._file(file)
        self._close(files)

    def _file(self, file: DumpFile) -> Iterator[Found]:
        if refusal := _no_objects(file):
            raise refusal
        before = self._objects + sum(self.passed_over.values()) + len(self.notes)
        read = self._json if _is_json(file.content) else self._yaml
        for number, (api_version, kind, value) in enumerate(read(file), 1):
            if kind == "Status":
                self._status(value, file.name)
            elif value is None:
                self.passed_over[kind] += 1
                self._perhaps_meant(api_version, kind, file.name)
            else:
                self._objects += 1
                if is_checked(api_version, kind):
                    value, told = own_kinds.read(kind, value, file.name)
                    self.notes.extend(told)
                yield Found(api_version, kind, value, file.name, number)
        if self._objects + sum(self.passed_over.values()) + len(self.notes) == before:
            self.notes.append(f"{file.name} holds no objects")

    def _json(self, file: DumpFile) -> Iterator[tuple[str, str, Any]]:
        for number, found in enumerate(dump_json.objects(file.content, file.name)):
            if not found[1]:
                raise _no_kind(found[2], file.name, f"object {number + 1}")
            yield found

    def _yaml(self, file: DumpFile) -> Iterator[tuple[str, str, Any]]:
        for api_version, kind, value, offset in dump_yaml.objects(file.content, file.name):
            if not kind:
                line = dump_yaml.line_of(file.content, offset)
                raise _no_kind(value, file.name, f"object at line {line}")
            is_read = type_of(api_version, kind) is not None or kind == "Status"
            yield api_version, kind, value if is_read else None

    def _status(self, value: Any, name: str) -> None:
        """What the API server answered instead of objects."""
        reason = value.get("reason") or "an error"
        message = value.get("message") or "no message"
        said = f"the API server answered {reason}: {message}"
        self.notes.append(f"{name}: {said}")
        details = value.get("details")
        kind = details.get("kind") if isinstance(details, dict) else None
        self.refused.setdefault(kind if isinstance(kind, str) else "", said)

    def _perhaps_meant(self, api_version: str, kind: str, name: str) -> None:
        """A kind that is nearly one of Berth's own decides nothing, and was meant to."""
        if (meant := own_kinds.misspelt(api_version, kind)) and (api_version, kind) not in self._told_of:
            self._told_of.add((api_version, kind))
            self.notes.append(f"{name}: {kind} of {api_version} is no kind of Berth and was passed over; {meant}")

    def _close(self, files: int) -> None:
        if self._other_files:
            held, was = ("holds", "was") if len(self._other_files) == 1 else ("hold", "were")
            number = counted(len(self._other_files), "file")
            self.notes.append(f"{number} in {self.path} {held} no Kubernetes objects and {was} passed over")
        if not files:
            raise BadInput(self.path, "the folder holds no file with Kubernetes objects.", _HOW, UNREADABLE)
        if self.passed_over:
            kinds = ", ".join(f"{number:,} {kind}" for kind, number in self.passed_over.most_common(6))
            more = len(self.passed_over) - 6
            self.notes.append(
                f"kinds that decide nothing were passed over: {kinds}" + (f" and {more} more kinds" if more > 0 else "")
            )


def _is_json(content: Content) -> bool:
    return content[:4096].lstrip()[:1] in (b"{", b"[")


_COMMENTS = re.compile(rb"(?:\s*(?:#[^\n]*)?(?:\n|\Z))*")
_TABLE = re.compile(rb"(?:NAME|NAMESPACE)\s+[A-Z]")
_KUBECTL_ERROR = re.compile(rb"(?:Error from server|error:|The connection to the server|Unable to connect)[^\n]*", re.I)


def _no_objects(file: DumpFile) -> BadInput | None:
    """What is plainly no dump is told for what it is, before a parser stumbles over it."""
    head = file.content[:PROBE_BYTES]
    if _is_json(head) or looks_like_objects(head):
        return None
    start = head.lstrip()
    if _COMMENTS.fullmatch(head):
        problem = "the file is empty."
    elif _TABLE.match(start):
        problem = "a table for people, from which the fields that decide are missing."
    elif said := _KUBECTL_ERROR.match(start):
        problem = f"an error message of kubectl: {said[0].decode('utf-8', 'replace').strip().rstrip('.')}."
    else:
        problem = "not YAML or JSON that holds Kubernetes objects."
    return BadInput(file.name, problem, _HOW, UNREADABLE)


def _no_kind(value: Any, name: str, which: str) -> BadInput:
    if not isinstance(value, dict):
        return not_an_object(value, f"{name}: {which}")
    named = object_name("", value.get("metadata"))
    problem = "it has no apiVersion and kind, so nobody can tell what it is."
    return BadInput(f"{name}: {named or which}", problem, _HOW, UNREADABLE)
