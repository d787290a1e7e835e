"""What stands before each line in logs with times, in log files of container runtimes, and in quotations."""

from __future__ import annotations

import re

from berth.evidence.piece import Piece

_PREFIX = rb"(?:\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:(?:stdout|stderr) [FP] )?|> ?)"
_FIRST = re.compile(rb"\A\s*" + _PREFIX)
_EACH = re.compile(rb"^" + _PREFIX, re.MULTILINE)


def without_prefix(text: bytes) -> bytes:
    """The same lines, bare, if the first of them has a prefix; the text as it is otherwise."""
    return _EACH.sub(b"", text) if _FIRST.match(text) else text


def bare_lines(piece: Piece) -> list[str]:
    return without_prefix(piece.raw).decode("utf-8", "replace").splitlines()
