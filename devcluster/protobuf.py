"""Protocol buffers on the wire, as far as the kubelet's sockets need them: strings, booleans, numbers, messages.

A decoded message is a mapping from field number to the list of its values, numbers or bytes; to write one, give
(field number, value) pairs. Source: the encoding document of Protocol Buffers.
"""

from __future__ import annotations

from collections.abc import Iterable

Value = str | bytes | bool | int
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5


def encode(fields: Iterable[tuple[int, Value]]) -> bytes:
    """A message. Values that are empty or zero are left out, as proto3 does."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            if value:
                out += _varint(number << 3 | _VARINT) + _varint(int(value))
            continue
        data = value.encode() if isinstance(value, str) else value
        out += _varint(number << 3 | _BYTES) + _varint(len(data)) + data
    return bytes(out)


def encode_map(number: int, items: Iterable[tuple[str, str]]) -> list[tuple[int, Value]]:
    """The pairs of a field of type map<string, string>."""
    return [(number, encode([(1, key), (2, value)])) for key, value in items]


def decode(data: bytes) -> dict[int, list[int | bytes]]:
    """Field number -> its values in order. Raises ValueError on what is no message."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _read_varint(data, at)
        elif kind in (_BYTES, _FIXED_64, _FIXED_32):
            size = {_FIXED_64: 8, _FIXED_32: 4}.get(kind, -1)
            if size < 0:
                size, at = _read_varint(data, at)
            if at + size > len(data):
                raise ValueError(f"field {key >> 3} is longer than its message")
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"field {key >> 3} has the unknown wire type {kind}")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def texts(values: list[int | bytes] | None) -> list[str]:
    """The values of a string field."""
    return [value.decode() for value in values or [] if isinstance(value, bytes)]


def messages(values: list[int | bytes] | None) -> list[dict[int, list[int | bytes]]]:
    """The values of a message field, decoded."""
    return [decode(value) for value in values or [] if isinstance(value, bytes)]


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1  # a negative one is its two's complement
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number goes on past its message")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number, at
        shift += 7
