"""What the scheduler wants done: binds, and a verdict for each workload that it left waiting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Node
from berth.model.reasons import Verdict
from berth.model.workload import Workload

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Bind:
    """One pod of a workload's pod set goes to a node. `devices` are indexes; a prediction where counted."""

    workload: Workload
    pod_set: int
    node: Node
    devices: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The binds as columns, in the order in which they were decided, and the verdicts.

    workload, pod_set, node (B,) int32; devices (B,) int64 bit masks. `verdicts` by index of the workload in
    the snapshot. `scopes` names the domain that a gang went to. `seconds` per step is told for the curious
    and is no part of the answer.
    """

    workloads: Sequence[Workload]
    nodes: Sequence[Node]
    workload: I32
    pod_set: I32
    node: I32
    devices: I64
    verdicts: Mapping[int, Verdict]
    scopes: Mapping[int, str]
    seconds: Mapping[str, float]

    @property
    def placed(self) -> NDArray[np.int64]:
        """Indexes of the workloads that were placed, ascending."""
        indexes: NDArray[np.int64] = np.unique(self.workload).astype(np.int64)
        return indexes

    def binds(self) -> Iterator[Bind]:
        for w, s, n, mask in zip(
            self.workload.tolist(),
            self.pod_set.tolist(),
            self.node.tolist(),
            self.devices.tolist(),
            strict=True,
        ):
            yield Bind(self.workloads[w], s, self.nodes[n], devices_of(mask))


def devices_of(mask: int) -> tuple[int, ...]:
    """Indexes of the bits that are set."""
    return tuple(g for g in range(mask.bit_length()) if mask >> g & 1)
