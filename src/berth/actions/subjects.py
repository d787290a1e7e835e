"""Which object of the cluster a workload is told on: its group or owner, or the pod that stands alone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Protocol

from msgspec import Struct

from berth.dialects.conditions import is_told
from berth.dialects.ownership import LWS
from berth.model.workload import Workload

SubjectKey = tuple[str, str, str]  # (kind, namespace, name) of a workload
PodKey = tuple[str, str]  # (namespace, name)
POD = "Pod"


class Reference(Struct, frozen=True, gc=False):
    """An object, as an ownerReference or an Event's `regarding` names it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def as_regarding(self) -> dict[str, str]:
        return {
            "apiVersion": self.api_version, "kind": self.kind, "namespace": self.namespace, "name": self.name,
            "uid": self.uid,
        }  # fmt: skip


class PodSeen(Protocol):
    """A pod as the world knows it. `waits`: it has no node and is to have one."""

    @property
    def uid(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def gates(self) -> tuple[str, ...]: ...
    @property
    def waits(self) -> bool: ...
    @property
    def has_ended(self) -> bool: ...


class Pods(Protocol):
    """What is asked of the world: pods as they are known now, binds on their way counted.

    `members_of` are all pods of a workload, those with a node too, each with whatever is known beside it.
    """

    def record(self, key: PodKey) -> PodSeen | None: ...

    def members_of(self, workload: Workload) -> Iterable[tuple[PodSeen, Any]]: ...


def key_of(workload: Workload) -> SubjectKey:
    return workload.kind, workload.namespace, workload.name


def object_of(workload: Workload) -> Reference | None:
    """The workload's own object, where its uid is known; a gang by a label has none."""
    if not workload.uid or not workload.api_version:
        return None
    name = workload.name
    if (workload.api_version.rpartition("/")[0], workload.kind) == LWS:
        name = name.rpartition("-")[0]  # each replica is a workload, named after the set and its index
    return Reference(workload.api_version, workload.kind, workload.namespace, name, workload.uid)


def shown_on(workload: Workload, pods: Pods) -> Reference | None:
    """Where people look for events: the workload's object, else the first of its pods that waits."""
    if (found := object_of(workload)) is not None:
        return found
    for name in (name for names in workload.pods for name in names):
        record = pods.record((workload.namespace, name))
        if record is not None:
            return Reference("v1", POD, workload.namespace, name, record.uid)
    return None


def group_path(workload: Workload) -> str:
    """The PodGroup whose status is written, "" where there is none."""
    if workload.kind != "PodGroup" or not workload.uid or not is_told(workload.api_version):
        return ""
    return f"/apis/{workload.api_version}/namespaces/{workload.namespace}/podgroups/{workload.name}"


def pod_path(key: PodKey) -> str:
    return f"/api/v1/namespaces/{key[0]}/pods/{key[1]}"


def stamp(epoch_s: float) -> str:
    """A moment as meta/v1 Time: RFC 3339 in whole seconds."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
