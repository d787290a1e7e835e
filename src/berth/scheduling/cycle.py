"""One scheduling cycle, from a snapshot to a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from berth.model.snapshot import Snapshot
from berth.scheduling import admission
from berth.scheduling.booked import vacate
from berth.scheduling.making_room import asks_for_room, lowest_that_runs, make_room
from berth.scheduling.order import ordered
from berth.scheduling.placing import place_gang, place_run
from berth.scheduling.plan import Plan, nothing_of
from berth.scheduling.policy import Policy
from berth.scheduling.queue_turns import queue_turn_of
from berth.scheduling.repacking import repack
from berth.scheduling.reservation import passes, passing, take_place
from berth.scheduling.round import Round, take_in
from berth.scheduling.tables import Tables
from berth.scheduling.time_sharing import turn_of
from berth.scheduling.verdicts import verdicts
from berth.scheduling.waiting import Waiting

Mask = NDArray[np.bool_]

MOST_LEVELS = 8  # of priority for which room is made before those below are placed


def cycle(snapshot: Snapshot, policy: Policy | None = None, cache: Tables | None = None) -> Plan:
    """Decide once. The same snapshot and policy give the same plan, whatever the cache holds.

    1 order    who is next: due share, priority, age                      (order.py)
               or what is left to do, where that is known and policy      (time_sharing.py, queue_turns.py)
    2 admit    gates, missing pods, quota and limits: who may run at all  (admission.py)
    3 place    gangs whole, into the domain that they spoil least;        (placement.py)
               runs of single pods by the kernel                          (singles.py)
               the first that finds no room gets a place in time, and     (reservation.py)
               who comes behind starts where that delays it by nothing
    4 make room  for those with priority over pods that run: the cheapest (making_room.py, preemption.py)
               leave, and the room is held for whom they left; holds      (holds.py)
               of earlier cycles are kept throughout
               who stands where the window of a booking opens leaves  (booked.py)
    5 explain  a verdict for each that waits                              (verdicts.py, explain.py)
    """
    clock, policy, tables = _Clock(), policy or Policy(), cache or Tables()
    waits = take_in(snapshot, tables)
    if _nothing_starts(snapshot, policy, tables, waits):
        clock.tick("take in")
        return nothing_of(snapshot.workloads, snapshot.nodes, clock.seconds)
    now = Round.of(snapshot, policy, tables, waits)
    clock.tick("take in")

    if snapshot.left or snapshot.history:
        now.turn = turn_of(now) if now.policy.sets_aside else queue_turn_of(now) if now.policy.least_left else None
    # Nobody is told what is due where nothing is explained, and those of one queue need not know it.
    shares = now.shares if policy.explains or len(set(now.queue.tolist())) > 1 or now.ledger.has_quotas else None
    order, above_quota = ordered(
        now.waits, now.milli, now.asked if shares is not None else now.milli.astype(np.float64), now.queue,
        now.ledger, shares, now.turn.line if now.turn is not None else None,
    )  # fmt: skip
    clock.tick("order")
    now.keep_holds()

    within, above = order[~above_quota[order]], order[above_quota[order]]
    _in_turn(within, now, _Kept())
    _in_turn(above, now, _kept_for(now) if len(above) else _Kept())
    _again(now)
    clock.tick("admit and place")

    make_room(now)
    repack(now)
    vacate(now)
    clock.tick("make room")

    said = verdicts(now) if now.policy.explains else {}
    clock.tick("explain")
    return now.plan(said, clock.seconds)


def _nothing_starts(snapshot: Snapshot, policy: Policy, tables: Tables, waits: Waiting) -> bool:
    """No node takes a pod of any class that waits, nobody leaves, and nobody asks why: there is nothing to decide."""
    crowd = tables.crowd
    if policy.explains or snapshot.holds or snapshot.bookings or np.count_nonzero(crowd.ending):
        return False
    if (policy.evicts or policy.sets_aside) and np.count_nonzero(crowd.may_leave):
        return False
    rows = sorted({tables.row(one.pod_class) for sets in waits.kinds for one in sets})
    return not np.count_nonzero(tables.copies[rows])


@dataclass(frozen=True)
class _Kept:
    """GPU classes, (C + 1,), for which a workload within its quota waits, and that workload's name."""

    closed: Mask | None = None
    waiting: str = ""


