"""BestFit: the node with the least CPU and GPU left over."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from numba import njit

from berth.simulation.baselines.plain import Node, PlainPolicy, Pod
from berth.simulation.baselines.state import NODE_CPU_MILLI, NODE_GPU_MILLI
from berth.simulation.typical import TypicalPods


@njit(inline="always")
def score(state, n, cpu, gpu):
    """floor(100 (1 - ½ CPU left - ½ GPU left)), relative to the fixed node shape.

    The min-max normalisation that the published policy adds is left out: the raw score is an integer, and
    only the greatest one becomes 100, so the winner and its ties stay the same. The plain twin has it.
    """
    return floor(
        100.0 * (1.0 - 0.5 * ((state.cpu[n] - cpu) / NODE_CPU_MILLI) - 0.5 * ((state.idle[n] - gpu) / NODE_GPU_MILLI))
    )


def score_plain(node: Node, pod: Pod, typical: TypicalPods) -> int:
    """How little is left."""
    return floor(
        100.0
        * (1.0 - 0.5 * ((node.cpu - pod.cpu) / NODE_CPU_MILLI) - 0.5 * ((sum(node.gpu) - pod.asked) / NODE_GPU_MILLI))
    )


def normalise_plain(scores: Sequence[int]) -> Sequence[int]:
    """Min-max over the feasible nodes to integers 0 to 100; all 0 if they are equal."""
    least, spread = min(scores), max(scores) - min(scores)
    return [100 * (value - least) // spread if spread else 0 for value in scores]


PLAIN = PlainPolicy(score_plain, normalise_plain)
