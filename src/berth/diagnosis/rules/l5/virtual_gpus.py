"""L5. What makes virtual GPUs, or hands devices to sandboxes and virtual machines, is not set up for the device."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, value
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

_STARTS = ("the virtual machine starts and lspci inside it shows the GPU",)

NO_PORT = Code(
    name="SandboxHasNoPortForDevice",
    layer=Layer.L5,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the sandbox's virtual machine has no PCI Express port for the GPU",
    meaning="Kata plugs a VFIO device into a port of the virtual machine, and its configuration makes none, or not "
    "enough of them. GPUs with large memory regions need a root port of their own.",
    known_by="Kata: a hot plug that fails, a bus rpN that is not found, or a port that is not set for the device.",
    disproved_by="The configuration that this runtime class uses sets a root port for VFIO devices.",
    counter_check="grep -nE 'plug_vfio|pcie_root_port|default_maxmemory' in Kata's configuration of the runtime class: "
    "set",
    fix=Fix(
        steps=(
            "Kata 3: cold_plug_vfio or hot_plug_vfio = \"root-port\" in the configuration that the runtime class uses; "
            "before: hotplug_vfio_on_root_bus = true and pcie_root_port for as many devices as a pod takes",
            "the operator's kata-qemu-nvidia-gpu class brings a configuration of that kind: use it",
            "all functions of the IOMMU group bound to vfio-pci, and a guest kernel and image with the driver",
        ),
        risk="running sandboxes keep the old configuration",
        rollback="put the old configuration back",
    ),
    verify=("the pod starts, and lspci inside it shows the GPU",),
    sources=("Kata Containers: GPU passthrough, configuration.toml",),
)
NO_VGPU = Code(
    name="VirtualGpuNotMade",
    layer=Layer.L5,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the host's vGPU manager does not make the virtual GPU",
    meaning="The vGPU driver of the host is missing or of another branch, the board or the type is not for vGPU, or "
    "what is left of the GPU does not hold that type. QEMU then says only that the group cannot be opened.",
    known_by="The vGPU manager or its device manager logs an error, or the host has no mediated devices.",
    disproved_by="nvidia-smi vgpu on the host lists the virtual GPU, and another virtual machine runs with that type.",
    counter_check="on the host: nvidia-smi vgpu -c: the type can be created; lsmod | grep vgpu: loaded",
    fix=Fix(
        steps=(
            "journalctl -u nvidia-vgpu-mgr (or the vgpu-manager pod): the first error says why",
            "the host's vGPU driver (not the guest's) in a branch that serves this GPU; SR-IOV on (sriov-manage -e)",
            "one size of vGPU per GPU unless mixed sizes are switched on; free the GPU of other types",
            "Ada, Hopper and newer from vGPU 17 on: virtual functions in place of mediated devices, which older device "
            "managers do not know",
        ),
        risk="a change of the vGPU driver ends all virtual machines with GPUs on the node",
        rollback="put the old driver or type back",
    ),
    verify=("nvidia-smi vgpu lists the virtual GPU", *_STARTS),
    sources=("NVIDIA vGPU documentation: troubleshooting", "vgpu-device-manager"),
)
OTHER_KIND = Code(
    name="HostDeviceNotHandedOver",
    layer=Layer.L5,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the virtual machine's pod got no address of the device that it asked for",
    meaning="KubeVirt reads the device's address from a variable that the device plugin sets. It looks for a PCI "
    "device or for a mediated one, by the list in which the resource stands.",
    known_by="virt-launcher: PCI_RESOURCE_... or MDEV_PCI_RESOURCE_... is not set for the resource.",
    disproved_by="The variable is in the environment of the launcher's container compute.",
    counter_check="kubectl exec POD -n NAMESPACE -c compute -- env | grep PCI_RESOURCE: the device's address",
    fix=Fix(
        steps=(
            "list the resource under mediatedDevices (vGPU) or under pciHostDevices (a whole GPU, virtual functions), "
            "as the plugin offers it",
            "externalResourceProvider: true where the operator's sandbox device plugin offers it",
        ),
        risk="virtual machines that start meanwhile may get no GPU",
        rollback="put the old list back",
    ),
    verify=_STARTS,
    sources=("KubeVirt user guide: host devices", "kubevirt, pkg/virt-launcher/virtwrap/device/hostdevice"),
)

PARTITION = Code(
    name="FabricPartitionFails",
    layer=Layer.L1,
    cause_class="fabric",
    severity=Severity.Error,
    effect=Effect.FabricDown,
    title="Fabric Manager does not activate the partition of a virtual machine's GPUs",
    meaning="On machines with NVSwitches a virtual machine gets GPUs of one fabric partition, which Fabric Manager of "
    "the host (FABRIC_MODE 1 or 2) activates before it starts.",
    known_by="A return code of fmActivateFabricPartition, or of the library that calls it.",
    disproved_by="fmpm -l lists the partition as active with the machine's GPUs.",
    counter_check="on NODE: systemctl status nvidia-fabricmanager; fmpm -l: partitions with all their links",
    fix=Fix(
        steps=(
            "not ready or configured: FABRIC_MODE=1 or 2 in fabricmanager.cfg, restart Fabric Manager with no virtual "
            "machine running",
            "version mismatch: library libnvfm and daemon of one release",
            "in use, already active: deactivate the partition of the machine that ended (fmpm -d ID)",
            "miswired or insufficient trunks, missing switches: NVLinks of the board, see the log of Fabric Manager",
        ),
        risk="a restart of Fabric Manager ends what runs over NVLink",
        rollback="the former configuration",
    ),
    verify=("fmpm -l: active", *_STARTS),
    sources=("NVIDIA Fabric Manager user guide: shared NVSwitch, vGPU", "kubevirt-gpu-device-plugin, pkg/fabric"),
)


# The operator's device manager says so, which cuts virtual GPUs as the node's label asks for.
_OF_MANAGER = re.compile(
    r"for GPU at index|on GPU \(index=|vGPU devices? on (?:the GPU|parent device)|vgpu config|GPU operands|VGPUConfig"
    r"|all (?:parent|vGPU) devices|vgpu\.config\.state",
    re.IGNORECASE,
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("kata.no_port")):
        cause = "Kata has no port into which it can plug the device."
        yield NO_PORT.finding(cause, LIKELY, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("vgpu.not_made")):
        why = next((one for said in found if (one := value(said, "why"))), "")
        cause = f"The vGPU manager of the host cannot make the virtual GPU{': ' + why[:120] if why else ''}."
        is_operand = any(_OF_MANAGER.search(said.origin.text) for said in found)
        yield NO_VGPU.finding(
            cause, LIKELY, found, node=node, pod=pod, layer=Layer.L4 if is_operand else None
        )
    for node, pod, found in by_place(facts.said("fabric.partition_fails")):
        what, why = value(found[0], "what", "Fabric Manager"), value(found[0], "why")
        yield PARTITION.finding(f"{what}: {why.strip(' :') or 'an error'}.", LIKELY, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("kubevirt.no_address")):
        resource = value(found[0], "resource")
        cause = f"The plugin gave no {value(found[0], 'variable')} for {resource}."
        yield OTHER_KIND.finding(cause, LIKELY, found, node=node, pod=pod, resource=resource)


RULE = Rule((NO_PORT, NO_VGPU, OTHER_KIND, PARTITION), find)
