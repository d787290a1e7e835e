"""What a policy made of a trace: when each job started and ended, and what was in use over time.

Shapes: J jobs, Q queues, E events, B equal parts of the time from the first submission to the last end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from berth.model.jobs import Float, Int, Jobs

PARTS = 400


class Overhead(IntEnum):
    """Who pays `Jobs.restart_s`: seconds of running in which nothing is computed."""

    Nothing = 0
    AtStart = 1  # who starts, moves or starts again, once
    EachEvent = 2  # whoever runs, whenever another comes or ends, as in the published simulator


@dataclass(frozen=True)
class Events:
    """The state right after each event, until the next one."""

    at_s: Float  # (E,) ascending
    used: NDArray[np.float64]  # (E, Q) GPUs in use
    wanted: NDArray[np.float64]  # (E, Q) GPUs of those who run or wait
    waiting: NDArray[np.float64]  # (E, Q) jobs that wait
    up: Float = field(default_factory=lambda: np.zeros(0))  # (E,) GPUs of nodes that are up; (0,): all, always

    def stranded(self, up: Float) -> Float:
        """(E,) GPUs that are idle while somebody who waits wants them, of so many (E,) that are up."""
        used, wanted = self.used.sum(axis=1), self.wanted.sum(axis=1)
        idle: Float = np.maximum(np.minimum(up - used, wanted - used), 0.0)
        return idle

    def over_time(self, values: NDArray[np.float64], parts: int = PARTS) -> NDArray[np.float64]:
        """(Q, B) means over equal parts of the time, of one of the tables."""
        since = self.at_s - self.at_s[0]  # small numbers: seconds since 1970 would leave few digits to a part
        lasted = np.diff(since, append=since[-1])
        integral = np.vstack([np.zeros(values.shape[1]), np.cumsum(values * lasted[:, None], axis=0)])
        edges = np.linspace(0.0, since[-1], parts + 1)
        at = np.append(since, since[-1])
        length = (edges[1] - edges[0]) or 1.0
        return np.array([np.diff(np.interp(edges, at, one)) / length for one in integral.T])


@dataclass(frozen=True)
class Schedule:
    """(J,) each; `start_s` is the first start. What never started or ended has infinity there."""

    jobs: Jobs
    policy: str
    gpus: int
    start_s: Float
    end_s: Float
    preemptions: Int
    lost_s: Float  # of running without computing: starts, and work that was lost
    events: Events
    decide_s: float

    @property
    def jct_s(self) -> Float:
        """Job completion time: from submission to end."""
        jct: Float = self.end_s - self.jobs.submit_s
        return jct

    @property
    def deadlines_met(self) -> Int:
        """(J,) 1: it ended by its deadline, -1: it did not, 0: it has none, or was given up."""
        jobs = self.jobs
        if not len(jobs.deadline_s):
            return np.zeros(len(jobs), np.int64)
        was_given_up = np.isfinite(jobs.cancelled_s) & ~np.isfinite(self.end_s) if len(jobs.cancelled_s) else False
        counts = np.isfinite(jobs.deadline_s) & ~np.asarray(was_given_up)
        met: Int = np.where(counts, np.where(self.end_s <= jobs.deadline_s, 1, -1), 0)
        return met

    @property
    def wait_s(self) -> Float:
        """From submission to the first start."""
        wait: Float = self.start_s - self.jobs.submit_s
        return wait
