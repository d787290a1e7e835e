"""What it costs, node by node, to clear room for pods of one class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from berth.scheduling import clearing
from berth.scheduling.clearing import MOST_CELLS, NEVER
from berth.scheduling.draft import Draft
from berth.scheduling.future import Future
from berth.scheduling.roster import Roster

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_COPIES = 32  # of one class on one node that are told apart


@dataclass
class Offer:
    """K nodes that pods of class `row` may use, the P pods there that may leave, and what copies cost.

    nodes (K,); first (K + 1,): the pods of nodes[i] are first[i]:first[i + 1] of pods (P,), positions in the roster,
    the dearest first; kind, mask, price, out (P,) as in clearing; cost (K, C + 1), clearing.NEVER where it cannot be.
    """

    row: int
    roster: Roster
    steps: int
    nodes: I64
    first: I64
    pods: I64
    kind: I64
    mask: I64
    price: I64
    out: Mask
    cost: I64

    @classmethod
    def of(cls, row: int, need: int, allowed: Mask, pods: I64, price: I64, future: Future, steps: int) -> Offer:
        """`allowed` (N,) are the nodes; `pods` are positions of those that may leave, at `price`."""
        roster, draft = future.roster, future.draft
        allowed = allowed & (draft.tables.static[row] == 0)
        on = roster.node[pods]
        here = allowed[on]
        pods, price, on = pods[here], price[here], on[here]
        order = np.lexsort((pods, -price, on))
        pods, price, on = pods[order], price[order], on[order]
        holding = np.zeros(len(allowed), bool)
        holding[on] = True
        nodes = np.flatnonzero(allowed & (holding | (draft.copies[row] > 0)))
        offer = cls(
            row, roster, steps, nodes, np.searchsorted(on, np.append(nodes, len(allowed))).astype(np.int64), pods,
            roster.kind[pods], future.mask[pods], price, np.zeros(len(pods), bool), np.zeros((len(nodes), 1), np.int64),
        )  # fmt: skip
        copies = np.zeros(len(nodes), np.int64)
        clearing.most_copies(*offer._class(draft), nodes, offer.first, *offer._leavers(), *_amounts(draft), copies)
        most = int(min(copies.max(initial=0), need, MOST_COPIES))
        offer.cost = np.zeros((len(nodes), most + 1), np.int64)
        offer.count(np.arange(len(nodes)), draft)
        return offer

    def _class(self, draft: Draft) -> tuple[I64, I32]:
        return draft.tables.need[self.row], draft.tables.ask[self.row]

    def _leavers(self) -> tuple[I64, I64, Mask, I64, I32]:
        return self.kind, self.mask, self.out, self.roster.need, self.roster.ask

    def count(self, which: I64, draft: Draft) -> None:
        """Work out again what copies cost on the nodes at these positions."""
        clearing.cost_of_copies(
            *self._class(draft), self.steps, which, self.nodes, self.first, self.kind, self.mask, self.price, self.out,
            self.roster.need, self.roster.ask, *_amounts(draft), self.cost, np.zeros(len(self.pods), bool),
        )  # fmt: skip

    def at(self, nodes: Sequence[int]) -> I64:
        """Positions of nodes in the offer; those that are not in it are left out."""
        places = np.searchsorted(self.nodes, nodes)
        known = places < len(self.nodes)
        places = places[known]
        found: I64 = places[self.nodes[places] == np.asarray(nodes, np.int64)[known]]
        return found

    def follow(self, future: Future, stays: Mask, nodes: Sequence[int]) -> None:
        """Pods have left, on these nodes something has changed, and others (P of the roster,) must not leave."""
        self.out |= (future.gone | stays)[self.pods]
        self.mask = future.mask[self.pods]
        self.count(self.at(nodes), future.draft)

    def changed(self, barred: Mask, nodes: Sequence[int], draft: Draft) -> Offer:
        """The same where some pods (P of the roster,) must stay, and some nodes have changed."""
        out = self.out | barred[self.pods]
        changed = replace(self, out=out, cost=self.cost.copy())
        holding = self.roster.node[self.pods[out & ~self.out]]
        changed.count(self.at(np.union1d(holding, np.asarray(nodes, np.int64)).tolist()), draft)
        return changed

    def released(self, i: int, copies: int, draft: Draft) -> tuple[int, I64]:
        """The cost of so many copies at a position, and the pods that leave for it."""
        gone = np.zeros(len(self.pods), bool)
        n = int(self.nodes[i])
        begin, end = int(self.first[i]), int(self.first[i + 1])
        cost = clearing.release_least(
            *self._class(draft), copies, self.steps, begin, end, self.kind, self.mask, self.price, self.out,
            self.roster.need, self.roster.ask, draft.free[n], draft.device_free[n], draft.columns.island[n],
            draft.columns.pool[n], gone,
        )  # fmt: skip
        return int(cost), self.pods[begin:end][gone[begin:end]]

    def dealt(self, need: int, scope: Mask) -> tuple[int, list[tuple[int, int]]]:
        """What `need` copies cost at least on the nodes of a scope (N,), and (position, copies) of each node used."""
        inside = np.flatnonzero(scope[self.nodes])
        cost = self.cost[inside]
        counts = np.zeros(len(inside), np.int64)
        if not len(inside):
            return NEVER, []
        steps = self._steps(cost)
        is_convex = len(steps[0]) == int((cost[:, 1:] < NEVER).sum())
        if is_convex or need * cost.size > MOST_CELLS:
            node, size, _, order = steps
            total = clearing.deal_by_steps(cost, need, order, node, size, counts)
        else:
            total = clearing.deal(cost, need, counts)
        used = np.flatnonzero(counts)
        return int(total), list(zip(inside[used].tolist(), counts[used].tolist(), strict=True))

    def by_domain(self, need: int, domain: I64, count: int) -> I64:
        """(count,) the least that `need` copies can cost in each domain; `domain` (N,), -1 for none."""
        node, size, extra, order = self._steps(self.cost)
        cost = np.zeros(count, np.int64)
        clearing.cost_by_domain(need, order, domain[self.nodes][node], size, extra, cost)
        return cost

    @staticmethod
    def _steps(cost: I64) -> tuple[I64, I64, I64, I64]:
        """Steps of the cost of nodes: node, copies and cost of each, and the order from the cheapest."""
        room = max(cost.size, 1)
        node, size, extra = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64)
        slope = np.zeros(room, np.float64)
        count = clearing.steps_of(cost, node, size, extra, slope)
        order = np.argsort(slope[:count], kind="stable")
        return node[:count], size[:count], extra[:count], order


def _amounts(draft: Draft) -> tuple[I64, I32, I32, I32]:
    return draft.free, draft.device_free, draft.columns.island, draft.columns.pool
