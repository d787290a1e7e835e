"""Answers in HTTP/1.1, as a server of Kubernetes sends them to a write. Source: RFC 9112.

What is not understood is refused, never guessed: the caller closes the connection.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HEAD_LIMIT = 1 << 16
BODY_LIMIT = 1 << 26
_HEX = re.compile(rb"[0-9a-fA-F]{1,8}")


class Answered(NamedTuple):
    """Status, the head as it came (lower case), and the body."""

    status: int
    head: bytes
    body: bytes

    def header(self, name: str) -> str | None:
        """A header's value; `name` in lower case."""
        found = header_of(self.head, name.encode())
        return None if found is None else found.decode("latin-1")


def parse(data: bytes) -> tuple[Answered, int] | int:
    """The answer at the start of `data` with its length, or how many bytes are missing at least (0: unknown).

    Raises ValueError for what is not an answer.
    """
    start = 0
    while True:
        end = data.find(b"\r\n\r\n", start)
        if end < 0:
            if len(data) - start > HEAD_LIMIT:
                raise ValueError("a head without an end")
            return 0
        head = data[start:end].lower()
        if not head.startswith(b"http/1."):
            raise ValueError(f"it begins with {head[:20]!r}")
        status = int(head[9:12])
        start = end + 4
        if status >= 200:  # 1xx are remarks before the answer
            break
    if status in (204, 304):
        return Answered(status, head, b""), start
    coding = header_of(head, b"transfer-encoding")
    if coding is not None:
        if coding != b"chunked":
            raise ValueError(f"transfer coding {coding!r}")
        return _chunked(data, start, status, head)
    length = header_of(head, b"content-length")
    if length is None or not length.isdigit():
        raise ValueError("no content length")
    size = int(length)
    if size > BODY_LIMIT:
        raise ValueError(f"a body of {size} bytes")
    if (missing := start + size - len(data)) > 0:
        return missing
    return Answered(status, head, data[start : start + size]), start + size


def _chunked(data: bytes, start: int, status: int, head: bytes) -> tuple[Answered, int] | int:
    parts: list[bytes] = []
    at = start
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            return 0
        digits = data[at:end].partition(b";")[0].strip()
        if not _HEX.fullmatch(digits):
            raise ValueError(f"chunk size {digits[:20]!r}")
        size = int(digits, 16)
        at = end + 2
        if size == 0:
            # Trailers, if any, end with an empty line.
            while True:
                end = data.find(b"\r\n", at)
                if end < 0:
                    return 0
                if end == at:
                    return Answered(status, head, b"".join(parts)), end + 2
                at = end + 2
        if size > BODY_LIMIT or at - start > BODY_LIMIT:
            raise ValueError("a body too large")
        if (missing := at + size + 2 - len(data)) > 0:
            return missing
        if data[at + size : at + size + 2] != b"\r\n":
            raise ValueError("a chunk without its end")
        parts.append(data[at : at + size])
        at += size + 2


def header_of(head: bytes, name: bytes) -> bytes | None:
    """The first header of this name in a head in lower case."""
    at = head.find(b"\r\n" + name + b":")
    if at < 0:
        return None
    at += len(name) + 3
    end = head.find(b"\r\n", at)
    return head[at : end if end >= 0 else len(head)].strip()


def is_last(answered: Answered) -> bool:
    """The server closes the connection after this answer."""
    return answered.head.startswith(b"http/1.0") or header_of(answered.head, b"connection") == b"close"
