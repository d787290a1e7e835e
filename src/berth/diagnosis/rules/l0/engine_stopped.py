"""L0. A part of the GPU stopped that is neither memory, link nor GSP: engines, micro-controllers, timers."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.diagnosis.xid.seen import Event, Family
from berth.diagnosis.xid.story import Story, story_of
from berth.diagnosis.xid.telling import account, quotations, surety, verdict_fix
from berth.evidence.fact import NO_PCI, pci_of
from berth.evidence.facts import Facts

_SOURCES = ("NVIDIA Xid catalogue, 46 62 109 110 142 143 151 158 159 167 169 173", "gpud's table of Xids")
_RESET = Fix(
    steps=(
        "kubectl cordon NODE; keep the kernel log and nvidia-bug-report.sh",
        "end what holds the GPU, monitoring included; nvidia-smi --gpu-reset -i PCI.0; refused: restart the machine",
        "back again: newest driver of the branch, dcgmi diag -r 3, then have the GPU looked at",
    ),
    risk="ends everything on that GPU; on NVSwitch machines all GPUs are reset together",
    rollback="kubectl uncordon NODE",
)
_VERIFY = ("nvidia-smi -q -i PCI.0: answers within a second", "dcgmi diag -r 3: pass; no new Xid under load")

STOPPED = Code(
    name="GpuEngineStopped",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceUnfit,
    title="a part of a GPU stopped and needs a reset",
    meaning="A micro-controller, a security unit or a fatal timer of the GPU stopped it. Work on it is lost; nothing "
    "new runs well until the GPU is reset.",
    known_by="Xid 62, 110, 143, 158, 169 or 173 (or another that the catalogue answers with a reset) as the first of "
    "its device.",
    disproved_by="An earlier Xid of the same device explains it, or the GPU passes dcgmi diag -r 3 without a reset.",
    counter_check="dmesg -T | grep Xid: an earlier one on PCI; dcgmi diag -r 3 without a reset: pass",
    fix=_RESET,
    verify=_VERIFY,
    sources=_SOURCES,
)
TIMED_OUT = Code(
    name="GpuContextSwitchTimeout",
    layer=Layer.L0,
    cause_class="driver-bug",
    severity=Severity.Critical,
    effect=Effect.DeviceUnfit,
    title="work on a GPU did not stop when it was asked to",
    meaning="A program's work could not be switched out or did not end in time. Often a defect of driver or firmware, "
    "sometimes a program that never yields, sometimes the card.",
    known_by="Xid 46 or 109 as the first of its device.",
    disproved_by="It comes with one program only (look there), or on one card only, whatever runs (hardware).",
    counter_check="dmesg -T | grep -e 'Xid.*: 109' -e 'Xid.*: 46': one program alone, on any GPU; or one GPU alone, "
    "with any program",
    fix=_RESET,
    verify=_VERIFY,
    sources=_SOURCES,
)
PCIE_DATA = Code(
    name="GpuPcieDataCorrupted",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.DeviceUnfit,
    title="commands for a GPU were damaged on their way over PCI Express",
    meaning="The unit of the GPU that fetches commands found them damaged, or PCI Express timed out. The catalogue has "
    "the program restarted; where it comes again it is the slot, riser or card.",
    known_by="Xid 32, 80 or 167 as the first of its device.",
    disproved_by="It follows a fault of the same program (Xid 13, 31), or never comes again.",
    counter_check="nvidia-smi -q -i PCI.0 | grep Replay: replays do not grow; dmesg | grep -i AER: nothing",
    fix=Fix(
        steps=(
            "start the program again; once is no reason to take the node out",
            "again on the same GPU: kubectl cordon NODE, drain, reset the GPU or restart the machine",
            "again: reseat card and riser, firmware of machine and card, then replace",
        ),
        risk="a reset ends what runs on the GPU",
        rollback="kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
_TIMED_OUT = frozenset((46, 109))
_START = (
    " The driver could not start the device, so rule out what is wrong with every start before the card is blamed: "
    "modules of the other kind (from Blackwell on only the open ones work), firmware, a version without this GPU."
)
_QUIET = frozenset((38, 44, 159, 163, 164, 165, 176))  # notes, see xid_notes


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for each device and kind."""
    story = story_of(facts)
    is_gsp_silent = any(True for _ in facts.said("kernel.gsp_silent"))  # that explains a switch that did not end
    for (node, pci), causes in story.by_device(Family.Engine, Family.Pcie).items():
        for code, own in (
            (PCIE_DATA, [one for one in causes if one.family == Family.Pcie and one.code not in _QUIET]),
            (TIMED_OUT, [one for one in causes if one.code in _TIMED_OUT]),
            (STOPPED, [one for one in causes if one.family == Family.Engine and one.code not in _QUIET | _TIMED_OUT]),
        ):
            is_alone = all(one.code in _QUIET | _TIMED_OUT for one in causes) and not is_gsp_silent
            if not own or (code is TIMED_OUT and not is_alone):
                continue
            starting = code is STOPPED and any(
                pci_of(said.get("pci")) in (pci, NO_PCI) for said in facts.said("kernel.adapter_init")
            )
            most = LIKELY if code is STOPPED and not starting else POSSIBLE
            yield code.finding(
                f"{own[0].where[0].upper()}{own[0].where[1:]}: {account(story, own)}{_START if starting else ''}",
                min(most, surety(own)),
                quotations(story, own),
                pci=pci,
                node=node,
                fix=verdict_fix(story, pci, node),
                # Where GSP goes silent with it, it is firmware and driver rather than the part itself.
                cause_class="driver-bug" if code is STOPPED and _silences_gsp(story, own) else None,
            )

    locked = [said.origin for said in facts.said("kernel.gpu_locked")]
    if locked and not story.events and not is_gsp_silent:
        yield TIMED_OUT.finding("The driver's watchdog says that the GPU is probably locked.", POSSIBLE, locked)


def _silences_gsp(story: Story, own: list[Event]) -> bool:
    return any(one.family == Family.Firmware for one in story.followers(own))


RULE = Rule((STOPPED, TIMED_OUT, PCIE_DATA), find)
