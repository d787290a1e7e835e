"""L2. A node whose GPUs belong to virtual machines, and whose containers are started by the NVIDIA runtime."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

NEEDS_DRIVER = Code(
    name="PassthroughNodeUsesNvidiaRuntime",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the NVIDIA runtime starts containers of a node whose GPUs are handed through",
    meaning="There the GPUs belong to vfio-pci and no NVIDIA driver is loaded. The NVIDIA runtime asks the driver "
    "before it starts a container, and the plugin for passthrough, which needs none, does not start.",
    known_by="The passthrough plugin or vfio manager fails with a message of CUDA, NVML or nvidia-container-cli.",
    disproved_by="The default runtime of the node is runc and the pod has no runtimeClassName.",
    counter_check="on NODE: containerd config dump | grep default_runtime_name ; docker info | grep Default : runc",
    fix=Fix(
        steps=(
            "make runc the default runtime of passthrough nodes again, and restart the engine",
            "GPU Operator: label the node nvidia.com/gpu.workload.config=vm-passthrough, so that it gets no toolkit",
        ),
        risk="containers on that node which relied on the default lose the NVIDIA runtime",
        rollback="restore the saved configuration",
    ),
    verify=("the passthrough plugin is Running", "kubectl get node NODE -o yaml lists the devices under allocatable"),
    sources=("NVIDIA/kubevirt-gpu-device-plugin, README", "GPU Operator documentation, KubeVirt"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.passthrough_plugin_needs_driver")).items():
        yield NEEDS_DRIVER.finding(
            "A program for passthrough was started as if it used the driver.", POSSIBLE, said, node=node
        )


RULE = Rule((NEEDS_DRIVER,), find)
