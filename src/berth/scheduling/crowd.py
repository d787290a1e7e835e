"""The pods of the snapshot as codes, kept in step: what changed is found without a look at every pod.

A source keeps the objects of pods that did not change; those are recognised by identity, most of them many at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Allocation
from berth.model.workload import PodClass
from berth.scheduling import kernels
from berth.scheduling.quota import gpu_milli

T = TypeVar("T", bound=np.generic)
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

CHUNK = 256  # pods compared at a time
WINDOW = 64  # how far a pod is looked for after one that is not where it was
FEW = 8  # are compared one by one
MOST_MISSES = 512  # then all are looked up


class Crowd:
    """P pods in the order of the snapshot.

    kind    (P,) code of the class, into `classes`; payer (P,) code of (queue, namespace), into `payers`
    daemon  (P,) bool
    priority (P,); may_leave (P,) whatever its priority: no DaemonSet's, not ending, nobody says no; ending (P,)
    limited (P,) it has a run-time limit
    node    (P,) index of the node, -1 where it is not there
    """

    def __init__(self) -> None:
        self.allocations: Sequence[Allocation] = ()
        self.classes: list[PodClass] = []
        self.payers: list[tuple[str, str]] = []
        self._of_class: dict[PodClass, int] = {}
        self._of_object: dict[int, int] = {}
        self._objects: list[PodClass] = []  # keeps those alive whose identity is known
        self._of_payer: dict[tuple[str, str], int] = {}
        self._milli: list[int] = []
        self._whole: I64 = np.zeros((3, 0), np.int64)
        self._is: Mask = np.zeros((4, 0), bool)
        self.kind, self.payer, self.priority = self._whole
        self.daemon, self.ending, self.limited, self.may_leave = self._is
        self.node: I64 = np.zeros(0, np.int64)
        self.came: I64 = np.zeros(0, np.int64)  # positions of pods that are new since the last time
        self.gone: I64 = np.zeros(0, np.int64)  # positions that pods had which are gone
        self.left: I64 = np.zeros(0, np.int64)  # the nodes of those that are gone
        self.source: I64 = np.zeros(0, np.int64)  # (P,) positions that pods had, -1 for new ones
        self.before: Sequence[Allocation] = ()
        self.is_restarted = False  # what changed is not known: all nodes are counted anew
        self.is_settled = True

    def follow(self, allocations: Sequence[Allocation]) -> None:
        """Take in the pods of another snapshot; their nodes are found by `settle`."""
        self.before = self.allocations
        self.is_restarted = not self.is_settled
        self.is_settled = False
        if allocations is self.allocations:
            self.came = self.gone = np.zeros(0, np.int64)
            self.source = np.arange(len(allocations))
            return
        self.source = align(self.allocations, allocations)
        self.came = np.flatnonzero(self.source < 0)
        stays = np.zeros(len(self.allocations), bool)
        stays[self.source[self.source >= 0]] = True
        self.gone = np.flatnonzero(~stays)
        self.allocations = allocations
        if not len(self.came) and not len(self.gone) and len(stays) == len(self.source):
            return
        new = [allocations[p] for p in self.came.tolist()]
        self._whole = self._carried(
            self._whole, [(self.code(a.pod_class), self._payer(a), a.priority) for a in new]
        )  # fmt: skip
        self.kind, self.payer, self.priority = self._whole
        self._is = self._carried(self._is, [_flags(a) for a in new])
        self.daemon, self.ending, self.limited, self.may_leave = self._is

    def settle(self, index: Mapping[str, int], is_fresh: bool) -> I64:
        """Find the nodes of the new pods, or of all where nodes are numbered anew; the nodes whose pods changed."""
        self.is_settled = True
        if is_fresh or self.is_restarted:
            self.node = np.fromiter([index.get(a.node, -1) for a in self.allocations], np.int64, len(self.allocations))
            return np.arange(len(index))
        left = self.left = self.node[self.gone]
        node = self.node[self.source] if len(self.node) else np.zeros(len(self.source), np.int64)
        node[self.came] = [index.get(self.allocations[p].node, -1) for p in self.came.tolist()]
        self.node = node
        changed = np.unique(np.concatenate([left, node[self.came], node[_out_of_order(self.source)]]))
        return changed[changed >= 0]

    def on(self, nodes: I64, count: int) -> dict[int, list[Allocation]]:
        """The pods of some of `count` nodes, each in their order."""
        wanted = np.zeros(count + 1, bool)
        wanted[nodes] = True
        found: dict[int, list[Allocation]] = {int(n): [] for n in nodes}
        positions = np.flatnonzero(wanted[self.node])
        for n, p in zip(self.node[positions].tolist(), positions.tolist(), strict=True):
            found[n].append(self.allocations[p])
        return found

    def codes(self) -> int:
        """Classes and payers that have been met, those among them that are no more."""
        return len(self._objects) + len(self.payers)

    @property
    def milli(self) -> I64:
        """(classes,) GPU milli of one pod."""
        for pod_class in self.classes[len(self._milli) :]:
            self._milli.append(gpu_milli(pod_class.requests, pod_class.gpu_milli))
        return np.array(self._milli, np.int64)

    def counts(self) -> dict[int, int]:
        """Codes of the classes of pods that are no DaemonSet's and how many there are, in the order in which they are
        met."""
        number, met = kernels.numbered_as_met(self.kind[~self.daemon], len(self.classes))
        return dict(zip(met.tolist(), np.bincount(number, minlength=len(met)).tolist(), strict=True))

    def classes_there(self) -> list[PodClass]:
        """The classes of all pods."""
        return [self.classes[k] for k in np.flatnonzero(np.bincount(self.kind, minlength=1)).tolist()]

    def _carried(self, old: NDArray[T], new: Sequence[tuple[int, ...]]) -> NDArray[T]:
        """(K, P) columns with the values of pods that are new."""
        made = old.take(self.source, 1) if old.shape[1] else np.zeros((len(old), len(self.source)), old.dtype)
        if new:  # their source is -1, the last one's values until here
            made[:, self.came] = np.array(new, old.dtype).T
        return made

    def code(self, pod_class: PodClass) -> int:
        """The code of a class, whether a pod has it or not."""
        code = self._of_object.get(id(pod_class))
        if code is None:
            code = self._of_class.setdefault(pod_class, len(self.classes))
            if code == len(self.classes):
                self.classes.append(pod_class)
            self._of_object[id(pod_class)] = code
            self._objects.append(pod_class)
        return code

    def _payer(self, a: Allocation) -> int:
        code = self._of_payer.setdefault((a.queue, a.namespace), len(self.payers))
        if code == len(self.payers):
            self.payers.append((a.queue, a.namespace))
        return code


def _flags(a: Allocation) -> tuple[bool, bool, bool, bool]:
    """DaemonSet's, ending, limited, may leave. A DaemonSet's pod that ends comes back on the same node."""
    ends, stays = a.is_ending and not a.is_daemon, a.is_ending or a.is_daemon or a.preemptible is False
    return a.is_daemon, ends, a.time_limit_s > 0, not stays


def align(old: Sequence[object], new: Sequence[object]) -> I64:
    """(len(new),) where each was in `old`, by identity, -1 for a new one. Those that stay mostly keep their order."""
    source = np.full(len(new), -1, np.int64)
    i = j = misses = 0
    while i < len(old) and j < len(new):
        size = min(CHUNK, len(old) - i, len(new) - j)
        here, there = old[i : i + size], new[j : j + size]
        if here == there:
            source[j : j + size] = np.arange(i, i + size)
            i, j = i + size, j + size
            continue
        run = _alike(here, there)
        source[j : j + run] = np.arange(i, i + run)
        i, j = i + run, j + run
        if run == size:
            continue
        misses += 1
        if misses == MOST_MISSES:
            place = {id(a): p for p, a in enumerate(old)}
            source[j:] = [place.get(id(a), -1) for a in new[j:]]
            source[j:][source[j:] < i] = -1  # what was passed over has been counted as gone
            break
        removed = next((d for d, a in enumerate(old[i + 1 : i + 1 + WINDOW], 1) if a is new[j]), WINDOW + 1)
        added = next((d for d, b in enumerate(new[j + 1 : j + 1 + WINDOW], 1) if b is old[i]), WINDOW + 1)
        if removed <= added and removed <= WINDOW:
            i += removed
        elif added <= WINDOW:
            j += added
        else:
            i, j = i + 1, j + 1
    return source


def _alike(here: Sequence[object], there: Sequence[object]) -> int:
    """How many from the start on are the same: halves that are the same are not looked through one by one."""
    low, high = 0, len(here)
    while high - low > FEW:
        middle = (low + high) // 2
        if here[low:middle] == there[low:middle]:
            low = middle
        else:
            high = middle
    return next((r for r in range(low, high) if here[r] is not there[r]), high)


def _out_of_order(source: I64) -> Mask:
    """(P,) pods that stayed and come later now than one that came after them."""
    highest = np.maximum.accumulate(source) if len(source) else source
    mask: Mask = (source >= 0) & (source < highest)
    return mask
