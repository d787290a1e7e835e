"""The six policies without compilation or tables: the definition that the compiled run is held to.

Every node is scored for every pod. Slow, and meant to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from berth.simulation.offer import PODS_PER_NODE, Offer, Placements
from berth.simulation.typical import TypicalPods

WHOLE = 1000


@dataclass
class Node:
    """One node: free CPU milli, free memory MiB, free milli of each GPU, and the pods that run on it."""

    model: str
    cpu: int
    memory: int
    gpu: list[int]
    pods: list[Pod] = field(default_factory=list)


@dataclass(frozen=True)
class Pod:
    """One request; `models` is the set of allowed GPU models, None for any."""

    cpu: int
    memory: int
    num_gpu: int
    gpu_milli: int
    models: frozenset[str] | None

    @property
    def asked(self) -> int:
        """GPU milli asked in all."""
        return self.num_gpu * self.gpu_milli


def fits(node: Node, pod: Pod) -> bool:
    """Whether the node can take the pod now."""
    if pod.cpu > node.cpu or pod.memory > node.memory or len(node.pods) >= PODS_PER_NODE:
        return False
    if pod.num_gpu == 0:
        return True
    if not node.gpu or (pod.models is not None and node.model not in pod.models):
        return False
    return sum(free >= pod.gpu_milli for free in node.gpu) >= pod.num_gpu


def as_they_are(scores: Sequence[int]) -> Sequence[int]:
    """No normalisation."""
    return scores


def whole_or_tightest(node: Node, pod: Pod, typical: TypicalPods | None = None) -> list[int]:
    """Whole GPUs: the lowest-indexed free ones. A share: the GPU with the least free that fits."""
    fitting = [g for g, free in enumerate(node.gpu) if free >= pod.gpu_milli]
    if pod.gpu_milli < WHOLE:
        fitting.sort(key=lambda g: node.gpu[g])
    return fitting[: pod.num_gpu]


@dataclass(frozen=True)
class PlainPolicy:
    """`score(node, pod, typical)`, higher wins; `normalise` maps the scores of all feasible nodes;
    `choose` picks the GPUs on the winner."""

    score: Callable[[Node, Pod, TypicalPods], int]
    normalise: Callable[[Sequence[int]], Sequence[int]] = as_they_are
    choose: Callable[[Node, Pod, TypicalPods], list[int]] = whole_or_tightest


def place_plain(policy: PlainPolicy, offer: Offer, draws: np.ndarray | None = None) -> Placements:
    """Offer the pods one by one. With `draws` (P, 2) in [0, 1) node and shared GPU are drawn uniformly."""
    nodes = [
        Node(offer.models[t] if t >= 0 else "", cpu, memory, [WHOLE] * gpus)
        for cpu, memory, gpus, t in zip(*(column.tolist() for column in offer.nodes), strict=True)
    ]
    classes = [
        Pod(
            cpu,
            memory,
            num_gpu,
            milli,
            None if mask == -1 else frozenset(m for t, m in enumerate(offer.models) if mask >> t & 1),
        )
        for cpu, memory, num_gpu, milli, mask in zip(*(column.tolist() for column in offer.classes), strict=True)
    ]
    answer = Placements(np.full(len(offer.class_of), -1, np.int64), np.zeros(len(offer.class_of), np.int64))
    for p, c in enumerate(offer.class_of.tolist()):
        pod = classes[c]
        feasible = [n for n, node in enumerate(nodes) if fits(node, pod)]
        if not feasible:
            continue
        if draws is None:
            scores = policy.normalise([policy.score(nodes[n], pod, offer.typical) for n in feasible])
            winner = feasible[max(range(len(feasible)), key=lambda i: (scores[i], -i))]
            chosen = policy.choose(nodes[winner], pod, offer.typical) if pod.num_gpu else []
        else:
            winner = feasible[int(draws[p, 0] * len(feasible))]
            chosen = whole_or_tightest(nodes[winner], pod) if pod.num_gpu else []
            if pod.num_gpu and pod.gpu_milli < WHOLE:
                fitting = [g for g, free in enumerate(nodes[winner].gpu) if free >= pod.gpu_milli]
                chosen = [fitting[int(draws[p, 1] * len(fitting))]]
        node = nodes[winner]
        node.cpu -= pod.cpu
        node.memory -= pod.memory
        node.pods.append(pod)
        for g in chosen:
            node.gpu[g] -= pod.gpu_milli
        answer.node[p], answer.gpus[p] = winner, sum(1 << g for g in chosen)
    return answer
