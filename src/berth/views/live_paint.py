"""Colours and characters of a live view: those of queues, and what stands for them where there are none.

Without colour, or without block characters, a device shows the letter of the queue that holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.text import Text

# Told apart on dark and on light ground, and by those who see no red and green; red is for what fails.
COLOURS = (
    "#4c9be8", "#e8a33d", "#7bc96f", "#b98ee8", "#3fc1b0", "#e87fb0", "#a3b346", "#c98b6b", "#7f9bb3", "#d6c25e",
)  # fmt: skip
FAILED = "bold #ff5f57"
QUIET = "dim"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_ALONG = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Paint:
    """What this terminal can show."""

    queues: tuple[str, ...]
    blocks: bool = True
    colours: bool = True

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """One of each queue: its first where that is nobody else's, else the next that is free."""
        return _letters(self.queues)

    @property
    def by_letter(self) -> bool:
        return not (self.blocks and self.colours)

    def colour(self, queue: int) -> str:
        return COLOURS[queue % len(COLOURS)] if self.colours and queue >= 0 else ""

    def chip(self, queue: int) -> Text:
        """Stands before a queue's name, and tells it in the map."""
        return Text(self.letters[queue] if self.by_letter else "■", style=self.colour(queue))

    def rising(self, part: float) -> str:
        """A character that is filled from below."""
        if not self.blocks:
            return " .:-=+*%#"[round(8 * min(1.0, max(0.0, part)))]
        return _EIGHTHS[round(8 * min(1.0, max(0.0, part)))]

    def rule(self) -> str:
        return "─" if self.blocks else "-"

    def sign(self, block: str, plain: str) -> str:
        return block if self.blocks else plain

    def bar(self, part: float, width: int, queue: int, mark: float = -1.0) -> Text:
        """A bar of `width`, `part` of it full in the queue's colour, with a mark (0 to 1)."""
        length = min(1.0, max(0.0, part)) * width
        full, rest = int(length), length - int(length)
        if self.blocks:
            cells = ["█"] * full + ([_ALONG[round(8 * rest)]] if full < width else [])
        else:
            cells = ["#"] * round(length)
        cells = [*cells, *" " * width][:width]
        bar = Text("".join(cells), style=self.colour(queue))
        if mark >= 0:
            at = min(width - 1, round(mark * width))
            under = "bold" if at >= full or not self.colours else f"bold black on {self.colour(queue)}"
            bar = Text.assemble(bar[:at], (self.sign("│", "|"), under), bar[at + 1 :])
        return bar


def _letters(queues: Sequence[str]) -> tuple[str, ...]:
    taken: list[str] = []
    for name in queues:
        wanted = [c for c in name.upper() if c in LETTERS] + list(LETTERS + LETTERS.lower() + "0123456789")
        taken.append(next((c for c in wanted if c not in taken), "?"))
    return tuple(taken)


def heading(title: str, width: int, paint: Paint, note: str = "") -> Text:
    """`WAITING 7 ───────`."""
    line = Text(title, style="bold")
    if note:
        line.append(f"  {note}", style="not bold dim")
    rest = width - line.cell_len - 1
    if rest > 0:
        line.append(f" {paint.rule() * rest}", style="not bold dim")
    return line
