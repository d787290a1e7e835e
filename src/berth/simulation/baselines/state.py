"""The cluster while a run places pods: free resources by node, and what all six policies share.

N nodes, G GPUs on the largest. CPU and GPU are milli-units, memory is MiB. Slots beyond a node's own GPUs
hold 0 free, so that no loop needs to know how many it has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from berth.model.trace import Int
from berth.simulation.offer import PODS_PER_NODE, Nodes

WHOLE = 1000
# The published scores are relative to one fixed node shape, not to the node at hand.
NODE_CPU_MILLI = 128_000
NODE_GPU_MILLI = 8_000


class State(NamedTuple):
    """Free resources. `full`, `largest`, `idle` follow from `gpu`, kept because every score asks for them;
    `affinity` has bit 0 set where a pod that shares a GPU runs, bit k where one of k whole GPUs runs."""

    cpu: Int
    memory: Int
    pods: Int
    gpu: NDArray[np.int32]  # (N, G)
    full: Int
    largest: Int
    idle: Int
    gpus: Int
    model: Int
    affinity: Int


def empty_cluster(nodes: Nodes) -> State:
    """All free."""
    count, most = len(nodes.gpus), int(nodes.gpus.max())
    gpu = np.where(np.arange(most) < nodes.gpus[:, None], WHOLE, 0).astype(np.int32)
    return State(
        cpu=nodes.cpu_milli.copy(),
        memory=nodes.memory_mib.copy(),
        pods=np.full(count, PODS_PER_NODE, np.int64),
        gpu=gpu,
        full=nodes.gpus.copy(),
        largest=np.where(nodes.gpus > 0, WHOLE, 0).astype(np.int64),
        idle=nodes.gpus * WHOLE,
        gpus=nodes.gpus,
        model=nodes.model,
        affinity=np.zeros(count, np.int64),
    )


@njit(inline="always")
def fits(state, n, cpu, memory, num_gpu, gpu_milli, models):
    """Whether node n can take the request now."""
    # One expression without short cuts: each test alone is a coin toss, which costs more than all of them.
    room = state.largest[n] >= gpu_milli if gpu_milli < WHOLE else state.full[n] >= num_gpu
    allowed = ((models >> max(state.model[n], 0)) & 1) != 0
    return (
        (state.cpu[n] >= cpu) & (state.memory[n] >= memory) & (state.pods[n] > 0) & ((num_gpu == 0) | (allowed & room))
    )


@njit
def tightest_gpu(gpu, gpu_milli):
    """The GPU with the least free that still fits, the lowest index of equals. One must fit."""
    best, least = -1, WHOLE + 1
    for g in range(gpu.shape[0]):
        if gpu_milli <= gpu[g] < least:
            best, least = g, gpu[g]
    return best


@njit
def first_full_gpus(gpu, num_gpu):
    """The bit set of the lowest-indexed wholly free GPUs. There must be enough."""
    chosen, left = np.int64(0), num_gpu
    for g in range(gpu.shape[0]):
        if left > 0 and gpu[g] == WHOLE:
            chosen |= np.int64(1) << g
            left -= 1
    return chosen


@njit
def take(state, n, cpu, memory, num_gpu, gpu_milli, chosen):
    """Give the request to node n on the GPUs of the bit set `chosen`."""
    state.cpu[n] -= cpu
    state.memory[n] -= memory
    state.pods[n] -= 1
    if num_gpu == 0:
        return
    full, largest = np.int64(0), np.int64(0)
    for g in range(state.gpu.shape[1]):
        if (chosen >> g) & 1:
            state.gpu[n, g] -= gpu_milli
        free = np.int64(state.gpu[n, g])
        largest = max(largest, free)
        if free == WHOLE:
            full += 1
    state.full[n] = full
    state.largest[n] = largest
    state.idle[n] -= num_gpu * gpu_milli
    state.affinity[n] |= np.int64(1) << (num_gpu if gpu_milli == WHOLE else 0)
