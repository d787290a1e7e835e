"""From a node's object, and its ResourceSlices, to the model's node with its devices.

Whole GPUs stand first in `devices`, because only they are units of `device_resource`; GPUs that are cut (MIG)
or shared (time-slicing, MPS) follow with their partitions or replicas. Which partition lies on which GPU, and
which GPU is the unhealthy one, is not in a node's object: they are dealt out evenly, and taken from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from berth.kube import wire
from berth.model.cluster import NO_ISLAND, Device, GpuClass, Health, Node, Partition, Taint
from berth.model.gpus import GpuMapping, gpu_class_of, gpus_expected, partition_classes, replicas_of
from berth.model.mig_profiles import canonical
from berth.model.resources import DEVICE_RESOURCES, NVIDIA_GPU, NVIDIA_SHARED, Resources, get, resources
from berth.sources.requests import MOST, Problems, amount
from berth.sources.slices import NamedDevice

MOST_DEVICES = 256  # more on one node is no node, but a slip of the pen
MOST_TOLD_APART = 63  # whole devices of a node: which of them a pod has is told as bits of a number

_RDMA_RESOURCES = ("rdma/", "nvidia.com/hostdev", "nvidia.com/rdma", "vpc.amazonaws.com/efa", "aliyun/erdma")
_RDMA_LABELS = ("feature.node.kubernetes.io/rdma.available", "feature.node.kubernetes.io/rdma.capable")
_CORDON_TAINT = "node.kubernetes.io/unschedulable"
# What EKS' node monitoring agent says of GPUs.
_HARDWARE_READY = "AcceleratedHardwareReady"

Share = Callable[[str], str]


class NodeReading:
    """A node, its GPU classes (its own first, then those of its partitions), and what is doubtful."""

    __slots__ = ("gpu_classes", "node", "problems")

    def __init__(self, node: Node, gpu_classes: tuple[GpuClass, ...], problems: tuple[str, ...]) -> None:
        self.node = node
        self.gpu_classes = gpu_classes
        self.problems = problems


def read_node(
    node: wire.Node,
    named: tuple[NamedDevice, ...] = (),
    mapping: GpuMapping | None = None,
    share: Share = lambda text: text,
) -> NodeReading:
    """The model's node. `named` are its devices by ResourceSlices; `share` gives one object for equal texts."""
    meta, spec, status = node.metadata or wire.NO_META, node.spec or wire.NodeSpec(), node.status
    problems = Problems()
    capacity = _amounts(status.capacity if status else None, "status.capacity", problems)
    allocatable = _amounts(status.allocatable if status else None, "status.allocatable", problems)
    if status is None or status.allocatable is None:
        allocatable = capacity  # as the API server defaults it
    if not allocatable:
        problems.append("status.allocatable is missing: nothing can be placed there.")
    labels = {share(k): share(v or "") for k, v in (meta.labels or {}).items()}
    told = {**_told_by_devices(named), **labels} if named else labels
    gpu_class = gpu_class_of(told, allocatable, mapping)
    parts = partition_classes(labels, gpu_class) if gpu_class else ()
    resource, devices = _told_apart(*_devices(labels, allocatable, capacity, gpu_class, problems), problems)
    is_counted = any(get(has, r) for has in (capacity, allocatable) for r in (NVIDIA_GPU, NVIDIA_SHARED))
    named_only = bool(named) and not is_counted
    if named and (named_only or len(named) == len(devices)):
        island = 0 if gpu_class and gpu_class.link == "nvlink" else NO_ISLAND
        devices = tuple(d.device(i, island, devices) for i, d in enumerate(named))
    return NodeReading(
        Node(
            name=share(meta.name or ""),
            labels=labels,
            taints=tuple(
                Taint(share(t.key or ""), share(t.value or ""), share(t.effect or ""))
                for t in spec.taints or ()
                if t.key != _CORDON_TAINT  # that is what `cordoned` says
            ),
            cordoned=bool(spec.unschedulable) or any(t.key == _CORDON_TAINT for t in spec.taints or ()),
            ready=_condition(status, "Ready") in ("True", ""),
            health=Health.Unfit if _condition(status, _HARDWARE_READY) == "False" else Health.Fit,
            allocatable=allocatable,
            capacity=capacity,
            gpu_class=gpu_class.name if gpu_class else "",
            device_resource=resource,
            devices=devices,
            named_devices=named_only,
            rdma=_has_rdma(labels, allocatable),
        ),
        (*((gpu_class,) if gpu_class else ()), *(c for _, c, _ in parts)),
        tuple(dict.fromkeys(problems)),
    )


def reread(reading: NodeReading, mapping: GpuMapping | None) -> NodeReading:
    """The same node by another mapping of labels to GPU classes. Its devices are those that are counted."""
    node, problems = reading.node, Problems()
    labels = dict(node.labels)
    gpu_class = gpu_class_of(labels, node.allocatable, mapping)
    parts = partition_classes(labels, gpu_class) if gpu_class else ()
    resource, devices = _told_apart(*_devices(labels, node.allocatable, node.capacity, gpu_class, problems), problems)
    classes = (*((gpu_class,) if gpu_class else ()), *(c for _, c, _ in parts))
    made = replace(node, gpu_class=gpu_class.name if gpu_class else "", device_resource=resource, devices=devices)
    return NodeReading(made, classes, reading.problems)


