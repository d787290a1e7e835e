"""A terminal as a whole: frames on the alternate screen, single keys, and everything as it was afterwards."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.text import Text

from berth.views.live_paint import Paint
from berth.views.tables import BLOCKS, signs

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"
_BEGIN, _END = "\x1b[?2026h\x1b[H", "\x1b[J\x1b[?2026l"  # a frame is shown whole where the terminal knows how
_LINE_END = "\x1b[K"
SMALLEST = (20, 6)


def can_show() -> bool:
    """Frames need a terminal that knows where its cursor is."""
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def paint_of(queues: Sequence[str]) -> Paint:
    """What this terminal can show; NO_COLOR is obeyed."""
    screen = Console(file=sys.stdout)
    # The console of Linux has no characters for eighths.
    blocks = signs(screen) is BLOCKS and os.environ.get("TERM") != "linux"
    return Paint(tuple(queues), blocks, screen.color_system is not None and not screen.no_color)


class Screen:
    """As a context: the terminal is taken, and given back however it ends."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None
        self._types = False  # somebody can press keys
        self._console: Console | None = None

    def __enter__(self) -> Screen:
        self.take()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.give_back()

    def take(self) -> None:
        self._before = _single_keys()
        self._types = self._before is not None
        _write(_ENTER)

    def give_back(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            _write(_LEAVE)
        if self._before is not None:
            _as_before(self._before)
            self._before = None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, of this moment."""
        try:
            width, height = os.get_terminal_size(sys.stdout.fileno())
        except (OSError, ValueError):
            width, height = 80, 24
        return max(SMALLEST[0], width or 80), max(SMALLEST[1], height or 24)

    def draw(self, make: Callable[[int, int], Sequence[Text]]) -> None:
        """One frame, of lines made for the size that the terminal has now."""
        width, height = self.size
        if self._console is None or self._console.width != width:
            self._console = Console(
                file=io.StringIO(), width=width, height=height, highlight=False, emoji=False, markup=False,
                force_terminal=True, legacy_windows=False,
            )  # fmt: skip
        console = self._console
        with console.capture() as captured:
            for line in make(width, height):
                console.print(line, no_wrap=True, overflow="crop", crop=True, soft_wrap=False)
        lines = captured.get().rstrip("\n").split("\n")
        _write(_BEGIN + f"{_LINE_END}\r\n".join(lines[:height]) + _LINE_END + _END)

    def key(self, wait_s: float) -> str:
        """A key that was pressed within that time, "" for none."""
        stdin = sys.stdin
        if not self._types or stdin is None:
            select.select([], [], [], wait_s)
            return ""
        try:
            if not select.select([stdin], [], [], wait_s)[0]:
                return ""
            typed = os.read(stdin.fileno(), 64)
        except (OSError, ValueError):
            typed = b""
        self._types = bool(typed)  # at its end a stream is ready for ever
        return typed.decode(errors="replace")[:1]


def _write(words: str) -> None:
    sys.stdout.write(words)
    sys.stdout.flush()


def _single_keys() -> list[Any] | None:
    """Keys come one by one and are not shown; Ctrl-C stays what it is. None where nobody can type."""
    try:
        import termios
        import tty

        if sys.stdin is None or not sys.stdin.isatty():
            return None
        before = termios.tcgetattr(sys.stdin.fileno())
        tty.setcbreak(sys.stdin.fileno())
        return before
    except (ImportError, OSError, ValueError):
        return None


def _as_before(before: list[Any]) -> None:
    import termios

    with contextlib.suppress(OSError, ValueError, termios.error):
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
