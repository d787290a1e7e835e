"""An offered load as columns: what a public packing trace says, and nothing that a policy decides.

Shapes: N nodes, P pods. CPU is milli-cores, memory is MiB, a GPU is 1000 milli.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]


@dataclass(frozen=True)
class TraceCluster:
    """The machines. `model[n]` indexes `models`, -1 for a node without GPUs."""

    names: tuple[str, ...]
    cpu_milli: Int
    memory_mib: Int
    gpus: Int
    model: Int
    models: tuple[str, ...]

    @property
    def capacity_milli(self) -> int:
        """All GPUs of the cluster, in milli."""
        return int(self.gpus.sum()) * 1000


@dataclass(frozen=True)
class TracePods:
    """The pods in file order.

    `gpu_milli[p]` is asked of each of the `num_gpu[p]` GPUs; below 1000 only where num_gpu is 1.
    `spec[p]` indexes `specs`; each spec is the sorted tuple of the allowed GPU models, () for any.
    """

    names: tuple[str, ...]
    cpu_milli: Int
    memory_mib: Int
    num_gpu: Int
    gpu_milli: Int
    spec: Int
    specs: tuple[tuple[str, ...], ...]

    @property
    def asked_milli(self) -> Int:
        """GPU milli asked by each pod, (P,)."""
        asked: Int = self.num_gpu * self.gpu_milli
        return asked


@dataclass(frozen=True)
class Trace:
    """A cluster and the pods offered to it. `name` is how a report calls it, for example `openb:default`."""

    name: str
    cluster: TraceCluster
    pods: TracePods
