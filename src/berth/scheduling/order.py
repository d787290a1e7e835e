"""Who is next: what has begun, then queues within their quota, then by weighted share; inside a queue by priority
and age.

A gang of which a part is bound holds what it cannot use: the rest of it goes before everything that has not begun.

The order is a weighted fair one over the tree of queues: among the children of a queue each workload gets a
virtual time, the GPUs that its child would hold once it ran, divided by the child's weight; the children's
orders are merged by it, level by level from the leaves up. With one queue it is priority and age alone. It is
worked out once a cycle, from what is held when the cycle starts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import Workload
from berth.scheduling.quota import NO_BOUND, Ledger

I64 = NDArray[np.int64]


def ordered(
    workloads: Sequence[Workload], milli: I64, queue: NDArray[np.int32], ledger: Ledger
) -> tuple[I64, NDArray[np.bool_]]:
    """Indexes of the workloads, first to be decided first; and which of them go above their queue's quota.

    `milli` and `queue` are (W,): GPU milli asked, and index of the queue that pays.
    """
    count = len(workloads)
    priority = np.fromiter((w.priority for w in workloads), np.int64, count)
    created = np.fromiter((w.created_s for w in workloads), np.float64, count)
    above_quota = np.zeros(count, bool)
    by_age = np.lexsort((np.arange(count), created, -priority))  # priority, age, then as listed
    begun = np.fromiter((w.has_begun for w in workloads), bool, count)
    if not count or (len(np.unique(queue)) < 2 and not ledger.has_quotas):
        return by_age[np.argsort(~begun[by_age], kind="stable")], above_quota
    place = np.empty(count, np.int64)
    place[by_age] = np.arange(count)
    children: dict[int, list[int]] = {}
    for q, parent in enumerate(ledger.parent.tolist()):
        children.setdefault(parent, []).append(q)
    own: dict[int, list[int]] = {}
    for w in by_age.tolist():
        own.setdefault(int(queue[w]), []).append(w)
    quota = _quota_in_all(ledger)

    def line(q: int) -> I64:
        """The workloads of a queue and of those below it, in their order; marks those above the quota."""
        parts = [(np.array(own[q], np.int64), 0, 1)] if q in own else []
        parts += [(line(c), int(ledger.used[c, -1]), int(ledger.weight[c])) for c in children.get(q, ())]
        parts = [part for part in parts if len(part[0])]
        merged = _merged(parts, milli, place)
        if q >= 0 and quota[q] < NO_BOUND:
            above_quota[merged[ledger.used[q, -1] + np.cumsum(milli[merged]) > quota[q]]] = True
        return merged

    fair = line(-1)
    above_quota &= ~begun  # what was let in once is not asked again
    return fair[np.lexsort((np.arange(count), above_quota[fair], ~begun[fair]))], above_quota


def _merged(parts: Sequence[tuple[I64, int, int]], milli: I64, place: I64) -> I64:
    """Lines merged by virtual time: (line, milli held, weight) each; ties by priority and age."""
    if not parts:
        return np.zeros(0, np.int64)
    if len(parts) == 1:
        return parts[0][0]
    members = np.concatenate([line for line, _, _ in parts])
    virtual_time = np.concatenate([(held + np.cumsum(milli[line])) / weight for line, held, weight in parts])
    return members[np.lexsort((place[members], virtual_time))]


def _quota_in_all(ledger: Ledger) -> I64:
    """(Q,) the quota over all GPU classes; a queue that states quotas by class only is guaranteed their sum."""
    quota = ledger.quota[:, -1].copy()
    by_class = ledger.quota[:, :-1]
    named = by_class < NO_BOUND
    only_by_class = (quota >= NO_BOUND) & named.any(axis=1)
    quota[only_by_class] = np.where(named, by_class, 0).sum(axis=1)[only_by_class]
    return quota
