"""L0. NVLink as the GPUs report it: one origin, and the peers that report the same event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.diagnosis.xid.nvlink5 import CODES
from berth.diagnosis.xid.nvlink_telling import NvlinkJudgement, judged
from berth.diagnosis.xid.seen import Event, Family
from berth.diagnosis.xid.story import PEERS_S, Story, story_of
from berth.diagnosis.xid.switches import is_fatal, made_by, switch_lines
from berth.diagnosis.xid.telling import account, devices, quotations, surety, verdict_fix
from berth.evidence.fact import NO_PCI
from berth.evidence.facts import Facts

_SOURCES = (
    "NVIDIA Xid catalogue, 74 136 137 144-150 155, registers and sub-code tables",
    "open-gpu-kernel-modules, kernel/gpu/nvlink",
)
_CHECK = "nvidia-smi nvlink -s and -e: all links up, error counters do not grow; nvidia-smi -q: Fabric State Completed"
_VERIFY = (
    "nvidia-smi nvlink -s: every link at its speed; nvidia-smi -q | grep -A3 Fabric: Completed, Success",
    "all_reduce_perf over all GPUs of the node: usual bandwidth, no new Xid",
)

FAULT = Code(
    name="NvLinkFault",
    layer=Layer.L0,
    cause_class="fabric",
    severity=Severity.Critical,
    effect=Effect.FabricDown,
    title="an NVLink failed",
    meaning="Traffic between GPUs was lost. Collectives hang or end, programs on the peers are torn down (Xid 45), and "
    "some errors leave the links down until GPUs and switches are reset.",
    known_by="Xid 74, 136, 144 to 150 or 155 in the kernel log; one GPU is the origin, its peers report the same "
    "event.",
    disproved_by="All links are up, their counters are still, and a collective over all GPUs runs at its usual speed.",
    counter_check=_CHECK,
    fix=Fix(
        steps=(
            "kubectl cordon NODE; end the jobs that span the GPUs of this NVLink domain",
            "begin at the origin: the first GPU and link of the evidence, and what is at the other end of that link",
            "reset all GPUs of the domain together (nvidia-smi --gpu-reset) or restart the machine; Fabric Manager "
            "has to run afterwards",
            "the same link again: connectors, cable, switch cooling; field diagnostics; replace what is at fault",
        ),
        risk="ends the jobs of all GPUs that share the fabric",
        rollback="kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
PEER_ACCESS = Code(
    name="PeerAccessFault",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="a program reached for a peer GPU's memory where it may not",
    meaning="The memory management of the other GPU refused an access over NVLink. Nearly always a program's fault, "
    "like Xid 31 between GPUs.",
    known_by="Xid 137 (or 108) and no other NVLink error around it.",
    disproved_by="Other NVLink errors on the same links, or the same fault with a program that is known to be good.",
    counter_check=_CHECK,
    fix=Fix(
        ("run the program under compute-sanitizer, or with CUDA_DEVICE_WAITS_ON_EXCEPTION=1 and cuda-gdb",),
        "none",
        "nothing to undo",
    ),
    verify=("the program runs to its end; no new Xid 137",),
    sources=_SOURCES,
)
HARMLESS = Code(
    name="NvLinkEventHarmless",
    layer=Layer.L0,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.CollectiveSlow,
    title="an NVLink event that asks for nothing",
    meaning="The number alone looks grave. Its sub-code, or its registers, say that the error was corrected or is "
    "only recorded: no reset, no restart.",
    known_by="The decode of every such line says IGNORE, and none is fatal.",
    disproved_by="Links are down, a fatal line or Xid 154 with an action appears, or collectives fail.",
    counter_check=_CHECK,
    fix=Fix(("leave the node in service; watch the error counters of the link",), "none", "nothing to undo"),
    verify=_VERIFY,
    sources=_SOURCES,
    is_trap=True,
)


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for each event of a fabric, however many GPUs report it."""
    story = story_of(facts)
    fatal = [said for said in switch_lines(facts) if is_fatal(said)]
    for causes in _events(story):
        if len(made_by(fatal, causes)) == len(causes):
            continue  # a switch failed, and is told of
        read = [judged(one, story.driver) for one in causes]
        if all(one.code in (108, 137) for one in causes):
            yield _answer(PEER_ACCESS, story, causes, read, LIKELY)
        elif (
            all(one.is_harmless for one in read)
            and not verdict_fix(story, causes[0].pci, causes[0].node)
            and not any(one.caused_by for one in story.followers(causes))
        ):
            yield _answer(HARMLESS, story, causes, read, ESTABLISHED)
        else:
            mild = all(one.is_mild for one in read) and not story.verdicts and not story.followers(causes)
            sure = min(surety(causes), LIKELY) if mild else surety(causes)
            yield _answer(FAULT, story, causes, read, sure)
            bare = [one for one, said in zip(causes, read, strict=True) if one.code in CODES and said.is_unread]
            if bare:
                yield Unconfirmed(
                    what=f"the whole line of Xid {bare[0].code}, with sub-code, link and the words in parentheses",
                    how=f"journalctl -k | grep 'Xid.*: {bare[0].code}' (on the node)",
                    wanted_for=FAULT.name,
                    layer=Layer.L0,
                    node=bare[0].node,
                )


def _answer(code: Code, story: Story, causes: Sequence[Event], read: Sequence[NvlinkJudgement], sure: float) -> Answer:
    reporters = {(one.node, one.pci) for one in causes if one.pci != NO_PCI}
    told = zip(causes, read, strict=True)
    counted = Counter(f"Xid {one.code}: {said.sentence}" for one, said in told if said.sentence)
    shown = ". ".join(list(counted)[:3]) + (f". {len(counted) - 3} more of that kind" if len(counted) > 3 else "")
    origin = causes[0]
    if len(reporters) > 1:
        first = f"{devices(causes)} report NVLink errors of one event; which of them is the origin is not established."
    elif code is FAULT and any(one.is_peers_fault for one in read):
        first = f"An NVLink of {origin.where} failed, and the fault came from the other end of the link."
    else:
        what = "an NVLink event" if code is HARMLESS else "it first"
        first = f"{origin.where[0].upper()}{origin.where[1:]} reports {what}."
    needs_reset = any(one.needs_reset for one in read)
    severity = None if code is not FAULT or needs_reset or len(reporters) > 1 else Severity.Error
    return code.finding(
        f"{first} {shown}{'. ' if shown else ''}{account(story, causes)}",
        sure,
        quotations(story, causes),
        pci=origin.pci if len(reporters) == 1 else NO_PCI,
        subject=f"NVLink of {devices(causes)}" if len(reporters) > 1 else "",
        node=origin.node,
        severity=severity,
        fix=verdict_fix(story, origin.pci, origin.node) if code is FAULT else None,
    )


def _events(story: Story) -> list[list[Event]]:
    """Causes of one NVLink domain that come within a minute of one another are one event."""

    def order(one: Event) -> tuple[str, float, int]:
        return story.domain(one.node), one.origin.at_s, one.order

    found: list[list[Event]] = []
    for one in sorted(story.roots(Family.NvLink), key=order):
        last = found[-1][-1] if found else None
        if last and story.domain(last.node) == story.domain(one.node) and one.origin.at_s - last.origin.at_s <= PEERS_S:
            found[-1].append(one)
        else:
            found.append([one])
    return found


RULE = Rule((FAULT, PEER_ACCESS, HARMLESS), find)
