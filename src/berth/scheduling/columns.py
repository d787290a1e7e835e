"""The cluster as columns: what is free on each node, device by device, and what each node is.

Shapes: N nodes, R resources, G devices of the largest node, L topology levels. Amounts are in the unit of
their resource (berth.model.resources); a device is 1000 milli.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Allocation, GpuClass, Health, Node
from berth.model.resources import CPU, MEMORY, PODS, is_accelerator
from berth.model.snapshot import Snapshot
from berth.model.topology import Topology
from berth.model.volumes import NO_LIMIT, is_offered
from berth.model.workload import WHOLE, PodClass

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Codes = NDArray[np.int32]

NO_DEVICE = -1  # milli of a device that is not there or must not be given out
FIRST_RESOURCES = (CPU, MEMORY, PODS)
MOST = 2**31 - 1  # devices of one pod that a row can say; more are on no node
NUMBERS_KEPT = 4_096  # pod classes
MOST_PODS = 2**31  # where a node does not say how many pods it takes


@dataclass
class Columns:
    """Mutable: a Draft works on its own copy of the amounts; the rest is shared.

    free, empty        (N, R) int64: what is left; what is left when only DaemonSets run
    device_free        (N, G) int32: milli left of each device, NO_DEVICE where there is none
    island             (N, G) int32: NVLink island of each device, -1 for none
    pool               (N,) int32: the resource whose units are the devices, -1 for none
    there              (N, G) bool: a device is there, fit or not
    broken             (N,) bool: some device is there and must not be given out
    suspect            (N,) bool: the node or a device of it may be failing
    gpu_class          (N,) int32: index into gpu_classes, -1 for none
    domain             (L, N) int32: domain of each node at each level, -1 where a label is missing
    """

    nodes: tuple[Node, ...]
    index: dict[str, int]
    resources: tuple[str, ...]
    gpu_classes: tuple[GpuClass, ...]
    topology: Topology
    free: I64
    empty: I64
    device_free: I32
    island: I32
    pool: I32
    there: NDArray[np.bool_]
    broken: NDArray[np.bool_]
    suspect: NDArray[np.bool_]
    gpu_class: I32
    domain: I32
    domain_names: tuple[tuple[str, ...], ...]
    guarded: tuple[int, ...] = ()  # nodes that are tainted, cordoned, not ready, unfit or unsafe
    masks: list[list[int]] = field(default_factory=list)  # by node, the devices that each pod on it holds in full
    lost: tuple[str, ...] = ()  # allocations that could not be counted, a sentence each
    offered: tuple[str, ...] = ()  # resources of which an empty node may have more: who holds them is not on a node
    _labels: dict[str, tuple[Codes, dict[str, int]]] = field(default_factory=dict)
    _dynamic: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    _numbers: dict[int, tuple[PodClass, I64, I32]] = field(default_factory=dict)  # by the identity of a class

    @property
    def size(self) -> int:
        return len(self.nodes)

    def column(self, resource: str) -> int:
        """Index of a resource, -1 where neither a node nor a request names it."""
        try:
            return self.resources.index(resource)
        except ValueError:
            return -1

    def changed_nodes(self, nodes: tuple[Node, ...]) -> I64 | None:
        """Positions of nodes that are not what they were; None where the columns have to be made anew.

        That is where nodes came, went or changed places, where many changed, or where one changed what columns are
        laid out by: its resources, its number of devices, its place in the topology.
        """
        if len(nodes) != len(self.nodes):
            return None
        changed = [n for n, (old, new) in enumerate(zip(self.nodes, nodes, strict=True)) if old is not new]
        if len(changed) > max(len(nodes) // 8, 1):
            return None
        for n in changed:
            old, new = self.nodes[n], nodes[n]
            if (old.name, old.device_resource, len(old.devices)) != (new.name, new.device_resource, len(new.devices)):
                return None
            if [name for name, _ in old.allocatable] != [name for name, _ in new.allocatable]:
                return None
            if any(old.labels.get(level.label) != new.labels.get(level.label) for level in self.topology.levels):
                return None
        return np.array(changed, np.int64)

    def replace_nodes(self, nodes: tuple[Node, ...], changed: I64) -> None:
        """Take in nodes that are not what they were. Their amounts are counted by `refill`."""
        self.nodes = nodes
        class_index = {c.name: i for i, c in enumerate(self.gpu_classes)}
        guarded = set(self.guarded)
        for n in changed.tolist():
            self.gpu_class[n] = class_index.get(nodes[n].gpu_class, -1)
            self.suspect[n] = nodes[n].is_suspect
            guarded.discard(n)
            if is_guarded(nodes[n]):
                guarded.add(n)
        self.guarded = tuple(sorted(guarded))
        self._labels.clear()
        self._dynamic.clear()

    def part(self, nodes: I64) -> Columns:
        """The columns of some nodes alone."""
        place = {int(n): i for i, n in enumerate(nodes)}
        some = tuple(self.nodes[n] for n in nodes)
        return replace(
            self, nodes=some, index={n.name: i for i, n in enumerate(some)},
            free=self.free[nodes], empty=self.empty[nodes], device_free=self.device_free[nodes],
            island=self.island[nodes], pool=self.pool[nodes], there=self.there[nodes], broken=self.broken[nodes],
            suspect=self.suspect[nodes], gpu_class=self.gpu_class[nodes], domain=self.domain[:, nodes],
            guarded=tuple(place[n] for n in self.guarded if n in place),
            masks=[self.masks[n] for n in nodes], _labels={}, _dynamic={}, _numbers={},
        )  # fmt: skip

    def mended_devices(self, device_free: I32) -> I32:
        """(N, G) `device_free` with every device that is there fit."""
        mended: I32 = np.where(self.there & (device_free < 0), WHOLE, device_free).astype(np.int32)
        return mended

    def gpu_milli(self) -> I64:
        """(N,) what there is to give out: fit devices, and what the node offers of partitions."""
        milli = (self.device_free > NO_DEVICE).sum(axis=1) * WHOLE
        for r, name in enumerate(self.resources):
            if is_accelerator(name):
                offered = np.minimum(np.maximum(self.empty[:, r], 0), MOST)
                milli = milli + np.where(self.pool == r, 0, offered) * WHOLE
        found: I64 = milli.astype(np.int64)
        return found

    def label(self, key: str) -> tuple[Codes, dict[str, int]]:
        """Values of a label as codes, (N,), -1 where it is absent; and the code of each value."""
        if key not in self._labels:
            self._labels[key] = _codes([n.labels.get(key) for n in self.nodes])
        return self._labels[key]

    def is_dynamic(self, resource: str) -> NDArray[np.bool_]:
        """(N,) nodes on which the resource is given by dynamic allocation alone."""
        if resource not in self._dynamic:
            self._dynamic[resource] = np.array([resource in n.dynamic_resources for n in self.nodes], bool)
        return self._dynamic[resource]


def columns_of(snapshot: Snapshot, pod_classes: Iterable[PodClass] = ()) -> Columns:
    """Columns for a snapshot; `pod_classes` adds the resources that only requests name."""
    nodes = snapshot.nodes
    names: dict[str, int] = {name: i for i, name in enumerate(FIRST_RESOURCES)}
    for node in nodes:
        for name, _ in node.allocatable:
            names.setdefault(name, len(names))
    for pod_class in pod_classes:
        for name, _ in pod_class.requests:
            names.setdefault(name, len(names))
    class_index = {c.name: i for i, c in enumerate(snapshot.gpu_classes)}
    most = max((len(n.devices) for n in nodes), default=0) or 1

    shape = (len(nodes), len(names))
    domain, domain_names = _domains(nodes, snapshot.topology)
    columns = Columns(
        nodes=nodes,
        index={n.name: i for i, n in enumerate(nodes)},
        resources=tuple(names),
        gpu_classes=snapshot.gpu_classes,
        topology=snapshot.topology,
        free=np.zeros(shape, np.int64),
        empty=np.zeros(shape, np.int64),
        device_free=np.full((len(nodes), most), NO_DEVICE, np.int32),
        island=np.full((len(nodes), most), -1, np.int32),
        pool=np.full(len(nodes), -1, np.int32),
        there=np.zeros((len(nodes), most), bool),
        broken=np.zeros(len(nodes), bool),
        suspect=np.array([n.is_suspect for n in nodes], bool),
        gpu_class=np.array([class_index.get(n.gpu_class, -1) for n in nodes], np.int32).reshape(len(nodes)),
        domain=domain,
        domain_names=domain_names,
        guarded=tuple(i for i, n in enumerate(nodes) if is_guarded(n)),
        offered=tuple(name for name in names if is_offered(name)),
    )
    held_on, columns.lost = by_node(snapshot.allocations, columns.index)
    columns.masks = [[] for _ in nodes]
    for n in range(len(nodes)):
        refill(columns, n, held_on.get(n, ()))
    return columns


def is_guarded(node: Node) -> bool:
    """Some pods are kept off the node, whatever they ask for."""
    return bool(node.taints or node.unsafe) or node.cordoned or not node.ready or node.health == Health.Unfit


def by_node(
    allocations: Iterable[Allocation], index: Mapping[str, int]
) -> tuple[dict[int, list[Allocation]], tuple[str, ...]]:
    """Allocations by index of their node, in their order; and a sentence for each whose node is not there."""
    held_on: dict[int, list[Allocation]] = {}
    lost: list[str] = []
    for allocation in allocations:
        n = index.get(allocation.node)
        if n is None:
            pod = f"{allocation.namespace}/{allocation.name}"
            lost.append(f"pod {pod} is on node {allocation.node}, which is not there")
        else:
            held_on.setdefault(n, []).append(allocation)
    return held_on, tuple(lost)


def refill(columns: Columns, n: int, allocations: Iterable[Allocation]) -> None:
    """Work out one node's amounts anew."""
    node = columns.nodes[n]
    columns.pool[n] = columns.column(node.device_resource) if node.devices else -1
    if columns.pool[n] >= 0:
        columns.there[n] = np.arange(columns.there.shape[1]) < len(node.devices)
        columns.island[n, : len(node.devices)] = [device.island for device in node.devices]
    settled = settle(columns, n, allocations)
    columns.broken[n] = columns.pool[n] >= 0 and settled.given_out < len(node.devices)
    columns.free[n], columns.empty[n], columns.device_free[n] = settled.free, settled.empty, settled.left
    columns.masks[n] = settled.masks


