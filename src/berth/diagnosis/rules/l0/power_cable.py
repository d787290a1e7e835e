"""L0. A GPU's auxiliary power is not connected."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, Effect, Layer, Severity
from berth.diagnosis.xid.seen import Family
from berth.diagnosis.xid.story import story_of
from berth.diagnosis.xid.telling import account, quotations
from berth.evidence.fact import NO_PCI, Origin, Pci, pci_of, pci_words
from berth.evidence.facts import Facts

NOT_CONNECTED = Code(
    name="GpuPowerNotConnected",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="a GPU has no auxiliary power",
    meaning="The board's power plug is not connected, or its supply is off. The driver refuses the GPU or runs it at "
    "its lowest clocks.",
    known_by="Xid 54, or the driver says that power cables are missing.",
    disproved_by="The plugs are in, the supply delivers, and the message is older than that.",
    counter_check="dmesg -T | grep -i -e 'power cable' -e 'Xid.*: 54': none since the machine was opened",
    fix=Fix(
        (
            "kubectl cordon NODE, drain it, power the machine off",
            "plug in the auxiliary power of the card with the cable made for it; check the power supply and its budget",
        ),
        "the machine is off meanwhile",
        "kubectl uncordon NODE",
    ),
    verify=("nvidia-smi -q -d POWER -i PCI.0: limit and draw as for the model",),
    sources=("NVIDIA Xid catalogue, 54 (CHECK_MECHANICALS)", "open-gpu-kernel-modules, RmInitAdapter"),
)


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for each device."""
    story = story_of(facts)
    for (node, pci), causes in story.by_device(Family.Power).items():
        own = [one for one in causes if one.code == 54]
        if own:
            yield NOT_CONNECTED.finding(account(story, own), ESTABLISHED, quotations(story, own), pci=pci, node=node)
    by_device: dict[Pci, list[Origin]] = {}
    for said in facts.said("kernel.power_cable"):
        by_device.setdefault(pci_of(said.get("pci")), []).append(said.origin)
    for pci, origins in by_device.items():
        where = f"GPU {pci_words(pci)}" if pci != NO_PCI else "a GPU"
        yield NOT_CONNECTED.finding(f"The driver finds no auxiliary power at {where}.", ESTABLISHED, origins, pci=pci)


RULE = Rule((NOT_CONNECTED,), find)
