"""Expected starts from time to time: what was said before, and what became of it, is remembered for the next answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from berth.model.history import Ended
from berth.model.paying import payers_of
from berth.model.queue import Queue
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.quota import milli_of
from berth.scheduling.starts import Start, play, starts_of
from berth.scheduling.starts_hindsight import Hindsight, Record, corrected
from berth.scheduling.starts_past import Past, running_since
from berth.scheduling.tables import Tables

EVERY_S = 30.0


class Watch:
    """Asks no more often than `every_s`. Its tables and its memory are its own: it may work beside who decides."""

    def __init__(self, policy: Policy | None = None, every_s: float = EVERY_S) -> None:
        self._policy = policy or Policy()
        self._every_s = every_s
        self._tables = Tables()
        self._record = Record()
        self._past = Past()
        self._asked_s = -np.inf
        self._placed_s: dict[str, float] = {}  # since the last look

    def is_due(self, now_s: float) -> bool:
        return now_s - self._asked_s >= self._every_s

    def remember(self, ended: Iterable[Ended], queues: Sequence[Queue]) -> None:
        """What the cluster tells of those that ended before."""
        self._past.remember(ended, payers_of(queues))

    @property
    def wider(self) -> float:
        """How much wider than earlier answers were off the intervals are: what is worth keeping over a restart."""
        return self._record.wider

    def resume(self, wider: float) -> None:
        """Go on where another watch of the same cluster has ended."""
        self._record.resume(wider)

    def notice(self, plan: Plan, now_s: float) -> None:
        """A plan that nobody asks about: who starts by it may be over before the next look. From any thread."""
        for w in plan.placed.tolist():
            identity = plan.workloads[w].identity
            if self._record.is_open(identity):
                self._placed_s.setdefault(identity, now_s)

    def hindsight(self, now_s: float) -> Hindsight:
        """What came of earlier answers, as far as it is known at that moment."""
        return self._record.hindsight(now_s)

    def look(self, snapshot: Snapshot, plan: Plan) -> Mapping[int, Start]:
        """Of those that wait once the plan is carried out, by index in the snapshot. Where the snapshot has no history
        it is what the snapshots before showed."""
        self._asked_s = now_s = snapshot.now_s
        since_s = running_since(snapshot, plan)
        history = self._past.look(snapshot, plan, since_s)
        if snapshot.history is None or not snapshot.history.queues:
            snapshot = replace(snapshot, history=history)
        workloads = snapshot.workloads
        placed = set(plan.placed.tolist())
        waiting = {w.identity: w for i, w in enumerate(workloads) if i not in placed}
        placed_s, self._placed_s = self._placed_s, {}
        self._record.settle(waiting, {**placed_s, **since_s}, now_s)
        found = play(snapshot, plan, self._policy, self._tables)
        said = found.levels()
        gpus = np.array([-(-milli_of(workloads[w]) // WHOLE) for w in found.waiting.tolist()], np.int64)
        told = corrected(said, gpus, self.hindsight(now_s))
        for i, w in enumerate(found.waiting.tolist()):
            if np.isfinite(said[i, 1]):
                levels, corrected_levels = tuple(said[i].tolist()), tuple(told[i].tolist())
                self._record.note(workloads[w].identity, int(gpus[i]), now_s, levels, corrected_levels)
        return starts_of(told, found, now_s)

