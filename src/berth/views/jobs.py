"""Tables of jobs over time: policies side by side for each trace, then waits by size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from math import isnan
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from berth.base.units import counted
from berth.views.records import to_csv
from berth.views.tables import HEADER_STYLE, QUIET_STYLE, Column, say, show_whole, table

if TYPE_CHECKING:
    from berth.simulation.queueing.figures import Figures

_HEADS = (
    "policy", "avg JCT", "p50", "p95", "p99", "makespan", "avg wait", "in use", "preempted", "lost GPU-h",
)  # fmt: skip


# Of a run, in the order in which they are told.
TIMES: tuple[Callable[[Figures], float], ...] = (
    lambda run: run.avg_jct_s, lambda run: run.p50_jct_s, lambda run: run.p95_jct_s, lambda run: run.p99_jct_s,
    lambda run: run.makespan_s, lambda run: run.avg_wait_s,
)  # fmt: skip


def show(runs: Sequence[Figures], screen: Console) -> None:
    """One table a trace; the lowest average of each is marked."""
    for trace, some in groupby(runs, key=lambda run: run.trace):
        group = list(some)
        first = group[0]
        title = Text(trace, style=HEADER_STYLE)
        of = f"{counted(first.jobs, 'job')} on {counted(first.gpus, 'GPU')}"
        title.append(f"  {of}; {first.overhead}", style="not bold dim")
        screen.print(title, soft_wrap=True)
        show_whole(screen, table([Column(_HEADS[0]), *(Column(h, number=True) for h in _HEADS[1:])], _rows(group), 2))
        screen.print()
        if any(run.sizes for run in group):
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
    times = zip(*(durations([of(run) for run in runs]) for of in TIMES), strict=True)
    lost = all_hours([run.lost_gpu_hours for run in runs])
    return [
        (
            run.policy, average + ("*" if has_star else ""), *others, f"{100 * run.gpu_utilisation:.1f} %",
            str(run.preemptions), hours_lost.removesuffix(" GPU-h"),
        )
        for run, has_star, (average, *others), hours_lost in zip(runs, starred, times, lost, strict=True)
    ]  # fmt: skip


def _sizes(runs: Sequence[Figures]) -> Any:
    names = list(dict.fromkeys(size.gpus for run in runs for size in run.sizes))
    waits = [{size.gpus: size.avg_wait_s for size in run.sizes} for run in runs]
    columns = [[of.get(name) for of in waits] for name in names]
    told = [iter(durations([one for one in column if one is not None])) for column in columns]
    rows = [
        (run.policy, *("" if column[i] is None else next(words) for column, words in zip(columns, told, strict=True)))
        for i, run in enumerate(runs)
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


def durations(seconds: Sequence[float]) -> list[str]:
    """Durations that stand side by side, all in one unit: the largest in which the least is a tenth still, or a larger
    one where the most would have four digits."""
    there = [one for one in seconds if not isnan(one)]
    most, least = max(there, default=0.0), min((one for one in there if one >= 1.0), default=0.0)
    unit, length = "s", 1.0
    for larger, of in (("min", 60.0), ("h", 3600.0), ("d", 86400.0)):
        if (most >= 2 * of and least >= of / 10) or most >= 1000 * length:
            unit, length = larger, of
    return [
        "-" if isnan(one) else f"{one:.0f} s" if unit == "s" else f"{_three(one / length)} {unit}" for one in seconds
    ]


def all_hours(gpu_hours: Sequence[float]) -> list[str]:
    """GPU hours that stand side by side, with as many digits each as the largest needs."""
    most = max(gpu_hours, default=0.0)
    digits = 0 if most >= 100 or not most else 1 if most >= 10 else 2
    return [f"{one:,.{digits}f} GPU-h" for one in gpu_hours]


def _three(value: float) -> str:
    """Three digits matter."""
    return f"{value:,.{0 if value >= 100 or not value else 1 if value >= 10 else 2}f}"


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
