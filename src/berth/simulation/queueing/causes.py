"""Why jobs wait, over time: at some moments the cycle explains every wait, and the dominant causes are counted.

A verdict costs more than a decision, and a trace has a hundred thousand of those; a chart has a hundred points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from berth.model.jobs import Jobs
from berth.model.reasons import Reason
from berth.model.snapshot import Snapshot
from berth.scheduling.plan import Plan
from berth.simulation.queueing.figures import OfCause
from berth.simulation.queueing.schedule import Events

Decide = Callable[[Snapshot], Plan]
SAMPLES = 100  # about so many, over the time that the trace should take


class Explained:
    """Decides as `decide`, and at the first decision of each span of `every_s` seconds as `explain`, which gives the
    same plan with verdicts."""

    def __init__(self, decide: Decide, explain: Decide, every_s: float) -> None:
        self._decide, self._explain, self._every_s = decide, explain, every_s
        self._at_s, self._next_s = -np.inf, -np.inf
        self._last: Snapshot | None = None
        self.counts: dict[float, Counter[Reason]] = {}

    def __call__(self, snapshot: Snapshot) -> Plan:
        self._last, now = snapshot, snapshot.now_s
        if now < self._next_s and now != self._at_s:
            return self._decide(snapshot)
        plan = self._explain(snapshot)
        # Where one moment has several cycles, the last of them says who still waits.
        self.counts[now] = Counter(v.reason for v in plan.verdicts.values() if v.reason is not None)
        self._at_s, self._next_s = now, now + self._every_s
        return plan

    def at_end(self) -> Counter[Reason]:
        """Causes of those that wait after the last cycle, and will wait for ever. For a schedule that is whole."""
        if self._last is None:
            return Counter()
        verdicts = self._explain(self._last).verdicts
        return Counter(verdict.reason for verdict in verdicts.values() if verdict.reason is not None)

    def over_time(self, events: Events, parts: int) -> tuple[OfCause, ...]:
        """Jobs by cause in each of so many equal parts of the time, as last seen before its middle; 0 where nobody
        waits. The commonest cause is first."""
        if not self.counts:
            return ()
        edges = np.linspace(events.at_s[0], events.at_s[-1], parts + 1)
        middle = (edges[:-1] + edges[1:]) / 2
        at = np.array(list(self.counts))
        seen = np.searchsorted(at, middle, side="right") - 1
        waits = events.waiting.sum(axis=1)[np.maximum(np.searchsorted(events.at_s, middle, side="right") - 1, 0)]
        is_told = (seen >= 0) & (waits > 0)
        total: Counter[Reason] = Counter()
        for count in self.counts.values():
            total.update(count)
        counts = list(self.counts.values())
        return tuple(
            OfCause(
                reason.name,
                reason.summary,
                tuple(float(counts[s][reason]) if told else 0.0 for s, told in zip(seen, is_told, strict=True)),
            )
            for reason, _ in total.most_common()
        )


def every_s(jobs: Jobs, gpus: int) -> float:
    """Seconds between two moments at which waits are explained: by when the jobs come, or what they have to compute."""
    came = float(jobs.submit_s[-1] - jobs.submit_s[0])
    computes = float((jobs.service_s * jobs.width).sum()) / max(gpus, 1)
    return max(came, computes) / SAMPLES