@dataclass(frozen=True)
class Settled:
    """A node's amounts with some pods on it. `masks` are the devices that each pod holds in full."""

    free: list[int]
    empty: list[int]
    left: list[int]
    masks: list[int]
    given_out: int  # devices that may be given out


def settle(columns: Columns, n: int, allocations: Iterable[Allocation]) -> Settled:
    """A node's amounts if just these pods were on it. Named devices first: a counted pod's are only a prediction."""
    node, pool = columns.nodes[n], int(columns.pool[n])
    free = dict.fromkeys(columns.resources, 0)
    free[PODS] = MOST_PODS
    free.update(node.allocatable)
    left = [NO_DEVICE] * columns.device_free.shape[1]
    given_out = 0
    if pool >= 0:
        admitted = free[node.device_resource]
        for g, device in enumerate(node.devices):
            # Where the kubelet admits fewer devices than are there, the last are left out.
            if given_out < admitted and device.health in (Health.Fit, Health.Suspect):
                left[g] = WHOLE
                given_out += 1
        free[node.device_resource] = given_out
    empty = dict(free)
    empty.update((name, NO_LIMIT) for name in columns.offered)
    if pool >= 0:
        empty[node.device_resource] = len(node.devices)  # a broken device can be mended
    counted: list[tuple[int, int, int]] = []
    masks: list[int] = []
    for allocation in allocations:
        milli, asked = allocation.pod_class.gpu_milli, 0
        for name, amount in allocation.pod_class.requests:
            if name not in free:
                continue  # nobody advertises it or waits for it
            free[name] -= amount
            shares = name == node.device_resource
            if shares:
                asked = amount
            if allocation.is_daemon and not (shares and milli < WHOLE):
                empty[name] -= amount
        free[PODS] -= 1
        if allocation.is_daemon:
            empty[PODS] -= 1
        masks.append(0)
        if pool < 0:
            continue
        if allocation.devices:
            masks[-1] = _hold(left, allocation.devices, milli)
        elif asked:
            counted.append((len(masks) - 1, asked, milli))
    for i, asked, milli in counted:
        masks[i] = _hold(left, predict(left, asked, milli), milli)
    if pool >= 0:
        # Fractions and over-commitment make the count and the devices differ: the devices are the truth.
        free[node.device_resource] = left.count(WHOLE)
    names = columns.resources
    return Settled([free[name] for name in names], [empty[name] for name in names], left, masks, given_out)


