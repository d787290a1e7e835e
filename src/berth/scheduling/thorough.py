"""Two ways to make room that look at the whole: clear everything and see who may stay, or try every set of pods."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import WHOLE
from berth.scheduling.clearing import NEVER
from berth.scheduling.draft import Draft
from berth.scheduling.proof import Ask, Outcome, Prover
from berth.scheduling.regions import Region
from berth.scheduling.wishes import whole_wishes

I64 = NDArray[np.int64]

ATTEMPTS = 8  # with more and more pods barred


def by_clearing(ask: Ask, region: Region, prover: Prover) -> Outcome | None:
    """All that may leave the cheapest nodes does, the workload is placed, and who is not in the way stays."""
    roster, draft = prover.future.roster, prover.draft
    fits = ask.would_do(draft) & region.nodes
    on_node = np.zeros(len(fits), np.int64)
    there = np.flatnonzero(ask.may_leave)
    np.add.at(on_node, roster.node[there], np.minimum(ask.price[there], NEVER // len(ask.price)))
    nodes = np.flatnonzero(fits & (on_node > 0))
    nodes = nodes[np.argsort(on_node[nodes], kind="stable")][: prover.policy.nodes_cleared]
    cleared = np.zeros(len(fits), bool)
    cleared[nodes] = True
    pods = there[cleared[roster.node[there]]]
    barred = np.zeros(len(ask.may_leave), bool)
    for _ in range(ATTEMPTS):
        pods = pods[~barred[pods]]
        if not pods.size:
            return None
        wanted = pods[np.argsort(ask.price[pods], kind="stable")]
        leaving = prover.allowances.closed(wanted, ask.may_leave, True, ask.respected)
        if not leaving.barred.size:
            return prover.proven(ask, leaving.pods, region.nodes, region.nodes, _ByPrice(on_node))
        barred[leaving.barred] = True
    return None


@dataclass(frozen=True)
class _ByPrice:
    """Nodes on which least would be lost first."""

    on_node: I64 = field(repr=False)

    def of_row(self, row: int, draft: Draft) -> I64:
        return self.on_node


def every_set(ask: Ask, best: Outcome | None, prover: Prover) -> Outcome | None:
    """Every set of pods, the cheapest first, where few may leave; `best` where none is cheaper."""
    roster, policy = prover.future.roster, prover.policy
    pods = np.flatnonzero(ask.may_leave)
    pods = pods[ask.would_do(prover.draft)[roster.node[pods]]]
    if not 0 < len(pods) <= policy.exact_pods:
        return best
    limit = best.counts if best is not None else NEVER
    sets: dict[bytes, tuple[int, I64]] = {}
    for bits in range(1, 1 << len(pods)):
        some = pods[[bool(bits >> i & 1) for i in range(len(pods))]]
        leaving = prover.allowances.closed(some, ask.may_leave, True, ask.respected)
        price = int(ask.price[leaving.pods].sum())
        if not leaving.barred.size and price < limit:
            sets[leaving.pods.tobytes()] = (price, leaving.pods)
    too_little: list[set[int]] = []
    for tests, (price, some) in enumerate(sorted(sets.values(), key=lambda s: (s[0], s[1].tolist()))):
        if tests == policy.exact_tests:
            break
        members = set(some.tolist())
        if any(members <= other for other in too_little):
            continue
        if prover.is_enough(ask, some):
            return Outcome(price, some, ask.allowed, price)
        too_little.append(members)
    return best


def is_plain(ask: Ask, prover: Prover) -> bool:
    """What clearing costs node by node is exact: one set, no domain, no budget, and devices that are all alike."""
    if len(ask.order) > 1 or prover.allowances.budgets or prover.is_odd(ask):
        return False
    row = ask.rows[ask.order[0]]
    asks = np.concatenate([prover.draft.tables.ask[[row]], prover.future.roster.ask])
    has_shares = ((asks[:, 1] > 0) & (asks[:, 2] < WHOLE)).any()
    return not (prover.draft.tables.ask[row, 3] or has_shares or whole_wishes(ask.workload))
