"""L1. A GPU that the installed driver branch does not serve, whether or not anything says so."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l1.wrong_kind import WRONG_KIND
from berth.diagnosis.versions import cards
from berth.diagnosis.versions.cards import Generation
from berth.diagnosis.versions.number import branch
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.fact import pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.machine_facts import KernelDriver, PciSeen
from berth.evidence.formats.smi_facts import DeviceSeen

OUTSIDE = Code(
    name="CardOutsideDriverBranch",
    layer=Layer.L1,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.DriverAbsent,
    title="the installed driver branch does not serve a GPU of this generation",
    meaning="The GPU stands in the PCI list and the driver leaves it out: the branch is older than the card, or has "
    "given its generation up. nvidia-smi shows one GPU less, or none.",
    known_by="Chip and driver version are known, the branch is outside those that serve the chip, and neither "
    "lspci names a driver of it nor nvidia-smi the GPU.",
    disproved_by="nvidia-smi -L lists the GPU.",
    counter_check="on NODE: nvidia-smi -L: lists the GPU; lspci -nnk -s PCI: Kernel driver in use: nvidia",
    fix=Fix(
        steps=(
            "newer card: a driver branch that knows it (GPU Operator: driver.version; host: the newest production "
            "branch)",
            "Maxwell, Pascal, Volta: stay on branch 580; Kepler: on 470",
            "both in one machine: a branch that serves both, or the old card out of it",
        ),
        risk="another driver needs the GPU pods of the node to leave; CUDA of the images has to fit it",
        rollback="the former driver version",
    ),
    verify=("nvidia-smi -L: the GPU", "lspci -k -s PCI: Kernel driver in use: nvidia"),
    sources=("CUDA release notes: first toolkit of each architecture", "NVIDIA Unix driver deprecation schedule"),
)


def find(facts: Facts) -> Iterator[Answer]:
    if any(facts.said("driver.gpu_unsupported", "driver.wrong_flavour")):
        return  # the driver itself says it
    served = {(one.node, one.pci) for one in facts.of(DeviceSeen)}
    drivers = [one for one in facts.of(KernelDriver) if one.is_loaded]
    for card in facts.of(PciSeen):
        generation = cards.of_chip(card.name)
        if not card.is_gpu or generation is None or card.driver or card.function or (card.node, card.pci) in served:
            continue
        driver = next((one for one in drivers if one.node == card.node), None)
        if driver is None:
            continue
        if not cards.is_served(generation, branch(driver.version)):
            # A card for the display alone may be left out on purpose.
            others = any(
                one.is_gpu and one.pci != card.pci and one.node == card.node and _is_served(one, driver)
                for one in facts.of(PciSeen)
            )
            yield OUTSIDE.finding(
                _cause(card, generation, driver),
                LIKELY,
                [card, driver],
                pci=card.pci,
                severity=Severity.Warning if others else None,
            )
        elif driver.is_open and not generation.open_modules:
            yield WRONG_KIND.finding(
                f"GPU {pci_words(card.pci)} is of {generation.name}, which the open kernel modules do not serve, and "
                f"those of {driver.version} are loaded.",
                LIKELY,
                [card, driver],
                pci=card.pci,
            )


def _is_served(card: PciSeen, driver: KernelDriver) -> bool:
    generation = cards.of_chip(card.name)
    return generation is not None and cards.is_served(generation, branch(driver.version))


def _cause(card: PciSeen, generation: Generation, driver: KernelDriver) -> str:
    if branch(driver.version) < generation.first:
        why = f"{generation.name} needs branch {generation.first} or newer"
    else:
        why = f"branch {generation.last} is the last that serves {generation.name}"
    return f"The driver is {driver.version}; {why}, as GPU {pci_words(card.pci)} is."


RULE = Rule((OUTSIDE,), find)
