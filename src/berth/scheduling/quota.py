"""Who may use how much: quota and limit of each queue, by GPU class, all the way up the tree.

Amounts are GPU milli. The last column of every table is `*`, all classes together. NO_BOUND where a queue
states nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.model.paying import Payers, payers_of
from berth.model.queue import ANY_CLASS, Queue
from berth.model.resources import Resources, is_accelerator
from berth.model.workload import PodSet, Workload

T = TypeVar("T")
I64 = NDArray[np.int64]
NO_BOUND = 2**62
MOST_MILLI = 2**50  # of one pod or workload: what is absurd stays a number
MOST_GPUS = 10**9  # of a quota or a limit, and of a weight
ALL_BUT = "all but "  # how those are called who are not in a queue that does not lend


@dataclass(frozen=True)
class Fence:
    """All queues but one that does not lend, and those below it, together: (C + 1,) milli that they may use, so that
    its quota stays there for it, and what they do. `inside` are the queues that are not among them."""

    name: str
    inside: frozenset[int]
    limit: I64
    used: I64

    def anew(self) -> Fence:
        """Nobody uses anything yet."""
        return Fence(self.name, self.inside, self.limit, np.zeros_like(self.used))

    def take(self, gpu_class: int, milli: int) -> None:
        if gpu_class >= 0:
            self.used[gpu_class] += milli
        self.used[-1] += milli


@dataclass
class Ledger:
    """What each queue holds and may hold.

    parent                (Q,) int32: index of the parent, -1 at the top
    weight                (Q,) int64, 0 for who has what no other wants
    quota, limit, used    (Q, C + 1) int64 milli: by GPU class, and `*` last
    fences                around queues that do not lend, where the tree alone cannot say it
    others                index of the queue above all but the one that does not lend, where it can; -1
    elsewhere             (C + 1,) int64 milli that pods hold of whose queue nobody asks here
    """

    names: tuple[str, ...]
    queues: tuple[Queue, ...]
    index: Mapping[str, int]
    payers: Payers
    classes: tuple[str, ...]
    parent: NDArray[np.int32]
    weight: I64
    quota: I64
    limit: I64
    used: I64
    elsewhere: I64
    fences: tuple[Fence, ...] = ()
    others: int = -1
    stated_limit: I64 | None = None  # before anything was taken elsewhere
    told: dict[Hashable, Any] = field(default_factory=dict)  # what follows from all but `used`
    _rooms: dict[int, I64] = field(default_factory=dict)

    def anew(self) -> Ledger:
        """The same queues, of which nobody uses anything yet."""
        limit = self.limit if self.stated_limit is None else self.stated_limit
        fences = tuple([fence.anew() for fence in self.fences])
        return Ledger(
            self.names, self.queues, self.index, self.payers, self.classes, self.parent, self.weight, self.quota, limit,
            np.zeros_like(self.used), np.zeros_like(self.elsewhere), fences, self.others, told=self.told,
        )  # fmt: skip

    def _once(self, what: str, make: Callable[[], T]) -> T:
        """What follows from what queues state, whatever they use."""
        if what not in self.told:
            self.told[what] = make()
        found: T = self.told[what]
        return found

    @property
    def has_limits(self) -> bool:
        return self._once("has limits", lambda: bool(self.fences) or bool((self.limit < NO_BOUND).any()))

    @property
    def bounded(self) -> NDArray[np.bool_]:
        """(Q,) queues that have a limit, are below one that has, or outside of a fence."""
        return self._once("bounded", self._bounded)

    def _bounded(self) -> NDArray[np.bool_]:
        own: NDArray[np.bool_] = np.logical_or.reduce(self.limit < NO_BOUND, axis=1)
        if not own.any() and not self.fences:
            return own
        count = len(self.names)
        return np.array([own[self.chain(q)].any() or any(self._fences_of(q)) for q in range(count)], bool)

    def _fences_of(self, q: int) -> list[Fence]:
        return [fence for fence in self.fences if q not in fence.inside]

    @property
    def limits_classes(self) -> bool:
        """Some limit is on a GPU class, not on all of them together."""
        return self._once(
            "limits classes", lambda: bool(self.fences) or bool((self.limit[:, :-1] < NO_BOUND).any())
        )  # fmt: skip

    @property
    def has_quotas(self) -> bool:
        return self._once("has quotas", lambda: bool((self.quota < NO_BOUND).any()))

    @property
    def quota_in_all(self) -> I64:
        """(Q,) the quota over all GPU classes; a queue that states quotas by class only is guaranteed their sum."""
        return self._once("quota in all", self._quota_in_all)

    def _quota_in_all(self) -> I64:
        quota = self.quota[:, -1].copy()
        by_class = self.quota[:, :-1]
        named = by_class < NO_BOUND
        only_by_class = (quota >= NO_BOUND) & named.any(axis=1)
        quota[only_by_class] = np.where(named, by_class, 0).sum(axis=1)[only_by_class]
        return quota

    def queue_of(self, queue: str, namespace: str) -> int:
        """The queue that pays (model/paying.py)."""
        found = self.index.get(self.payers.of(queue, namespace))
        return self.index.get(namespace, 0) if found is None else found

    def chain(self, q: int) -> list[int]:
        """The queue and those above it."""
        above: list[int] | None = self.told.get(q)
        if above is None:
            above = self.told[q] = [q]
            while (parent := int(self.parent[above[-1]])) >= 0 and parent not in above:
                above.append(parent)
        return above

    def take(self, q: int, gpu_class: int, milli: int) -> None:
        """Book `milli` of a GPU class (-1: a class that nobody names) on a queue and on those above it."""
        for above in self.chain(q):
            if gpu_class >= 0:
                self.used[above, gpu_class] += milli
            self.used[above, -1] += milli
        for fence in self._fences_of(q) if self.fences else ():
            fence.take(gpu_class, milli)
        self._rooms.clear()

    def take_elsewhere(self, gpu_class: int, milli: int) -> None:
        """What pods hold of whose queue nobody asks here: nobody pays for it, and what is not lent is kept from it."""
        for column in {gpu_class, -1}:
            self.elsewhere[column] += milli
        for fence in self.fences:
            fence.take(gpu_class, milli)
        if self.others >= 0:
            if self.stated_limit is None:
                self.stated_limit, self.limit = self.limit, self.limit.copy()
            for column in {gpu_class, -1}:
                self.limit[self.others, column] = max(self.limit[self.others, column] - milli, 0)
        self._rooms.clear()

    def was_used(self) -> None:
        """`used` is not what it was: somebody else has counted."""
        self._rooms.clear()

    def room(self, q: int) -> I64:
        """(C + 1,) milli that the queue may still take: the least along its chain, `*` last."""
        room = self._rooms.get(q)
        if room is None:
            chain = self.chain(q)
            room = self._rooms[q] = (self.limit[chain] - self.used[chain]).min(axis=0)
            for fence in self._fences_of(q) if self.fences else ():
                room = self._rooms[q] = np.minimum(room, fence.limit - fence.used)
        return room

    def bound(self, q: int) -> I64:
        """(C + 1,) milli that the queue may use at most, whatever runs: the least along its chain."""
        bound: I64 = self.limit[self.chain(q)].min(axis=0)
        for fence in self._fences_of(q) if self.fences else ():
            bound = np.minimum(bound, fence.limit)
        return bound

    def tightest(self, q: int, column: int) -> str:
        """The name of the queue of the chain, or of all but one that does not lend, whose limit leaves least in a
        column."""
        chain = self.chain(q)
        least = chain[int(np.argmin((self.limit - self.used)[chain, column]))]
        found = [(int((self.limit - self.used)[least, column]), self.names[least])]
        found += [(int(fence.limit[column] - fence.used[column]), fence.name) for fence in self._fences_of(q)]
        return min(found, key=lambda one: one[0])[1]


def ledger_of(
    queues: Sequence[Queue],
    classes: Sequence[str],
    named: Sequence[str],
    capacity: Callable[[], I64] | None = None,
) -> Ledger:
    """A ledger with nothing used. `named` are queues that pay: those without an object get one each. `capacity` gives
    (C + 1,) milli of the cluster; it is asked where a queue does not lend."""
    known = {q.name for q in queues}
    implicit = [Queue(name, is_stated=False) for name in dict.fromkeys(named) if name not in known]
    everyone = [*queues, *implicit] or [Queue("default")]
    keepers = [q for q in everyone if not q.lending and q.quota] if capacity is not None else []
    # Around one queue at the top the tree can say it: all others get a queue above them.
    fenced = keepers if len(keepers) > 1 or any(q.parent in known for q in keepers) else []
    keepers = [] if fenced else keepers
    if keepers:
        rest = Queue(f"{ALL_BUT}{keepers[0].name}", is_stated=False)
        everyone = [*(q if q.parent in known or q in keepers else replace(q, parent=rest.name) for q in everyone), rest]
    index = {q.name: i for i, q in enumerate(everyone)}
    column = {name: i for i, name in enumerate(classes)}
    shape = (len(everyone), len(classes) + 1)
    quota, limit = np.full(shape, NO_BOUND, np.int64), np.full(shape, NO_BOUND, np.int64)
    for i, queue in enumerate(everyone):
        for table, amounts in ((quota, queue.quota), (limit, queue.limit)):
            for name, gpus in amounts:
                if name == ANY_CLASS:
                    table[i, -1] = min(gpus, MOST_GPUS) * 1000
                elif name in column:
                    table[i, column[name]] = min(gpus, MOST_GPUS) * 1000
        if keepers and capacity is not None and i == len(everyone) - 1:  # what nobody keeps for itself
            limit[i] = np.maximum(capacity() - _kept(keepers, column, len(classes)), 0)
        if not queue.borrowing:  # what is guaranteed is all that it may use
            limit[i] = np.minimum(limit[i], quota[i])
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
    fences: tuple[Fence, ...] = ()
    if fenced and capacity is not None:
        there = capacity()
        fences = tuple(_fence(queue, index[queue.name], parent, column, there) for queue in fenced)
    return Ledger(
        names=tuple(q.name for q in everyone),
        queues=tuple(everyone),
        index=index,
        payers=payers_of(queues),
        classes=tuple(classes),
        parent=np.array(parent, np.int32),
        weight=np.array([min(max(q.weight, 0), MOST_GPUS) for q in everyone], np.int64),
        quota=quota,
        limit=limit,
        used=np.zeros(shape, np.int64),
        elsewhere=np.zeros(len(classes) + 1, np.int64),
        fences=fences,
        others=len(everyone) - 1 if keepers else -1,
    )


def _fence(queue: Queue, q: int, parent: Sequence[int], column: Mapping[str, int], capacity: I64) -> Fence:
    inside = set[int]()
    for other in range(len(parent)):
        above = other
        while above >= 0 and above != q:
            above = parent[above]
        if above == q:
            inside.add(other)
    limit = np.maximum(capacity - _kept([queue], column, len(capacity) - 1), 0)
    return Fence(f"{ALL_BUT}{queue.name}", frozenset(inside), limit, np.zeros(len(capacity), np.int64))


def _kept(keepers: Sequence[Queue], column: Mapping[str, int], classes: int) -> I64:
    """(C + 1,) milli of the quotas that are not lent. A quota of any class is kept of all of them together."""
    kept = np.zeros(classes + 1, np.int64)
    for queue in keepers:
        amounts = dict(queue.quota)
        for name, gpus in amounts.items():
            if name in column:
                kept[column[name]] += min(gpus, MOST_GPUS) * 1000
        kept[-1] += min(amounts.get(ANY_CLASS, sum(amounts.values())), MOST_GPUS) * 1000
    return kept


@lru_cache(maxsize=65536)
def gpu_milli(requests: Resources, milli: int) -> int:
    """GPU milli of one pod: a device, a partition and a replica each count as one GPU's worth of `milli`."""
    return min(sum(amount * milli for name, amount in requests if is_accelerator(name)), MOST_MILLI)


def milli_of(workload: Workload, minimum: bool = False) -> int:
    """GPU milli of all pods of a workload, or of its minimum."""
    return milli_of_sets(workload.pod_sets, minimum)


def milli_of_sets(pod_sets: Sequence[PodSet], minimum: bool = False) -> int:
    """GPU milli of all pods of some pod sets, or of their minimum."""
    milli = sum(
        (s.min_count if minimum else s.count) * gpu_milli(s.pod_class.requests, s.pod_class.gpu_milli) for s in pod_sets
    )
    return min(milli, MOST_MILLI)
