"""How good expected starts were in a simulation: one table a trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from berth.views.jobs import duration
from berth.views.records import to_csv
from berth.views.tables import HEADER_STYLE, QUIET_STYLE, Column, say, show_whole, table

if TYPE_CHECKING:
    from berth.simulation.queueing.forecasts import Accuracy, OfForecasts

_HEADS = ("GPUs", "forecasts", "in p10 to p90", "before", "after", "median error", "median wait", "median interval")


def show(accuracies: Sequence[Accuracy], screen: Console) -> None:
    """Coverage and error of the forecasts made at submission, by size, then of those made while jobs waited."""
    for one in accuracies:
        title = Text(f"Expected starts of {one.trace}", style=HEADER_STYLE)
        title.append(
            f"  {one.policy} on {one.gpus} GPUs; forecasts at {one.moments} moments, {1000 * one.seconds:.0f} ms each",
            style="not bold dim",
        )
        screen.print(title, soft_wrap=True)
        rows = [_row(size.gpus, size) for size in one.sizes]
        rows += [_row("all that waited", one.at_submission), _row("while they waited", one.later)]
        show_whole(screen, table([Column(_HEADS[0]), *(Column(h, number=True) for h in _HEADS[1:])], rows, 2))
        say(
            screen,
            f"{one.at_once} of {one.jobs} jobs started at once; with them {_percent(one.coverage_with_at_once)} "
            "started when it was said.",
        )
        screen.print()
    say(screen, "A first start is to lie in p10 to p90 in 80 of 100 cases.", style=QUIET_STYLE)


def _row(name: str, of: OfForecasts) -> tuple[str, ...]:
    if not of.forecasts:
        return (name, "0", *("-" for _ in _HEADS[2:]))
    parts = (_percent(part) for part in (of.coverage, of.early, of.late))
    times = (duration(seconds) for seconds in (of.median_error_s, of.median_wait_s, of.median_interval_s))
    return (name, str(of.forecasts), *parts, *times)


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


_COLUMNS = (
    "gpus", "forecasts", "coverage", "early", "late", "median_error_s", "median_wait_s", "median_interval_s",
)  # fmt: skip


def csv_of(accuracies: Iterable[Accuracy]) -> str:
    """A line a trace and size; `all` and `later` are of all sizes, at submission and while jobs waited."""
    rows = []
    for one in accuracies:
        some = [(size.gpus, size) for size in one.sizes] + [("all", one.at_submission), ("later", one.later)]
        rows += [[one.trace, one.policy, name, *(getattr(of, column) for column in _COLUMNS[1:])] for name, of in some]
    return to_csv(("trace", "policy", *_COLUMNS), rows)
