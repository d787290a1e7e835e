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

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from msgspec.structs import replace as but
from numpy.typing import NDArray

from berth.model.workload import WHOLE, Workload
from berth.scheduling.allowance import Allowances
from berth.scheduling.clearing import NEVER
from berth.scheduling.draft import Draft
from berth.scheduling.future import Future
from berth.scheduling.neighbours import Who
from berth.scheduling.offer import Offer
from berth.scheduling.placement import Tried, place_gang
from berth.scheduling.policy import Policy
from berth.scheduling.regions import Region, regions, set_region
from berth.scheduling.sets import AsListed, Rank
from berth.scheduling.wishes import gpu_milli_of, set_wishes, whole_wishes

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

ATTEMPTS = 8  # with more and more pods barred
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


@dataclass(frozen=True)
class _Ask:
    """Who needs room: its minimum alone, its rows, the nodes that it may use, and the pods that may leave for it."""

    workload: Workload
    rows: Sequence[int]
    allowed: Mask
    may_leave: Mask
    price: I64
    order: Sequence[int]  # its sets, the hardest first
    respected: bool  # budgets are


@dataclass(frozen=True)
class _Outcome:
    """What was proven: the price of the pods that leave, the pods, and the nodes that were used."""

    price: int
    pods: I64
    nodes: Mask


