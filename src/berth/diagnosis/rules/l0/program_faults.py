"""L6, told by the kernel: a program did what the GPU does not allow. L0 where always the same unit is hit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.diagnosis.xid.seen import Event, Family
from berth.diagnosis.xid.story import story_of
from berth.diagnosis.xid.switches import is_corrected, made_by, switch_lines
from berth.diagnosis.xid.telling import account, devices, quotations
from berth.evidence.fact import NO_PCI
from berth.evidence.facts import Facts

_SOURCES = ("NVIDIA Xid catalogue, RESTART_APP codes; work-flows of Xid 13, 31 and 45",)
_VERIFY = ("the program runs to its end; no new Xid in the kernel log",)

FAULT = Code(
    name="ProgramFaultOnGpu",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="a program faulted on the GPU",
    meaning="The GPU ended the program for an access or an instruction that it does not allow. The GPU is well; other "
    "programs go on.",
    known_by="An Xid that the catalogue answers with a restart of the program (13, 31, 69 and others), first of its "
    "device and not always on the same unit.",
    disproved_by="The same unit, or the same GPU of many, is hit by different programs; or a program that is known to "
    "be good.",
    counter_check="dmesg -T | grep Xid: other programs are hit on the same GPC and TPC, or on this GPU alone of many",
    fix=Fix(
        steps=(
            "the owner of the program looks first: compute-sanitizer --tool memcheck, or CUDA_LAUNCH_BLOCKING=1",
            "libraries, CUDA and driver that fit each other; a known good program on the same GPU",
            "the same GPU again with a known good program: dcgmi diag -r 3",
        ),
        risk="none for the node",
        rollback="nothing to undo",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
ENDED = Code(
    name="ProgramEndedOnGpu",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Info,
    effect=Effect.ProgramFails,
    title="channels of a program were cleaned up",
    meaning="A program ended or was killed, and the driver cleaned up behind it. Without another Xid beside it this "
    "is no fault of the GPU; where nobody ended the program, Fabric Manager may have to be restarted.",
    known_by="Xid 43 or 45 with no other Xid that it could follow.",
    disproved_by="Another Xid on this GPU or on its peers shortly before it: that one is the cause.",
    counter_check="dmesg -T | grep -e Xid -e SXid: another Xid on this GPU or its peers in the minutes before",
    fix=Fix(
        ("see why the program ended: its log, the OOM killer, an eviction",
         "nobody ended it, on a machine with NVSwitch: systemctl restart nvidia-fabricmanager"),
        "a restart of Fabric Manager ends jobs that use NVLink",
        "nothing to undo",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)  # fmt: skip
SAME_UNIT = Code(
    name="FaultsOnOneUnit",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.DeviceUnfit,
    title="different programs fault on the same unit of a GPU",
    meaning="Faults that look like programming errors come again and again from one part of one GPU. Then it is likely "
    "the part, and its results cannot be trusted.",
    known_by="Xid 13 of several programs, or over a long time, always on one GPC and TPC; or Xid 31 of several "
    "programs always on one GPU of many.",
    disproved_by="dcgmi diag -r 3 and the extended utility diagnostics pass, or the same program faults on other GPUs.",
    counter_check="run the same program on another GPU: the same fault there; dcgmi diag -r 3 on PCI: pass",
    fix=Fix(
        (
            "kubectl cordon NODE; let nothing new on GPU PCI",
            "dcgmi diag -r 3, then field diagnostics; failed: replace the GPU",
            "passed: it is the program after all",
        ),
        "the diagnostics need the GPU for themselves",
        "kubectl uncordon NODE",
    ),
    verify=("dcgmi diag -r 3: pass", "no new Xid 13 or 31 on PCI with other programs"),
    sources=_SOURCES,
)

LONG_S = 1_800.0  # that far apart two faults of unknown programs are two programs
ENOUGH = 3  # programs


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for each device."""
    story = story_of(facts)
    faults = story.by_device(Family.Program)
    together: dict[str, list[Event]] = {}
    for (node, pci), causes in faults.items():
        unit = _one_unit(causes)
        alone = unit or (_programs([one for one in causes if one.code == 31]) >= ENOUGH and len(faults) == 1)
        if alone:
            where = f"GPC {unit[0]}, TPC {unit[1]} of " if unit else ""
            yield SAME_UNIT.finding(
                f"{_programs(causes)} programs faulted on {where}{causes[0].where}, and on nothing else. "
                f"{account(story, causes)}",
                POSSIBLE if unit else WEAK,
                quotations(story, causes),
                pci=pci,
                node=node,
            )
        if not unit:
            together.setdefault(node, []).extend(causes)
    for node, causes in together.items():
        pcis = {one.pci for one in causes}
        who = ", ".join(dict.fromkeys(one.process for one in causes if one.process not in ("", "<unknown>")))
        yield FAULT.finding(
            f"{'Program ' + who if who else 'A program'} faulted on {devices(causes)}. {account(story, causes)}",
            LIKELY if not causes[0].is_named else POSSIBLE,
            quotations(story, causes),
            pci=next(iter(pcis)) if len(pcis) == 1 else NO_PCI,
            subject=f"{devices(causes)}{f' of node {node}' if node else ''}" if len(pcis) > 1 else "",
            node=node,
        )
    switches = [said for said in switch_lines(facts) if not is_corrected(said)]
    for (node, pci), causes in story.by_device(Family.Follower).items():
        if made_by(switches, causes):
            continue  # a switch did it, and is told of
        yield ENDED.finding(
            f"{causes[0].where[0].upper()}{causes[0].where[1:]}: {account(story, causes)}",
            WEAK,
            quotations(story, causes),
            pci=pci,
            node=node,
        )


def _one_unit(causes: Sequence[Event]) -> tuple[str, str] | None:
    """GPC and TPC where several programs faulted, and no other was hit."""
    units = {one.unit[:2] for one in causes if one.code == 13 and len(one.unit) >= 2}
    hit = [one for one in causes if one.code == 13]
    if len(units) != 1 or _programs(hit) < ENOUGH:
        return None
    gpc, tpc = units.pop()
    return gpc, tpc


def _programs(causes: Sequence[Event]) -> int:
    """Different processes; where none is named, times that are far apart."""
    pids = {one.pid for one in causes if one.pid.isdigit()}
    apart = {int(one.origin.at_s // LONG_S) for one in causes if one.origin.at_s and not one.pid.isdigit()}
    return max(len(pids), len(apart))


RULE = Rule((FAULT, ENDED, SAME_UNIT), find)
