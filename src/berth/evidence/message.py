"""A sentence that a component is known to write, so that it is found in any text."""

from __future__ import annotations

import re
from functools import cached_property


class Message:
    """A sentence, whoever carries it: a log, an event, a file, a person.

    `anchors` are lower-case literals; every wording holds one of them, and those of all messages are looked for at once
    (scan.py). `pattern` is then searched for, ignoring case, in the line that holds one and in the lines after it, as
    many as `lines` says in all; its named groups are the values. Several wordings of one mechanism are one message.
    """

    def __init__(self, name: str, anchors: str | tuple[str, ...], pattern: str, *, lines: int = 1) -> None:
        self.name = name
        self.anchors = (anchors,) if isinstance(anchors, str) else anchors
        self.pattern = pattern
        self.lines = lines

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.IGNORECASE)

    def __repr__(self) -> str:
        return f"Message({self.name})"


def phrases(name: str, *wordings: str) -> Message:
    """A message of fixed phrases: each is an anchor as it stands, and means the same."""
    return Message(name, tuple(wording.lower() for wording in wordings), "|".join(map(re.escape, wordings)))


def exit_codes(*codes: int) -> tuple[str, ...]:
    """Anchors for how a process is said to have ended: `exit code: 137`, `exitCode":137`, `exit code (137)`."""
    signs = (" ", ":", ": ", "=", " = ", " : ", " (", '":', '": ', "':", "': ", '=\'', '="')
    return tuple(f"{word}{sign}{code}" for word in ("exit code", "exitcode") for sign in signs for code in codes)
