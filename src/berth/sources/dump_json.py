"""JSON dumps: a List, a typed list (PodList), one object, an array of objects, or several of them in a row.

A List is cut into the bytes of its items in one pass; each item is decoded into the Struct of its kind, so
that fields nobody reads never become Python objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw, Struct

from berth.base.errors import UNREADABLE, BadInput
from berth.sources.dump_files import Content
from berth.sources.dump_refusals import RETRY, wrong_type


class Head(Struct, gc=False, rename="camel"):
    """What every object starts with."""

    api_version: str | None = None
    kind: str | None = None


class Many(Head, gc=False, rename="camel"):
    """A list with its items still in bytes; `items` is None where the value is an object by itself."""

    items: list[Raw] | None = None


# How kubectl and the API server begin an object; anything else costs one more pass over it.
_HEAD = re.compile(rb'\s*\{\s*"apiVersion"\s*:\s*"([^"\\]*)"\s*,\s*"kind"\s*:\s*"([^"\\]*)"')
_KIND_FIRST = re.compile(rb'\s*\{\s*"kind"\s*:\s*"([^"\\]*)"\s*,\s*"apiVersion"\s*:\s*"([^"\\]*)"')
# Inside a value two objects always have a comma between them, and strings hold no raw line breaks.
_NEXT_VALUE = re.compile(rb"[}\]](\s*\n\s*)[{\[]")

_decode_head = msgspec.json.Decoder(Head).decode
_decode_many = msgspec.json.Decoder(Many).decode
_decode_array = msgspec.json.Decoder(list[Raw]).decode


@cache
def decoder_of(wire_type: type[Any]) -> Any:
    return msgspec.json.Decoder(wire_type).decode


def objects(content: Content, name: str) -> Iterator[tuple[str, str, Raw]]:
    """(apiVersion, kind, bytes) of each object, in their order."""
    view = memoryview(content)
    try:
        first = _read(view, name)
    except msgspec.DecodeError as error:
        if "trailing" not in str(error):
            raise malformed(error, name) from None
    else:
        yield from _objects(view, first, name)
        return
    # Several values in a row: rare, so that their ends are looked for only now.
    for number, value in enumerate(_values(content, view)):
        where = f"{name}: value {number + 1}"
        try:
            found = _read(value, where)
        except msgspec.DecodeError as error:
            raise malformed(error, where) from None
        yield from _objects(value, found, where)


def _read(value: memoryview, where: str) -> Many | list[Raw]:
    """One pass over a value: a list, an object, or an array of objects."""
    try:
        if bytes(value[:4096]).lstrip()[:1] == b"[":
            return _decode_array(value)
        return _decode_many(value)
    except msgspec.ValidationError as error:
        raise wrong_type(error, where) from None
    except RecursionError:
        raise too_deep(where) from None


def too_deep(where: str) -> BadInput:
    return BadInput(where, "JSON nested too deeply.", RETRY, UNREADABLE)


def malformed(error: msgspec.DecodeError, where: str) -> BadInput:
    """A refusal for bytes that are not JSON."""
    if "truncated" in str(error):
        return BadInput(where, "the JSON ends in the middle of an object.", RETRY, UNREADABLE)
    return BadInput(where, f"not JSON: {str(error).removeprefix('JSON is malformed: ')}.", RETRY, UNREADABLE)


def _values(content: Content, view: memoryview) -> Iterator[memoryview]:
    start = 0
    for gap in _NEXT_VALUE.finditer(content):
        yield view[start : gap.start(1)]
        start = gap.end(1)
    yield view[start:]


def _objects(value: memoryview, read: Many | list[Raw], where: str) -> Iterator[tuple[str, str, Raw]]:
    if isinstance(read, list):
        for number, item in enumerate(read):
            yield _object(item, f"{where}: [{number}]")
        return
    kind = read.kind or ""
    if kind.endswith("List") or (read.items is not None and not kind):
        item_kind = "" if kind == "List" else kind.removesuffix("List")
        version = (read.api_version or "") if item_kind else ""
        for number, item in enumerate(read.items or ()):
            own_version, own_kind, raw = _object(item, f"{where}: items[{number}]")
            yield own_version or version, own_kind or item_kind, raw
        return
    yield read.api_version or "", kind, Raw(value)


def _object(item: Raw, where: str) -> tuple[str, str, Raw]:
    start = bytes(memoryview(item)[:256])
    if found := _HEAD.match(start):
        return found[1].decode(), found[2].decode(), item
    if found := _KIND_FIRST.match(start):
        return found[2].decode(), found[1].decode(), item
    try:
        head = _decode_head(item)
    except msgspec.ValidationError as error:
        raise wrong_type(error, where) from None
    return head.api_version or "", head.kind or "", item
