"""Objects of Kubernetes → facts: nodes, pods, events, and what sets of pods there should be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from msgspec.structs import replace

from berth.base import quantity as quantities
from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import object_wire as wire
from berth.evidence.formats.cluster_facts import (
    UNSAID,
    Advertised,
    Condition,
    ContainerState,
    EventSeen,
    Limit,
    NodeSeen,
    Operand,
    PodSeen,
)

_UNSAID_STATE, _UNSAID_STATES, _UNSAID_RESOURCES = wire.StateWire(), wire.States(), wire.Resources()

# Resources that have a slash and no device behind them.
_NO_DEVICES = ("hugepages-", "attachable-volumes-", "kubernetes.io/")


def is_device(resource: str) -> bool:
    """An extended resource: `nvidia.com/gpu`, `amd.com/gpu`, `nvidia.com/mig-1g.10gb`."""
    return "/" in resource and not resource.startswith(_NO_DEVICES)


def whole(quantity: Any) -> int:
    """A count as the API writes it: `8`, `"8"`, `"16k"`; UNSAID for anything else."""
    try:
        return int(quantity)
    except (TypeError, ValueError):
        pass
    try:
        return quantities.whole(str(quantity))
    except ValueError:
        return UNSAID


def texts(some: dict[str, str | None] | None) -> dict[str, str]:
    """As decoded, for no one else has it; null, which only YAML that people write has, is empty."""
    if not some:
        return {}
    if None in some.values():
        return {name: value or "" for name, value in some.items()}
    return cast("dict[str, str]", some)


def node(
    meta: wire.Meta, spec: wire.NodeSpec | None, status: wire.NodeStatus | None, origin: Origin, of: str
) -> Iterator[Fact]:
    spec, status = spec or wire.NodeSpec(), status or wire.NodeStatus()
    name = meta.name or of
    system = status.node_info or wire.NodeSystem()
    seen = conditions(status.conditions)
    unwell = (one for one in seen if one.type == "Ready" and one.status != "True")
    words = next((f"Ready={one.status} {one.reason} {one.message}".strip() for one in unwell), "")
    yield NodeSeen(
        origin=replace(origin, text=words[:LONGEST_TEXT]) if words else origin,
        name=name,
        labels=texts(meta.labels),
        annotations=texts(meta.annotations),
        taints=tuple((one.key or "", one.value or "", one.effect or "") for one in spec.taints or ()),
        is_cordoned=bool(spec.unschedulable),
        conditions=seen,
        kubelet=system.kubelet_version or "",
        runtime=system.container_runtime_version or "",
        kernel=system.kernel_version or "",
        os_image=system.os_image or "",
        is_counted=bool(status.capacity and status.allocatable),
    )
    capacity, allocatable = status.capacity or {}, status.allocatable or {}
    for resource in sorted({*capacity, *allocatable}):
        if is_device(resource):
            has = whole(capacity[resource]) if resource in capacity else UNSAID
            gives = whole(allocatable[resource]) if resource in allocatable else UNSAID
            text = f"{resource}: capacity {_count(has)}, allocatable {_count(gives)}"
            yield Advertised(
                origin=replace(origin, text=text), name=name, resource=resource, capacity=has, allocatable=gives
            )


def _count(number: int) -> str:
    return "not there" if number == UNSAID else str(number)


def conditions(some: Iterable[wire.ConditionWire] | None) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            one.type or "", one.status or "", one.reason or "", one.message or "", one.last_transition_time or ""
        )
        for one in some or ()
    )


def pod(meta: wire.Meta, spec: wire.PodSpec | None, status: wire.PodStatus | None, origin: Origin) -> PodSeen:
    spec, status = spec or wire.PodSpec(), status or wire.PodStatus()
    owner = next((one for one in meta.owner_references or () if one.controller), None)
    labels = texts(meta.labels)
    states = tuple(
        state(one) for one in (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    )
    words = " ".join(word for word in (status.phase, status.reason, status.message) if word)
    words += "".join(f"; {one.container}: {one.reason}" for one in states if one.reason and one.state != "running")
    return PodSeen(
        origin=replace(origin, text=words),
        namespace=meta.namespace or "default",
        name=meta.name or meta.generate_name or "",
        uid=meta.uid or "",
        on=spec.node_name or "",
        phase=status.phase or "",
        reason=status.reason or "",
        message=status.message or "",
        scheduler=spec.scheduler_name or "",
        runtime_class=spec.runtime_class_name or "",
        priority_class=spec.priority_class_name or "",
        owner=f"{owner.kind}/{owner.name}" if owner else "",
        queue=labels.get("berth.dev/queue") or labels.get("kueue.x-k8s.io/queue-name", ""),
        labels=labels,
        annotations=texts(meta.annotations),
        node_selector=texts(spec.node_selector),
        tolerations=tuple(
            (one.key or "", one.operator or "Equal", one.value or "", one.effect or "")
            for one in spec.tolerations or ()
        ),
        limits=(
            *(limit(one, is_init=True) for one in spec.init_containers or ()),
            *(limit(one, is_init=False) for one in spec.containers or ()),
        ),
        states=states,
        conditions=conditions(status.conditions),
        gates=tuple(one.name or "" for one in spec.scheduling_gates or ()),
        host_paths=tuple(one.host_path.path or "" for one in spec.volumes or () if one.host_path),
        shm_bytes=_shm(spec),
        made=meta.creation_timestamp or "",
        is_ending=bool(meta.deletion_timestamp),
    )


def _shm(spec: wire.PodSpec) -> int:
    mounted = {
        mount.name
        for container in spec.containers or ()
        for mount in container.volume_mounts or ()
        if (mount.mount_path or "").rstrip("/") == "/dev/shm"
    }
    for volume in spec.volumes or ():
        if volume.name in mounted and volume.empty_dir is not None:
            return whole(volume.empty_dir.size_limit) if volume.empty_dir.size_limit else 0
    return UNSAID


def limit(container: wire.ContainerWire, *, is_init: bool) -> Limit:
    asked = container.resources or _UNSAID_RESOURCES
    devices = {
        name: whole(count)
        for some in (asked.requests, asked.limits)
        if some
        for name, count in some.items()
        if is_device(name)
    }
    visible = next((one.value for one in container.env or () if one.name == "NVIDIA_VISIBLE_DEVICES"), None)
    return Limit(
        container=container.name or "",
        image=container.image or "",
        devices=devices,
        claims=tuple(one.name or "" for one in asked.claims or ()),
        visible_devices=visible or "",
        is_privileged=bool(container.security_context and container.security_context.privileged),
        is_init=is_init,
    )


def state(status: wire.ContainerStatus) -> ContainerState:
    now, last = status.state or _UNSAID_STATES, status.last_state or _UNSAID_STATES
    word, said = "", _UNSAID_STATE
    if now.waiting is not None:
        word, said = "waiting", now.waiting
    elif now.terminated is not None:
        word, said = "terminated", now.terminated
    elif now.running is not None:
        word, said = "running", now.running
    before = last.terminated or _UNSAID_STATE
    return ContainerState(
        container=status.name or "",
        state=word,
        reason=said.reason or "",
        message=said.message or "",
        exit_code=said.exit_code or before.exit_code or 0,
        restarts=status.restart_count or 0,
        last_reason=before.reason or "",
        last_message=before.message or "",
    )


def pod_texts(seen: PodSeen) -> Iterator[str]:
    """What the kubelet and the scheduler wrote into a pod's status."""
    if seen.message:
        yield f"{seen.reason}  {seen.message}"
    for condition in seen.conditions:
        if condition.message:
            yield f"{condition.reason}  {condition.message}"
    for one in seen.states:
        if one.message:
            yield f"{one.reason}  {one.message}"
        if one.last_message:
            yield f"{one.last_reason}  {one.last_message}"


