"""The ledger from facts: for each resource of each node, what the five boundaries say, and where they part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from berth.diagnosis.ledger_claims import claim_accounts
from berth.diagnosis.ledger_lines import lines_of
from berth.diagnosis.node_facts import MIG, NodeFacts, nodes_of, plain
from berth.diagnosis.promised import Promise, promised
from berth.evidence.facts import Facts
from berth.evidence.formats.boundary_facts import PluginAnswer
from berth.evidence.formats.cluster_facts import UNSAID, PodSeen
from berth.model.ledger import Account, Boundary, Bypass, DeviceLine

GPU = "nvidia.com/gpu"
_SHARED = ".shared"


def accounts(facts: Facts) -> tuple[Account, ...]:
    """One for each node and resource, by name. Nodes without devices have none."""
    return _accounts(facts, len(facts))


@lru_cache(maxsize=1)
def _accounts(facts: Facts, size: int) -> tuple[Account, ...]:
    """Several rules ask for the accounts of the same facts; `size` tells them from those that have grown since."""
    pods_were_read = bool(facts.of(PodSeen))
    labels_say = promised(facts)
    counted = (
        _account(node, resource, pods_were_read, labels_say.get(node.name))
        for node in nodes_of(facts)
        for resource in _resources(node, node.name in labels_say)
    )
    return tuple(sorted((*counted, *claim_accounts(facts)), key=lambda one: (one.node, one.resource)))


def _resources(node: NodeFacts, is_promised: bool) -> list[str]:
    """What the node's devices are asked for by; its labels may promise some (promised.py)."""
    asked = {
        resource
        for pod in node.pods
        for limit in pod.limits
        for resource in limit.devices
        if resource in node.advertised or resource in node.plugins
    }
    known = {*node.advertised, *node.plugins, *node.offers, *(given.resource for given in node.given), *asked}
    found = sorted(resource for resource in known if is_gpu(resource))
    return found or ([GPU] if is_promised or node.devices or any(node.counts.values()) else [])


def is_gpu(resource: str) -> bool:
    """A resource of GPUs; network cards and the like have accounts of their own."""
    vendor, _, name = resource.partition("/")
    return vendor in ("nvidia.com", "amd.com", "gpu.intel.com") and (
        name.startswith(("gpu", "mig-")) or vendor == "gpu.intel.com"
    )


def _account(node: NodeFacts, resource: str, pods_were_read: bool, promise: Promise | None) -> Account:
    labels = node.seen.labels if node.seen else {}
    answers = node.plugins.get(resource, [])
    advertised = node.advertised.get(resource)
    lines = lines_of(node, resource, labels)
    capacity = _said(advertised.capacity if advertised else UNSAID)
    allocatable = _said(advertised.allocatable if advertised else UNSAID)
    requested = _requested(node, resource, pods_were_read)
    host = _host(node, resource, labels)
    plugin = _plugin(answers)
    visible = _visible(node, resource)
    if promise is not None and capacity is None:
        capacity = allocatable = 0  # it was printed whole, without it
    parts_at, sentence = _parting(resource, answers, host, plugin, capacity, allocatable, requested, visible, lines)
    if promise is not None and not allocatable and parts_at in (None, Boundary.Request):
        held = f"; pods hold {requested}" if requested else ""
        has = promise.count or "GPUs"
        parts_at, sentence = Boundary.Node, f"by its labels it has {has}, the node offers no {resource}{held}"
    return Account(
        node=node.name,
        resource=resource,
        gpu_class=labels.get("nvidia.com/gpu.product", ""),
        host=host,
        plugin=plugin,
        capacity=capacity,
        allocatable=allocatable,
        requested=requested,
        visible=visible,
        parts_at=parts_at,
        sentence=sentence,
        since=node.parted.get(resource, "") if parts_at is not None else "",
        devices=lines,
        bypasses=tuple(_bypasses(node)),
    )


def _said(number: int) -> int | None:
    return None if number == UNSAID else number


# ---- each boundary


def replicas_of(resource: str, labels: Mapping[str, str]) -> int:
    """Replicas that one device or partition is advertised as. Source: GPU Feature Discovery."""
    name = resource.removesuffix(_SHARED)
    text = labels.get(f"{name}.replicas", "1")
    return max(int(text), 1) if text.isdigit() else 1


def _host(node: NodeFacts, resource: str, labels: Mapping[str, str]) -> int | None:
    """How many units of the resource the hardware gives."""
    replicas = replicas_of(resource, labels)
    if node.devices:
        devices = [one for one in node.devices.values() if not one.unreadable.get("uuid")]
        cut = [one for one in devices if one.mig_mode == "Enabled"]
        if resource.startswith(MIG):
            profile = resource.removeprefix(MIG).removesuffix(_SHARED)
            return replicas * sum(plain(part.profile) == profile for one in cut for part in one.mig)
        if cut and labels.get("nvidia.com/mig.strategy") == "single":
            return replicas * sum(len(one.mig) for one in cut)
        return replicas * (len(devices) - len(cut))
    if resource.startswith(MIG):
        return None
    counts = [count for by, count in node.counts.items() if by in ("nvml", "lspci", "/proc/driver/nvidia/gpus")]
    return min(counts) * replicas if counts else None


