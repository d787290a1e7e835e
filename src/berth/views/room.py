"""What `nodes` and `free` print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from berth.base.units import counted, from_milli, gib
from berth.scheduling.room import POD_SIZES, ClassRoom, Counted, Fragmentation, NodeRoom
from berth.views.records import to_csv
from berth.views.tables import QUIET_STYLE, Column, pct, show_whole, table

STATE_STYLE = {
    "ready": "", "suspect": "yellow", "cordoned": "yellow", "not ready": "red", "unfit": "red", "tainted": "dim",
}  # fmt: skip
_IN_SERVICE = ("ready", "suspect", "tainted")


def show_nodes(
    rows: Sequence[NodeRoom], screen: Console, wide: bool = False, labels: str = "", everything: bool = False
) -> None:
    """A line a node, those with most free GPUs last. `labels` are what nodes were chosen by; `everything`: not only
    those with GPUs."""
    if not rows:
        screen.print(nothing("No node" if everything else "No node with GPUs", labels), markup=False, soft_wrap=True)
        return
    columns = [
        Column("NODE"), Column("GPU CLASS"), Column("STATE"), Column("GPUS", True), Column("HEALTHY", True),
        Column("ALLOCATED", True), Column("FREE", True),
    ]  # fmt: skip
    levels = [name for name, _ in rows[0].domains]
    has_reserved = any(n.reserved_milli for n in rows)
    has_codes, has_agents = any(n.code for n in rows), wide and any(n.agent for n in rows)
    if has_reserved:
        columns.append(Column("RESERVED", True))
    if has_codes:
        columns.insert(3, Column("CODE"))
    if has_agents:
        columns.append(Column("AGENT"))
    if wide:
        columns += [Column("CPU FREE", True), Column("MEMORY FREE", True), Column("COUNTED")]
    levels = levels if wide else levels[-1:]
    columns += [Column(name.upper()) for name in levels]
    lines = []
    for n in rows:
        cells: list[Any] = [
            n.name, n.gpu_class or "-", Text(n.state, style=STATE_STYLE[n.state]), str(n.gpus), str(n.healthy),
            from_milli(n.allocated_milli), from_milli(n.free_milli),
        ]  # fmt: skip
        if has_reserved:
            cells.append(from_milli(n.reserved_milli))
        if has_codes:
            cells.insert(3, n.code or "-")
        if has_agents:
            cells.append(n.agent or "-")
        if wide:
            cells += [
                f"{from_milli(n.cpu_free_milli)}/{from_milli(n.cpu_milli)}",
                f"{gib(n.memory_free_bytes)}",
                ", ".join(f"{c.resource} {c.free}/{c.total}" for c in n.counted) or "-",
            ]
        lines.append(cells + [name.rpartition("/")[2] or "-" for level, name in n.domains if level in levels])
    show_whole(screen, table(columns, lines))
    total, free = sum(n.gpus for n in rows), sum(n.free_milli for n in rows if n.state in _IN_SERVICE)
    away = sum(n.gpus for n in rows if n.state not in _IN_SERVICE)
    held = f", {counted(away, 'GPU')} on nodes held back" if away else ""
    doubtful = sum(n.gpus for n in rows if n.state == "suspect")
    held += f", {counted(doubtful, 'GPU')} on suspect nodes" if doubtful else ""
    total_line = f"{counted(len(rows), 'node')}, {counted(total, 'GPU')}: {from_milli(free)} free{held}"
    screen.print(Text(total_line, style=QUIET_STYLE), soft_wrap=True)


def nothing(what: str, labels: str) -> str:
    """That there is none, or none with these labels: where there is one without them, that is another thing."""
    return f"{what} has the labels {labels}." if labels else f"{what}."


def show_free(
    rows: Sequence[ClassRoom],
    counts: Sequence[Counted],
    fragmentation: Fragmentation,
    screen: Console,
    level: str | None = None,
    labels: str = "",
    reserved: Sequence[tuple[str, int]] = (),
) -> None:
    """A line a GPU class (and domain), then for each class the largest gangs by level. `reserved` are reservations and
    the GPUs of each that nobody has now."""
    if not rows and not counts:
        screen.print(nothing("No node with GPUs", labels) if labels else "No GPUs.", markup=False, soft_wrap=True)
        return
    if rows:
        head = [Column("GPU CLASS"), *([Column(level.upper())] if level else [])]
        columns = head + [
            Column(t, True) for t in ("NODES", "GPUS", "HEALTHY", "ALLOCATED", "FREE", "HELD BACK")
        ]  # fmt: skip
        has_unfit, has_suspect = any(r.unfit for r in rows), any(r.suspect for r in rows)
        columns += [Column("UNFIT", True)] if has_unfit else []
        columns += [Column("SUSPECT", True)] if has_suspect else []
        has_reserved = any(r.reserved_milli for r in rows)
        columns += [Column("RESERVED", True)] if has_reserved else []
        show_whole(
            screen,
            table(
                columns,
                [
                    [
                        r.gpu_class,
                        *([r.domain] if level else []),
                        str(r.nodes),
                        str(r.gpus),
                        str(r.healthy),
                        from_milli(r.allocated_milli),
                        from_milli(r.free_milli),
                        str(r.held_back),
                        *([str(r.unfit)] if has_unfit else []),
                        *([str(r.suspect)] if has_suspect else []),
                        *([from_milli(r.reserved_milli)] if has_reserved else []),
                    ]
                    for r in rows
                ],
            ),
        )
        screen.print()
        if has_reserved:
            screen.print(Text(_kept(reserved), style=QUIET_STYLE), soft_wrap=True)
            screen.print()
        _gangs(rows, screen, level)
    if counts:
        screen.print(Text("Counted resources on nodes in service", style="bold"))
        show_whole(
            screen,
            table(
                [Column("RESOURCE"), Column("TOTAL", True), Column("FREE", True)],
                [[c.resource, str(c.total), str(c.free)] for c in counts],
            ),
        )
        screen.print()
    if fragmentation.share is not None:
        screen.print(
            Text(
                f"Fragmentation: {pct(100 * fragmentation.share)} of the free GPUs are of no use to a typical pod of "
                f"the {counted(fragmentation.classes, 'kind')} seen here.",
                style=QUIET_STYLE,
            ),
            soft_wrap=True,
        )


def _kept(reserved: Sequence[tuple[str, int]]) -> str:
    """Of which reservations: they are not free for others, whoever asks."""
    some = [f"{name} {counted(gpus, 'GPU')}" for name, gpus in sorted(reserved, key=lambda one: (-one[1], one[0]))]
    more = f" and {counted(len(some) - 3, 'other')}" if len(some) > 3 else ""
    return f"Reserved, and not counted as free: {', '.join(some[:3])}{more}."


def _gangs(rows: Sequence[ClassRoom], screen: Console, level: str | None) -> None:
    screen.print(Text("Largest gang that fits now, in pods of 1, 2, 4, 8 GPUs", style="bold"))
    head = [Column("GPU CLASS"), *([Column(level.upper())] if level else []), Column("IN ONE")]
    lines = []
    for r in rows:
        for i, g in enumerate(r.gangs):
            first = [r.gpu_class if i == 0 else "", *([r.domain if i == 0 else ""] if level else [])]
            lines.append([*first, g.level, *(str(p) for p in g.pods), g.where])
    show_whole(
        screen,
        table([*head, *(Column(f"{k} GPU{'s' if k > 1 else ''}", True) for k in POD_SIZES), Column("WHERE")], lines),
    )
    screen.print()


def node_record(n: NodeRoom) -> dict[str, Any]:
    """A node as JSON."""
    record = asdict(n)
    record["domains"] = dict(n.domains)
    return record


def free_record(
    rows: Sequence[ClassRoom], counts: Sequence[Counted], fragmentation: Fragmentation, notes: Sequence[str],
    reserved: Sequence[tuple[str, int]] = (),
) -> dict[str, Any]:
    """All of `free` as JSON; gangs by level and GPUs of one pod."""
    return {
        "kind": "Free",
        "classes": [
            {
                **asdict(r),
                "gangs": [
                    {
                        "level": g.level,
                        "where": g.where,
                        "pods": {str(k): p for k, p in zip(POD_SIZES, g.pods, strict=True)},
                    }
                    for g in r.gangs
                ],
            }
            for r in rows
        ],
        "counted": [asdict(c) for c in counts],
        "fragmentation": asdict(fragmentation),
        "reserved": [{"reservation": name, "gpus": gpus} for name, gpus in reserved],
        "notes": list(notes),
    }


def nodes_csv(rows: Sequence[NodeRoom]) -> str:
    """A line a node; GPU amounts in milli."""
    heads = (
        "node", "gpu_class", "state", "gpus", "healthy", "allocated_milli", "free_milli", "whole_free", "code", "agent",
        "reserved_milli",
    )  # fmt: skip
    return to_csv(heads, [[getattr(n, h if h != "node" else "name") for h in heads] for n in rows])


def free_csv(rows: Sequence[ClassRoom]) -> str:
    """A line a class and domain; GPU amounts in milli."""
    heads = (
        "gpu_class", "domain", "nodes", "gpus", "healthy", "allocated_milli", "free_milli", "held_back", "unfit",
        "suspect", "reserved_milli",
    )  # fmt: skip
    return to_csv(heads, [[getattr(r, h) for h in heads] for r in rows])
