"""Protocol buffers on the wire, as far as the kubelet's sockets need them: strings, booleans, numbers, messages.

A decoded message is a mapping from field number to the list of its values, numbers or bytes; to write one, give
(field number, value) pairs. Source: the encoding document of Protocol Buffers.
"""

from __future__ import annotations

from collections.abc import Iterable

from berth.node.protobuf import decode

__all__ = ["decode", "encode", "encode_map", "messages", "texts"]

Value = str | bytes | bool | int
_VARINT, _BYTES = 0, 2


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
