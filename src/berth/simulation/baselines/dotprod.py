"""DotProd: the node whose free resources point least along the request (Tetris's alignment, reversed)."""

from __future__ import annotations

from math import floor

from numba import njit

from berth.simulation.baselines.plain import Node, PlainPolicy, Pod
from berth.simulation.baselines.state import NODE_CPU_MILLI, NODE_GPU_MILLI
from berth.simulation.typical import TypicalPods


@njit(inline="always")
def score(state, n, cpu, gpu):
    """floor(100 (1 - ½ free·request)), both relative to the fixed node shape; `gpu` is all milli asked."""
    along_cpu = (state.cpu[n] / NODE_CPU_MILLI) * (cpu / NODE_CPU_MILLI)
    along_gpu = (state.idle[n] / NODE_GPU_MILLI) * (gpu / NODE_GPU_MILLI)
    return floor(100.0 * (1.0 - 0.5 * (along_cpu + along_gpu)))


def score_plain(node: Node, pod: Pod, typical: TypicalPods) -> int:
    """The smallest dot product wins."""
    along_cpu = (node.cpu / NODE_CPU_MILLI) * (pod.cpu / NODE_CPU_MILLI)
    along_gpu = (sum(node.gpu) / NODE_GPU_MILLI) * (pod.asked / NODE_GPU_MILLI)
    return floor(100.0 * (1.0 - 0.5 * (along_cpu + along_gpu)))


PLAIN = PlainPolicy(score_plain)
