"""Kubernetes objects reduced to the fields that a diagnosis reads, as they travel."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

Texts = dict[str, str | None] | None
Quantities = dict[str, Any] | None


class Wire(Struct, frozen=True, gc=False, rename="camel"):
    """camelCase on the wire. Every field may be absent or null."""


class OwnerReference(Wire, frozen=True, gc=False):
    kind: str | None = None
    name: str | None = None
    controller: bool | None = None


class Meta(Wire, frozen=True, gc=False):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    labels: Texts = None
    annotations: Texts = None
    owner_references: tuple[OwnerReference, ...] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class Reference(Wire, frozen=True, gc=False):
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None


class Item(Wire, frozen=True, gc=False):
    """Any object: what it is, and its parts still in bytes."""

    api_version: str | None = None
    kind: str | None = None
    metadata: Meta | None = None
    spec: Raw = Raw(b"")
    status: Raw = Raw(b"")
    items: list[Raw] | None = None


class TaintWire(Wire, frozen=True, gc=False):
    key: str | None = None
    value: str | None = None
    effect: str | None = None


class ConditionWire(Wire, frozen=True, gc=False):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class NodeSpec(Wire, frozen=True, gc=False):
    taints: tuple[TaintWire, ...] | None = None
    unschedulable: bool | None = None


class NodeSystem(Wire, frozen=True, gc=False):
    kubelet_version: str | None = None
    container_runtime_version: str | None = None
    kernel_version: str | None = None
    os_image: str | None = None


class NodeStatus(Wire, frozen=True, gc=False):
    capacity: Quantities = None
    allocatable: Quantities = None
    conditions: tuple[ConditionWire, ...] | None = None
    node_info: NodeSystem | None = None


class Resources(Wire, frozen=True, gc=False):
    limits: Quantities = None
    requests: Quantities = None
    claims: tuple[Reference, ...] | None = None


class Variable(Wire, frozen=True, gc=False):
    name: str | None = None
    value: str | None = None


class Security(Wire, frozen=True, gc=False):
    privileged: bool | None = None


class Mount(Wire, frozen=True, gc=False):
    name: str | None = None
    mount_path: str | None = None


class ContainerWire(Wire, frozen=True, gc=False):
    name: str | None = None
    image: str | None = None
    resources: Resources | None = None
    env: tuple[Variable, ...] | None = None
    security_context: Security | None = None
    volume_mounts: tuple[Mount, ...] | None = None


class HostPath(Wire, frozen=True, gc=False):
    path: str | None = None


class EmptyDir(Wire, frozen=True, gc=False):
    medium: str | None = None
    size_limit: Any = None


class Volume(Wire, frozen=True, gc=False):
    name: str | None = None
    host_path: HostPath | None = None
    empty_dir: EmptyDir | None = None


class TolerationWire(Wire, frozen=True, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Gate(Wire, frozen=True, gc=False):
    name: str | None = None


class PodSpec(Wire, frozen=True, gc=False):
    node_name: str | None = None
    scheduler_name: str | None = None
    runtime_class_name: str | None = None
    priority_class_name: str | None = None
    node_selector: Texts = None
    tolerations: tuple[TolerationWire, ...] | None = None
    containers: tuple[ContainerWire, ...] | None = None
    init_containers: tuple[ContainerWire, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    scheduling_gates: tuple[Gate, ...] | None = None


class StateWire(Wire, frozen=True, gc=False):
    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None


class States(Wire, frozen=True, gc=False):
    waiting: StateWire | None = None
    running: StateWire | None = None
    terminated: StateWire | None = None


class ContainerStatus(Wire, frozen=True, gc=False):
    name: str | None = None
    restart_count: int | None = None
    state: States | None = None
    last_state: States | None = None


class PodStatus(Wire, frozen=True, gc=False):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: tuple[ConditionWire, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None


class EventWire(Wire, frozen=True, gc=False):
    """core/v1 and events.k8s.io/v1, which call the same things by other names."""

    metadata: Meta | None = None
    involved_object: Reference | None = None
    regarding: Reference | None = None
    reason: str | None = None
    message: str | None = None
    note: str | None = None
    type: str | None = None
    count: int | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    reporting_component: str | None = None
    reporting_instance: str | None = None
    source: dict[str, Any] | None = None
    deprecated_source: dict[str, Any] | None = None


class Selector(Wire, frozen=True, gc=False):
    node_selector: Texts = None
    containers: tuple[ContainerWire, ...] | None = None


class Template(Wire, frozen=True, gc=False):
    spec: Selector | None = None


class SetSpec(Wire, frozen=True, gc=False):
    replicas: int | None = None
    template: Template | None = None


class SetStatus(Wire, frozen=True, gc=False):
    desired_number_scheduled: int | None = None
    number_ready: int | None = None
    ready_replicas: int | None = None


# What most of a dump is made of, to be decoded in one pass over a list.


class NodeItem(Wire, frozen=True, gc=False, tag_field="kind", tag="Node"):
    metadata: Meta | None = None
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class PodItem(Wire, frozen=True, gc=False, tag_field="kind", tag="Pod"):
    metadata: Meta | None = None
    spec: PodSpec | None = None
    status: PodStatus | None = None


class EventItem(EventWire, frozen=True, gc=False, tag_field="kind", tag="Event"):
    pass


class CommonList(Wire, frozen=True, gc=False):
    items: list[NodeItem | PodItem | EventItem]
