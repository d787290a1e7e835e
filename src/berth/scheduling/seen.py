"""Demand where nobody states it: what runs and what waits."""

from __future__ import annotations

from berth.model.demand import Demand
from berth.model.snapshot import Snapshot
from berth.scheduling.crowd import Crowd
from berth.scheduling.waiting import Register, Waiting

DIGITS = 4  # of a count, binary
MOST = 64  # pod classes that stand for what is likely to be asked for next


def demand_seen(snapshot: Snapshot, crowd: Crowd | None = None, waiting: Waiting | None = None) -> Demand:
    """The most common pod classes among the pods that run, DaemonSets left out, and those that wait.

    Counting what runs weighs a class by its pod time (Little's law), which is how often it is met when room is
    needed; what waits is asked for now. Counts are rough, and classes of equal count come in the order in which they
    are met. `crowd` are the snapshot's pods and `waiting` its workloads, where they are at hand.
    """
    if crowd is None:
        crowd = Crowd()
        crowd.follow(snapshot.allocations)
    counts = crowd.counts()
    if waiting is None:
        waiting = Register().read(snapshot.workloads)
    for pod_class, count in waiting.pods():
        code = crowd.code(pod_class)
        counts[code] = counts.get(code, 0) + count
    rounded = {code: rough(count) for code, count in counts.items() if count}
    common = sorted(rounded, key=lambda code: -rounded[code])[:MOST]
    return Demand(tuple([crowd.classes[code] for code in common]), tuple([float(rounded[code]) for code in common]))


def rough(count: int) -> int:
    """A count to four binary digits: what is expected stays the same while pods come and go one by one."""
    unit = 1 << max(count.bit_length() - DIGITS, 0)
    return (count + unit // 2) // unit * unit
