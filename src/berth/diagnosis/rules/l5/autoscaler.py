"""L5. No node is made for the pod: the autoscaler knows no fitting type, is at its limit, or the cloud has none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, value
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, CauseClass, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import ObjectSeen
from berth.evidence.formats.failed_scheduling import unplaced

_VERIFY = ("kubectl get nodeclaims or nodes: a new node; the pod has a node",)
_SOURCES = ("karpenter, pkg/controllers/provisioning/scheduling", "cluster-autoscaler FAQ: events on pods")

NO_TYPE = Code(
    name="NoNodeTypeFits",
    layer=Layer.L5,
    cause_class="capacity",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="the autoscaler has no kind of node for the pod",
    meaning="Requirements of the node pool, its taint, zones or sizes exclude every GPU type, so no node will ever "
    "come.",
    known_by="Karpenter finds no instance type, or the cluster autoscaler says that the pod does not trigger a "
    "scale-up.",
    disproved_by="A node pool whose requirements, taints and limits admit a type with that many GPUs.",
    counter_check="kubectl get nodepool -o yaml: a GPU family is allowed, and the pod tolerates its taint",
    fix=Fix(
        steps=(
            "allow GPU families in the node pool's requirements, in the zones of the pod's volumes",
            "a group that starts from no node: its template names the GPUs, labels and taints (tags "
            "k8s.io/cluster-autoscaler/node-template/resources/RESOURCE and .../label/...)",
            "tolerate the node pool's taint in the pod; for shared or renamed resources let the pool know the name",
        ),
        risk="new nodes cost money: set limits",
        rollback="narrow the requirements again",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
AT_LIMIT = Code(
    name="NodePoolAtLimit",
    layer=Layer.L5,
    cause_class="capacity",
    severity=Severity.Warning,
    effect=Effect.PodsWait,
    title="the node pool has reached its limit",
    meaning="The autoscaler would add a node and may not.",
    known_by="It says that the limit would be exceeded or the group's maximum is reached.",
    disproved_by="The pool's size is below its maximum.",
    counter_check="kubectl get nodepool -o yaml: status.resources below spec.limits",
    fix=Fix(
        steps=("raise the limit after review, or end what is idle",),
        risk="more nodes cost money",
        rollback="put the old limit back",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
CLOUD_EMPTY = Code(
    name="CloudHasNoCapacity",
    layer=Layer.L5,
    cause_class="capacity",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="the cloud has no such machines free there, or the account may not have them",
    meaning="Nodes are wanted and the provider refuses: capacity of the zone, or a quota of the account.",
    known_by="The provider's error code.",
    disproved_by="The same type can be started there by hand.",
    counter_check="start one machine of the type in the zone by the provider's own tool: it starts",
    fix=Fix(
        steps=(
            "allow more zones and types; reserve capacity (reservations, blocks, queued provisioning)",
            "a quota of the account: ask the provider to raise it",
        ),
        risk="other types differ in price and speed",
        rollback="narrow the choice again",
    ),
    verify=_VERIFY,
    sources=("Error codes of EC2, Compute Engine and Azure Compute",),
)
IDLE_STAYS = Code(
    name="IdleNodeStays",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Warning,
    effect=Effect.HeldByPolicy,
    title="the autoscaler does not take away a GPU node that nobody needs",
    meaning="It costs as if it were used. A node stays as long as something on it may not move, or its processors and "
    "memory are used beyond the threshold, whatever its GPUs do.",
    known_by="The autoscaler says why the node may not go, or somebody tells that it never goes.",
    disproved_by="Pods with GPUs run on the node.",
    counter_check="kubectl get pod -A -o wide --field-selector spec.nodeName=NODE: a pod with GPUs",
    fix=Fix(
        steps=(
            "pods without an owner, with local storage, a budget or safe-to-evict=false, do-not-disrupt: move or allow",
            "system pods on GPU nodes: a taint keeps them away",
            "devices that are not offered yet: cluster autoscaler counts such a node as starting up; label it for the "
            "cloud's accelerator",
        ),
        risk="what runs on the node ends",
        rollback="the former annotations",
    ),
    verify=("kubectl get nodes: it is gone after the time that is set for it",),
    sources=("cluster-autoscaler FAQ: what prevents a node from being removed", "Karpenter documentation: disruption"),
)
NOT_JOINED = Code(
    name="NewNodeDoesNotJoin",
    layer=Layer.L5,
    cause_class="capacity",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="a machine was made for the pods and does not become a node",
    meaning="The cloud runs and bills it; the kubelet on it never registers, or not as the autoscaler expects it. "
    "After a quarter of an hour it is taken away and another one is made.",
    known_by="Karpenter: 'Node not registered with cluster', 'missing required startup taint, "
    "karpenter.sh/unregistered'; cluster autoscaler: unregistered nodes.",
    disproved_by="kubectl get node: the machine is there and Ready.",
    counter_check="kubectl get nodeclaim -o wide: READY True, a node is named",
    fix=Fix(
        steps=(
            "the machine's console or journalctl -u kubelet: certificate, API server, name of the cluster",
            "its role must be allowed to join (access entry, aws-auth), its network must reach the API server",
            "an image or user data of one's own: --register-with-taints=karpenter.sh/unregistered:NoExecute",
        ),
        risk="none for nodes that run",
        rollback="the former image or user data",
    ),
    verify=("kubectl get nodeclaim: Registered True; the pod has a node",),
    sources=("karpenter pkg/controllers/nodeclaim/lifecycle/registration.go",
             "karpenter issue 1635; karpenter-provider-azure issue 181"),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    limited = list(facts.said("autoscaler.at_limit"))
    for node, pod, found in by_place(limited):
        yield AT_LIMIT.finding(
            "The limit of the node pool or group keeps the autoscaler from adding nodes.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    for node, pod, found in by_place(facts.said("autoscaler.no_type_fits")):
        why = value(found[0], "why")
        reasons = unplaced("", why).reasons
        short = [reason for reason in reasons if "/" in reason.resource]
        is_pods = bool(reasons) and all(reason.kind in ("affinity", "taint") for reason in reasons)
        if short:
            cause = (
                f"A new node of {short[0].nodes} groups would not have enough {short[0].resource}: they have no such "
                "GPUs, or they start from no node and their template does not tell of GPUs."
            )
        else:
            cause = f"No kind of node that the autoscaler may make fits the pod. {why[:160]}".rstrip()
        held = limited or any(facts.said("autoscaler.cloud_empty"))  # a group that fits may not grow now
        if not held or short:
            # Where every group is kept out by the pod's own selector or tolerations, these stand first.
            yield NO_TYPE.finding(
                cause, POSSIBLE if held or is_pods else LIKELY, found, node=node, pod=pod,
                cause_class=_class_of(" ".join(said.origin.text for said in found)),
            )  # fmt: skip
    for node, pod, found in by_place(facts.said("autoscaler.group_unhealthy")):
        yield NO_TYPE.finding(
            "Nodes of the group do not become ready, so the autoscaler leaves it alone.",
            POSSIBLE,
            found,
            node=node,
            pod=pod,
        )
    for node, pod, found in by_place(facts.said("autoscaler.node_stays")):
        why = value(found[0], "why")
        yield IDLE_STAYS.finding(f"The node may not go. {why[:160]}".rstrip(), WEAK, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("autoscaler.label_unknown")):
        yield NO_TYPE.finding(
            f"The label {value(found[0], 'label')} is none that the autoscaler knows before a node is there.",
            POSSIBLE,
            found,
            node=node,
            pod=pod,
            cause_class="scheduling-policy",
        )
    for pool in facts.of(ObjectSeen):
        if pool.kind in ("NodePool", "Provisioner") and (label := _found_label(pool)):
            yield NO_TYPE.finding(
                f"{pool.kind} {pool.name} requires the label {label}, which discovery sets only once a node is up.",
                POSSIBLE,
                [pool],
                cause_class="scheduling-policy",
            )
    yield from heard(facts, NOT_JOINED, ("autoscaler.not_joined",), "The new machine does not join.", LIKELY)
    yield from heard(
        facts, CLOUD_EMPTY, ("autoscaler.cloud_empty",), "The provider has no such machine there.", LIKELY
    )
    yield from heard(
        facts,
        CLOUD_EMPTY,
        ("autoscaler.cloud_quota",),
        "The account may not have another such machine: a quota of the provider.",
        LIKELY,
        cause_class="quota-gang",
    )


def _class_of(text: str) -> CauseClass | None:
    """Where a new node would not help either."""
    if "topology constraint" in text or "host port usage" in text:
        return "scheduling-policy"
    return "dra" if "Dynamic Resource Allocation requirements" in text else None


# Set by feature discovery on a node that runs; a pool cannot promise them.
_FOUND_LABEL = re.compile(
    r"\bkey\W+(?P<label>nvidia\.com/gpu\.(?:product|memory|family|count|machine|replicas)|"
    r"nvidia\.com/cuda\.[\w.]+|feature\.node\.kubernetes\.io/[\w.-]+)"
)


def _found_label(pool: ObjectSeen) -> str:
    found = _FOUND_LABEL.search(str(pool.body.get("spec")))
    return found["label"] if found else ""


RULE = Rule((NO_TYPE, AT_LIMIT, CLOUD_EMPTY, IDLE_STAYS, NOT_JOINED), find)
