"""Who leaves so that a workload of higher priority can start: the cheapest pods, with its proven place.

1 candidates  pods of strictly lower priority that may leave; what becomes free anyway costs nothing (future.py)
2 price       the GPU hours that are lost with a pod, then whether it can run elsewhere, then how many pods
3 choose      on each node the cheapest pods for every number of copies, then nodes, in one domain where there must
              be one (offer.py, clearing.py); budgets and gangs are kept (allowance.py), which may bar some pods
4 prove       the pods leave the draft, and the workload is placed there whole by the code that places everything
5 give back   pods without which it works as well stay, the dearest first; then it is proven again

Gangs leave whole where they would fall below their minimum, and cost as much. They are priced in three ways (not at
all, by their share, each pod at the price of all), and the cheapest outcome is taken. Where few pods may leave, every
set of them is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import Workload
from berth.scheduling.allowance import Allowances
from berth.scheduling.draft import Draft
from berth.scheduling.future import Future
from berth.scheduling.offer import Offer
from berth.scheduling.placement import Tried
from berth.scheduling.policy import Policy
from berth.scheduling.proof import Ask, Outcome, Prover, better
from berth.scheduling.regions import Region, regions, set_region
from berth.scheduling.thorough import ATTEMPTS, by_clearing, every_set, is_plain

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

OFFERS_KEPT = 12
APART, SHARED, FULL = "apart", "shared", "full"  # how pods of gangs that leave whole are priced


@dataclass(frozen=True)
class Sacrifice:
    """`pods` (positions in the roster) leave, and the workload gets `places`: (pod set, node, pods).

    One of several ways to make room: what carries it out does not ask by which rule it was found.
    """

    pods: tuple[int, ...]
    places: tuple[tuple[int, int, int], ...]
    beyond_budgets: frozenset[int] = frozenset()  # of the pods


class Hunt:
    """The search of one cycle. What it finds is carried out in the future at once."""

    def __init__(self, future: Future, allowances: Allowances, policy: Policy, now_s: float) -> None:
        self.future = future
        self.allowances = allowances
        self.policy = policy
        self.now_s = now_s
        self._prover = Prover(future, allowances, policy)
        self._nobody = np.zeros(len(future.gone), bool)
        self._price: I64 | None = None
        self._offers: dict[object, Offer] = {}
        self._guarded = 0
        self._exhausted = allowances.exhausted()

    @property
    def draft(self) -> Draft:
        return self.future.draft

    def find(
        self,
        workload: Workload,
        rows: Sequence[int],
        allowed: Mask,
        aside: Mask | None = None,
        *,
        guarded: Mask | None = None,
        only: Mask | None = None,
        accepts: Callable[[I64], bool] | None = None,
    ) -> Sacrifice | None:
        """The cheapest pods that leave, and the places of the workload's minimum; None where there are none. `aside`
        (P,) are pods that may leave for it though of its own priority, within their budgets; `guarded` pods that may
        not, `only` all that may, whatever their priority. What `accepts` says no to is not carried out."""
        ask = Ask.of(workload, rows, allowed, self._nobody, np.zeros(0, np.int64))
        if self._prover.has_room(ask):
            if (tried := self._prover.place(ask, allowed)).placed:
                return self._carried_out(np.zeros(0, np.int64), tried)
            self.draft.drop()
        may_leave = self._may_leave(workload.priority)
        if aside is not None:
            roster = self.future.roster
            may_leave |= aside & roster.may_leave & ~self.future.gone & (roster.priority <= workload.priority)
        if only is not None:
            may_leave = only & ~self.future.gone
        if guarded is not None:
            may_leave = may_leave & ~guarded
        self._guarded = id(guarded)  # the masks are kept as long as the search: offers of one are not another's
        if aside is not None or only is not None:
            self._offers.clear()  # who may leave is another question for each
        if not may_leave.any():
            return None
        ask = replace(ask, may_leave=may_leave & ~self._exhausted, price=self._prices())
        best = self._cheapest(ask)
        if best is None and aside is None and self.policy.beyond_budgets and self.allowances.budgets:
            ask = replace(ask, may_leave=may_leave, respected=False)
            best = self._cheapest(ask)
        if aside is not None or only is not None:
            self._offers.clear()
        if best is None or (accepts is not None and not accepts(best.pods)):
            return None
        self.future.vacate(best.pods)
        tried = self._prover.place(ask, best.nodes)
        assert tried.placed, "what was proven holds"
        return self._carried_out(best.pods, tried)

    def confirm(
        self, workload: Workload, rows: Sequence[int], nodes: Mask, places: Mapping[int, Sequence[tuple[int, int]]]
    ) -> Sacrifice | None:
        """The workload's minimum on these nodes, where it needs nobody to leave any more.

        `places` are (pod set, pods) by node, where it is to go unless that has become impossible.
        """
        ask = Ask.of(workload, rows, nodes, self._nobody, np.zeros(0, np.int64))
        if (tried := self._prover.put_there(ask, places)) is not None:
            return self._carried_out(np.zeros(0, np.int64), tried)
        if (tried := self._prover.place(ask, nodes)).placed:
            return self._carried_out(np.zeros(0, np.int64), tried)
        self.draft.drop()
        return None

    def keep_promise(self, workload: Workload, rows: Sequence[int], promised: Sequence[tuple[int, int, int]]) -> None:
        """Put a workload's minimum where it was proven to fit, (pod set, node, pods); nowhere where that has gone."""
        places: dict[int, list[tuple[int, int]]] = {}
        for s, n, count in promised:
            places.setdefault(n, []).append((s, count))
        ask = Ask.of(workload, rows, np.ones(len(self.draft.alike), bool), self._nobody, np.zeros(0, np.int64))
        if (tried := self._prover.put_there(ask, places, is_proven=True)) is not None:
            self._carried_out(np.zeros(0, np.int64), tried)

    # ---- 1, 2 candidates and prices

    def _may_leave(self, priority: int) -> Mask:
        roster = self.future.roster
        settled = self.now_s - roster.started_s >= roster.min_runtime_s
        mask: Mask = roster.may_leave & ~self.future.gone & (roster.priority < priority) & settled
        return mask

    def _prices(self) -> I64:
        """(P,) whole numbers: GPU minutes lost first, then pods that nobody starts again or that fit nowhere else
        (2 and 1 each), then pods."""
        if self._price is not None:
            return self._price
        roster, draft = self.future.roster, self.draft
        worth = np.where(roster.milli > 0, roster.milli, roster.cpu_milli * self.policy.cpu_worth / 1000)
        lost = ((roster.lost_s(self.now_s) + self.policy.restart_s) * worth / 60_000).astype(np.int64)
        bits = (2 * len(lost)).bit_length()
        total = int(lost.sum())
        lost >>= max(0, total.bit_length() - (61 - 2 * bits))  # coarser where the sum would be too large
        elsewhere = np.ones(len(roster.classes), bool)
        for kind, pod_class in enumerate(roster.classes):
            row = draft.tables.rows.get(pod_class)
            if row is not None:
                elsewhere[kind] = bool((draft.copies[row] > 0).any())
        stranded = np.where(roster.is_kept, ~elsewhere[roster.kind], 2)
        self._price = (((lost << bits) + stranded) << bits) + 1
        return self._price

    def _priced(self, ask: Ask, mode: str) -> tuple[I64, I64]:
        """The pods that may leave, and their prices with those of gangs in this way."""
        roster = self.future.roster
        alone = self.allowances.alone()
        if mode == APART:
            pods = np.flatnonzero(ask.may_leave & alone)
            return pods, ask.price[pods]
        pods = np.flatnonzero(ask.may_leave)
        price = ask.price[pods].copy()
        gang = roster.gang[pods]
        for g in np.unique(gang[(gang >= 0) & ~alone[pods]]).tolist():
            members = self.allowances.members(g)
            of_all = int(ask.price[members].sum())
            price[gang == g] = of_all if mode == FULL else max(1, of_all // len(members))
        return pods, price

    # ---- 3 choose

    def _cheapest(self, ask: Ask) -> Outcome | None:
        best: Outcome | None = None
        in_gangs = (self.future.roster.gang[ask.may_leave] >= 0).any()
        modes = [APART, SHARED, FULL] if in_gangs else [APART]
        found: list[Region] = []
        doubts = False
        for mode in modes:
            offers = {s: self._offer(ask, s, mode) for s in ask.order}
            found = regions(ask.workload, offers, ask.allowed, self.draft, self.policy)
            for region in found:
                if best is not None and len(ask.order) == 1 and mode != FULL and region.counts >= best.counts:
                    continue
                settled, doubtful = self._settled(ask, offers, region, mode)
                best, doubts = better(best, region.judged(settled)), doubts or doubtful
        is_odd = self._prover.is_odd(ask)
        for region in found if best is None or is_odd else ():
            best = better(best, region.judged(by_clearing(ask, region, self._prover)))
        if modes == [APART] and not doubts and is_plain(ask, self._prover):
            return best
        return every_set(ask, best, self._prover)

    def _offer(self, ask: Ask, s: int, mode: str) -> Offer:
        pod_set, row = ask.workload.pod_sets[s], ask.rows[s]
        key = (row, ask.workload.priority, pod_set.count, mode, ask.respected, ask.allowed.tobytes(), self._guarded)
        if key not in self._offers:
            pods, price = self._priced(ask, mode)
            while len(self._offers) >= OFFERS_KEPT:
                del self._offers[next(iter(self._offers))]
            self._offers[key] = Offer.of(
                row, pod_set.count, ask.allowed, pods, price, self.future, self.policy.release_steps
            )
        return self._offers[key]

    def _settled(self, ask: Ask, offers: dict[int, Offer], region: Region, mode: str) -> tuple[Outcome | None, bool]:
        """The cheapest pods of a region that may leave together, proven.

        True is told besides where a choice was refuted by a node whose devices are in doubt.
        """
        doubts = False
        barred = np.zeros(len(self.future.gone), bool)
        for _ in range(ATTEMPTS):
            chosen = self._chosen(ask, offers, region.nodes, barred)
            if chosen is None:
                break
            pods, nodes = chosen
            wanted = pods[np.argsort(ask.price[pods], kind="stable")]
            leaving = self.allowances.closed(wanted, ask.may_leave, mode != APART, ask.respected)
            if leaving.barred.size:
                barred[leaving.barred] = True
                continue
            proven = self._prover.proven(ask, leaving.pods, nodes, region.nodes)
            if proven is not None or (doubtful := self._doubtful(leaving.pods)) is None:
                return proven, doubts
            doubts = True
            barred |= doubtful
        return None, doubts

    def _doubtful(self, pods: I64) -> Mask | None:
        """(P,) the pods of all nodes whose devices are in doubt, where one of these pods stands on such a node."""
        found = self.future.doubtful()
        return found if found[pods].any() else None

    def _chosen(self, ask: Ask, offers: dict[int, Offer], scope: Mask, barred: Mask) -> tuple[I64, Mask] | None:
        """Pods to leave and nodes to use, set after set; the draft stays as it was."""
        found: list[I64] = []
        used = np.zeros(len(scope), bool)
        touched: list[int] = []
        alone = len(ask.order) == 1
        try:
            for s in ask.order:
                offer = offers[s]
                if barred.any() or touched:
                    offer = offer.changed(barred, touched, self.draft)
                pod_set = ask.workload.pod_sets[s]
                dealt = set_region(ask.workload, pod_set, offer, scope, self.draft)
                if dealt is None:
                    return None
                for i, copies in dealt:
                    _, pods = offer.released(i, copies, self.draft)
                    found.append(pods)
                    n = int(offer.nodes[i])
                    used[n] = True
                    if not alone:
                        self.future.lift(pods)
                        self.draft.recount(np.array([n], np.int64))
                        fit = min(copies, int(self.draft.copies[ask.rows[s], n]))
                        self.draft.put(ask.rows[s], n, fit, ask.who(s))
                        self.draft.recount(np.array([n], np.int64))
                        touched.append(n)
                        barred = barred.copy()
                        barred[pods] = True
        finally:
            if not alone:
                self.draft.drop()
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64), used

    # ---- what was found

    def _carried_out(self, pods: I64, tried: Tried) -> Sacrifice:
        """The transaction that is open is kept."""
        beyond = frozenset(pods[self.allowances.beyond(pods)].tolist())
        self.allowances.give_up(pods)
        places: dict[tuple[int, int], int] = {}
        for put, s in zip(self.future.commit(pods), tried.set_of_put, strict=True):
            places[s, put.node] = places.get((s, put.node), 0) + put.count
        self._follow(pods, {n for _, n in places})
        return Sacrifice(tuple(pods.tolist()), tuple((s, n, count) for (s, n), count in places.items()), beyond)

    def _follow(self, pods: I64, nodes: set[int]) -> None:
        """Offers that are kept learn of what has changed."""
        exhausted = self.allowances.exhausted()
        newly = exhausted & ~self._exhausted
        self._exhausted = exhausted
        touched = {*nodes, *self.future.roster.node[pods].tolist(), *self.future.roster.node[newly].tolist()}
        for offer in self._offers.values():
            offer.follow(self.future, exhausted, sorted(touched))
