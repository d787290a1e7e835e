"""Due shares: how much of the cluster each queue is owed, from its weight, guarantee, demand and past usage.

The formulas and what they are taken from: docs/internals/fair-share.md. Amounts are value milli: thousandths of a GPU
times what an hour of its class is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import GpuClass
from berth.scheduling.quota import NO_BOUND, Ledger

Float = NDArray[np.float64]
I64 = NDArray[np.int64]

MOST_HALVINGS = 4.0  # of a weight by past usage: who has used everything waits, but not for ever


@dataclass(frozen=True)
class Shares:
    """By queue of the ledger, (Q,) each.

    worth   (C + 1,) value of a milli of each class, that of an unknown class last; `mean_worth` over the cluster
    held    what each queue held, with those below it, when this was worked out
    weight  with what was used in the past
    base    what is guaranteed and wanted; due  what is owed in all
    """

    worth: Float
    mean_worth: float
    held: Float
    weight: Float
    base: Float
    due: Float

    def held_now(self, ledger: Ledger) -> Float:
        """(Q,) what each queue holds now, with those below it."""
        return amounts(ledger.used, self.worth)


def worths(gpu_classes: Sequence[GpuClass]) -> Float:
    """(C + 1,) value of each class, and of one that is not known."""
    return np.array([*(max(c.value_per_hour, 0.0) for c in gpu_classes), 1.0])


def amounts(table: I64, worth: Float) -> Float:
    """(Q,) values of (Q, C + 1) milli by class, all together last: what is in no class counts as unknown."""
    by_class = table[:, :-1]
    amount: Float = by_class @ worth[:-1] + (table[:, -1] - by_class.sum(axis=1)) * worth[-1]
    return amount


def shares_of(
    ledger: Ledger,
    asked: Float,
    capacity: float,
    worth: Float,
    mean_worth: float,
    usage: Mapping[str, float],
    usage_weight: float,
) -> Shares:
    """What each queue is owed. `asked` (Q,) is what workloads of each queue itself wait for; `capacity` what there is
    to deal; `usage` the decayed value hours of queues that workloads name."""
    count, tree = len(ledger.names), _tree_of(ledger, worth, mean_worth)
    held = amounts(ledger.used, worth)
    # What pods hold whose queue nobody wrote and nobody waits in is not there to deal.
    others = [q for q in tree.implied if not asked[q]]
    capacity -= float(held[others].sum())
    children = _children_of(tree.parent, others) if others else tree.children
    used = _summed(_usage_of(usage, ledger), ledger)
    own = held + asked  # of workloads of the queue itself
    if len(tree.child):
        np.subtract.at(own, tree.parent_of_child, held[tree.child])
    demand = np.minimum(held + _summed(asked, ledger), tree.most)
    wanted, usage_of = demand.tolist(), used.tolist()
    guaranteed = _guaranteed(ledger, children, tree.quota, demand)
    weight, base, due = np.ones(count), np.zeros(count), np.zeros(count)
    due[others] = held[others]
    todo = [(-1, max(capacity, 0.0))]
    while todo:
        parent, room = todo.pop()
        if (some := children.get(parent)) is None:
            continue
        weights = _weights([tree.weight[q] for q in some], [usage_of[q] for q in some], usage_weight)
        mine = [float(own[parent])] if parent >= 0 and own[parent] > 0 else []  # like one more child
        owed = sum(guaranteed[q] for q in some)
        cut = min(1.0, room / owed) if owed > 0 else 1.0
        bases = [guaranteed[q] * cut for q in some]
        beyond = [max(wanted[q] - have, 0.0) for q, have in zip(some, bases, strict=True)]
        more = filled([*weights, *(1.0 for _ in mine)], [*beyond, *mine], max(room - sum(bases), 0.0))
        for q, w, b, m in zip(some, weights, bases, more, strict=False):
            weight[q], base[q], due[q] = w, b, b + m
            todo.append((q, b + m))
    return Shares(worth, mean_worth, held, weight, base, due)


@dataclass(frozen=True)
class _Tree:
    """What stays of a ledger while its use changes: parents and weights by queue, (Q,) values of quotas and of the most
    that each may have, the queues that nobody wrote and that are no parents, and all that have parents with these."""

    parent: list[int]
    children: dict[int, list[int]]
    child: I64
    parent_of_child: I64
    weight: list[int]
    quota: Float
    most: Float
    implied: list[int]


def _tree_of(ledger: Ledger, worth: Float, mean_worth: float) -> _Tree:
    key = ("tree", worth.tobytes(), mean_worth)
    found: _Tree | None = ledger.told.get(key)
    if found is None:
        quota, limit = _quotas(ledger.quota, worth, mean_worth), _limits(ledger.limit, mean_worth)
        borrows = [queue.borrowing for queue in ledger.queues]
        parents = {q.parent for q in ledger.queues}
        implied = [q for q, one in enumerate(ledger.queues) if not one.is_stated and one.name not in parents]
        parent, child = ledger.parent.tolist(), (ledger.parent >= 0).nonzero()[0]
        found = ledger.told[key] = _Tree(
            parent, _children_of(parent, ()), child, ledger.parent[child].astype(np.int64), ledger.weight.tolist(),
            quota, np.where(borrows, limit, np.minimum(limit, quota)), implied,
        )  # fmt: skip
    return found


def _children_of(parent: Sequence[int], others: Sequence[int]) -> dict[int, list[int]]:
    """The queues below each, without some."""
    children: dict[int, list[int]] = {}
    for q, above in enumerate(parent):
        if q not in others:
            children.setdefault(above, []).append(q)
    return children


def filled(weight: Sequence[float], wanted: Sequence[float], room: float) -> list[float]:
    """Weighted max-min: amounts rise in proportion to weights until one has what it wants; what it does not want is
    the others'. Who has weight 0 gets what no other wants."""
    got = [0.0] * len(wanted)
    for owed in ([i for i, w in enumerate(weight) if w > 0], [i for i, w in enumerate(weight) if w <= 0]):
        left = sum(weight[i] if weight[i] > 0 else 1.0 for i in owed)
        for i in sorted(owed, key=lambda i: wanted[i] / weight[i] if weight[i] > 0 else wanted[i]):
            mine = weight[i] if weight[i] > 0 else 1.0
            got[i] = min(wanted[i], room * mine / left)
            room = max(room - got[i], 0.0)
            left -= mine
    return got


