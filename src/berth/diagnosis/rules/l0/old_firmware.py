"""L0. Firmware of card or machine that is known to be too old for what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts

OUTDATED = Code(
    name="FirmwareOutdated",
    layer=Layer.L0,
    cause_class="hw-firmware",
    severity=Severity.Error,
    effect=Effect.DeviceUnfit,
    title="firmware of the card or the machine is at fault",
    meaning="The GPU hangs, is not found or gets lost for a defect of its own firmware or of the machine's BIOS.",
    known_by="Somebody reports that an update of BIOS, VBIOS or firmware changes the matter.",
    disproved_by="The newest firmware of card and machine is in place and the fault comes again.",
    counter_check="nvidia-smi --query-gpu=vbios_version --format=csv; dmidecode -t bios: the vendor's newest",
    fix=Fix(
        (
            "kubectl cordon NODE, drain it",
            "update BIOS and management firmware of the machine, VBIOS of the card, by the vendor's tools",
        ),
        "a failed update may leave a board that does not start",
        "the vendor's former firmware; kubectl uncordon NODE",
    ),
    verify=("the versions are the new ones; the fault does not come again under load",),
    sources=("release notes of machine and card",),
)


def find(facts: Facts) -> Iterator[Answer]:
    """Only what people say: no log names it."""
    said = list(facts.said("host.firmware_outdated"))
    if said:
        yield OUTDATED.finding("An update of firmware is said to change it.", WEAK, said)


RULE = Rule((OUTDATED,), find)
