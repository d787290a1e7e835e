"""L0. PCI Express itself reports errors of a GPU or its port, or the device cannot be woken."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.diagnosis.xid.seen import Family
from berth.diagnosis.xid.story import story_of
from berth.evidence.fact import NO_PCI, Pci, Said, pci_of, pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.dcgm_metrics import Sample
from berth.evidence.formats.machine_facts import PciSeen
from berth.evidence.formats.smi_facts import DeviceSeen

_SOURCES = ("Linux, drivers/pci/pcie/aer.c, dpc.c and pciehp", "PCI Express, Advanced Error Reporting")
_STEPS = (
    "kubectl cordon NODE, then drain it",
    "reseat card and riser, clean the contacts, look at retimers and cables; update firmware of machine and card",
    "to try: one generation slower in the firmware's setup; kernel parameter pcie_aspm=off",
    "the same slot with another card, the same card in another slot: replace what the errors follow",
)
_VERIFY = (
    "dmesg | grep -c 'AER\\|PCIe Bus Error': does not grow under load",
    "nvidia-smi -q -i PCI.0 | grep -i replay: 0, and stays",
)

UNCORRECTABLE = Code(
    name="PcieUncorrectable",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="PCI Express reports errors that it cannot correct",
    meaning="Transfers between the machine and the device were lost or wrong. NVIDIA's driver does not recover from "
    "it: what uses the GPU fails, and often the GPU is gone next (Xid 79).",
    known_by="An uncorrected error of AER, a containment event of DPC, or a slot that lost its link, of a GPU or a "
    "port.",
    disproved_by="The port leads to another device (network card, disk).",
    counter_check="lspci -t: another device (network card, disk) is below the port that reports; lspci -s PCI: the "
    "GPU answers",
    fix=Fix(_STEPS, "the machine is off meanwhile", "kubectl uncordon NODE"),
    verify=_VERIFY,
    sources=_SOURCES,
)
CORRECTED = Code(
    name="PcieErrorsCorrected",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Warning,
    effect=Effect.LinkSlow,
    title="PCI Express of a GPU corrects errors all the time",
    meaning="Nothing is lost yet: packets are sent again. The link is marginal, slower than it should be, and may "
    "fail under load.",
    known_by="Many corrected errors of AER of a GPU or of its port, or replays that grow.",
    disproved_by="A handful after start, and none under load.",
    counter_check="nvidia-smi -q -i PCI.0 | grep -i replay, twice under load: the same number",
    fix=Fix(_STEPS, "the machine is off meanwhile", "kubectl uncordon NODE"),
    verify=_VERIFY,
    sources=_SOURCES,
)
ASLEEP = Code(
    name="GpuNotWaking",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="a GPU does not come back from a power state or a reset",
    meaning="The device does not answer after it was to wake up or was reset. Its configuration space reads all ones.",
    known_by="The kernel cannot change the power state of a GPU, or it is not ready long after a reset.",
    disproved_by="It answers after a restart, and runtime power management is off.",
    counter_check="lspci -s PCI: a revision other than ff; cat /sys/bus/pci/devices/PCI.0/power/control: on",
    fix=Fix(
        (
            "power the machine off and on: a warm restart may not be enough",
            "no runtime power management: NVreg_DynamicPowerManagement=0, power/control = on, pcie_aspm=off",
            "again: power supply, riser, firmware; replace the card",
        ),
        "the machine is off meanwhile",
        "kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)

SLOWER = Code(
    name="LinkHoldsOnlySlower",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.DeviceGone,
    title="the way to a GPU carries only a slower generation of PCI Express",
    meaning="At full speed the device drops off or its firmware does not start, at a slower one it holds: riser, "
    "cable, retimer, dock or slot do not carry the signal.",
    known_by="Somebody found that a slower PCI Express generation ends the failures.",
    disproved_by="It fails at the slower generation, too.",
    counter_check="lspci -vv -s PCI | grep LnkSta: the slower speed; dmesg | grep AER: lines since then all the same",
    fix=Fix(
        (
            "keep the slower generation in the firmware's setup until the part is found",
            "a shorter or better riser, cable or dock; another slot; reseat the card",
            "newest firmware of machine, retimer or dock",
        ),
        "copies to and from the GPU take longer meanwhile",
        "Auto in the firmware's setup",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)

MANY = 10  # corrected errors
MANY_REPLAYS = 1_000
_REPLAYS = ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL")
_GPU_DRIVERS = frozenset(("nvidia", "nouveau", "vfio-pci", "nvidia-gpu"))
_PORTS = frozenset(("pcieport", "pci", ""))


def find(facts: Facts) -> Iterator[Answer]:
    """Of GPUs, and of ports where nothing says that they lead elsewhere. A GPU that is gone is told elsewhere."""
    if helped := list(facts.said("host.slower_link_helps")):
        yield SLOWER.finding("It holds at a slower generation of PCI Express.", LIKELY, helped)
    story = story_of(facts)
    gpus = {device.pci for device in facts.of(DeviceSeen)} | {one.pci for one in story.events}
    gpus |= {device.pci for device in facts.of(PciSeen) if device.is_gpu}
    is_lost = bool(story.roots(Family.Lost)) or any(True for _ in facts.said("kernel.off_bus", "nvidia_smi.gpu_lost"))
    asleep: dict[Pci, list[Said]] = {}
    for said in facts.said("kernel.power_state"):
        pci = pci_of(said.get("pci"))
        if not is_lost and (pci in gpus or said.get("driver") in _GPU_DRIVERS):
            asleep.setdefault(pci, []).append(said)
    for pci, lines in asleep.items():
        # From D3cold the machine's firmware has to switch the power on again: mostly it is that.
        is_cold = any("d3cold" in said.origin.text.lower() for said in lines)
        # What is with vfio-pci is on its way into a virtual machine or out of it.
        is_assigned = lines[0].get("driver") == "vfio-pci" and not is_cold
        sure = LIKELY if is_cold or is_assigned else ESTABLISHED
        yield ASLEEP.finding(
            f"GPU {pci_words(pci)} does not wake up.",
            sure,
            lines,
            pci=pci,
            layer=Layer.L5 if is_assigned else None,
            cause_class="hw-firmware" if is_cold else "passthrough" if is_assigned else None,
        )
    if is_lost:
        return
    grave = list(_concerning(facts, gpus, "kernel.aer_uncorrected", "kernel.dpc", "kernel.slot_down"))
    grave += list(_concerning(facts, gpus, "kernel.aer_bits", "kernel.link_not_trained"))
    grave += list(_concerning(facts, gpus, "kernel.aer_not_recovered", "kernel.surprise_down"))
    grave += [
        said
        for said in facts.said("kernel.firmware_pcie_error")
        if pci_of(said.get("pci")) in gpus or said.get("vendor", "10de").lower() == "10de"
    ]
    if grave:
        pci = next((pci_of(one.get("pci")) for one in grave if _is_gpu(one, gpus)), NO_PCI)
        port = next((pci_words(pci_of(one.get("pci"))) for one in grave if pci_of(one.get("pci")) != NO_PCI), "")
        where = f"GPU {pci_words(pci)}" if pci != NO_PCI else f"port {port}" if port else "a port"
        has_gpu = pci != NO_PCI or any(
            "nvidia" in one.origin.text.lower() or one.get("vendor").lower() == "10de" for one in grave
        )
        yield UNCORRECTABLE.finding(
            f"{where[0].upper()}{where[1:]} reports PCI Express errors that cannot be corrected"
            + ("." if has_gpu else "; which device is below that port was not read."),
            LIKELY if has_gpu else POSSIBLE,
            grave,
            pci=pci,
        )
        return
    # The event log of the machine's management names no device.
    entries = list(facts.said("host.sel_pcie"))
    if bad := [said for said in entries if value(said, "kind").lower() not in ("correctable", "degraded")]:
        yield UNCORRECTABLE.finding(
            f"The event log of the machine has: {bad[0].get('what').strip()}; which device it was stands in the record "
            "itself (ipmitool sel get).",
            POSSIBLE,
            bad,
        )
    elif slots := list(facts.said("host.slot_error")):
        where = value(slots[0], "where")
        yield UNCORRECTABLE.finding(
            f"The machine reports a fatal error of PCI Express{f' at {where}' if where else ''}; which device that is "
            "stands in its inventory.",
            POSSIBLE,
            slots,
        )
    elif entries:
        yield CORRECTED.finding(
            f"The event log of the machine has: {entries[0].get('what').strip()}.", WEAK, entries
        )
    yield from _corrected(facts, gpus)


def _corrected(facts: Facts, gpus: set[Pci]) -> Iterator[Answer]:
    yield from _replays(facts)
    by_device: dict[Pci, list[Said]] = {}
    # An error is a block of lines: its bits count only where its first line is not there.
    which = "kernel.aer_corrected" if any(facts.said("kernel.aer_corrected")) else "kernel.aer_bits_corrected"
    for said in _concerning(facts, gpus, which):
        by_device.setdefault(pci_of(said.get("pci")), []).append(said)
    for pci, lines in by_device.items():
        count = sum(one.times for one in lines)
        is_gpu = any(_is_gpu(one, gpus) for one in lines)
        # The port itself says that more came than it could record.
        is_stream = any("Multiple Correct" in one.origin.text for one in lines)
        if count >= MANY or is_gpu or is_stream:
            yield CORRECTED.finding(
                f"{'GPU' if is_gpu else 'Port'} {pci_words(pci)} corrected PCI Express errors, {count} lines of it.",
                LIKELY if is_gpu and count >= MANY else POSSIBLE if is_gpu else WEAK,
                lines,
                pci=pci if is_gpu else NO_PCI,
            )


def _replays(facts: Facts) -> Iterator[Answer]:
    """Counters since the driver was loaded: a few are nothing. DCGM counts by minute, so what it says is more."""
    for said in facts.said("dcgm_health.pcie_replays"):
        gpu = value(said, "gpu")
        yield CORRECTED.finding(
            f"{'GPU ' + gpu if gpu else 'A GPU'} sends very many PCI Express packets again, DCGM says.",
            POSSIBLE,
            [said],
            subject=gpu and f"GPU {gpu}",
        )
    counted = [(one.pci, int(one.value), one.origin) for one in facts.of(Sample) if one.field in _REPLAYS]
    counted += [(one.pci, one.pcie_replays or 0, one.quote("pcie_replays")) for one in facts.of(DeviceSeen)]
    for pci, replays, origin in counted:
        if replays >= MANY_REPLAYS:
            where = f"GPU {pci_words(pci)}" if pci != NO_PCI else "A GPU"
            yield CORRECTED.finding(f"{where} sent {replays} PCI Express packets again.", WEAK, [origin], pci=pci)


def _concerning(facts: Facts, gpus: set[Pci], *messages: str) -> Iterator[Said]:
    for said in facts.said(*messages):
        if said.get("driver").lower() in _PORTS or _is_gpu(said, gpus):
            yield said


def _is_gpu(said: Said, gpus: set[Pci]) -> bool:
    return said.get("driver").lower() in _GPU_DRIVERS or (pci_of(said.get("pci")) in gpus - {NO_PCI})


RULE = Rule((UNCORRECTABLE, CORRECTED, ASLEEP, SLOWER), find)