def _hold(left: list[int], devices: Iterable[int], milli: int) -> int:
    """Take a pod's devices; those that it has for itself as far as anybody knows, as a bit mask."""
    mask = 0
    for g in devices:
        if 0 <= g < len(left) and left[g] > 0:
            if left[g] >= milli:
                mask |= 1 << g
            left[g] = max(0, left[g] - milli)
    return mask


def numbers(pod_class: PodClass, columns: Columns) -> tuple[I64, I32]:
    """A row of `need` and of `ask`; not to be changed."""
    known = columns._numbers.get(id(pod_class))
    if known is None:
        if len(columns._numbers) >= NUMBERS_KEPT:
            columns._numbers.clear()
        known = columns._numbers[id(pod_class)] = (pod_class, *_numbers(pod_class, columns))
    return known[1], known[2]


def _numbers(pod_class: PodClass, columns: Columns) -> tuple[I64, I32]:
    need = np.zeros(len(columns.resources), np.int64)
    ask = np.array([-1, 0, WHOLE, 0], np.int32)
    need[columns.column("pods")] = 1
    for name, amount in pod_class.requests:
        column = columns.column(name)
        if column < 0:
            continue  # of a pod that runs: nobody advertises it
        if is_accelerator(name) and (pod_class.gpu_milli < WHOLE or bool((columns.pool == column).any())):
            ask[:] = (column, min(amount, MOST), pod_class.gpu_milli, pod_class.least.link.lower() == "nvlink")
            if pod_class.gpu_milli < WHOLE:
                continue
        need[column] = amount
    return need, ask


