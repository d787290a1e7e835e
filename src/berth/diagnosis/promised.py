"""Nodes whose labels promise GPUs, and which offer none: they were printed whole, and no resource of GPUs is among what
they have. A label is what discovery or a cloud once wrote; it is a hint of hardware, and not a count of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import Advertised, NodeSeen, ObjectSeen, Operand, PodSeen
from berth.evidence.formats.resource_slices import SliceDevice, devices_of

# Labels by which a node is said to have GPUs, whoever wrote them.
_HAS_GPUS = (
    "nvidia.com/gpu.present", "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator", "kubernetes.azure.com/accelerator", "karpenter.k8s.aws/instance-gpu-count",
)  # fmt: skip
_COUNTS = (
    "nvidia.com/gpu.count", "karpenter.k8s.aws/instance-gpu-count", "eks.amazonaws.com/instance-gpu-count",
    "cloud.google.com/gke-accelerator-count",
)  # fmt: skip
_NONE = ("", "false", "0")
# Where a label says that it is meant so, or that it passes: by any key, and by the operator's own.
_KEPT_AWAY = ("dra", "paused-for-driver-upgrade", "paused-for-mig-change", "vm-passthrough", "vm-vgpu")
_OPERATED = ("nvidia.com/gpu.deploy.operands", "nvidia.com/gpu.deploy.device-plugin")
_CLAIMS = "dra-driver"  # in the names of the pods of NVIDIA's driver for claims


class Promise(Struct, frozen=True):
    """What a node's labels say that it has."""

    label: str
    count: int | None  # None: that there are some


def promised(facts: Facts) -> Mapping[str, Promise]:
    """By node. None where claims, virtual machines, partitions or somebody's label explain that no GPU is offered."""
    return _promised(facts, len(facts))


@lru_cache(maxsize=1)
def _promised(facts: Facts, size: int) -> dict[str, Promise]:
    """`size` tells the same facts from those that have grown since."""
    nodes = {node.name: node for node in facts.of(NodeSeen) if node.is_counted}
    found = {name: said for name, node in nodes.items() if (said := _promise(node.labels)) is not None}
    if not found or _is_by_claims(facts):
        return {}
    for one in facts.of(Advertised):
        if is_of_gpus(one.resource) and max(one.capacity, one.allocatable) > 0:
            found.pop(one.name or one.node, None)
    for pod in facts.of(PodSeen):
        if any(limit.claims for limit in pod.limits) or _CLAIMS in pod.name:
            found.pop(pod.on, None)
    return found


def is_of_gpus(resource: str) -> bool:
    """Any way in which GPUs are offered: whole, in parts, shared, or to virtual machines (nvidia.com/GH100_H100)."""
    return resource.startswith("nvidia.com/") or "gpu" in resource.lower()


def _promise(labels: Mapping[str, str]) -> Promise | None:
    label = next((key for key in _HAS_GPUS if labels.get(key, "") not in _NONE), "")
    is_off = any(key in labels and labels[key] in _NONE for key in _OPERATED)
    if not label or is_off or not set(labels.values()).isdisjoint(_KEPT_AWAY):
        return None
    count = next((int(labels[key]) for key in _COUNTS if labels.get(key, "").isdecimal()), None)
    return None if count == 0 else Promise(label, count)


def _is_by_claims(facts: Facts) -> bool:
    """Does anything offer GPUs as devices to claim? Slices may be of nodes that they do not name."""
    return (
        any("gpu" in device.driver for one in facts.of(ObjectSeen) for device in devices_of(one))
        or any("gpu" in one.driver for one in facts.of(SliceDevice))
        or any("gpu" in one.name for one in facts.of(ObjectSeen) if one.kind == "DeviceClass")
        or any(_CLAIMS in one.name for one in facts.of(Operand))
    )
