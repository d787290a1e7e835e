"""L2. Pods see GPUs that nobody gave them."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import PodSeen

# Operands that are meant to see all GPUs.
_OPERANDS = ("nvidia-", "gpu-", "dcgm", "gpu-feature-discovery", "hami-")

UNASKED = Code(
    name="GpusVisibleWithoutRequest",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Warning,
    effect=Effect.MemoryShort,
    title="pods reach GPUs that they did not ask for",
    meaning="NVIDIA_VISIBLE_DEVICES=all, of a manifest or of the image, makes the NVIDIA runtime hand out every GPU, "
    "past the scheduler's and the kubelet's account: two pods may use one GPU and nobody knows.",
    known_by="A pod sets the variable to all and asks for no device; or somebody sees all GPUs in a pod without a "
    "limit.",
    disproved_by="The toolkit refuses the variable to unprivileged containers.",
    counter_check="kubectl exec POD -n NAMESPACE -- nvidia-smi -L : as many GPUs as the pod's limits say",
    fix=Fix(
        steps=(
            "ask for the resource and take the variable out of the manifest; NVIDIA_VISIBLE_DEVICES=void for pods "
            "without",
            "for the node: accept-nvidia-visible-devices-envvar-when-unprivileged = false together with the strategy "
            "volume-mounts or cdi-cri of the device plugin",
        ),
        risk="pods that relied on it lose their GPUs at their next start",
        rollback="the former setting",
    ),
    verify=("nvidia-smi -L in a pod without a limit: not found, or no devices",),
    sources=(
        "NVIDIA/k8s-device-plugin, README: warning on pods without a limit",
        "NVIDIA container toolkit documentation",
    ),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.visible_unasked")).items():
        yield UNASKED.finding("A pod without a limit sees all GPUs of its node.", POSSIBLE, said, node=node)
    for pod in facts.of(PodSeen):
        taking = [one for one in pod.limits if one.visible_devices == "all" and not one.is_privileged]
        has_devices = any(one.devices or one.claims for one in pod.limits)
        if taking and not has_devices and not pod.name.startswith(_OPERANDS) and "DaemonSet" not in pod.owner:
            yield UNASKED.finding(
                f"Container {taking[0].container} of pod {pod.key} sets NVIDIA_VISIBLE_DEVICES=all and asks for no "
                "device.",
                WEAK,  # true, and seldom what somebody asks about
                [pod],
                node=pod.on,
                pod=pod.key,
                subject=f"pod {pod.key}",
            )


RULE = Rule((UNASKED,), find)
