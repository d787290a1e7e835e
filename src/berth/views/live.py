"""What a watcher of jobs over time has seen so far: the present, the stories of the day, and the day as a curve.

Nothing here knows a terminal; live_frame.py draws it, live_plain.py writes it as lines.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.simulation.queueing.stories import Kind, Story

if TYPE_CHECKING:
    from berth.model.cluster import Node
    from berth.model.jobs import Jobs
    from berth.simulation.queueing.scene import Scene, Waits

MOST_TOLD = 200
FLASH_S = 0.7  # of the watcher's time: how long what has just started is lit up
SAME_AGAIN_S = 3600.0  # who passes one and the same job is told once in so long
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass
class Watch:
    """`begins_s` is the time of day at second 0, `length_s` when the day is over (inf: when all have ended)."""

    name: str
    jobs: Jobs
    keys: Sequence[str]  # (J,) `queue/name`
    nodes: Sequence[Node]
    begins_s: float = 0.0
    length_s: float = float("inf")
    scene: Scene | None = None
    told: deque[Story] = field(default_factory=lambda: deque(maxlen=MOST_TOLD))
    count: int = 0  # of all that was told
    latest: deque[Story] = field(default_factory=lambda: deque(maxlen=MOST_TOLD))  # what happens all the time
    curve_at: list[float] = field(default_factory=list)
    curve: list[NDArray[np.float64]] = field(default_factory=list)  # (Q,) GPUs in use at each
    set_aside: int = 0
    most: float = 1.0  # GPUs that one queue has used, or was due
    lit: dict[tuple[int, int], float] = field(default_factory=dict)  # (node, device) that has just started: until when

    @property
    def gpus(self) -> int:
        return sum(len(node.devices) for node in self.nodes)

    def take(self, scene: Scene, seen_s: float) -> None:
        """The next scene, at a time of the watcher's clock."""
        self.scene = scene
        self.curve_at.append(scene.at_s)
        self.curve.append(scene.used)
        self.most = max(self.most, float(scene.used.max(initial=0.0)), float(scene.due.max(initial=0.0)))
        for n, g in np.argwhere(scene.is_new).tolist():
            self.lit[n, g] = seen_s + FLASH_S
        for story in scene.stories:
            self._take(story)

    def _take(self, story: Story) -> None:
        if story.kind in (Kind.LeavesForPriority, Kind.LeavesForShare, Kind.LeavesForShorter):
            self.set_aside += story.jobs
        if story.kind >= Kind.Starts:
            self.latest.append(story)
            return
        if story.kind is Kind.Passes and any(
            one.kind is Kind.Passes and one.other == story.other and story.at_s - one.at_s < SAME_AGAIN_S
            for one in self.told
        ):
            return
        self.told.append(story)
        self.count += 1

    def done(self, now_s: float) -> float:
        """Part of the day that is over, or of the jobs that have ended."""
        if np.isfinite(self.length_s):
            return min(1.0, max(0.0, now_s / self.length_s))
        return self.scene.ended / max(1, len(self.jobs)) if self.scene else 0.0

    def clock(self, at_s: float) -> str:
        """`14:05`; with the day, from 1 on, where there are more than one."""
        day, of_day = divmod(max(0.0, self.begins_s + at_s), 86_400.0)
        time = f"{int(of_day // 3600):02d}:{int(of_day % 3600 // 60):02d}"
        return time if np.isfinite(self.length_s) and self.length_s <= 86_400.0 else f"day {int(day) + 1} {time}"

    def sentence(self, words: str) -> str:
        """Times of the simulation as this clock shows them."""
        return _STAMP.sub(lambda found: self.clock(_seconds(found[0])), words)


def expected(watch: Watch, one: Waits, *, is_short: bool = False) -> str:
    """`15:10–17:40`, between which the start lies in four cases of five; the likely one where it is to be short. Its
    place in time where nothing else is known, "" where that is not either."""
    start, now_s = one.start, watch.scene.at_s if watch.scene is not None else 0.0
    if start is not None and start.p50_s < float("inf"):
        if is_short or start.p90_s == float("inf"):
            return watch.clock(max(start.p50_s, now_s))  # worked out a while ago, and it waits still
        early, late = (watch.clock(max(at, now_s)) for at in (start.p10_s, start.p90_s))
        day = early.rpartition(" ")[0]
        return early if early == late else f"{early}–{late.removeprefix(f'{day} ') if day else late}"
    return watch.clock(one.place_s) if one.place_s is not None else ""


def _seconds(stamp: str) -> float:
    return datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()


def gpus_words(gpus: float) -> str:
    """`1 GPU`, `64 GPUs`, `0.5 GPU`."""
    number = f"{gpus:.0f}" if abs(gpus - round(gpus)) < 0.005 else f"{gpus:.2f}".rstrip("0")
    return f"{number} GPU{'' if 0 < gpus <= 1 else 's'}"
