"""A day as plain lines: what is told where no terminal shows it, and what stays on the terminal once it is over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.text import Text

from berth.base.units import counted, duration
from berth.model.reasons import Answer
from berth.simulation.queueing.figures import Figures, OfQueue
from berth.views.live import Watch, gpus_words
from berth.views.live_words import short, text
from berth.views.report import ANSWER_WORDS
from berth.views.tables import HEADER_STYLE, QUIET_STYLE, Column, pct, say, show_whole, table

HOUR_S = 3600.0
MOST_LINES = 24  # between two progress lines of a long trace
MOST_STORIES = 14
MOST_REASONS = 8


class Line(NamedTuple):
    at_s: float
    words: str


class Told:
    """Which stories and which progress have been told as lines."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._stories = 0
        self._next_s = 0.0

    def lines(self, now_s: float) -> Iterator[Line]:
        """What is new since the last time."""
        watch = self._watch
        new = watch.count - self._stories
        for story in list(watch.told)[-new:] if new else []:
            yield Line(story.at_s, f"{watch.clock(story.at_s)}  {text(story, watch)}")
        self._stories = watch.count
        if watch.scene is not None and now_s >= self._next_s:
            yield Line(now_s, f"{watch.clock(now_s)}  {progress(watch)}")
            self._next_s = (now_s // self.every_s + 1) * self.every_s

    @property
    def every_s(self) -> float:
        """An hour of a day, and more of what is longer."""
        length = self._watch.length_s if np.isfinite(self._watch.length_s) else float(self._watch.jobs.submit_s[-1])
        return HOUR_S * max(1.0, float(np.ceil(length / HOUR_S / 30)))


def progress(watch: Watch) -> str:
    """`191 of 224 GPUs in use, 130 run, 12 wait (9 NotEnoughGpus, 2 Fragmented), 213 of 525 ended`."""
    scene = watch.scene
    assert scene is not None
    named = [f"{count} {name}" for name, count in scene.reasons[:3]]
    others = sum(count for _, count in scene.reasons[3:])
    reasons = ", ".join([*named, *([f"{others} other{'s' if others > 1 else ''}"] if others else [])])
    return (
        f"{scene.used.sum():.0f} of {gpus_words(watch.gpus)} in use, {scene.running} run, {scene.still} wait"
        f"{f' ({reasons})' if reasons else ''}, {scene.ended} of {len(watch.jobs)} ended"
    )


# ---- afterwards


def show(watch: Watch, figures: Figures, until_s: float, screen: Console) -> None:
    """What the day came to: use, waits, shares, the latest stories, and why the rest waits."""
    scene = watch.scene
    assert scene is not None
    title = Text(watch.name, style=HEADER_STYLE)
    title.append(f"  {watch.clock(0.0)} to {watch.clock(until_s)}, ", style="not bold dim")
    title.append(f"{counted(len(watch.nodes), 'node')}, {counted(watch.gpus, 'GPU')}", style="not bold dim")
    screen.print(title, soft_wrap=True)
    screen.print()
    say(
        screen,
        f"{pct(100 * figures.gpu_utilisation)} of all GPUs were in use on average. {figures.finished:,} of "
        f"{counted(figures.jobs, 'job')} that came ended, {scene.running:,} run, {scene.still:,} wait"
        f"{gave_up(figures)}. "
        f"{_set_aside(watch)}",
        2,
    )
    screen.print()
    _queues(figures, screen)
    _stories(watch, screen)
    _reasons(watch, until_s, screen)


def _set_aside(watch: Watch) -> str:
    if not watch.set_aside:
        return "Nobody was set aside."
    return f"{watch.set_aside:,} times somebody was set aside for who had priority or was owed it."


def _queues(figures: Figures, screen: Console) -> None:
    rows = [
        (
            q.queue,
            f"{q.jobs:,}",
            duration(q.avg_wait_s) if q.jobs else "-",
            held_hours(figures, q),
            _mean(q.share),
            _mean(q.due_share),
        )
        for q in figures.queues
    ]
    columns = [Column("queue"), *(Column(c, number=True) for c in ("ended", "mean wait", "GPU-h", "share", "due"))]
    show_whole(screen, table(columns, rows, 2))
    told = "GPU-h are those that jobs held. Share and due share are of all GPUs, over the whole time."
    say(screen, told, 2, QUIET_STYLE)
    screen.print()


def held_hours(figures: Figures, queue: OfQueue) -> str:
    """GPU hours that jobs of a queue held, those that go on among them: what its share comes to."""
    hours = sum(queue.share) * figures.part_s * figures.gpus / HOUR_S
    return f"{hours:,.0f}" if hours >= 10 or not hours else f"{hours:.2g}"


def gave_up(figures: Figures) -> str:
    """`, 2 were given up`, or nothing."""
    count = figures.cancelled
    return f", {count:,} {'was' if count == 1 else 'were'} given up" if count else ""


def _mean(values: tuple[float, ...]) -> str:
    return pct(100 * sum(values) / max(1, len(values)))


def _stories(watch: Watch, screen: Console) -> None:
    stories = list(watch.told)[-MOST_STORIES:]
    if not stories:
        return
    screen.print(Text("What happened", style=HEADER_STYLE))
    for story in stories:
        say(screen, f"{watch.clock(story.at_s)}  {watch.sentence(text(story, watch))}", 2)
    screen.print()


def _reasons(watch: Watch, until_s: float, screen: Console) -> None:
    """One that waits for each reason, and how many do."""
    scene = watch.scene
    assert scene is not None
    counts = dict(scene.reasons)
    first: dict[str, tuple[str, str, Answer]] = {}
    for one in scene.waits:
        if one.verdict is not None and one.verdict.reason is not None:
            sentence = short(watch.sentence(one.verdict.causes[0].sentence))
            waited = duration(max(0.0, until_s - one.since_s))
            who = f"{watch.keys[one.job]}, {gpus_words(float(watch.jobs.width[one.job]))}, waits {waited}"
            first.setdefault(one.verdict.reason.name, (who, sentence, one.verdict.answer))
    if not first:
        return
    screen.print(Text("Why the rest waits", style=HEADER_STYLE))
    for reason, (who, sentence, answer) in list(first.items())[:MOST_REASONS]:
        words, style = ANSWER_WORDS[answer]
        others = counts.get(reason, 1) - 1
        more = f", and {others:,} more" if others else ""
        line = Text.assemble("  ", (f"{words:<9}", style), (reason, "bold"), f"  {who}{more}")
        screen.print(line, soft_wrap=True)
        say(screen, f"{sentence}.", 11)
    if len(first) > MOST_REASONS:
        say(screen, f"and {counted(len(first) - MOST_REASONS, 'reason')} more.", 2, QUIET_STYLE)
    screen.print()
