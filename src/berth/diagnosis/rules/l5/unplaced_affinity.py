"""L5. The pod's own constraints leave no node: selector or affinity, spread, neighbours, ports, volumes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, listed
from berth.diagnosis.rules.l5.unplaced_taint import OF_CONTROL_PLANE
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen, PodSeen
from berth.evidence.formats.failed_scheduling import unplaced

NEAR = 0.6
GUESS = 0.5
_VERIFY = ("kubectl get pod POD -n NAMESPACE -o wide: it has a node",)
_LOOSEN = "the pod may then land where its author did not want it"

SELECTOR = Code(
    name="NodeSelectorUnmatched",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="no node has the labels that the pod demands",
    meaning="Selectors are compared letter by letter with the nodes' labels. Product names of GPUs change with driver, "
    "sharing (-SHARED), MIG and memory size, and carry hyphens where the product has spaces.",
    known_by="FailedScheduling counts nodes that do not match the pod's node affinity or selector.",
    disproved_by="A node whose labels satisfy the selector and every required term.",
    counter_check="kubectl get nodes -l '<the selector>': lists the nodes that were meant",
    fix=Fix(
        steps=(
            "kubectl get nodes -L nvidia.com/gpu.product,nvidia.com/gpu.memory,nvidia.com/mig.strategy: copy the "
            "value from here",
            "correct the selector in the pod's template, or label the nodes where the label is your own",
        ),
        risk=_LOOSEN,
        rollback="put the old selector back",
    ),
    verify=_VERIFY,
    sources=("kubernetes, pkg/scheduler/framework/plugins/nodeaffinity", "GPU feature discovery: labels"),
)
SPREAD = Code(
    name="SpreadOrNeighboursUnmet",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="rules about neighbours or spreading leave no node",
    meaning="Pod affinity, anti-affinity or topology spread with DoNotSchedule forbids each node that has room.",
    known_by="FailedScheduling names pod affinity, anti-affinity or topology spread constraints.",
    disproved_by="A node with room where the rule holds.",
    counter_check="kubectl get pod POD -n NAMESPACE -o yaml, topologySpreadConstraints and affinity against the "
    "labels of running pods: a node with room where they hold",
    fix=Fix(
        steps=(
            "make the rule a preference (ScheduleAnyway, preferredDuringScheduling)",
            "or give the nodes the topology label that it counts by",
        ),
        risk=_LOOSEN,
        rollback="put the old rule back",
    ),
    verify=_VERIFY,
    sources=("kubernetes, plugins podtopologyspread and interpodaffinity",),
)
PORTS = Code(
    name="HostPortTaken",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="a port of the host that the pod wants is in use",
    meaning="Two pods with the same hostPort, or with hostNetwork and the same container port, do not fit on one node.",
    known_by="FailedScheduling counts nodes without free ports for the requested pod ports.",
    disproved_by="No pod on the node has that host port.",
    counter_check="kubectl get pods -A --field-selector spec.nodeName=NODE -o yaml | grep hostPort: the port is not "
    "there",
    fix=Fix(
        steps=("leave out hostPort or choose another; do without hostNetwork where it is not needed",),
        risk="clients that use the port must follow",
        rollback="put the port back",
    ),
    verify=_VERIFY,
    sources=("kubernetes, plugin nodeports",),
)
VOLUME = Code(
    name="VolumeKeepsPodOut",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="a volume of the pod cannot be had where the GPUs are",
    meaning="A claim is unbound, bound in another zone or on another node, or the node holds as many volumes as it "
    "can.",
    known_by="FailedScheduling or the pod's events name a claim, a volume zone or a volume limit.",
    disproved_by="All claims of the pod are Bound to volumes that the GPU nodes reach.",
    counter_check="kubectl get pvc -n NAMESPACE: all Bound; the volume's nodeAffinity fits a GPU node",
    fix=Fix(
        steps=(
            "kubectl describe pvc of the claim: missing class, missing provisioner, or wrong zone",
            "use a class with volumeBindingMode WaitForFirstConsumer, so that the volume follows the pod",
        ),
        risk="a claim that is made anew begins empty",
        rollback="keep the old claim until the pod runs",
    ),
    verify=_VERIFY,
    sources=("kubernetes, plugins volumebinding, volumezone, nodevolumelimits",),
)
OTHER = Code(
    name="PodUnplaced",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="the scheduler finds no node, for reasons of a plugin or none at all",
    meaning="The pod waits. A plugin out of tree, or one that this program does not know, rejects the nodes.",
    known_by="FailedScheduling with no reason that is known.",
    disproved_by="A later event names another reason.",
    counter_check="kubectl describe pod POD -n NAMESPACE: the newest event names another reason",
    fix=Fix(
        steps=("read the scheduler's log for the pod; the plugin that is named documents its reasons",),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=_VERIFY,
    sources=("kubernetes, scheduling framework",),
)
IGNORED = Code(
    name="PlacementWishIgnored",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Warning,
    effect=Effect.HeldByPolicy,
    title="a wish where to put pods, or on which card, has no effect",
    meaning="Binpack, spread and choices of cards are scores or annotations of one scheduler. They do nothing where "
    "another scheduler places the pod, where the annotation has another name in that release, or where a filter or a "
    "greater weight decides before them.",
    known_by="Somebody tells that the policy or annotation is set and pods are placed otherwise.",
    disproved_by="The scheduler that places the pod lists the policy at its start, and places the next pod by it.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.schedulerName} {.metadata.annotations}': the "
    "scheduler that knows the annotation",
    fix=Fix(
        steps=(
            "the pod's schedulerName is that scheduler (its webhook sets it): kubectl get events of the pod: From",
            "names of annotations and keys of the scheduler's configuration as its release has them",
            "among several scores the weights decide: kube-scheduler's NodeResourcesFit, the share scheduler's own",
        ),
        risk="pods crowd on fewer nodes, or spread over more",
        rollback="the former policy",
    ),
    verify=("kubectl get pods -o wide: the next pods are placed as wished",),
    sources=("HAMi documentation: scheduler policies", "volcano, plugins binpack and deviceshare",
             "kubernetes, noderesources"),
)
_OF_KIND = {"spread": SPREAD, "neighbours": SPREAD, "ports": PORTS, "volume": VOLUME}


def find(facts: Facts) -> Iterator[Answer]:
    seen = set[str]()
    for said in facts.said("scheduler.unplaced"):
        why = unplaced(said.get("total"), said.get("reasons"))
        if why.of("affinity") or why.of("volume"):
            seen.add(said.origin.text)
        share = POSSIBLE if why.of("resource") or len(why.reasons) > 2 else LIKELY
        beside = {reason.text for reason in why.beside_shortage}
        named = [reason.taint for reason in why.of("taint")]
        # A node that is tainted and fits otherwise is the one that was meant.
        is_taint = any(taint and not taint.startswith(OF_CONTROL_PLANE) for taint in named)
        for reason in why.of("affinity"):
            near = _near_labels(facts)
            cause = f"{reason.nodes} of {why.total} nodes do not match the pod's selector or affinity."
            sure = LIKELY if near else POSSIBLE if is_taint else share
            yield SELECTOR.finding(f"{cause} {near}".rstrip(), sure, [said])
        if not any(reason.kind for reason in why.reasons) and not any(
            facts.said("pod.volume_unbound", "gang.", "kai.", "dra.", "hami.")
        ):
            words = listed(reason.text for reason in why.reasons)
            yield OTHER.finding(
                f"No node of {why.total} is taken{': ' + words if words else ', and no reason is given'}.",
                GUESS,
                [said],
            )
        for kind, code in _OF_KIND.items():
            for reason in why.of(kind):
                sure = LIKELY if reason.text in beside else share
                yield code.finding(f"{reason.nodes} of {why.total} {reason.text}.", sure, [said])
    seen |= {said.origin.text for said in facts.said("autoscaler.at_limit")}  # groups that match are full
    for node, pod, found in by_place(facts.said("scheduler.affinity")):
        if alone := [said for said in found if said.origin.text not in seen]:
            yield SELECTOR.finding(
                f"The pod's selector or affinity matches no node. {_near_labels(facts)}".rstrip(),
                LIKELY,
                alone,
                node=node,
                pod=pod,
            )
    for node, pod, found in by_place(facts.said("pod.volume_unbound")):
        if alone := [said for said in found if said.origin.text not in seen]:
            yield VOLUME.finding(
                "A claim of the pod has no volume that a node can use.", LIKELY, alone, node=node, pod=pod
            )
    yield from heard(
        facts, IGNORED, ("reported.placement_ignored",), "The wish for a place is said to have no effect.", GUESS
    )  # fmt: skip


def _near_labels(facts: Facts) -> str:
    """What the pod demands and what nodes have instead."""
    nodes = facts.of(NodeSeen)
    if not nodes:
        return ""
    misses = []
    for pod in facts.of(PodSeen):
        for key, wanted in pod.node_selector.items() if not pod.on else ():
            present = sorted({node.labels[key] for node in nodes if key in node.labels})
            if wanted in present:
                continue
            near = difflib.get_close_matches(wanted, present, 1, NEAR)
            instead = f"; nodes have {near[0] if near else listed(present)}" if present else "; no node has that label"
            misses.append(f"It demands {key}={wanted}{instead}.")
    return " ".join(dict.fromkeys(misses))


RULE = Rule((SELECTOR, SPREAD, PORTS, VOLUME, OTHER, IGNORED), find)