def due_shares(weight: Float, wanted: Float, capacity: float) -> Float:
    """(Q, B) what is due without guarantees, for (Q,) weights and (Q, B) wanted amounts, each column by itself."""
    weights = weight.tolist()
    return np.array([filled(weights, column, float(capacity)) for column in wanted.T.tolist()]).T.reshape(wanted.shape)


def _weights(weight: Sequence[int], used: Sequence[float], usage_weight: float) -> list[float]:
    """Halved for each time that a queue has used its part among its siblings, by weight."""
    of_all, in_all = sum(weight), sum(used)
    if in_all <= 0 or usage_weight <= 0:
        return [float(w) for w in weight]
    return [
        w * 2.0 ** -min(usage_weight * (u / in_all) / (w / of_all), MOST_HALVINGS) if w > 0 else 0.0
        for w, u in zip(weight, used, strict=True)
    ]


def _summed(of_each: Float, ledger: Ledger) -> Float:
    """(Q,) amounts with those of the queues below."""
    total = of_each.astype(np.float64).copy()
    for q in np.flatnonzero(of_each).tolist():
        for above in ledger.chain(q)[1:]:
            total[above] += of_each[q]
    return total


def _usage_of(usage: Mapping[str, float], ledger: Ledger) -> Float:
    used = np.zeros(len(ledger.names))
    for name, hours in usage.items():
        if (q := ledger.index.get(name)) is not None:
            used[q] += hours
    return used


def _guaranteed(ledger: Ledger, children: Mapping[int, Sequence[int]], quota: Float, demand: Float) -> list[float]:
    """What each queue is guaranteed of what it wants, and what those below it are."""
    found = [0.0] * len(ledger.names)
    if not ledger.has_quotas:
        return found

    def of(q: int) -> float:
        below = sum(of(c) for c in children.get(q, ()))
        own = float(quota[q]) if np.isfinite(quota[q]) else 0.0
        found[q] = max(below, min(own, float(demand[q])) if ledger.queues[q].lending else own)
        return found[q]

    for top in children.get(-1, ()):
        of(top)
    return found


def _quotas(table: I64, worth: Float, mean_worth: float) -> Float:
    """(Q,) values of quotas: of those by class, and of what `*` says beyond them at the mean; infinite for none."""
    stated = table < NO_BOUND
    by_class = np.where(stated, table, 0)[:, :-1]
    rest = np.where(stated[:, -1], np.maximum(table[:, -1] - by_class.sum(axis=1), 0), 0) * mean_worth
    value: Float = np.where(stated.any(axis=1), by_class @ worth[:-1] + rest, np.inf)
    return value


def _limits(table: I64, mean_worth: float) -> Float:
    """(Q,) values of limits over all classes; infinite for none. One class's limit says nothing of the others."""
    value: Float = np.where(table[:, -1] < NO_BOUND, table[:, -1] * mean_worth, np.inf)
    return value
