"""The words for who belongs where: a pod's facts, its membership, and how far a workload has come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from berth.dialects.objects import OwnerRef, Unseen
from berth.dialects.shape import Disruption
from berth.model.workload import TopologyWish, identity_of


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
    """One pod set of a workload as its owner or group states it.

    `count` 0: as many as there are pods. `follows`: its pods are made only once other sets run; until one of
    them is there it is no part of the gang. `template` is the owner's pod template, for pods that have not
    been created yet; {} where it is not known.
    """

    name: str
    count: int = 0
    min_count: int = 1
    follows: bool = False
    topology: tuple[TopologyWish, ...] = ()
    template: Mapping[str, Any] = {}


class Membership(Struct, frozen=True):
    """Where one pod belongs. Pods with the same `key` are one workload.

    `sets` are all sets of the workload, also those without a pod yet; `pod_set` names the pod's own.
    `least` is the minimum of the whole workload, beside those of its sets: -1 where nobody says, then all its
    pods are waited for; 0 where the sets' own are all that counts.
    `inherited` are Berth's annotations that the pod has from its owners (`berth.dev/gpu-memory` on a Job).
    """

    kind: str  # of what makes them one workload: "PodGroup", "PyTorchJob", "Pod" for a pod by itself
    namespace: str
    name: str
    pod_set: str = "pods"
    sets: tuple[SetNeed, ...] = ()
    least: int = 0
    topology: tuple[TopologyWish, ...] = ()
    queue: str = ""
    priority_class: str = ""
    preemptible: bool | None = None
    min_runtime_s: float = 0.0
    time_limit_s: float = 0.0
    checkpoint_every_s: float = 0.0
    priority: int | None = None  # where the group states a number
    preempts: bool = True
    disruption: Disruption = "single"
    gang_minimum: int = 0  # with disruption "all": its pods that must run together; 0: all of them
    api_version: str = ""  # of the group or owner that makes it one workload
    uid: str = ""  # of the same
    suspended: bool = False
    waits_for: Unseen | None = None  # the group object that is not there
    unseen: tuple[Unseen, ...] = ()  # owners and the like that are named and not at hand: by them it may be another
    inherited: Mapping[str, str] = {}
    provenance: tuple[tuple[str, str], ...] = ()  # (what, from where)
    contradictions: tuple[str, ...] = ()  # one sentence for each disagreement or value that cannot be read
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def identity(self) -> str:
        """What tells the workload from every other: `PodGroup team-a/train`."""
        return identity_of(self.kind, self.key)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of topology that it names."""
        return tuple(wish.level for wishes in (self.topology, *(s.topology for s in self.sets)) for wish in wishes)

    @property
    def minimum(self) -> int:
        """Pods that must start together; 0 where it is all that there are."""
        if self.least < 0:
            return 0
        return max(self.least, sum(s.min_count for s in self.sets if not s.follows))


class Standing(Struct, frozen=True):
    """One set of a workload now.

    `min_count` more must be placed together (waiting pods or missing ones); 0 where enough are bound.
    """

    name: str
    waiting: int
    bound: int
    missing: int  # wanted by the owner and not created yet
    min_count: int
    topology: tuple[TopologyWish, ...] = ()
    template: Mapping[str, Any] = {}  # for the missing ones
