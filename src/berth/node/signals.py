"""From a look to signals: the doctor's findings and what the agent sees by itself, each with what it makes of whom."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from berth.diagnosis.diagnose import Diagnosis, diagnose
from berth.diagnosis.finding import Finding
from berth.diagnosis.ledger import accounts
from berth.evidence.fact import NO_PCI, Origin, pci_words
from berth.evidence.formats.boundary_facts import PluginAnswer
from berth.model.ledger import Account, Boundary
from berth.node.fitness import NODE, Sighted, Signal
from berth.node.look import Looked
from berth.node.plugins import NO_ANSWER
from berth.node.policy import LEDGER_PARTS, MISSING, OWN, PLUGIN_SILENT, State, ruling_of

_CALENDAR = 1e8  # seconds; smaller times count from boot


def judged(looked: Looked) -> tuple[Diagnosis, tuple[Account, ...]]:
    """What the doctor and the ledger say of this node."""
    return diagnose(looked.facts), tuple(one for one in accounts(looked.facts) if one.node == looked.node)


def signals_of(
    looked: Looked,
    diagnosis: Diagnosis,
    parted: Sequence[Account],
    known: Collection[str],
    unfit: Collection[str] = (),
) -> Iterator[Signal]:
    """`known` are the devices that were there since the machine was started, by PCI address; `unfit` those of which
    that is remembered."""
    withdrawn = set(unfit)
    # Consequences count as well: what follows from a fault of one device may make the node unfit.
    for finding in (*diagnosis.findings, *(one.finding for one in diagnosis.consequences)):
        ruling = ruling_of(finding)
        if ruling is not None:
            text, source = _evidence(finding)
            # What is of an NVSwitch or a bridge is of the node.
            pci = pci_words(finding.pci)
            target = pci if finding.pci in looked.addresses or pci in known else NODE
            if ruling.state is State.Unfit:
                withdrawn.add(target)
            yield Signal(target, finding.code, ruling, text, source, _said_s(finding.evidence))
    yield from _missing(looked, known)
    yield from _parted(looked, parted, withdrawn)


def sighted(looked: Looked, known: Collection[str]) -> dict[str, Sighted]:
    """Every device that is or was there, and how it was seen."""
    found = {pci_words(pci): Sighted.Listed for pci in looked.addresses}
    for device in looked.devices:
        if device.pci != NO_PCI and "uuid" not in device.unreadable:
            found[pci_words(device.pci)] = Sighted.Answers
    for pci in known:
        found.setdefault(pci, Sighted.Missing)
    return dict(sorted(found.items()))


def _missing(looked: Looked, known: Collection[str]) -> Iterator[Signal]:
    if not looked.has_nvml:
        return
    for pci, how in sighted(looked, known).items():
        if how is Sighted.Missing or (how is Sighted.Listed and pci in known):
            text = f"NVML lists {len(looked.devices)} devices, {pci} is not among them"
            yield Signal(pci, MISSING, OWN[MISSING], text, "NVML")


def _parted(looked: Looked, found: Sequence[Account], unfit: Collection[str]) -> Iterator[Signal]:
    """Where the account parts below what pods hold: those are matters of the node. A plugin that offers all but the
    unfit devices does what it should, and the rest of the node is as good as before."""
    silent = {one.resource for one in looked.facts.of(PluginAnswer) if one.problem.startswith(NO_ANSWER)}
    answering = {pci_words(device.pci) for device in looked.devices}
    for account in found:
        if account.parts_at is None or account.parts_at > Boundary.Node:
            continue
        code = PLUGIN_SILENT if account.resource in silent and account.parts_at is Boundary.Plugin else LEDGER_PARTS
        if code == LEDGER_PARTS and _offers_all_but(account, len(answering.intersection(unfit))):
            continue
        yield Signal(NODE, code, OWN[code], account.sentence, f"ledger of {account.resource}")


def _offers_all_but(account: Account, unfit: int) -> bool:
    """Of whole devices: of a partitioned one nobody counts how many units were withdrawn with it."""
    if account.host is None or account.allocatable is None or not unfit:
        return False
    return account.allocatable == account.host - unfit and account.plugin in (None, account.allocatable)


def _evidence(finding: Finding) -> tuple[str, str]:
    said = [one for one in finding.evidence if one.text]
    if not said:
        return finding.cause, finding.title
    return said[0].text, said[0].source


def _said_s(evidence: Sequence[Origin]) -> float:
    """The time of the last evidence, where all of it has one: that of a log. What is read anew at each look has
    none.
    """
    times = [one.at_s for one in evidence]
    return max(times) if times and min(times) > _CALENDAR else 0.0
