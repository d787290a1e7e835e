"""JSON dumps: a List, a typed list (PodList), one object, an array of objects, or several of them in a row.

Each item is decoded into the Struct of its kind, so that fields nobody reads never become Python objects. What
kubectl prints is cut at the lines between its items, piece by piece of the file; everything else is cut by one
pass of the decoder over the whole.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw, Struct

from berth.base.errors import UNREADABLE, BadInput
from berth.evidence.damage import AGAIN, CUT_OFF
from berth.sources.dump_files import Content
from berth.sources.dump_kinds import PLAIN, type_of
from berth.sources.dump_refusals import object_name, wrong_type

Found = tuple[str, str, Any]  # (apiVersion, kind, value); the value is None where the kind is not read
Bytes = bytes | memoryview | Raw

PIECE_BYTES = 4 << 20
HEADER_BYTES = 4096


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
_PRINTED = re.compile(rb'\{\n +"apiVersion": "[^"\n]*",\n +"items": \[\n( +)(?=\{\n)')

_LIST_BEGINS = b'{"apiVersion":"v1","kind":"List","items":['

_decode_head = msgspec.json.Decoder(Head).decode
_decode_many = msgspec.json.Decoder(Many).decode
_decode_array = msgspec.json.Decoder(list[Raw]).decode
_decode_plain = msgspec.json.Decoder().decode


@cache
def _decoder(wire_type: type[Any]) -> Any:
    return msgspec.json.Decoder(wire_type).decode


def objects(content: Content, name: str) -> Iterator[Found]:
    """Each object, in their order. Raises BadInput for what is not JSON, or no Kubernetes object."""
    done = 0
    if printed := _PRINTED.match(content[:HEADER_BYTES]):
        try:
            for found in _printed(content, printed, name):
                yield found
                done += 1
            return
        except _NotAsPrinted:
            pass  # damaged, or cut at a line that is no boundary: the decoder tells, from this item on
    for number, found in enumerate(_decoded(content, name)):
        if number >= done:
            yield found


def is_printed(head: bytes) -> bool:
    """Does it begin as a List that kubectl printed?"""
    return _PRINTED.match(head) is not None


def cut(content: Content) -> Iterator[bytes]:
    """What kubectl printed as a List, cut into shorter Lists at the lines between items; the whole where it is none.
    What is damaged is for the reader to find: what ends in the middle of an item still does."""
    printed = _PRINTED.match(content[:HEADER_BYTES])
    if printed is None:
        yield bytes(content)
        return
    margin = b"\n" + printed[1]
    between = margin + b"}," + margin + b"{"
    closing = len(margin) + 1  # of `between`, what still belongs to the item before
    begin = printed.end()
    view = memoryview(content)
    try:
        while begin < len(content):
            until = begin + PIECE_BYTES
            at = content.rfind(between, begin, until) if until < len(content) else -1
            if at < 0 and until < len(content):
                at = content.find(between, begin)  # one item is longer than a piece
            ends = b"]}"
            if at < 0:
                at = content.rfind(margin + b"}\n", begin)
                end, ends = (at + closing, ends) if at >= 0 else (len(content), b"")
                following = len(content)
            else:
                end = following = at + closing
                following += 1  # the comma
            yield b"".join((_LIST_BEGINS, view[begin:end], ends))
            if isinstance(content, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                page = begin // mmap.PAGESIZE * mmap.PAGESIZE
                content.madvise(mmap.MADV_DONTNEED, page, max(end - page, 1))
            begin = following
    finally:
        view.release()


# ---- what kubectl prints


class _NotAsPrinted(Exception):
    """The lines between items are not where kubectl puts them."""


def _printed(content: Content, start: re.Match[bytes], name: str) -> Iterator[Found]:
    """The items of a List, cut at lines that hold nothing but the brackets between two of them."""
    margin = b"\n" + start[1]
    between = margin + b"}," + margin + b"{"
    closing = len(margin) + 1  # of `between`, what still belongs to the item before
    number, left = 0, b""
    for piece in _pieces(content, start.end()):
        text = left + piece
        view = memoryview(text)
        begin, seek = 0, max(0, len(left) - len(between))
        while (at := text.find(between, seek)) >= 0:
            yield _item(view[begin : at + closing], number, name)
            number += 1
            begin, seek = at + len(between) - 1, at + len(between)
        left = text[begin:]
    # The last item, and what stands behind it: the kind of the list comes after its items.
    end = left.rfind(margin + b"}\n")
    header = bytes(content[: start.start(1)]) + left[end + closing :]
    try:
        kind = _decode_many(header).kind
    except msgspec.MsgspecError:
        raise _NotAsPrinted from None
    if end < 0 or kind != "List":
        raise _NotAsPrinted
    yield _item(memoryview(left)[: end + closing], number, name)


def _pieces(content: Content, start: int) -> Iterator[bytes]:
    """The rest of the content in pieces; what has been read of a mapping need not stay resident."""
    for begin in range(start, len(content), PIECE_BYTES):
        yield content[begin : begin + PIECE_BYTES]
        if isinstance(content, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            page = begin // mmap.PAGESIZE * mmap.PAGESIZE
            content.madvise(mmap.MADV_DONTNEED, page, min(PIECE_BYTES, len(content) - page))


def _item(text: memoryview, number: int, name: str) -> Found:
    try:
        return _object(text, f"{name}: items[{number}]", name)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        raise _NotAsPrinted from None


# ---- anything else


def _decoded(content: Content, name: str) -> Iterator[Found]:
    view = memoryview(content)
    try:
        first = _read(view, name)
    except msgspec.DecodeError as error:
        if "trailing" not in str(error):
            raise malformed(error, name) from None
    else:
        yield from _objects(view, first, name, name)
        return
    # Several values in a row: rare, so that their ends are looked for only now.
    for number, value in enumerate(_values(content, view)):
        where = f"{name}: value {number + 1}"
        try:
            found = _read(value, where)
        except msgspec.DecodeError as error:
            raise malformed(error, where) from None
        yield from _objects(value, found, where, name)


def _values(content: Content, view: memoryview) -> Iterator[memoryview]:
    start = 0
    for gap in _NEXT_VALUE.finditer(content):
        yield view[start : gap.start(1)]
        start = gap.end(1)
    yield view[start:]


def _read(value: memoryview, where: str) -> Many | list[Raw]:
    """One pass over a value: a list, an object, or an array of objects."""
    try:
        if bytes(value[:HEADER_BYTES]).lstrip()[:1] == b"[":
            return _decode_array(value)
        return _decode_many(value)
    except msgspec.ValidationError as error:
        raise wrong_type(error, where) from None
    except RecursionError:
        raise too_deep(where) from None


def _objects(value: memoryview, read: Many | list[Raw], where: str, name: str) -> Iterator[Found]:
    if isinstance(read, list):
        for number, item in enumerate(read):
            yield _sound(item, f"{where}: [{number}]", name)
        return
    kind = read.kind or ""
    if kind.endswith("List") or (read.items is not None and not kind):
        item_kind = "" if kind == "List" else kind.removesuffix("List")
        version = (read.api_version or "") if item_kind else ""
        for number, item in enumerate(read.items or ()):
            yield _sound(item, f"{where}: items[{number}]", name, version, item_kind)
        return
    yield _sound(value, where, name)


def _sound(text: Bytes, where: str, name: str, version: str = "", kind: str = "") -> Found:
    """An object that the pass over the whole has found to be JSON, though not yet to be text."""
    try:
        return _object(text, where, name, version, kind)
    except msgspec.DecodeError as error:
        raise malformed(error, where) from None


# ---- one object


def _object(text: Bytes, where: str, name: str, version: str = "", kind: str = "") -> Found:
    """One object, decoded by its kind. `version` and `kind` are those of a typed list, whose items have none.

    Raises msgspec.DecodeError for what is not JSON.
    """
    start = bytes(memoryview(text)[:256])
    if found := _HEAD.match(start):
        version, kind = found[1].decode(), found[2].decode()
    elif found := _KIND_FIRST.match(start):
        version, kind = found[2].decode(), found[1].decode()
    else:
        head = _checked(_decode_head, text, where, "", name)
        if head.kind and head.api_version:
            version, kind = head.api_version, head.kind
    wanted = type_of(version, kind)
    if wanted is None and kind and kind != "Status":
        _checked(_decode_head, text, where, kind, name)  # it is passed over, but the dump has to be whole
        return version, kind, None
    return version, kind, _checked(_decoder(wanted or PLAIN), text, where, kind, name)


def _checked(decode: Any, text: Bytes, where: str, kind: str, name: str) -> Any:
    try:
        return decode(text)
    except msgspec.ValidationError as error:
        tree = _plain(text)
        if kind and isinstance(tree, dict) and object_name("", tree.get("metadata")):
            where = name
        raise wrong_type(error, where, kind, tree) from None
    except RecursionError:
        raise too_deep(where) from None


def _plain(text: Bytes) -> Any:
    """An object whose fields cannot be read, as it stands there."""
    try:
        return _decode_plain(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def malformed(error: msgspec.DecodeError, where: str) -> BadInput:
    """A refusal for bytes that are not JSON."""
    if "truncated" in str(error):
        return BadInput(where, f"{CUT_OFF}.", AGAIN, UNREADABLE)
    return BadInput(where, f"not JSON: {str(error).removeprefix('JSON is malformed: ')}.", AGAIN, UNREADABLE)


def too_deep(where: str) -> BadInput:
    return BadInput(where, "JSON nested too deeply.", AGAIN, UNREADABLE)
