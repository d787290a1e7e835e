"""L0. Xids that ask for nothing, that no current driver raises, and a verdict of the driver without its cause."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.diagnosis.xid.recovery import Recovery, recovery_of
from berth.diagnosis.xid.seen import Event, Family
from berth.diagnosis.xid.story import Story, story_of
from berth.diagnosis.xid.telling import account, quotations
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

_SOURCES = ("NVIDIA Xid catalogue", "nverror.h of open-gpu-kernel-modules")
_CHECK = "dmesg -T | grep Xid: nothing else on this GPU around it; dcgmi diag -r 2: pass"

NOTE = Code(
    name="XidForInformation",
    layer=Layer.L0,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.ProgramFails,
    title="an Xid that asks for nothing",
    meaning="Not every Xid is a fault. The catalogue lets this one pass; look at others beside it first.",
    known_by="The only Xids of the device are those that the catalogue answers with IGNORE, or has no action for.",
    disproved_by="Programs fail on this GPU at the same time, or other Xids stand beside it.",
    counter_check=_CHECK,
    fix=Fix(("leave the node in service; count how often it comes",), "none", "nothing to undo"),
    verify=("no other Xid on this GPU for a day",),
    sources=_SOURCES,
    is_trap=True,
)
UNLISTED = Code(
    name="XidNotRaisedToday",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Warning,
    effect=Effect.DeviceUnfit,
    title="an Xid that current drivers do not raise",
    meaning="The catalogue has no use for this number on data centre GPUs of today. It is of an older driver, of a GPU "
    "with displays, or newer than the catalogue; the vendor knows.",
    known_by="An Xid whose row in the catalogue says unused, or that is not in it.",
    disproved_by="The release notes of the driver describe it.",
    counter_check=_CHECK,
    fix=Fix(
        ("look for other Xids and for failing programs first", "none: ask the vendor with nvidia-bug-report.sh"),
        "none",
        "nothing to undo",
    ),
    verify=("the number does not come again",),
    sources=_SOURCES,
)
VERDICT = Code(
    name="GpuRecoveryDemanded",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceUnfit,
    title="the driver demands a reset or restart for a GPU",
    meaning="The driver holds the GPU unfit until what it asks for is done. The Xid that made it say so is not in the "
    "text that was read.",
    known_by="Xid 154, or the recovery action in nvidia-smi -q, with an action other than None; NVML that answers "
    "`GPU requires reset`; or a fatal error of nvidia-uvm that wants a restart.",
    disproved_by="A later line changes the action back to None.",
    counter_check="nvidia-smi -q -i PCI.0 | grep -i recovery: None",
    fix=Fix(
        ("kubectl cordon NODE; do what the driver asks for", "look for the Xid before it: journalctl -k | grep Xid"),
        "ends what runs on that GPU, or on the node",
        "kubectl uncordon NODE",
    ),
    verify=("nvidia-smi -q -i PCI.0 | grep -i recovery: None", "dcgmi diag -r 3: pass"),
    sources=(*_SOURCES, "NVIDIA Xid catalogue, 154"),
)

# Informational codes that stand in families of graver ones; alone they are notes.
_QUIET = frozenset((38, 44, 157, 159, 160, 161, 163, 164, 165, 168, 176))


def find(facts: Facts) -> Iterator[Answer]:
    """Verdicts; then, where nothing else is known of a device, its notes."""
    story = story_of(facts)
    yield from _verdicts(story)
    yield from _of_devices(facts, story)
    grave = {
        (one.node, one.pci)
        for one in story.events
        if one.family not in (Family.Note, Family.Unlisted, Family.Follower, Family.Verdict)
        and one.code not in _QUIET
    }
    uvm = list(facts.said("kernel.uvm_fatal"))
    if uvm and not grave and not story.by_device(Family.Verdict):
        yield VERDICT.finding(
            "The unified-memory part of the driver met a fatal error and wants the system restarted.", POSSIBLE, uvm
        )
    for code, own in ((NOTE, _notes(story)), (UNLISTED, story.by_device(Family.Unlisted))):
        for (node, pci), causes in own.items():
            if (node, pci) not in grave:
                yield code.finding(
                    f"{causes[0].where[0].upper()}{causes[0].where[1:]}: {account(story, causes)}",
                    LIKELY if code is NOTE else WEAK,
                    quotations(story, causes),
                    pci=pci,
                    node=node,
                )


def _notes(story: Story) -> dict[tuple[str, tuple[int, int, int]], list[Event]]:
    found = story.by_device(*Family)
    quiet = {
        key: [one for one in causes if one.family == Family.Note or one.code in _QUIET]
        for key, causes in found.items()
    }
    return {key: causes for key, causes in quiet.items() if causes}


def _verdicts(story: Story) -> Iterator[Answer]:
    for (node, pci), lines in story.by_device(Family.Verdict).items():
        told = story.verdict(pci, node)
        recovery = told[0] if told else None
        if recovery == Recovery.Nothing:
            continue
        wants = f"asks for: {recovery.value}" if recovery else "changed its recovery action"
        yield VERDICT.finding(
            f"The driver {wants}, for {lines[0].where}. {account(story, lines)}",
            LIKELY if recovery else POSSIBLE,
            quotations(story, lines),
            pci=pci,
            node=node,
            fix=recovery.fix if recovery else None,
        )


def _of_devices(facts: Facts, story: Story) -> Iterator[Answer]:
    """nvidia-smi prints the same verdict; where the kernel log tells why, that is enough."""
    told = {one.pci for one in story.events}
    if not told and not facts.of(DeviceSeen):
        for said in facts.said("host.recovery_action"):
            action = value(said, "action")
            recovery = recovery_of(action.replace("_", " "))
            words = f"{'DCGM' if action.isupper() else 'nvidia-smi'} shows the recovery action {action}."
            yield VERDICT.finding(words, LIKELY, [said], fix=recovery.fix if recovery else None)
    # A column of nvidia-smi, or what it answers in the place of values.
    needs = [one.quote("is_reset_required") for one in facts.of(DeviceSeen) if one.is_reset_required]
    needs = needs or [said.origin for said in facts.said("nvml.reset_required")]
    if needs and not story.events and not any(facts.said("driver.kind_told", "driver.regression_told")):
        yield VERDICT.finding("NVML says that a GPU needs a reset before it is used again.", POSSIBLE, needs)
    for device in facts.of(DeviceSeen):
        words = device.recovery_action.strip()
        if words.lower() in ("", "none", "n/a") or device.pci in told:
            continue
        recovery = recovery_of(words)
        yield VERDICT.finding(
            f"nvidia-smi shows the recovery action {words}.",
            LIKELY,
            [device.quote("recovery_action")],
            pci=device.pci,
            fix=recovery.fix if recovery else None,
        )


RULE = Rule((NOTE, UNLISTED, VERDICT), find)
