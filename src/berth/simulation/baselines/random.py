"""Random: a feasible node drawn uniformly, and for a share of a GPU one of the GPUs that fit."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Keeps the policy's own draws apart from those that shuffle pods and nodes with the same seed.
STREAM = 0x52414E44


def draws(seed: int, pods: int) -> NDArray[np.float64]:
    """(P, 2) in [0, 1): the node and the GPU of each pod."""
    return np.random.Generator(np.random.PCG64([seed, STREAM])).random((pods, 2))


@njit(cache=True)
def drawn_node(scores, draw):
    """A node drawn uniformly among those that are feasible (score >= 0); -1 if none is."""
    feasible = 0
    for n in range(scores.shape[0]):
        if scores[n] >= 0:
            feasible += 1
    if feasible == 0:
        return -1
    left = int(draw * feasible)
    for n in range(scores.shape[0]):
        if scores[n] >= 0:
            if left == 0:
                return n
            left -= 1
    return -1


@njit(cache=True)
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
