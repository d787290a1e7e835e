"""L2. A pod that needs the driver's library was started without it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

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
    counter_check="nvidia-smi on NODE works; kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.runtimeClassName}' "
    ": nvidia",
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

NO_PLATFORM = Code(
    name="PluginSeesNoPlatform",
    layer=Layer.L2,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin does not recognise a GPU platform",
    meaning="It advertises nothing and, with failOnInitError, ends.",
    known_by="Its detection says that this is not an NVML platform, without a library error.",
    disproved_by="nvidia-smi works inside the plugin's container.",
    counter_check="kubectl exec of the plugin: nvidia-smi -L : lists the GPUs",
    fix=Fix(
        steps=(
            "set deviceDiscoveryStrategy to nvml (0.16 and newer detect by themselves with auto, and differ from "
            "before)",
            "give the plugin's pod what its release needs: the driver root as a mount, and for MIG the capability "
            "SYS_ADMIN",
            "check that the pod has runtimeClassName nvidia where that runtime is not the default",
        ),
        risk="none for what runs",
        rollback="the former chart values",
    ),
    verify=("kubectl logs of the plugin: Detected NVML platform, Registered device plugin",),
    sources=("NVIDIA/k8s-device-plugin, release notes 0.16", "NVIDIA/go-nvlib, pkg/nvlib/info"),
)


def find(facts: Facts) -> Iterator[Answer]:
    # Feature Discovery says of itself that it makes no labels: then it is its own pod that has to be mended, and not
    # what the plugin and the workloads are started with.
    labels = {one.origin.source for one in facts.said("runtime.no_labels")}
    bare = [one for one in facts.said("runtime.no_nvml") if one.origin.source not in labels]
    smi = list(facts.said("runtime.no_smi"))
    detected = list(facts.said("runtime.non_nvml"))
    with_reason = [one for one in detected if "could not load" in one.get("why").lower()]
    incompatible = [one for one in detected if "incompatible" in one.origin.text.lower()]
    for node, said in by_node((*bare, *smi, *with_reason, *incompatible)).items():
        what = "nvidia-smi is not" if said[0] in smi else "the driver's library is not"
        yield WITHOUT_LIBRARY.finding(
            f"{what.capitalize()} in the container: it was started by another runtime than NVIDIA's, or that one is "
            "not "
            "set up where this runtime reads.",
            LIKELY,
            said,
            node=node,
        )
        if not facts.looked_at("containerd-config", "crio-config"):
            yield Unconfirmed(
                what=f"the runtime configuration in effect on {node or 'the node'}",
                how="crictl info; containerd config dump",
                wanted_for=WITHOUT_LIBRARY.name,
                layer=Layer.L2,
                node=node,
            )
    plain = [one for one in detected if one not in with_reason and one not in incompatible]
    if plain and not bare:
        for node, said in by_node(plain).items():
            yield NO_PLATFORM.finding("The plugin's detection found no NVML platform.", POSSIBLE, said, node=node)


RULE = Rule((WITHOUT_LIBRARY, NO_PLATFORM), find)
