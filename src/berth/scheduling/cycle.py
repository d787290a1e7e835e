"""One scheduling cycle, from a snapshot to a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from berth.model.snapshot import Snapshot
from berth.scheduling import admission
from berth.scheduling.making_room import make_room
from berth.scheduling.order import ordered
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.round import Round
from berth.scheduling.tables import Tables
from berth.scheduling.verdicts import verdicts

Mask = NDArray[np.bool_]


def cycle(snapshot: Snapshot, policy: Policy | None = None, cache: Tables | None = None) -> Plan:
    """Decide once. The same snapshot and policy give the same plan, whatever the cache holds.

    1 order    who is next: due share, priority, age                      (order.py)
    2 admit    gates, missing pods, quota and limits: who may run at all  (admission.py)
    3 place    gangs whole, into the domain that they spoil least;        (placement.py)
               runs of single pods by the kernel                          (singles.py)
    4 make room  for those with priority over pods that run: the cheapest (making_room.py, preemption.py)
               leave, and the room is held for whom they left; holds      (holds.py)
               of earlier cycles are kept throughout
    5 explain  a verdict for each that waits                              (verdicts.py, explain.py)
    """
    clock = _Clock()
    now = Round.of(snapshot, policy or Policy(), cache or Tables())
    clock.tick("take in")

    order, above_quota = ordered(now.workloads, now.milli, now.queue, now.ledger)
    clock.tick("order")
    now.keep_holds()

    within, above = order[~above_quota[order]], order[above_quota[order]]
    _decide(within, now, _Kept())
    _decide(above, now, _kept_for(now) if len(above) else _Kept())
    _again(now)
    clock.tick("admit and place")

    make_room(now)
    clock.tick("make room")

    said = verdicts(now)
    clock.tick("explain")
    return now.plan(said, clock.seconds)


@dataclass(frozen=True)
class _Kept:
    """GPU classes, (C + 1,), for which a workload within its quota waits, and that workload's name."""

    closed: Mask | None = None
    waiting: str = ""


def _decide(order: NDArray[np.int64], now: Round, kept: _Kept) -> None:
    """Admit and place workloads in their order; those above their quota stay off what is kept for others."""
    for batch in _batches(order, now):
        if len(batch) > 1 or now.is_single(int(batch[0])):
            now.place_run(batch, kept.closed)
            continue
        w = int(batch[0])
        workload = now.workloads[w]
        refusal = admission.not_ready(workload) or now.over_limit(w)
        if refusal or not now.place_gang(w, kept.closed):
            now.wait(w, refusal)
    if kept.closed is not None and kept.closed.any():
        _tell_of_quota(order, now, kept)


def _again(now: Round) -> None:
    """Pods that want to be near others are tried again once those are placed, as long as that helps."""
    progress = now.draft.neighbours is not None
    while progress:
        progress = False
        for w in list(now.waiting):
            workload = now.workloads[w]
            wants_company = any(s.pod_class.near for s in workload.pod_sets)
            if not wants_company or w in now.refused or w in now.kept_off:
                continue
            if refusal := now.over_limit(w):
                now.refused[w] = refusal
            elif now.place_gang(w):
                now.waiting.remove(w)
                progress = True


def _batches(order: NDArray[np.int64], now: Round) -> Iterator[NDArray[np.int64]]:
    """Runs of single pods, as long as they come, and every other workload by itself."""
    start = 0
    single = [now.is_single(w) for w in order.tolist()]
    for i, is_single in enumerate(single):
        if not is_single:
            if start < i:
                yield order[start:i]
            yield order[i : i + 1]
            start = i + 1
    if start < len(order):
        yield order[start:]


def _kept_for(now: Round) -> _Kept:
    """What workloads within a stated quota still wait for. Nothing is kept where nobody states a quota."""
    if not now.ledger.has_quotas:
        return _Kept()
    for w in now.waiting:
        q = int(now.queue[w])
        if w not in now.refused and now.milli[w] and (now.ledger.quota[now.ledger.chain(q)] < 2**62).any():
            return _Kept(now.wanted(w), now.workloads[w].key)
    return _Kept()


def _tell_of_quota(order: NDArray[np.int64], now: Round, kept: _Kept) -> None:
    """Those that waited because of what is kept say so."""
    assert kept.closed is not None
    mine, waiting = set(order.tolist()), set(now.waiting)
    ahead: dict[int, int] = {}
    for w in [*(w for w in now.waiting if w not in mine), *(w for w in order.tolist() if w in waiting)]:
        q, milli = int(now.queue[w]), int(now.milli[w])
        if w in mine and w not in now.refused and milli and (now.wanted(w) & kept.closed).any():
            now.kept_off[w] = admission.over_quota(now.workloads[w], q, now.ledger, ahead.get(q, 0), kept.waiting)
        ahead[q] = ahead.get(q, 0) + milli


@dataclass
class _Clock:
    seconds: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=perf_counter)

    def tick(self, step: str) -> None:
        now = perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._last
        self._last = now
