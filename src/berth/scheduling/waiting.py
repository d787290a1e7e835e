"""Who waits, in columns: of each workload it is read once what a cycle asks of it, and kept as long as it waits.

Thousands wait for hours while cycles come and go, so a cycle must not read each of them again. What is kept depends on
the workload alone; which queue pays and which class rows it asks for is worked out per distinct payer and distinct
pod sets (workloads that are alike share their pod sets).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import PodClass, PodSet, TopologyWish, Workload
from berth.scheduling import kernels
from berth.scheduling.crowd import align
from berth.scheduling.quota import milli_of_sets

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
PodSets = tuple[PodSet, ...]
Payer = tuple[str, str]  # the queue that it names, its namespace

SPARE = 1024  # workloads that are kept beyond twice those that wait


class Ask(NamedTuple):
    """What pod sets ask for: their class rows, GPU milli of all pods, and a number that those alike share."""

    rows: tuple[int, ...]
    milli: int
    number: int


@dataclass(frozen=True)
class Waiting:
    """Columns of one cycle, (W,) each: `kind` into `kinds` and `payer` into `payers`, both in the order in which they
    are met; `wish` the same for those with the same wish for a domain.

    is_plain   a lone pod without gates, topology, or anything that keeps it of itself
    is_kept    something of its own keeps it: gates, owners, volumes
    stays      it must not be asked to leave once it runs
    """

    kind: I64
    payer: I64
    priority: I64
    wish: I64
    created_s: F64
    limit_s: F64
    has_begun: Mask
    is_plain: Mask
    is_kept: Mask
    stays: Mask
    kinds: tuple[PodSets, ...]
    codes: tuple[int, ...]  # of the kinds, in the register
    payers: tuple[Payer, ...]

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def of_kind(self) -> list[int]:
        return self.kind.tolist()  # type: ignore[no-any-return]

    @cached_property
    def count(self) -> I64:
        """(K,) workloads of each kind."""
        return np.bincount(self.kind, minlength=len(self.kinds))

    def pods(self) -> Iterator[tuple[PodClass, int]]:
        """Pod classes and how many such pods wait, as they are met."""
        for sets, count in zip(self.kinds, self.count.tolist(), strict=True):
            for pod_set in sets:
                yield pod_set.pod_class, pod_set.count * count


class Rows:
    """(W,) the class rows of the pod sets of each."""

    def __init__(self, asks: Sequence[Ask], waits: Waiting) -> None:
        self._asks, self._kind = asks, waits.of_kind

    def __getitem__(self, w: int) -> tuple[int, ...]:
        return self._asks[self._kind[w]].rows


class Register:
    """Kept from cycle to cycle. A cache and nothing else."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._at: dict[int, int] = {}  # of each workload that was read, by its identity as an object
        self._read: list[Workload] = []  # keeps them alive, and with them their identities
        self._last: tuple[Sequence[Workload], I64] = ((), np.zeros(0, np.int64))  # who waited, and where they are
        self._whole: I64 = np.zeros((4, 0), np.int64)  # kind, payer, priority, wish
        self._seconds: F64 = np.zeros((2, 0))  # created, time limit
        self._is: Mask = np.zeros((4, 0), bool)  # has begun, plain, kept, stays
        self._kind_at: dict[int, int] = {}
        self._kinds: list[PodSets] = []
        self._payer_at: dict[Payer, int] = {}
        self._payers: list[Payer] = []
        self._wishes: dict[tuple[TopologyWish, ...], int] = {}
        self.forget_rows()

    def forget_rows(self) -> None:
        """Class rows are numbered anew."""
        self._asks: dict[int, Ask] = {}
        self._numbers: dict[object, int] = {}
        self._values: tuple[bytes, dict[int, float]] = (b"", {})

    def read(self, workloads: Sequence[Workload]) -> Waiting:
        if len(self._read) > 2 * len(workloads) + SPARE:
            self._begin()
        source = align(self._last[0], workloads)
        at = np.where(source < 0, -1, self._last[1][source]) if len(self._last[1]) else source
        if len(new := np.flatnonzero(at < 0)):
            came = [workloads[w] for w in new.tolist()]
            self._take(came)
            at[new] = [self._at[id(w)] for w in came]
        self._last = (workloads, at)
        whole, seconds, flags = (each.take(at, 1) for each in (self._whole, self._seconds, self._is))
        kind, codes = kernels.numbered_as_met(whole[0], len(self._kinds))
        payer, payers = kernels.numbered_as_met(whole[1], len(self._payers))
        met = tuple(codes.tolist())
        return Waiting(
            kind, payer, whole[2], whole[3], seconds[0], seconds[1], flags[0], flags[1], flags[2], flags[3],
            tuple([self._kinds[c] for c in met]), met, tuple([self._payers[c] for c in payers.tolist()]),
        )  # fmt: skip

    def asks(self, waiting: Waiting, row: Callable[[PodClass], int]) -> list[Ask]:
        """(K,) what each kind asks for."""
        found = []
        for code, sets in zip(waiting.codes, waiting.kinds, strict=True):
            ask = self._asks.get(code)
            if ask is None:
                rows = tuple([row(s.pod_class) for s in sets])
                alike = tuple([(r, s.count, s.min_count, s.topology) for r, s in zip(rows, sets, strict=True)])
                number = self._numbers.setdefault(alike, len(self._numbers))
                ask = self._asks[code] = Ask(rows, milli_of_sets(sets), number)
            found.append(ask)
        return found

    def values(self, worth: bytes) -> dict[int, float]:
        """By the code of a kind, what it asks for is worth, for whoever works it out; empty where class rows are worth
        something else than they were."""
        if self._values[0] != worth:
            self._values = (worth, {})
        return self._values[1]

    def _take(self, workloads: Sequence[Workload]) -> None:
        whole, seconds, flags = [], [], []
        for w in workloads:
            if id(w) in self._at:
                continue
            self._at[id(w)] = len(self._read)
            self._read.append(w)
            kind = self._kind_at.get(id(w.pod_sets))
            if kind is None:
                kind = self._kind_at[id(w.pod_sets)] = len(self._kinds)
                self._kinds.append(w.pod_sets)
            payer = self._payer_at.setdefault((w.queue, w.namespace), len(self._payers))
            if payer == len(self._payers):
                self._payers.append((w.queue, w.namespace))
            whole.append((kind, payer, w.priority, self._wishes.setdefault(w.topology, len(self._wishes))))
            seconds.append((w.created_s, w.time_limit_s))
            kept = bool(w.gates or w.unmet or w.awaited)
            flags.append((w.has_begun, not kept and _is_plain(w), kept, w.preemptible is False))
        start, end = len(self._read) - len(whole), len(self._read)
        if end > self._whole.shape[1]:  # room for as many again: those who come one by one are not copied each time
            more = ((0, 0), (0, end))
            self._whole, self._seconds = np.pad(self._whole, more), np.pad(self._seconds, more)
            self._is = np.pad(self._is, more)
        self._whole[:, start:end] = np.array(whole, np.int64).T
        self._seconds[:, start:end] = np.array(seconds, np.float64).T
        self._is[:, start:end] = np.array(flags, bool).T


def _is_plain(workload: Workload) -> bool:
    if len(workload.pod_sets) != 1 or workload.topology or workload.missing_pods or workload.held_off:
        return False
    one = workload.pod_sets[0]
    if one.count != 1 or one.min_count != 1 or one.topology:
        return False
    return not (one.pod_class.unsupported or one.pod_class.problems or one.pod_class.unbound)
