"""The ledger from facts: for each resource of each node, what the five boundaries say, and where they part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from berth.evidence.fact import pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.boundary_facts import Given, Holder, HostCount, KubeletOffers, PluginAnswer, Visible
from berth.evidence.formats.cluster_facts import UNSAID, Advertised, NodeSeen, PodSeen
from berth.evidence.formats.smi_facts import DeviceSeen
from berth.model.ledger import Account, Boundary, Bypass, DeviceLine

GPU = "nvidia.com/gpu"
_SHARED = ".shared"
_MIG = "nvidia.com/mig-"
_DONE = ("Succeeded", "Failed")


class _Node:
    """All facts of one node."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: NodeSeen | None = None
        self.devices: dict[str, DeviceSeen] = {}  # by UUID or PCI address
        self.counts: dict[str, int] = {}
        self.advertised: dict[str, Advertised] = {}
        self.plugins: dict[str, list[PluginAnswer]] = defaultdict(list)
        self.offers: dict[str, KubeletOffers] = {}
        self.given: list[Given] = []
        self.visible: list[Visible] = []
        self.holders: list[Holder] = []
        self.pods: list[PodSeen] = []


def accounts(facts: Facts) -> tuple[Account, ...]:
    """One for each node and resource, by name. Nodes without devices have none."""
    return _accounts(facts, len(facts))


@lru_cache(maxsize=1)
def _accounts(facts: Facts, size: int) -> tuple[Account, ...]:
    """Several rules ask for the accounts of the same facts; `size` tells them from those that have grown since."""
    pods_were_read = bool(facts.of(PodSeen))
    return tuple(
        _account(node, resource, pods_were_read) for node in _nodes(facts) for resource in _resources(node)
    )


def _nodes(facts: Facts) -> list[_Node]:
    nodes: dict[str, _Node] = {}

    def of(name: str) -> _Node:
        if name not in nodes:
            nodes[name] = _Node(name)
        return nodes[name]

    for seen in facts.of(NodeSeen):
        of(seen.name).seen = seen
    for advertised in facts.of(Advertised):
        of(advertised.name or advertised.node).advertised[advertised.resource] = advertised
    for device in facts.of(DeviceSeen):
        key = device.uuid or pci_words(device.pci) or f"#{device.index}"
        before = of(device.node).devices.get(key)
        if before is None or len(device.quotes) >= len(before.quotes):
            of(device.node).devices[key] = device
    for count in facts.of(HostCount):
        of(count.node).counts[count.by] = count.count
    for answer in facts.of(PluginAnswer):
        of(answer.node).plugins[answer.resource].append(answer)
    for offer in facts.of(KubeletOffers):
        of(offer.node).offers[offer.resource] = offer
    for given in facts.of(Given):
        of(given.node).given.append(given)
    for visible in facts.of(Visible):
        of(visible.node).visible.append(visible)
    for holder in facts.of(Holder):
        of(holder.node).holders.append(holder)
    for pod in facts.of(PodSeen):
        if pod.on and pod.phase not in _DONE:
            of(pod.on).pods.append(pod)
    return [nodes[name] for name in sorted(nodes)]


def _resources(node: _Node) -> list[str]:
    """What the node's devices are asked for by."""
    asked = {
        resource
        for pod in node.pods
        for limit in pod.limits
        for resource in limit.devices
        if resource in node.advertised or resource in node.plugins
    }
    known = {*node.advertised, *node.plugins, *node.offers, *(given.resource for given in node.given), *asked}
    found = sorted(resource for resource in known if is_gpu(resource))
    return found or ([GPU] if node.devices or any(node.counts.values()) else [])


def is_gpu(resource: str) -> bool:
    """A resource of GPUs; network cards and the like have accounts of their own."""
    vendor, _, name = resource.partition("/")
    return vendor in ("nvidia.com", "amd.com", "gpu.intel.com") and (
        name.startswith(("gpu", "mig-")) or vendor == "gpu.intel.com"
    )


def _account(node: _Node, resource: str, pods_were_read: bool) -> Account:
    labels = node.seen.labels if node.seen else {}
    answers = node.plugins.get(resource, [])
    advertised = node.advertised.get(resource)
    lines = _lines(node, resource, labels)
    capacity = _said(advertised.capacity if advertised else UNSAID)
    allocatable = _said(advertised.allocatable if advertised else UNSAID)
    requested = _requested(node, resource, pods_were_read)
    host = _host(node, resource, labels)
    plugin = _plugin(answers)
    visible = _visible(node, resource)
    parts_at, sentence = _parting(resource, answers, host, plugin, capacity, allocatable, requested, visible, lines)
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