def _in_turn(order: NDArray[np.int64], now: Round, kept: _Kept) -> None:
    """Decide in order. Behind one that found no room, and for whom others may leave, those of less priority come once
    that was tried: they would take what it could have, and more would have to leave for it."""
    lowest = lowest_that_runs(now)
    if not now.policy.evicts or not np.count_nonzero(now.waits.priority[order] > lowest):
        _decide(order, now, kept)
        return
    for _ in range(MOST_LEVELS):
        bar, later = lowest, []
        for part in _descents(order, now):
            is_behind = (now.waits.priority[part] < bar) & (bar > lowest)
            later.append(part[is_behind])
            known = len(now.waiting)
            _decide(part[~is_behind], now, kept)
            asking = (w for w in now.waiting[known:] if asks_for_room(w, lowest, now))
            bar = max([bar, *(int(now.waits.priority[w]) for w in asking)])
        order = np.concatenate(later)
        if not len(order):
            return
        make_room(now)
        now.drop_places_of_holders()
    _decide(order, now, kept)


def _descents(order: NDArray[np.int64], now: Round) -> list[NDArray[np.int64]]:
    """Parts of an order in which nobody has less priority than one before."""
    priority = now.waits.priority[order]
    return np.split(order, np.flatnonzero(priority[1:] < priority[:-1]) + 1)


def _decide(order: NDArray[np.int64], now: Round, kept: _Kept) -> None:
    """Admit and place workloads in their order; those above their quota stay off what is kept for others."""
    closed = kept.closed.tobytes() if kept.closed is not None else b""
    for is_run, batch in _batches(order, now):
        if is_run:
            place_run(batch, now, kept.closed)
            continue
        w = int(batch[0])
        workload = now.workloads[w]
        refusal = admission.not_ready(workload) or now.against_rules(w) or now.over_limit(w)
        if refusal:
            now.wait(w, refusal)
            continue
        with now.booked.entering(w):
            if not _placed(w, closed, now, kept):
                now.wait(w, None)
                take_place(w, now)
    if kept.closed is not None and kept.closed.any():
        _tell_of_quota(order, now, kept)


def _placed(w: int, closed: bytes, now: Round, kept: _Kept) -> bool:
    """Place a workload, unless one like it has found no room."""
    free = passes(w, now)
    like_it = now.vain.gang(w, closed, free, now)
    proven = now.vain.knows_gang(like_it)
    if proven is None and like_it is not None and free and now.vain.has_gang(w, free, now):
        proven = True
        now.vain.add_gang(like_it, proven)
    if proven is None:
        with passing(free, now):
            # Room that was promised is not kept from whom it was promised to.
            placed = place_gang(w, now, None if w in now.holds else kept.closed)
        if placed and free:
            now.vain.forget()
        if not placed:
            now.vain.add_gang(like_it, w not in now.unproven)
        return placed
    if not proven:
        now.unproven.add(w)
    return False


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
                continue
            with now.booked.entering(w), passing(passes(w, now), now):
                placed = place_gang(w, now)
            if placed:
                now.waiting.remove(w)
                progress = True


def _batches(order: NDArray[np.int64], now: Round) -> Iterator[tuple[bool, NDArray[np.int64]]]:
    """Runs of single pods, as long as they come, and every other workload by itself; whether it is a run."""
    start = 0
    for i in np.flatnonzero(~now.singles()[order]).tolist():
        if start < i:
            yield True, order[start:i]
        yield False, order[i : i + 1]
        start = i + 1
    if start < len(order):
        yield True, order[start:]


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
