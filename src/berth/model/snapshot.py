"""One consistent view of everything that decides. Same snapshot, same plan."""

from __future__ import annotations

from msgspec import Struct

from berth.model.cluster import Allocation, GpuClass, Node
from berth.model.demand import Demand
from berth.model.queue import Queue
from berth.model.topology import Topology
from berth.model.workload import Workload


class Snapshot(Struct, frozen=True, gc=False):
    """The cluster at `now_s` (seconds since the epoch).

    `allocations` are the pods that hold capacity, `workloads` those that wait, in no particular order.
    `notes` say what could not be seen ("the dump holds no pods"), one sentence each.
    """

    nodes: tuple[Node, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    workloads: tuple[Workload, ...] = ()
    gpu_classes: tuple[GpuClass, ...] = ()
    queues: tuple[Queue, ...] = ()
    topology: Topology = Topology()
    demand: Demand = Demand()
    now_s: float = 0.0
    notes: tuple[str, ...] = ()

    def gpu_class(self, name: str) -> GpuClass | None:
        return next((c for c in self.gpu_classes if c.name == name), None)
