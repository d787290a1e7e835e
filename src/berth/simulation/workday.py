"""The built-in day: the built-in cluster with jobs, services and a few telling mistakes, in order of arrival.

The cluster does not start empty: the same arrivals are drawn for the days before, and what would still run at
midnight comes first, with the time that is left to it.

Of the pods that arrive within the day (seed 42), 12.6 % ask for no GPU, 35.5 % for a share of one, 46.7 %
for one and 5.3 % for several; in openb it is 13.3, 37.8, 48.0 and 0.9 %. Those for several are more
because large jobs follow Philly and ITP, where 6.8 and 16.8 % of the jobs ask for more than one GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import Struct

from berth.model.demand import Demand
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, Workload
from berth.simulation import builtin
from berth.simulation.jobs import DAY_S, DAYS_BEFORE, Arrival, jobs
from berth.simulation.mistakes import mistakes
from berth.simulation.services import replicas


class Day(Struct, frozen=True):
    """A cluster and what is offered to it.

    `workloads` are in order of arrival, `runs_s[i]` is how long workload i runs once it has started. Seconds
    count from midnight; what arrived before 0 is carried over from the days before.
    """

    name: str
    seed: int
    cluster: Snapshot
    workloads: tuple[Workload, ...]
    runs_s: tuple[float, ...]
    length_s: float = DAY_S


def builtin_day(seed: int = 42) -> Day:
    """The built-in cluster and its day. The same seed gives the same day."""
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn = [arrival for day in range(-DAYS_BEFORE, 1) for arrival in jobs(rng, day)]
    drawn.extend(replicas(rng))
    drawn.extend(mistakes())
    # A stable sort: what comes in the same instant keeps the order in which it was drawn.
    drawn.sort(key=lambda a: a.workload.created_s)
    yesterday = [a for a in drawn if -DAY_S <= a.workload.created_s < 0]
    here = [_left(a) for a in drawn if a.workload.created_s + a.runs_s > 0]
    return Day(
        name="built-in",
        seed=seed,
        cluster=msgspec.structs.replace(builtin.cluster(), demand=popularity(yesterday)),
        workloads=tuple(a.workload for a in here),
        runs_s=tuple(a.runs_s for a in here),
    )


def _left(arrival: Arrival) -> Arrival:
    """Of a run that began before midnight, what is left of it."""
    return Arrival(arrival.workload, arrival.runs_s + min(0.0, arrival.workload.created_s))


def popularity(arrivals: Sequence[Arrival]) -> Demand:
    """Pod classes with their share of pod time, the largest first.

    Pods that run longer are met more often when room is needed (Little's law: pods there = arrival rate × time),
    so a class weighs as many pods as it has running on average, not as many as arrive.
    """
    held: Counter[PodClass] = Counter()
    for arrival in arrivals:
        for pod_set in arrival.workload.pod_sets:
            held[pod_set.pod_class] += round(pod_set.count * arrival.runs_s)
    total = sum(held.values())
    ranked = held.most_common()
    return Demand(tuple(c for c, _ in ranked), tuple(n / total for _, n in ranked))
