"""Demand where nobody states it: what runs and what waits."""

from __future__ import annotations

from berth.model.demand import Demand
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass
from berth.scheduling.crowd import Crowd

MOST = 64  # pod classes that stand for what is likely to be asked for next


def demand_seen(snapshot: Snapshot, crowd: Crowd | None = None) -> Demand:
    """The most common pod classes among the pods that run, DaemonSets left out, and those that wait.

    Counting what runs weighs a class by its pod time (Little's law), which is how often it is met when room is
    needed; what waits is asked for now. Classes of equal count come in the order in which they are met. `crowd` are
    the snapshot's pods, where they are at hand.
    """
    if crowd is None:
        crowd = Crowd()
        crowd.follow(snapshot.allocations)
    counts: dict[PodClass, int] = dict(crowd.counts())
    for workload in snapshot.workloads:
        for pod_set in workload.pod_sets:
            counts[pod_set.pod_class] = counts.get(pod_set.pod_class, 0) + pod_set.count
    common = sorted((c for c in counts if counts[c]), key=lambda c: -counts[c])[:MOST]
    return Demand(tuple(common), tuple(float(counts[c]) for c in common))
