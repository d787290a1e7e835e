"""How good expected starts are: each is made with what is known at its moment, and compared with what then happened.

Jobs that start in the moment in which they come need no forecast; they are counted apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.model.history import History
from berth.model.snapshot import Snapshot
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.starts_watch import Watch
from berth.simulation.queueing.engine import Decide
from berth.simulation.queueing.figures import SIZES, size_name
from berth.simulation.queueing.state import State, What

MOMENTS = 300  # at which forecasts are made


class OfForecasts(Struct, frozen=True):
    """Forecasts of jobs of so many GPUs. `coverage`: part of them in which the job started from p10 to p90;
    `early`, `late`: before p10, after p90. Errors are of p50."""

    gpus: str
    forecasts: int
    coverage: float
    early: float
    late: float
    median_error_s: float
    median_wait_s: float
    median_interval_s: float


class Accuracy(Struct, frozen=True):
    """Of one trace. `at_submission` are the first forecasts of jobs that had to wait, `later` those while they did;
    `coverage_with_at_once` counts those that started at once as foreseen, too."""

    trace: str
    policy: str
    gpus: int
    moments: int
    jobs: int  # that came at these moments
    at_once: int
    coverage_with_at_once: float
    at_submission: OfForecasts
    later: OfForecasts
    sizes: tuple[OfForecasts, ...]  # at submission
    seconds: float  # of computing for one moment, the median


class _Made(NamedTuple):
    job: int
    at_s: float
    is_first: bool
    p10_s: float
    p50_s: float
    p90_s: float


@dataclass
class Forecasting:
    """`decide` is what the engine is given; `look` sees the state after each step."""

    cycle: Decide
    policy: Policy
    every: int  # submissions from one forecast to the next
    watch: Watch = field(init=False)
    made: list[_Made] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    came: int = 0
    at_once: int = 0
    _last: tuple[Snapshot, Plan] | None = None
    _rows: dict[str, int] = field(default_factory=dict)
    _since: int = 0

    def __post_init__(self) -> None:
        self.watch = Watch(self.policy, every_s=0.0)

    def decide(self, snapshot: Snapshot) -> Plan:
        plan = self.cycle(snapshot)
        self.watch.notice(plan, snapshot.now_s)
        self._last = snapshot, plan
        return plan

    def look(self, state: State) -> None:
        """Make forecasts where it is time for some."""
        from time import perf_counter

        new = [one.job for one in state.happened if one.what is What.Came]
        self._since += len(new)
        if not new or self._since < self.every or self._last is None:
            return
        self._since = 0
        self.came += len(new)
        self.at_once += sum(job not in state.waiting for job in new)
        if not state.waiting:
            return
        self._rows = self._rows or {w.identity: job for job, w in enumerate(state.workloads)}
        snapshot, plan = self._last
        began = perf_counter()
        found = self.watch.look(replace(snapshot, history=history_of(state, self._rows)), plan)
        self.seconds.append(perf_counter() - began)
        first = set(new)
        for w, start in found.items():
            job = self._rows[snapshot.workloads[w].identity]
            self.made.append(_Made(job, state.now_s, job in first, start.p10_s, start.p50_s, start.p90_s))

    def accuracy(self, policy: str, state: State) -> Accuracy:
        """Once all is over."""
        jobs = np.array([one.job for one in self.made], np.int64)
        said = np.array([one[3:] for one in self.made], np.float64).reshape(len(self.made), 3)
        at, first = np.array([one.at_s for one in self.made]), np.array([one.is_first for one in self.made], bool)
        start = state.start_s[jobs]
        known = np.isfinite(start) & (start > at)  # who was stopped and waits again has had its first start
        width = state.jobs.width[jobs]

        def of(name: str, mask: NDArray[np.bool_]) -> OfForecasts:
            some = mask & known
            return _of(name, start[some], at[some], said[some])

        submitted = of("all", first)
        counted = submitted.forecasts + self.at_once
        covered = submitted.coverage * submitted.forecasts + self.at_once
        return Accuracy(
            trace=state.jobs.name,
            policy=policy,
            gpus=sum(len(node.devices) for node in state.cluster.nodes),
            moments=len(self.seconds),
            jobs=self.came,
            at_once=self.at_once,
            coverage_with_at_once=covered / counted if counted else 0.0,
            at_submission=submitted,
            later=of("all", ~first),
            sizes=tuple(
                one
                for low, high in SIZES
                if (one := of(size_name(low, high), first & (width >= low) & (width <= high))).forecasts
            ),
            seconds=float(np.median(self.seconds)) if self.seconds else 0.0,
        )


def _of(name: str, start: NDArray[np.float64], at: NDArray[np.float64], said: NDArray[np.float64]) -> OfForecasts:
    count = len(start)
    if not count:
        return OfForecasts(name, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    early, late = start < said[:, 0] - 1e-6, start > said[:, 2] + 1e-6
    return OfForecasts(
        gpus=name,
        forecasts=count,
        coverage=float((~early & ~late).mean()),
        early=float(early.mean()),
        late=float(late.mean()),
        median_error_s=float(np.median(np.abs(start - said[:, 1]))),
        median_wait_s=float(np.median(start - at)),
        median_interval_s=float(np.median(said[:, 2] - said[:, 0])),
    )


def history_of(state: State, rows: dict[str, int]) -> History:
    """What is known at this moment of all jobs that have come. `rows`: the job of each workload."""
    jobs, count = state.jobs, state.next_job
    began, ended = np.isfinite(state.start_s[:count]), np.isfinite(state.end_s[:count])
    until = np.where(ended, state.end_s[:count], state.now_s)
    attained = np.where(began, until - np.where(began, state.start_s[:count], 0.0), 0.0)
    return History(
        jobs.submit_s[:count], attained, ended, jobs.width[:count], jobs.queue[:count], jobs.owner[:count], rows,
        jobs.limit_s[:count], jobs.priority[:count], jobs.queues,
    )  # fmt: skip
