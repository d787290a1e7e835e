"""The parts of a live view: queues, who waits and why, who runs, what happened, and the day as a curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from berth.base.units import duration
from berth.model.reasons import Answer
from berth.simulation.queueing.scene import Scene, Waits
from berth.simulation.queueing.stories import Kind, Story
from berth.views.live import Watch, expected
from berth.views.live_paint import FAILED, QUIET, Paint, heading
from berth.views.live_words import pieces, short

_SIGNS = {
    Kind.NodeFails: ("×", "x", FAILED), Kind.StopsWithNode: ("×", "x", FAILED),
    Kind.NodeIsBack: ("+", "+", "green"), Kind.GangStarts: ("●", "*", "green"),
    Kind.GangWaits: ("○", "o", "yellow"), Kind.CanNeverStart: ("!", "!", "red"), Kind.Passes: ("»", ">", "cyan"),
    Kind.LeavesForPriority: ("‹", "<", "magenta"), Kind.LeavesForShare: ("‹", "<", "magenta"),
    Kind.LeavesForShorter: ("‹", "<", "magenta"),
}  # fmt: skip


def fit(words: str, width: int, paint: Paint) -> str:
    """Exactly `width` cells; what is longer ends in an ellipsis."""
    if cell_len(words) <= width:
        return set_cell_size(words, width)
    dots = paint.sign("…", "..")
    return set_cell_size(words, max(0, width - cell_len(dots))) + dots[: max(0, width)]


# ---- queues


def queue_lines(watch: Watch, scene: Scene, width: int, rows: int, paint: Paint) -> list[Text]:
    """Used and due GPUs and jobs that wait of each queue, with a bar and a mark at what is due."""
    order = list(range(len(watch.jobs.queues)))
    if len(order) > rows - 1:
        weigh = scene.used + scene.wanted
        order = sorted(np.argsort(-weigh, kind="stable")[: max(1, rows - 1)].tolist())
    names = [watch.jobs.queues[q] for q in order]
    name_width = min(max((cell_len(name) for name in names), default=4), max(6, width - 40), 24)
    room = width - (2 + name_width + 7 + 7 + 9 + 2)
    head = f"{'':<{2 + name_width}}{'used':>7}{'due':>7}{'waiting':>9}"
    lines = [Text(head, style=QUIET)]
    for q, name in zip(order, names, strict=True):
        line = Text.assemble(paint.chip(q), " ", fit(name, name_width, paint))
        line.append(f"{scene.used[q]:>7.0f}")
        line.append(f"{scene.due[q]:>7.0f}", style=QUIET)
        line.append(f"{scene.waiting[q]:>9.0f}", style="" if scene.waiting[q] else QUIET)
        if room >= 8:
            mark = scene.due[q] / watch.most
            line.append("  ").append_text(paint.bar(scene.used[q] / watch.most, room, q, mark))
        lines.append(line)
    return lines


# ---- who waits, who runs


def waiting_lines(watch: Watch, scene: Scene, width: int, rows: int, paint: Paint, now_s: float) -> list[Text]:
    """Titles, then who waits: GPUs, since when, when it is expected to start, and why."""
    title = f"WAITING {scene.still}"
    if not scene.waits or rows < 2:
        return [heading(title, width, paint, "" if scene.still else "nobody")]
    room = rows - 1
    shown = scene.waits[: room if scene.still <= room else max(1, room - 1)]
    name_width = max(len(title), min(max(cell_len(watch.keys[one.job]) for one in shown), max(12, width // 3)))
    columns = _Columns(name_width, _start_width(watch, width))
    head = Text.assemble((f"{title:<{name_width}}", "bold"), (columns.titles(), QUIET))
    head.append(f" {paint.rule() * max(0, width - head.cell_len - 1)}", style=QUIET)
    lines = [head, *(_waits(watch, one, width, columns, paint, now_s) for one in shown)]
    if scene.still > len(shown):
        reasons = ", ".join(f"{count} {name}" for name, count in scene.reasons[:4])
        lines.append(Text(fit(f"{scene.still - len(shown)} more; of all: {reasons}", width, paint), style=QUIET))
    return lines


class _Columns(NamedTuple):
    name: int
    start: int

    def titles(self) -> str:
        return f"{'GPUs':>6}{'waited':>12}{'starts':>{self.start}}  why"


def _start_width(watch: Watch, width: int) -> int:
    """A range where there is room for one."""
    clock = len(watch.clock(0.0))
    return 2 + (2 * clock + 1 if width >= 90 + clock else clock)


def _waits(watch: Watch, one: Waits, width: int, columns: _Columns, paint: Paint, now_s: float) -> Text:
    queue = int(watch.jobs.queue[one.job])
    waited = duration(max(0.0, now_s - one.since_s))
    starts = expected(watch, one, is_short=columns.start < 2 * len(watch.clock(0.0)))
    starts = starts.replace("–", paint.sign("–", "-"))
    is_never = one.verdict is not None and one.verdict.answer is Answer.Never
    reason, colon, sentence = (short(watch.sentence(one.verdict.message)) if one.verdict else "").partition(":")
    line = Text.assemble(
        (fit(watch.keys[one.job], columns.name, paint), paint.colour(queue)),
        f"{_number(float(watch.jobs.width[one.job])):>6}",
        (f"{waited:>12}", QUIET),
        (f"{starts or '-':>{columns.start}}  ", "bold cyan" if starts else QUIET),
        (reason + colon, FAILED if is_never else "yellow"),
        sentence,
    )
    return Text.assemble(line) if line.cell_len <= width else _cut(line, width, paint)


def _cut(line: Text, width: int, paint: Paint) -> Text:
    line.truncate(width, overflow="ellipsis" if paint.blocks else "crop")
    return line


def running_lines(watch: Watch, scene: Scene, width: int, rows: int, paint: Paint, now_s: float) -> list[Text]:
    """The largest that run: GPUs, nodes, for how long, and of how long a limit."""
    title = f"RUNNING {scene.running}"
    if not scene.runs or rows < 2:
        return [heading(title, width, paint, "" if scene.running else "nobody")]
    shown = scene.runs[: rows - 1]
    name_width = max(len(title), min(max(cell_len(watch.keys[one.job]) for one in shown), max(12, width // 3)))
    head = Text.assemble(
        (f"{title:<{name_width}}", "bold"), (f"{'GPUs':>6}{'nodes':>7}{'runs for':>13}{'of at most':>13}", QUIET)
    )
    head.append(f" {paint.rule() * max(0, width - head.cell_len - 1)}", style=QUIET)
    lines = [head]
    for one in shown:
        queue, limit_s = int(watch.jobs.queue[one.job]), float(watch.jobs.limit_s[one.job])
        ran_s = max(0.0, now_s - one.started_s)
        line = Text.assemble(
            (fit(watch.keys[one.job], name_width, paint), paint.colour(queue)),
            f"{_number(float(watch.jobs.width[one.job])):>6}{one.nodes:>7}{duration(ran_s):>13}",
            (f"{duration(limit_s) if limit_s else '-':>13}  ", QUIET),
        )
        room = min(40, width - line.cell_len)
        if limit_s and room >= 8:
            line.append_text(paint.bar(ran_s / limit_s, room, queue))
        lines.append(line)
    return lines


def _number(gpus: float) -> str:
    return f"{gpus:.0f}" if abs(gpus - round(gpus)) < 0.005 else f"{gpus:.2f}".lstrip("0")


# ---- what happened


def story_lines(watch: Watch, width: int, rows: int, paint: Paint) -> list[Text]:
    """The latest stories, the newest below, and as much of what happens all the time as there is room beside them, one
    line at least."""
    stories = list(watch.told)[-(rows - 1) :] if rows > 1 else []
    others = list(watch.latest)[-max(1, rows - len(stories)) :] if rows else []
    last = others[-1:]  # in a line of its own, whatever is newer
    both = [*sorted([*stories, *others[:-1]], key=lambda one: one.at_s), *last]
    return [_story(one, watch, width, paint) for one in both][:rows]


def _story(story: Story, watch: Watch, width: int, paint: Paint) -> Text:
    block, plain, style = _SIGNS.get(story.kind, ("·", ".", QUIET))
    is_plain = story.kind >= Kind.Starts
    line = Text.assemble(
        (watch.clock(story.at_s), QUIET), " ", (paint.sign(block, plain), style if paint.colours else "bold"), " "
    )
    for words, job in pieces(story, watch):
        line.append(words, style=paint.colour(int(watch.jobs.queue[job])) if job >= 0 else QUIET if is_plain else "")
    line.truncate(width, overflow="ellipsis" if paint.blocks else "crop")
    return line


# ---- the day


def curve_lines(watch: Watch, width: int, rows: int, paint: Paint, now_s: float) -> list[Text]:
    """GPUs in use by queue over the day, on top of each other; the last line is the hours. `rows` from 3."""
    label = len(f"{watch.gpus:,}") + 1
    room, height = max(8, width - label), rows - 1
    length = watch.length_s if np.isfinite(watch.length_s) else max(now_s, float(watch.jobs.submit_s[-1]), 1.0)
    at = np.array(watch.curve_at)
    columns = np.searchsorted(at, (np.arange(room) + 0.5) * length / room, side="right") - 1
    seen = int(min(room, np.ceil(room * now_s / length))) if len(at) else 0
    lines = []
    for r in range(height - 1, -1, -1):
        axis = f"{watch.gpus:,}" if r == height - 1 else "0" if r == 0 else ""
        line = Text.assemble((f"{axis:>{label - 1}} ", QUIET))
        for x in range(room):
            levels = watch.curve[columns[x]] / watch.gpus if x < seen and columns[x] >= 0 else None
            line.append_text(_cell(levels, r, height, paint))
        lines.append(line)
    lines.append(_hours(watch, label, room, length))
    return lines


def _cell(levels: np.ndarray | None, row: int, height: int, paint: Paint) -> Text:
    """Two colours at most are in a character: what fills most of it, the lower of the two from below."""
    if levels is None:
        return Text(" ")
    tops = np.cumsum(levels)
    low, high = row / height, (row + 1) / height
    parts = [
        (max(0.0, min(high, top) - max(low, top - part)) * height, q)
        for q, (part, top) in enumerate(zip(levels.tolist(), tops.tolist(), strict=True))
    ]
    idle = max(0.0, high - max(low, float(tops[-1]))) * height
    if not (paint.blocks and paint.colours):
        return Text(paint.rising(1.0 - idle), style="default")
    two = sorted(sorted([*parts, (idle, len(parts))], reverse=True)[:2], key=lambda one: one[1])
    (lower, below), (_, above) = two
    whole = lower + two[1][0]
    if whole <= 0 or (below == len(parts)):
        return Text(" ")
    part = round(8 * lower / whole)
    if part >= 8:
        return Text("█", style=paint.colour(below))
    if part <= 0:
        return Text(" " if above == len(parts) else "█", style=paint.colour(above) if above < len(parts) else "")
    ground = "" if above == len(parts) else f" on {paint.colour(above)}"
    return Text(paint.rising(part / 8), style=f"{paint.colour(below)}{ground}")


def _hours(watch: Watch, label: int, room: int, length: float) -> Text:
    steps = max(1, min(8, room // (len(watch.clock(0.0)) + 7)))
    words = " " * label
    for i in range(steps + 1):
        text = watch.clock(length * i / steps)
        at = min(label + round(room * i / steps), label + room - len(text))
        words = f"{words:<{at}}{text}" if at > len(words) or not i else words
    return Text(words, style=QUIET)


def cut(lines: Sequence[Text], rows: int) -> list[Text]:
    """Exactly `rows` lines."""
    return [*lines, *[Text("")] * (rows - len(lines))][: max(0, rows)]