class Hunt:
    """The search of one cycle. What it finds is carried out in the future at once."""

    def __init__(self, future: Future, allowances: Allowances, policy: Policy, now_s: float) -> None:
        self.future = future
        self.allowances = allowances
        self.policy = policy
        self.now_s = now_s
        self._offers: dict[object, Offer] = {}
        self._doubts = False  # what was chosen last was refuted by a node whose devices are in doubt
        self._exhausted = allowances.exhausted()

    @property
    def draft(self) -> Draft:
        return self.future.draft

    def find(self, workload: Workload, rows: Sequence[int], allowed: Mask) -> Sacrifice | None:
        """The cheapest pods that leave, and the places of the workload's minimum; None where there are none."""
        ask = self._ask(workload, rows, allowed, np.zeros(len(self.future.gone), bool))
        if self._has_room(ask) and (tried := self._place(ask, allowed)).placed:
            return self._carried_out(ask, np.zeros(0, np.int64), tried)
        self.draft.drop()
        may_leave = self._may_leave(workload.priority)
        if not may_leave.any():
            return None
        ask = replace(ask, may_leave=may_leave & ~self._exhausted, price=self._prices())
        best = self._cheapest(ask)
        if best is None and self.policy.beyond_budgets and self.allowances.budgets:
            ask = replace(ask, may_leave=may_leave, respected=False)
            best = self._cheapest(ask)
        if best is None:
            return None
        self.future.vacate(best.pods)
        tried = self._place(ask, best.nodes)
        assert tried.placed, "what was proven holds"
        return self._carried_out(ask, best.pods, tried)

    # ---- 1, 2 candidates and prices

    @staticmethod
    def _ask(workload: Workload, rows: Sequence[int], allowed: Mask, may_leave: Mask) -> _Ask:
        least = minimum_of(workload)
        sets = [s for s, one in enumerate(least.pod_sets) if one.count]
        hardest_first = sorted(sets, key=lambda s: (-gpu_milli_of(least.pod_sets[s]), s))
        return _Ask(least, rows, allowed, may_leave, np.zeros(0, np.int64), hardest_first, True)

    def _may_leave(self, priority: int) -> Mask:
        roster = self.future.roster
        settled = self.now_s - roster.started_s >= roster.min_runtime_s
        mask: Mask = roster.may_leave & ~self.future.gone & (roster.priority < priority) & settled
        return mask

    def _prices(self) -> I64:
        """(P,) whole numbers: GPU minutes lost first, then pods that nobody starts again or that fit nowhere else
        (2 and 1 each), then pods."""
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
        price: I64 = (((lost << bits) + stranded) << bits) + 1
        return price

    def _priced(self, ask: _Ask, mode: str) -> tuple[I64, I64]:
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

    def _cheapest(self, ask: _Ask) -> _Outcome | None:
        best: _Outcome | None = None
        self._doubts = False
        in_gangs = (self.future.roster.gang[ask.may_leave] >= 0).any()
        modes = [APART, SHARED, FULL] if in_gangs else [APART]
        for mode in modes:
            offers = {s: self._offer(ask, s, mode) for s in ask.order}
            for region in regions(ask.workload, offers, ask.allowed, self.draft, self.policy.domains_tried):
                if best is not None and len(ask.order) == 1 and mode != FULL and region.estimate >= best.price:
                    continue
                best = _better(best, self._settled(ask, offers, region, mode))
        if best is None or self._is_odd(ask):
            best = _better(best, self._by_clearing(ask))
        return self._exact(ask, best, modes)

    def _offer(self, ask: _Ask, s: int, mode: str) -> Offer:
        pod_set, row = ask.workload.pod_sets[s], ask.rows[s]
        key = (row, ask.workload.priority, pod_set.count, mode, ask.respected, ask.allowed.tobytes())
        if key not in self._offers:
            pods, price = self._priced(ask, mode)
            while len(self._offers) >= OFFERS_KEPT:
                del self._offers[next(iter(self._offers))]
            self._offers[key] = Offer.of(
                row, pod_set.count, ask.allowed, pods, price, self.future, self.policy.release_steps
            )
        return self._offers[key]

    def _settled(self, ask: _Ask, offers: dict[int, Offer], region: Region, mode: str) -> _Outcome | None:
        """The cheapest pods of a region that may leave together, proven."""
        barred = np.zeros(len(self.future.gone), bool)
        for _ in range(ATTEMPTS):
            chosen = self._chosen(ask, offers, region.nodes, barred)
            if chosen is None:
                return None
            pods, nodes = chosen
            wanted = pods[np.argsort(ask.price[pods], kind="stable")]
            leaving = self.allowances.closed(wanted, ask.may_leave, mode != APART, ask.respected)
            if leaving.barred.size:
                barred[leaving.barred] = True
                continue
            proven = self._proven(ask, leaving.pods, nodes, region.nodes)
            if proven is not None or (doubtful := self._doubtful(leaving.pods)) is None:
                return proven
            self._doubts = True
            barred |= doubtful
        return None

    def _doubtful(self, pods: I64) -> Mask | None:
        """(P,) the pods of all nodes whose devices are in doubt, where one of these pods stands on such a node."""
        found = self.future.doubtful()
        return found if found[pods].any() else None

    def _chosen(self, ask: _Ask, offers: dict[int, Offer], scope: Mask, barred: Mask) -> tuple[I64, Mask] | None:
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
                        self.draft.put(
                            ask.rows[s], n, fit, Who(ask.workload.namespace, pod_set.labels, pod_set.pod_class)
                        )
                        self.draft.recount(np.array([n], np.int64))
                        touched.append(n)
                        barred = barred.copy()
                        barred[pods] = True
        finally:
            if not alone:
                self.draft.drop()
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64), used

    def _is_odd(self, ask: _Ask) -> bool:
        """What the offers do not see decides: other pods, or slices."""
        neighbours = self.draft.neighbours
        for s in ask.order:
            pod_set = ask.workload.pod_sets[s]
            if any(w.slice_size for w in set_wishes(ask.workload, pod_set)):
                return True
            who = Who(ask.workload.namespace, pod_set.labels, pod_set.pod_class)
            if neighbours is not None and neighbours.concern(who):
                return True
        return False

    def _by_clearing(self, ask: _Ask) -> _Outcome | None:
        """All that may leave the cheapest nodes does, the workload is placed, and who is not in the way stays."""
        roster, draft = self.future.roster, self.draft
        fits = np.zeros(len(ask.allowed), bool)
        for s in ask.order:
            fits |= draft.tables.static[ask.rows[s]] == 0
        on_node = np.zeros(len(fits), np.int64)
        there = np.flatnonzero(ask.may_leave)
        np.add.at(on_node, roster.node[there], np.minimum(ask.price[there], NEVER // len(ask.price)))
        nodes = np.flatnonzero(ask.allowed & fits & (on_node > 0))
        nodes = nodes[np.argsort(on_node[nodes], kind="stable")][: self.policy.nodes_cleared]
        cleared = np.zeros(len(fits), bool)
        cleared[nodes] = True
        pods = there[cleared[roster.node[there]]]
        barred = np.zeros(len(ask.may_leave), bool)
        for _ in range(ATTEMPTS):
            pods = pods[~barred[pods]]
            if not pods.size:
                return None
            wanted = pods[np.argsort(ask.price[pods], kind="stable")]
            leaving = self.allowances.closed(wanted, ask.may_leave, True, ask.respected)
            if not leaving.barred.size:
                return self._proven(ask, leaving.pods, ask.allowed, ask.allowed, _ByPrice(on_node))
            barred[leaving.barred] = True
        return None

    def _exact(self, ask: _Ask, best: _Outcome | None, modes: Sequence[str]) -> _Outcome | None:
        """Every set of pods, the cheapest first, where few may leave and the answer is not exact by itself."""
        fits = np.zeros(len(ask.allowed), bool)
        for s in ask.order:
            fits |= self.draft.tables.static[ask.rows[s]] == 0
        roster = self.future.roster
        pods = np.flatnonzero(ask.may_leave)
        pods = pods[(ask.allowed & fits)[roster.node[pods]]]
        if not 0 < len(pods) <= self.policy.exact_pods or (modes == [APART] and self._is_plain(ask)):
            return best
        limit = best.price if best is not None else NEVER
        sets: dict[bytes, tuple[int, I64]] = {}
        for bits in range(1, 1 << len(pods)):
            some = pods[[bool(bits >> i & 1) for i in range(len(pods))]]
            leaving = self.allowances.closed(some, ask.may_leave, True, ask.respected)
            price = int(ask.price[leaving.pods].sum())
            if not leaving.barred.size and price < limit:
                sets[leaving.pods.tobytes()] = (price, leaving.pods)
        too_little: list[set[int]] = []
        for tests, (price, some) in enumerate(sorted(sets.values(), key=lambda s: (s[0], s[1].tolist()))):
            if tests == self.policy.exact_tests:
                break
            members = set(some.tolist())
            if any(members <= other for other in too_little):
                continue
            self.future.vacate(some)
            placed = self._place(ask, ask.allowed).placed
            self.draft.drop()
            if placed:
                return _Outcome(price, some, ask.allowed)
            too_little.append(members)
        return best

    def _is_plain(self, ask: _Ask) -> bool:
        """What the offers say is exact: one set, no domain, no budget, and devices that are all alike."""
        if len(ask.order) > 1 or self.allowances.budgets or self._doubts or self._is_odd(ask):
            return False
        asks = np.concatenate([self.draft.tables.ask[[ask.rows[s] for s in ask.order]], self.future.roster.ask])
        joined = self.draft.tables.ask[ask.rows[ask.order[0]], 3]
        has_shares = ((asks[:, 1] > 0) & (asks[:, 2] < WHOLE)).any()
        return not (joined or has_shares or whole_wishes(ask.workload))

    # ---- 4, 5 prove and give back

    def _has_room(self, ask: _Ask) -> bool:
        copies = self.draft.copies
        needs = ((ask.rows[s], ask.workload.pod_sets[s].count) for s in ask.order)
        return all(int(copies[row][ask.allowed].sum()) >= need for row, need in needs)

    def _place(self, ask: _Ask, nodes: Mask, rank: Rank | None = None) -> Tried:
        return place_gang(
            ask.workload, ask.rows, self.draft, nodes & ask.allowed, rank or AsListed(), steps=self.policy.search_steps
        )

    def _proven(self, ask: _Ask, pods: I64, nodes: Mask, scope: Mask, rank: Rank | None = None) -> _Outcome | None:
        """The workload placed whole without these pods, and without more of them than it takes."""
        self.future.vacate(pods)
        where = next((mask for mask in (nodes, scope) if self._place(ask, mask, rank).placed), None)
        if where is None:
            self.draft.drop()
            return None
        stay = self._who_stays(ask, pods)
        self.draft.drop()
        if stay.size:
            fewer = np.setdiff1d(pods, stay)
            self.future.vacate(fewer)
            placed = self._place(ask, where, rank).placed
            self.draft.drop()
            pods = fewer if placed else pods
        if rank is not None:  # found by another order of nodes than what is carried out
            self.future.vacate(pods)
            if not self._place(ask, where).placed:
                self.draft.drop()
                return None
            self.draft.drop()
        return _Outcome(int(ask.price[pods].sum()), pods, where)

    def _who_stays(self, ask: _Ask, pods: I64) -> I64:
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

    def _carried_out(self, ask: _Ask, pods: I64, tried: Tried) -> Sacrifice:
        """The transaction that is open is kept."""
        beyond = frozenset(pods[self.allowances.beyond(pods)].tolist())
        self.allowances.give_up(pods)
        places: dict[tuple[int, int], int] = {}
        for put, s in zip(self.future.commit(pods), tried.set_of_put, strict=True):
            places[s, put.node] = places.get((s, put.node), 0) + put.count
        self._follow(pods, {n for _, n in places})
        return Sacrifice(tuple(pods.tolist()), tuple((s, n, count) for (s, n), count in places.items()), beyond)

    def confirm(self, workload: Workload, rows: Sequence[int], nodes: Mask) -> Sacrifice | None:
        """The workload's minimum on these nodes, where it needs nobody to leave any more."""
        nobody = np.zeros(len(self.future.gone), bool)
        ask = self._ask(workload, rows, nodes, nobody)
        tried = self._place(ask, nodes)
        if tried.placed:
            return self._carried_out(ask, np.zeros(0, np.int64), tried)
        self.draft.drop()
        return None

    def _follow(self, pods: I64, nodes: set[int]) -> None:
        """Offers that are kept learn of what has changed."""
        exhausted = self.allowances.exhausted()
        newly = exhausted & ~self._exhausted
        self._exhausted = exhausted
        touched = {*nodes, *self.future.roster.node[pods].tolist(), *self.future.roster.node[newly].tolist()}
        for offer in self._offers.values():
            offer.follow(self.future, exhausted, sorted(touched))


@dataclass(frozen=True)
class _ByPrice:
    """Nodes on which least would be lost first."""

    on_node: I64 = field(repr=False)

    def of_row(self, row: int, draft: Draft) -> I64:
        return self.on_node


def minimum_of(workload: Workload) -> Workload:
    """The workload with no more pods than start together; of one without a minimum, one pod."""
    sets = workload.pod_sets
    if not any(s.min_count for s in sets):
        first = next((s for s, one in enumerate(sets) if one.count), 0)
        sets = tuple(but(one, min_count=int(s == first)) for s, one in enumerate(sets))
    return but(workload, pod_sets=tuple(but(s, count=s.min_count) for s in sets), missing_pods=0)


def _better(one: _Outcome | None, other: _Outcome | None) -> _Outcome | None:
    if one is None or other is None:
        return one or other
    return other if other.price < one.price else one
