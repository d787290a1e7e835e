"""The pods that run, as columns: where each stands, on which devices, and whether it may be moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Allocation
from berth.model.resources import get
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, LabelSelector, PodClass
from berth.scheduling.columns import predict
from berth.scheduling.draft import Draft
from berth.scheduling.neighbours import Neighbours, Who, matches
from berth.scheduling.quota import gpu_milli

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass
class Standing:
    """P pods, in the order of the snapshot. A pod that has no row in the tables is not moved.

    row, node  (P,) int64: class row, -1 for none; index of the node
    devices    (P,) int64 bit masks
    milli      (P,) int64: GPU milli held, what a move of the pod costs
    may_move   (P,) bool
    """

    row: I64
    node: I64
    devices: I64
    milli: I64
    may_move: Mask
    who: Sequence[Who | None]


def standing_of(snapshot: Snapshot, draft: Draft, frozen: Callable[[Allocation], bool] = lambda _: False) -> Standing:
    """The snapshot's allocations. The tables have rows only for classes that they were brought up to.

    Left alone: DaemonSets, what `frozen` names, pods that look at other pods or are looked at, and pods whose
    devices are not accounted for beyond doubt (an over-committed device, one out of service, a node that is
    not there).
    """
    tables, columns = draft.tables, draft.columns
    looked_at = _Looked(snapshot, draft.neighbours)
    count = len(snapshot.allocations)
    row, node = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    devices, milli = np.zeros(count, np.int64), np.zeros(count, np.int64)
    may_move = np.zeros(count, bool)
    who: list[Who | None] = []
    place = {id(a): p for p, a in enumerate(snapshot.allocations)}
    for p, a in enumerate(snapshot.allocations):
        one = Who(a.namespace, a.labels, a.pod_class)
        who.append(one)
        node[p] = columns.index.get(a.node, -1)
        row[p] = tables.rows.get(a.pod_class, -1)
        milli[p] = gpu_milli(a.pod_class.requests, a.pod_class.gpu_milli)
        settled = not (a.is_daemon or a.pod_class.unsupported or a.pod_class.unbound or looked_at.by_others(one))
        may_move[p] = node[p] >= 0 and row[p] >= 0 and settled and not frozen(a)
    for n in sorted({int(n) for n in node.tolist() if n >= 0}):
        held = tables.held_on(n)
        masks = _devices_on(draft, n, held)
        for a, mask in zip(held, masks, strict=True):
            p = place[id(a)]
            devices[p] = max(mask, 0)
            may_move[p] &= mask >= 0
    return Standing(row, node, devices, milli, may_move, who)


def _devices_on(draft: Draft, n: int, held: Sequence[Allocation]) -> list[int]:
    """The devices of each pod of a node as the columns count them; -1 where the account is not exact."""
    columns = draft.columns
    if columns.pool[n] < 0:
        return [0] * len(held)
    resource = columns.nodes[n].device_resource
    left = np.where(columns.device_free[n] >= 0, WHOLE, columns.device_free[n]).astype(np.int32)
    exact = True
    masks = [0] * len(held)
    # Named devices first, as in berth.scheduling.columns: a counted pod's devices are only a prediction.
    for told in (True, False):
        for i, a in enumerate(held):
            asked = get(a.pod_class.requests, resource)
            if bool(a.devices) is not told or not asked:
                continue
            given = a.devices if told else predict(left, asked, a.pod_class.gpu_milli)
            exact = exact and len(given) == asked
            for g in given:
                if not 0 <= g < len(left) or left[g] < a.pod_class.gpu_milli:
                    exact = False
                    continue
                left[g] -= a.pod_class.gpu_milli
                masks[i] |= 1 << g
    if exact and np.array_equal(left, columns.device_free[n]):
        return masks
    return [mask if not get(a.pod_class.requests, resource) else -1 for a, mask in zip(held, masks, strict=True)]


class _Looked:
    """Whether other pods look at a pod's labels, or it at theirs: then a move could break what they ask for."""

    def __init__(self, snapshot: Snapshot, neighbours: Neighbours | None) -> None:
        self.neighbours = neighbours
        self._selectors: set[LabelSelector] = set()
        if neighbours is not None:
            waiting: list[PodClass] = [s.pod_class for w in snapshot.workloads for s in w.pod_sets]
            for c in {id(c): c for c in (*waiting, *(a.pod_class for a in snapshot.allocations))}.values():
                self._selectors |= {term.selector for term in (*c.near, *c.apart)} | {s.selector for s in c.spread}

    def by_others(self, who: Who) -> bool:
        if self.neighbours is None:
            return False
        labels = dict(who.labels)
        return self.neighbours.concern(who) or any(matches(selector, labels) for selector in self._selectors)
