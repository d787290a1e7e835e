"""Charts as HTML and SVG text: areas on top of each other, lines, distributions. Colours are classes of the page's
style (c0 to c7 fill, s0 to s7 stroke, d1 and d2 dashes), so a page has light and dark of its own.

Shapes are stretched to the width of the page, words are not: axes are HTML beside the SVG. Every chart is an image with
a name for who cannot see it, every shape says on hovering what it is, and the figures are in a table behind it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise

SIDE = 1000  # of the square that is stretched
COLOURS = 8
DASHES = 2  # kinds of them, for lines beyond the colours
MOST_PARTS = 200  # of the time, of one line: more is not seen and makes pages heavy
ROWS = 12  # of the table behind a chart

Series = tuple[str, Sequence[float]]
Ticks = Sequence[tuple[float, str]]  # place from 0 to 1, and its words


def areas(series: Sequence[Series], most: float, name: str, x: Ticks, y: Ticks, above: Sequence[Series] = ()) -> str:
    """Areas on top of each other, the first at the bottom, of values up to `most`. `above` are lines over them."""
    parts = len(_thinned(series[0][1])) if series else 0
    base, shapes = [0.0] * parts, []
    for number, (words, values) in enumerate(series):
        upper = [low + value for low, value in zip(base, _thinned(values), strict=True)]
        points = [*_points(upper, most), *reversed(_points(base, most))]
        shapes.append(f'<polygon class="c{number % COLOURS}" points="{" ".join(points)}">{_title(words)}</polygon>')
        base = upper
    shapes += [
        f'<polyline class="above" points="{" ".join(_points(_thinned(values), most))}">{_title(words)}</polyline>'
        for words, values in above
    ]
    return _plot("".join(shapes), name, x, y)


def shaded(series: Series, most: float, name: str, x: Ticks, y: Ticks) -> str:
    """One area in the colour of what is lost."""
    points = [*_points(_thinned(series[1]), most), f"{SIDE},{SIDE}", f"0,{SIDE}"]
    shape = f'<polygon class="lost" points="{" ".join(points)}">{_title(series[0])}</polygon>'
    return _plot(shape, name, x, y, "low")


def against(own: Series, due: Series, colour: int, most: float, name: str, x: Ticks, y: Ticks) -> str:
    """What somebody has as an area, and what is due as a dashed line over it."""
    points = [*_points(_thinned(own[1]), most), f"{SIDE},{SIDE}", f"0,{SIDE}"]
    shapes = (
        f'<polygon class="c{colour % COLOURS} soft" points="{" ".join(points)}">{_title(own[0])}</polygon>'
        f'<polyline class="due" points="{" ".join(_points(_thinned(due[1]), most))}">{_title(due[0])}</polyline>'
    )
    return _plot(shapes, name, x, y, "low")


def distributions(
    series: Sequence[Series],
    least: float,
    most: float,
    name: str,
    x: Ticks,
    colours: Sequence[int],
    strong: Sequence[str] = (),
) -> str:
    """Which part (up) has had to wait for how long at most (across, logarithmic from `least` to `most`). Values ascend,
    at equal parts from the first to the last, and lines rise in steps where they are. Those of `strong` names stand
    out."""
    shapes = []
    for (words, values), colour in zip(series, colours, strict=True):
        last = max(len(values) - 1, 1)
        across = [f"{SIDE * log_place(value, least, most):.0f}" for value in values]
        points = [f"0,{SIDE}"]
        for i, (before, place) in enumerate(pairwise(["0", *across])):
            if before != place:
                up = f"{SIDE * (1 - i / last):.0f}"
                points += [f"{before},{up}", f"{place},{up}"]
        points += [f"{across[-1]},0", f"{SIDE},0"] if across else [f"{SIDE},{SIDE}"]
        kind = f"s{colour % COLOURS}{_dashes(colour)}{' strong' if words in strong else ''}"
        shapes.append(f'<polyline class="{kind}" points="{" ".join(_plain(points))}">{_title(words)}</polyline>')
    return _plot("".join(reversed(shapes)), name, x, ((0.5, "50 %"), (1.0, "100 %")), "middle")


def log_place(value: float, least: float, most: float) -> float:
    """0 for what is `least` or less, 1 for `most`."""
    if value <= least or most <= least:
        return 0.0
    return min(math.log(value / least) / math.log(most / least), 1.0)


def _dashes(colour: int) -> str:
    """Where colours begin anew, lines are dashed: long, then short, so that none looks as another."""
    return f" d{min(colour // COLOURS, DASHES)}" if colour >= COLOURS else ""


def legend(names: Sequence[str], colours: Sequence[int] | None = None, *, lines: bool = False) -> str:
    shown = colours or range(len(names))
    items = (
        f'<li><i class="c{c % COLOURS}{_dashes(c) if lines else ""}"></i>{escape(name)}</li>'
        for name, c in zip(names, shown, strict=False)
    )
    return f'<ul class="legend{" of-lines" if lines else ""}">{"".join(items)}</ul>'


def figures(series: Sequence[Series], times: Sequence[str], unit: str) -> str:
    """The table behind a chart: means over a dozen parts of the time, whose begins `times` tells in words."""
    columns = [_thinned(values, ROWS) for _, values in series]
    cells = ("".join(f"<td>{number(column[i])}</td>" for column in columns if i < len(column)) for i in range(ROWS))
    rows = "".join(f"<tr><th>{escape(time)}</th>{row}</tr>" for time, row in zip(times, cells, strict=False))
    heads = "".join(f"<th>{escape(name)}</th>" for name, _ in series)
    return (
        f"<details class=data><summary>Figures</summary><div class=scroll><table><tr><th>from</th>{heads}</tr>{rows}"
        f"</table></div><p class=note>{escape(unit)}, means until the next row</p></details>"
    )


def number(value: float) -> str:
    """Three digits matter."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def round_ticks(most: float, wanted: int = 2) -> tuple[float, Ticks]:
    """A round number from `most` up that an axis ends with, and ticks at round numbers, as parts of it."""
    if most <= 0:
        return 1.0, ((1.0, "1"),)
    step = 10 ** math.floor(math.log10(most / wanted))
    step = next(step * times for times in (1, 1.5, 2, 2.5, 3, 4, 5, 10, 20) if step * times * wanted >= most)
    end = step * math.ceil(most / step - 1e-9)
    count = round(end / step)
    return end, tuple((i / count, number(step * i)) for i in range(1, count + 1))


