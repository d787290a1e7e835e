"""GpuClustering: pods of one kind together (shares with shares, k whole GPUs with k whole GPUs)."""

from __future__ import annotations

from numba import njit

from berth.simulation.baselines.plain import WHOLE, Node, PlainPolicy, Pod
from berth.simulation.baselines.state import NODE_GPU_MILLI
from berth.simulation.typical import TypicalPods


@njit(inline="always")
def score(state, n, num_gpu, gpu_milli):
    """0 to 100: the fuller the better within 25 points, and 25 more for each nearer kind of company."""
    if num_gpu == 0:
        return 0
    base = (25 * (NODE_GPU_MILLI - state.idle[n])) // NODE_GPU_MILLI
    own = 1 << (num_gpu if gpu_milli == WHOLE else 0)
    company = state.affinity[n]
    if company == own:
        return base + 75
    if company & own:
        return base + 50
    if company == 0:
        return base + 25
    return base


def score_plain(node: Node, pod: Pod, typical: TypicalPods) -> int:
    """Only its own kind on the node, its own among others, nobody, only others."""

    def kind(of: Pod) -> str:
        return "share" if of.gpu_milli < WHOLE else str(of.num_gpu)

    if pod.num_gpu == 0:
        return 0
    base = 25 * (NODE_GPU_MILLI - sum(node.gpu)) // NODE_GPU_MILLI
    kinds = {kind(other) for other in node.pods if other.num_gpu}
    if not kinds:
        return base + 25
    if kind(pod) not in kinds:
        return base
    return base + (75 if len(kinds) == 1 else 50)


PLAIN = PlainPolicy(score_plain)
