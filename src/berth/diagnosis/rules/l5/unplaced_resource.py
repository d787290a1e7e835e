"""L5. No node has enough of what the pod asks for: used up, not offered at all, or asked for by a name that nobody
offers. The event is the same for all three; what nodes advertise tells them apart."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.heard import by_place, listed, value
from berth.diagnosis.ledger import GPU, accounts
from berth.diagnosis.promised import promised
from berth.diagnosis.rules.l5.shares import MORE_THAN_NODE
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import UNSAID, Advertised, EventSeen, NodeSeen, PodSeen
from berth.evidence.formats.failed_scheduling import Unplaced, unplaced

ORDINARY = ("cpu", "memory", "ephemeral-storage", "pods", "hugepages-2Mi", "hugepages-1Gi")
VIRTUAL = "devices.kubevirt.io/"  # of virtual machines: rules of passthrough name these
# What people write for nvidia.com/gpu; the second has not existed since 1.11.
NEVER_OFFERED = (
    "nvidia.com/gpus",
    "alpha.kubernetes.io/nvidia-gpu",
    "nvidia.com/GPU",
    "nvidia/gpu",
    "nvidia.com.gpu",
    "gpu",
)
BESIDE = 0.5  # of a shortage where other nodes have devices and something else keeps the pod off them
NEAR = 0.75  # likeness from which one name may be a slip of the other

_SCHEDULER = (
    "kubernetes, pkg/scheduler/framework/plugins/noderesources/fit.go",
    "Kubernetes documentation: Managing resources for containers, extended resources",
)
_FREE = "berth why POD -n NAMESPACE, and berth free: what it waits for, and the largest job that fits now"

EXHAUSTED = Code(
    name="DevicesAllTaken",
    layer=Layer.L5,
    cause_class="capacity",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="no node has enough free devices for a pod",
    meaning="The pod waits until others end, are preempted, or nodes are added. GPUs are counted as whole numbers by "
    "the "
    "scheduler's account: an idle GPU that a pod holds is not free, and free ones on several nodes do not add up.",
    known_by="FailedScheduling names the resource as insufficient, and nodes advertise it.",
    disproved_by="A node whose allocatable count less the requests of its pods covers what the pod asks for.",
    counter_check="kubectl describe node NODE | grep -A12 'Allocated resources': requests below allocatable by what "
    "the pod needs",
    fix=Fix(
        steps=(
            _FREE,
            "end or shrink what holds GPUs without using them; let the pod wait for a queue, or raise its priority",
            "ask for fewer GPUs per pod than the largest node has; add nodes where every GPU is in use",
        ),
        risk="ending pods loses their work since the last checkpoint",
        rollback="start again what was ended",
    ),
    verify=("kubectl get pod POD -n NAMESPACE -o wide: it has a node",),
    sources=_SCHEDULER,
)
NOT_OFFERED = Code(
    name="ResourceNotAdvertised",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="a resource is asked for or promised, and its nodes do not offer it now",
    meaning="The scheduler places by what the kubelet reports. A node whose device plugin does not serve reports 0 or "
    "nothing, however healthy its GPUs are.",
    known_by="FailedScheduling names the resource as insufficient, and every node that was looked at offers 0 of it or "
    "does not list it; or a node's labels say that it has GPUs, and it offers none in any form.",
    disproved_by="Allocatable of the resource above 0 on a node that the pod may use.",
    counter_check="kubectl get nodes -o custom-columns=N:.metadata.name,A:.status.allocatable: RESOURCE is above 0",
    fix=Fix(
        steps=(
            "kubectl get pods -A -o wide | grep -i device-plugin: one Running on each GPU node, and read its log",
            "walk down on one node: nvidia-smi -L, the plugin's log, /var/lib/kubelet/device-plugins",
            "kubectl rollout restart of the device plugin's DaemonSet where the kubelet was restarted without it",
        ),
        risk="a restart of the plugin does not touch running pods",
        rollback="nothing to undo",
    ),
    verify=("kubectl get node NODE -o jsonpath='{.status.allocatable}': RESOURCE with the number of its GPUs",),
    sources=_SCHEDULER,
)
UNKNOWN_NAME = Code(
    name="ResourceNameNotOffered",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="a pod asks for a resource by a name that no node offers",
    meaning="Names of extended resources are compared letter by letter. The pod waits for ever, whatever becomes free.",
    known_by="The insufficient resource is on no node, and a name close to it is; or it is a name that nothing offers.",
    disproved_by="A node that lists the resource under exactly that name, with any number.",
    counter_check="kubectl get nodes -o jsonpath='{.items[*].status.capacity}' | grep -o '[a-z.]*nvidia[^\"]*': "
    "RESOURCE is among them",
    fix=Fix(
        steps=(
            "write the name that the nodes offer into limits of the pod's template",
            "where nodes were to offer the name (MIG profile, shared GPUs), mend the plugin's configuration instead",
        ),
        risk="none: the pod does not run yet",
        rollback="put the old name back",
    ),
    verify=("kubectl get pod POD -n NAMESPACE: no FailedScheduling that names RESOURCE",),
    sources=_SCHEDULER,
)
OTHER_SHORT = Code(
    name="OrdinaryResourceShort",
    layer=Layer.L5,
    cause_class="capacity",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="nodes lack CPU, memory or room for pods, not GPUs",
    meaning="The pod waits while GPUs stay free: what is asked for beside them is not there. Nodes are fragmented by "
    "what "
    "ordinary pods took.",
    known_by="FailedScheduling names CPU, memory, storage or the number of pods as insufficient, and no GPU resource, "
    "or that only on other nodes.",
    disproved_by="A GPU node whose free CPU and memory cover the requests.",
    counter_check="kubectl describe node NODE | grep -A12 'Allocated resources': enough CPU and memory are free",
    fix=Fix(
        steps=(
            "lower the pod's CPU and memory requests to what it uses, per GPU in proportion to the node",
            "keep ordinary pods off GPU nodes with a taint",
        ),
        risk="requests below the use make the pod compete or be killed for memory",
        rollback="put the old requests back",
    ),
    verify=("kubectl get pod POD -n NAMESPACE -o wide: it has a node",),
    sources=_SCHEDULER,
)


def find(facts: Facts) -> Iterator[Answer]:
    offered = _offered(facts)
    for resource, sayings in _insufficient(facts).items():
        if ("/" in resource or resource in NEVER_OFFERED) and not resource.startswith(VIRTUAL):
            yield from _of(facts, resource, sayings, offered)
    for said in facts.said("scheduler.other_name_told"):
        yield UNKNOWN_NAME.finding(
            f"The pod asks for {said.get('asked')}, and the nodes offer {said.get('offered')}.",
            LIKELY,
            [said],
            resource=said.get("asked"),
        )
    yield from _not_counted(facts)
    yield from _ordinary(facts)
    yield from _of_other_schedulers(facts)


def _not_counted(facts: Facts) -> Iterator[Answer]:
    """Nodes that have GPUs by their labels, and what they offer was printed without any."""
    whole = promised(facts)
    held = {one.node: one.requested for one in accounts(facts) if one.resource == GPU} if whole else {}
    for node in facts.of(NodeSeen) if whole else ():
        if (said := whole.get(node.name)) is not None:
            number = f"{said.count} GPUs" if said.count else "GPUs"
            cause = f"{node.name or 'The node'} has {number} by its label {said.label}, and offers none in any form."
            cause += f" Its pods hold {held[node.name]}." if held.get(node.name) else ""
            words = replace(node.origin, text=node.origin.text or f"{said.label}: {node.labels[said.label]}")
            yield NOT_OFFERED.finding(cause, POSSIBLE, [words], node=node.name, resource=GPU)


def _of(
    facts: Facts, resource: str, sayings: list[tuple[Said, Unplaced]], offered: Mapping[str, Mapping[str, int]]
) -> Iterator[Answer]:
    pod = _pod(facts, sayings)
    evidence = [said for said, _ in sayings]
    amounts = offered.get(resource, {})
    where = _where(resource, sayings)
    if near := _near(resource, offered):
        cause = f"The pod asks for {resource}, which no node offers; nodes offer {near}."
        yield UNKNOWN_NAME.finding(cause, LIKELY, evidence, pod=pod, resource=resource)
    elif resource in NEVER_OFFERED and not any(amounts.values()):
        cause = f"The pod asks for {resource}, a name that no device plugin offers; nvidia.com/gpu is meant."
        yield UNKNOWN_NAME.finding(cause, LIKELY, evidence, pod=pod, resource=resource)
    elif resource.endswith(_OF_SHARES) and not any(amounts.values()) and _by_default(sayings):
        cause = f"A scheduler for shares counts {resource}; the default scheduler was asked, and no node offers it."
        yield UNKNOWN_NAME.finding(cause, POSSIBLE, evidence, pod=pod, resource=resource)
    elif not any(amounts.values()) and (parts := _parts(resource, offered)):
        cause = f"The pod asks for {resource}, and the nodes offer their GPUs as {listed(parts)}."
        yield UNKNOWN_NAME.finding(cause, LIKELY, evidence, pod=pod, resource=resource)
    elif (offered or _seen_whole(facts)) and not any(amounts.values()):
        nodes = listed(sorted(amounts) or ["not listed"])
        cause = f"{resource} is short on {where}, and every node that was looked at offers none ({nodes})."
        also = [one for one in facts.of(Advertised) if one.resource == resource][:2]
        yield NOT_OFFERED.finding(cause, POSSIBLE, [*evidence, *also], pod=pod, resource=resource)
    elif amounts and (wanted := _wanted(facts, resource, pod)) > (most := max(amounts.values())):
        cause = f"The pod asks for {wanted} of {resource}, the largest node has {most}: it fits on none, empty or not."
        # It was asked for so, and stays so when whatever else is wrong with nodes is mended.
        yield MORE_THAN_NODE.finding(
            cause, LIKELY, evidence, pod=pod, resource=resource, cause_class="scheduling-policy"
        )
    else:
        cause = f"{resource} is not free in the wanted number on {where}.{_account(facts, resource, pod, amounts)}"
        useless = any(why.is_preemption_useless for _, why in sayings)
        cause += " Preemption finds nobody to displace." if useless else ""
        beside = [reason for _, why in sayings for reason in why.beside_shortage]
        if beside:
            cause += f" Others have it and are refused for another reason: {listed(one.text for one in beside)}."
        sure = BESIDE if beside else LIKELY if amounts else POSSIBLE
        yield EXHAUSTED.finding(cause, sure, evidence, pod=pod, resource=resource)
        if not offered:
            yield Unconfirmed(
                f"how much of {resource} each node offers",
                "kubectl get nodes -o custom-columns=N:.metadata.name,C:.status.capacity,A:.status.allocatable",
                EXHAUSTED.name,
                Layer.L5,
            )


# Amounts that HAMi and Volcano account for themselves: nodes never offer them.
_OF_SHARES = ("/gpumem", "/gpucores", "/gpumem-percentage", "/vgpu-memory", "/vgpu-cores")


def _by_default(sayings: list[tuple[Said, Unplaced]]) -> bool:
    return any("default-scheduler" in said.origin.text or why.total for said, why in sayings)


def _where(resource: str, sayings: list[tuple[Said, Unplaced]]) -> str:
    counts = [(one.nodes, why.total) for _, why in sayings for one in why.reasons if one.resource == resource]
    nodes, total = max(counts, default=(0, 0))
    return f"{nodes} of {total} nodes" if total else "the nodes"


def _account(facts: Facts, resource: str, pod: str, amounts: Mapping[str, int]) -> str:
    """What nodes offer against what is asked for, and who holds it, as far as pods were seen."""
    if not amounts:
        return ""
    pods = facts.of(PodSeen)
    words = f" Nodes offer {sum(amounts.values())} in all, the largest {max(amounts.values())}"
    held = sorted(
        ((_asks(one, resource), one.key) for one in pods if one.on and one.phase in ("", "Running")), reverse=True
    )
    holders = [f"{key} ({amount})" for amount, key in held if amount]
    return f"{words}; held by {listed(holders)}." if holders else f"{words}."


def _wanted(facts: Facts, resource: str, pod: str) -> int:
    waiting = (one for one in facts.of(PodSeen) if not one.on and pod in ("", one.key))
    return max((_asks(one, resource) for one in waiting), default=0)


def _asks(pod: PodSeen, resource: str) -> int:
    """Containers side by side; one that runs before them counts only where it asks for more."""
    beside = sum(limit.devices.get(resource, 0) for limit in pod.limits if not limit.is_init)
    return max((beside, *(limit.devices.get(resource, 0) for limit in pod.limits if limit.is_init)))


def _of_other_schedulers(facts: Facts) -> Iterator[Answer]:
    """KAI and Volcano say it in words of their own; where they speak of a group, the rule of groups answers."""
    if any(facts.said("gang.not_ready", "gang.waits_for_members", "kai.over_quota", "gang.queue_short")):
        return
    # The kubelet's words, and claims, which have a rule of their own.
    refused = {said.origin for said in facts.said("kubelet.out_of", "dra.not_allocatable")}
    for node, pod, found in by_place(
        said for said in facts.said("kai.no_room", "scheduler.all_unfit") if said.origin not in refused
    ):
        what = value(found[0], "what") or "what the pod asks for"
        yield EXHAUSTED.finding(f"No node has enough {what} free.", POSSIBLE, found, node=node, pod=pod)


def _ordinary(facts: Facts) -> Iterator[Answer]:
    for said in facts.said("scheduler.unplaced"):
        why = unplaced(said.get("total"), said.get("reasons"))
        short = [
            reason
            for reason in why.of("resource")
            if reason.resource in ORDINARY or reason.text.lower().startswith("too many pods")
        ]
        if short and (short[0] in why.beside_shortage or not any("/" in reason.resource for reason in why.reasons)):
            words = listed(f"{reason.text} on {reason.nodes} of {why.total} nodes" for reason in short)
            yield OTHER_SHORT.finding(f"{words}.", POSSIBLE, [said])


def _insufficient(facts: Facts) -> Mapping[str, list[tuple[Said, Unplaced]]]:
    """Resource → who said that it is short, with the whole sentence."""
    found: dict[str, list[tuple[Said, Unplaced]]] = {}
    for said in facts.said("scheduler.unplaced"):
        why = unplaced(said.get("total"), said.get("reasons"))
        for resource in dict.fromkeys(reason.resource for reason in why.of("resource") if reason.resource):
            found.setdefault(resource, []).append((said, why))
    for said in facts.said("scheduler.insufficient"):
        if (resource := value(said, "resource")) and resource not in found:
            found.setdefault(resource, []).append((said, Unplaced(0, ())))
    return found


def _offered(facts: Facts) -> dict[str, dict[str, int]]:
    """Resource → node → how many it offers."""
    found: dict[str, dict[str, int]] = {}
    for one in facts.of(Advertised):
        amount = one.allocatable if one.allocatable != UNSAID else one.capacity
        found.setdefault(one.resource, {})[one.name or one.node or "the node"] = max(amount, 0)
    return found


def _seen_whole(facts: Facts) -> bool:
    """Were nodes seen as objects or descriptions, with what they offer, and not only as lines of a list?"""
    return any(node.kubelet and node.labels and not _is_control_plane(node) for node in facts.of(NodeSeen))


def _is_control_plane(node: NodeSeen) -> bool:
    return any(key.startswith("node-role.kubernetes.io/") for key, _, _ in node.taints)


def _near(resource: str, offered: Mapping[str, Mapping[str, int]]) -> str:
    """A name that is offered and of which this one may be a slip, where this one is on no node."""
    if resource in offered:
        return ""
    candidates = [name for name, amounts in offered.items() if "/" in name and any(amounts.values())]
    folded = {name.lower(): name for name in candidates}
    found = difflib.get_close_matches(resource.lower(), folded, 1, NEAR)
    return folded[found[0]] if found else ""


def _parts(resource: str, offered: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What a GPU is offered as where it is shared under another name, or partitioned with strategy mixed."""
    names = [name for name in offered if name == f"{resource}.shared" or name.startswith("nvidia.com/mig-")]
    is_gpu = resource == "nvidia.com/gpu"
    return sorted(name for name in names if any(offered[name].values()) and (is_gpu or not name.count("/mig-")))


def _pod(facts: Facts, sayings: Iterable[tuple[Said, Unplaced]]) -> str:
    for said, _ in sayings:
        if said.origin.pod:
            return said.origin.pod
    waiting = [pod.key for pod in facts.of(PodSeen) if pod.phase == "Pending" and not pod.on]
    named = [
        f"{event.namespace}/{event.name}".lstrip("/")
        for event in facts.of(EventSeen)
        if event.reason == "FailedScheduling" and event.name
    ]
    return next(iter((*named, *waiting)), "") if len(set(named) or set(waiting)) == 1 else ""


RULE = Rule((EXHAUSTED, NOT_OFFERED, UNKNOWN_NAME, OTHER_SHORT), find)
