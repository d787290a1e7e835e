"""L5, L6. The kubelet ends or refuses pods because the node, or a volume of the pod, is full."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, value
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

_EVICTION = ("Kubernetes documentation: node-pressure eviction", "kubernetes, pkg/kubelet/eviction")

PRESSURE = Code(
    name="NodePressureEvicts",
    layer=Layer.L5,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="the node is short of disk or memory, and the kubelet ends pods",
    meaning="Below a threshold the kubelet deletes images, ends pods and takes no new ones. Images of CUDA and models "
    "are large: mostly it is the disk of the kubelet or of the runtime.",
    known_by="The node was low on resource, or had a condition such as DiskPressure.",
    disproved_by="The node's conditions are False since, and new pods start.",
    counter_check="kubectl describe node NODE: DiskPressure, MemoryPressure, PIDPressure False; on NODE: df -h "
    "/var/lib/kubelet /var/lib/containerd",
    fix=Fix(
        steps=(
            "disk: crictl rmi --prune; a larger or second disk for /var/lib/containerd; caches of models on volumes "
            "of their own",
            "give pods requests and limits for ephemeral-storage and memory",
            "components of the operator: requests, so that others are ended first",
        ),
        risk="images that were removed are pulled again",
        rollback="nothing to undo",
    ),
    verify=("kubectl get pod -A --field-selector spec.nodeName=NODE: no Evicted any more",),
    sources=_EVICTION,
)
VOLUME = Code(
    name="VolumeLimitEvicts",
    layer=Layer.L6,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.MemoryShort,
    title="a pod is ended because its emptyDir is over its limit",
    meaning="A volume of medium Memory is what programs see as /dev/shm; data loaders and NCCL write there. Over "
    "sizeLimit the kubelet ends the pod.",
    known_by="Usage of EmptyDir volume exceeds the limit.",
    disproved_by="The volume's sizeLimit is above what the program writes.",
    counter_check="kubectl get pod POD -n NAMESPACE -o yaml | grep -A3 emptyDir: a sizeLimit above what the program "
    "writes",
    fix=Fix(
        steps=(
            "raise emptyDir.sizeLimit (medium Memory counts as the pod's memory: raise its limit too)",
            "fewer workers of the data loader",
        ),
        risk="memory of the node",
        rollback="the former limit",
    ),
    verify=("the pod runs on beyond the time at which it was ended",),
    sources=("Kubernetes documentation: emptyDir", *_EVICTION),
)

_OF_OPERATOR = ("nvidia-", "gpu-operator", "gpu-feature", "dcgm-exporter", "node-feature-discovery")


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("pod.evicted_for_pressure")):
        what = next((one for said in found if (one := value(said, "what"))), "").rstrip(".")
        is_operators = any(name in said.origin.text for said in found for name in _OF_OPERATOR)
        yield PRESSURE.finding(
            f"The node reports {what}."
            if what.endswith("Pressure")
            else f"The node is short of {what or 'a resource'}.",
            LIKELY,
            found,
            node=node,
            pod=pod,
            effect=Effect.OperandsHeldBack if is_operators else None,
        )
    for node, pod, found in by_place(facts.said("pod.evicted_for_volume")):
        volume, limit = value(found[0], "volume"), value(found[0], "limit")
        cause = f"{volume or 'The volume'} has grown over {limit}."
        yield VOLUME.finding(cause, ESTABLISHED, found, node=node, pod=pod)


RULE = Rule((PRESSURE, VOLUME), find)
