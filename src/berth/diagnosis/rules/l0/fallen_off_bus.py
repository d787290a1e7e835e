"""L0. A GPU does not answer on the bus any more, whether the driver numbers that as an Xid or not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l0 import kernel_log
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.diagnosis.xid.catalogue import xid
from berth.diagnosis.xid.seen import Event, Family
from berth.diagnosis.xid.story import Story, story_of
from berth.diagnosis.xid.telling import account, quotations
from berth.evidence.fact import NO_PCI, Origin, Pci, pci_of, pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

FELL_OFF_BUS = Code(
    name="GpuFellOffBus",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="a GPU has fallen off the bus",
    meaning="The device stopped to answer on PCI Express. What ran on it is lost, NVML and new containers may fail "
    "for every GPU of the node, and nothing in Kubernetes mends it.",
    known_by="The driver says so in the kernel log: as Xid 79, as a line of its own, or over three lines without an "
    "Xid where the loss is found while the driver probes the device. nvidia-smi and NVML say that the GPU is lost.",
    disproved_by="The address is listed by `nvidia-smi -L` and `lspci` now, and the node has not been restarted since.",
    counter_check="lspci -s PCI; nvidia-smi -L: the device answers, with a revision other than ff",
    fix=Fix(
        steps=(
            "kubectl cordon NODE, then drain it; keep the kernel log and `nvidia-bug-report.sh` first",
            "restart the machine; where that does not help, power it off and on (a reset of the GPU mostly fails)",
            "look at temperature, power cables, riser and seating; bring BIOS and firmware up to date",
            "gone again: take the card out of service and replace it",
        ),
        risk="a restart ends everything on the node",
        rollback="kubectl uncordon NODE",
    ),
    verify=(
        "lspci -d 10de: | wc -l and nvidia-smi -L | wc -l: the same number",
        "dcgmi diag -r 3: pass; no new Xid 79 under load",
    ),
    sources=("NVIDIA Xid catalogue, 79 (RESTART_BM)", "open-gpu-kernel-modules, kernel-open/nvidia/nv-pci.c"),
)
NO_HANDLE = Code(
    name="GpuHandleUnavailable",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="the driver has a GPU that it cannot reach",
    meaning="NVML lists the device and gets no handle for it. Tools that ask for all GPUs fail as a whole, and "
    "with them the device plugin and the start of containers.",
    known_by="nvidia-smi cannot determine the device handle of an address, or prints ERR! in the place of its figures.",
    disproved_by="`nvidia-smi -i PCI.0` answers; or the kernel log shows that the driver is still starting the GPU.",
    counter_check="dmesg | grep -e NVRM -e Xid; nvidia-smi -i PCI.0 -q: answers",
    fix=Fix(
        steps=(
            "dmesg -T | grep -e NVRM -e AER: what the driver says of PCI decides (Xid 79, RmInitAdapter, power cables)",
            "kubectl cordon NODE, then drain it",
            "restart the machine; gone again: look at power, heat and seating, and replace the card",
        ),
        risk="a restart ends everything on the node",
        rollback="kubectl uncordon NODE",
    ),
    verify=("nvidia-smi -L: lists every device", "nvidia-smi: no ERR! in any column"),
    sources=("nvidia-smi and NVML: what they print for a device without a handle",),
)
ONE_READING = Code(
    name="SensorReadingFailed",
    layer=Layer.L0,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.BlindMonitoring,
    title="one sensor of a GPU was not read; the GPU answers",
    meaning="ERR! stands in one column, and temperature, state and memory beside it are read: the device is on the "
    "bus. A power sensor or a fan fails to answer now and then. A lost GPU has ERR! in all columns, or no row.",
    known_by="ERR! or Unknown Error in one of power, fan or utilisation, with values in the columns beside it.",
    disproved_by="ERR! spreads to other columns or stays for hours, or an Xid stands in the kernel log.",
    counter_check="nvidia-smi, three times a minute apart: the value comes back; dmesg | grep Xid: nothing",
    fix=Fix(
        steps=(
            "nothing to mend while the value comes back",
            "it stays: reset the GPU when nothing runs on it; a fan that is never read is a part to replace",
        ),
        risk="a reset ends what runs on the GPU",
        rollback="nothing to undo",
    ),
    verify=("nvidia-smi: a number in that column",),
    sources=("nvidia-smi and NVML: what they print where a sensor gives no value",),
    is_trap=True,
)

_SENSORS = frozenset(("power_draw_w", "power_limit_w", "gpu_percent"))
_ANSWERS = re.compile(r"\d+C +P\d+ ")  # temperature and state of a row are read
_HEAT = frozenset(("hw_thermal_slowdown", "sw_thermal_slowdown"))
_SUSPECTS = (
    ("heat, which is told beside it", ("host.gpu_hot",)),
    ("its power, which is told beside it", ("host.power_supply", "kernel.power_cable")),
    (
        "the link (slot, riser, retimer, cable), of which PCI Express errors tell beside it",
        (
            "kernel.aer_uncorrected", "kernel.dpc", "kernel.slot_down", "kernel.firmware_pcie_error",
            "kernel.aer_corrected",
        ),
    ),
    ("power management, as the device did not wake up before it", ("kernel.power_state",)),
)


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for each device; a line that names none stands for a device that nobody named."""
    story = story_of(facts)
    by_device: dict[tuple[str, Pci], list[Origin]] = {}
    for said in facts.said("kernel.off_bus_at_probe", "kernel.off_bus", "nvidia_smi.gpu_lost", "kernel.not_attached"):
        if "err_msg=" not in said.origin.text:  # a label of a gauge that keeps the last code for ever
            by_device.setdefault((said.node, pci_of(said.get("pci"))), []).append(said.origin)
    causes = story.by_device(Family.Lost)
    for key in causes:
        by_device.setdefault(key, [])
    named = {node for node, pci in by_device if pci != NO_PCI}
    for (node, pci), origins in by_device.items():
        if pci != NO_PCI or node not in named:
            yield _lost(facts, story, node, pci, causes.get((node, pci), []), origins)
    if not by_device:
        yield from _without_handle(facts)


