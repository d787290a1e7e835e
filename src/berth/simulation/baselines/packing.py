"""GpuPacking: onto GPUs in use first, then free GPUs of nodes in use, then empty nodes."""

from __future__ import annotations

from numba import njit

from berth.simulation.baselines.plain import WHOLE, Node, PlainPolicy, Pod
from berth.simulation.baselines.state import tightest_gpu
from berth.simulation.typical import TypicalPods


@njit(inline="always")
def score(state, n, num_gpu, gpu_milli):
    """0 to 100. A share takes the tightest GPU, whole requests open as many free GPUs as they ask for."""
    if num_gpu == 0:
        return 0
    if state.full[n] == state.gpus[n]:
        return max(33 - state.gpus[n], state.gpus[n])
    if gpu_milli == WHOLE:
        return max(50 - num_gpu, 33)
    free = state.gpu[n, tightest_gpu(state.gpu[n], gpu_milli)]
    if free == WHOLE:
        return max(50 - 1, 33)
    return max(100 - free // 10 // 10, 50)


def score_plain(node: Node, pod: Pod, typical: TypicalPods) -> int:
    """By what the request opens; the GPUs with the least free are taken first."""
    if pod.num_gpu == 0:
        return 0
    free_gpus = sum(free == WHOLE for free in node.gpu)
    if free_gpus == len(node.gpu):
        return max(33 - free_gpus, free_gpus)
    chosen = sorted(free for free in node.gpu if free >= pod.gpu_milli)[: pod.num_gpu]
    opened = sum(free == WHOLE for free in chosen)
    if opened:
        return max(50 - opened, 33)
    return max(100 - sum(free // 10 for free in chosen) // 10, 50)


PLAIN = PlainPolicy(score_plain)
