"""Standard streams as a shell may leave them: closed, full, or in an encoding that lacks characters."""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress

# What stands for characters that an encoding lacks; `?` for all others.
_NEAREST = {"×": "x", "·": "-", "–": "-", "—": "-", "…": "...", "±": "+/-", "’": "'", "→": "->", "≥": ">=", "≤": "<="}
_ERRORS = "berth-nearest"


def prepare() -> None:
    """No output fails for want of a character: the nearest one stands for it."""
    codecs.register_error(_ERRORS, _nearest)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_NEAREST.get(character, "?") for character in lacking), error.end


def say(words: str) -> None:
    """A line on stderr, if anybody can still read there; an exit code counts more than its words.

    What a dump or a file's name holds of control characters does not reach the terminal.
    """
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)


def drop_output() -> None:
    """Nothing that is still in the buffer of stdout is written, nor fails to be, when the process ends."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
