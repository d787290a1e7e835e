"""Who is next: what has begun, then queues within their quota, then by weighted share; inside a queue by priority
and age.

A gang of which a part is bound holds what it cannot use: the rest of it goes before everything that has not begun.

The order is a weighted fair one over the tree of queues: among the children of a queue each workload gets a
virtual time, what its child would hold beyond its guarantee once it ran, divided by the child's weight; the children's
orders are merged by it, level by level from the leaves up. With one queue it is priority and age alone. It is
worked out once a cycle, from what is held when the cycle starts. docs/internals/fair-share.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from berth.scheduling import kernels
from berth.scheduling.quota import NO_BOUND, Ledger
from berth.scheduling.shares import Shares
from berth.scheduling.waiting import Waiting

I64 = NDArray[np.int64]


def ordered(
    waiting: Waiting,
    milli: I64,
    asked: NDArray[np.float64],
    queue: NDArray[np.int32],
    ledger: Ledger,
    shares: Shares | None,
    turn: NDArray[np.float64] | None = None,
) -> tuple[I64, NDArray[np.bool_]]:
    """Indexes of those who wait, first to be decided first; and which of them go above their queue's quota.

    `milli`, `asked` and `queue` are (W,): GPU milli and value milli asked, and index of the queue that pays; `turn`
    (W,) takes the place of age.
    """
    count, begun = len(waiting), waiting.has_begun
    above_quota = np.zeros(count, bool)
    age = waiting.created_s if turn is None else turn
    by_age = _by_age(waiting.priority, age)
    if not count or ((queue == queue[0]).all() and not ledger.has_quotas):
        return by_age[np.argsort(~begun[by_age], kind="stable")], above_quota
    place = np.empty(count, np.int64)
    place[by_age] = np.arange(count)
    narrow = np.int16 if len(ledger.names) < 2**15 else np.int32  # the narrower, the faster it is sorted
    by_queue = by_age[np.argsort(queue[by_age].astype(narrow), kind="stable")]
    of_queue = queue[by_queue]
    first = np.append(0, (of_queue[1:] != of_queue[:-1]).nonzero()[0] + 1)
    begins = [*first.tolist(), count]
    own = {q: by_queue[i:j] for q, i, j in zip(of_queue[first].tolist(), begins, begins[1:], strict=False)}
    waited_in = sorted({above for q in own for above in ledger.chain(q)})
    children: dict[int, list[int]] = {}
    for q in waited_in:
        children.setdefault(int(ledger.parent[q]), []).append(q)
    quota = ledger.quota_in_all
    # One queue that states a quota shares with nobody.
    held = shares.held if shares is not None else np.zeros(len(ledger.names))
    base = shares.base if shares is not None else held
    weight = shares.weight if shares is not None else held

    def line(q: int) -> I64:
        """The workloads of a queue and of those below it, in their order; marks those above the quota."""
        parts = [(own[q], 0.0, 1.0)] if q in own else []
        parts += [(line(c), float(held[c] - base[c]), float(weight[c])) for c in children.get(q, ())]
        merged = _merged(parts, asked, place)
        if q >= 0 and quota[q] < NO_BOUND:
            above_quota[merged[ledger.used[q, -1] + np.cumsum(milli[merged]) > quota[q]]] = True
        return merged

    fair = line(-1)
    if not np.count_nonzero(begun) and not np.count_nonzero(above_quota):
        return fair, above_quota
    above_quota &= ~begun  # what was let in once is not asked again
    return fair[np.lexsort((np.arange(count), above_quota[fair], ~begun[fair]))], above_quota


def _by_age(priority: I64, age: NDArray[np.float64]) -> I64:
    """By priority and age, then as listed: mostly that is how they are listed."""
    if len(age) and not np.count_nonzero(priority != priority[0]) and not np.count_nonzero(age[1:] < age[:-1]):
        return np.arange(len(age))
    return np.lexsort((age, -priority))


def _merged(parts: Sequence[tuple[I64, float, float]], asked: NDArray[np.float64], place: I64) -> I64:
    """Lines merged by virtual time: (line, what is held beyond the guarantee, weight) each; ties by priority and age.
    A line of weight 0 comes after all others."""
    if not parts:
        return np.zeros(0, np.int64)
    if len(parts) == 1:
        return parts[0][0]
    lines = [line for line, _, _ in parts]
    members, lengths = np.concatenate(lines), np.array([len(line) for line in lines])
    beyond, weight = np.array([b for _, b, _ in parts]), np.array([w for _, _, w in parts])
    virtual_time = kernels.virtual_times(asked[members], np.cumsum(lengths) - lengths, beyond, weight)
    return members[np.lexsort((place[members], virtual_time))]
