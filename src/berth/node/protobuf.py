"""Protocol buffers on the wire, as far as the kubelet's sockets need them: strings, numbers, messages.

A decoded message is a mapping from field number to the list of its values, numbers or bytes. Nothing that is asked has
a body, so there is no writer. Source: the encoding document of Protocol Buffers.
"""

from __future__ import annotations

Message = dict[int, list[int | bytes]]
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_SIGN = 1 << 63


class Undecodable(ValueError):
    """Bytes that are no message."""


def decode(data: bytes) -> Message:
    """Field number → its values in order. Raises Undecodable."""
    fields: Message = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(data, at)
        elif kind in (_BYTES, _FIXED_64, _FIXED_32):
            size = {_FIXED_64: 8, _FIXED_32: 4}.get(kind, -1)
            if size < 0:
                size, at = _varint(data, at)
            if at + size > len(data):
                raise Undecodable(f"field {key >> 3} is longer than its message")
            value, at = data[at : at + size], at + size
        else:
            raise Undecodable(f"field {key >> 3} has the unknown wire type {kind}")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def texts(message: Message, number: int) -> tuple[str, ...]:
    """The values of a repeated string field."""
    return tuple(value.decode("utf-8", "replace") for value in message.get(number, ()) if isinstance(value, bytes))


def text(message: Message, number: int) -> str:
    found = texts(message, number)
    return found[-1] if found else ""


def number(message: Message, field: int) -> int:
    """A signed number; 0 where it is left out, as proto3 does."""
    found = [value for value in message.get(field, ()) if isinstance(value, int)]
    value = found[-1] if found else 0
    return value - 2 * _SIGN if value & _SIGN else value


def messages(message: Message, number: int) -> list[Message]:
    """The values of a repeated message field. Raises Undecodable."""
    return [decode(value) for value in message.get(number, ()) if isinstance(value, bytes)]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Undecodable("a number goes on past its message")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number, at
        shift += 7
