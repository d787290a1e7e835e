"""Fragmentation of a node: how much of its idle GPU the typical pods could not use.

F_n(m) is all idle milli of node n where class m cannot run on it or asks for no GPU, else the idle milli on
GPUs too small for m; F_n(M) is its mean by popularity. Source: FGD, USENIX ATC 2023, section 3.

The compiled form works with counts instead of popularities, so that every sum is an exact integer: what it
returns is F_n(M) x the number of typical pods. A single-GPU class that fits the largest GPU runs, hence what
class m can use is a sum over GPUs, and one table by (model, CPU rank, milli rank) replaces the loop over
classes; classes of several GPUs take whole ones only, and get a table by (model, CPU rank, free GPUs).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from berth.model.trace import Int
from berth.simulation.typical import TypicalPods

WHOLE = 1000


class Tables(NamedTuple):
    """What the typical pods can use, summed beforehand. T models, L CPU levels, D milli levels.

    `cpu_levels` (L,) ascending; `milli_rank` (1001,): how many milli levels are <= r; `single` (T, L+1, D+1):
    pods of one GPU that run with so much CPU on a GPU with so much free; `several` (T, L+1, G+1): the same
    for pods of several GPUs, by the number of free GPUs; `weight`: typical pods.
    """

    cpu_levels: Int
    milli_rank: Int
    single: Int
    several: Int
    weight: int


def tables(typical: TypicalPods, models: tuple[str, ...], most_gpus: int) -> Tables:
    """Sum the typical pods for a cluster of these models whose largest node has `most_gpus` GPUs."""
    wants = typical.num_gpu > 0
    cpu_levels = np.unique(typical.cpu_milli[wants])
    milli_levels = np.unique(typical.gpu_milli[wants & (typical.num_gpu == 1)])
    milli_rank = np.searchsorted(milli_levels, np.arange(WHOLE + 1), side="right").astype(np.int64)
    rows = max(len(models), 1)
    single = np.zeros((rows, len(cpu_levels) + 1, len(milli_levels) + 1), np.int64)
    several = np.zeros((rows, len(cpu_levels) + 1, most_gpus + 1), np.int64)
    for m in np.flatnonzero(wants).tolist():
        from_cpu = int(np.searchsorted(cpu_levels, typical.cpu_milli[m])) + 1
        for t, model in enumerate(models):
            if typical.specs[m] and model not in typical.specs[m]:
                continue
            if typical.num_gpu[m] == 1:
                from_milli = int(np.searchsorted(milli_levels, typical.gpu_milli[m])) + 1
                single[t, from_cpu:, from_milli:] += typical.count[m]
            else:
                several[t, from_cpu:, typical.num_gpu[m] :] += typical.count[m]
    return Tables(cpu_levels, milli_rank, single, several, typical.weight)


@njit(inline="always")
def cpu_rank(tables, cpu):
    """How many CPU levels `cpu` milli reach."""
    low, high = 0, tables.cpu_levels.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if tables.cpu_levels[middle] <= cpu:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def fragmented(tables, model, cpu, gpu):
    """F_n(M) x weight of a node of GPU model `model` with `cpu` milli free and `gpu` (G,) milli free."""
    if model < 0:
        return np.int64(0)
    rank = cpu_rank(tables, cpu)
    idle, usable, full = np.int64(0), np.int64(0), 0
    for g in range(gpu.shape[0]):
        free = np.int64(gpu[g])
        idle += free
        usable += free * tables.single[model, rank, tables.milli_rank[free]]
        if free == WHOLE:
            full += 1
    usable += WHOLE * full * tables.several[model, rank, full]
    return idle * tables.weight - usable


def fragmented_plain(typical: TypicalPods, model: str, cpu: int, gpu: Sequence[int]) -> int:
    """F_n(M) x weight, in the words of the definition."""
    total = 0
    for m in range(len(typical.count)):
        milli, needed, spec = int(typical.gpu_milli[m]), int(typical.num_gpu[m]), typical.specs[m]
        runs = (
            milli > 0
            and (not spec or model in spec)
            and cpu >= typical.cpu_milli[m]
            and sum(free >= milli for free in gpu) >= needed
        )
        total += int(typical.count[m]) * sum(free for free in gpu if not runs or free < milli)
    return total
