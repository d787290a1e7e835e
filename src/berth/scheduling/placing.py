"""Where those who are let in go, in their order: runs of single pods by the kernel, gangs whole, each where holds,
bookings and places in time of others leave it room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.scheduling import holds, kernels
from berth.scheduling.holdings import Allotment
from berth.scheduling.holds import Kept
from berth.scheduling.neighbours import Who
from berth.scheduling.placement import place_gang as place_whole
from berth.scheduling.quota import gpu_milli, milli_of
from berth.scheduling.reservation import may_reserve, passages, passes, passing, take_place
from berth.scheduling.singles import Queues

if TYPE_CHECKING:
    from berth.scheduling.round import Round

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


def place_run(run: I64, now: Round, closed: Mask | None = None) -> None:
    """Place a run of single pods; who finds no room waits. `closed` (C + 1,) are GPU classes kept for others."""
    may_skip = not now.holds and not now.booked.booked and not now.policy.learn_arrivals  # else all count
    line, at = run.tolist(), 0
    while at < len(line):
        if may_skip:
            past = _past_vain(run, at, now)
            if past > at and may_reserve(now):
                now.waiting.append(line[at])
                take_place(line[at], now)
                at += 1
                continue
            now.waiting += line[at:past]
            at = past
            if at == len(line):
                return
        first, part = line[at], _alike(line, at, now)
        may_pass, stops = passes(first, now), may_reserve(now)
        with now.booked.entering(first), passing(may_pass, now):
            looked_at, left = _run(run[at : at + part], now, closed, stops)
            now.waiting += [w for w in left if not _over_weaker(w, now, closed)]
            if may_pass and len(left) < looked_at:
                now.vain.forget()
            if left:
                now.vain.add_rows(may_pass, now)
        at += looked_at
        if stops and looked_at < part:
            blocked, at = line[at], at + 1
            with now.booked.entering(blocked):
                with passing(may_pass, now):
                    found_room = _over_weaker(blocked, now, closed)
                if not found_room:
                    now.waiting.append(blocked)
                    take_place(blocked, now)


def _past_vain(run: I64, at: int, now: Round) -> int:
    """The first from there on that some node may take."""
    there, row = passages(now), now.first_row
    known = now.vain.known(there.kinds, now)
    while (at := int(kernels.first_unknown(known, row, there.of, run, at))) < len(run):
        m, k = int(row[run[at]]), int(there.of[run[at]])
        if not now.vain.has_row(m, there.kinds[k], now):
            break
        known = now.vain.known(there.kinds, now)
    return at


def _alike(line: Sequence[int], at: int, now: Round) -> int:
    """How many from there on may use the same places in time and are kept off by the same bookings."""
    if not now.reserved and not now.booked.booked:
        return len(line) - at
    may_pass, blocked_by = passes(line[at], now), now.booked.blocked(line[at])
    end = at + 1
    while end < len(line) and passes(line[end], now) == may_pass and now.booked.blocked(line[end]) == blocked_by:
        end += 1
    return end - at


def _over_weaker(w: int, now: Round, closed: Mask | None) -> bool:
    weaker = now.weaker(w)
    return bool(weaker) and not now.over_limit(w) and _place_over(w, now, closed, weaker)


def _run(run: I64, now: Round, closed: Mask | None, stops: bool) -> tuple[int, list[int]]:
    """Hand a run of single pods to the kernel; how many it looked at, and those of them that it could not place. With
    `stops` it ends before the first that found no room."""
    draft, columns = now.draft, now.draft.columns
    rows = now.first_row[run]
    if not stops and not now.policy.learn_arrivals and not np.count_nonzero(draft.copies[list(set(rows.tolist()))]):
        return len(run), run.tolist()
    limit = now.ledger.limit
    if closed is not None and closed.any():
        limit = limit.copy()
        limit[:, closed] = 0
    gpu_class = np.where(columns.gpu_class < 0, limit.shape[1] - 1, columns.gpu_class)
    queues = Queues(
        now.queue[run], bool((limit < 2**62).any()), now.ledger.parent, limit, now.ledger.used,
        gpu_class.astype(np.int32), now.milli_of_rows,
    )  # fmt: skip
    node, devices, looked_at = now.losses.place_run(rows, draft, queues, stops)
    run, node, devices = run[:looked_at], node[:looked_at], devices[:looked_at]
    placed = node >= 0
    if np.count_nonzero(placed):
        now.ledger.was_used()
        draft.recount(np.unique(node[placed]).astype(np.int64))
        _tell_neighbours(run[placed], node[placed], now)
        now.binds.append((
            run[placed].astype(np.int32), np.zeros(int(placed.sum()), np.int32), node[placed], devices[placed]
        ))  # fmt: skip
    left: list[int] = run[~placed].tolist()
    return looked_at, left


def _tell_neighbours(placed: I64, node: I32, now: Round) -> None:
    if now.draft.neighbours is not None:
        for w, n in zip(placed.tolist(), node.tolist(), strict=True):
            workload = now.workloads[w]
            pod_set = workload.pod_sets[0]
            now.draft.neighbours.add(n, Who(workload.namespace, pod_set.labels, pod_set.pod_class), 1)


def place_gang(w: int, now: Round, closed: Mask | None = None) -> bool:
    """Place a workload whole, or leave the draft as it was. Where room is held for it, there first."""
    own_nodes = now.booked.own_nodes(w)
    if own_nodes is not None and _place(w, now, closed, own_nodes):
        if w in now.holds:
            now.release(now.holds[w])
        return True
    if not now.holds:
        return _place(w, now, closed)
    own = now.holds.get(w)
    if own is not None:
        now.release(own)
        held = np.zeros(now.draft.columns.size, bool)
        held[own.nodes] = True
        if _place(w, now, closed, held):
            return True
    weaker = now.weaker(w)
    if _place(w, now, closed) or (weaker and _place_over(w, now, closed, weaker)):
        return True
    if own is not None:
        now.hold(own)
    return False


def _place_over(w: int, now: Round, closed: Mask | None, weaker: Sequence[Kept]) -> bool:
    """Place a workload where room is held for others of lower priority."""
    holds.give_back(weaker, now.draft)
    placed = _place(w, now, closed)
    holds.keep(weaker, now.rows, now.draft)
    if placed:
        now.vain.forget()
    return placed


def _place(w: int, now: Round, closed: Mask | None, within: Mask | None = None) -> bool:
    workload, draft = now.workloads[w], now.draft
    where = now.allowed(w, closed)
    growth = _allotment(w, now, closed, after_minimum=True) if now.ledger.has_limits else None
    tried = place_whole(
        workload, now.rows[w], draft, where if within is None else where & within, now.losses, growth,
        steps=now.policy.search_steps,
    )  # fmt: skip
    if not tried.placed and now.ledger.limits_classes and within is None:
        # No class may take all of the gang: deal its pods to classes one by one.
        draft.drop()
        everywhere = np.ones(draft.columns.size, bool)
        room = _allotment(w, now, closed, after_minimum=False)
        tried = place_whole(workload, now.rows[w], draft, everywhere, now.losses, room, bounds_minimum=True)
    if not tried.placed:
        draft.drop()
        if not tried.proven:
            now.unproven.add(w)
        return False
    now.unproven.discard(w)
    puts = draft.commit()
    counts = [p.count for p in puts]
    node = np.repeat(np.array([p.node for p in puts], np.int32), counts)
    pod_set = np.repeat(np.array(tried.set_of_put, np.int32), counts)
    devices = np.array([mask for p in puts for mask in p.devices], np.int64)
    now.binds.append((np.full(len(node), w, np.int32), pod_set, node, devices))
    if tried.scope:
        now.scopes[w] = tried.scope
    _book(w, node, pod_set, now)
    return True


def _book(w: int, node: I32, pod_set: I32, now: Round) -> None:
    for s, one in enumerate(now.workloads[w].pod_sets):
        milli = gpu_milli(one.pod_class.requests, one.pod_class.gpu_milli)
        if milli:
            classes, counts = np.unique(now.draft.columns.gpu_class[node[pod_set == s]], return_counts=True)
            for c, count in zip(classes.tolist(), counts.tolist(), strict=True):
                now.ledger.take(int(now.queue[w]), c, milli * count)


def _allotment(w: int, now: Round, closed: Mask | None, after_minimum: bool) -> Allotment:
    """With `after_minimum` the workload's minimum is taken off every class: where it went is not known yet."""
    room = now.ledger.room(int(now.queue[w])).copy()
    if closed is not None:
        room[closed] = 0
    minimum = milli_of(now.workloads[w], minimum=True) if after_minimum else 0
    return Allotment(now.draft.columns.gpu_class, room - minimum, int(room[-1]) - minimum)
