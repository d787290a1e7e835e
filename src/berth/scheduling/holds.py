"""Holds in the draft: what is kept for one workload is not there for others, except for those of higher priority.

What a hold keeps of a node is what its pods ask for, less what the pods that leave for it still hold there and will
give back. It is taken off the draft when a cycle begins, and put back while its own workload, or one of strictly
higher priority that finds no other place, is tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Allocation
from berth.model.hold import Hold
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, Workload
from berth.scheduling import kernels
from berth.scheduling.columns import numbers
from berth.scheduling.draft import Draft
from berth.scheduling.waiting import Rows

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]


@dataclass
class Kept:
    """A hold that counts, with what is taken off the draft for it.

    pods    by node: (pod set, pods) that it has there
    leaving by node: positions, among the node's allocations, of the pods that leave for it and are still there
    started by node: class row and devices of pods of this cycle that have left when it begins
    taken   by node: amounts (R,) and milli of devices (G,) that are off the draft at the moment
    """

    hold: Hold
    workload: int
    priority: int
    pods: dict[int, list[tuple[int, int]]]
    leaving: dict[int, list[int]]
    started: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    taken: dict[int, tuple[I64, I32]] = field(default_factory=dict)

    @property
    def nodes(self) -> I64:
        return np.array(sorted(self.pods), np.int64)


def holds_of(snapshot: Snapshot, draft: Draft) -> list[Kept]:
    """The holds that count: not expired, for a workload that waits. Of several for one workload the last."""
    if not snapshot.holds:
        return []
    waiting = {w.identity: i for i, w in enumerate(snapshot.workloads)}
    found: dict[int, Kept] = {}
    for hold in snapshot.holds:
        w = waiting.get(hold.workload)
        if w is None or hold.until_s <= snapshot.now_s:
            continue
        workload = snapshot.workloads[w]
        if hold.uid and workload.uid and hold.uid != workload.uid:
            continue  # another one of the same name
        if kept := kept_of(hold, w, workload, draft):
            found[w] = kept
    return list(found.values())


def kept_of(hold: Hold, w: int, workload: Workload, draft: Draft) -> Kept | None:
    """A hold as the draft sees it; None where nothing of it is there (any more)."""
    index = draft.columns.index
    sets = {s.name: i for i, s in enumerate(workload.pod_sets)}
    left = [s.count for s in workload.pod_sets]
    pods: dict[int, list[tuple[int, int]]] = {}
    for place in hold.places:
        s, n = sets.get(place.pod_set, -1), index.get(place.node, -1)
        count = min(place.count, left[s]) if s >= 0 else 0
        if n >= 0 and count > 0:
            left[s] -= count
            pods.setdefault(n, []).append((s, count))
    if not pods:
        return None
    goes = {(one.namespace, one.name): one.uid for one in hold.leaving}
    leaving: dict[int, list[int]] = {}
    for n in pods if goes else ():
        held = draft.tables.held_on(n)
        if there := [i for i, a in enumerate(held) if _is_meant(a, goes)]:
            leaving[n] = there
    return Kept(hold, w, workload.priority, pods, leaving)


def _is_meant(a: Allocation, goes: dict[tuple[str, str], str]) -> bool:
    uid = goes.get((a.namespace, a.name))
    return uid is not None and (not uid or not a.uid or uid == a.uid)


def keep(holds: Iterable[Kept], rows: Rows, draft: Draft) -> None:
    """Take off the draft what these holds keep; what has gone otherwise meanwhile is not kept."""
    touched: set[int] = set()
    for kept in holds:
        for n, pods in kept.pods.items():
            _keep_on(n, pods, kept, rows[kept.workload], draft)
            touched.add(n)
    if touched:
        draft.recount(np.array(sorted(touched), np.int64))


def _keep_on(n: int, pods: Sequence[tuple[int, int]], kept: Kept, rows: Sequence[int], draft: Draft) -> None:
    tables, columns, pool = draft.tables, draft.columns, draft.columns.pool[n]
    free, left = draft.free[n].copy(), draft.device_free[n].copy()
    for i in kept.leaving.get(n, ()):
        need, ask = numbers(tables.held_on(n)[i].pod_class, columns)
        kernels.take(-1, columns.masks[n][i], need, ask, free, left, pool)
    for row, devices in kept.started.get(n, ()):
        kernels.take(-1, devices, tables.need[row], tables.ask[row], free, left, pool)
    for s, count in pods:
        row = rows[s]
        kernels.put_what_fits(count, tables.need[row], tables.ask[row], free, left, columns.island[n], pool)
    now_free, now_left = draft.free[n], draft.device_free[n]
    free, left = np.minimum(now_free, np.maximum(free, 0)), np.minimum(now_left, left)
    if pool >= 0:
        free[pool] = np.count_nonzero(left == WHOLE)
    kept.taken[n] = (now_free - free, now_left - left)
    draft.free[n], draft.device_free[n] = free, left


def give_back(holds: Iterable[Kept], draft: Draft) -> None:
    """Put back on the draft what these holds keep."""
    touched: set[int] = set()
    for kept in holds:
        for n, (free, left) in kept.taken.items():
            draft.free[n] += free
            draft.device_free[n] += left
            pool = draft.columns.pool[n]
            if pool >= 0:
                draft.free[n, pool] = np.count_nonzero(draft.device_free[n] == WHOLE)
            touched.add(n)
        kept.taken.clear()
    if touched:
        draft.recount(np.array(sorted(touched), np.int64))
