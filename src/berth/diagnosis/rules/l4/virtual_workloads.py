"""L4. Nodes whose GPUs are for virtual machines: the operator's vGPU manager and what its validator waits for."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

NOT_READY = Code(
    name="VgpuManagerNotReady",
    layer=Layer.L4,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the operator's vGPU manager is not ready on the node",
    meaning="The host's vGPU driver makes the virtual functions or parents of which virtual GPUs are cut. Until they "
    "are there, device manager and sandbox plugin wait, and virtual machines get no GPU.",
    known_by="The validator: vGPU Manager is not ready, no parent devices, or virtual functions that are not made.",
    disproved_by="The validator's vgpu-manager-ready is there, and /sys/class/mdev_bus or the functions' nvidia "
    "directories exist.",
    counter_check="kubectl logs of nvidia-vgpu-manager-daemonset on NODE; lspci -d 10de: on NODE: virtual functions",
    fix=Fix(
        steps=(
            "the vGPU manager's pod: its image is the host driver of vGPU for this kernel, not the guest's",
            "SR-IOV and IOMMU on in the firmware and the kernel's command line; the board licensed for vGPU",
            "functions not made: sriov-manage -e ALL in the vGPU manager's pod says why",
        ),
        risk="a change of the vGPU driver ends all virtual machines with GPUs on the node",
        rollback="the former image",
    ),
    verify=("ls /run/nvidia/validations on NODE: vgpu-manager-ready",),
    sources=("gpu-operator cmd/nvidia-validator: vgpu-manager", "GPU Operator documentation: KubeVirt"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("vgpu.manager_not_ready")).values():
        yield NOT_READY.finding("The vGPU driver of the host is not there yet.", LIKELY, said)
    for said in by_node(facts.said("vgpu.config_unread")).values():
        yield NOT_READY.finding("The file of layouts for virtual GPUs cannot be read.", POSSIBLE, said)
    for said in by_node(facts.said("vgpu.functions_not_made")).values():
        yield NOT_READY.finding("The virtual functions or parents of the card are not made.", POSSIBLE, said)


RULE = Rule((NOT_READY,), find)
