"""L0. AMD's kernel driver says that a GPU does not start, keeps erring memory, or is gone from the bus."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import NO_PCI, Origin, Pci, Said, pci_of, pci_words
from berth.evidence.facts import Facts

_SOURCES = ("Linux, drivers/gpu/drm/amd/amdgpu: amdgpu_device.c, amdgpu_ras.c, amdgpu_ras_eeprom.c",)
_VERIFY = (
    "rocm-smi or amd-smi list: as many GPUs as lspci -d 1002: has of class Display or Processing accelerators",
    "dmesg | grep amdgpu: none of these lines after the last start",
)
_STEPS = (
    "kubectl cordon NODE, then drain it; keep dmesg and the output of amd-smi bad-pages and amd-smi metric",
    "power the machine off and on; check the power cables, and the bridge between the cards",
    "again in the same slot: riser and board; again with the same card: replace it",
)

NOT_STARTING = Code(
    name="AmdGpuNotStarting",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="amdgpu cannot start a GPU",
    meaning="The GPU is on the bus, and a part of it does not answer while the driver sets it up. There is no "
    "/dev/dri file for it, and the plugin offers one fewer.",
    known_by="`Fatal error during GPU init`, `hw_init of IP block <…> failed`, `PSP create ring failed`.",
    disproved_by="A firmware file is missing, or the same kernel and firmware do not start any card of the type: "
    "then it is the driver.",
    counter_check="dmesg | grep 'firmware load for amdgpu': a file is missing; another kernel or firmware release: "
    "the card starts",
    fix=Fix(_STEPS, "the machine is off for minutes", "kubectl uncordon NODE"),
    verify=_VERIFY,
    sources=_SOURCES,
)
MEMORY = Code(
    name="AmdGpuMemoryUncorrectable",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceUnfit,
    title="a GPU of AMD has errors that it could not correct",
    meaning="A block of the GPU (umc is the memory) reports errors that ended the work on it. Its bad pages are "
    "retired; with too many of them the driver does not start the GPU any more.",
    known_by="`n uncorrectable hardware errors detected in … block`, or `RAS records:n exceed threshold:m`.",
    disproved_by="The count stays after a reset and a stress test: one retired page is no reason to replace a card.",
    counter_check="amd-smi metric --ecc-blocks: uncorrectable stays 0 after a reset and a stress test",
    fix=Fix(
        ("kubectl cordon NODE, then drain it", "amd-smi reset --gpureset, then a memory test on that GPU",
         "errors again, or more bad pages than the threshold: replace the card"),
        "ends what runs there",
        "kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)  # fmt: skip
LOST = Code(
    name="AmdGpuLost",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="a GPU of AMD is gone from the bus",
    meaning="The driver reads all ones from the device: power, slot, riser or card let it go.",
    known_by="`device lost from bus!` of amdgpu.",
    disproved_by="The device was taken out by somebody (hot unplug, a virtual machine that took it).",
    counter_check="lspci -s PCI: a revision other than ff; or somebody wrote to its `remove` file",
    fix=Fix(_STEPS, "the machine is off for minutes", "kubectl uncordon NODE"),
    verify=_VERIFY,
    sources=_SOURCES,
)

NO_ATOMICS = Code(
    name="PcieAtomicsMissing",
    layer=Layer.L0,
    cause_class="hw-firmware",
    severity=Severity.Error,
    effect=Effect.DeviceGone,
    title="the way to a GPU of AMD carries no atomic operations",
    meaning="ROCm's kernel driver (KFD) leaves a GPU out whose slot, switch or processor does not pass atomic "
    "operations of PCI Express on. Graphics work, and rocminfo does not list the device.",
    known_by="`skipped device …, PCI rejects atomics`, or `PCIE atomic ops is not supported`.",
    disproved_by="rocminfo lists the device: newer firmware of the GPU can do without.",
    counter_check="lspci -vv -s PCI | grep AtomicOps: the port above it has Routing+ and the GPU ReqEn+",
    fix=Fix(
        (
            "put the card into a slot that belongs to the processor itself, not to the chipset",
            "a virtual machine: the host's port has to be shown with atomics (QEMU 8.1 and newer), or bare metal",
            "newest firmware of machine and card",
        ),
        "the machine is off meanwhile",
        "put the card back",
    ),
    verify=("rocminfo: lists the device",),
    sources=("Linux, drivers/gpu/drm/amd/amdkfd/kfd_device.c", "ROCm documentation: PCIe atomics"),
)


def find(facts: Facts) -> Iterator[Answer]:
    yield from _each(NO_ATOMICS, facts.said("amd.atomics_missing"), LIKELY, "atomics do not reach it")
    lost = list(facts.said("amd.lost"))
    yield from _each(LOST, lost, LIKELY, "it is gone from the bus")
    yield from _each(MEMORY, facts.said("amd.memory_uncorrectable"), LIKELY, "errors that it could not correct")
    if not lost and not any(True for _ in facts.said("amd.firmware_missing")):
        yield from _each(NOT_STARTING, facts.said("amd.init_failed"), POSSIBLE, "it does not start")


def _each(code: Code, lines: list[Said] | Iterator[Said], sure: float, words: str) -> Iterator[Answer]:
    """One finding for each device that a line names, or one where none does."""
    by_device: dict[tuple[str, Pci], list[Origin]] = {}
    for said in lines:
        pci = pci_of(said.get("pci") or said.get("pci2") or said.get("pci3"))
        by_device.setdefault((said.node, pci), []).append(said.origin)
    named = {node for node, pci in by_device if pci != NO_PCI}
    for (node, pci), origins in by_device.items():
        if pci == NO_PCI and node in named:
            continue  # the lines that name the device say enough
        where = f"GPU {pci_words(pci)}" if pci != NO_PCI else "A GPU"
        yield code.finding(f"{where}: {words}.", sure, origins, pci=pci, node=node)


RULE = Rule((NOT_STARTING, MEMORY, LOST, NO_ATOMICS), find)
