"""L3 and L5. Who was given a device, who reaches it, and who was never given one: the kubelet's account by name.

Holds when:  the kubelet holds devices for nobody, or a container reaches others than it was given, or never asked.
Disproved by: a second look: a pod that ends is dropped within its grace period.
"""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.ledger import accounts, is_gpu
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.boundary_facts import Given, Visible
from berth.evidence.formats.cluster_facts import PodSeen

GHOST = Code(
    name="DeviceHeldByGonePod",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.AccountStale,
    title="the kubelet holds devices for a pod that is not there any more",
    meaning="The devices count as free for the scheduler and as taken for the kubelet: the next pod is refused.",
    known_by="The kubelet's own account (PodResources or its checkpoint) names a pod that the API server lacks.",
    disproved_by="The pod is on its way out, and the account follows within its grace period.",
    counter_check="kubectl get pods -A --field-selector spec.nodeName=NODE: the pod is there after all",
    fix=Fix(
        steps=(
            "kubectl cordon NODE; keep kubelet_internal_checkpoint and the kubelet's log",
            "restart the kubelet in a window: it drops what belongs to no pod",
            "no change: drain NODE, remove the checkpoint, start the kubelet",
        ),
        risk="the state of the node's pods; a checkpoint that is removed frees devices that are in use",
        rollback="kubectl uncordon NODE",
    ),
    verify=("berth ledger NODE: request and node agree",),
    sources=("kubernetes issue 130172", "kubernetes pkg/kubelet/cm/devicemanager/pod_devices.go"),
)
OTHER_DEVICE = Code(
    name="ContainerReachesOtherDevice",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="a container reaches other devices than it was given",
    meaning="Two programs share a device that each has for its own, or one has none.",
    known_by="The kubelet's account names one set of devices, the container's environment or device files another.",
    disproved_by="The two are spelt differently (index and UUID of the same device).",
    counter_check="nvidia-smi -L in the container, and berth ledger NODE: the same UUIDs",
    fix=Fix(
        steps=(
            "look at the image and the manifest: NVIDIA_VISIBLE_DEVICES set by hand, privileged, host paths",
            "delete the pod; it is given devices anew",
        ),
        risk="the program starts again",
        rollback="nothing to undo",
    ),
    verify=("berth ledger NODE: equal",),
    sources=("nvidia-container-toolkit: NVIDIA_VISIBLE_DEVICES",),
)
UNASKED = Code(
    name="ReachesGpusUnasked",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Warning,
    effect=Effect.HeldByPolicy,
    title="a pod reaches GPUs that it never asked for",
    meaning="No isolation, no health and no account hold for it; whoever was given the same card shares it unknowing.",
    known_by="NVIDIA_VISIBLE_DEVICES, a host path or privileges in a pod without a GPU in its limits.",
    disproved_by="It is part of an operator, which reaches all devices by right.",
    counter_check="kubectl get pod POD -n NAMESPACE -o yaml: a limit of RESOURCE after all, or the owner is an "
    "operator",
    fix=Fix(
        steps=(
            "ask for the device in limits instead, and take variable, host path or privileges out",
            "toolkit: accept-nvidia-visible-devices-envvar-when-unprivileged = false",
            "refuse such pods at admission",
        ),
        risk="the pod has no GPU until it asks for one",
        rollback="the old manifest",
    ),
    verify=("berth ledger NODE: nobody reaches GPUs without asking",),
    sources=("nvidia-container-toolkit: configuration", "Kubernetes: device plugins"),
)


def find(facts: Facts) -> Iterator[Answer]:
    yield from _ghosts(facts)
    for account in accounts(facts):
        for line in account.devices:
            if line.request and line.visible and line.request != line.visible:
                cause = f"{line.id} was given to {line.request} and is reached by {line.visible}."
                given = [one for one in facts.of(Given) if line.id in one.ids]
                seen = [one for one in facts.of(Visible) if line.id in one.ids]
                yield OTHER_DEVICE.finding(cause, LIKELY, [*given, *seen], node=account.node, pod=line.visible)
        for bypass in account.bypasses:
            cause = f"{bypass.pod} reaches GPUs by {bypass.how} and asks for none."
            pods = [one for one in facts.of(PodSeen) if one.key == bypass.pod]
            yield UNASKED.finding(cause, LIKELY, pods, node=account.node, pod=bypass.pod, resource=account.resource)


def _ghosts(facts: Facts) -> Iterator[Answer]:
    """Given to a pod that nobody knows. Only where all pods of the node were read."""
    pods = facts.of(PodSeen)
    if not pods:
        return
    known = {pod.key for pod in pods} | {pod.uid for pod in pods}
    for one in facts.of(Given):
        if is_gpu(one.resource) and one.of_pod not in known and one.ids:
            cause = f"The kubelet holds {len(one.ids)} of {one.resource} for {one.of_pod}, which is not there."
            yield GHOST.finding(cause, LIKELY, [one], node=one.node, resource=one.resource)


RULE = Rule((GHOST, OTHER_DEVICE, UNASKED), find)