def _amounts(written: wire.Quantities, path: str, problems: Problems) -> Resources:
    return resources({name: min(amount(name, value, path, problems), MOST) for name, value in (written or {}).items()})


def _condition(status: wire.NodeStatus | None, kind: str) -> str:
    """Status of a condition; "" where nobody says, as in a dump written by hand."""
    for condition in (status.conditions if status else None) or ():
        if condition.type == kind:
            return condition.status or "Unknown"
    return ""


def _has_rdma(labels: Mapping[str, str], allocatable: Resources) -> bool:
    if any(labels.get(label) == "true" for label in _RDMA_LABELS):
        return True
    return any(name.startswith(_RDMA_RESOURCES) or "/rdma-" in name for name, _ in allocatable)


# ---- devices


def _devices(
    labels: Mapping[str, str],
    allocatable: Resources,
    capacity: Resources,
    gpu_class: GpuClass | None,
    problems: Problems,
) -> tuple[str, tuple[Device, ...]]:
    """(resource whose units are whole devices, devices)."""
    resource = next((r for r in DEVICE_RESOURCES if get(capacity, r) or get(allocatable, r)), "")
    advertised = max(get(capacity, resource), get(allocatable, resource)) if resource else 0
    fit = get(allocatable, resource)
    if max(advertised, get(capacity, NVIDIA_SHARED)) > MOST_DEVICES * 64:
        problems.append(f"{resource or NVIDIA_SHARED} is {advertised}: no node has so many, they are only counted.")
        return "", ()
    island = 0 if gpu_class and gpu_class.link == "nvlink" else NO_ISLAND
    expected = min(gpus_expected(labels), MOST_DEVICES)
    if resource not in ("", NVIDIA_GPU):
        return resource, _whole(min(advertised, MOST_DEVICES), fit, island)
    if gpu_class and gpu_class.profile:  # strategy single: every unit is a partition
        cut = _cut(expected, 0, [(NVIDIA_GPU, gpu_class.profile, gpu_class.memory_bytes, advertised)])
        return "", cut
    replicas, _ = replicas_of(labels)
    shared = max(get(capacity, NVIDIA_SHARED), get(allocatable, NVIDIA_SHARED))
    if replicas > 1 or shared:
        number = expected or -(-max(advertised, shared) // replicas)
        return "", tuple(Device(i, island=island, replicas=replicas) for i in range(min(number, MOST_DEVICES)))
    whole = _whole(min(advertised, MOST_DEVICES), fit, island)
    counts = [(name, canonical(name), 0, number) for name, number in capacity if name.startswith("nvidia.com/mig-")]
    if not counts:
        return (resource if whole else ""), whole
    if gpu_class:
        memory = {name: c.memory_bytes for name, c, _ in partition_classes(labels, gpu_class)}
        counts = [(name, profile, memory.get(name, 0), number) for name, profile, _, number in counts]
    return (resource if whole else ""), whole + _cut(max(expected - len(whole), 1), len(whole), counts)


def _told_apart(resource: str, devices: tuple[Device, ...], problems: Problems) -> tuple[str, tuple[Device, ...]]:
    """Devices as they are, where they can be told apart; else they are counted like any other resource."""
    if not resource or len(devices) <= MOST_TOLD_APART:
        return resource, devices
    problems.append(
        f"{resource} is {len(devices)}: up to {MOST_TOLD_APART} devices of a node are told apart, so these are only "
        "counted, and none of them is shared."
    )
    return "", ()


def _whole(number: int, fit: int, island: int) -> tuple[Device, ...]:
    """Devices given out whole. The kubelet admits `fit` of them; the others are unhealthy."""
    return tuple(Device(i, island=island, health=Health.Fit if i < fit else Health.Unfit) for i in range(number))


def _cut(number: int, start: int, counts: list[tuple[str, str, int, int]]) -> tuple[Device, ...]:
    """GPUs with their partitions, from (resource, profile, memory, partitions on the node)."""
    if not number:
        return ()
    parts: list[list[Partition]] = [[] for _ in range(number)]
    for resource, profile, memory_bytes, total in counts:
        for k in range(min(total, number * 64)):
            parts[k % number].append(Partition(profile, resource, memory_bytes))
    return tuple(Device(start + i, partitions=tuple(p)) for i, p in enumerate(parts))


def _told_by_devices(named: tuple[NamedDevice, ...]) -> dict[str, str]:
    """What feature discovery would have said, from the first device's attributes."""
    first = named[0]
    told = {"nvidia.com/gpu.count": str(len(named))}
    if first.product:
        told["nvidia.com/gpu.product"] = first.product.replace(" ", "-")
    if first.memory_bytes:
        told["nvidia.com/gpu.memory"] = str(first.memory_bytes >> 20)
    if first.compute != (0, 0):
        told["nvidia.com/gpu.compute.major"], told["nvidia.com/gpu.compute.minor"] = map(str, first.compute)
    return told
