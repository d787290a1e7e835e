"""What a policy is handed: nodes in tie-break order and pods in arrival order, as arrays.

N nodes, P offered pods, C classes of like pods. A policy answers with one node and one set of GPUs a pod.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from berth.model.trace import Int, Trace
from berth.simulation.typical import TypicalPods

# How many pods a node takes at most; the published simulator's nodes allow so many.
PODS_PER_NODE = 1001


class Nodes(NamedTuple):
    """The empty cluster in the order that breaks ties: the first of equal nodes wins. All are (N,)."""

    cpu_milli: Int
    memory_mib: Int
    gpus: Int
    model: Int  # indexes the trace's GPU models, -1 without GPUs


class Classes(NamedTuple):
    """Requests that occur in the trace, each once. All are (C,)."""

    cpu_milli: Int
    memory_mib: Int
    num_gpu: Int
    gpu_milli: Int  # of each GPU
    models: Int  # bit t set: GPU model t is allowed; -1: any


class Changes(NamedTuple):
    """What happens to pods that have arrived, (K,) in the order in which it happens, right before an arrival.

    A pod that runs moves: it is in its new place before it leaves the old. A pod that had found no place gets one.
    """

    before: Int  # index of the arrival; the number of arrivals: after the last
    pod: Int
    node: Int
    gpus: Int


NO_CHANGES = Changes(*(np.zeros(0, np.int64) for _ in Changes._fields))


class Placements(NamedTuple):
    """A policy's answer, (P,): the node in the offer's order, -1 where the pod fits nowhere, and the bit set
    of the node's GPUs that it was given. The changes come on top."""

    node: Int
    gpus: Int
    changes: Changes = NO_CHANGES


@dataclass(frozen=True)
class Offer:
    """One run's input. `class_of[p]` is the class of the p-th pod to arrive; `origin[n]` is the place of
    the n-th node in the trace; `seed` is for policies that draw."""

    nodes: Nodes
    classes: Classes
    class_of: Int
    origin: Int
    models: tuple[str, ...]
    typical: TypicalPods
    seed: int

    @property
    def capacity_milli(self) -> int:
        """All GPUs of the cluster, in milli."""
        return int(self.nodes.gpus.sum()) * 1000


# No clock and no randomness but the offer's seed: the same offer gives the same placements.
Policy = Callable[[Offer], Placements]


def classes_of(trace: Trace) -> tuple[Classes, Int]:
    """The distinct requests of a trace, and the class of each of its pods in file order."""
    pods = trace.pods
    rows = np.column_stack((pods.cpu_milli, pods.memory_mib, pods.num_gpu, pods.gpu_milli, pods.spec))
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    masks = np.array([allowed_models(spec, trace.cluster.models) for spec in pods.specs], dtype=np.int64)
    columns = [np.ascontiguousarray(distinct[:, column]) for column in range(4)]
    return Classes(*columns, masks[distinct[:, 4]]), inverse.reshape(-1).astype(np.int64)


def allowed_models(spec: tuple[str, ...], models: tuple[str, ...]) -> int:
    """The bit set of a spec's models; models that no node has are in no bit, so such a pod never fits."""
    if not spec:
        return -1
    return sum(1 << t for t, model in enumerate(models) if model in spec)
