"""`berth simulate jobs`: jobs that come, wait, run and end, under several policies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from berth.app.cli.compiled import kept_for_now
from berth.app.cli.options import named, now_s
from berth.app.cli.progress import progress
from berth.app.cli.simulate_asked import idle_settings, no_such_file
from berth.app.cli.streams import say
from berth.base.errors import BadInput

if TYPE_CHECKING:
    from berth.model.jobs import Jobs
    from berth.model.reasons import Reason
    from berth.model.snapshot import Snapshot
    from berth.scheduling.plan import Plan
    from berth.scheduling.policy import Policy
    from berth.simulation.queueing.cluster import Site
    from berth.simulation.queueing.figures import Figures, OfCause
    from berth.simulation.queueing.forecasts import Accuracy
    from berth.simulation.queueing.schedule import Overhead, Schedule

OWN, BLIND = "berth", "berth-blind"  # knows how long jobs take, and does not
LIVE = "berth-live"  # as on a cluster: by share, priority and age, with places in time
PUBLISHED = ("fifo", "sjf", "srtf", "srsf", "tiresias-l")
POLICIES = (OWN, BLIND, *PUBLISHED)
STICKY = "srsf-sticky"  # SRSF that moves nobody without need: the one to compare with where moves cost something
# The same with order.by least-left; and with order.setsAside where all work may leave and saves what it does.
LEAST_LEFT, SET_ASIDE = "berth-live-least-left", "berth-live-set-aside"
LIVE_ONES = (LIVE, LEAST_LEFT, SET_ASIDE)
KNOWN = (OWN, BLIND, *LIVE_ONES, *PUBLISHED, STICKY)
# What of the policy --set may change, and who goes by it: who sets nobody aside stops nobody for others.
SETTINGS = {
    "aging": (OWN, BLIND, LEAST_LEFT, SET_ASIDE),
    "stop_wait_s": (OWN, BLIND, SET_ASIDE),
}
STOP_WAIT_S = 1000.0  # where starts cost something, and as order.stopWaitSeconds of a scheduler is
OVERHEADS = {
    "published": "whoever runs pays its restart whenever another job comes or ends",
    "start": "who starts, moves or starts again pays its restart",
    "none": "starts cost nothing",
}
MOST_GPUS = 63  # of a node: devices are told as bits of a number
MOST_NODES = 99_999
DEFAULT_SHAPE = (8, 8)
_SHAPE = re.compile(r"(\d{1,9})x(\d{1,9})", re.ASCII)


def _policies(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    return None if text is None else _each(text, lambda name: name in KNOWN, f"There are: {', '.join(KNOWN)}.")


def _traces(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    return _each(text, bool, "Write for example muri:1,muri:3.")


def _settings(_: click.Context, __: click.Parameter, text: str) -> dict[str, float]:
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _sign, value = part.partition("=")
        if name not in SETTINGS:
            raise click.BadParameter(f"{name!r} is not known. There are: {', '.join(SETTINGS)}.")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = -1.0
        if not 0 <= found[name] < float("inf"):
            raise click.BadParameter(f"{part!r}: write {name}= and a number from 0 on.")
    return found


def _each(text: str, is_known: Callable[[str], bool], remedy: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if not is_known(name):
            raise click.BadParameter(f"{name!r} is not known. {remedy}")
    return names


@dataclass(frozen=True)
class Cluster:
    """What `--cluster` says: a shape, or the path of a dump."""

    shape: tuple[int, int] | None = None
    dump: str = ""


def cluster_of_text(_: click.Context, __: click.Parameter, text: str | None) -> Cluster | None:
    if text is None:
        return None
    found = _SHAPE.fullmatch(text.strip())
    if found is None and (text.strip() == "-" or Path(text).exists()):
        return Cluster(dump=text)
    if found is None:
        absent = no_such_file("--cluster", text.strip(), "Name a dump, or write nodes x GPUs of each, such as 8x8.")
        if absent is not None:
            raise absent
        raise click.BadParameter(
            f"{text!r} is no cluster. Write nodes x GPUs of each, for example 8x8, or name a dump: a file or a folder."
        )
    nodes, gpus = int(found[1]), int(found[2])
    if not 1 <= gpus <= MOST_GPUS:
        raise click.BadParameter(f"{text!r}: a node has a GPU at least, {MOST_GPUS} GPUs at most. Write more nodes.")
    if not 1 <= nodes <= MOST_NODES:
        raise click.BadParameter(f"{text!r}: 1 to {MOST_NODES:,} nodes are possible here.")
    return Cluster((nodes, gpus))


@click.command("jobs")
@click.option(
    "--trace", "traces", metavar="NAME[,NAME...]", callback=_traces, required=True,
    help="builtin:small, builtin:week, builtin:month (drawn from published figures, no file is needed; builtin:week:7 "
    "is another week); muri:1 to muri:4, muri:1p to muri:4p (all jobs at time 0), itp:01 to itp:10, philly (public, in "
    "the folder that BERTH_DATA names); or a csv file of your own.",
)  # fmt: skip
@click.option(
    "--policy", "policies", metavar="P[,P...]", callback=_policies,
    help=f"Who decides. Default: {','.join(POLICIES)}. There is {LIVE}, too: as Berth schedules a cluster, by share, "
    f"priority and age, with a place in time for who is next; {LEAST_LEFT} and {SET_ASIDE}: the same by order.by "
    f"least-left, and with order.setsAside; and {STICKY}: SRSF that moves nobody without need.",
)  # fmt: skip
@click.option(
    "--cluster", metavar="SPEC", callback=cluster_of_text,
    help="Like nodes, 8x8 is eight nodes of eight GPUs; or a dump, as for --from of other commands: its nodes, GPU "
    "classes, queues and reservations, with nothing on them. Default: 8x8, and of a built-in trace the cluster that it "
    "is made for.",
)  # fmt: skip
@click.option(
    "--load", "load_pct", type=click.FloatRange(1, 500), metavar="PERCENT",
    help="In place of --cluster: so many nodes of eight GPUs that the trace asks for this part of them on average.",
)  # fmt: skip
@click.option(
    "--overhead", type=click.Choice(list(OVERHEADS)), default=None,
    help=f"What starts cost. {'; '.join(f'{name}: {words}' for name, words in OVERHEADS.items())}. "
    "Default: published for muri: traces, start for others.",
)  # fmt: skip
@click.option(
    "--limits", "seed", type=click.IntRange(0, 2**63 - 1), metavar="SEED",
    help="Draw a run-time limit for each job: what it takes times 1, 1.5, 2, 5 or 10. Without it limits are those of "
    "the trace, and public traces have none.",
)  # fmt: skip
@click.option(
    "--node-events", metavar="FILE.csv", callback=named,
    help="Failures and returns of nodes: at (seconds), node (node-0000 and on, or as the dump has it), state (down, "
    "up). Only Berth's own policies meet them.",
)  # fmt: skip
@click.option(
    "--set", "settings", metavar="NAME=VALUE[,...]", callback=_settings, default="",
    help="Of Berth's own policies. aging: what is left to do counts for less by this part for each 10^6 s of age "
    "(0.02; 0.2 shortens the longest waits and lengthens the average). stop_wait_s: those who should run wait so long "
    f"in all for each that is stopped for them (1000 with --overhead start and for {SET_ASIDE}, else 0).",
)  # fmt: skip
@click.option(
    "--forecasts",
    is_flag=True,
    help=f"Under {LIVE} and those named after it, say of those that wait when they will start, and tell how often that "
    "was right.",
)
@click.option(
    "--report", metavar="FILE.html", callback=named, help="Write a page to show: tables, and charts of each policy."
)
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True,
    help="JSON and CSV go to stdout alone.",
)  # fmt: skip
def jobs(
    traces: tuple[str, ...],
    policies: tuple[str, ...] | None,
    cluster: Cluster | None,
    load_pct: float | None,
    overhead: str | None,
    seed: int | None,
    node_events: str | None,
    settings: dict[str, float],
    forecasts: bool,
    report: str | None,
    output: str,
) -> None:
    """How long jobs take when they share a cluster.

    Jobs come as the trace has them, wait, run, may be set aside and end; nothing else is made up. What a policy gives
    is told as job completion times, waits by size, use and shares.
    """
    from berth.views import forecasts as forecast_view
    from berth.views import jobs as view
    from berth.views import records, tables

    if cluster is not None and load_pct is not None:
        raise click.UsageError("--load says how large the cluster is. Leave it or --cluster out.")
    if forecasts and policies is not None and not set(LIVE_ONES) & set(policies):
        raise click.UsageError(
            f"--forecasts are of {', '.join(LIVE_ONES)}. Add one to --policy, or leave --policy out."
        )
    policies = policies or ((LIVE,) if forecasts else None)
    kept_for_now()
    seen = seen_site(cluster.dump) if cluster is not None and cluster.dump else None
    runs: list[Figures] = []
    foretold: list[Accuracy] | None = [] if forecasts else None
    for remark in idle_settings(settings, policies or POLICIES, SETTINGS):
        say(f"note: {remark}")
    for trace in traces:
        offered = offered_jobs(trace, seed, node_events)
        for remark in offered.remarks:
            say(f"note: {remark}")
        shape = cluster.shape if cluster is not None else None
        runs += _runs(offered, policies, seen or site_of(offered, shape, load_pct), overhead, settings, foretold)
    if report:
        from berth.app.cli.written import write
        from berth.views.jobs_page import page

        write(report, page(runs).encode())
    if output == "json":
        told = view.record(runs)
        click.echo(records.to_json(told if foretold is None else {**told, "forecasts": foretold}))
    elif output == "csv":
        for note in dict.fromkeys(note for run in runs for note in run.notes):
            say(f"note: {note}")
        click.echo(view.csv_of(runs) if foretold is None else forecast_view.csv_of(foretold), nl=False)
    else:
        view.show(runs, tables.console())
        if foretold is not None:
            forecast_view.show(foretold, tables.console())


def seen_site(dump: str) -> Site:
    from berth.simulation.queueing.cluster import emptied
    from berth.sources.assemble import read_snapshot

    return emptied(read_snapshot(dump, now_s=now_s()), dump)


def site_of(offered: Jobs, shape: tuple[int, int] | None, load_pct: float | None = None) -> Site:
    from berth.simulation.queueing.cluster import like_site, site_for
    from berth.simulation.queueing.drawn import PREFIX, cluster_of

    if load_pct is not None:
        return site_for(offered, load_pct)
    made_for = cluster_of(offered.name) if offered.name.startswith(PREFIX) else DEFAULT_SHAPE
    return like_site(*(shape or made_for))


def offered_jobs(trace: str, seed: int | None, node_events: str | None = None) -> Jobs:
    from berth.simulation.queueing.drawn import PREFIX, drawn_jobs
    from berth.simulation.queueing.limits import with_limits
    from berth.sources.job_csv import before_all, read_node_events
    from berth.sources.job_traces import read_jobs

    offered = drawn_jobs(trace) if trace.startswith(PREFIX) else read_jobs(trace)
    if seed is not None:
        offered = with_limits(offered, seed)
    if node_events is None:
        return offered
    path = Path(node_events)
    events = read_node_events(path)
    return replace(offered, node_events=events, remarks=(*offered.remarks, *before_all(path, events, offered)))


def _runs(
    offered: Jobs, policies: tuple[str, ...] | None, site: Site, overhead: str | None, settings: dict[str, float],
    foretold: list[Accuracy] | None,
) -> list[Figures]:  # fmt: skip
    from berth.simulation.baselines.passed_over import passed_over
    from berth.simulation.baselines.schedules import run
    from berth.simulation.queueing.cluster import on_clock_of, refuse_too_wide, with_queues
    from berth.simulation.queueing.figures import figures_of
    from berth.simulation.queueing.state import outside_of

    charged = overhead or ("published" if offered.name.startswith("muri:") else "start")
    told = f"{charged}: {OVERHEADS[charged]}"
    refuse_too_wide(offered, site)
    outside_of(offered, site.snapshot.nodes)  # raises for a node that is not there, also where nobody meets the events
    site = with_queues(on_clock_of(site, offered), offered)
    offered = replace(offered, notes=(*offered.notes, *site.notes, *_beside(offered, site, policies)))
    simply = passed_over(offered)
    met = replace(offered, notes=(*offered.notes, simply)) if simply else offered
    queues = site.snapshot.queues
    weights = {queue.name: float(queue.weight) for queue in queues}
    runs = []
    for policy in _able(policies, site):
        if policy in (OWN, BLIND, *LIVE_ONES):
            schedule, causes, stuck = _own(policy, offered, site, _overhead(charged), settings, foretold)
            runs.append(figures_of(schedule, told, causes, weights, queues, site.by_class, stuck))
        else:
            assert site.shape is not None
            schedule = run(policy, met, *site.shape, _overhead(charged))
            runs.append(figures_of(schedule, told, (), weights, queues, site.by_class))
    return runs


_LIKE_NODES = (
    "published policies know like nodes only, and this cluster's differ, or it has quotas, limits or reservations"
)


def _beside(offered: Jobs, site: Site, policies: tuple[str, ...] | None) -> list[str]:
    """What does not count on this cluster, and who does not run there."""
    notes = []
    if offered.classes and not site.heeds_class:
        named = ", ".join(offered.classes[:3]) + (", …" if len(offered.classes) > 3 else "")
        notes.append(f"classes that jobs name ({named}) do not count: all nodes are alike; give a dump with --cluster")
    if site.shape is None and policies is None:
        notes.append(f"{_LIKE_NODES}: they were left out")
    return notes


def _able(policies: tuple[str, ...] | None, site: Site) -> tuple[str, ...]:
    """The published policies know like nodes and nothing else of a cluster."""
    if site.shape is not None:
        return policies or POLICIES
    if policies and (unable := [policy for policy in policies if policy in (*PUBLISHED, STICKY)]):
        raise BadInput(
            "--policy", f"{', '.join(unable)}: {_LIKE_NODES}.",
            f"Give --policy {OWN},{BLIND}, or a --cluster like 8x8.",
        )  # fmt: skip
    return policies or (OWN, BLIND)


def _own(
    name: str, offered: Jobs, site: Site, overhead: Overhead, settings: dict[str, float],
    foretold: list[Accuracy] | None,
) -> tuple[Schedule, tuple[OfCause, ...], Mapping[Reason, int]]:  # fmt: skip
    """Berth's own cycle, the one that schedules clusters. It sets aside who runs for who should run first, by what is
    left to do, or where nobody says that by what those like it took; as on a cluster it does not. From time to time it
    says why who waits waits, and when it will start where that is asked for. The last are those that wait at the end,
    by why they do."""
    from msgspec.structs import replace as changed

    from berth.app.compile import few_jobs
    from berth.scheduling.policy import Policy
    from berth.simulation.queueing.causes import Explained, every_s
    from berth.simulation.queueing.cluster import like_nodes
    from berth.simulation.queueing.engine import run, schedule_of, steps
    from berth.simulation.queueing.forecasts import MOMENTS, Forecasting
    from berth.simulation.queueing.schedule import PARTS
    from berth.simulation.queueing.shown import workloads_of

    knows, is_live = name == OWN, name in LIVE_ONES
    wait_s = STOP_WAIT_S if is_live or overhead == _overhead("start") else 0.0
    policy = changed(Policy(sets_aside=not is_live, explains=False, stop_wait_s=wait_s), **settings)
    remembers = not knows and not is_live
    few = few_jobs()  # compiled code is loaded by them: what decisions take is told, and loading is none
    run(
        name, few, like_nodes(2, 8), overhead, Explained(*_deciding(name, policy), every_s(few, 16)), knows=knows,
        remembers=remembers,
    )  # fmt: skip
    decide = Explained(*_deciding(name, policy), every_s(offered, site.gpus))
    foreseen = changed(policy, least_left=name in (LEAST_LEFT, SET_ASIDE))
    watching = Forecasting(decide, foreseen, -(-len(offered) // MOMENTS)) if is_live and foretold is not None else None
    shown = workloads_of(offered, site.node_gpus, heeds_class=True) if site.heeds_class and offered.classes else None
    with progress("simulating jobs") as told:
        for state in steps(
            offered, site.snapshot, overhead, watching.decide if watching else decide, knows=knows,
            remembers=remembers, workloads=shown,
        ):  # fmt: skip
            if told:
                told(float(state.ended), float(len(offered)))
            if watching:
                watching.look(state)
    schedule = schedule_of(name, state)
    if watching and foretold is not None:
        foretold.append(watching.accuracy(name, state))
    return schedule, decide.over_time(schedule.events, PARTS), decide.at_end() if state.waiting else {}


def _deciding(name: str, policy: Policy) -> tuple[Callable[[Snapshot], Plan], Callable[[Snapshot], Plan]]:
    """One cycle of the policy, and the same that says why who waits does."""
    from msgspec.structs import replace as changed

    from berth.scheduling.cycle import cycle
    from berth.scheduling.tables import Tables
    from berth.simulation.queueing.as_live import AsLive

    if name in (LEAST_LEFT, SET_ASIDE):
        live = AsLive(name == SET_ASIDE, policy)
        return live.decide, live.explain
    cache, telling = Tables(), changed(policy, explains=True)
    return lambda snapshot: cycle(snapshot, policy, cache), lambda snapshot: cycle(snapshot, telling, cache)


def _overhead(name: str) -> Overhead:
    from berth.simulation.queueing.schedule import Overhead

    return {"published": Overhead.EachEvent, "start": Overhead.AtStart, "none": Overhead.Nothing}[name]
