"""`berth simulate`: a day on the built-in cluster, and the published packing experiment. Nothing is written."""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from berth.app.cli.compiled import kept_for_now
from berth.app.cli.progress import progress
from berth.app.cli.simulate_jobs import jobs as simulated_jobs
from berth.base.errors import BadInput

if TYPE_CHECKING:
    from berth.simulation.offer import Policy

DAY_SEED = 42
MOST_SEEDS = 1000
LARGEST_SEED = 2**63 - 1
OWN = "berth"
WITH_MOVES = "berth+moves"
BASELINES = ("random", "dotprod", "clustering", "packing", "bestfit", "fgd")
ALL_VARIANTS = "openb:published"  # the 17 traces of the published experiment


@click.group()
def simulate() -> None:
    """What a policy would have done, without a cluster."""


simulate.add_command(simulated_jobs)

def _seeds(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """`42`, `1,2,5`, `42..51`, or a mixture; each seed once, in the order given."""
    if text is None:
        return None
    found: dict[int, None] = {}
    for part in text.split(","):
        first, dots, last = part.strip().partition("..")
        if not _is_seed(first) or (dots and not _is_seed(last)):
            raise click.BadParameter(
                f"{part.strip()!r} is no seed. A seed is a whole number from 0: write 42, 1,2,5 or 42..51."
            )
        begin, end = int(first), int(last) if dots else int(first)
        if end < begin:
            raise click.BadParameter(f"the range {part.strip()} runs backwards. Write the smaller seed first.")
        if end - begin >= MOST_SEEDS or len(found) + end - begin >= MOST_SEEDS:
            raise click.BadParameter(f"more than {MOST_SEEDS} seeds. Split the experiment.")
        found.update(dict.fromkeys(range(begin, end + 1)))
    return tuple(found)


def _is_seed(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= LARGEST_SEED


def _policies(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """Names of policies, each once, in the order given."""
    if text is None:
        return None
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in (OWN, *BASELINES):
            raise click.BadParameter(f"{name!r} is no policy. There are: {', '.join((OWN, *BASELINES))}.")
    return names


def _traces(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if not all(names):
        raise click.BadParameter("a name is empty. Write for example openb:default,openb:gpuspec33, or a folder.")
    return names


def _percent(_: click.Context, __: click.Parameter, value: float) -> float:
    if isnan(value):
        raise click.BadParameter("that is not a number. Write a share in percent, for example 1.")
    return value


@simulate.command("packing")
@click.option(
    "--trace", "traces", metavar="NAME[,NAME...]", callback=_traces,
    help=f"Pods and nodes to replay: openb:default (or another variant), {ALL_VARIANTS} for all 17 traces of the "
    "experiment, or a folder with the openb files. Without it: the built-in day.",
)  # fmt: skip
@click.option(
    "--policy", "policies", metavar="P[,P...]", callback=_policies,
    help=f"Who places: {', '.join((OWN, *BASELINES))}. Default: all.",
)  # fmt: skip
@click.option(
    "--seed", "seeds", metavar="S[,S|A..B]", callback=_seeds,
    help="Order of arrivals: 42, 1,2,5 or 42..51 (the published seeds). Default: 42.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes. Default: one a CPU.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True,
    help="JSON and CSV go to stdout alone.",
)  # fmt: skip
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.svg|png",
    help="Draw unallocated GPUs against GPUs asked (needs --trace and matplotlib).",
)  # fmt: skip
@click.option(
    "--demand", type=click.Choice(["known", "learned"]), default="known", show_default=True,
    help="What Berth's policy knows of what is to come: the popularity of requests, or what has arrived so far.",
)  # fmt: skip
@click.option(
    "--moves", type=click.FloatRange(0, 100), default=0.0, show_default=True, metavar="PERCENT", callback=_percent,
    help="Let Berth's policy move pods so that one that fits nowhere fits: at most so much of the GPU that is placed. "
    "It is then called berth+moves.",
)  # fmt: skip
def packing(
    traces: tuple[str, ...] | None,
    policies: tuple[str, ...] | None,
    seeds: tuple[int, ...] | None,
    jobs: int | None,
    output: str,
    plot: Path | None,
    demand: str,
    moves: float,
) -> None:
    """How well a policy fills a cluster.

    Without --trace: a day on a built-in cluster of 616 nodes, through Berth's own scheduling cycle, and
    its report. With --trace: the published packing experiment. Pods arrive in random order until they
    have asked for 130 % of all GPUs, none leaves, and what counts is the share of GPUs that no pod could
    be given.
    """
    kept_for_now()
    if traces is None:
        _refuse_for_day(policies, seeds, plot, moves)
        _day(seeds[0] if seeds else DAY_SEED, output, demand == "learned")
        return
    policies = policies or (OWN, *BASELINES)
    if moves and OWN not in policies:
        raise click.UsageError(
            f"--moves is for Berth's own policy; the published ones move nothing. Add {OWN} to --policy."
        )
    _experiment(traces, policies, seeds or (DAY_SEED,), jobs, output, plot, demand, moves)


def _refuse_for_day(
    policies: tuple[str, ...] | None, seeds: tuple[int, ...] | None, plot: Path | None, moves: float
) -> None:
    if policies and policies != (OWN,):
        raise click.UsageError(
            "--policy compares policies on a trace; the built-in day has queues and gangs, which only berth knows. "
            "Add --trace openb:default, or leave --policy out."
        )
    if plot:
        raise click.UsageError("--plot draws the packing experiment. Add --trace openb:default, or leave it out.")
    if moves:
        raise click.UsageError("--moves is for the packing experiment. Add --trace openb:default, or leave it out.")
    if seeds and len(seeds) > 1:
        raise click.UsageError("The built-in day takes one seed. Add --trace openb:default for several.")


def _day(seed: int, output: str, learned: bool) -> None:
    from berth.scheduling.cycle import cycle
    from berth.scheduling.policy import Policy
    from berth.scheduling.tables import Tables
    from berth.simulation.day import replay
    from berth.simulation.workday import builtin_day
    from berth.views import records, report, tables

    day, policy, cache = builtin_day(seed), Policy(learn_arrivals=learned, evicts=False), Tables()
    with progress("simulating a day") as told:
        outcome = replay(day, lambda snapshot: cycle(snapshot, policy, cache), told)
    if output == "json":
        click.echo(records.to_json(records.day(outcome)))
    elif output == "csv":
        click.echo(records.day_csv(outcome), nl=False)
    else:
        report.show(outcome, tables.console())


def _experiment(
    names: tuple[str, ...],
    policies: tuple[str, ...],
    seeds: tuple[int, ...],
    jobs: int | None,
    output: str,
    plot: Path | None,
    demand: str,
    moves: float,
) -> None:
    if find_spec("numba") is None:
        raise BadInput("simulate packing --trace", "needs Numba, which is not installed.", "Install it.")
    from berth.simulation.packing import experiment, summaries
    from berth.sources.traces import PUBLISHED_VARIANTS, read_trace
    from berth.views import curves, records, tables
    from berth.views import packing as packing_view

    if plot:
        curves.check_plot(plot)
    expanded = [
        name
        for given in names
        for name in ([f"openb:{v}" for v in PUBLISHED_VARIANTS] if given == ALL_VARIANTS else [given])
    ]
    traces = [read_trace(name) for name in dict.fromkeys(expanded)]
    began = perf_counter()
    with progress("placing") as told:
        runs = experiment(traces, _chosen(policies, demand, moves), seeds, jobs or os.cpu_count() or 1, told)
    summary = summaries(runs)
    if plot:
        curves.draw(summary, plot)
    if output == "json":
        click.echo(records.to_json(records.packing(runs, summary, demand)))
    elif output == "csv":
        click.echo(records.packing_csv(runs), nl=False)
    else:
        packing_view.show(runs, summary, tables.console())
    where = f", curves in {plot}" if plot else ""
    click.echo(f"{len(runs)} run{'s' if len(runs) > 1 else ''} in {perf_counter() - began:.1f} s{where}.", err=True)


def _chosen(names: tuple[str, ...], demand: str, moves: float) -> dict[str, Policy]:
    """The policies by name, in the order given."""
    from berth.simulation import own
    from berth.simulation.baselines import BASELINES as PUBLISHED

    mine: dict[str, Policy] = {OWN: own.learned if demand == "learned" else own.placements}
    if moves:
        from berth.scheduling.policy import Policy as Numbers
        from berth.simulation.moves import placements

        numbers = Numbers(learn_arrivals=demand == "learned")
        mine = {WITH_MOVES: partial(placements, percent=moves, policy=numbers)}
    chosen: dict[str, Policy] = {}
    for name in names:
        chosen.update(mine if name == OWN else {name: PUBLISHED[name]})
    return chosen
