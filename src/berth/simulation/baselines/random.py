"""Random: a feasible node drawn uniformly, and for a share of a GPU one of the GPUs that fit."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Keeps the policy's own draws apart from those that shuffle pods and nodes with the same seed.
STREAM = 0x52414E44
BLOCK = 64


def draws(seed: int, pods: int) -> NDArray[np.float64]:
    """(P, 2) in [0, 1): the node and the GPU of each pod."""
    return np.random.Generator(np.random.PCG64([seed, STREAM])).random((pods, 2))


@njit
def feasible_in(scores, infeasible):
    """How many scores are not `infeasible`."""
    feasible = 0
    for n in range(scores.shape[0]):
        feasible += scores[n] != infeasible
    return feasible


@njit
def drawn_node(scores, infeasible, draw):
    """A node drawn uniformly among those whose score is not `infeasible`; -1 if all are."""
    feasible = feasible_in(scores, infeasible)
    if feasible == 0:
        return -1
    left = int(draw * feasible)
    start = 0
    while True:  # whole blocks first: counting is a vector loop, finding is not
        in_block = feasible_in(scores[start : start + BLOCK], infeasible)
        if left < in_block:
            break
        left -= in_block
        start += BLOCK
    for n in range(start, scores.shape[0]):
        if scores[n] != infeasible:
            if left == 0:
                return n
            left -= 1
    return -1


@njit
def drawn_gpu(gpu, gpu_milli, draw):
    """A GPU drawn uniformly among those that fit. One must."""
    fitting = 0
    for g in range(gpu.shape[0]):
        if gpu[g] >= gpu_milli:
            fitting += 1
    left = int(draw * fitting)
    for g in range(gpu.shape[0]):
        if gpu[g] >= gpu_milli:
            if left == 0:
                return g
            left -= 1
    return -1
