"""Tables and words for a terminal, shared by all commands.

Colour only on a terminal and never alone; NO_COLOR, FORCE_COLOR and TERM=dumb are obeyed by Rich. Where the
terminal cannot show block characters, ASCII stands in for them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import NamedTuple, TextIO

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 100  # columns where the output is no terminal
WIDEST = 120  # lines that are longer are hard to read
NO_EDGE = 10_000

HEADER_STYLE = "bold"
QUIET_STYLE = "dim"


class Signs(NamedTuple):
    """Characters that draw: a full and an empty piece of a bar, one that is held back, steps of a curve."""

    full: str
    empty: str
    held: str
    steps: str
    dot: str
    dash: str
    plus_minus: str


BLOCKS = Signs("█", "░", "╱", "▁▂▃▄▅▆▇█", "·", "–", "±")
ASCII = Signs("#", ".", "/", "_.-=+*%#", "-", "-", "+/-")


class Column(NamedTuple):
    """A column of a table. Numbers are right-aligned; a column that folds takes several lines."""

    title: str
    number: bool = False
    folds: bool = False
    style: str = ""


class _Screen(Console):
    """Rich would end the process with exit code 1, which says of a job that it does not fit."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(file: TextIO | None = None, width: int | None = None) -> Console:
    """A console on stdout or `file`. Its width is `width` where given, else the terminal's, WIDEST at most."""
    screen = _Screen(file=file or sys.stdout, width=width, highlight=False, emoji=False, soft_wrap=False)
    if width is None:
        screen.width = min(screen.width, WIDEST) if screen.is_terminal else PLAIN_WIDTH
    return screen


def signs(screen: Console) -> Signs:
    """What this console's encoding can show."""
    try:
        "".join(BLOCKS).encode(screen.encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def table(columns: Sequence[Column], rows: Iterable[Sequence[RenderableType]], indent: int = 0, gap: int = 2) -> Table:
    """A table without lines: headers bold, `gap` blanks between columns, numbers right-aligned."""
    grid = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style=HEADER_STYLE)
    if indent:
        grid.add_column("", width=max(0, indent - gap), no_wrap=True)
    for column in columns:
        grid.add_column(
            Text(column.title),
            justify="right" if column.number else "left",
            no_wrap=not column.folds,
            overflow="fold" if column.folds else "ellipsis",
            style=column.style,
        )
    for row in rows:
        cells = [Text(cell) if isinstance(cell, str) else cell for cell in row]
        grid.add_row(*([Text("")] if indent else []), *cells)
    return grid


def show_whole(screen: Console, grid: Table) -> None:
    """A table whose cells are never cut: names are there to be copied. What a terminal is too narrow for runs on
    in its next line, as kubectl's tables do."""
    width = Measurement.get(screen, screen.options.update(width=NO_EDGE), grid).maximum
    for line in screen.render_lines(grid, screen.options.update(width=width), pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        screen.print(text, soft_wrap=True)


def bar(share: float, held: float, width: int, draw: Signs) -> Text:
    """A bar of `width` characters: `share` of it full, `held` of it, at its end, held back (0 to 1)."""
    full = min(width, round(max(0.0, share) * width))
    away = min(width - full, round(max(0.0, held) * width) or (1 if held > 0 else 0))
    text = Text(draw.full * full, style="cyan")
    text.append(draw.empty * (width - full - away), style=QUIET_STYLE)
    text.append(draw.held * away, style="yellow")
    return text


def curve(values: Sequence[float], low: float, high: float, draw: Signs) -> str:
    """One character for each value, between `low` and `high`."""
    span = (high - low) or 1.0
    last = len(draw.steps) - 1
    return "".join(draw.steps[max(0, min(last, round(last * (v - low) / span)))] for v in values)


def say(screen: Console, words: str, indent: int = 0, style: str = "") -> None:
    """A paragraph, indented, without the blanks that Rich puts behind wrapped lines."""
    for line in wrap(words, max(20, screen.width - indent), break_long_words=False, break_on_hyphens=False):
        screen.print(Text(" " * indent + line, style=style), soft_wrap=True)


def pct(value: float, decimals: int = 1) -> str:
    """`91.2 %`."""
    return f"{value:.{decimals}f} %"
