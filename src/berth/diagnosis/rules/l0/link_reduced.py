"""L0. The PCI Express link of a GPU is narrower or slower than it could be; at idle slower is as it should be."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.fact import NO_PCI, Origin, Pci, pci_of, pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.machine_facts import PciSeen
from berth.evidence.formats.smi_facts import DeviceSeen

_SOURCES = ("nvidia-smi documentation, PCIe link generation and width", "PCI Express Base Specification, link status")
_CHECK = (
    "under load: nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,"
    "pcie.link.width.max --format=csv: current and max are the same"
)
_VERIFY = (_CHECK, "nvbandwidth -t host_to_device_memcpy_ce: as on the other GPUs of the machine")

REDUCED = Code(
    name="PcieLinkReduced",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.LinkSlow,
    title="a GPU's PCI Express link is narrower or slower than it should be",
    meaning="Copies to and from the GPU take longer, and in a collective all others wait for it. A link that falls "
    "back is often about to fail.",
    known_by="A width below the largest of device and slot, or a generation below it while the GPU works.",
    disproved_by="The slot is wired for fewer lanes, or the generation rises as soon as the GPU has work.",
    counter_check=_CHECK,
    fix=Fix(
        steps=(
            "kubectl cordon NODE, drain it, power it off; reseat card, riser and cables, look for bent or dirty "
            "contacts",
            "firmware of the machine: bifurcation and link speed of the slot; firmware of retimers and switches",
            "the card in another slot, another card in this slot: replace what stays slow",
        ),
        risk="the machine is off meanwhile",
        rollback="kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
IDLE = Code(
    name="PcieLinkIdle",
    layer=Layer.L0,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.LinkSlow,
    title="a PCI Express link that is slow because the GPU is idle",
    meaning="Idle GPUs take their link down to the first generation to save power, and up again with the first work. "
    "Only the link under load tells something.",
    known_by="A low generation at full width while the GPU has no work (P8, no use), or no sign of work at all.",
    disproved_by="The generation stays low while the GPU computes.",
    counter_check=_CHECK,
    fix=Fix(("nothing to mend; judge the link under load",), "none", "nothing to undo"),
    verify=_VERIFY,
    sources=_SOURCES,
    is_trap=True,
)

SLOWEST_GTS = 5.0  # what a link at rest may fall to: the first generation, on Blackwell the second
BUSY_PERCENT = 10.0


class _Links:
    """What is found of links."""

    def __init__(self) -> None:
        self.reduced: list[tuple[Pci, str, float, Origin]] = []
        self.idle: list[tuple[Pci, Origin]] = []


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for each reduced link; one trap for all that only rest."""
    links = _Links()
    widths: dict[tuple[str, str], set[bool]] = {}
    for device in facts.of(DeviceSeen):
        if device.pcie_width:
            widths.setdefault((device.node, device.name), set()).add(_is_narrow(device))
    for device in facts.of(DeviceSeen):
        _by_smi(device, links, len(widths.get((device.node, device.name), ())) > 1)
    for function in facts.of(PciSeen):
        _by_lspci(function, links)
    _by_words(facts, links)
    told = set[Pci]()
    for pci, words, sure, origin in sorted(links.reduced, key=lambda one: -one[2]):
        if pci not in told:
            told.add(pci)
            where = f"GPU {pci_words(pci)}" if pci != NO_PCI else "a GPU"
            yield REDUCED.finding(f"The link of {where} {words}.", sure, [origin], pci=pci)
    if links.idle and not links.reduced:
        count = len({pci for pci, _ in links.idle})
        yield IDLE.finding(
            f"{f'The links of {count} GPUs are' if count > 1 else 'The link of a GPU is'} at a low generation, and "
            f"nothing works on {'them' if count > 1 else 'it'}.",
            LIKELY,
            [origin for _, origin in links.idle],
        )


def _is_narrow(device: DeviceSeen) -> bool:
    return bool(device.pcie_width and device.pcie_width_max and device.pcie_width < device.pcie_width_max)


def _by_smi(device: DeviceSeen, links: _Links, others_are_wider: bool) -> None:
    """A slot may be wired for fewer lanes, and clouds show virtual machines such slots: neighbours tell."""
    if _is_narrow(device) and (others_are_wider or "pass" not in device.virtualization.lower()):
        words = f"has {device.pcie_width} of {device.pcie_width_max} lanes"
        sure = ESTABLISHED if others_are_wider else POSSIBLE
        links.reduced.append((device.pci, words, sure, device.quote("pcie_width")))
    elif device.pcie_gen and device.pcie_gen_max and device.pcie_gen < device.pcie_gen_max:
        if _works(device):
            words = f"is of generation {device.pcie_gen} under load, and could be {device.pcie_gen_max}"
            links.reduced.append((device.pci, words, LIKELY, device.quote("pcie_gen")))
        else:
            links.idle.append((device.pci, device.quote("pcie_gen")))


def _works(device: DeviceSeen) -> bool:
    return bool((device.gpu_percent or 0.0) >= BUSY_PERCENT and device.performance_state not in ("P8", "P12"))


def _by_lspci(function: PciSeen, links: _Links) -> None:
    """lspci does not say whether the GPU works, so only the width counts."""
    if not function.is_gpu and function.kind:
        return
    if function.width and function.width_max and function.width < function.width_max:
        words = f"has {function.width} of {function.width_max} lanes"
        links.reduced.append((function.pci, words, POSSIBLE, function.origin))
    elif 0 < function.speed_gts <= SLOWEST_GTS < function.speed_max_gts:
        links.idle.append((function.pci, function.origin))


def _by_words(facts: Facts, links: _Links) -> None:
    for said in facts.said("lspci.link"):
        if any(function.width for function in facts.of(PciSeen)):
            continue  # the device that it belongs to is known
        if said.get("width_is") == "downgraded":
            links.reduced.append((NO_PCI, f"has only {said.get('width')} lanes", LIKELY, said.origin))
        elif said.get("speed_is") == "downgraded":
            if float(said.get("speed")) <= SLOWEST_GTS:
                links.idle.append((NO_PCI, said.origin))
            else:
                links.reduced.append((NO_PCI, f"runs at {said.get('speed')} GT/s only", WEAK, said.origin))
    for said in facts.said("kernel.link_limited"):
        if int(said.get("width")) < int(said.get("best_width")):
            words = f"was trained with {said.get('width')} of {said.get('best_width')} lanes"
            links.reduced.append((pci_of(said.get("pci")), words, WEAK, said.origin))
    for said in facts.said("dcgm_health.link_reduced"):
        words = f"({said.get('gpu')}) has {said.get('what')} {said.get('is')} under DCGM's load"
        links.reduced.append((NO_PCI, words, LIKELY, said.origin))
    idle = [(NO_PCI, said.origin) for said in facts.said("host.link_idle", "harmless.link_rests")]
    links.idle.extend(idle)
    if not idle:
        links.reduced.extend(
            (NO_PCI, "is said to be reduced", POSSIBLE, said.origin) for said in facts.said("host.link_reduced")
        )


RULE = Rule((REDUCED, IDLE), find)
