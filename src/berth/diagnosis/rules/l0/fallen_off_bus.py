"""L0. A GPU does not answer on the bus any more, whether the driver numbers that as an Xid or not."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, Effect, Layer, Severity
from berth.evidence.fact import NO_PCI, Pci, Said, pci_of, pci_words
from berth.evidence.facts import Facts

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
    "Xid where the loss is found while the driver probes the device.",
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


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for each device; a line that names none stands for a device that nobody named."""
    by_device: dict[Pci, list[Said]] = {}
    for said in facts.said("kernel.off_bus_at_probe", "kernel.off_bus"):
        by_device.setdefault(pci_of(said.get("pci")), []).append(said)
    named = [pci for pci in by_device if pci != NO_PCI]
    for pci in named or list(by_device):
        where = f"GPU {pci_words(pci)}" if pci != NO_PCI else "a GPU"
        yield FELL_OFF_BUS.finding(
            f"The driver lost {where} on the bus. Usual causes: heat, power, seating or riser, old system firmware.",
            ESTABLISHED,
            by_device[pci],
            pci=pci,
        )


RULE = Rule((FELL_OFF_BUS,), find)
