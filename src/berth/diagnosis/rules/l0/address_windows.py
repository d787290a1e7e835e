"""L0. The machine has no room in its address windows for a GPU's memory: BARs that are not assigned."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import NO_PCI, Origin, Pci, Said, pci_of, pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.machine_facts import PciSeen

UNASSIGNED = Code(
    name="BarUnassigned",
    layer=Layer.L0,
    cause_class="hw-firmware",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="a GPU's memory has no place in the machine's address space",
    meaning="The firmware gave the bridge above the GPU a window that is smaller than the GPU's memory region. The "
    "driver cannot start the device.",
    known_by="The kernel has no space for a memory BAR of the GPU or for a large window of the bridge above it, and "
    "does not assign it later; or the driver says that the region is invalid.",
    disproved_by="The kernel assigns the same BAR a few lines later, and nvidia-smi lists the device.",
    counter_check="lspci -vv -s PCI | grep Region: every region has an address, none is <unassigned> or <ignored>",
    fix=Fix(
        steps=(
            "kubectl cordon NODE, drain it",
            "firmware of the machine: switch on Above 4G Decoding (64-bit BARs, large MMIO), raise the MMIO window "
            "(MMIO High Base and Size), update the BIOS",
            "virtual machine: a larger 64-bit MMIO window (pci-hole64-size, X-PciMmio64Mb), UEFI instead of BIOS",
            "to try: kernel parameter pci=realloc; resizable BAR off",
        ),
        risk="the machine is restarted; a wrong setting may keep it from starting",
        rollback="put the firmware's setting back; kubectl uncordon NODE",
    ),
    verify=("dmesg | grep -e 'no space' -e 'assign' | grep 'BAR': nothing for PCI", "nvidia-smi -L: lists the GPU"),
    sources=("Linux, drivers/pci/setup-res.c", "open-gpu-kernel-modules, kernel-open/nvidia/nv-pci.c"),
)

LARGE_WINDOW = 256 * 2**20  # bytes: hot-plug ports without a device ask for less, and may go without
LARGE = 64 * 2**20  # bytes: only GPUs and the like have prefetchable regions of that size
_SIZE = re.compile(r"size (0x[0-9a-f]+)", re.IGNORECASE)
_RANGE = re.compile(r"(0x[0-9a-f]+)-(0x[0-9a-f]+)", re.IGNORECASE)


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for each device whose region stays without a place."""
    gpus = {device.pci for device in facts.of(PciSeen) if device.is_gpu}
    others = {device.pci for device in facts.of(PciSeen) if not device.is_gpu}
    later = {(pci_of(said.get("pci")), said.get("bar")): said for said in facts.said("kernel.bar_assigned")}
    found: dict[Pci, list[Origin]] = {}
    for said in facts.said("kernel.bar_unassigned"):
        pci = pci_of(said.get("pci"))
        assigned = later.get((pci, value(said, "bar")))
        if assigned and _is_after(assigned, said):
            continue
        if pci in gpus or (pci not in others and _is_large(value(said, "range"))):
            found.setdefault(pci, []).append(said.origin)
    for said in facts.said("kernel.bar_invalid"):
        found.setdefault(pci_of(said.get("pci")), []).append(said.origin)
    if not any(True for _ in facts.of(PciSeen)):
        for said in facts.said("lspci.region_unplaced"):
            found.setdefault(NO_PCI, []).append(said.origin)
    for device in facts.of(PciSeen):
        if device.is_gpu and not device.is_dead and any(
            not region.is_assigned and (region.size_bytes >= LARGE or (region.is_64bit and not region.size_bytes))
            for region in device.regions
        ):
            found.setdefault(device.pci, []).append(device.origin)
    if found and NO_PCI in found and len(found) > 1:
        unnamed = found.pop(NO_PCI)
        next(iter(found.values())).extend(unnamed)
    bridges = _bridges(facts)
    if found:
        next(iter(found.values())).extend(said.origin for lines in bridges.values() for said in lines)
        bridges = {}
    for pci, lines in bridges.items():
        yield UNASSIGNED.finding(
            f"Bridge {pci_words(pci)} gets no window of [{value(lines[0], 'range')}]: what is below it, a GPU by the "
            "size, has no place or keeps a small BAR (resizable BAR is not had).",
            LIKELY,
            lines,
            subject=f"bridge {pci_words(pci)}",
        )
    said_so = list(facts.said("kernel.above_4g"))
    odd = _shown_oddly(facts)
    for pci, origins in found.items():
        yield UNASSIGNED.finding(
            f"{'GPU ' + pci_words(pci) if pci != NO_PCI else 'A GPU'} has no place for its memory region "
            f"in the machine's address windows ({origins[0].text[:120]}).",
            ESTABLISHED,
            [*origins, *said_so],
            pci=pci,
            cause_class="passthrough" if pci in odd else None,
        )  # fmt: skip
    small = list(facts.said("kernel.bar_not_resized"))
    if small and not found and not bridges:
        yield UNASSIGNED.finding(
            "The window above the GPU is too small for its memory to be seen as a whole: its BAR stays small.",
            POSSIBLE,
            [*small, *said_so],
        )
    elif said_so and not found and not bridges:
        yield UNASSIGNED.finding("The window for memory regions of devices is too small.", LIKELY, said_so)


def _bridges(facts: Facts) -> dict[Pci, list[Said]]:
    """Bridges that stay without a large window."""
    later = {pci_of(said.get("pci")): said for said in facts.said("kernel.window_assigned")}
    found: dict[Pci, list[Said]] = {}
    for said in facts.said("kernel.window_unassigned"):
        pci = pci_of(said.get("pci"))
        assigned = later.get(pci)
        if _is_large(value(said, "range"), LARGE_WINDOW) and not (assigned and _is_after(assigned, said)):
            found.setdefault(pci, []).append(said)
    return found


def _shown_oddly(facts: Facts) -> set[Pci]:
    """Devices on bus 0, as only a hypervisor puts them there, whose largest region has a place and another has none:
    a window that is too small fails for the largest first, so it is how the hypervisor shows them."""
    found: dict[Pci, set[str]] = {}
    for said in facts.said("kernel.bar_invalid"):
        if (pci := pci_of(said.get("pci"))) != NO_PCI and pci[1] == 0:
            found.setdefault(pci, set()).add(said.get("bar"))
    return {pci for pci, bars in found.items() if bars <= {"2", "3", "4"}}


def _is_after(assigned: Said, failed: Said) -> bool:
    return assigned.origin.source == failed.origin.source and assigned.origin.line > failed.origin.line


def _is_large(words: str, least: int = LARGE) -> bool:
    """By `mem size 0x10000000 64bit pref`, or by a range."""
    if size := _SIZE.search(words):
        return int(size[1], 16) >= least
    if ends := _RANGE.search(words):
        return int(ends[2], 16) - int(ends[1], 16) + 1 >= least
    return False


RULE = Rule((UNASSIGNED,), find)