def _host(node: _Node, resource: str, labels: Mapping[str, str]) -> int | None:
    """How many units of the resource the hardware gives."""
    replicas = replicas_of(resource, labels)
    if node.devices:
        devices = [one for one in node.devices.values() if not one.unreadable.get("uuid")]
        cut = [one for one in devices if one.mig_mode == "Enabled"]
        if resource.startswith(_MIG):
            profile = resource.removeprefix(_MIG).removesuffix(_SHARED)
            return replicas * sum(_plain(part.profile) == profile for one in cut for part in one.mig)
        if cut and labels.get("nvidia.com/mig.strategy") == "single":
            return replicas * sum(len(one.mig) for one in cut)
        return replicas * (len(devices) - len(cut))
    if resource.startswith(_MIG):
        return None
    counts = [count for by, count in node.counts.items() if by in ("nvml", "lspci", "/proc/driver/nvidia/gpus")]
    return min(counts) * replicas if counts else None


def _plain(profile: str) -> str:
    """As resources spell it: `1g.10gb+me` → `1g.10gb.me`."""
    return profile.replace("+", ".")


def _plugin(answers: Sequence[PluginAnswer]) -> int | None:
    if not answers:
        return None
    return sum(device.is_healthy for answer in answers for device in answer.devices if answer.answered)


def _requested(node: _Node, resource: str, pods_were_read: bool) -> int | None:
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


def _visible(node: _Node, resource: str) -> int | None:
    askers = {(given.of_pod, given.container) for given in node.given if given.resource == resource}
    seen = [one for one in node.visible if not askers or (one.of_pod, one.container) in askers]
    return sum(len(one.ids) or len(one.minors) for one in seen) if seen else None


def _bypasses(node: _Node) -> Iterator[Bypass]:
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


# ---- device by device


def _lines(node: _Node, resource: str, labels: Mapping[str, str]) -> tuple[DeviceLine, ...]:
    """The devices of the resource, each with what the boundaries say of it by name."""
    answers = node.plugins.get(resource, [])
    offered = {device.id: device for answer in answers if answer.answered for device in answer.devices}
    allowed = set(node.offers[resource].ids) if resource in node.offers else None
    holder_of = _holders(node)
    given = {id: one.of_pod for one in node.given if one.resource == resource for id in one.ids}
    visible = {id: one.of_pod for one in node.visible for id in one.ids}
    hardware = _hardware(node, resource, labels)
    lines = []
    for id in [*hardware, *(id for id in {**offered, **given} if _bare(id) not in hardware)]:
        device = hardware.get(id)
        replicas = [name for name in offered if _bare(name) == id] or [id]
        plugin = ""
        if offered or any(not answer.answered for answer in answers):
            states = [offered[name].is_healthy for name in replicas if name in offered]
            plugin = ("healthy" if all(states) else "unhealthy") if states else "absent"
            plugin = "no answer" if answers and not any(answer.answered for answer in answers) else plugin
        line = DeviceLine(
            id=id,
            index=device.index if device and device.index is not None else -1,
            pci=pci_words(device.pci) if device else "",
            parent=device.uuid if device and device.uuid != id else "",
            kind="partition" if id.startswith("MIG-") else "replica" if "::" in id else "device",
            name=device.name if device else "",
            host=("there" if device else "gone") if node.devices else "",
            plugin=plugin,
            node="" if allowed is None else "offered" if any(n in allowed for n in (id, *replicas)) else "withheld",
            request=next((given[name] for name in (id, *replicas) if name in given), ""),
            visible=next((visible[name] for name in (id, *replicas) if name in visible), ""),
            memory_bytes=(device.memory_total_bytes or 0) if device else 0,
            memory_used_bytes=(device.memory_used_bytes or 0) if device else 0,
            holders=tuple(sorted(holder_of.get(id, {}).items(), key=lambda one: (-one[1], one[0]))),
        )
        lines.append(_with_parting(line))
    return tuple(lines)


def _hardware(node: _Node, resource: str, labels: Mapping[str, str]) -> dict[str, DeviceSeen]:
    """Id → device. Partitions stand for themselves."""
    found: dict[str, DeviceSeen] = {}
    for key, device in node.devices.items():
        if device.mig_mode != "Enabled":
            if not resource.startswith(_MIG):
                found[key] = device
            continue
        for part in device.mig:
            if resource == f"{_MIG}{_plain(part.profile)}" or labels.get("nvidia.com/mig.strategy") == "single":
                found[part.uuid] = device
    return found


def _bare(id: str) -> str:
    return id.partition("::")[0]


def _holders(node: _Node) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for holder in node.holders:
        who = holder.of_pod or f"process {holder.pid} {holder.process}".strip()
        found[holder.device][who] = found[holder.device].get(who, 0) + holder.memory_bytes
    return found


def _with_parting(line: DeviceLine) -> DeviceLine:
    from msgspec.structs import replace

    at = None
    if line.host == "gone" or line.host.startswith("unfit"):
        at = Boundary.Host
    elif line.plugin in ("unhealthy", "absent", "no answer"):
        at = Boundary.Plugin
    elif line.node == "withheld":
        at = Boundary.Node
    elif line.request and line.visible and line.request != line.visible:
        at = Boundary.Visible
    return replace(line, parts_at=at) if at is not None else line


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
