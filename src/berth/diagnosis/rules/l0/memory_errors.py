"""L0. Memory of a GPU: errors that ECC cannot correct, rows that wait to be remapped, repairs that failed."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Finding, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.diagnosis.xid.seen import Event, Family
from berth.diagnosis.xid.story import Story, story_of
from berth.diagnosis.xid.telling import account, quotations, surety, verdict_fix
from berth.evidence.fact import NO_PCI, Origin, Pci, Said, pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

_SOURCES = (
    "NVIDIA GPU memory error management: row remapping, page retirement, when a GPU is replaced",
    "NVIDIA Xid catalogue, 48 63 64 92 94 95 140 171 172",
)
_VERIFY = (
    "nvidia-smi -q -d ROW_REMAPPER -i PCI.0: Pending No, Remapping Failure Occurred No",
    "nvidia-smi -q -d ECC -i PCI.0: volatile uncorrectable 0; dcgmi diag -r 3: pass",
)
_RESET = Fix(
    steps=(
        "kubectl cordon NODE; end what runs on GPU PCI (drain the node where rows are to be remapped)",
        "with nothing left on it (device plugin, DCGM and exporter, too): nvidia-smi --gpu-reset -i PCI.0, "
        "or restart the machine; the reset also puts pending remappings into effect",
        "errors again soon after: dcgmi diag -r 3, field diagnostics, replace the GPU",
    ),
    risk="ends everything on that GPU; on NVSwitch machines all GPUs are reset together",
    rollback="kubectl uncordon NODE",
)

UNCORRECTED = Code(
    name="GpuMemoryUncorrectable",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceUnfit,
    title="a GPU's memory has errors that cannot be corrected",
    meaning="A program read data that ECC could not repair. The driver ends the programs concerned (Xid 94), or all of "
    "the GPU's (Xid 95); until the reset the GPU may be wrong again.",
    known_by="Xid 48, 94, 95, 140, 171 or 172 in the kernel log, or uncorrectable ECC errors counted since the "
    "driver was loaded.",
    disproved_by="The counters of uncorrectable errors are 0 and the kernel log of the whole uptime has none of these.",
    counter_check="nvidia-smi -q -d ECC,ROW_REMAPPER -i PCI.0: no uncorrectable error since the last reset",
    fix=_RESET,
    verify=_VERIFY,
    sources=_SOURCES,
)
REMAP_PENDING = Code(
    name="RowRemapPending",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.DeviceUnfit,
    title="memory of a GPU waits to be repaired at its next reset",
    meaning="Bad memory was found and a spare is assigned to it. The repair takes effect when the GPU is reset; what "
    "runs now may go on, and new work may meet the bad row.",
    known_by="Xid 63, or `Pending: Yes` of the row remapper (of page retirement before Ampere) in nvidia-smi or DCGM.",
    disproved_by="The row remapper shows Pending: No, since a reset put the repair into effect.",
    counter_check="nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT -i PCI.0: Pending No",
    fix=_RESET,
    verify=_VERIFY,
    sources=_SOURCES,
)
REMAP_FAILED = Code(
    name="RowRemapFailed",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceUnfit,
    title="a GPU cannot repair its memory any more",
    meaning="There is no spare left for a bad row. The GPU goes on to return errors from it, and no reset changes "
    "that.",
    known_by="Xid 64, or `Remapping Failure Occurred: Yes` in nvidia-smi, or the failure flag of DCGM.",
    disproved_by="After a reset the flag is No and Xid 64 does not come back.",
    counter_check="nvidia-smi -q -d ROW_REMAPPER -i PCI.0: Remapping Failure Occurred No",
    fix=Fix(
        steps=(
            "kubectl cordon NODE, then drain it",
            "restart the machine once: a pending remapping may still take effect; NVIDIA's catalogue says reset, "
            "AWS takes the node out",
            "the flag stays: this is a reason to have the GPU replaced; nvidia-bug-report.sh goes with the ticket",
        ),
        risk="takes the node out until the card is replaced",
        rollback="kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
CORRECTED = Code(
    name="GpuMemoryErrorsCorrected",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Warning,
    effect=Effect.DeviceUnfit,
    title="a GPU corrects memory errors at a high rate",
    meaning="Nothing is wrong yet: ECC corrects single bits. A high rate often comes before errors that it cannot.",
    known_by="Xid 92 in the kernel log, or millions of corrected errors since the driver was loaded.",
    disproved_by="The rate is low over days; the catalogue lets this code pass.",
    counter_check="nvidia-smi -q -d ECC -i PCI.0: corrected errors do not grow",
    fix=Fix(("watch the counters; run dcgmi diag -r 3 at the next chance",), "none", "nothing to undo"),
    verify=_VERIFY,
    sources=_SOURCES,
)

SPARES_GONE = Code(
    name="RowRemapSparesUsedUp",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Warning,
    effect=Effect.DeviceUnfit,
    title="a GPU has no spare memory rows left in some bank",
    meaning="Nothing fails now. The next uncorrectable error in that bank cannot be repaired, and the GPU is then to "
    "be replaced.",
    known_by="A bank without spares in the remap availability of nvidia-smi, or 512 remapped rows and more.",
    disproved_by="The histogram shows no bank under None.",
    counter_check="nvidia-smi -q -d ROW_REMAPPER -i PCI.0: None 0 bank(s)",
    fix=Fix(
        ("watch this GPU; plan its replacement", "kubectl cordon NODE at the next uncorrectable error"),
        "none",
        "nothing to undo",
    ),
    verify=_VERIFY,
    sources=(*_SOURCES, "Azure's node health checks: limit of 512 rows"),
)

MANY_ROWS = 512
_GRAVE = frozenset((48, 94, 95, 140, 168, 171, 172))


class _Seen:
    """What is known of one device's memory."""

    def __init__(self) -> None:
        self.causes: list[Event] = []
        self.uncorrected: list[tuple[str, Origin]] = []
        self.pending: list[Origin] = []
        self.failed: list[Origin] = []
        self.used_up: list[Origin] = []
        self.corrected: list[Origin] = []