def _plugin(answers: Sequence[PluginAnswer]) -> int | None:
    if not answers:
        return None
    return sum(device.is_healthy for answer in answers for device in answer.devices if answer.answered)


def _requested(node: NodeFacts, resource: str, pods_were_read: bool) -> int | None:
    """What pods on the node hold of it: by their requests, where pods were read; else by what the kubelet gave."""
    if pods_were_read:
        return sum(of_pod(pod, resource) for pod in node.pods)
    given = [one for one in node.given if one.resource == resource]
    return sum(len(one.ids) for one in given) if given else None


def of_pod(pod: PodSeen, resource: str) -> int:
    """What a pod occupies: all of its containers together, or its largest init container where that is more."""
    main = sum(max(limit.devices.get(resource, 0), 0) for limit in pod.limits if not limit.is_init)
    first = max((limit.devices.get(resource, 0) for limit in pod.limits if limit.is_init), default=0)
    return max(main, first)


def _visible(node: NodeFacts, resource: str) -> int | None:
    askers = {(given.of_pod, given.container) for given in node.given if given.resource == resource}
    seen = [one for one in node.visible if not askers or (one.of_pod, one.container) in askers]
    return sum(len(one.ids) or len(one.minors) for one in seen) if seen else None


def _bypasses(node: NodeFacts) -> Iterator[Bypass]:
    """Who reaches devices without asking. Operators' own pods do so by right and are left out."""
    for pod in node.pods:
        if any(is_gpu(resource) for limit in pod.limits for resource in limit.devices) or is_operand(pod):
            continue
        for limit in pod.limits:
            if limit.visible_devices in ("all", "void,all") or limit.visible_devices.startswith(("GPU-", "0")):
                yield Bypass(pod.key, f"NVIDIA_VISIBLE_DEVICES={limit.visible_devices} in {limit.container}")
        paths = [path for path in pod.host_paths if path.startswith("/dev/nvidia") or path == "/dev"]
        if paths:
            yield Bypass(pod.key, f"host path {paths[0]}")
    for seen in node.visible:
        if seen.asked_for_none and seen.of_pod not in {pod.key for pod in node.pods if is_operand(pod)}:
            yield Bypass(seen.of_pod, "its container reaches the device files")


def is_operand(pod: PodSeen) -> bool:
    """Part of an operator that prepares nodes, or of what watches them."""
    return pod.namespace in ("gpu-operator", "nvidia-gpu-operator", "nvidia-device-plugin", "kube-system") or any(
        name.startswith(("nvidia-", "gpu-", "dcgm")) and pod.owner.startswith("DaemonSet/")
        for name in (pod.labels.get("app", ""), pod.labels.get("app.kubernetes.io/name", ""))
    )


# ---- where they part


def _parting(
    resource: str, answers: Sequence[PluginAnswer], host: int | None, plugin: int | None, capacity: int | None,
    allocatable: int | None, requested: int | None, visible: int | None, lines: Iterable[DeviceLine],
) -> tuple[Boundary | None, str]:  # fmt: skip
    """The first boundary whose value is not what the one before passes on."""
    silent = [answer for answer in answers if not answer.answered]
    if answers and len(silent) == len(answers):
        still = f"; the node still offers {allocatable}" if allocatable else ""
        return Boundary.Plugin, f"the plugin of {resource} gives no list ({silent[0].problem or 'no answer'}){still}"
    if len(answers) > 1:
        return Boundary.Plugin, f"{len(answers)} plugins serve {resource}; the kubelet heeds the last that registered"
    if host is not None and plugin is not None and host != plugin:
        bad = [line.id for line in lines if line.parts_at is Boundary.Plugin]
        which = f": {', '.join(bad[:4])}" if bad else ""
        return Boundary.Plugin, f"the hardware has {host}, the plugin offers {plugin} as healthy{which}"
    before, who = (plugin, "the plugin offers") if plugin is not None else (host, "the hardware has")
    if before is not None and allocatable is not None and before != allocatable:
        return Boundary.Node, f"{who} {before}, the node {allocatable}"
    if before and allocatable is None and (capacity is not None or answers):
        return Boundary.Node, f"{who} {before}, the node has never heard of {resource}"
    if capacity is not None and allocatable is not None and capacity != allocatable:
        # One step down, it was the plugin that took them back; nobody looked there.
        return Boundary.Node, f"allocatable {allocatable} of capacity {capacity}: {capacity - allocatable} withheld"
    if requested is not None and allocatable is not None and requested > allocatable:
        return Boundary.Request, f"pods hold {requested}, the node gives {allocatable}"
    if requested is not None and visible is not None and requested != visible:
        return Boundary.Visible, f"pods were given {requested}, {visible} are reached inside the containers"
    parted = next((line for line in lines if line.parts_at is Boundary.Visible), None)
    if parted is not None:
        return Boundary.Visible, f"{parted.id} was given to {parted.request} and is reached by {parted.visible}"
    return None, ""
