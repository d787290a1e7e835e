"""What `berth queue` prints: the queues as a tree, and who waits in them, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from berth.base.units import counted, duration, from_milli
from berth.model.queue import ANY_CLASS
from berth.model.reasons import Answer, Verdict
from berth.model.told import Told
from berth.scheduling.lines import InLine, QueueLine
from berth.scheduling.quota import milli_of
from berth.views.records import to_csv
from berth.views.starts import Ahead, ahead_words, expected
from berth.views.tables import QUIET_STYLE, Column, show_whole, table
from berth.views.told import moment, verdict_words

if TYPE_CHECKING:
    from berth.scheduling.starts import Start

OURS = "scheduler"  # who said it: the scheduler, by its Verdict
HERE = "here"  # or whoever asks, by the same rules
UNKNOWN = (0.0, 0.0, 0.0)
MOST_OWNERS = 8  # told of who is ahead


@dataclass(frozen=True)
class Waiting:
    """A workload that waits. Moments are seconds since the epoch; 0.0 and None: not known."""

    key: str
    kind: str
    queue: str
    verdict: str
    reason: str
    sentence: str
    pods: int
    gpu_milli: int
    position: int = 0
    ahead: int | None = None
    priority: int | None = None
    created_s: float = 0.0
    since_s: float = 0.0  # the reason has held
    at_s: float = 0.0  # it was last seen to hold
    starts_s: tuple[float, float, float] = UNKNOWN  # p10, p50, p90 of its first start
    ahead_of: tuple[Ahead, ...] = ()  # who is decided before it, by owner; () where nobody may know
    said_by: str = HERE
    scheduler: str = ""


def ahead_by_owner(inline: Sequence[InLine]) -> Iterator[tuple[Ahead, ...]]:
    """For each in line, in its order, the owners of those before it: who asks for most first, the last ones as one."""
    counts: dict[str, tuple[int, int]] = {}
    for line in inline:
        ranked = sorted(counts.items(), key=lambda item: (-item[1][1], item[0]))
        some = [Ahead(owner, number, milli) for owner, (number, milli) in ranked[:MOST_OWNERS]]
        if rest := ranked[MOST_OWNERS:]:
            some.append(Ahead("", sum(one[0] for _, one in rest), sum(one[1] for _, one in rest)))
        yield tuple(some)
        number, milli = counts.get(line.workload.namespace, (0, 0))
        counts[line.workload.namespace] = (number + 1, milli + milli_of(line.workload))


def computed(
    line: InLine, verdict: Verdict | None, now_s: float, start: Start | None = None, ahead_of: tuple[Ahead, ...] = ()
) -> Waiting:
    """What was worked out just now; without a verdict there is room."""
    said = verdict or Verdict(line.workload.key, Answer.Fits)
    cause = said.causes[0] if said.causes else None
    workload = line.workload
    return Waiting(
        key=workload.key,
        kind=workload.kind,
        queue=line.queue,
        verdict=said.answer.value,
        reason=cause.reason.name if cause else "",
        sentence=cause.sentence if cause else "",
        pods=workload.pod_count,
        gpu_milli=milli_of(workload),
        position=line.position,
        ahead=line.ahead,
        priority=workload.priority,
        created_s=workload.created_s,
        at_s=now_s,
        starts_s=(start.p10_s, start.p50_s, start.p90_s) if start else UNKNOWN,
        ahead_of=ahead_of,
        scheduler=workload.scheduler,
    )


def said(
    told: Told, line: InLine | None = None, start: Start | None = None, ahead_of: tuple[Ahead, ...] = ()
) -> Waiting:
    """What the scheduler has said, its place in line included: whoever decides knows the order. Where it has said no
    place, that of the line, and where it has said no start, the one that was worked out just now."""
    workload = line.workload if line else None
    return Waiting(
        key=told.key,
        kind=told.kind,
        queue=line.queue if line else told.queue,
        verdict=told.verdict,
        reason=told.reason,
        sentence=told.sentence,
        pods=told.pods or (workload.pod_count if workload else 0),
        gpu_milli=told.gpu_milli or (milli_of(workload) if workload else 0),
        position=told.position or (line.position if line else 0),
        ahead=told.ahead if told.ahead is not None or line is None else line.ahead,
        priority=workload.priority if workload else None,
        created_s=workload.created_s if workload else 0.0,
        since_s=told.since_s,
        at_s=told.at_s,
        starts_s=told.starts_s if told.starts_s[1] or not start else (start.p10_s, start.p50_s, start.p90_s),
        ahead_of=ahead_of,
        said_by=OURS,
        scheduler=workload.scheduler if workload else "",
    )


def show(
    queues: Sequence[QueueLine], waiting: Sequence[Waiting], screen: Console, now_s: float, wide: bool = False
) -> None:
    """Queues first, then those that wait."""
    if queues:
        _show_queues(queues, screen, wide)
    if queues and waiting:
        screen.print()
    if waiting:
        _show_waiting(waiting, screen, now_s, wide)
    if not queues and not waiting:
        screen.print("No queues, and nothing waits.")


def _show_queues(queues: Sequence[QueueLine], screen: Console, wide: bool) -> None:
    columns = [
        Column("QUEUE"), Column("WEIGHT", True), Column("USED", True), Column("QUOTA", True), Column("LIMIT", True),
        Column("RUNNING", True), Column("WAITING", True), Column("GPUS WAITING", True),
    ]  # fmt: skip
    if wide:
        columns += [Column("PARENT"), Column("USED BY CLASS")]
    rows = []
    for q in queues:
        indent = "  " * q.depth
        cells: list[Any] = [
            Text.assemble(indent, (q.name, "" if q.is_object else QUIET_STYLE)),
            str(q.weight),
            from_milli(q.used_milli[ANY_CLASS]) if ANY_CLASS in q.used_milli else "-",
            amounts(q.quota),
            amounts(q.limit),
            "-" if q.running < 0 else str(q.running),
            str(q.waiting),
            from_milli(q.waiting_milli),
        ]
        if wide:
            by_class = {c: milli / 1000 for c, milli in q.used_milli.items() if c != ANY_CLASS}
            cells += [q.parent or "-", amounts(by_class)]
        rows.append(cells)
    show_whole(screen, table(columns, rows))


def _show_waiting(waiting: Sequence[Waiting], screen: Console, now_s: float, wide: bool) -> None:
    columns = [
        Column("QUEUE"), Column("#", True), Column("WORKLOAD"), Column("KIND"), Column("PODS", True),
        Column("GPUS", True), Column("VERDICT"), Column("REASON"), Column("SINCE", True), Column("AHEAD"),
        Column("STARTS"),
    ]  # fmt: skip
    if wide:
        columns += [Column("PRIORITY", True), Column("SAID BY"), Column("SENTENCE")]
    rows = []
    for w in waiting:
        words, style = verdict_words(w.verdict)
        since = w.since_s or w.created_s
        cells: list[Any] = [
            w.queue or "-", str(w.position) if w.position else "-", w.key, w.kind, str(w.pods) if w.pods else "-",
            from_milli(w.gpu_milli), Text(words, style=style), w.reason or "-",
            duration(max(0.0, now_s - since)) if since else "-", ahead(w), expected(w.starts_s, now_s) or "-",
        ]  # fmt: skip
        if wide:
            cells += ["-" if w.priority is None else str(w.priority), w.said_by, w.sentence or "-"]
        rows.append(cells)
    show_whole(screen, table(columns, rows))
    number = counted(len(waiting), "workload waits", "workloads wait")
    milli = sum(w.gpu_milli for w in waiting)
    gpus = f"{from_milli(milli)} GPU{'' if milli == 1000 else 's'}"
    screen.print(Text(f"{number} for {gpus}", style=QUIET_STYLE), soft_wrap=True)


def ahead(w: Waiting) -> str:
    """`6: research 5 for 40 GPUs, vision 1 for 8 GPUs`; the number alone where no more may be known."""
    if w.ahead is None:
        return "-"
    owners = ahead_words(w.ahead_of)
    return f"{w.ahead}: {owners}" if owners else str(w.ahead)


def amounts(by_class: Mapping[str, float]) -> str:
    """`24`, `H100-80GB 32`, or `24 (H100-80GB 16, L4-24GB 4)`: all classes together first."""
    total = by_class.get(ANY_CLASS)
    classes = ", ".join(f"{name} {number:g}" for name, number in sorted(by_class.items()) if name != ANY_CLASS)
    if total is None:
        return classes or "-"
    return f"{total:g} ({classes})" if classes else f"{total:g}"


def record(queues: Sequence[QueueLine], waiting: Sequence[Waiting], notes: Sequence[str]) -> dict[str, Any]:
    """All of it as JSON."""
    return {
        "kind": "QueueList",
        "queues": [queue_record(q) for q in queues],
        "waiting": [waiting_record(w) for w in waiting],
        "notes": list(notes),
    }


def queue_record(q: QueueLine) -> dict[str, Any]:
    return {
        "name": q.name,
        "parent": q.parent or None,
        "weight": q.weight,
        "object": q.is_object,
        "used_milli": dict(q.used_milli) or None,
        "quota": dict(q.quota),
        "limit": dict(q.limit),
        "running": q.running if q.running >= 0 else None,
        "waiting": q.waiting,
        "waiting_milli": q.waiting_milli,
    }


def waiting_record(w: Waiting) -> dict[str, Any]:
    return {
        "workload": w.key,
        "kind": w.kind,
        "queue": w.queue or None,
        "position": w.position or None,
        "ahead": w.ahead,
        "priority": w.priority,
        "pods": w.pods,
        "gpus": w.gpu_milli / 1000,
        "verdict": w.verdict,
        "reason": w.reason or None,
        "sentence": w.sentence or None,
        "created": moment(w.created_s),
        "since": moment(w.since_s),
        "at": moment(w.at_s),
        "aheadOf": [
            {"owner": one.owner or None, "workloads": one.workloads, "gpus": one.gpu_milli / 1000} for one in w.ahead_of
        ],
        "expectedStart": start_record(w.starts_s),
        "saidBy": w.said_by,
        "scheduler": w.scheduler or None,
    }


def start_record(starts_s: tuple[float, float, float]) -> dict[str, str | None] | None:
    """p10, p50 and p90 as moments; None where nothing is known, and for one that lies beyond what was looked at."""
    if not starts_s[1]:
        return None
    found = (moment(at) if at and isfinite(at) else None for at in starts_s)
    return dict(zip(("p10", "p50", "p90"), found, strict=True))


def queues_csv(queues: Sequence[QueueLine]) -> str:
    """A line a queue; GPUs used in milli."""
    heads = ("queue", "parent", "weight", "used_milli", "quota", "limit", "running", "waiting", "waiting_milli")
    return to_csv(
        heads,
        [
            (
                q.name, q.parent, q.weight, q.used_milli.get(ANY_CLASS, ""), _cell(q.quota), _cell(q.limit),
                q.running if q.running >= 0 else "", q.waiting, q.waiting_milli,
            )
            for q in queues
        ],
    )  # fmt: skip


def waiting_csv(waiting: Sequence[Waiting]) -> str:
    """A line a workload that waits."""
    heads = (
        "queue", "position", "workload", "kind", "pods", "gpus", "verdict", "reason", "since", "sentence", "ahead",
        "p10", "p50", "p90",
    )  # fmt: skip
    return to_csv(
        heads,
        [
            (w.queue, w.position or "", w.key, w.kind, w.pods, w.gpu_milli / 1000, w.verdict, w.reason,
             moment(w.since_s or w.created_s) or "", w.sentence, "" if w.ahead is None else w.ahead,
             *(at or "" for at in (start_record(w.starts_s) or dict.fromkeys("abc")).values()))
            for w in waiting
        ],
    )  # fmt: skip


def _cell(by_class: Mapping[str, int]) -> str:
    return ";".join(f"{name}={number}" for name, number in sorted(by_class.items()))
