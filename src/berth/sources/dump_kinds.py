"""Which kinds of a dump are read, and into what: a wire Struct, or a plain mapping for owners and dialects."""

from __future__ import annotations

import typing
from functools import cache, lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from berth.kube import (
    wire,
    wire_budgets,
    wire_devices,
    wire_ledger,
    wire_queues,
    wire_reservations,
    wire_state,
    wire_volumes,
)

TYPES: dict[tuple[str, str], type[Struct]] = {
    # (API group, kind): type
    ("", "Node"): wire.Node,
    ("", "Pod"): wire.Pod,
    ("", "PersistentVolume"): wire_volumes.PersistentVolume,
    ("", "PersistentVolumeClaim"): wire_volumes.PersistentVolumeClaim,
    ("storage.k8s.io", "StorageClass"): wire_volumes.StorageClass,
    ("storage.k8s.io", "CSINode"): wire_volumes.CsiNode,
    ("storage.k8s.io", "CSIDriver"): wire_volumes.CsiDriver,
    ("storage.k8s.io", "CSIStorageCapacity"): wire_volumes.CsiStorageCapacity,
    ("scheduling.k8s.io", "PriorityClass"): wire.PriorityClass,
    ("policy", "PodDisruptionBudget"): wire_budgets.PodDisruptionBudget,
    ("resource.k8s.io", "DeviceClass"): wire_devices.DeviceClass,
    ("resource.k8s.io", "ResourceSlice"): wire_devices.ResourceSlice,
    ("resource.k8s.io", "ResourceClaim"): wire_devices.ResourceClaim,
    ("berth.dev", "NodeLedger"): wire_ledger.NodeLedger,
    ("berth.dev", wire_state.KIND): wire_state.BerthState,
    ("kueue.x-k8s.io", "Topology"): wire_queues.Topology,
    ("kai.scheduler", "Topology"): wire_queues.Topology,
}

# Of Berth's own group: what people write is read as it stands and held to its schema (own_kinds.py).
GROUP = "berth.dev"
CHECKED: dict[str, type[Struct]] = {
    "GPUQueue": wire_queues.GPUQueue,
    "GPUReservation": wire_reservations.GPUReservation,
    "GPUTopology": wire_queues.Topology,
    "GPUClass": wire_queues.GPUClass,
}
OWN = (*CHECKED, "Verdict", "NodeLedger", wire_state.KIND)

# Owners of pods and the objects of other schedulers: read as they are by `berth.dialects`.
PLAIN_GROUPS = frozenset(
    (
        "batch",
        "apps",
        "scheduling.k8s.io",
        "scheduling.x-k8s.io",
        "scheduling.sigs.k8s.io",
        "scheduling.volcano.sh",
        "batch.volcano.sh",
        "scheduling.run.ai",
        "kai.scheduler",
        "kueue.x-k8s.io",
        "kubeflow.org",
        "trainer.kubeflow.org",
        "ray.io",
        "jobset.x-k8s.io",
        "leaderworkerset.x-k8s.io",
        "scheduler.grove.io",
        "grove.io",
    )
)
# Of those groups, what says nothing about pods that are there or should be.
_PASSED_OVER = frozenset((("apps", "ControllerRevision"), ("apps", "DaemonSet"), ("batch", "CronJob")))

# For people: what a field holds when it is not what its Struct says.
PLAIN = dict


@lru_cache(maxsize=4096)
def type_of(api_version: str, kind: str) -> type[Any] | None:
    """What to decode an object into: a Struct, `PLAIN`, or None where the kind is not read."""
    group = api_version.rpartition("/")[0]
    if (group, kind) in TYPES:
        return TYPES[group, kind]
    if is_checked(api_version, kind):
        return PLAIN
    if group in PLAIN_GROUPS and (group, kind) not in _PASSED_OVER:
        return PLAIN
    return None


def is_checked(api_version: str, kind: str) -> bool:
    """Is it one of Berth's kinds that people write?"""
    return kind in CHECKED and api_version.rpartition("/")[0] == GROUP


@cache
def fields_read(wire_type: type[Struct]) -> dict[str, frozenset[str] | None]:
    """Names on the wire of the fields of a Struct; for those that are Structs, the names inside."""
    return {f.encode_name: _names_inside(f.type) for f in fields(wire_type)}


def _names_inside(annotation: Any) -> frozenset[str] | None:
    for option in (annotation, *typing.get_args(annotation)):
        if isinstance(option, type) and issubclass(option, Struct):
            return frozenset(f.encode_name for f in fields(option))
    return None
