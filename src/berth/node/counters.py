"""Counters that begin at zero again: when a device was set back, or its driver loaded anew, without anybody saying
so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from berth.diagnosis.xid.recovery import Recovery, read_recovery
from berth.evidence.fact import NO_PCI, Said, pci_of, pci_words
from berth.evidence.formats.smi_facts import DeviceSeen

# Since the driver was loaded; they never fall otherwise.
VOLATILE = ("corrected_volatile", "uncorrected_volatile", "sram_uncorrected_volatile")

Counts = Mapping[str, Mapping[str, int]]  # PCI address → counter → value


def counts_of(devices: Iterable[DeviceSeen]) -> dict[str, dict[str, int]]:
    return {
        pci_words(device.pci): {name: value for name in VOLATILE if (value := getattr(device, name)) is not None}
        for device in devices
        if device.pci != NO_PCI
    }


def risen(before: int | None, now: int) -> int:
    """How much was added. A counter that is smaller than before began anew: all of it was added since."""
    return now if before is None or now < before else now - before


def fell(before: Counts, now: Counts) -> set[str]:
    """Devices of which a counter is smaller than it was."""
    return {
        pci
        for pci, counts in now.items()
        if any(value < before.get(pci, {}).get(name, 0) for name, value in counts.items())
    }


def resets_said(said: Iterable[Said], devices: Iterable[str]) -> dict[str, float]:
    """Device → when the kernel's log last says that it was set back: the driver has been loaded, or has taken back what
    it wanted done (Xid 154, action None). Times are those of the sentences."""
    found: dict[str, float] = {}
    known = tuple(devices)
    for one in said:
        if one.message == "kernel.driver_version":
            for pci in known:
                found[pci] = max(found.get(pci, 0.0), one.origin.at_s)
        elif _is_taken_back(one):
            pci = pci_words(pci_of(one.get("pci")))
            found[pci] = max(found.get(pci, 0.0), one.origin.at_s)
    return found


def _is_taken_back(said: Said) -> bool:
    is_verdict = said.message.startswith("kernel.xid") and said.get("code") == "154"
    return is_verdict and read_recovery(said.get("detail") or said.origin.text) is Recovery.Nothing