def time_ticks(length_s: float, most: int = 6) -> Ticks:
    """Round times along so many seconds."""
    steps = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, *(d * 86400 for d in (1, 2, 5, 10, 25, 50, 100, 250)))
    step = next((one for one in steps if length_s / one <= most), 1000 * 86400)
    unit, of = next((unit, of) for unit, of in (("d", 86400), ("h", 3600), ("min", 60)) if step >= of)
    places = range(int(length_s // step) + 1) if length_s else ()
    return tuple((at * step / length_s, f"{at * step // of:,} {unit}" if at else "0") for at in places)


def moment(seconds: float) -> str:
    """A time along an axis: `0`, `15 min`, `6 h`, `3 d`, `3.5 d`."""
    if not seconds:
        return "0"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.0f} s"


def _thinned(values: Sequence[float], parts: int = MOST_PARTS) -> list[float]:
    """Means of so many neighbours that few parts are left."""
    count = len(values)
    if count <= parts:
        return list(values)
    edges = [round(i * count / parts) for i in range(parts + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]


def _points(values: Sequence[float], most: float) -> list[str]:
    """Steps would be truer and four times as long: parts are narrow."""
    last = max(len(values) - 1, 1)
    return _plain(
        [
            f"{SIDE * i / last:.0f},{SIDE * (1 - min(value / most, 1.0) if most else 1.0):.0f}"
            for i, value in enumerate(values)
        ]
    )


def _plain(points: list[str]) -> list[str]:
    """Without those in the middle of a level stretch."""
    level = [point.partition(",")[2] for point in points]
    last = len(points) - 1
    return [point for i, point in enumerate(points) if i in (0, last) or not level[i - 1] == level[i] == level[i + 1]]


def _plot(shapes: str, name: str, x: Ticks, y: Ticks, height: str = "high") -> str:
    lines = "".join(f'<line x1="0" x2="{SIDE}" y1="{SIDE * (1 - at):.0f}" y2="{SIDE * (1 - at):.0f}"/>' for at, _ in y)
    left = "".join(f'<span style="bottom:{100 * at:.1f}%">{escape(words)}</span>' for at, words in y)
    below = "".join(f'<span style="left:{100 * at:.1f}%">{escape(words)}</span>' for at, words in x)
    return (
        f'<div class="plot {height}"><div class=y>{left}</div>'
        f'<svg viewBox="0 0 {SIDE} {SIDE}" preserveAspectRatio="none" role="img" aria-label="{escape(name)}">'
        f"{lines}{shapes}</svg><div class=x>{below}</div></div>"
    )


def _title(name: str) -> str:
    return f"<title>{escape(name)}</title>"
