"""Tables of the packing experiment: traces down, policies across, and the mean of all traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from berth.views.tables import HEADER_STYLE, QUIET_STYLE, Column, Signs, say, show_whole, signs, table

if TYPE_CHECKING:
    from berth.simulation.packing import Run, Summary

# Offered GPUs in percent of the cluster's: the load at which pods begin to fail, and the end of the
# experiment.
LOADS = ("100", "130")


def show(runs: Sequence[Run], summaries: Sequence[Summary], screen: Console) -> None:
    """Unallocated GPUs at both loads, then fragmentation and speed of each policy over all traces."""
    draw = signs(screen)
    seeds = sorted({run.seed for run in runs})
    title = Text("Packing experiment", style=HEADER_STYLE)
    title.append(f"  pods arrive in random order and none leaves; {_seeds(seeds)}", style="not bold dim")
    screen.print(title, soft_wrap=True)
    for load in LOADS:
        screen.print()
        head = Text("Unallocated GPUs in percent", style=HEADER_STYLE)
        note = f"  when pods have asked for {load} % of all GPUs; mean {draw.plus_minus} standard deviation"
        head.append(note, style="not bold dim")
        screen.print(head, soft_wrap=True)
        show_whole(screen, _unallocated(summaries, load, draw))
    screen.print()
    screen.print(Text("All traces", style=HEADER_STYLE))
    show_whole(screen, _policies(summaries, draw))
    screen.print()
    note = (
        "Lower is better, * is the lowest of its row. Frag. rate: percent of the idle GPUs at 100 % that typical "
        "pods could not use (FGD's measure). Pods failed: by the end of the experiment."
    )
    say(screen, note, style=QUIET_STYLE)


def _seeds(seeds: Sequence[int]) -> str:
    """`seeds 42 to 51`, `seeds 1, 5, 9`."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    listed = ", ".join(map(str, seeds[:8])) + (f" and {len(seeds) - 8} more" if len(seeds) > 8 else "")
    return f"seed{'s' if len(seeds) > 1 else ''} {listed}"


def _unallocated(summaries: Sequence[Summary], load: str, draw: Signs):
    traces, policies, of = _grid(summaries)
    rows, source = [], _source(traces)
    for trace in traces:
        values = [_at(of.get((trace, policy)), "mean", load) for policy in policies]
        spreads = [_at(of.get((trace, policy)), "sd", load) for policy in policies]
        rows.append((trace.removeprefix(source), *_cells(values, spreads, draw)))
    reached = [trace for trace in traces if any(_at(of.get((trace, p)), "mean", load) is not None for p in policies)]
    if len(reached) > 1:
        means = [_mean([_at(of.get((t, p)), "mean", load) for t in traces]) for p in policies]
        blank = " " * len(f"{draw.plus_minus}0.00") if any(s.n > 1 for s in summaries) else ""
        rows.append((f"mean of {len(reached)}", *_cells(means, [None] * len(means), draw, blank)))
    name = Column(f"{source} trace" if source else "trace")
    columns = [name, *(Column(policy, number=True) for policy in policies)]
    return table(columns, rows, indent=2, gap=1)


def _source(traces: Sequence[str]) -> str:
    """What all names begin with, up to a colon: it need not stand in every row."""
    heads = {trace[: trace.rfind(":") + 1] for trace in traces}
    return heads.pop() if len(heads) == 1 else ""


def _cells(values: Sequence[float | None], spreads: Sequence[float | None], draw: Signs, blank: str = "") -> list[Text]:
    """`blank` stands where a row has no deviations and those above it have."""
    known = [v for v in values if v is not None]
    best = min(known) if len(known) > 1 else None
    cells = []
    for value, spread in zip(values, spreads, strict=True):
        if value is None:
            cells.append(Text(draw.dash))
            continue
        cell = Text(f"{value:.2f}", style="bold" if value == best else "")
        if spread is not None:
            cell.append(f"{draw.plus_minus}{spread:.2f}", style="not bold dim")
        if best is not None:
            cell.append("*" if value == best else " ")
        cell.append(blank)
        cells.append(cell)
    return cells


def _policies(summaries: Sequence[Summary], draw: Signs):
    traces, policies, of = _grid(summaries)
    rows = []
    for policy in policies:
        mine = [of[trace, policy] for trace in traces if (trace, policy) in of]
        rows.append(
            (
                policy,
                *(_number(_mean([_at(one, "mean", load) for one in mine]), draw) for load in LOADS),
                _number(_mean([_at(one, "mean", "100", "frag_rate_pct") for one in mine]), draw),
                f"{_mean([one.mean['failed_pods'] for one in mine]):,.0f}",
                f"{_mean([one.mean['placements_per_second'] for one in mine]):,.0f}",
            )
        )
    columns = (
        Column("policy"),
        *(Column(f"unallocated at {load} %", number=True) for load in LOADS),
        Column("frag. rate", number=True),
        Column("pods failed", number=True),
        Column("placed a second", number=True),
    )
    return table(columns, rows, indent=2)


def _number(value: float | None, draw: Signs) -> str:
    return draw.dash if value is None else f"{value:.2f}"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _at(summary: Summary | None, which: str, load: str, metric: str = "unallocated_gpu_pct") -> float | None:
    return None if summary is None else getattr(summary, which)[metric][load]


def _grid(summaries: Sequence[Summary]):
    """Traces and policies in the order in which they come, and the summary of each pair."""
    traces = list(dict.fromkeys(s.trace for s in summaries))
    policies = list(dict.fromkeys(s.policy for s in summaries))
    return traces, policies, {(s.trace, s.policy): s for s in summaries}
