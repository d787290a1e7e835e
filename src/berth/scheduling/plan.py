"""What the scheduler wants done: binds, evictions and holds, and a verdict for each workload that it left waiting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from berth.model.booking import Standing
from berth.model.cluster import Allocation, Node
from berth.model.hold import Hold
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


class Rule(Enum):
    """Why a pod is asked to leave."""

    LowerPriority = "it has lower priority and stands where room is needed"
    WithGang = "it has lower priority and its gang cannot stay without those that leave"
    SetAside = "it has more left to do than who waits, and stands where room is needed"
    Reclaimed = "its queue holds more than it is due, and stands where room is needed for a queue that holds less"
    Reserved = "its place is kept from now on by a reservation"
    Moved = "it can run elsewhere, and what is free is scattered without that"
    BeyondBudget = "it has lower priority, and the configuration passes over its disruption budget"


@dataclass(frozen=True)
class Eviction:
    """A pod is asked to leave for a workload (its index), which has a hold on the room by the same plan.

    `gpu_hours` of work are lost with it: since its start, or since its last checkpoint.
    """

    allocation: Allocation
    beneficiary: int
    gpu_hours: float
    rule: Rule

    @property
    def is_loss_known(self) -> bool:
        """Somebody says when it began: else it is taken for the dearest that there is."""
        return self.allocation.started_s > 0 or self.allocation.last_checkpoint_s > 0


@dataclass(frozen=True)
class Vacating:
    """A pod is asked to leave since the window of a booking, which keeps its place for others, has opened."""

    allocation: Allocation
    booking: str
    gpu_hours: float


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
    evictions: Sequence[Eviction] = ()
    holds: Sequence[Hold] = ()  # new ones; one for a workload that has a hold already takes its place
    starts_by: Mapping[int, float] = field(default_factory=dict)  # who has a place in time, and when it is there
    look_s: float = np.inf  # when another cycle may decide otherwise though nothing has happened by then
    vacating: Sequence[Vacating] = ()
    due: Mapping[str, float] = field(default_factory=dict)  # GPUs that queues are due, by their value; {} for one queue
    bookings: tuple[Standing, ...] = ()  # those whose window is open or will open, where they stand

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


def nothing_of(workloads: Sequence[Workload], nodes: Sequence[Node], seconds: Mapping[str, float]) -> Plan:
    """A plan by which everybody waits on."""
    none = np.zeros(0, np.int32)
    return Plan(workloads, nodes, none, none, none, np.zeros(0, np.int64), {}, {}, seconds)


def devices_of(mask: int) -> tuple[int, ...]:
    """Indexes of the bits that are set."""
    return tuple(g for g in range(mask.bit_length()) if mask >> g & 1)
