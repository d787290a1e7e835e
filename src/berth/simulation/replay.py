"""What a sequence of placements did to the cluster, load by load.

Every policy is measured by this replay and by nothing that it says itself. It also checks every placement:
no request is split, no resource is given twice, no GPU model that the pod excludes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from berth.base.staleness import forget_stale
from berth.simulation import fragmentation, offer
from berth.simulation.fragmentation import Tables, fragmented, tables
from berth.simulation.offer import PODS_PER_NODE, Offer, Placements

BREACHES = (
    "fits",
    "names a node that does not exist",
    "takes more CPU or memory than the node has free, or more pods than it takes",
    "puts the pod on a GPU model that it excludes",
    "gives another number of GPUs than the pod asks for",
    "gives a GPU that does not exist or has less free than the pod asks for",
    "changes a pod that has not arrived yet, or tells its changes out of order",
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
    placed_milli: int  # GPU milli that pods hold at the end
    moved_milli: int  # of each pod once a move


def measure(offered: Offer, placements: Placements) -> Curves:
    """Replay one run. Raises BrokenPlacement where a placement is impossible."""
    classes, nodes = offered.classes, offered.nodes
    asked = int((classes.num_gpu * classes.gpu_milli)[offered.class_of].sum())
    capacity = offered.capacity_milli
    loads = 100 * asked // capacity + 2
    most_gpus = int(nodes.gpus.max())
    sums, events, counts, breach, at = _replay(
        nodes,
        classes,
        offered.class_of,
        placements.node,
        placements.gpus,
        placements.changes,
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
    return Curves(means[0], means[1], means[2], len(offered.class_of), *counts.tolist())


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


class _State(NamedTuple):
    """What is free: cpu, memory and pods (N,), gpu (N, G) milli; and wasted (N,), FGD's fragmentation in weights."""

    cpu: NDArray[np.int64]
    memory: NDArray[np.int64]
    pods: NDArray[np.int64]
    gpu: NDArray[np.int32]
    wasted: NDArray[np.int64]


@njit
def enter(state, nodes, classes, c, n, given):
    """Put a pod of class c on a node and GPUs; the index of the breach where that is impossible."""
    k, d = classes.num_gpu[c], classes.gpu_milli[c]
    if n >= state.cpu.shape[0]:
        return 1
    state.cpu[n] -= classes.cpu_milli[c]
    state.memory[n] -= classes.memory_mib[c]
    state.pods[n] -= 1
    if state.cpu[n] < 0 or state.memory[n] < 0 or state.pods[n] < 0:
        return 2
    if k > 0 and (nodes.model[n] < 0 or not (classes.models[c] >> nodes.model[n]) & 1):
        return 3
    if ones(given) != k:
        return 4
    if given >> state.gpu.shape[1]:
        return 5
    for g in range(state.gpu.shape[1]):
        if (given >> g) & 1:
            state.gpu[n, g] -= d
            if state.gpu[n, g] < 0:
                return 5
    return 0


@njit
def leave(state, classes, c, n, given):
    """Take a pod that stands there off its node."""
    state.cpu[n] += classes.cpu_milli[c]
    state.memory[n] += classes.memory_mib[c]
    state.pods[n] += 1
    for g in range(state.gpu.shape[1]):
        if (given >> g) & 1:
            state.gpu[n, g] += classes.gpu_milli[c]


@njit
def waste(state, nodes, tables, n):
    """Work out the fragmentation of a node again; by how much it grew."""
    before = state.wasted[n]
    state.wasted[n] = fragmented(tables, nodes.model[n], state.cpu[n], state.gpu[n])
    return state.wasted[n] - before


@njit(cache=True)
def _replay(nodes, classes, class_of, node_of, gpus_of, changes, tables: Tables, most_gpus, capacity, loads):
    """Sums (3, loads) and pod events (loads,); pods that failed, GPU milli placed and moved; the breach and its pod."""
    count, arrivals = nodes.cpu_milli.shape[0], class_of.shape[0]
    state = _State(
        nodes.cpu_milli.copy(), nodes.memory_mib.copy(), np.full(count, PODS_PER_NODE, np.int64),
        np.zeros((count, most_gpus), np.int32), np.zeros(count, np.int64),
    )  # fmt: skip
    total_wasted = np.int64(0)
    for n in range(count):
        state.gpu[n, : nodes.gpus[n]] = 1000
        total_wasted += waste(state, nodes, tables, n)
    sums, events, counts = np.zeros((3, loads)), np.zeros(loads, np.int64), np.zeros(3, np.int64)
    on, held = np.full(arrivals, -1, np.int64), np.zeros(arrivals, np.int64)
    arrived, allocated, moved, done = np.int64(0), np.int64(0), np.int64(0), 0
    for p in range(arrivals + 1):
        while done < changes.pod.shape[0] and changes.before[done] <= p:
            q, n, given = changes.pod[done], changes.node[done], changes.gpus[done]
            if q < 0 or q >= p or n < 0 or changes.before[done] < p:
                return sums, events, counts, 6, max(0, min(q, arrivals - 1))
            c = class_of[q]
            breach = enter(state, nodes, classes, c, n, given)
            if breach:
                return sums, events, counts, breach, q
            milli = classes.num_gpu[c] * classes.gpu_milli[c]
            if on[q] < 0:
                allocated += milli
                counts[0] -= 1
            else:
                leave(state, classes, c, on[q], held[q])
                total_wasted += waste(state, nodes, tables, on[q])
                moved += milli
            on[q], held[q] = n, given
            total_wasted += waste(state, nodes, tables, n)
            done += 1
        if p == arrivals:
            break
        c = class_of[p]
        arrived += classes.num_gpu[c] * classes.gpu_milli[c]
        n, given = node_of[p], gpus_of[p]
        if n < 0:
            counts[0] += 1
        else:
            breach = enter(state, nodes, classes, c, n, given)
            if breach:
                return sums, events, counts, breach, p
            on[p], held[p] = n, given
            allocated += classes.num_gpu[c] * classes.gpu_milli[c]
            total_wasted += waste(state, nodes, tables, n)
        load = load_of(arrived, capacity)
        idle = capacity - allocated
        events[load] += 1
        sums[0, load] += 100.0 * idle / capacity
        sums[1, load] += 100.0 * total_wasted / (tables.weight * float(idle)) if idle > 0 else 0.0
        sums[2, load] += 100.0 * total_wasted / (tables.weight * float(capacity))
    counts[1], counts[2] = allocated, moved
    if done < changes.pod.shape[0]:
        return sums, events, counts, 6, 0
    return sums, events, counts, 0, 0


forget_stale(_replay, fragmentation, offer)
