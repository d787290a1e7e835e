"""L0. The driver finds a GPU and cannot start it: probe, adapter, its own firmware, its information memory."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.diagnosis.xid.seen import Family
from berth.diagnosis.xid.story import story_of
from berth.evidence.fact import NO_PCI, Origin, Pci, Said, pci_of, pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

_SOURCES = ("open-gpu-kernel-modules, kernel-open/nvidia/nv.c and nv-pci.c, kernel/gpu/gsp", "NVIDIA developer forum")
_VERIFY = (
    "dmesg | grep -c -e RmInitAdapter -e 'probe routine failed': does not grow after a restart",
    "nvidia-smi -L | wc -l: as many as lspci -d 10de: | grep -c -e 3D -e VGA",
)
_REPLACE = (
    "kubectl cordon NODE, then drain it; keep nvidia-bug-report.sh",
    "power the machine off and on: a warm restart may leave the GPU as it is",
    "again on the same slot: reseat card, riser and power; again on the same card: replace it",
)

PROBE_FAILED = Code(
    name="GpuProbeFailed",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="the driver could not take over a GPU that is on the bus",
    meaning="The device is listed by lspci and its probe failed, so NVML never sees it. No Xid is printed: monitors "
    "that wait for one are silent, and the node offers fewer GPUs than it has.",
    known_by="`probe of … failed with error` or `The NVIDIA probe routine failed for n device(s)` in the kernel log.",
    disproved_by="The driver says why it does not want the device: not supported, other kernel module flavour, "
    "nouveau.",
    counter_check="dmesg | grep -A4 'NVRM: The NVIDIA GPU': `not supported`, `requires use of` or nouveau is the "
    "reason",
    fix=Fix(_REPLACE, "the machine is off for minutes", "kubectl uncordon NODE"),
    verify=_VERIFY,
    sources=_SOURCES,
)
INIT_FAILED = Code(
    name="GpuInitFailed",
    layer=Layer.L0,
    cause_class="hw-firmware",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="the driver cannot start a GPU",
    meaning="RmInitAdapter failed: the device is there and its start ended in an error. nvidia-smi says that no "
    "devices were found, or leaves this one out.",
    known_by="`RmInitAdapter failed!`, or the VBIOS cannot be copied, and no sign of a driver of another version or "
    "without its firmware file.",
    disproved_by="The driver's versions do not fit one another, or its GSP firmware file is missing: then it is L1.",
    counter_check="dmesg | grep -e 'API mismatch' -e 'firmware load' -e 'already bound': a line (then it is L1)",
    fix=Fix(
        steps=(
            "dmesg | grep -B5 RmInitAdapter: what stands before it decides (power cables, BAR, GSP, VBIOS)",
            "all GPUs: firmware of the machine (Above 4G Decoding, SR-IOV, IOMMU), in a VM the passthrough settings "
            "of the host (MMIO window, whole IOMMU group, no driver on the host)",
            "one GPU of several: power the machine off and on, reseat, replace",
        ),
        risk="the node is out meanwhile",
        rollback="kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
FIRMWARE_DEAD = Code(
    name="GpuFirmwareNotStarting",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="a GPU's own start-up does not finish",
    meaning="The firmware on the board (GFW, VBIOS) did not come up after power-on, so the driver has nothing to talk "
    "to.",
    known_by="The driver waits in vain for GFW_BOOT, or cannot read the VBIOS.",
    disproved_by="After a power cycle the GPU starts, and stays.",
    counter_check="after power off and on: nvidia-smi -i PCI.0: answers",
    fix=Fix(_REPLACE, "the machine is off for minutes", "kubectl uncordon NODE"),
    verify=_VERIFY,
    sources=_SOURCES,
)
LEFT_OVER = Code(
    name="GpuStateLeftOver",
    layer=Layer.L0,
    cause_class="hw-firmware",
    severity=Severity.Error,
    effect=Effect.DeviceGone,
    title="a GPU was not reset before the driver came back",
    meaning="The protected memory region (WPR2) of an earlier start is still up, so GSP cannot be started. Usual "
    "after a crash, a passthrough without reset, or a driver change without one.",
    known_by="`unexpected WPR2 already up` in the kernel log.",
    disproved_by="It comes again right after a power cycle.",
    counter_check="dmesg | grep WPR2 right after power off and on: it comes again",
    fix=Fix(
        ("kubectl cordon NODE, drain it", "reset the GPU (nvidia-smi --gpu-reset, or its bus), or restart the machine"),
        "ends what runs there",
        "kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
INFOROM = Code(
    name="InforomCorrupted",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.DeviceUnfit,
    title="the information memory of a GPU is damaged",
    meaning="The board cannot say for sure what it is, and does not keep its record of memory repairs. It works, and "
    "is not to be trusted with them.",
    known_by="nvidia-smi warns that the infoROM is corrupted.",
    disproved_by="The warning does not come again after a power cycle.",
    counter_check="nvidia-smi -q -i PCI.0: no warning, Inforom Version has values",
    fix=Fix(
        ("kubectl cordon NODE at the next chance; power off and on",
         "still there: firmware update of the board by the vendor's tool, or replacement"),
        "the machine is off for minutes",
        "kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)  # fmt: skip

# What explains a failed start a layer higher; those rules answer then.
_EXPLAINED = (
    "driver.api_mismatch", "driver.gsp_firmware_missing", "driver.gpu_unsupported", "driver.wrong_flavour",
    "driver.nouveau", "kernel.power_cable",
)  # fmt: skip
_BUS_ERRORS = ("host.sel_pcie", "kernel.aer_uncorrected", "kernel.dpc", "kernel.slot_down", "kernel.surprise_down")
_BY_HARDWARE = ("kernel.bar_invalid", "kernel.off_bus_at_probe", "kernel.off_bus", "nvidia_smi.gpu_lost")


def find(facts: Facts) -> Iterator[Answer]:
    """The most telling sentence of each device."""
    yield from _each(facts, INFOROM, "nvidia_smi.inforom", LIKELY, "Its infoROM is corrupted, nvidia-smi says.")
    lost = story_of(facts).roots(Family.Lost)
    is_short = any(True for _ in facts.said("host.gpus_missing", "host.gpus_missing_told"))
    explained = [name for name in _EXPLAINED if not (is_short and name == "driver.gpu_unsupported")]
    if lost or any(True for _ in facts.said(*explained, *_BY_HARDWARE)) or _is_release(facts):
        return
    told = False
    for code, message, sure, words in (
        (FIRMWARE_DEAD, ("kernel.gfw_boot", "kernel.vbios"), LIKELY, "The firmware on the board does not come up."),
        (INIT_FAILED, ("kernel.vbios_not_copied",), LIKELY, "Its VBIOS cannot be read: the machine's firmware or the "
         "host of a virtual machine does not hand it out, or the card is dead."),
        (LEFT_OVER, ("kernel.wpr2",), LIKELY, "State of an earlier start is still in the GPU."),
    ):
        for answer in _each(facts, code, message, sure, words):
            told = True
            yield answer
    if not told:
        yield from _init(facts)
    # Without an interrupt no card starts: that is the machine's firmware or the kernel, not the card.
    if not told and not any("IRQ" in said.origin.text for said in facts.said("kernel.gsp_boot")):
        yield from _each(
            facts,
            PROBE_FAILED,
            ("kernel.probe_failed", "kernel.probe_routine_failed"),
            LIKELY,
            "Its probe failed and nothing says that the driver does not want it: a dead card looks like this.",
        )


def _is_release(facts: Facts) -> bool:
    """Somebody names a release with which the same card starts: then it is the driver."""
    return any(value(said, "good") for said in facts.said("driver.regression_told", "driver.release_works"))


def _init(facts: Facts) -> Iterator[Answer]:
    """One finding for all devices that fail; one of several that fails is rather the card."""
    lines = list(facts.said("kernel.adapter_init")) or list(facts.said("kernel.gsp_boot"))
    if not lines:
        return
    failing = {pci_of(said.get("pci")) for said in lines} - {NO_PCI}
    serving = {device.pci for device in facts.of(DeviceSeen) if device.pci != NO_PCI} - failing
    status = next((said.get("status") for said in lines if said.get("status")), "")
    minors = [int(said.get("minor")) for said in lines if said.get("minor")]
    is_short = any(True for _ in facts.said("host.gpus_missing", "host.gpus_missing_told"))
    is_one_of_many = len(failing) <= 1 and (bool(serving) or is_short or max(minors, default=0) > 0)
    bus = list(facts.said(*_BUS_ERRORS))
    is_card = is_one_of_many or bool(bus)
    where = pci_words(next(iter(failing))) if len(failing) == 1 else ""
    yield INIT_FAILED.finding(
        f"The driver cannot start {f'GPU {where}' if where else f'{len(failing)} GPUs' if failing else 'a GPU'}"
        + (f" (status {status})" if status else "")
        + ("; others of the machine work, so it is rather the card." if is_one_of_many else
           "; errors of the bus stand beside it, so it is rather slot, riser or card." if bus else "; nothing "
           "says that the driver's parts do not fit, so firmware of machine or card, or passthrough, comes first.")
        + (f" Minor numbers: {', '.join(map(str, sorted(set(minors))))}." if minors else ""),
        LIKELY if is_one_of_many else POSSIBLE,
        [*lines, *facts.said("kernel.gsp_boot"), *bus[:2]],
        pci=next(iter(failing)) if len(failing) == 1 else NO_PCI,
        cause_class="hw-fault" if is_card else None,
    )  # fmt: skip


def _each(facts: Facts, code: Code, messages: str | tuple[str, ...], sure: float, words: str) -> Iterator[Answer]:
    """One finding for each device, or one where no line names any."""
    by_device: dict[tuple[str, Pci], list[Origin]] = {}
    count = ""
    for said in facts.said(*((messages,) if isinstance(messages, str) else messages)):
        by_device.setdefault((said.node, _pci(said)), []).append(said.origin)
        count = said.get("count") or count
    failing = {pci_of(said.get("pci")) for said in facts.said("kernel.adapter_init")} - {NO_PCI}
    if len(failing) == 1 and code is not INFOROM and all(pci == NO_PCI for _, pci in by_device):
        pci = failing.pop()  # the lines around it name the device
        by_device = {(node, pci): origins for (node, _), origins in by_device.items()}
    named = {node for node, pci in by_device if pci != NO_PCI}
    unnamed = {node: origins for (node, pci), origins in by_device.items() if pci == NO_PCI}
    for (node, pci), origins in by_device.items():
        if pci == NO_PCI and node in named:
            continue
        where = f"GPU {pci_words(pci)}: " if pci != NO_PCI else f"{count} device(s): " if count else ""
        yield code.finding(
            f"{where}{words}",
            LIKELY if code is INFOROM else sure,  # the memory that holds it may be at fault, too
            [*origins, *(unnamed.get(node, []) if pci != NO_PCI else [])],
            pci=pci,
            node=node,
        )


def _pci(said: Said) -> Pci:
    return pci_of(said.get("pci") or said.get("pci2"))


RULE = Rule((PROBE_FAILED, INIT_FAILED, FIRMWARE_DEAD, LEFT_OVER, INFOROM), find)
