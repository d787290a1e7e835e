"""A place in time for who is next and finds no room: when enough of those who run have to have ended, by their limits.

The place is worked out anew in every cycle, so that who ends early brings it forward. Who comes behind starts only
where that takes nothing of the place, or where it has to have ended before (EASY backfill: Lifka, JSSPP 1995). Several
such places are what conservative backfill is made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.model.hold import Hold, Place
from berth.model.workload import Workload
from berth.scheduling import holds, kernels
from berth.scheduling.future import Future
from berth.scheduling.holds import Kept
from berth.scheduling.kernels import NEVER
from berth.scheduling.placement import place_gang
from berth.scheduling.proof import minimum_of
from berth.scheduling.roster import Roster
from berth.scheduling.sets import AsListed

if TYPE_CHECKING:
    from berth.scheduling.round import Round

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


Passage = tuple[int, ...]  # workloads whose places in time somebody may use


class Passages(NamedTuple):
    """For so many `places` in time the passages that there are, and `of` (W,) which of them is that of each."""

    places: int
    kinds: tuple[Passage, ...]
    of: I64


@dataclass
class Reserved:
    """From `at_s` on there is room for the workload; `kept` is what of it must not be given out until then.

    `opens` (M,) are the class rows of which a node of the place took a pod when it was taken.
    `overruns` by queue how many times its limit who runs longest beyond it has run. Where limits are not kept, nobody
    of the queue is believed to keep his: a short limit would be a way past who is first in line.
    """

    kept: Kept
    at_s: float
    overruns: Mapping[str, float] = field(default_factory=dict)
    opens: Mask = field(default_factory=lambda: np.zeros(0, bool))

    def times(self, queue: str, namespace: str) -> float:
        """By how much a limit is taken to be longer than it is said to be, for who names this queue."""
        return self.overruns.get(queue or namespace, 1.0)


class Started(NamedTuple):
    """A pod that this cycle has started, and when it has to have ended."""

    node: int
    row: int
    devices: int
    ends_s: float


def ends_of(roster: Roster, now_s: float, overrun_s: float) -> F64:
    """(P,) when each pod has to have ended. Who should have ended already is taken to end soon: a tenth of its run from
    now, and not sooner than `overrun_s`."""
    ran = now_s - roster.started_s
    ends: F64 = np.where(roster.ends_s > now_s, roster.ends_s, now_s + np.maximum(overrun_s, ran / 10))
    return ends


def may_reserve(now: Round) -> bool:
    """Another place may be known: somebody who runs, or may start, has to have ended at a known time. And it is of
    use: it is told, or somebody may start whom it keeps off."""
    has_searches = now.placeless < now.policy.reservation_searches
    may = has_searches and len(now.reserved) < now.policy.reservations and now.has_time_limits
    return may and (now.keeps_places or now.some_fit())


def take_place(w: int, now: Round) -> None:
    """It found no room: a place in time, if one can be known, which nobody behind it delays."""
    if not may_reserve(now):
        return
    found = None if w in now.holds or now.over_limit(w) else _earliest(w, now)
    if found is None:
        now.placeless += 1
        return
    opens: Mask = now.draft.copies[:, found.kept.nodes] > 0
    found.opens = np.logical_or.reduce(opens, axis=1)
    now.reserved[w] = found
    holds.keep([found.kept], now.rows, now.draft)


def passes(w: int, now: Round) -> Passage:
    """The workloads whose places in time this one may use: it has to have ended before they start."""
    if not now.reserved:
        return ()
    there = passages(now)
    found = there.kinds[there.of[w]]
    if found and now.booked.booked:  # a place on nodes that are booked is for those who may be there
        shut = now.booked.shut(w, now.draft.columns.size)
        found = tuple([other for other in found if not shut[now.reserved[other].kept.nodes].any()])
    return found


def passages(now: Round) -> Passages:
    """The same for all, whatever is booked. Worked out as often as there is another place."""
    if now.passages is not None and now.passages.places == len(now.reserved):
        return now.passages
    waits, others = now.waits, tuple(now.reserved)
    may = np.zeros((len(others), len(waits)), bool)
    for one, row in zip(now.reserved.values(), may, strict=True):
        times = np.array([one.times(*payer) for payer in waits.payers])
        row[:] = (waits.limit_s > 0) & (now.snapshot.now_s + waits.limit_s * times[waits.payer] <= one.at_s)
    if len(others) < 2:
        kinds: tuple[Passage, ...] = ((), others)
        of = may[0].astype(np.int64) if others else np.zeros(len(waits), np.int64)
    else:
        numbers: dict[tuple[bool, ...], int] = {}
        columns = zip(*may.tolist(), strict=True)
        of = np.array([numbers.setdefault(column, len(numbers)) for column in columns], np.int64)
        kinds = tuple(tuple(other for other, its in zip(others, one, strict=True) if its) for one in numbers)
    now.passages = Passages(len(others), kinds, of)
    return now.passages


def in_time(now: Round) -> list[tuple[object, ...]]:
    """(W,) all that is said of each about places in time of others: who has the same here is told the same."""
    waits, now_s = now.waits, now.snapshot.now_s
    has_limit = waits.limit_s > 0
    columns: list[list[object]] = [has_limit.tolist()]
    for one in now.reserved.values():
        times = np.array([one.times(*payer) for payer in waits.payers])[waits.payer]
        columns += [np.where(has_limit, times, 1.0).tolist(), (now_s + waits.limit_s <= one.at_s).tolist()]
    there = passages(now)
    return list(zip(*columns, [there.kinds[its] for its in there.of.tolist()], strict=True))


def passing(others: Sequence[int], now: Round) -> AbstractContextManager[None]:
    """The places in time of these are free for the moment, for who will have ended by then."""
    return _given_back(others, now) if others else nullcontext()


@contextmanager
def _given_back(others: Sequence[int], now: Round) -> Iterator[None]:
    kept = [now.reserved[other].kept for other in others]
    holds.give_back(kept, now.draft)
    known = len(now.binds)
    yield
    for w, s, n, devices in bound(now.binds[known:]):
        for one in kept:
            if n in one.pods:
                one.started.setdefault(n, []).append((now.rows[w][s], devices))
    holds.keep(kept, now.rows, now.draft)


def bound(binds: Sequence[tuple[I32, I32, I32, I64]]) -> Iterator[tuple[int, int, int, int]]:
    """Workload, pod set, node and devices of each pod that was bound."""
    for part in binds:
        yield from zip(*(column.tolist() for column in part), strict=True)


def _earliest(w: int, now: Round) -> Reserved | None:
    """The earliest place that can be proven; None where those who run set no time to it."""
    workload, rows = now.workloads[w], now.rows[w]
    least, policy = minimum_of(workload), now.policy
    roster = now.draft.tables.roster()
    ends = np.where(roster.node >= 0, ends_of(roster, now.snapshot.now_s, policy.overrun_s), np.inf)
    started = all_started = _started(now)
    ends_started = np.array([one.ends_s for one in started], np.float64)
    times = np.concatenate([ends, ends_started])
    times = np.sort(times[times < np.inf])
    if not len(times):
        return None
    times = times[np.append(True, times[1:] != times[:-1])]  # each once
    is_bare = not now.holds and not now.reserved and not now.booked.booked  # nothing is kept off the draft
    future = Future.of(now.draft, roster, (), {one.node for one in started})
    gone = roster.ending.copy()
    step, tries, at = 1, 0, _first(rows, least, times, ends, roster, started, is_bare, now)
    where = now.allowed(w) & ~now.booked.shut(w, now.draft.columns.size)
    while at < len(times):
        leave = np.flatnonzero((ends <= times[at]) & ~gone)
        gone[leave] = True
        if is_bare:
            future.release(leave)
        else:
            future.vacate(leave)
            future.commit(leave)
        started = _lift(started, float(times[at]), future)
        tried = place_gang(least, rows, future.draft, where, AsListed(), steps=policy.proof_steps)
        if tried.placed:
            places = [(s, put.node, put.count) for s, put in zip(tried.set_of_put, future.draft.puts, strict=True)]
            return _reserved(w, places, float(times[at]), ends, all_started, now)
        future.draft.drop()
        tries += 1
        step = step if tries < policy.reservation_tries else 2 * step
        at = at + step if at + step < len(times) or at == len(times) - 1 else len(times) - 1
    return None


def _started(now: Round) -> list[Started]:
    """Pods that this cycle has started."""
    found = []
    for w, s, n, devices in bound(now.binds):
        limit_s = now.workloads[w].time_limit_s
        found.append(Started(n, now.rows[w][s], devices, now.snapshot.now_s + limit_s if limit_s else np.inf))
    return found


def _lift(started: list[Started], at_s: float, future: Future) -> list[Started]:
    """Take off those that have to have ended by then; the others."""
    over = [one for one in started if one.ends_s <= at_s]
    for one in over:
        future.draft.lift(one.row, one.node, one.devices)
    if over:
        future.draft.recount(np.array([one.node for one in over], np.int64))
        future.draft.commit()
    return [one for one in started if one.ends_s > at_s]


def _first(
    rows: Sequence[int], least: Workload, times: F64, ends: F64, roster: Roster, started: Sequence[Started],
    is_bare: bool, now: Round,
) -> int:  # fmt: skip
    """The first of the times at which devices may do, by how many of them each node has free: before, no proof is
    needed. Where something is kept off the draft, by how many there are free in all."""
    draft, ask, pool = now.draft, now.draft.tables.ask, now.draft.columns.pool
    leaves = roster.ending & (roster.node >= 0)
    known, limited = np.isfinite(ends) & ~leaves, [one for one in started if np.isfinite(one.ends_s)]
    node = np.concatenate([roster.node[known], np.array([one.node for one in limited], np.int64)])
    freed = np.concatenate([roster.milli[known], now.milli_of_rows[[one.row for one in limited]]])
    time = np.concatenate([ends[known], np.array([one.ends_s for one in limited], np.float64)])
    order = np.argsort(time, kind="stable")
    node, freed, time = node[order], freed[order], time[order]
    free = np.where(draft.device_free > 0, draft.device_free, 0).sum(axis=1).astype(np.int64)
    np.add.at(free, roster.node[leaves], roster.milli[leaves])
    first = 0
    for row in sorted(set(rows)):
        resource, devices, milli, _ = ask[row].tolist()
        wanted = sum(s.min_count for r, s in zip(rows, least.pod_sets, strict=True) if r == row)
        if not devices or not wanted:
            continue
        there, back, at = np.where(pool == resource, free, 0), np.where(pool[node] == resource, freed, 0), node
        if not is_bare:
            there, at = there.sum(keepdims=True), np.zeros_like(node)
        found = int(kernels.first_with_copies(wanted, devices * milli, there, at, back, time))
        if found == NEVER:
            return len(times)
        first = max(first, int(np.searchsorted(times, time[found])) if found >= 0 else 0)
    return first


def _reserved(
    w: int, places: Sequence[tuple[int, int, int]], at_s: float, ends: F64, started: Sequence[Started], now: Round
) -> Reserved:
    workload, nodes, roster = now.workloads[w], now.draft.columns.nodes, now.draft.tables.roster()
    pods: dict[int, list[tuple[int, int]]] = {}
    for s, n, count in places:
        pods.setdefault(n, []).append((s, count))
    hold = Hold(
        workload.identity, tuple(Place(workload.pod_sets[s].name, nodes[n].name, count) for s, n, count in places),
        workload.uid, until_s=at_s,
    )  # fmt: skip
    leaving = {n: [i for i, p in enumerate(roster.on(n).tolist()) if ends[p] <= at_s] for n in pods}
    kept = Kept(hold, w, workload.priority, pods, {n: some for n, some in leaving.items() if some})
    for one in started:
        if one.node in pods and one.ends_s <= at_s:
            kept.started.setdefault(one.node, []).append((one.row, one.devices))
    return Reserved(kept, at_s, _overruns(roster, now.snapshot.now_s))


def _overruns(roster: Roster, now_s: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for p in np.flatnonzero((roster.node >= 0) & (roster.ends_s < now_s) & (roster.ends_s > roster.started_s)).tolist():
        one = roster.allocations[p]
        times = float((now_s - roster.started_s[p]) / (roster.ends_s[p] - roster.started_s[p]))
        queue = one.queue or one.namespace
        found[queue] = max(found.get(queue, 1.0), times)
    return found
