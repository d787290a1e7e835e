"""The nodes of a cluster that changes: their devices, GPU classes and domains, what their agents found, and which are
not trusted for now."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from msgspec.structs import replace

from berth.kube import wire, wire_devices
from berth.kube.wire_ledger import NodeLedger
from berth.model.cluster import GpuClass, Health, Node
from berth.model.gpus import GpuMapping
from berth.model.resources import Resources, is_accelerator
from berth.model.topology import Level, Topology, discover
from berth.model.volumes import ATTACHED, ROOM, VOLUMES
from berth.sources.device_classes import DeviceClasses
from berth.sources.domains import Domains
from berth.sources.health import SILENT_S
from berth.sources.live.agents import Agents
from berth.sources.live.refusals import Refusals
from berth.sources.nodes import NodeReading, read_node, reread

_OF_STORAGE = (ATTACHED, ROOM, VOLUMES)
FIRST_S, MOST_S = 2.0, 300.0  # for which a node gets nothing new


def standing_of(node: Node) -> Hashable:
    """What says whether a node takes new pods, and which devices it offers: who may go there is decided by it, and may
    be decided otherwise by another. What only others use up, or a heartbeat brings, is no part of it."""
    offers = tuple(one for one in node.allocatable if is_accelerator(one[0]) and not one[0].startswith(_OF_STORAGE))
    unfit = sum(d.health == Health.Unfit for d in node.devices)
    return node.cordoned, node.ready, node.taints, node.health, unfit, node.unsafe, node.gpu_class, node.rdma, offers


class Ground:
    """`nodes`, `gpu_classes`, `topology` and `domains` are of the last `survey`.

    Nothing is changed by a heartbeat: what has not changed stays the same object.
    """

    def __init__(
        self, mapping: GpuMapping | None, share: Callable[[str], str], silent_s: float = SILENT_S
    ) -> None:
        self._mapping = mapping
        self._share = share
        self._readings: dict[str, NodeReading] = {}
        self._told: dict[str, Node] = {}  # with what their agents found
        self._agents = Agents(silent_s)
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
        node = self._told.get(name)
        return standing_of(self._as_trusted(node)) if node is not None else None

    def _as_trusted(self, node: Node) -> Node:
        return replace(node, health=Health.Unfit, code="") if node.name in self._off else node

    def _tell(self, name: str) -> None:
        """Work out a node anew: it, or what its agent says, has changed."""
        if name in self._readings:
            self._told[name] = self._agents.heeded(self._readings[name].node)
            self._is_stale = True

    def put(self, node: wire.Node) -> bool:
        """Whether anything changed that decides."""
        name = (node.metadata or wire.NO_META).name or ""
        reading = read_node(node, (), self._mapping, self._share)
        known = self._readings.get(name)
        if known is not None and known.node == reading.node:
            return False
        self._readings[name] = reading
        self._tell(name)
        return True

    def drop(self, name: str) -> bool:
        self._is_stale |= name in self._readings
        self._told.pop(name, None)
        return self._readings.pop(name, None) is not None

    def put_ledger(self, ledger: NodeLedger, now_s: float) -> bool:
        """Whether anything changed that decides. A heartbeat does only where the agent was taken for silent."""
        name = (ledger.metadata or wire.NO_META).name or ""
        has_changed = self._agents.put(name, ledger, now_s)
        if has_changed:
            self._tell(name)
        return has_changed

    def drop_ledger(self, name: str) -> bool:
        has_changed = self._agents.drop(name)
        if has_changed:
            self._tell(name)
        return has_changed

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
        for name in self._readings:
            self._tell(name)
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
        """When a node is trusted again, or an agent may have fallen silent; infinity where nothing is waited for."""
        return min(self._distrusted.next_s if self._off else float("inf"), self._agents.next_s)

    def survey(self, levels: tuple[Level, ...], now_s: float) -> None:
        """Bring what is told up to date."""
        for node in self._distrusted.over(now_s):
            if node in self._off:
                self._off.discard(node)
                self._is_stale = True
        for name in self._agents.judge(now_s):
            self._tell(name)
        if not self._is_stale:
            return
        self._is_stale = False
        classes: dict[str, GpuClass] = {}
        for reading in self._readings.values():
            for gpu_class in reading.gpu_classes:
                classes.setdefault(gpu_class.name, gpu_class)
        told = (self._told[name] for name in self._readings)  # in the order in which nodes are listed
        self.nodes = self._dynamic.told(self._as_trusted(node) for node in told)
        found = tuple(classes[name] for name in sorted(classes))
        self.gpu_classes = self.gpu_classes if found == self.gpu_classes else found
        topology = discover([n.labels for n in self.nodes], levels, self._asked)
        self.topology = self.topology if topology == self.topology else topology
        self.domains = Domains(self.topology, self.nodes)
