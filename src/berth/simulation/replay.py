"""What a sequence of placements did to the cluster, load by load.

Every policy is measured by this replay and by nothing that it says itself. It also checks every placement:
no request is split, no resource is given twice, no GPU model that the pod excludes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from berth.base.staleness import forget_stale
from berth.simulation import fragmentation, offer
from berth.simulation.fragmentation import Tables, fragmented, tables
from berth.simulation.offer import PODS_PER_NODE, Offer, Placements

BREACHES = (
    "",
    "names a node that does not exist",
    "takes more CPU or memory than the node has free, or more pods than it takes",
    "puts the pod on a GPU model that it excludes",
    "gives another number of GPUs than the pod asks for",
    "gives a GPU that does not exist or has less free than the pod asks for",
)


class BrokenPlacement(Exception):
    """A policy answered with something that the cluster does not have: a fault of the policy."""


@dataclass(frozen=True)
class Curves:
    """Means over the pod events at each load; index x is x % of the GPUs arrived, NaN where none fell on it.

    All in percent: `unallocated` and `fragmented` of capacity, `frag_rate` of the idle GPU.
    """

    unallocated: NDArray[np.float64]
    frag_rate: NDArray[np.float64]
    fragmented: NDArray[np.float64]
    offered: int
    failed: int


def measure(offered: Offer, placements: Placements) -> Curves:
    """Replay one run. Raises BrokenPlacement where a placement is impossible."""
    classes, nodes = offered.classes, offered.nodes
    asked = int((classes.num_gpu * classes.gpu_milli)[offered.class_of].sum())
    capacity = offered.capacity_milli
    loads = 100 * asked // capacity + 2
    most_gpus = int(nodes.gpus.max())
    sums, events, failed, breach, at = _replay(
        nodes,
        classes,
        offered.class_of,
        placements.node,
        placements.gpus,
        tables(offered.typical, offered.models, most_gpus),
        most_gpus,
        capacity,
        loads,
    )
    if breach:
        raise BrokenPlacement(
            f"pod {at} of the offer, class {offered.class_of[at]}, on node "
            f"{placements.node[at]}: the policy {BREACHES[breach]}."
        )
    with np.errstate(invalid="ignore"):
        means = sums / events
    return Curves(means[0], means[1], means[2], len(offered.class_of), int(failed))


@njit
def load_of(arrived, capacity):
    """Arrived GPU milli in whole percent of capacity, halves to even, exactly."""
    twice = 200 * arrived + capacity
    load = twice // (2 * capacity)
    if twice == load * 2 * capacity and load & 1:
        load -= 1
    return load


@njit
def ones(bits):
    """How many bits are set."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@njit(cache=True)
def _replay(nodes, classes, class_of, node_of, gpus_of, tables: Tables, most_gpus, capacity, loads):
    count = nodes.cpu_milli.shape[0]
    cpu = nodes.cpu_milli.copy()
    memory = nodes.memory_mib.copy()
    pods = np.full(count, PODS_PER_NODE, np.int64)
    gpu = np.zeros((count, most_gpus), np.int32)
    wasted = np.zeros(count, np.int64)
    total_wasted = np.int64(0)
    for n in range(count):
        gpu[n, : nodes.gpus[n]] = 1000
        wasted[n] = fragmented(tables, nodes.model[n], cpu[n], gpu[n])
        total_wasted += wasted[n]
    sums = np.zeros((3, loads), np.float64)
    events = np.zeros(loads, np.int64)
    arrived, allocated, failed = np.int64(0), np.int64(0), 0
    for p in range(class_of.shape[0]):
        c = class_of[p]
        k, d = classes.num_gpu[c], classes.gpu_milli[c]
        arrived += k * d
        n, given = node_of[p], gpus_of[p]
        if n < 0:
            failed += 1
        else:
            if n >= count:
                return sums, events, failed, 1, p
            cpu[n] -= classes.cpu_milli[c]
            memory[n] -= classes.memory_mib[c]
            pods[n] -= 1
            if cpu[n] < 0 or memory[n] < 0 or pods[n] < 0:
                return sums, events, failed, 2, p
            if k > 0 and (nodes.model[n] < 0 or not (classes.models[c] >> nodes.model[n]) & 1):
                return sums, events, failed, 3, p
            if ones(given) != k:
                return sums, events, failed, 4, p
            if given >> most_gpus:
                return sums, events, failed, 5, p
            for g in range(most_gpus):
                if (given >> g) & 1:
                    gpu[n, g] -= d
                    if gpu[n, g] < 0:
                        return sums, events, failed, 5, p
            allocated += k * d
            before = wasted[n]
            wasted[n] = fragmented(tables, nodes.model[n], cpu[n], gpu[n])
            total_wasted += wasted[n] - before
        load = load_of(arrived, capacity)
        idle = capacity - allocated
        events[load] += 1
        sums[0, load] += 100.0 * idle / capacity
        sums[1, load] += 100.0 * total_wasted / (tables.weight * float(idle)) if idle > 0 else 0.0
        sums[2, load] += 100.0 * total_wasted / (tables.weight * float(capacity))
    return sums, events, failed, 0, 0


forget_stale(_replay, fragmentation, offer)
