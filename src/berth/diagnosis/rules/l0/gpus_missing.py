"""L0. There are more GPUs on the bus than the driver serves, and no line says why; or one answers with all ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.rules.l0 import kernel_log
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.diagnosis.xid.seen import Family
from berth.diagnosis.xid.story import story_of
from berth.evidence.fact import NO_PCI, Fact, Origin, Pci, pci_of, pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.boundary_facts import HostCount
from berth.evidence.formats.machine_facts import PciSeen, ProcGpu
from berth.evidence.formats.smi_facts import DeviceSeen

_SOURCES = ("lspci(8)", "nvidia-smi documentation", "/proc/driver/nvidia/gpus")
_STEPS = (
    "dmesg | grep -e NVRM -e Xid -e AER: probe, RmInitAdapter, BAR or power cable of that address",
    "kubectl cordon NODE, then drain it: what still works may be taken along by the lost one",
    "restart the machine; not enough: power off and on; again: reseat, then replace the card",
)
_VERIFY = ("lspci -d 10de: | grep -c -e 3D -e VGA and nvidia-smi -L | wc -l: the same number",)

MISSING = Code(
    name="GpuMissing",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="the driver serves fewer GPUs than the bus has",
    meaning="A GPU dropped out without an Xid, or its start failed. The plugin offers one less, or fails for all.",
    known_by="lspci lists a GPU that nvidia-smi does not, and no other driver (vfio-pci, nouveau) has it.",
    disproved_by="The missing one is bound to another driver on purpose, or hidden from this container.",
    counter_check="lspci -nnk -d 10de:: another driver (vfio-pci, nouveau) has the missing one; or nvidia-smi -L on "
    "the host itself lists it",
    fix=Fix(_STEPS, "a restart ends everything on the node", "kubectl uncordon NODE"),
    verify=_VERIFY,
    sources=_SOURCES,
)
DEAD = Code(
    name="GpuConfigSpaceDead",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="a GPU answers with all ones",
    meaning="Its configuration space reads ff everywhere: the device is off, dead, or its link is down. The system "
    "only remembers that it was there.",
    known_by="lspci shows revision ff or header type 7f for it.",
    disproved_by="A laptop switched the GPU off to save power (runtime D3), and it comes back on use.",
    counter_check="lspci -vv -s PCI after power off and on: its real revision",
    fix=Fix(_STEPS, "a restart ends everything on the node", "kubectl uncordon NODE"),
    verify=_VERIFY,
    sources=_SOURCES,
)

_OTHER_DRIVERS = frozenset(("vfio-pci", "nouveau", "nvidia-vgpu-vfio", "pci-stub", "xen-pciback"))
_TOLD_ELSEWHERE = (
    "kernel.off_bus", "kernel.off_bus_at_probe", "nvidia_smi.gpu_lost", "nvidia_smi.no_handle", "kernel.probe_failed",
    "kernel.probe_routine_failed", "kernel.adapter_init", "kernel.bar_unassigned", "kernel.bar_invalid",
    "kernel.power_cable", "driver.nouveau", "driver.api_mismatch", "driver.gpu_unsupported", "driver.wrong_flavour",
    "kernel.gfw_boot",
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    """Dead ones by address; missing ones by node."""
    story = story_of(facts)
    lost = {one.pci for one in story.roots(Family.Lost)}
    lost |= {pci_of(said.get("pci")) for said in facts.said("kernel.off_bus", "kernel.off_bus_at_probe")}
    yield from _dead(facts, lost)
    if story.roots(Family.Lost) or any(True for _ in facts.said(*_TOLD_ELSEWHERE)):
        return
    found = list(_missing(facts))
    yield from found
    none = list(facts.said("kernel.no_gpu"))
    if none and not found and not any(one.is_gpu and not one.is_dead for one in facts.of(PciSeen)):
        found.append(
            MISSING.finding(
                "The driver met no GPU of NVIDIA on the whole bus: it is off, dead, not plugged in, not passed through "
                "to this guest, or the machine type has none.",
                POSSIBLE,
                none,
            )
        )
        yield found[-1]
    absent = list(facts.said("host.not_on_bus"))
    if absent and not found and not any(one.is_gpu for one in facts.of(PciSeen)):
        found.append(
            MISSING.finding(
                "The bus itself lists no GPU: it is off, dead, not plugged in, switched off by the firmware, or "
                "not passed through to this guest.",
                POSSIBLE,
                absent,
            )
        )
        yield found[-1]
    if not found:
        for said in facts.said("host.gpus_missing", "host.gpus_missing_told"):
            seen = value(said, "seen")
            there = value(said, "there", "more")
            if not seen or not there.isdigit() or int(seen) < int(there):
                words = f"nvidia-smi has {seen} of {there} GPUs" if seen else "Fewer GPUs than expected are counted"
                answer = MISSING.finding(f"{words}.", LIKELY if seen else POSSIBLE, [said])
                found.append(answer)
                yield answer
        told = list(facts.said("host.gpu_gone_told"))
        if told and not found:
            found.append(MISSING.finding("A GPU of the machine is said to be gone.", WEAK, told))
            yield found[-1]
    if found:
        yield from kernel_log.wanted(facts, MISSING)


def _dead(facts: Facts, lost: set[Pci]) -> Iterator[Answer]:
    dead: dict[Pci, Fact] = {
        device.pci: device for device in facts.of(PciSeen) if device.is_dead and (device.is_nvidia or not device.kind)
    }
    known = {device.pci for device in facts.of(PciSeen)}
    for said in facts.said("kernel.config_space_dead"):
        pci = pci_of(said.get("pci"))
        if pci not in known and not dead and "nvidia" in said.origin.text.lower():
            dead.setdefault(pci, said)
    for pci, fact in dead.items():
        if pci not in lost:
            where = f"GPU {pci_words(pci)}" if pci != NO_PCI else "A GPU"
            yield DEAD.finding(f"{where} reads as all ones.", ESTABLISHED, [fact], pci=pci)


def _missing(facts: Facts) -> Iterator[Answer]:
    on_bus: dict[str, dict[Pci, PciSeen]] = defaultdict(dict)
    for device in facts.of(PciSeen):
        if device.is_gpu and not device.is_dead and device.function == 0 and device.driver not in _OTHER_DRIVERS:
            on_bus[device.node][device.pci] = device
    served: dict[str, dict[Pci, DeviceSeen]] = defaultdict(dict)
    named: dict[str, set[str]] = defaultdict(set)
    for seen in facts.of(DeviceSeen):
        if seen.pci != NO_PCI:
            served[seen.node][seen.pci] = seen
        named[seen.node].add(seen.uuid or str(seen.index))
    counts: dict[str, dict[str, HostCount]] = defaultdict(dict)
    for count in facts.of(HostCount):
        counts[count.node][count.by] = count
    for node in dict.fromkeys((*on_bus, *counts)):
        gone = [device for pci, device in on_bus[node].items() if pci not in served[node]]
        if served[node] and gone and len(on_bus[node]) > len(served[node]):
            yield _short(node, len(served[node]), len(on_bus[node]), gone[0].pci if len(gone) == 1 else NO_PCI,
                         [device.origin for device in gone])  # fmt: skip
        elif not served[node] and (bus := counts[node].get("lspci")):
            nvml = counts[node].get("nvml")
            serving = nvml.count if nvml else len(named[node])
            there = len(on_bus[node]) or bus.count
            if 0 < serving < there:
                yield _short(node, serving, there, NO_PCI, [bus.origin, *((nvml.origin,) if nvml else ())])
    for gpu in facts.of(ProcGpu):
        if "??" in gpu.uuid and served[gpu.node] and gpu.pci not in served[gpu.node]:
            yield MISSING.finding(
                f"The driver has GPU {pci_words(gpu.pci)} and could not even read its UUID: its start failed.",
                LIKELY,
                [gpu],
                pci=gpu.pci,
            )


def _short(node: str, serving: int, there: int, pci: Pci, origins: list[Origin]) -> Answer:
    which = f"; GPU {pci_words(pci)} is missing" if pci != NO_PCI else ""
    return MISSING.finding(
        f"lspci has {there} GPUs and nvidia-smi {serving}{which}.", LIKELY, origins, pci=pci, node=node
    )


RULE = Rule((MISSING, DEAD), find)
