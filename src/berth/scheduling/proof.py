"""What is asked when room is sought, and the proof of an answer: the workload placed whole, nobody leaving in vain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace as but
from numpy.typing import NDArray

from berth.model.workload import Workload
from berth.scheduling.allowance import Allowances
from berth.scheduling.draft import Draft
from berth.scheduling.future import Future
from berth.scheduling.neighbours import Who
from berth.scheduling.placement import Tried, place_gang
from berth.scheduling.policy import Policy
from berth.scheduling.sets import AsListed, Rank
from berth.scheduling.wishes import gpu_milli_of, set_wishes

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Ask:
    """Who needs room: its minimum alone, its rows, the nodes that it may use, and the pods that may leave for it."""

    workload: Workload
    rows: Sequence[int]
    allowed: Mask
    may_leave: Mask
    price: I64
    order: Sequence[int]  # its sets, the hardest first
    respected: bool  # budgets are

    @classmethod
    def of(cls, workload: Workload, rows: Sequence[int], allowed: Mask, may_leave: Mask, price: I64) -> Ask:
        least = minimum_of(workload)
        sets = [s for s, one in enumerate(least.pod_sets) if one.count]
        hardest_first = sorted(sets, key=lambda s: (-gpu_milli_of(least.pod_sets[s]), s))
        return cls(least, rows, allowed, may_leave, price, hardest_first, True)

    def who(self, s: int) -> Who:
        """A pod of a set as others see it."""
        pod_set = self.workload.pod_sets[s]
        return Who(self.workload.namespace, pod_set.labels, pod_set.pod_class)

    def would_do(self, draft: Draft) -> Mask:
        """(N,) nodes that some set may use, whatever runs there."""
        fits = np.zeros(len(self.allowed), bool)
        for s in self.order:
            fits |= draft.tables.static[self.rows[s]] == 0
        return fits & self.allowed


@dataclass(frozen=True)
class Outcome:
    """What was proven: the price of the pods that leave, the pods, and the nodes that were used.

    `counts` is the price by which outcomes are compared: a place that the workload likes less counts as dearer.
    """

    price: int
    pods: I64
    nodes: Mask
    counts: int


class Prover:
    """Places workloads in the future, where pods have left it."""

    def __init__(self, future: Future, allowances: Allowances, policy: Policy) -> None:
        self.future = future
        self.allowances = allowances
        self.policy = policy

    @property
    def draft(self) -> Draft:
        return self.future.draft

    def has_room(self, ask: Ask) -> bool:
        """Each set alone would find room as things will be."""
        copies = self.draft.copies
        needs = ((ask.rows[s], ask.workload.pod_sets[s].count) for s in ask.order)
        return all(int(copies[row][ask.allowed].sum()) >= need for row, need in needs)

    def place(self, ask: Ask, nodes: Mask, rank: Rank | None = None) -> Tried:
        """Put the workload into the draft; what does not fit leaves puts of nobody, and the transaction open."""
        return place_gang(
            ask.workload, ask.rows, self.draft, nodes & ask.allowed, rank or AsListed(), steps=self.policy.proof_steps
        )

    def put_there(
        self, ask: Ask, places: Mapping[int, Sequence[tuple[int, int]]], *, is_proven: bool = False
    ) -> Tried | None:
        """Put the minimum where it was promised, (pod set, pods) by node, if the nodes still take it.

        None, and the draft as it was, where they do not, where less was promised, or where other pods have a say and
        it was not proven in this cycle that they let it.
        """
        draft = self.draft
        left = {s: ask.workload.pod_sets[s].count for s in ask.order}
        sets: list[int] = []
        if not is_proven and self.is_odd(ask):
            return None
        for n, pods in places.items():
            for s, count in pods:
                part = min(count, left.get(s, 0))
                if part and draft.copies[ask.rows[s], n] < part:
                    draft.drop()
                    return None
                if part:
                    draft.put(ask.rows[s], n, part, ask.who(s))
                    draft.recount(np.array([n], np.int64))
                    sets.append(s)
                    left[s] -= part
        if any(left.values()):
            draft.drop()
            return None
        return Tried(True, set_of_put=sets)

    def is_enough(self, ask: Ask, pods: I64) -> bool:
        """The workload fits somewhere once these pods have left."""
        self.future.vacate(pods)
        placed = self.place(ask, ask.allowed).placed
        self.draft.drop()
        return placed

    def proven(self, ask: Ask, pods: I64, nodes: Mask, scope: Mask, rank: Rank | None = None) -> Outcome | None:
        """The workload placed whole without these pods, and without more of them than it takes.

        On `nodes`, else anywhere in the scope. The draft stays as it was.
        """
        self.future.vacate(pods)
        where = next((mask for mask in (nodes, scope) if self.place(ask, mask, rank).placed), None)
        if where is None:
            self.draft.drop()
            return None
        used = np.zeros(len(where), bool)
        used[[put.node for put in self.draft.puts]] = True
        stay = self._who_stays(ask, pods)
        self.draft.drop()
        # Proven again as it will be carried out: with fewer to leave, and nodes in the order in which they are listed.
        for some, on in ((np.setdiff1d(pods, stay), used), (np.setdiff1d(pods, stay), where), (pods, where)):
            if self._fits(ask, some, on):
                price = int(ask.price[some].sum())
                return Outcome(price, some, on, price)
        return None

    def _fits(self, ask: Ask, pods: I64, nodes: Mask) -> bool:
        self.future.vacate(pods)
        placed = self.place(ask, nodes).placed
        self.draft.drop()
        return placed

    def _who_stays(self, ask: Ask, pods: I64) -> I64:
        """Pods that fit beside the workload where it was put; whole gangs where they left whole."""
        roster = self.future.roster
        units: list[I64] = []
        gang = roster.gang[pods]
        for g in np.unique(gang[gang >= 0]).tolist():
            mine = pods[gang == g]
            is_whole = len(mine) > self.allowances.spare(g)
            units += [mine] if is_whole else [np.array([p]) for p in mine]
        units += [np.array([p]) for p in pods[gang < 0]]
        units.sort(key=lambda unit: (-int(ask.price[unit].sum()), int(unit[0])))
        stay = [unit for unit in units if self.future.can_stay(unit.tolist())]
        return np.sort(np.concatenate(stay)) if stay else np.zeros(0, np.int64)

    def is_odd(self, ask: Ask) -> bool:
        """What node by node is not seen decides: other pods, or slices."""
        neighbours = self.draft.neighbours
        for s in ask.order:
            if any(w.slice_size for w in set_wishes(ask.workload, ask.workload.pod_sets[s])):
                return True
            if neighbours is not None and neighbours.concern(ask.who(s)):
                return True
        return False


def minimum_of(workload: Workload) -> Workload:
    """The workload with no more pods than start together; of one without a minimum, one pod."""
    sets = workload.pod_sets
    if not any(s.min_count for s in sets):
        first = next((s for s, one in enumerate(sets) if one.count), 0)
        sets = tuple(but(one, min_count=int(s == first)) for s, one in enumerate(sets))
    return but(workload, pod_sets=tuple(but(s, count=s.min_count) for s in sets), missing_pods=0)


def better(one: Outcome | None, other: Outcome | None) -> Outcome | None:
    """The one that counts as cheaper; the first of equals."""
    if one is None or other is None:
        return one or other
    return other if other.counts < one.counts else one
