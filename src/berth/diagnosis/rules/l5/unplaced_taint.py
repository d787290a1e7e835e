"""L5. Taints keep a pod away from nodes that have what it needs. Since 1.35 (and patched 1.34) the event does not name
the taint any more; the nodes still do."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import listed, value
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen, PodSeen
from berth.evidence.formats.failed_scheduling import Unplaced, unplaced

# Set by Kubernetes itself where a node is not fit: no toleration is the answer to these.
OF_CONDITIONS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
OF_CONTROL_PLANE = ("node-role.kubernetes.io/",)
# Put on new nodes until a component says that they are ready, and left there where it never does.
OF_START = (
    "karpenter.sh/not-ready",
    "karpenter.sh/unregistered",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "node.cilium.io/",
    "ebs.csi.aws.com/",
    "efs.csi.aws.com/",
    "readiness.k8s.io/",
)
_KEEPS_OUT = ("NoSchedule", "NoExecute", "")

_FIX = Fix(
    steps=(
        "kubectl get nodes -o custom-columns=N:.metadata.name,T:.spec.taints: which taint keeps the pod out",
        "a GPU pod: add the toleration to its template (key nvidia.com/gpu, operator Exists, effect NoSchedule is "
        "usual)",
        "a pod without GPUs: give it a node without the taint",
        "node.kubernetes.io/* taints: mend the node, do not tolerate them",
    ),
    risk="a toleration lets the pod onto every node with that taint",
    rollback="take the toleration out again",
)
_SOURCES = (
    "kubernetes, pkg/scheduler/framework/plugins/tainttoleration",
    "kubernetes#134740: the taint is not named any more from 1.35 on",
)

NOT_TOLERATED = Code(
    name="TaintNotTolerated",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="a taint keeps the pod off the nodes that could run it",
    meaning="Nodes with free GPUs refuse the pod because it does not tolerate their taint.",
    known_by="FailedScheduling counts nodes with untolerated taints; the taints are those that the nodes carry.",
    disproved_by="The pod's tolerations match every NoSchedule taint of a node that has room.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.tolerations}' against the node's "
    ".spec.taints: all matched",
    fix=_FIX,
    verify=("kubectl get pod POD -n NAMESPACE -o wide: it has a node",),
    sources=_SOURCES,
)
SYSTEM_KEPT_OUT = Code(
    name="SystemPodsKeptOut",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="pods of the cluster itself have no node that they may use",
    meaning="Where the only nodes carry a GPU taint, the cluster's own pods stay Pending. Without the tunnel's agent "
    "neither logs nor exec work, without DNS jobs do not find each other.",
    known_by="The API server has no tunnel agent, or an agent, DNS or metrics pod is Pending.",
    disproved_by="The agents run; then the tunnel is broken between them and the API server.",
    counter_check="kubectl get pods -n kube-system -o wide | grep -E 'konnectivity|coredns|metrics': all Running",
    fix=Fix(
        steps=(
            "kubectl describe the Pending pod in kube-system: which taint or resource keeps it out",
            "keep at least one node or node pool without the GPU taint for the cluster's own pods",
        ),
        risk="none for running pods",
        rollback="remove the node pool",
    ),
    verify=("kubectl logs of any pod works; kubectl get pods -n kube-system: none Pending",),
    sources=("Kubernetes documentation: Konnectivity service", "kubernetes, tainttoleration plugin"),
)
CORDONED = Code(
    name="NodesCordoned",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Warning,
    effect=Effect.PodsWait,
    title="nodes that could run the pod are cordoned",
    meaning="A cordoned node takes no new pods until somebody or something uncordons it: an upgrade that stopped "
    "half-way "
    "leaves it so.",
    known_by="FailedScheduling counts nodes that were unschedulable.",
    disproved_by="spec.unschedulable is not set on a node that has room.",
    counter_check="kubectl get nodes: no SchedulingDisabled where the pod could run",
    fix=Fix(
        steps=(
            "find out why it was cordoned: labels and annotations of the node, the operator's upgrade state, a "
            "health agent",
            "kubectl uncordon NODE when the reason is gone",
        ),
        risk="uncordoning a sick node sends new work to it",
        rollback="kubectl cordon NODE",
    ),
    verify=("kubectl get node NODE: Ready, without SchedulingDisabled",),
    sources=("kubernetes, pkg/scheduler/framework/plugins/nodeunschedulable",),
)


def find(facts: Facts) -> Iterator[Answer]:
    told = list(facts.said("scheduler.unplaced"))
    for said in told:
        why = unplaced(said.get("total"), said.get("reasons"))
        if reasons := why.of("taint"):
            named = [reason.taint for reason in reasons if reason.taint]
            nodes = sum(reason.nodes for reason in reasons)
            yield from _not_tolerated(facts, said, named, f"{nodes} of {why.total} nodes", why)
        if reasons := why.of("cordoned"):
            names = [node.name for node in facts.of(NodeSeen) if node.is_cordoned]
            yield CORDONED.finding(
                f"{reasons[0].nodes} of {why.total} nodes are unschedulable{': ' + listed(names) if names else ''}.",
                POSSIBLE if len(why.reasons) > 1 else LIKELY,
                [said],
            )
    lines = {said.origin.text for said in (*told, *facts.said("autoscaler.at_limit"))}
    for said in facts.said("scheduler.taint"):
        if said.origin.text not in lines:
            key, worth = value(said, "key"), value(said, "value")
            named = [key + (f"={worth}" if worth else "")] if key else []
            yield from _not_tolerated(facts, said, named, "nodes", None)
    kept_out = list(facts.said("scheduler.no_tunnel_agent", "scheduler.system_pod_kept_out"))
    if kept_out:
        yield SYSTEM_KEPT_OUT.finding(
            "Pods of the cluster itself have no node. The usual reason is that every node carries a taint for GPUs.",
            LIKELY, kept_out,
        )  # fmt: skip


def _not_tolerated(facts: Facts, said: Said, named: list[str], where: str, why: Unplaced | None) -> Iterator[Answer]:
    if not named:
        named = _carried(facts)
    useful = [taint for taint in named if not taint.startswith(OF_CONTROL_PLANE)]
    if why is not None and not useful and named and len(why.reasons) > 1:
        return  # control planes are meant to be left out: another reason counts
    if useful and all(taint.startswith(OF_CONDITIONS) for taint in useful):
        cause = f"{where} carry {listed(useful)}: Kubernetes set it because of the node's condition."
    elif useful and all(taint.startswith(OF_START) for taint in useful):
        cause = (
            f"{where} carry {listed(useful)}: a start-up taint that was not taken away. See why its owner does not "
            "take the node for ready (its agent, missing capacity or labels)."
        )
    elif useful:
        cause = f"{where} carry {listed(useful)}, which the pod does not tolerate."
    else:
        cause = f"{where} carry taints that the pod does not tolerate; the event does not name them."
    # Beside a shortage the taint is one of two reasons; control planes are tainted everywhere.
    is_beside = why is not None and any(reason.kind == "taint" for reason in why.beside_shortage)
    confidence = POSSIBLE if why is not None and why.of("resource") and not is_beside else LIKELY
    yield NOT_TOLERATED.finding(cause, confidence, [said])


def _carried(facts: Facts) -> list[str]:
    """Taints of the nodes that no waiting pod tolerates, as key=value:effect."""
    tolerated = [one for pod in facts.of(PodSeen) if not pod.on for one in pod.tolerations]
    found = [
        f"{key}{'=' + worth if worth else ''}:{effect}"
        for node in facts.of(NodeSeen)
        for key, worth, effect in node.taints
        if effect in _KEEPS_OUT and not any(_matches(one, key, worth, effect) for one in tolerated)
    ]
    return list(dict.fromkeys(found))


def _matches(toleration: tuple[str, str, str, str], key: str, worth: str, effect: str) -> bool:
    its_key, operator, its_value, its_effect = toleration
    if its_effect and its_effect != effect:
        return False
    if operator == "Exists":
        return not its_key or its_key == key
    return its_key == key and its_value == worth


RULE = Rule((NOT_TOLERATED, SYSTEM_KEPT_OUT, CORDONED), find)
