"""Tables of jobs over time: policies side by side for each trace, then waits by size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import isnan
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from berth.views.records import to_csv
from berth.views.tables import HEADER_STYLE, QUIET_STYLE, Column, say, show_whole, table

if TYPE_CHECKING:
    from berth.simulation.queueing.figures import Figures

_HEADS = (
    "policy", "avg JCT", "p50", "p95", "p99", "makespan", "avg wait", "in use", "preempted", "lost GPU-h",
)  # fmt: skip


def show(runs: Sequence[Figures], screen: Console) -> None:
    """One table a trace; the lowest average of each is marked."""
    for trace, some in groupby(runs, key=lambda run: run.trace):
        group = list(some)
        first = group[0]
        title = Text(trace, style=HEADER_STYLE)
        title.append(f"  {first.jobs} jobs on {first.gpus} GPUs; {first.overhead}", style="not bold dim")
        screen.print(title, soft_wrap=True)
        show_whole(screen, table([Column(_HEADS[0]), *(Column(h, number=True) for h in _HEADS[1:])], _rows(group), 2))
        screen.print()
        screen.print(Text("Average wait for the first start, by GPUs of a job", style=HEADER_STYLE), soft_wrap=True)
        show_whole(screen, _sizes(group))
        for run in group:
            if run.deadlines_met or run.deadlines_missed:
                of = run.deadlines_met + run.deadlines_missed
                say(screen, f"{run.policy}: {run.deadlines_met} of {of} deadlines met.")
        for note in dict.fromkeys(note for run in group for note in run.notes):
            say(screen, f"Note: {note}.", style=QUIET_STYLE)
        screen.print()
    say(screen, "JCT: from submission to end. * is the lowest average of its trace.", style=QUIET_STYLE)


def _rows(runs: Sequence[Figures]) -> list[tuple[str, ...]]:
    best = min((run.avg_jct_s for run in runs if run.is_whole), default=-1.0)
    starred = [len(runs) > 1 and run.is_whole and run.avg_jct_s == best for run in runs]
    return [
        (
            run.policy, duration(run.avg_jct_s) + ("*" if has_star else ""),
            duration(run.p50_jct_s), duration(run.p95_jct_s), duration(run.p99_jct_s), duration(run.makespan_s),
            duration(run.avg_wait_s), f"{100 * run.gpu_utilisation:.1f} %", str(run.preemptions),
            hours(run.lost_gpu_hours).removesuffix(" GPU-h"),
        )
        for run, has_star in zip(runs, starred, strict=True)
    ]  # fmt: skip


def _sizes(runs: Sequence[Figures]) -> Any:
    names = list(dict.fromkeys(size.gpus for run in runs for size in run.sizes))
    rows = [
        (run.policy, *(duration(waits[name]) if name in waits else "" for name in names))
        for run in runs
        for waits in [{size.gpus: size.avg_wait_s for size in run.sizes}]
    ]
    return table([Column("policy"), *(Column(name, number=True) for name in names)], rows, 2)


def duration(seconds: float) -> str:
    """`42 s`, `7.5 min`, `3.2 h`, `11.3 d`: three digits at most matter to a reader; `-` for NaN, no time at all."""
    if isnan(seconds):
        return "-"
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def hours(gpu_hours: float) -> str:
    """`0.42 GPU-h`, `4.2 GPU-h`, `42 GPU-h`: what is little is not nothing."""
    digits = 0 if gpu_hours >= 10 or not gpu_hours else 1 if gpu_hours >= 1 else 2
    return f"{max(gpu_hours, 0.01) if gpu_hours else 0:,.{digits}f} GPU-h"


def record(runs: Sequence[Figures]) -> dict[str, Any]:
    return {"kind": "SimulatedJobs", "runs": list(runs)}


_COLUMNS = (
    "trace", "policy", "jobs", "gpus", "finished", "avg_jct_s", "p50_jct_s", "p95_jct_s", "p99_jct_s", "makespan_s",
    "avg_wait_s", "gpu_utilisation", "preemptions", "lost_gpu_hours", "stranded_gpu_hours", "deadlines_met",
    "deadlines_missed", "decisions_per_second",
)  # fmt: skip


def csv_of(runs: Iterable[Figures]) -> str:
    """One line a run; empty where there is no time."""
    return to_csv(_COLUMNS, [[_cell(getattr(run, column)) for column in _COLUMNS] for run in runs])


def _cell(value: object) -> object:
    return "" if isinstance(value, float) and isnan(value) else value
