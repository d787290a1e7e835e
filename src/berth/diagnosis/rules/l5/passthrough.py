"""L5. A device cannot be handed to a virtual machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, value
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.fact import pci_of
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import ObjectSeen
from berth.evidence.formats.machine_facts import PciSeen

_KERNEL = ("Linux documentation: VFIO", "QEMU, hw/vfio")
_STARTS = ("the virtual machine starts and lspci inside it shows the GPU",)

NOT_VIABLE = Code(
    name="IommuGroupNotViable",
    layer=Layer.L5,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="other functions of the GPU's IOMMU group are not bound to vfio",
    meaning="A group is handed over whole. The GPU's audio, USB or a neighbour behind the same bridge is still with "
    "its own driver.",
    known_by="QEMU: group is not viable.",
    disproved_by="Every device of the group except bridges is bound to vfio-pci.",
    counter_check="ls /sys/kernel/iommu_groups/*/devices; lspci -nnk -s each of them: Kernel driver in use: vfio-pci",
    fix=Fix(
        steps=(
            "bind all functions of the group to vfio-pci: vfio-pci.ids= with the ids of GPU, audio and USB, before "
            "their own drivers load",
            "devices that do not belong to the GPU share its group: another slot, or a slot with ACS",
        ),
        risk="devices of the group are gone for the host",
        rollback="take the ids out and restart",
    ),
    verify=("all functions of the group but bridges: driver vfio-pci", *_STARTS),
    sources=_KERNEL,
)
NO_IOMMU = Code(
    name="IommuOff",
    layer=Layer.L5,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the IOMMU is off, so no device can be handed over",
    meaning="Without it devices have no IOMMU group, and vfio refuses them.",
    known_by="vfio finds no iommu group, or libvirt says that the host does not support passthrough.",
    disproved_by="/sys/kernel/iommu_groups is not empty.",
    counter_check="ls /sys/kernel/iommu_groups | wc -l: above 0",
    fix=Fix(
        steps=(
            "VT-d or AMD-Vi on in the BIOS; intel_iommu=on iommu=pt (or amd_iommu) on the kernel's command line; "
            "restart",
        ),
        risk="a restart of the machine",
        rollback="take the setting out again",
    ),
    verify=("dmesg | grep -e DMAR -e IOMMU: enabled", *_STARTS),
    sources=_KERNEL,
)
UNUSABLE = Code(
    name="PassthroughDeviceUnusable",
    layer=Layer.L5,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="vfio cannot open or map the device",
    meaning="It is still with the NVIDIA driver, its group's file is not in the container, locked memory is too "
    "small, or it does "
    "not come out of power saving.",
    known_by="An error of vfio or QEMU that names the device or its group.",
    disproved_by="The device is bound to vfio-pci and its group's file is in the launcher's container.",
    counter_check="lspci -nnk -s PCI: Kernel driver in use: vfio-pci; ls /dev/vfio",
    fix=Fix(
        steps=(
            "a region that cannot be reserved: the boot console holds it (kernel parameter "
            "initcall_blacklist=sysfb_init, or video=efifb:off before 5.15)",
            "bind the device to vfio-pci (operator: workload label vm-passthrough on the node)",
            "locked memory of the launcher above the guest's memory",
            "stuck in D3: pcie_aspm=off, or a reset of the machine",
        ),
        risk="containers lose the GPU when it is bound to vfio",
        rollback="bind it to its driver again",
    ),
    verify=_STARTS,
    sources=_KERNEL,
)
NOT_PERMITTED = Code(
    name="HostDeviceNotPermitted",
    layer=Layer.L5,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="KubeVirt does not permit the device",
    meaning="Devices for virtual machines must be listed in KubeVirt's configuration under the resource's name.",
    known_by="The virtual machine is refused: the device is not permitted (permittedHostDevices; before 0.36 the map "
    "kubevirt-host-device-plugin-config), or the feature gate for GPUs or host devices is off.",
    disproved_by="permittedHostDevices lists the resource's name.",
    counter_check="kubectl get kubevirt -A -o yaml | grep -A12 permittedHostDevices: the name is there",
    fix=Fix(
        steps=(
            "add pciHostDevices or mediatedDevices with resourceName and externalResourceProvider: true to "
            "permittedHostDevices, under the name that the device plugin offers; feature gates GPU and HostDevices "
            "where the version still has them",
        ),
        risk="virtual machines may then take the device",
        rollback="take the entry out again",
    ),
    verify=_STARTS,
    sources=("KubeVirt user guide: host devices", "GPU Operator documentation: KubeVirt"),
)

NO_KVM = Code(
    name="VirtualisationOff",
    layer=Layer.L5,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="no node offers virtualisation for the virtual machine",
    meaning="KubeVirt counts /dev/kvm as a device of the node. Without it virtual machines wait.",
    known_by="devices.kubevirt.io/kvm is insufficient, or /dev/kvm is missing.",
    disproved_by="Nodes offer devices.kubevirt.io/kvm above 0.",
    counter_check="ls -l /dev/kvm on the node: present",
    fix=Fix(
        steps=("VT-x or AMD-V on in the BIOS, nested virtualisation on in a cloud; modprobe kvm_intel or kvm_amd",),
        risk="a restart of the machine",
        rollback="nothing to undo",
    ),
    verify=_STARTS,
    sources=("KubeVirt user guide: requirements",),
)

NO_FILE = Code(
    name="IommufdDeviceMissing",
    layer=Layer.L5,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the device has no file of its own for IOMMUFD",
    meaning="Newer virtual machine managers open a device by itself (/dev/vfio/devices/vfioN, /dev/iommu) and not by "
    "its group. The kernel makes that file only with CONFIG_VFIO_DEVICE_CDEV (6.6 or newer) for a device that is "
    "bound to vfio-pci.",
    known_by="/dev/vfio/devices/vfioN or /dev/iommu is missing where the container or QEMU opens it.",
    disproved_by="The file is there on the node.",
    counter_check="on NODE: ls -l /dev/iommu /dev/vfio/devices: a file of the device",
    fix=Fix(
        steps=(
            "lspci -nnk -s PCI: bind the device to vfio-pci first; modprobe iommufd",
            "a kernel without that option: another kernel, or the older way by groups (KubeVirt before 1.9, or its "
            "setting for IOMMUFD off)",
            "file on the node and not in the pod: a device plugin or DRA driver that names the device's file, not "
            "only the group's",
            "after a restart of the node numbers change: restart the plugin so that it looks again",
        ),
        risk="a new kernel needs the node drained",
        rollback="the former kernel or setting",
    ),
    verify=("ls /dev/vfio/devices on NODE: one file for each device", *_STARTS),
    sources=("Linux documentation: VFIO, device cdev; IOMMUFD", "QEMU, hw/vfio/iommufd.c", "KubeVirt: IOMMUFD"),
)

# Plugins for virtual machines name a resource for the card: nvidia.com/TU104GL_Tesla_T4.
_CARD = re.compile(r"Insufficient \[?nvidia\.com/[A-Z]{2}\d{2,3}[A-Z]*_\w+")
_SURER = 0.65  # than that all are taken: somebody showed the list, not what runs
_OF_HOST = ("nvidia", "nouveau", "nvidiafb", "nova_core")


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("vfio.group_not_viable")):
        group = next((one for said in found if (one := said.get("group"))), "")
        pci = pci_of(next((one for said in found if (one := said.get("pci"))), ""))
        yield NOT_VIABLE.finding(
            f"IOMMU group {group or 'of the device'} holds devices that are not bound to vfio.",
            ESTABLISHED,
            found,
            node=node,
            pod=pod,
            pci=pci,
        )
    yield from heard(facts, NO_IOMMU, ("vfio.no_iommu",), "The machine runs without an IOMMU.", LIKELY)
    missing = list(facts.said("vfio.file_missing"))
    told = {said.origin.text for said in missing}
    for node, pod, found in by_place(missing):
        path = value(found[0], "path", "the device's file")
        yield NO_FILE.finding(f"{path} is not there.", LIKELY, found, node=node, pod=pod)
    others = (said for said in facts.said("vfio.unusable", "vfio.held") if said.origin.text not in told)
    for node, pod, found in by_place(others):
        driver = value(found[0], "driver")
        yield UNUSABLE.finding(
            f"vfio cannot use the device{': it is with driver ' + driver if driver else ''}.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    for node, pod, found in by_place(facts.said("vfio.not_switched")):
        cause = (
            "Processes still have the GPU open, so it cannot change its driver."
            if value(found[0], "busy")
            else "The GPU has virtual functions (vGPU): they must go first."
            if value(found[0], "functions")
            else "The module vfio-pci is not loaded."
            if value(found[0], "module")
            else "The GPU did not change its driver."
        )
        yield UNUSABLE.finding(cause, LIKELY, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("vfio.memory_not_locked")):
        refused = value(found[0], "refused")
        yield UNUSABLE.finding(
            "The launcher may not raise the limit of locked memory for QEMU: it was set for less than the guest has, "
            "or CAP_SYS_RESOURCE is missing."
            if refused
            else "The guest's memory cannot be pinned: the limit of locked memory is below it.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    if wanted := list(facts.said("vfio.wanted")):
        held = [one for one in facts.of(PciSeen) if one.is_gpu and one.driver in _OF_HOST]
        for node, seen in by_node(held).items():
            yield UNUSABLE.finding(
                f"vfio-pci is to take the device, and {seen[0].driver} has it: it was loaded first (initramfs, order "
                "of modules), or the id is another.",
                LIKELY,
                [*wanted, *seen],
                node=node,
                pci=seen[0].pci,
            )
    yield from heard(facts, NO_KVM, ("vfio.no_kvm",), "No node has /dev/kvm for the virtual machine.", LIKELY)
    for node, pod, found in by_place(facts.said("vfio.not_permitted")):
        resource = value(found[0], "resource")
        cause = f"{resource or 'The device'} is not among the devices that KubeVirt's configuration permits."
        yield NOT_PERMITTED.finding(cause, ESTABLISHED, found, node=node, pod=pod, resource=resource)
    for seen_object in facts.of(ObjectSeen):
        spec = seen_object.body.get("spec") if seen_object.kind == "KubeVirt" else None
        if isinstance(spec, Mapping) and "permittedHostDevices" in spec:
            yield NOT_PERMITTED.finding(
                f"KubeVirt {seen_object.namespace}/{seen_object.name} lists its devices under spec, where nobody reads "
                "them: they belong under spec.configuration.",
                LIKELY,
                [seen_object],
            )
    if permits := list(facts.said("vfio.lists_permitted")):
        short = facts.said("scheduler.insufficient", "scheduler.unplaced")
        for unmet in by_node(said for said in short if _CARD.search(said.origin.text)).values():
            yield NOT_PERMITTED.finding(
                "No node offers the card that the virtual machine asks for, beside a list of permitted devices: the "
                "list must stand under spec.configuration of the KubeVirt object, with this resource's name and the "
                "card's ids.",
                _SURER,
                [*unmet, *permits],
            )


RULE = Rule((NOT_VIABLE, NO_IOMMU, UNUSABLE, NO_FILE, NOT_PERMITTED, NO_KVM), find)
