"""How much room is left: by node, by GPU class and by domain, and the largest gang that would start now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Health, Node
from berth.model.reasons import HELD_BACK, Block
from berth.model.resources import CPU, MEMORY, get, is_accelerator
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, PodClass
from berth.scheduling.columns import Columns, columns_of
from berth.scheduling.feasibility import blocks_of
from berth.scheduling.quota import gpu_milli
from berth.scheduling.room_kept import Reserved, reserved_in

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

POD_SIZES = (1, 2, 4, 8)  # GPUs of one pod


@dataclass(frozen=True)
class Counted:
    """A resource that is only counted: MIG partitions, time-slices, GPUs of vendors without devices here."""

    resource: str
    total: int
    free: int


@dataclass(frozen=True)
class NodeRoom:
    """One node. GPUs in milli where a device may be shared, else whole; `free` is 0 where it is held back."""

    name: str
    gpu_class: str
    state: str  # "ready", "suspect", "unfit", "cordoned", "not ready", "tainted"
    gpus: int
    healthy: int
    allocated_milli: int
    free_milli: int
    whole_free: int
    cpu_milli: int
    cpu_free_milli: int
    memory_bytes: int
    memory_free_bytes: int
    domains: tuple[tuple[str, str], ...]
    counted: tuple[Counted, ...]
    code: str  # what its agent found that is worst, "" for nothing
    agent: str  # "heard", "silent", "" where none tells of the node
    reserved_milli: int  # free, and kept for others by reservations


@dataclass(frozen=True)
class Gangs:
    """The largest gang by GPUs of one pod, (pods of 1, 2, 4, 8 GPUs), in one domain of a level; and which."""

    level: str  # "cluster", a level's name, "node"
    pods: tuple[int, ...]
    where: str  # the domain that holds the most pods of 8 GPUs, then of 4, 2, 1


@dataclass(frozen=True)
class ClassRoom:
    """One GPU class, in the whole cluster or in one domain."""

    gpu_class: str
    domain: str
    nodes: int
    gpus: int
    healthy: int
    allocated_milli: int
    free_milli: int
    held_back: int  # free GPUs on nodes that are cordoned, not ready or unfit
    gangs: tuple[Gangs, ...]
    unfit: int  # GPUs that are given to nobody
    suspect: int  # healthy GPUs on suspect nodes in service: they come last, and no gang starts there
    reserved_milli: int  # free on nodes in service, and kept for others by reservations


@dataclass(frozen=True)
class Fragmentation:
    """How much of what is free the pods that run could not use. `share` is 0..1, None where nothing is free.

    The mean over the pod classes with GPUs that hold or ask for capacity, by their number of pods. Source of
    the measure: FGD, USENIX ATC 2023, section 3 (the fragmentation rate), for pods with GPUs.
    """

    share: float | None
    classes: int


class Room:
    """Answers about one snapshot. What `reserved` keeps is free for nobody here; without it what the snapshot's own
    reservations keep is."""

    def __init__(self, snapshot: Snapshot, reserved: Reserved | None = None) -> None:
        self.snapshot = snapshot
        self.columns: Columns = columns_of(snapshot, {id(c): c for c in _seen(snapshot)}.values())
        columns = self.columns
        self.state = blocks_of(PodClass(), columns)  # what keeps an ordinary pod off, by the node's own state
        for n, node in enumerate(columns.nodes):  # and pods with GPUs, which are what is counted here
            if node.unsafe and self.state[n] == Block.Nothing:
                self.state[n] = Block.Unfit
        self.open: Mask = ~np.isin(self.state, np.array([int(b) for b in HELD_BACK], np.uint8))
        self.gpus: I64 = np.array([len(n.devices) for n in columns.nodes], np.int64).reshape(columns.size)
        # A GPU that is cut into partitions is healthy too, though none of it is given out whole.
        fit = (Health.Fit, Health.Suspect)
        self.healthy: I64 = np.array(
            [sum(d.health in fit for d in n.devices) for n in columns.nodes], np.int64
        ).reshape(columns.size)
        self.unfit: I64 = np.array(
            [sum(d.health == Health.Unfit for d in n.devices) for n in columns.nodes], np.int64
        ).reshape(columns.size)
        self.whole_devices: I64 = (columns.device_free >= 0).sum(axis=1)
        at_all = np.where(columns.device_free > 0, columns.device_free, 0).sum(axis=1)
        self.reserved = reserved or reserved_in(snapshot)
        if self.reserved is not None:
            self.reserved.on(columns)
        self.free_milli: I64 = np.where(columns.device_free > 0, columns.device_free, 0).sum(axis=1)
        self.reserved_milli: I64 = at_all - self.free_milli
        self.named = np.array([n.named_devices for n in columns.nodes], bool).reshape(columns.size) & (columns.pool < 0)
        for n in np.flatnonzero(self.named).tolist():
            # Devices that only claims can have: what a claim holds is not free, the rest is.
            held = {d for a in snapshot.allocations if a.node == columns.nodes[n].name for d in a.devices}
            self.whole_devices[n] = self.healthy[n]
            self.free_milli[n] = max(int(self.healthy[n]) - len(held), 0) * WHOLE
        self.whole: I64 = (columns.device_free == WHOLE).sum(axis=1)

    def nodes(self) -> list[NodeRoom]:
        return [self._node(n, node) for n, node in enumerate(self.columns.nodes)]

    def classes(self) -> list[ClassRoom]:
        """One for each GPU class, over the whole cluster, by name."""
        return [
            self._class(gpu_class.name, "", self._of_class(c), self._levels())
            for c, gpu_class in enumerate(self.columns.gpu_classes)
            if self._of_class(c).any()
        ]

    def domains(self, level: int) -> list[ClassRoom]:
        """One for each domain of a level and GPU class in it; with the gangs inside it."""
        found = []
        for d, name in enumerate(self.columns.domain_names[level]):
            inside = self.columns.domain[level] == d
            for c, gpu_class in enumerate(self.columns.gpu_classes):
                mask = inside & self._of_class(c)
                if mask.any():
                    found.append(self._class(gpu_class.name, name, mask, self._levels()[level + 1 :]))
        return found

    def counted(self) -> list[Counted]:
        """Resources that are only counted, over the nodes in service."""
        columns = self.columns
        found = []
        for r, name in enumerate(columns.resources):
            if not is_accelerator(name):
                continue
            here = (columns.pool != r) & self.open
            total = sum(get(columns.nodes[n].allocatable, name) for n in np.flatnonzero(here).tolist())
            if total:
                found.append(Counted(name, total, int(np.maximum(columns.free[here, r], 0).sum())))
        return found

    def fragmentation(self) -> Fragmentation:
        """Free GPU milli that the pod classes seen cannot use."""
        weights: dict[int, int] = {}
        classes: dict[int, PodClass] = {}
        for pod_class in _seen(self.snapshot):
            if gpu_milli(pod_class.requests, pod_class.gpu_milli):
                classes[id(pod_class)] = pod_class
                weights[id(pod_class)] = weights.get(id(pod_class), 0) + 1
        free = int(self.free_milli[self.open].sum())
        if not free or not classes:
            return Fragmentation(None, len(classes))
        lost, seen = 0.0, 0
        for key, pod_class in classes.items():
            runs = self._runs(pod_class)
            if runs is None:
                continue  # a partition, a slice, a slip of the pen: no whole GPU is for it
            left = self.columns.device_free[runs]
            usable = int(np.where(left >= pod_class.gpu_milli, left, 0).sum())
            seen += weights[key]
            lost += weights[key] * (free - usable)
        return Fragmentation(lost / seen / free if seen else None, len(classes))

    def _runs(self, pod_class: PodClass) -> Mask | None:
        """(N,) nodes in service on which one pod fits now; None for a class that no whole GPU is for."""
        columns = self.columns
        name = next(n for n, _ in pod_class.requests if is_accelerator(n))
        would_do = (blocks_of(pod_class, columns) == Block.Nothing) & (columns.pool == columns.column(name))
        if not would_do.any():
            return None
        asked = get(pod_class.requests, name)
        fits = would_do & self.open & ((columns.device_free >= pod_class.gpu_milli).sum(axis=1) >= asked)
        for resource, amount in pod_class.requests:
            if resource != name:
                fits &= columns.free[:, columns.column(resource)] >= amount
        runs: Mask = fits
        return runs

    def _node(self, n: int, node: Node) -> NodeRoom:
        columns, state = self.columns, Block(int(self.state[n]))
        words = {Block.NotReady: "not ready", Block.Unfit: "unfit", Block.Cordoned: "cordoned", Block.Taint: "tainted"}
        counted = tuple(
            Counted(name, total, max(0, int(columns.free[n, columns.column(name)])))
            for name, total in node.allocatable
            if is_accelerator(name) and columns.pool[n] != columns.column(name)
        )
        return NodeRoom(
            name=node.name,
            gpu_class=node.gpu_class,
            state=words.get(state, "suspect" if columns.suspect[n] else "ready"),
            gpus=int(self.gpus[n]),
            healthy=int(self.healthy[n]),
            allocated_milli=int(self.whole_devices[n]) * WHOLE - int(self.free_milli[n] + self.reserved_milli[n]),
            free_milli=int(self.free_milli[n]),
            whole_free=int(self.whole[n]),
            cpu_milli=get(node.allocatable, CPU),
            cpu_free_milli=int(columns.free[n, columns.column(CPU)]),
            memory_bytes=get(node.allocatable, MEMORY),
            memory_free_bytes=int(columns.free[n, columns.column(MEMORY)]),
            domains=tuple(
                (level.name, columns.domain_names[i][columns.domain[i, n]] if columns.domain[i, n] >= 0 else "")
                for i, level in enumerate(columns.topology.levels)
            ),
            counted=counted,
            code=node.code,
            agent=node.agent,
            reserved_milli=int(self.reserved_milli[n]),
        )

    def _of_class(self, c: int) -> Mask:
        mask: Mask = (self.columns.gpu_class == c) & (self.gpus > 0)
        return mask

    def _levels(self) -> list[int]:
        """-1 the cluster, the levels, and the host after them."""
        return list(range(-1, len(self.columns.topology.levels) + 1))

    def _class(self, name: str, domain: str, mask: Mask, levels: Sequence[int]) -> ClassRoom:
        in_service = mask & self.open
        return ClassRoom(
            gpu_class=name,
            domain=domain,
            nodes=int(mask.sum()),
            gpus=int(self.gpus[mask].sum()),
            healthy=int(self.healthy[in_service].sum()),
            allocated_milli=int(
                (self.whole_devices[mask] * WHOLE - self.free_milli[mask] - self.reserved_milli[mask]).sum()
            ),
            free_milli=int(self.free_milli[in_service].sum()),
            held_back=int(self.free_milli[mask & ~self.open].sum()) // WHOLE,
            gangs=tuple(self._gangs(in_service & ~self.columns.suspect, level) for level in levels),
            unfit=int(self.unfit[mask].sum()),
            suspect=int(self.healthy[in_service & self.columns.suspect].sum()),
            reserved_milli=int(self.reserved_milli[in_service].sum()),
        )

    def _gangs(self, mask: Mask, level: int) -> Gangs:
        columns = self.columns
        if level == -1:
            return Gangs("cluster", tuple(int((self.whole[mask] // k).sum()) for k in POD_SIZES), "")
        if level == len(columns.topology.levels):
            pods = np.stack([np.where(mask, self.whole // k, 0) for k in POD_SIZES])
            names: Sequence[str] = [n.name for n in columns.nodes]
            label = "node"
        else:
            domain = columns.domain[level]
            known = mask & (domain >= 0)
            size = len(columns.domain_names[level])
            pods = np.stack(
                [np.bincount(domain[known], weights=self.whole[known] // k, minlength=size) for k in POD_SIZES]
            ).astype(np.int64)
            names, label = columns.domain_names[level], columns.topology.levels[level].name
        if not pods.shape[1]:
            return Gangs(label, (0,) * len(POD_SIZES), "")
        best = int(np.lexsort(pods)[-1])
        return Gangs(label, tuple(pods.max(axis=1).tolist()), names[best] if pods[:, best].any() else "")


def _seen(snapshot: Snapshot) -> list[PodClass]:
    """The class of every pod that holds or asks for capacity, DaemonSets left out."""
    held = [a.pod_class for a in snapshot.allocations if not a.is_daemon]
    return held + [s.pod_class for w in snapshot.workloads for s in w.pod_sets for _ in range(s.count)]
