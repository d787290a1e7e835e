"""Who may use how much: quota and limit of each queue, by GPU class, all the way up the tree.

Amounts are GPU milli. The last column of every table is `*`, all classes together. NO_BOUND where a queue
states nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from berth.model.paying import Payers, payers_of
from berth.model.queue import ANY_CLASS, Queue
from berth.model.resources import Resources, is_accelerator
from berth.model.workload import Workload

I64 = NDArray[np.int64]
NO_BOUND = 2**62
MOST_MILLI = 2**50  # of one pod or workload: what is absurd stays a number


@dataclass
class Ledger:
    """What each queue holds and may hold.

    parent                (Q,) int32: index of the parent, -1 at the top
    weight                (Q,) int64
    quota, limit, used    (Q, C + 1) int64 milli: by GPU class, and `*` last
    """

    names: tuple[str, ...]
    index: Mapping[str, int]
    payers: Payers
    classes: tuple[str, ...]
    parent: NDArray[np.int32]
    weight: I64
    quota: I64
    limit: I64
    used: I64

    @cached_property
    def has_limits(self) -> bool:
        return bool((self.limit < NO_BOUND).any())

    @cached_property
    def limits_classes(self) -> bool:
        """Some limit is on a GPU class, not on all of them together."""
        return bool((self.limit[:, :-1] < NO_BOUND).any())

    @cached_property
    def has_quotas(self) -> bool:
        return bool((self.quota < NO_BOUND).any())

    def queue_of(self, queue: str, namespace: str) -> int:
        """The queue that pays (model/paying.py)."""
        found = self.index.get(self.payers.of(queue, namespace))
        return self.index.get(namespace, 0) if found is None else found

    def chain(self, q: int) -> list[int]:
        """The queue and those above it."""
        above = [q]
        while (parent := int(self.parent[above[-1]])) >= 0 and parent not in above:
            above.append(parent)
        return above

    def take(self, q: int, gpu_class: int, milli: int) -> None:
        """Book `milli` of a GPU class (-1: a class that nobody names) on a queue and on those above it."""
        for above in self.chain(q):
            if gpu_class >= 0:
                self.used[above, gpu_class] += milli
            self.used[above, -1] += milli

    def room(self, q: int) -> I64:
        """(C + 1,) milli that the queue may still take: the least along its chain, `*` last."""
        chain = self.chain(q)
        room: I64 = (self.limit[chain] - self.used[chain]).min(axis=0)
        return room

    def bound(self, q: int) -> I64:
        """(C + 1,) milli that the queue may use at most, whatever runs: the least along its chain."""
        bound: I64 = self.limit[self.chain(q)].min(axis=0)
        return bound

    def tightest(self, q: int, column: int) -> int:
        """The queue of the chain whose limit leaves least in a column."""
        chain = self.chain(q)
        return chain[int(np.argmin((self.limit - self.used)[chain, column]))]


def ledger_of(queues: Sequence[Queue], classes: Sequence[str], named: Sequence[str]) -> Ledger:
    """A ledger with nothing used. `named` are queues that pay: those without an object get one each."""
    known = {q.name for q in queues}
    implicit = [Queue(name) for name in dict.fromkeys(named) if name not in known]
    everyone = [*queues, *implicit] or [Queue("default")]
    index = {q.name: i for i, q in enumerate(everyone)}
    column = {name: i for i, name in enumerate(classes)}
    shape = (len(everyone), len(classes) + 1)
    quota, limit = np.full(shape, NO_BOUND, np.int64), np.full(shape, NO_BOUND, np.int64)
    for i, queue in enumerate(everyone):
        for table, amounts in ((quota, queue.quota), (limit, queue.limit)):
            for name, gpus in amounts:
                if name == ANY_CLASS:
                    table[i, -1] = gpus * 1000
                elif name in column:
                    table[i, column[name]] = gpus * 1000
    parent = [index.get(q.parent, -1) for q in everyone]
    for q in range(len(parent)):
        # Queues that are each other's parents have none: a tree has a top.
        seen, above = {q}, q
        while (up := parent[above]) >= 0:
            if up in seen:
                parent[above] = -1
                break
            seen.add(up)
            above = up
    return Ledger(
        names=tuple(q.name for q in everyone),
        index=index,
        payers=payers_of(queues),
        classes=tuple(classes),
        parent=np.array(parent, np.int32),
        weight=np.array([max(q.weight, 1) for q in everyone], np.int64),
        quota=quota,
        limit=limit,
        used=np.zeros(shape, np.int64),
    )


@lru_cache(maxsize=65536)
def gpu_milli(requests: Resources, milli: int) -> int:
    """GPU milli of one pod: a device, a partition and a replica each count as one GPU's worth of `milli`."""
    return min(sum(amount * milli for name, amount in requests if is_accelerator(name)), MOST_MILLI)


def milli_of(workload: Workload, minimum: bool = False) -> int:
    """GPU milli of all pods of a workload, or of its minimum."""
    milli = sum(
        (s.min_count if minimum else s.count) * gpu_milli(s.pod_class.requests, s.pod_class.gpu_milli)
        for s in workload.pod_sets
    )
    return min(milli, MOST_MILLI)
