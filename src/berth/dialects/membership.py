"""Which workload a pod of a running cluster belongs to, by whichever dialect speaks on it.

Order of precedence: upstream `spec.schedulingGroup`, Berth's keys, KAI, Volcano, scheduler-plugins, Kueue,
and at last what the owners say. Where two disagree the first is taken, and the disagreement is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from berth.dialects.shape import Manifest
from berth.model.workload import TopologyWish

ObjectKey = tuple[str, str, str, str]  # (API group, kind, namespace, name): PodGroup exists in four groups
Objects = Mapping[ObjectKey, Manifest]


class OwnerRef(Struct, frozen=True, gc=False):
    """One of metadata.ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str = ""
    controller: bool = False


class PodFacts(Struct, frozen=True):
    """What decides where a pod belongs. `bound`: it has a node; `ended`: Succeeded or Failed."""

    name: str
    namespace: str = "default"
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owners: tuple[OwnerRef, ...] = ()
    scheduling_group: str = ""  # spec.schedulingGroup.podGroupName
    scheduler: str = ""
    priority_class: str = ""
    bound: bool = False
    ended: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class SetNeed(Struct, frozen=True):
    """One pod set of a workload as its owner or group states it. `count` 0: as many as there are pods."""

    name: str
    count: int = 0
    min_count: int = 1
    topology: tuple[TopologyWish, ...] = ()


class Membership(Struct, frozen=True):
    """Where one pod belongs. Pods with the same `key` are one workload.

    `sets` are all sets of the workload, also those without a pod yet; `pod_set` names the pod's own.
    `contradictions`: one sentence for each disagreement between dialects. `provenance`: (what, from where).
    """

    kind: str  # of what makes them one workload: "PodGroup", "PyTorchJob", "Pod" for a pod by itself
    namespace: str
    name: str
    pod_set: str = ""
    sets: tuple[SetNeed, ...] = ()
    topology: tuple[TopologyWish, ...] = ()
    queue: str = ""
    priority_class: str = ""
    preemptible: bool | None = None
    min_runtime_s: float = 0.0
    time_limit_s: float = 0.0
    suspended: bool = False
    waits_for: str = ""  # why it cannot be decided yet: "PodGroup train/pg does not exist"
    provenance: tuple[tuple[str, str], ...] = ()
    contradictions: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def minimum(self) -> int:
        return sum(s.min_count for s in self.sets)


class Standing(Struct, frozen=True, gc=False):
    """One set of a workload now. `min_count` is what must still be placed together; 0 where none must."""

    name: str
    waiting: int
    bound: int
    missing: int  # wanted by the owner and not created yet
    min_count: int
    topology: tuple[TopologyWish, ...] = ()


def index(objects: Iterable[Manifest]) -> dict[ObjectKey, Manifest]:
    """Objects by (API group, kind, namespace, name). What is no object is left out."""
    found: dict[ObjectKey, Manifest] = {}
    for thing in objects:
        meta = thing.get("metadata")
        if not isinstance(meta, Mapping):
            continue
        group = str(thing.get("apiVersion", "")).rpartition("/")[0]
        key = (group, str(thing.get("kind", "")), str(meta.get("namespace") or ""), str(meta.get("name", "")))
        found[key] = thing
    return found


def membership_of(pod: PodFacts, objects: Objects) -> Membership:
    """The workload of one pod. Never raises: what cannot be read is told in `contradictions`."""
    return Membership("Pod", pod.namespace, pod.name, "pods", (SetNeed("pods", 1, 1),))


def standings(membership: Membership, pods: Iterable[tuple[PodFacts, str]]) -> tuple[Standing, ...]:
    """How far the workload has come. `pods` are all pods of the workload, each with its pod set's name."""
    return ()
