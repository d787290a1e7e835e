"""The nodes of a cluster that changes: their devices, GPU classes and domains, and which are not trusted for now."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from msgspec.structs import replace

from berth.kube import wire, wire_devices
from berth.model.cluster import GpuClass, Health, Node
from berth.model.gpus import GpuMapping
from berth.model.resources import Resources, is_accelerator
from berth.model.topology import Level, Topology, discover
from berth.model.volumes import ATTACHED, ROOM, VOLUMES
from berth.sources.device_classes import DeviceClasses
from berth.sources.domains import Domains
from berth.sources.live.refusals import Refusals
from berth.sources.nodes import NodeReading, read_node, reread

_OF_STORAGE = (ATTACHED, ROOM, VOLUMES)
FIRST_S, MOST_S = 2.0, 300.0  # for which a node gets nothing new


def standing_of(node: Node) -> Hashable:
    """What says whether a node takes new pods, and which devices it offers: who may go there is decided by it, and may
    be decided otherwise by another. What only others use up, or a heartbeat brings, is no part of it."""
    offers = tuple(one for one in node.allocatable if is_accelerator(one[0]) and not one[0].startswith(_OF_STORAGE))
    return node.cordoned, node.ready, node.taints, node.health, node.gpu_class, node.rdma, offers


class Ground:
    """`nodes`, `gpu_classes`, `topology` and `domains` are of the last `survey`.

    Nothing is changed by a heartbeat: what has not changed stays the same object.
    """

    def __init__(self, mapping: GpuMapping | None, share: Callable[[str], str]) -> None:
        self._mapping = mapping
        self._share = share
        self._readings: dict[str, NodeReading] = {}
        self._dynamic = DeviceClasses()
        self._distrusted: Refusals[str] = Refusals(FIRST_S, MOST_S)
        self._off: set[str] = set()
        self._asked: set[str] = set()
        self._is_stale = True
        self.nodes: tuple[Node, ...] = ()
        self.gpu_classes: tuple[GpuClass, ...] = ()
        self.topology = Topology()
        self.domains = Domains(self.topology, ())

    def __len__(self) -> int:
        return len(self._readings)

    def __contains__(self, name: str) -> bool:
        return name in self._readings

    def standing(self, name: str) -> Hashable:
        """Whether the node takes new pods and what it offers, as far as that can change; None where it is not there."""
        reading = self._readings.get(name)
        if reading is None:
            return None
        return standing_of(replace(reading.node, health=Health.Unfit) if name in self._off else reading.node)

    def put(self, node: wire.Node) -> bool:
        """Whether anything changed that decides."""
        name = (node.metadata or wire.NO_META).name or ""
        reading = read_node(node, (), self._mapping, self._share)
        known = self._readings.get(name)
        if known is not None and known.node == reading.node:
            return False
        self._readings[name] = reading
        self._is_stale = True
        return True

    def drop(self, name: str) -> bool:
        self._is_stale |= name in self._readings
        return self._readings.pop(name, None) is not None

    def put_slice(self, resource_slice: wire_devices.ResourceSlice) -> bool:
        """Whether anything changed that decides; so it is with those that follow."""
        return self._noted(self._dynamic.put_slice(resource_slice))

    def drop_slice(self, name: str) -> bool:
        return self._noted(self._dynamic.drop_slice(name))

    def put_device_class(self, device_class: wire_devices.DeviceClass) -> bool:
        return self._noted(self._dynamic.put_class(device_class))

    def drop_device_class(self, name: str) -> bool:
        return self._noted(self._dynamic.drop_class(name))

    def _noted(self, has_changed: bool) -> bool:
        self._is_stale |= has_changed
        return has_changed

    def map(self, mapping: GpuMapping | None) -> None:
        """Which labels mean which GPU class has changed."""
        self._mapping = mapping
        self._readings = {name: reread(reading, mapping) for name, reading in self._readings.items()}
        self._is_stale = True

    def stale(self) -> None:
        """Levels of topology came or went."""
        self._is_stale = True

    def ask(self, levels: Iterable[str]) -> None:
        """Workloads name these levels."""
        if not self._asked.issuperset(levels):
            self._asked.update(levels)
            self._is_stale = True

    def distrust(self, node: str, why: str, now_s: float) -> None:
        """Give a node nothing new for a while, twice as long each time."""
        self._distrusted.add(node, why, now_s)
        self._off.add(node)
        self._is_stale = True

    def trust(self, node: str) -> None:
        """It was not the node's fault, or that is over."""
        self._distrusted.drop(node)
        if node in self._off:
            self._off.discard(node)
            self._is_stale = True

    def offers(self, name: str) -> Resources:
        """What the node's kubelet admits; () where it is not there."""
        reading = self._readings.get(name)
        return reading.node.allocatable if reading is not None else ()

    @property
    def next_s(self) -> float:
        """When a node is trusted again; infinity where none is waited for."""
        return self._distrusted.next_s if self._off else float("inf")

    def survey(self, levels: tuple[Level, ...], now_s: float) -> None:
        """Bring what is told up to date."""
        for node in self._distrusted.over(now_s):
            if node in self._off:
                self._off.discard(node)
                self._is_stale = True
        if not self._is_stale:
            return
        self._is_stale = False
        classes: dict[str, GpuClass] = {}
        for reading in self._readings.values():
            for gpu_class in reading.gpu_classes:
                classes.setdefault(gpu_class.name, gpu_class)
        self.nodes = self._dynamic.told(
            replace(reading.node, health=Health.Unfit) if name in self._off else reading.node
            for name, reading in self._readings.items()
        )
        found = tuple(classes[name] for name in sorted(classes))
        self.gpu_classes = self.gpu_classes if found == self.gpu_classes else found
        topology = discover([n.labels for n in self.nodes], levels, self._asked)
        self.topology = self.topology if topology == self.topology else topology
        self.domains = Domains(self.topology, self.nodes)
