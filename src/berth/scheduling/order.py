"""Who is next: queues within their quota first, then by weighted share; inside a queue by priority and age.

The order is a weighted fair one: each workload gets a virtual time, the GPUs that its queue would hold once it
ran, divided by the queue's weight. With one queue it is priority and age alone. It is worked out once a
cycle, from what is held when the cycle starts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import Workload
from berth.scheduling.quota import Ledger


def ordered(
    workloads: Sequence[Workload], milli: NDArray[np.int64], queue: NDArray[np.int32], ledger: Ledger
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Indexes of the workloads, first to be decided first; and which of them go above their queue's quota.

    `milli` and `queue` are (W,): GPU milli asked, and index of the queue that pays.
    """
    count = len(workloads)
    priority = np.fromiter((w.priority for w in workloads), np.int64, count)
    created = np.fromiter((w.created_s for w in workloads), np.float64, count)
    above_quota = np.zeros(count, bool)
    within = np.lexsort((np.arange(count), created, -priority))  # priority, age, then as listed
    if not count or (len(np.unique(queue)) < 2 and not ledger.has_quotas):
        return within, above_quota
    held = ledger.used[:, -1].copy()
    quota = ledger.quota[:, -1].copy()
    by_class = ledger.quota[:, :-1]
    named = by_class < 2**62
    # A queue that states quotas by class only is guaranteed their sum.
    only_by_class = (quota >= 2**62) & named.any(axis=1)
    quota[only_by_class] = np.where(named, by_class, 0).sum(axis=1)[only_by_class]
    virtual_time = np.empty(count)
    for w in within.tolist():
        q = queue[w]
        held[q] += milli[w]
        above_quota[w] = held[q] > quota[q]
        virtual_time[w] = held[q] / ledger.weight[q]
    place = np.empty(count, np.int64)
    place[within] = np.arange(count)
    return np.lexsort((place, virtual_time, above_quota)), above_quota
