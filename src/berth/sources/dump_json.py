"""JSON dumps: a List, a typed list (PodList), one object, an array of objects, or several of them in a row.

A List is cut into the bytes of its items in one pass; each item is decoded into the Struct of its kind, so
that fields nobody reads never become Python objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw, Struct

from berth.base.errors import UNREADABLE, BadInput
from berth.sources.dump_files import Content
from berth.sources.dump_refusals import RETRY


class Head(Struct, gc=False, rename="camel"):
    """What every object starts with, and every list ends with."""

    api_version: str | None = None
    kind: str | None = None
    items: Raw = Raw()


# How kubectl and the API server begin an object; anything else costs one more pass over it.
_HEAD = re.compile(rb'\s*\{\s*"apiVersion"\s*:\s*"([^"\\]*)"\s*,\s*"kind"\s*:\s*"([^"\\]*)"')
_KIND_FIRST = re.compile(rb'\s*\{\s*"kind"\s*:\s*"([^"\\]*)"\s*,\s*"apiVersion"\s*:\s*"([^"\\]*)"')
# Inside a value two objects always have a comma between them, and strings hold no raw line breaks.
_NEXT_VALUE = re.compile(rb"[}\]](\s*\n\s*)[{\[]")

_decode_head = msgspec.json.Decoder(Head).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode


@cache
def decoder_of(wire_type: type[Any]) -> Any:
    return msgspec.json.Decoder(wire_type).decode


def objects(content: Content, name: str) -> Iterator[tuple[str, str, Raw]]:
    """(apiVersion, kind, bytes) of each object, in their order."""
    view = memoryview(content)
    values: Iterable[memoryview] = (view,)
    if _has_several(view, name):
        values = _values(content, view)
    for number, value in enumerate(values):
        where = name if number == 0 else f"{name}: value {number + 1}"
        try:
            yield from _objects(value, where)
        except msgspec.DecodeError as error:
            raise malformed(error, where) from None
        except RecursionError:
            raise BadInput(where, "JSON nested too deeply.", RETRY, UNREADABLE) from None


def malformed(error: msgspec.DecodeError, where: str) -> BadInput:
    """A refusal for bytes that are not JSON."""
    if "truncated" in str(error):
        return BadInput(where, "the JSON ends in the middle of an object.", RETRY, UNREADABLE)
    return BadInput(where, f"not JSON: {str(error).removeprefix('JSON is malformed: ')}.", RETRY, UNREADABLE)


def _has_several(view: memoryview, where: str) -> bool:
    """Whether something follows the first value. Values in a row are rare: looking for their ends is not free."""
    try:
        _decode_head(view)
    except msgspec.ValidationError:
        return False
    except msgspec.DecodeError as error:
        if "trailing" in str(error):
            return True
        raise malformed(error, where) from None
    except RecursionError:
        raise BadInput(where, "JSON nested too deeply.", RETRY, UNREADABLE) from None
    return False


def _values(content: Content, view: memoryview) -> Iterator[memoryview]:
    start = 0
    for gap in _NEXT_VALUE.finditer(content):
        yield view[start : gap.start(1)]
        start = gap.end(1)
    yield view[start:]


def _objects(value: memoryview | Raw, where: str) -> Iterator[tuple[str, str, Raw]]:
    if bytes(memoryview(value)[:64]).lstrip()[:1] == b"[":
        for item in _decode_list(value):
            yield _object(item, where)
        return
    head = _decode_head(value)
    kind = head.kind or ""
    if not memoryview(head.items) or not (kind.endswith("List") or not kind):
        yield head.api_version or "", kind, Raw(value) if not isinstance(value, Raw) else value
        return
    if bytes(head.items) == b"null":
        return
    item_kind = "" if kind == "List" else kind.removesuffix("List")
    try:
        items = _decode_list(head.items)
    except msgspec.ValidationError:
        raise BadInput(f"{where}: items", "expected a list of objects.", RETRY, UNREADABLE) from None
    for item in items:
        api_version, own_kind, raw = _object(item, where)
        yield api_version or (head.api_version or "" if item_kind else ""), own_kind or item_kind, raw


def _object(item: Raw, where: str) -> tuple[str, str, Raw]:
    start = bytes(memoryview(item)[:256])
    if found := _HEAD.match(start):
        return found[1].decode(), found[2].decode(), item
    if found := _KIND_FIRST.match(start):
        return found[2].decode(), found[1].decode(), item
    try:
        head = _decode_head(item)
    except msgspec.ValidationError as error:
        if bytes(memoryview(item)[:64]).lstrip()[:1] == b"{":
            raise
        raise BadInput(f"{where}: items", f"an item is no object: {error}.", RETRY, UNREADABLE) from None
    return head.api_version or "", head.kind or "", item