def event(found: wire.EventWire, origin: Origin) -> EventSeen:
    about = found.involved_object or found.regarding or wire.Reference()
    message = found.message or found.note or ""
    source = found.source or found.deprecated_source or {}
    component = found.reporting_component or str(source.get("component") or "")
    # Of a kubelet this is its node, whatever has become of the pod meanwhile.
    host = str(source.get("host") or found.reporting_instance or "") if component == "kubelet" else ""
    last = found.last_timestamp or found.event_time or ""
    origin = replace(
        origin,
        text=f"{found.reason or ''}  {message}"[:600],
        time=last,
        node=(about.name or "") if about.kind == "Node" else host,
        pod=f"{about.namespace or ''}/{about.name or ''}" if about.kind == "Pod" else "",
    )
    return EventSeen(
        origin=origin,
        reason=found.reason or "",
        message=message,
        kind=about.kind or "",
        namespace=about.namespace or "",
        name=about.name or "",
        component=component,
        type=found.type or "",
        count=found.count or 1,
        last=last,
    )


def operand(
    kind: str, meta: wire.Meta, spec: wire.SetSpec | None, status: wire.SetStatus | None, origin: Origin
) -> Operand:
    spec, status = spec or wire.SetSpec(), status or wire.SetStatus()
    template = (spec.template.spec if spec.template else None) or wire.Selector()
    first = next(iter(template.containers or ()), None)
    is_daemon = kind == "DaemonSet"
    wanted = status.desired_number_scheduled if is_daemon else spec.replicas
    ready = status.number_ready if is_daemon else status.ready_replicas
    return Operand(
        origin=origin,
        kind=kind,
        namespace=meta.namespace or "",
        name=meta.name or "",
        wanted=UNSAID if wanted is None else wanted,
        ready=(0 if wanted is not None else UNSAID) if ready is None else ready,
        node_selector=texts(template.node_selector),
        image=(first.image or "") if first else "",
        environment={one.name or "": one.value or "" for one in (first.env or ())} if first else {},
    )
