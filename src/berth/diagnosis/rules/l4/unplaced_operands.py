"""L4, L5. Components of the operator that come to no node: labels that none has, a taint that they do not tolerate."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen, Operand, PodSeen

_SOURCES = ("gpu-operator controllers/state_manager.go", "GPU Operator documentation: troubleshooting")

WANTED_NOWHERE = Code(
    name="OperandsWantedNowhere",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the operator's DaemonSets are wanted on no node",
    meaning="No node has the labels that they select: nothing runs, nothing fails, and no GPU is offered.",
    known_by="DESIRED is 0 for the device plugin's DaemonSet and its companions.",
    disproved_by="The cluster has no GPU node at the moment.",
    counter_check="kubectl get node -l nvidia.com/gpu.deploy.device-plugin=true: the GPU nodes",
    fix=Fix(
        steps=(
            "kubectl get node --show-labels | tr , '\\n' | grep -e pci-10de -e gpu.deploy: which are missing or not "
            "true",
            "Node Feature Discovery must run on the GPU nodes and tolerate their taints",
            "gpu.deploy labels paused or false: see what set them",
        ),
        risk="none by looking",
        rollback="nothing to undo",
    ),
    verify=("kubectl get ds -n gpu-operator: DESIRED is the number of GPU nodes",),
    sources=("gpu-operator controllers/state_manager.go", "gpu-operator issues 316, 423, k8s-device-plugin issue 1934"),
)


TAINT_KEEPS_AWAY = Code(
    name="TaintKeepsOperandsAway",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="a taint of the node keeps GPU components away from it",
    meaning="Without driver, discovery or plugin on it the node offers no GPUs, and nobody reports an error: DaemonSet "
    "pods are not even made.",
    known_by="A node has a taint beside the usual ones, offers no GPU, and a GPU component waits or is wanted on fewer "
    "nodes.",
    disproved_by="The components tolerate the taint (operator: Exists) and run on that node.",
    counter_check="kubectl get pod -A -o wide --field-selector spec.nodeName=NODE | grep nvidia: they run",
    fix=Fix(
        steps=("daemonsets.tolerations (operator), tolerations (plugin chart), "
               "node-feature-discovery.worker.tolerations: key of the taint, operator Exists",),
        risk="none",
        rollback="take the toleration away",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.allocatable}: nvidia.com/gpu is there",),
    sources=("k8s-device-plugin issues 68, 421, 1934", "gpu-operator issues 156, 2717"),
)  # fmt: skip

_OF_OPERATOR = ("nvidia-", "gpu-operator", "gpu-feature", "node-feature", "dcgm", "nvdp-")
_TOLERATED = ("node.kubernetes.io/", "node-role.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/")
_SPECIAL = ("mps-control", "sandbox", "validator", "kubevirt")


def find(facts: Facts) -> Iterator[Answer]:
    sets = [one for one in facts.of(Operand) if one.kind == "DaemonSet"]
    plugins = [one for one in sets if "device-plugin" in one.name and not any(word in one.name for word in _SPECIAL)]
    idle = [one for one in plugins if one.wanted == 0]
    pending = [
        pod for pod in facts.of(PodSeen) if pod.name.startswith(_OF_OPERATOR) and pod.phase == "Pending" and not pod.on
    ]
    tainted = list(_tainted(facts, idle, pending)) if idle or pending else []
    yield from tainted
    if not tainted:
        for said in by_node(facts.said("operator.tainted_away")).values():
            taint = said_of(one.get("taint") for one in said)
            yield TAINT_KEEPS_AWAY.finding(f"The component does not tolerate {taint or 'a taint'}.", LIKELY, said)
    for said in by_node(facts.said("operator.set_wanted_nowhere")).values():
        yield WANTED_NOWHERE.finding("The plugin's DaemonSet is wanted on 0 nodes.", WEAK, said)
    companions = [
        one for one in sets if one.name.startswith(("gpu-feature", "nvidia-container-toolkit", "nvidia-dcgm"))
    ]
    if idle and not tainted and len(idle) == len(plugins) and all(one.wanted == 0 for one in companions):
        selector = ", ".join(f"{key}={value}" for key, value in idle[0].node_selector.items())
        yield WANTED_NOWHERE.finding(
            f"{idle[0].name} is wanted on 0 nodes{f': none has {selector}' if selector else ''}.",
            POSSIBLE,
            [*idle, *companions],
        )


def _tainted(facts: Facts, idle: list[Operand], pending: list[PodSeen]) -> Iterator[Answer]:
    tolerated = {key for pod in pending for key, *_ in pod.tolerations}
    for node in facts.of(NodeSeen):
        keys = [key for key, _, effect in node.taints if effect in ("NoSchedule", "NoExecute")]
        kept = [key for key in keys if not key.startswith(_TOLERATED) and key not in tolerated]
        if kept:
            yield TAINT_KEEPS_AWAY.finding(
                f"{', '.join(kept)} on {node.name}, and {(idle or pending)[0].name} does not come there.",
                POSSIBLE,
                [node, *idle, *pending],
                node=node.name,
            )


RULE = Rule((WANTED_NOWHERE, TAINT_KEEPS_AWAY), find)
