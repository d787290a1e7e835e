"""L4. Nobody prepares the node: the operator has no policy to work by, or is not there at all."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import Advertised, NodeSeen, Operand, PodSeen

ABSENT = Code(
    name="NodeNotPrepared",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="nobody has prepared the node for GPUs",
    meaning="The node has a card, and no driver, toolkit or plugin comes to it: the operator has no ClusterPolicy (or "
    "NVIDIADriver), it does not run, or it leaves this node out. Nothing fails, and no GPU is offered.",
    known_by="Node Feature Discovery's label of the card is there, and neither a label of the operator nor a GPU "
    "resource; or only the operator's own pods run.",
    disproved_by="nvidia.com/gpu.present=true and the gpu.deploy labels are on the node.",
    counter_check="kubectl get clusterpolicy,nvidiadriver: one that is ready; kubectl get node NODE --show-labels | "
    "tr , '\\n' | grep gpu.deploy: the labels are there",
    fix=Fix(
        steps=(
            "no ClusterPolicy: create one (the chart does so; on OpenShift it is a step of its own)",
            "the operator's pod is not Running: its log's last lines",
            "the node is left out: gpu.deploy.operands=false, a taint that is not tolerated, or another workload label",
            "without the operator: driver, container toolkit and the device plugin's DaemonSet by hand",
        ),
        risk="driver and toolkit are installed; containerd restarts",
        rollback="remove the ClusterPolicy",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.allocatable}: nvidia.com/gpu is there",),
    sources=("GPU Operator documentation: installation, OpenShift", "gpu-operator issues 55 and 470"),
)

_CARD = "feature.node.kubernetes.io/pci-10de.present"
_LEAVES_OUT = ("nvidia.com/gpu.deploy.", "nvidia.com/gpu.present", "nvidia.com/gpu.workload", "nvidia.com/gpu.count")


def find(facts: Facts) -> Iterator[Answer]:
    offers = {one.name for one in facts.of(Advertised) if "nvidia.com/" in one.resource}
    names = {pod.name for pod in facts.of(PodSeen)} | {operand.name for operand in facts.of(Operand)}
    plugins = any("device-plugin" in name for name in names)
    for node in facts.of(NodeSeen):
        has_card = node.labels.get(_CARD) == "true"
        is_known = any(key.startswith(_LEAVES_OUT) for key in node.labels)
        if has_card and not is_known and not plugins and not offers & {node.name, ""}:
            yield ABSENT.finding(
                f"{node.name or 'The node'} has a card by {_CARD}, and no label or resource of anybody who works on "
                "it.",
                POSSIBLE if node.kubelet or len(node.labels) > 1 else WEAK,
                [node],
                node=node.name,
            )


RULE = Rule((ABSENT,), find)
