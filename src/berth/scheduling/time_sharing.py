"""Who should run now, as the cycle sees it: of those who wait and run those of whom it is known, or may be estimated,
what they still have to compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import WHOLE
from berth.scheduling.choice import chosen, keys_of
from berth.scheduling.stopping import stops_that_pay

if TYPE_CHECKING:
    from berth.scheduling.round import Round

Mask = NDArray[np.bool_]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

LOOK_S = 5000.0  # who runs and begins to look worse is weighed anew no sooner after a decision


@dataclass(frozen=True)
class Turn:
    """Who should run.

    line     (W,) orders those who wait
    first    those of them who should run and for whom others may leave
    patient  those of these who have waited so long that one may move for them that should run on
    aside    (P,) pods that leave first: of those who run and should not
    spare    (P,) pods of all who run and should not
    milli    (P,) what the workload of a pod holds that should run on, 0 of others
    look_s   when somebody who runs has computed for so long without an end that it has to be weighed anew, or a stop
             begins to pay
    """

    line: F64
    first: frozenset[int]
    patient: frozenset[int]
    aside: Mask
    spare: Mask
    milli: I64
    look_s: float

    def may_leave(self, w: int, milli: int) -> Iterator[Mask]:
        """(P,) pods that may leave for so wide a workload: first those that should, then others that should not run,
        then those of narrower ones that should, and have to find another place."""
        yield self.aside
        if bool((self.spare & ~self.aside).any()):
            yield self.spare
        if w in self.patient:
            yield self.spare | ((self.milli > 0) & (self.milli < milli))


@dataclass(frozen=True)
class Effort:
    """What is known or estimated of workloads, (K,) each: seconds that one still has to compute, when it was submitted,
    whether that is an estimate, and seconds of computing after which the estimate is another. NaN: nothing is."""

    left_s: F64
    submitted_s: F64
    is_estimate: Mask
    holds_s: F64


@dataclass(frozen=True)
class Weighed:
    """Those among whom is chosen, (K,) each: first those who wait, `waits` (indexes of workloads), then those who run.
    `of_pod` (P,) is the one of each pod of the roster, -1 for who is not weighed. `soonest_s` is when one of those who
    run and are not weighed begins to look worse.
    """

    waits: I64
    of_pod: I64
    milli: I64
    key: F64
    priority: I64
    holds_s: F64
    soonest_s: float

    @property
    def gpus(self) -> I64:
        return self.milli // WHOLE

    @property
    def is_waiting(self) -> Mask:
        mask: Mask = np.arange(len(self.key)) < len(self.waits)
        return mask


@dataclass(frozen=True)
class Choice:
    """Of some of those who are weighed, (K,) each: who should run, who of them starts, who leaves, for whom others may
    move; and how long this holds."""

    should: Mask
    starts: Mask
    leaves: Mask
    moves: Mask
    holds_s: float


def choice_of(some: I64, among: Weighed, now: Round, soonest_s: float = np.inf) -> Choice:
    """What some (K,) of those who are weighed have that may be set aside, and what is free, goes to those of them that
    make most of it."""
    is_waiting, gpus, key = among.is_waiting[some], among.gpus[some], among.key[some]
    wait_s, waits = now.policy.stop_wait_s, among.waits[some[is_waiting]]
    free = _free(waits, now)
    capacity = free + int(among.milli[some][~is_waiting].sum()) // WHOLE
    should = _chosen_by_priority(among.priority[some], key, gpus, capacity)
    starts, leaves, moves, holds_s = should & is_waiting, ~should & ~is_waiting, should & is_waiting, np.inf
    if wait_s > 0:
        order = np.argsort(key, kind="stable")
        hopes, rest = order[starts[order]], order[leaves[order]][::-1]
        workloads = [now.workloads[w] for w in among.waits[some[hopes]].tolist()]
        waited = now.snapshot.now_s - np.array([w.waits_since_s or w.created_s for w in workloads], np.float64)
        stops = stops_that_pay(gpus[hopes], waited, gpus[rest], free, _node_gpus(now), wait_s)
        starts[hopes], leaves[rest], moves[hopes] = stops.starts, stops.leaves, stops.starts & (waited >= wait_s)
        holds_s = min(stops.again_s, (wait_s - waited[stops.starts & (waited < wait_s)]).min(initial=np.inf))
    if not should[is_waiting].all():
        holds_s = min(holds_s, max(float(among.holds_s[some][should].min(initial=soonest_s)), LOOK_S))
    return Choice(should, starts, leaves, moves, holds_s)


def turn_of(now: Round) -> Turn:
    """Who is protected since it has not run for long, or may not be asked to leave, runs on."""
    among = weighed(now)
    choice = choice_of(np.arange(len(among.key)), among, now, among.soonest_s)
    line = np.full(len(now.workloads), np.inf)
    line[among.waits] = places(among, choice.should)
    return Turn(line, *who_leaves(among, choice), now.snapshot.now_s + choice.holds_s)


def places(among: Weighed, should: Mask) -> F64:
    """The place of each that waits: who should run goes first, whoever else would come before it by its key."""
    order = np.lexsort((among.key, ~should))
    return np.argsort(order, kind="stable")[: len(among.waits)].astype(np.float64)


def who_leaves(among: Weighed, choice: Choice) -> tuple[frozenset[int], frozenset[int], Mask, Mask, I64]:
    """`first`, `patient`, `aside`, `spare` and `milli` of a Turn. Who is not weighed stays."""
    first, patient = (frozenset(among.waits[one[among.is_waiting]].tolist()) for one in (choice.starts, choice.moves))
    stays = np.where(choice.should, among.milli, 0)
    aside, spare, milli = (np.append(one, 0)[among.of_pod] for one in (choice.leaves, ~choice.should, stays))
    return first, patient, aside.astype(bool), spare.astype(bool), milli


def weighed(now: Round) -> Weighed:
    """Those of whom it is known or estimated what they have left: who waits, and who runs and may be asked to leave."""
    workloads, roster, now_s = now.workloads, now.draft.tables.roster(), now.snapshot.now_s
    running: dict[str, int] = {}
    of = np.array([running.setdefault(a.workload_identity, len(running)) for a in roster.allocations], np.int64)
    identities = [workload.identity for workload in workloads]
    effort = effort_of([*identities, *running], now)
    is_known = ~np.isnan(effort.left_s)
    # Who runs and waits for more pods runs.
    is_known[: len(workloads)] &= np.array([identity not in running for identity in identities], bool)
    waits = np.flatnonzero(is_known[: len(workloads)])
    # Who has started at this very moment is not weighed anew.
    ran_s = now_s - roster.started_s
    settled = roster.may_leave & (ran_s >= roster.min_runtime_s) & (ran_s > 0)
    may_leave, runs = np.bincount(of[~settled], minlength=len(running)) == 0, is_known[len(workloads) :]
    fixed, theirs = (np.flatnonzero(some) for some in (runs & ~may_leave, runs & may_leave))
    number = np.full(len(running), -1, np.int64)
    number[theirs] = np.arange(len(waits), len(waits) + len(theirs))
    held = np.bincount(of, weights=roster.milli, minlength=len(running)).astype(np.int64)[theirs]
    first = np.unique(of, return_index=True)[1][theirs]  # of the pods of each
    fixed, theirs = fixed + len(workloads), theirs + len(workloads)
    among = np.concatenate([waits, theirs])
    milli = np.concatenate([now.milli[waits], held])
    key = keys_of(
        effort.left_s[among], milli // WHOLE, now_s - effort.submitted_s[among], _node_gpus(now), now.policy.aging
    )  # fmt: skip
    costs = now.policy.stop_wait_s > 0
    key[len(waits) :] *= np.where(effort.is_estimate[theirs] | costs, now.policy.stays, 1.0)
    priority = np.concatenate([now.waits.priority[waits], roster.priority[first]])
    soonest_s = float(effort.holds_s[fixed].min(initial=np.inf))
    return Weighed(waits, number[of], milli, key, priority, effort.holds_s[among], soonest_s)


def _node_gpus(now: Round) -> int:
    return max(int(now.draft.device_free.shape[1]), 1)


def effort_of(identities: Sequence[str], now: Round) -> Effort:
    """What they have left where that is known, else how long they may be expected to take by what those like them
    took."""
    count, known, history = len(identities), now.snapshot.left, now.snapshot.history
    left, submitted, holds = np.full(count, np.nan), np.zeros(count), np.full(count, np.inf)
    if known:
        for i, identity in enumerate(identities):
            if (one := known.get(identity)) is not None:
                left[i], submitted[i] = one.left_s, one.submitted_s
    is_estimate = np.isnan(left)
    if history is None or not is_estimate.any():
        return Effort(left, submitted, is_estimate, holds)
    rows = history.rows_of(identities)
    asked = np.flatnonzero(is_estimate & (rows >= 0))
    index = now.draft.tables.estimator.follow(history).index_of(rows[asked])
    left[asked], submitted[asked] = index.index_s, history.submitted_s[rows[asked]]
    holds[asked] = index.until_s - history.attained_s[rows[asked]]
    return Effort(left, submitted, is_estimate, holds)


def _free(waits: I64, now: Round) -> int:
    """Whole GPUs that nobody has, on nodes that some of those who wait may use at all."""
    rows = sorted({row for kind in np.unique(now.waits.kind[waits]).tolist() for row in now.asks[kind].rows})
    usable = (now.draft.tables.static[rows] == 0).any(axis=0)
    return int((now.draft.device_free[usable] == WHOLE).sum())


def _chosen_by_priority(priority: I64, key: F64, gpus: I64, capacity: int) -> Mask:
    """The highest priority first, each with what those above it leave: none is set aside for a lower one."""
    should = np.zeros(len(key), bool)
    for level in np.unique(priority)[::-1].tolist():
        some = np.flatnonzero(priority == level)
        should[some] = chosen(key[some], gpus[some], capacity)
        capacity -= int(gpus[some][should[some]].sum())
    return should