def predict(left: Sequence[int] | I32, count: int, milli: int) -> tuple[int, ...]:
    """The devices that a counted pod probably holds: the fullest that fit, lowest index first."""
    candidates = [g for g in range(len(left)) if left[g] >= milli]
    candidates.sort(key=lambda g: (left[g], g))
    return tuple(candidates[:count])


def _domains(nodes: tuple[Node, ...], topology: Topology) -> tuple[I32, tuple[tuple[str, ...], ...]]:
    """Domains by the path of labels from the widest level down; the path may skip levels without a label."""
    domain = np.full((len(topology.levels), len(nodes)), -1, np.int32)
    all_names: list[tuple[str, ...]] = []
    for depth, level in enumerate(topology.levels):
        ids: dict[tuple[str, ...], int] = {}
        for n, node in enumerate(nodes):
            value = node.labels.get(level.label)
            if value is None:
                continue
            path = tuple(node.labels.get(above.label, "") for above in topology.levels[: depth + 1])
            domain[depth, n] = ids.setdefault(path, len(ids))
        all_names.append(tuple("/".join(part for part in path if part) for path in ids))
    return domain, tuple(all_names)


def _codes(values: list[str | None]) -> tuple[Codes, dict[str, int]]:
    vocabulary: dict[str, int] = {}
    codes = np.array([-1 if v is None else vocabulary.setdefault(v, len(vocabulary)) for v in values], np.int32)
    return codes, vocabulary
