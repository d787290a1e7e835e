"""L2. A pod that needs the driver's library was started without it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import PodSeen

WITHOUT_LIBRARY = Code(
    name="StartedWithoutNvidiaRuntime",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="pods that need the driver are not started by the NVIDIA runtime",
    meaning="The device plugin finds no driver library in its container and advertises nothing; workloads find no GPU. "
    "The driver on the host may be well.",
    known_by="The library of NVML is not in the container, or the toolkit's check finds no nvidia-smi there.",
    disproved_by="nvidia-smi fails on the host as well: then the driver is what is missing.",
    counter_check="nvidia-smi on NODE : fails, too (then it is the driver); kubectl get pod POD -n NAMESPACE -o "
    "jsonpath='{.spec.runtimeClassName}' : nvidia",
    fix=Fix(
        steps=(
            "nvidia-smi on NODE; where it fails mend the driver first",
            "containerd config dump | grep -e default_runtime_name -e nvidia (crictl info): is there a handler, is it "
            "the "
            "default",
            "not there: install nvidia-container-toolkit, nvidia-ctk runtime configure --runtime=containerd "
            "--set-as-default, restart the runtime; K3s, RKE2, MicroK8s and k0s have their own file",
            "there and not the default: runtimeClassName: nvidia for the plugin and for GPU pods",
            "nodes without GPUs: keep the plugin off them with a nodeSelector",
        ),
        risk="container starts pause for seconds while the runtime restarts",
        rollback="restore the saved configuration",
    ),
    verify=(
        "kubectl logs of the plugin: Registered device plugin for 'nvidia.com/gpu'",
        "kubectl get node NODE -o jsonpath='{.status.allocatable}' : nvidia.com/gpu is there",
    ),
    sources=("NVIDIA/k8s-device-plugin, README: prerequisites", "NVIDIA/go-nvlib, platform detection"),
)

# Who says of itself what it lacks has a rule of its own: what is mended there is its own pod.
_OTHERS = ("plugin.no_nvml", "plugin.asks_for_runtime", "plugin.not_nvml_platform", "gfd.no_labels", "dcgm.")


def find(facts: Facts) -> Iterator[Answer]:
    others = {(one.origin.source, one.origin.line) for one in facts.said(*_OTHERS)}
    labels = {one.origin.source for one in facts.said("runtime.no_labels")}
    bare = [
        one
        for one in facts.said("runtime.no_nvml")
        if (one.origin.source, one.origin.line) not in others and one.origin.source not in labels
    ]
    plain = {pod.key for pod in facts.of(PodSeen) if not _wants_a_gpu(pod)}  # what they lack is not the runtime's fault
    # In a container's own words; on a node the same means that the driver has made none.
    without_files = facts.said("driver.device_nodes_missing", "cdi.nodes_absent")
    bare += facts.said("runtime.no_tegra_libraries", "runtime.dcgm_without_nvml", "runtime.nv_not_bound")
    bare += [one for one in without_files if one.origin.kind in ("app-log", "nccl-log")]
    smi = [one for one in facts.said("runtime.no_smi") if one.origin.pod not in plain]
    weak = [
        *facts.said("runtime.class_unset", "runtime.smi_without_library", "runtime.kind_without_gpu"),
        *facts.said("runtime.said_not_injected", "runtime.flag_unset", "runtime.told_no_variable"),
        *facts.said("runtime.told_hook_not_run", "runtime.nvml_unsaid"),
    ]
    for node, said in by_node((*bare, *smi, *weak)).items():
        what = "nvidia-smi is not" if said[0] in smi else "the driver is not"
        by_cdi = said[0] in weak and (
            any("cdi" in one.origin.text.lower() for one in said)
            or any(one.origin.source == said[0].origin.source for one in facts.said("cdi.told_present"))
        )
        yield WITHOUT_LIBRARY.finding(
            f"{what.capitalize()} in the container: it was started by another runtime than NVIDIA's, or that one is "
            "not "
            "set up where this runtime reads.",
            LIKELY if said[0] not in weak else POSSIBLE,
            said,
            node=node,
            cause_class="cdi" if by_cdi else None,
        )
        if not facts.looked_at("containerd-config", "crio-config"):
            yield Unconfirmed(
                what=f"the runtime configuration in effect on {node or 'the node'}",
                how="crictl info; containerd config dump",
                wanted_for=WITHOUT_LIBRARY.name,
                layer=Layer.L2,
                node=node,
            )


def _wants_a_gpu(pod: PodSeen) -> bool:
    """It asks for one, or is an operand that has to see them all."""
    asked = any(one.devices or one.claims or one.visible_devices for one in pod.limits)
    return asked or pod.name.startswith(("nvidia-", "gpu-", "nvdp-", "dcgm"))


RULE = Rule((WITHOUT_LIBRARY,), find)