def find(facts: Facts) -> Iterator[Answer]:
    """The gravest of each device, with all that was said of it."""
    story = story_of(facts)
    seen: dict[tuple[str, Pci], _Seen] = {}
    for key, causes in story.by_device(Family.Memory).items():
        seen.setdefault(key, _Seen()).causes = causes
    for device in facts.of(DeviceSeen):
        _of_device(device, seen)
    numbered = {one.origin.text for one in story.events}
    numbered |= {said.origin.text for said in facts.said("cuda.ecc")}  # CUDA's words have a rule of their own
    printed = {device.origin.source for device in facts.of(DeviceSeen) if _is_printed(device)}
    for said in facts.said("host.", "dcgm_health."):
        if said.origin.text not in numbered and said.origin.source not in printed:
            _of_sentence(said, seen)
    for (node, pci), known in seen.items():
        if answer := _judged(story, node, pci, known):
            yield answer


def _is_printed(device: DeviceSeen) -> bool:
    """nvidia-smi printed the device with what is known of its memory: its own lines say nothing more."""
    known = (
        device.is_remap_pending,
        device.is_remap_failed,
        device.is_retirement_pending,
        device.uncorrected_volatile,
        device.sram_uncorrected_volatile,
        device.dram_uncorrected_volatile,
    )
    return device.form in ("query", "xml", "csv") and any(one is not None for one in known)


def _of_sentence(said: Said, seen: dict[tuple[str, Pci], _Seen]) -> None:
    if said.message in ("host.remap_failed", "dcgm_health.remap_failed"):
        _only(seen).failed.append(said.origin)
    elif said.message in ("host.remap_pending", "host.retirement_pending", "dcgm_health.remap_pending"):
        _only(seen).pending.append(said.origin)
    elif said.message == "host.ecc_uncorrected":
        _only(seen).uncorrected.append(("uncorrectable ECC errors are counted", said.origin))
    elif said.message == "dcgm_health.memory_bad":
        _only(seen).uncorrected.append((f"DCGM found bad memory{_of_gpu(said)}", said.origin))
    elif said.message == "host.ecc_volatile":
        words = f"{said.get('count')} uncorrectable ECC errors since the driver was loaded"
        _only(seen).uncorrected.append((words, said.origin))
    elif said.message == "host.ecc_corrected_high":
        _only(seen).corrected.append(said.origin)
    elif said.message == "host.sram_threshold":
        _only(seen).uncorrected.append(("errors of the SRAM passed their limit", said.origin))