def _lost(facts: Facts, story: Story, node: str, pci: Pci, causes: list[Event], said: list[Origin]) -> Answer:
    suspect, beside = _suspect(facts)
    where = f"GPU {pci_words(pci)}" if pci != NO_PCI else "a GPU"
    own = account(story, causes) if causes else f"No Xid tells of it; it is what {xid(79).short} stands for."
    return FELL_OFF_BUS.finding(
        f"The driver lost {where} on the bus. {own} {suspect}",
        ESTABLISHED if said or not all(one.is_named for one in causes) else LIKELY,
        [*quotations(story, causes), *said[:2], *beside[:2]],
        pci=pci,
        node=node,
    )


def _suspect(facts: Facts) -> tuple[str, list[Origin]]:
    """What stands beside the loss and makes one of its usual causes likelier."""
    for words, messages in _SUSPECTS:
        beside = [said.origin for said in facts.said(*messages)]
        if beside:
            return f"First suspect: {words}.", beside
    hot = [one.quote("slowed_by") for one in facts.of(DeviceSeen) if {*(one.slowed_by or ())} & _HEAT]
    if hot:
        return f"First suspect: {_SUSPECTS[0][0]}.", hot
    return "Usual causes: heat, power, seating or riser, old system firmware.", []


def _without_handle(facts: Facts) -> Iterator[Answer]:
    by_device: dict[Pci, list[Origin]] = {}
    one_reading: dict[Pci, list[Origin]] = {}
    for said in facts.said("nvidia_smi.no_handle"):
        by_device.setdefault(pci_of(said.get("pci")), []).append(said.origin)
    for device in facts.of(DeviceSeen):
        if any("ERR!" in words or "Unknown Error" in words for words in device.unreadable.values()):
            found = one_reading if _answers(device) else by_device
            found.setdefault(device.pci, []).append(device.quote(*device.unreadable))
    if not by_device:
        for said in facts.said("nvidia_smi.err_field"):
            if said.origin.text.count("ERR!") > 1 or not _ANSWERS.search(said.origin.text):
                by_device.setdefault(NO_PCI, []).append(said.origin)
            elif not one_reading:
                one_reading[NO_PCI] = [said.origin]
    for pci, said_of in () if by_device else one_reading.items():
        where = f"GPU {pci_words(pci)}" if pci != NO_PCI else "A GPU"
        yield ONE_READING.finding(
            f"{where} answers, and one of its sensors did not at that moment.", LIKELY, said_of, pci=pci
        )
    for pci, said_of in by_device.items():
        where = f"GPU {pci_words(pci)}" if pci != NO_PCI else "a GPU"
        yield NO_HANDLE.finding(
            f"nvidia-smi gets no answer for {where}: usually it fell off the bus or failed to start; the kernel log "
            "says which.",
            LIKELY,
            said_of,
            pci=pci,
        )
    if by_device:
        yield from kernel_log.wanted(facts, NO_HANDLE)


def _answers(device: DeviceSeen) -> bool:
    """Everything but one sensor is read."""
    alone = len(device.unreadable) == 1 and not {*device.unreadable} - _SENSORS
    return alone and device.temperature_c is not None and (bool(device.performance_state) or device.form != "table")


RULE = Rule((FELL_OFF_BUS, NO_HANDLE, ONE_READING), find)
