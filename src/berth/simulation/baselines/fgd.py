"""FGD, fragmentation gradient descent: where the placement makes fragmentation grow least.

The score is floor(100 sigmoid(decrease of F_n(M) in GPUs)). Its truncation to an integer is part of the
algorithm: it merges nodes whose gradients nearly agree, and the fixed order of ties then packs them.
Source: Weng et al., USENIX ATC 2023.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numba import njit

from berth.simulation.baselines.plain import WHOLE, Node, PlainPolicy, Pod, whole_or_tightest
from berth.simulation.fragmentation import cpu_rank, fragmented_plain
from berth.simulation.typical import TypicalPods


@njit(inline="always")
def quantised(decrease, weight):
    """The integer score of a decrease of F_n(M) x weight; 50 where nothing changes."""
    return int(100.0 / (1.0 + exp(-decrease / (weight * 1000.0))))


@njit(inline="always")
def after_share(tables, state, n, rank, gpu_milli, g, usable, full):
    """F_n(M) x weight of node n once GPU g has given `gpu_milli`; `usable` sums the single-GPU table over
    all GPUs at CPU rank `rank`, `full` counts the free GPUs before."""
    single, milli_rank, model = tables.single, tables.milli_rank, state.model[n]
    free = np.int64(state.gpu[n, g])
    left = free - gpu_milli
    usable += left * single[model, rank, milli_rank[left]] - free * single[model, rank, milli_rank[free]]
    if free == WHOLE:
        full -= 1
    usable += WHOLE * full * tables.several[model, rank, full]
    return (state.idle[n] - gpu_milli) * tables.weight - usable


@njit(inline="always")
def usable_by_singles(tables, state, n, rank):
    """Milli of node n that each single-GPU class can use, summed over classes and GPUs."""
    usable = np.int64(0)
    for g in range(state.gpu.shape[1]):
        free = np.int64(state.gpu[n, g])
        usable += free * tables.single[state.model[n], rank, tables.milli_rank[free]]
    return usable


@njit(inline="always")
def score(state, tables, before, n, cpu, num_gpu, gpu_milli):
    """0 to 100; `before` (N,) is F_n(M) x weight now. A share is tried on every GPU that fits."""
    model = state.model[n]
    if model < 0:
        return 50
    rank = cpu_rank(tables, state.cpu[n] - cpu)
    usable = usable_by_singles(tables, state, n, rank)
    if num_gpu == 0 or gpu_milli == WHOLE:
        full = state.full[n] - num_gpu
        usable -= num_gpu * WHOLE * tables.single[model, rank, tables.milli_rank[WHOLE]]
        usable += WHOLE * full * tables.several[model, rank, full]
        after = (state.idle[n] - num_gpu * WHOLE) * tables.weight - usable
        return quantised(before[n] - after, tables.weight)
    least, tried = np.int64(0), -1
    for g in range(state.gpu.shape[1]):
        if state.gpu[n, g] >= gpu_milli and state.gpu[n, g] != tried:  # neighbours are often alike
            after = after_share(tables, state, n, rank, gpu_milli, g, usable, state.full[n])
            if tried < 0 or after < least:
                least = after
            tried = state.gpu[n, g]
    return quantised(before[n] - least, tables.weight)


@njit(inline="always")
def best_gpu(state, tables, before, n, cpu, gpu_milli):
    """The GPU of node n with the best integer score for a share, the lowest index of equals."""
    rank = cpu_rank(tables, state.cpu[n] - cpu)
    usable = usable_by_singles(tables, state, n, rank)
    best, best_score = -1, -1
    for g in range(state.gpu.shape[1]):
        if state.gpu[n, g] >= gpu_milli:
            after = after_share(tables, state, n, rank, gpu_milli, g, usable, state.full[n])
            value = quantised(before[n] - after, tables.weight)
            if value > best_score:
                best, best_score = g, value
    return best


def scores_plain(node: Node, pod: Pod, typical: TypicalPods) -> list[tuple[int, list[int]]]:
    """The score of every choice of GPUs that the policy considers on a node."""
    choices = [whole_or_tightest(node, pod)] if pod.num_gpu else [[]]
    if pod.num_gpu and pod.gpu_milli < WHOLE:
        choices = [[g] for g, free in enumerate(node.gpu) if free >= pod.gpu_milli]
    before = fragmented_plain(typical, node.model, node.cpu, node.gpu)
    scored = []
    for chosen in choices:
        left = [free - pod.gpu_milli if g in chosen else free for g, free in enumerate(node.gpu)]
        after = fragmented_plain(typical, node.model, node.cpu - pod.cpu, left)
        scored.append((int(100.0 / (1.0 + exp(-(before - after) / (typical.weight * 1000.0)))), chosen))
    return scored


def score_plain(node: Node, pod: Pod, typical: TypicalPods) -> int:
    """The best of a node's choices."""
    return max(value for value, _ in scores_plain(node, pod, typical))


def choose_plain(node: Node, pod: Pod, typical: TypicalPods) -> list[int]:
    """The first of the best choices."""
    return max(scores_plain(node, pod, typical), key=lambda scored: scored[0])[1]


PLAIN = PlainPolicy(score_plain, choose=choose_plain)
