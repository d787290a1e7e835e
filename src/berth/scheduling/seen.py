"""Demand where nobody states it: what runs and what waits."""

from __future__ import annotations

from berth.model.demand import Demand
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass

MOST = 64  # pod classes that stand for what is likely to be asked for next


def demand_seen(snapshot: Snapshot) -> Demand:
    """The most common pod classes among the pods that run, DaemonSets left out, and those that wait.

    Counting what runs weighs a class by its pod time (Little's law), which is how often it is met when room is
    needed; what waits is asked for now. Classes of equal count come in the order in which they are met.
    """
    held: dict[int, int] = {}
    by_id: dict[int, PodClass] = {}
    for allocation in snapshot.allocations:
        if not allocation.is_daemon:
            key = id(allocation.pod_class)
            held[key] = held.get(key, 0) + 1
            by_id[key] = allocation.pod_class
    counts: dict[PodClass, int] = {}
    for key, count in held.items():
        counts[by_id[key]] = counts.get(by_id[key], 0) + count
    for workload in snapshot.workloads:
        for pod_set in workload.pod_sets:
            counts[pod_set.pod_class] = counts.get(pod_set.pod_class, 0) + pod_set.count
    common = sorted((c for c in counts if counts[c]), key=lambda c: -counts[c])[:MOST]
    return Demand(tuple(common), tuple(float(counts[c]) for c in common))
