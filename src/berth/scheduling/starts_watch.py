"""Expected starts from time to time: what was said before, and what became of it, is remembered for the next answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from berth.model.history import Ended
from berth.model.paying import payers_of
from berth.model.queue import Queue
from berth.model.snapshot import Snapshot
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.quota import milli_of
from berth.scheduling.starts import Start, play, starts_of
from berth.scheduling.starts_hindsight import Record, corrected
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

    def is_due(self, now_s: float) -> bool:
        return now_s - self._asked_s >= self._every_s

    def remember(self, ended: Iterable[Ended], queues: Sequence[Queue]) -> None:
        """What the cluster tells of those that ended before."""
        self._past.remember(ended, payers_of(queues))

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
        self._record.settle(waiting, since_s)
        known = self._record.hindsight(now_s)
        found = play(snapshot, plan, self._policy, self._tables)
        said = found.levels()
        gpus = np.array([-(-milli_of(workloads[w]) // 1000) for w in found.waiting.tolist()], np.int64)
        for w, width, levels in zip(found.waiting.tolist(), gpus.tolist(), said.tolist(), strict=True):
            if np.isfinite(levels[1]):
                self._record.note(workloads[w].identity, width, now_s, tuple(levels))
        return starts_of(corrected(said, gpus, known), found, now_s)
