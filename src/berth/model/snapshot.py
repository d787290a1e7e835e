"""One consistent view of everything that decides. Same snapshot, same plan."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from berth.model.booking import Booking
from berth.model.budget import Budget
from berth.model.cluster import Allocation, GpuClass, Node
from berth.model.demand import Demand
from berth.model.history import History
from berth.model.hold import Hold
from berth.model.queue import Queue
from berth.model.topology import Topology
from berth.model.workload import Workload


class Left(Struct, frozen=True, gc=False):
    """What a workload still has to compute, and since when it has been there."""

    left_s: float
    submitted_s: float


class Owner(Struct, frozen=True, gc=False):
    """An object that owns pods of workloads with other names: the Job whose scheduler made a PodGroup for it, the
    ReplicaSet of pods that stand alone. People ask for it by its name."""

    namespace: str
    kind: str
    name: str
    workloads: tuple[str, ...]  # identities, those that wait first


class Snapshot(Struct, frozen=True, gc=False):
    """The cluster at `now_s` (seconds since the epoch).

    `allocations` are the pods that hold capacity, `workloads` those that wait, in no particular order.
    `notes` say what could not be seen ("the dump holds no pods"), one sentence each. `findings` are those of workloads
    that run, by identity, where a cluster is read once: what they disagree on, values that were passed over.
    `left` is what workloads still have to compute, by identity, of those of which it is known. `history` is what
    workloads have run so far, those that have ended among them; None where nobody kept it. `usage` is what queues have
    used in the past: decayed value hours by the name of the queue that paid (scheduling/usage.py). `moves_hours` are
    GPU hours of work that may be lost by moves now (scheduling/repacking.py). `bookings` are what people keep for
    others, each where the last decision had it.
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
    owners: tuple[Owner, ...] = ()
    budgets: tuple[Budget, ...] = ()
    holds: tuple[Hold, ...] = ()
    bookings: tuple[Booking, ...] = ()
    findings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    left: Mapping[str, Left] = {}
    history: History | None = None
    usage: Mapping[str, float] = {}
    moves_hours: float = 0.0

    def gpu_class(self, name: str) -> GpuClass | None:
        return next((c for c in self.gpu_classes if c.name == name), None)
