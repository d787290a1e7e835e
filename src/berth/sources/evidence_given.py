"""What is given as evidence by hand: JSON `{"kind": …, "text": …}`, one a line, in an array or printed over several
lines; or a text as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches

import msgspec

from berth.base.errors import BadInput
from berth.evidence import damage
from berth.evidence.piece import KINDS, Piece
from berth.sources.dump_files import packed_as
from berth.sources.evidence_files import decoded, pieces_in
from berth.sources.evidence_packed import is_archive, unpacked

FIELDS = ("kind", "text", "node", "pod")
_EXAMPLE = 'Write {"kind": "dmesg", "text": "…"}.'
_SIGNS = tuple(f'"{field}"'.encode() for field in FIELDS)
_OBJECT = re.compile(rb'"(?:apiVersion|metadata|items)"')
HEAD = 4096  # bytes in which a Kubernetes object says what it is
SMALL = 64 * 1024  # bytes of JSON that are looked at whatever their fields are called

Given = dict[str, object]


def evidence_of(raw: bytes, source: str, notes: list[str]) -> Iterator[Piece]:
    """The pieces of what was given; an archive or a compressed file is unpacked. What was taken for something else than
    was perhaps meant ends in `notes`.

    Raises BadInput with exit code 2 for evidence that has no text, and 3 for what is packed as nothing here unpacks.
    """
    name, text, lost = unpacked(source, raw)
    if is_archive(text) or packed_as(text, is_foreign=True):
        yield from pieces_in(name, text)
        return
    text = decoded(text)
    if (values := _values(text)) is not None:
        for where, value in values:
            yield _piece(value, f"{source}: {where}" if where else source, notes)
    elif lines := _lines(text):
        yield from _of_lines(lines, source, notes)
    elif text.strip():
        yield Piece(text, source)
    if lost:
        yield Piece(b"", source, damage=lost)


def is_given(raw: bytes) -> bool:
    """Whether a file is evidence as it is given by hand and nothing else, whichever option names it."""
    values: list[Given | None] = [value for _, value in _values(raw) or ()] or [one for _, _, one in _lines(raw)]
    return bool(values) and all(one is not None and "text" in one and one.keys() <= {*FIELDS} for one in values)


def _values(raw: bytes) -> list[tuple[str, Given]] | None:
    """One object, or an array of them, with its place; None where the whole is anything else."""
    text = raw.strip()
    if text[:1] not in (b"{", b"[") or _OBJECT.search(text[:HEAD]) or not _may_give(text):
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(value, dict):
        return [("line 1" if b"\n" not in text else "", value)] if _is_given(value) else None
    if not isinstance(value, list) or not value or not all(map(_is_given, value)):
        return None
    return [(f"[{number}]", one) for number, one in enumerate(value)]


def _lines(raw: bytes) -> list[tuple[int, bytes, Given | None]]:
    """The lines that hold anything, each with its number and what it gives. [] where fewer than half give evidence."""
    if not raw.lstrip().startswith(b"{") and b"\n{" not in raw:
        return []
    lines = [(number, line) for number, line in enumerate(raw.splitlines(), 1) if line.strip()]
    given = [(number, line, _given(line)) for number, line in lines]
    return given if 2 * sum(one is not None for _, _, one in given) >= len(given) else []


def _given(line: bytes) -> Given | None:
    if not line.lstrip().startswith(b"{") or not _may_give(line):
        return None
    try:
        one = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return one if _is_given(one) else None


def _may_give(text: bytes) -> bool:
    return len(text) <= SMALL or any(sign in text for sign in _SIGNS)


def _is_given(one: object) -> bool:
    """A text, or what was meant as one; a Kubernetes object has a kind, too."""
    if not isinstance(one, dict) or "apiVersion" in one or "metadata" in one:
        return False
    return "text" in one or one.get("kind") in KINDS or (bool(one) and all(_meant(name) for name in one))


def _meant(name: str) -> str:
    """The field that a name is, or is nearly; "" for any other."""
    return next(iter(get_close_matches(name.lower(), FIELDS, 1, 0.8)), "")


def _of_lines(lines: list[tuple[int, bytes, Given | None]], source: str, notes: list[str]) -> Iterator[Piece]:
    for number, line, one in lines:
        where = f"{source}: line {number}"
        if one is not None:
            yield _piece(one, where, notes)
            continue
        problem = damage.of_json(line.decode("utf-8", "replace")) if line.lstrip().startswith(b"{") else ""
        if not problem:
            notes.append(f"{where} is no evidence in JSON; it was read as a text")
        yield Piece(line, where, damage=problem.replace("line 1 is", "it is"))


def _piece(one: Given, where: str, notes: list[str]) -> Piece:
    """Raises BadInput with exit code 2 where the text is none."""
    misspelt = {name: field for name in one if name not in FIELDS and (field := _meant(name)) and field not in one}
    text = one.get("text")
    if not isinstance(text, str):
        if "text" in one:
            raise BadInput(f"{where}: text", f"is {json.dumps(text)}: evidence is text.", _EXAMPLE)
        wrong = next((name for name, field in misspelt.items() if field == "text"), "")
        if not wrong:
            raise BadInput(where, f'it has no field "text", only {", ".join(map(json.dumps, one))}.', _EXAMPLE)
        raise BadInput(f"{where}: {wrong}", 'there is no such field; it has to be "text".', _EXAMPLE)
    notes.extend(f'{where}: {name}: there is no such field; "{field}" is one' for name, field in misspelt.items())
    kind, node, pod = one.get("kind"), one.get("node"), one.get("pod")
    return Piece(
        text.encode("utf-8", "surrogatepass"),
        where + (f" ({kind})" if kind else ""),
        kind if isinstance(kind, str) and kind in KINDS else "",
        node if isinstance(node, str) else "",
        pod if isinstance(pod, str) else "",
    )
