"""What has run, as far as one snapshot after another shows it, for those who have no better history.

Who is seen to run and later neither runs nor waits has ended, half way between the two looks; but not who was asked to
leave or was being deleted. Who waits again after it ran has kept what it had saved, where it says how often it does
that: at the worst moment that is what it computed less once that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from berth.model.history import Ended, History
from berth.model.paying import Payers, payers_of
from berth.model.queue import Queue
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, Workload
from berth.scheduling.plan import Plan
from berth.scheduling.quota import gpu_milli, milli_of

KEPT = 20_000  # workloads remembered
LEAVING_S = 300.0  # who goes within that time of being asked to has not ended; who stays was not let go
ANOTHER_S = 5.0  # starts that lie so far apart are two


@dataclass(slots=True)
class _Seen:
    submitted_s: float
    queue: str
    owner: str
    milli: int
    limit_s: float
    priority: int
    every_s: float = 0.0  # it saves its work so often; 0.0: nobody says so
    started_s: float = 0.0  # 0.0: it has not
    attained_s: float = 0.0
    saved_s: float = 0.0  # of that, what it brought with it when it started last
    stopped_s: float = 0.0  # since when it waits again; 0.0: it does not
    has_ended: bool = False
    leaving_s: float = float("-inf")  # when it was last seen on its way out, or asked to leave

    def stop(self, now_s: float) -> None:
        """It waits again."""
        self.attained_s = max(self.attained_s - self.every_s, self.saved_s) if self.every_s else 0.0
        self.saved_s, self.stopped_s, self.started_s = self.attained_s, now_s, 0.0

    def run(self, since_s: float, now_s: float) -> None:
        """It runs since then."""
        if self.started_s and since_s > self.started_s + ANOTHER_S:  # nobody saw it wait in between
            self.stop(now_s)
        self.started_s, self.stopped_s, self.has_ended = since_s, 0.0, False
        self.attained_s = self.saved_s + max(now_s - since_s, 0.0)


class Past:
    """Remembers workloads that ask for GPUs. `look` is given each snapshot, with its plan where there is one."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._there: set[str] = set()  # at the last look
        self._looked_s = 0.0
        self._queues: dict[str, int] = {}  # numbers that stay
        self._owners: dict[str, int] = {}

    def look(self, snapshot: Snapshot, plan: Plan | None, since_s: Mapping[str, float]) -> History:
        """The history with this snapshot; `since_s` has everybody who runs once the plan is carried out."""
        now_s = snapshot.now_s
        self.meet(snapshot.workloads, snapshot.queues, now_s)
        there = {*since_s, *(w.identity for w in snapshot.workloads)}
        self._take_running(snapshot, since_s)
        for w in snapshot.workloads:
            one = self._seen.get(w.identity)
            if one is not None and one.started_s and w.identity not in since_s:
                one.stop(now_s)
        for identity, since in since_s.items():
            if (one := self._seen.get(identity)) is not None:
                one.run(since, now_s)
        for identity in self._there - there:
            one = self._seen.get(identity)
            if one is not None and one.started_s and now_s - one.leaving_s > LEAVING_S:
                one.attained_s = max(one.saved_s + (self._looked_s + now_s) / 2 - one.started_s, 1.0)
                one.has_ended = True
        self._there, self._looked_s = there, now_s
        leaving = {a.workload_identity for a in snapshot.allocations if a.is_ending}
        self.leave(leaving | leaving_by(plan) if plan is not None else leaving, now_s)
        self._forget()
        return self.history()

    def meet(self, workloads: Sequence[Workload], queues: Sequence[Queue], now_s: float) -> list[str]:
        """Take note of those who wait; the new ones among them."""
        payers, new = payers_of(queues), list[str]()
        for w in workloads:
            if w.identity not in self._seen and (milli := milli_of(w)):
                self._seen[w.identity] = _Seen(
                    w.created_s or now_s, payers.of(w.queue, w.namespace), w.namespace, milli, w.time_limit_s,
                    w.priority, w.checkpoint_every_s,
                )  # fmt: skip
                new.append(w.identity)
        return new

    def leave(self, identities: Iterable[str], now_s: float) -> None:
        """These have been asked to leave, or are being deleted: if they go soon, they are cut short."""
        for identity in identities:
            if (one := self._seen.get(identity)) is not None:
                one.leaving_s = now_s

    def remember(self, ended: Iterable[Ended], payers: Payers) -> None:
        """Who had ended before anybody looked, the last ones first to stay. Who is known is known better."""
        newest = sorted(ended, key=lambda one: -one.ended_s)[: KEPT // 2]
        before = {
            one.identity: _Seen(
                one.created_s, payers.of(one.queue, one.namespace), one.namespace, one.milli, one.time_limit_s,
                one.priority, started_s=one.started_s, attained_s=max(one.ended_s - one.started_s, 1.0), has_ended=True,
            )
            for one in reversed(newest)
            if one.milli and one.identity not in self._seen
        }  # fmt: skip
        self._seen = {**before, **self._seen}

    def attained_s(self, identity: str) -> float:
        """Seconds that it has computed and not lost."""
        one = self._seen.get(identity)
        return one.attained_s if one is not None else 0.0

    def submitted_s(self, identity: str, otherwise_s: float) -> float:
        one = self._seen.get(identity)
        return one.submitted_s if one is not None else otherwise_s

    def stopped_s(self, identity: str) -> float:
        """Since when it waits again; 0.0 where it has not run."""
        one = self._seen.get(identity)
        return one.stopped_s if one is not None else 0.0

    def used_of_limits(self) -> list[float]:
        """Of those that ended and had a run-time limit, the part of it that they took."""
        return [min(one.attained_s / one.limit_s, 1.0) for one in self._seen.values() if one.has_ended and one.limit_s]

    def _take_running(self, snapshot: Snapshot, since_s: Mapping[str, float]) -> None:
        """Those that ran before anybody looked."""
        payers = payers_of(snapshot.queues)
        new: dict[str, _Seen] = {}
        for a in snapshot.allocations:
            milli = gpu_milli(a.pod_class.requests, a.pod_class.gpu_milli)
            if not milli or a.is_daemon or (identity := a.workload_identity) in self._seen:
                continue
            if identity not in new:
                new[identity] = _Seen(
                    since_s.get(identity, snapshot.now_s), payers.of(a.queue, a.namespace), a.namespace, 0,
                    a.time_limit_s, a.priority, a.checkpoint_every_s,
                )  # fmt: skip
            new[identity].milli += milli
        self._seen |= new

    def _forget(self) -> None:
        if len(self._seen) > KEPT:
            for identity in [one for one in self._seen if one not in self._there][: len(self._seen) - KEPT]:
                del self._seen[identity]

    def history(self) -> History:
        """All that is known now."""
        return self._columns(sorted(self._seen.items(), key=lambda item: item[1].submitted_s))

    def history_with(self, last: History, new: Sequence[str]) -> History:
        """The last history with those that are new since, who have come last; else all that is known now."""
        items = sorted(((one, self._seen[one]) for one in new), key=lambda item: item[1].submitted_s)
        if not items or (len(last) and items[0][1].submitted_s < last.submitted_s[-1]):
            return self.history()
        more = self._columns(items, first=len(last))
        columns = ("submitted_s", "attained_s", "has_ended", "width", "queue", "owner", "limit_s", "priority")
        joined: dict[str, Any] = {name: np.append(getattr(last, name), getattr(more, name)) for name in columns}
        return replace(more, **joined, rows={**last.rows, **more.rows})

    def _columns(self, seen: Sequence[tuple[str, _Seen]], first: int = 0) -> History:
        queues, owners, rows = self._queues, self._owners, [one for _, one in seen]
        return History(
            submitted_s=np.array([one.submitted_s for one in rows], np.float64),
            attained_s=np.array([one.attained_s for one in rows], np.float64),
            has_ended=np.array([one.has_ended for one in rows], bool),
            width=np.array([-(-one.milli // WHOLE) for one in rows], np.int64),
            queue=np.array([queues.setdefault(one.queue, len(queues)) for one in rows], np.int64),
            owner=np.array([owners.setdefault(one.owner, len(owners)) for one in rows], np.int64),
            rows={identity: row for row, (identity, _) in enumerate(seen, first)},
            limit_s=np.array([one.limit_s for one in rows], np.float64),
            priority=np.array([one.priority for one in rows], np.int64),
            queues=tuple(queues),
        )


def leaving_by(plan: Plan) -> set[str]:
    """Workloads of which pods leave by the plan."""
    pods = [*(one.allocation for one in plan.evictions), *(one.allocation for one in plan.vacating)]
    return {pod.workload_identity for pod in pods}


def running_since(snapshot: Snapshot, plan: Plan | None = None) -> dict[str, float]:
    """When each workload with GPUs started that runs, by identity; with a plan, once it is carried out."""
    found: dict[str, float] = {}
    for a in snapshot.allocations:
        if not a.is_daemon and gpu_milli(a.pod_class.requests, a.pod_class.gpu_milli):
            identity, since = a.workload_identity, a.started_s or snapshot.now_s
            found[identity] = min(found.get(identity, since), since)
    if plan is not None:
        for w in plan.placed.tolist():
            if milli_of(plan.workloads[w]):
                found.setdefault(plan.workloads[w].identity, snapshot.now_s)
    return found