def _of_gpu(said: Said) -> str:
    return f" on GPU {gpu}" if (gpu := value(said, "gpu")) else ""


def _only(seen: dict[tuple[str, Pci], _Seen]) -> _Seen:
    """Where a sentence names no device: the only one that is known, else one that nobody named."""
    return next(iter(seen.values())) if len(seen) == 1 else seen.setdefault(("", NO_PCI), _Seen())


def _of_device(device: DeviceSeen, seen: dict[tuple[str, Pci], _Seen]) -> None:
    key = (device.node, device.pci)
    if device.is_remap_failed or device.is_memory_unrepairable:
        seen.setdefault(key, _Seen()).failed.append(device.quote("is_remap_failed", "is_memory_unrepairable"))
    if device.is_remap_pending or device.is_retirement_pending or device.is_channel_repair_pending:
        quote = device.quote("is_remap_pending", "is_retirement_pending", "is_channel_repair_pending")
        seen.setdefault(key, _Seen()).pending.append(quote)
    if device.remap_banks.get("none", 0) > 0 or (device.remapped_uncorrectable or 0) >= MANY_ROWS:
        seen.setdefault(key, _Seen()).used_up.append(device.quote("remap_banks", "remapped_uncorrectable"))
    if device.uncorrected_volatile:
        words = f"{device.uncorrected_volatile} uncorrectable ECC errors since the driver was loaded"
        seen.setdefault(key, _Seen()).uncorrected.append((words, device.quote("uncorrected_volatile")))
    if device.is_sram_threshold_exceeded:
        quote = device.quote("is_sram_threshold_exceeded")
        seen.setdefault(key, _Seen()).uncorrected.append(("errors of the SRAM passed their limit", quote))


def _judged(story: Story, node: str, pci: Pci, known: _Seen) -> Finding | None:
    codes = {one.code for one in known.causes}
    where = f"GPU {pci_words(pci)}" if pci != NO_PCI else "A GPU"
    facts = [words for words, _ in known.uncorrected]
    if known.failed or 64 in codes:
        code, first = REMAP_FAILED, f"{where} has no spare left for bad memory."
    elif codes & _GRAVE or known.uncorrected:
        code, first = UNCORRECTED, f"{where} has memory errors that ECC cannot correct."
    elif known.pending or codes & {63, 156}:
        code, first = REMAP_PENDING, f"{where} has a repair of its memory pending until it is reset."
    elif known.used_up:
        code, first = SPARES_GONE, f"{where} has memory with no spare rows left, or very many rows remapped."
    elif 92 in codes or known.corrected:
        code, first = CORRECTED, f"{where} corrects single-bit errors at a high rate."
    else:
        return None
    if 63 in codes and codes & _GRAVE:
        facts.append("rows are to be remapped: drain, then reset")
    elif 95 in codes:
        facts.append("the error was not kept to one program: reset before anything else runs")
    elif 94 in codes:
        facts.append("the error was kept to one program: start that again, reset when convenient")
    told = account(story, known.causes) if known.causes else ""
    printed = [*known.failed, *known.pending, *known.used_up, *known.corrected]
    counted = [quote for _, quote in known.uncorrected]
    sure = surety(known.causes) if known.causes else ESTABLISHED if printed else LIKELY
    if code in (CORRECTED, SPARES_GONE):
        # What only warns does not stand before what has failed, unless somebody counted it.
        sure = POSSIBLE if known.corrected and not known.causes else WEAK
    return code.finding(
        " ".join(part for part in (first, _sentence(facts), told) if part),
        sure,
        [*quotations(story, known.causes), *printed, *counted],
        pci=pci,
        node=node,
        fix=verdict_fix(story, pci, node) if code is not REMAP_FAILED else None,
    )


def _sentence(facts: list[str]) -> str:
    words = "; ".join(facts)
    return f"{words[0].upper()}{words[1:]}." if words else ""


RULE = Rule((UNCORRECTED, REMAP_PENDING, REMAP_FAILED, SPARES_GONE, CORRECTED), find)
