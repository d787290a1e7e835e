"""The record of a replayed day: what was allocated, who waited how long, what was said to who still waits."""

from __future__ import annotations

from msgspec import Struct

from berth.model.reasons import Verdict

# Kinds of workloads, in the order of a report.
KINDS = ("CPU only", "share of a GPU", "1 GPU", "2 to 8 GPUs", "gang", "service")


class ClassUse(Struct, frozen=True):
    """One GPU class over the day; percentages are of `gpus`, all that are built in."""

    name: str
    gpus: int
    held_back: int  # of them on cordoned, not ready or unfit nodes, or out of service
    mean_pct: float
    end_pct: float
    hourly_pct: tuple[float, ...]
    room: tuple[int, ...]  # pods of 1, 2, 4, 8 GPUs that still fit at the end


class Waits(Struct, frozen=True):
    """Seconds between arrival and start of what arrived and started within the day, by kind."""

    kind: str
    arrived: int
    started: int
    p50_s: float
    p90_s: float
    longest_s: float
    waiting: int


class LeftWaiting(Struct, frozen=True):
    """A workload that waits at the end of the day."""

    workload: str
    kind: str
    queue: str
    pods: int
    gpus: float  # of the whole workload
    waited_s: float
    verdict: Verdict | None


class Outcome(Struct, frozen=True):
    """What came of a day. Rates count only the time within scheduling cycles."""

    name: str
    seed: int
    nodes: int
    gpus: int
    arrived: int
    carried_over: int
    started: int
    finished: int
    waiting: int
    gangs_arrived: int
    gangs_started: int
    mean_pct: float
    end_pct: float
    peak_pct: float
    hourly_pct: tuple[float, ...]
    stranded_mean_pct: float
    stranded_end_pct: float
    classes: tuple[ClassUse, ...]
    waits: tuple[Waits, ...]
    left: tuple[LeftWaiting, ...]
    cycles: int
    decisions: int
    binds: int
    cycle_s: float
    cycle_p50_ms: float
    cycle_p99_ms: float
    slowest_cycle_ms: float
    wall_s: float

    @property
    def decisions_per_second(self) -> float:
        return self.decisions / self.cycle_s if self.cycle_s else 0.0
