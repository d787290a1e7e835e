"""L6. Memory of a device as an account: peaks that do not fit together, and a device that fills up steadily."""

from __future__ import annotations

from collections.abc import Iterator

from berth.base.units import duration
from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.ledger import accounts
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.boundary_facts import Filling, Holder

GIB = 2**30

PEAKS = Code(
    name="GpuMemoryPeaksExceed",
    layer=Layer.L6,
    cause_class="capacity",
    severity=Severity.Warning,
    effect=Effect.MemoryShort,
    title="the peaks of those who share a GPU do not fit into its memory together",
    meaning="It works as long as they have their peaks at different times. When they do not, one of them gets an "
    "out-of-memory error, and with time-slicing or MPS a fault of one may end all.",
    known_by="The agent's peaks of all who hold the device, added up, are more than its memory.",
    disproved_by="The holders never run at the same time.",
    counter_check="berth ledger NODE: never more than one holder at a time",
    fix=Fix(
        steps=(
            "move the largest or the least trusted to a device of its own, or to a MIG instance",
            "cap each one's memory (framework setting, MPS limit) below its share",
        ),
        risk="a cap that is too low ends the program",
        rollback="take the cap away",
    ),
    verify=("berth ledger NODE: the peaks fit",),
    sources=("NVIDIA device plugin: time-slicing has no memory isolation",),
)
FILLS = Code(
    name="GpuMemoryFillsUp",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Warning,
    effect=Effect.MemoryShort,
    title="a GPU's memory fills up steadily",
    meaning="A program keeps what it no longer needs, and ends with an out-of-memory error after hours.",
    known_by="The agent's readings of the device's memory lie on a line that rises.",
    disproved_by="It levels off: caches and pools grow to their limit and stay.",
    counter_check="torch.cuda.memory_allocated and memory_reserved over time: both level off",
    fix=Fix(
        steps=(
            "find what grows: tensors kept in lists, a cache of keys and values without bound",
            "fragmentation: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "until then: a cap on memory, and a restart before it is full",
        ),
        risk="a restart loses what was not saved",
        rollback="nothing to undo",
    ),
    verify=("two hours under load: the curve is flat",),
    sources=("PyTorch: CUDA memory management",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for account in accounts(facts):
        for line in account.devices:
            if len(line.holders) > 1 and line.memory_bytes and line.peaks_bytes > line.memory_bytes:
                needs, has = line.peaks_bytes / GIB, line.memory_bytes / GIB
                cause = f"{line.id} would need {needs:.1f} of {has:.1f} GiB; it is held by {len(line.holders)}."
                evidence = [one for one in facts.of(Holder) if one.device == line.id]
                yield PEAKS.finding(cause, LIKELY, evidence, node=account.node, subject=f"{line.id} of {account.node}")
    for filling in facts.of(Filling):
        cause = f"{filling.device} is full in {duration(filling.full_in_s)} at the rate at which its memory grows."
        where = f"{filling.device} of {filling.node}"
        yield FILLS.finding(cause, LIKELY, [filling], node=filling.node, subject=where)


RULE = Rule((PEAKS, FILLS), find)
