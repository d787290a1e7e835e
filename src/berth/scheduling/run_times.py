"""How long workloads still take, as far as a live cluster lets one know: for the order by what is left to do.

Where people state a run-time limit, what is left is the part of what is left of the limit that those took of theirs
that have ended (the median; a half until eight have). A limit that is just the longest that a queue allows says
nothing. Of all others there is a history: what has run so far, as one snapshot after another shows it (starts_past.py),
from which they are estimated (estimates.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from msgspec.structs import replace

from berth.model.history import Ended, History
from berth.model.paying import payers_of
from berth.model.queue import Queue
from berth.model.queue_rules import rules_of
from berth.model.snapshot import Left, Snapshot
from berth.scheduling.plan import Plan
from berth.scheduling.starts_past import Past, leaving_by, running_since

EVERY_S = 2.0  # between two looks at all that run; who is new is seen at once
A_SECOND = 5_000.0  # pods that run for which looks lie a second more apart
OF_LIMIT, CASES = 0.5, 8  # the part that is taken until so many have ended
LEAST_S = 60.0  # who is past what it may be expected to take


class RunTimes:
    """`of` gives each snapshot what is known. What was decided upon it is told to `told`."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._past = Past()
        self._every_s = every_s
        self._looked_s = self._now_s = float("-inf")
        self._history: History | None = None
        self._left: dict[str, Left] = {}
        self._part = OF_LIMIT

    def remember(self, ended: Iterable[Ended], queues: Sequence[Queue]) -> None:
        """What the cluster tells of those that ended before."""
        self._past.remember(ended, payers_of(queues))
        self._looked_s = float("-inf")

    def of(self, snapshot: Snapshot) -> Snapshot:
        """With `left`, `history`, and since when who has run before waits again."""
        self._now_s = now_s = snapshot.now_s
        every_s = self._every_s + len(snapshot.allocations) / A_SECOND
        if self._history is None or not self._looked_s <= now_s < self._looked_s + every_s:
            self._looked_s = now_s
            self._history = self._past.look(snapshot, None, running_since(snapshot))
            used = self._past.used_of_limits()
            self._part = median(used) if len(used) >= CASES else OF_LIMIT
            self._left = self._of_limits(snapshot)
        elif new := self._past.meet(snapshot.workloads, snapshot.queues, now_s):
            self._history = self._past.history_with(self._history, new)
            self._left = {**self._left, **self._of_limits(replace(snapshot, allocations=()))}
        workloads = tuple(
            replace(w, waits_since_s=since_s) if (since_s := self._past.stopped_s(w.identity)) else w
            for w in snapshot.workloads
        )
        return replace(snapshot, workloads=workloads, left=self._left, history=self._history)

    def told(self, plan: Plan) -> None:
        """Who is asked to leave has not ended when it goes."""
        self._past.leave(leaving_by(plan), self._now_s)

    def _of_limits(self, snapshot: Snapshot) -> dict[str, Left]:
        """Of those for whom somebody stated a limit."""
        payers = payers_of(snapshot.queues)
        longest = {name: rules.max_time_limit_s for name, rules in rules_of(snapshot.queues).items()}
        stated: dict[str, tuple[float, float]] = {}
        for held in snapshot.allocations:
            if held.time_limit_s and held.time_limit_s != longest.get(payers.of(held.queue, held.namespace)):
                stated.setdefault(held.workload_identity, (held.time_limit_s, held.started_s))
        for w in snapshot.workloads:
            if w.time_limit_s and w.time_limit_s != longest.get(payers.of(w.queue, w.namespace)):
                stated[w.identity] = w.time_limit_s, w.created_s
        return {
            identity: Left(
                max(self._part * (limit_s - self._past.attained_s(identity)), LEAST_S),
                self._past.submitted_s(identity, since_s),
            )
            for identity, (limit_s, since_s) in stated.items()
        }
