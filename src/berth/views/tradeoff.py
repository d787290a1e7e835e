"""Two figures against each other for several settings, as one SVG: what is won of one and lost of the other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple

WIDTH, HEIGHT, EDGE = 720, 480, 70
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")  # told apart by the colour-blind, too
DASHES = ("", ' stroke-dasharray="7 4"', ' stroke-dasharray="2 3"')  # where the colours begin anew
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.grid{stroke:#ddd}.small{font-size:11px}"
    "rect{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}rect{fill:#161616}}"
)


class Point(NamedTuple):
    """One setting of one series."""

    series: str
    setting: str
    x: float
    y: float


def drawn(points: Sequence[Point], title: str, x_name: str, y_name: str) -> str:
    """A line for each series through its settings in the order given, each point with its name."""
    xs, ys = _range([point.x for point in points]), _range([point.y for point in points])
    shapes = [*_grid(xs, ys), _text(WIDTH / 2, 24, title, "middle"), _text(WIDTH / 2, HEIGHT - 12, x_name, "middle")]
    shapes.append(_text(12, 44, y_name, "start"))
    for number, (series, some) in enumerate(groupby(points, key=lambda point: point.series)):
        colour, at = COLOURS[number % len(COLOURS)], [(*_place(p.x, p.y, xs, ys), p.setting) for p in some]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in at)
        dash = DASHES[min(number // len(COLOURS), len(DASHES) - 1)]
        shapes.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        for x, y, setting in at:
            shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
            shapes.append(_text(x + 7, y - 6, setting, "start", "small"))
        across, y = WIDTH - 160, 56 + 20 * number
        shapes.append(f'<path d="M{across} {y}h18" stroke="{colour}" stroke-width="3"{dash}/>')
        shapes.append(_text(WIDTH - 138, 60 + 20 * number, series, "start"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}"><style>{STYLE}</style><rect width="{WIDTH}" height="{HEIGHT}"/>'
        f"{''.join(shapes)}</svg>\n"
    )


def _range(values: Sequence[float]) -> tuple[float, float]:
    """From a round number below the least to one above the most; 1 is within."""
    step = 0.05
    low, high = min([*values, 1.0]), max([*values, 1.0])
    while (high - low) / step > 10:
        step *= 2
    return (low // step) * step, (high // step + 1) * step


def _place(x: float, y: float, xs: tuple[float, float], ys: tuple[float, float]) -> tuple[float, float]:
    return (
        EDGE + (WIDTH - 2 * EDGE) * (x - xs[0]) / (xs[1] - xs[0]),
        HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (y - ys[0]) / (ys[1] - ys[0]),
    )


def _grid(xs: tuple[float, float], ys: tuple[float, float], lines: int = 5) -> list[str]:
    shapes = []
    for i in range(lines + 1):
        x, y = (one[0] + (one[1] - one[0]) * i / lines for one in (xs, ys))
        px, py = _place(x, y, xs, ys)
        shapes.append(f'<path class="grid" d="M{px:.1f} {EDGE}V{HEIGHT - EDGE}M{EDGE} {py:.1f}H{WIDTH - EDGE}"/>')
        shapes.append(_text(px, HEIGHT - EDGE + 18, f"{x:.2f}", "middle", "small"))
        shapes.append(_text(EDGE - 8, py + 4, f"{y:.2f}", "end", "small"))
    return shapes


def _text(x: float, y: float, words: str, anchor: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(words)}</text>'
