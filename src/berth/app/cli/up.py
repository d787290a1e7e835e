"""`berth up`: the built-in cluster comes alive. Jobs over time, compressed, for whoever sits at a terminal."""

from __future__ import annotations

import os
import tempfile
from math import inf, isfinite
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click

from berth.app.cli.compiled import kept_for_now
from berth.app.cli.options import named
from berth.app.cli.simulate_jobs import Cluster, cluster_of_text, offered_jobs, seen_site, site_of
from berth.app.cli.streams import say
from berth.base.errors import UNREADABLE, BadInput

if TYPE_CHECKING:
    from berth.app.cli.ahead import Ahead
    from berth.app.cli.watching import How
    from berth.model.snapshot import Snapshot
    from berth.scheduling.plan import Plan
    from berth.simulation.queueing.arrivals import Offered
    from berth.simulation.queueing.causes import Explained
    from berth.views.live import Watch

HARBOUR = "builtin:harbour"
REPORT = "berth-up.html"
DAY_SPEED = 2000.0  # a day in 43 seconds
TRACE_S = 180.0  # in which all jobs of a trace come
FORESEEN_S = 600.0  # simulated seconds between two looks at expected starts, at least
FORESEEN = 60  # of a trace as fast as it is decided: so many looks
INTERRUPTED = 130


def _speed(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    if text.strip().lower() == "max":
        return inf
    try:
        speed = float(text)
    except ValueError:
        speed = -1.0
    if not 1 <= speed <= 1e6:
        raise click.BadParameter(
            f"{text!r} is no speed. Write simulated seconds a second, from 1 to 1000000, for example 2000; or max."
        )
    return speed


def _trace(_: click.Context, __: click.Parameter, text: str) -> str:
    if not text.strip() or "," in text:
        raise click.BadParameter(f"{text!r}: one trace can be watched. Write for example {HARBOUR} or muri:1.")
    return text.strip()


@click.command("up")
@click.option(
    "--trace", metavar="NAME", callback=_trace, default=HARBOUR, show_default=True,
    help="What comes: a day on a small cluster, or a trace as in `berth simulate jobs`: builtin:week, muri:1, itp:01, "
    "philly, a csv file.",
)  # fmt: skip
@click.option(
    "--cluster", metavar="SPEC", callback=cluster_of_text,
    help="For a trace: like nodes, 8x8 is eight nodes of eight GPUs, or a dump. Default: as in `berth simulate jobs`.",
)  # fmt: skip
@click.option(
    "--limits", "seed", type=click.IntRange(0, 2**63 - 1), metavar="SEED",
    help="For a trace without run-time limits: draw them, so that starts can be told in advance.",
)  # fmt: skip
@click.option(
    "--speed", metavar="N|max", callback=_speed,
    help="Simulated seconds a second. Default: a day in 43 s, a trace in three minutes, and max where no terminal "
    "shows it.",
)  # fmt: skip
@click.option(
    "--for", "for_s", type=click.FloatRange(1, 1e6), metavar="SECONDS", help="End after so long, whatever is left."
)
@click.option(
    "--report", metavar="FILE.html", callback=named,
    help=f"The page that stays. Default: {REPORT} in the current folder.",
)  # fmt: skip
@click.option("--plain", is_flag=True, help="Lines in place of the live view, on a terminal too.")
def up(
    trace: str,
    cluster: Cluster | None,
    seed: int | None,
    speed: float | None,
    for_s: float | None,
    report: str | None,
    plain: bool,
) -> None:
    """A cluster with its queues, alive: what runs where, who waits and why, and what happens.

    The decisions are those of the scheduler, the same cycle; nodes and jobs are simulated, in compressed time. q or
    Ctrl-C ends it; what it came to is printed, and stays as a page. Nothing is written to any cluster.
    """
    from berth.app.cli.screen import can_show, paint_of
    from berth.app.cli.watching import Clock, How, Signals, watch, write

    until = monotonic() + (for_s or inf)
    page = _page_path(report)
    kept_for_now()
    offered = _offered(trace, cluster, seed)
    shown = _watch_of(offered)
    is_live = can_show() and not plain
    clock = Clock(speed or (_usual_speed(offered) if is_live else inf))
    with Signals().heeded() as signals:
        ahead, counted = _started(offered, clock.speed)
        if is_live:
            how = watch(ahead, shown, clock, paint_of(offered.jobs.queues), until, signals)
        else:
            how = write(ahead, shown, clock, until, click.echo, signals)
        _finish(ahead, counted, shown, clock.now_s, offered, how, page)
    if how is How.Interrupted:
        raise SystemExit(INTERRUPTED)


def _usual_speed(offered: Offered) -> float:
    if isfinite(offered.length_s):
        return DAY_SPEED
    return min(1e6, max(60.0, round(float(offered.jobs.submit_s[-1]) / TRACE_S)))


def _page_path(asked: str | None) -> Path:
    """Where the page will be: that it cannot be written is better known before than after. Raises BadInput."""
    path = Path(asked or REPORT)
    folder = path.absolute().parent
    writable = os.access(path, os.W_OK) if path.exists() else os.access(folder, os.W_OK)
    if folder.is_dir() and writable and not path.is_dir():
        return path
    if asked is None:
        return Path(tempfile.gettempdir()) / REPORT
    why = "it is a folder" if path.is_dir() else "permission denied"
    why = why if folder.is_dir() else f"there is no folder {folder}"
    raise BadInput(asked, f"it cannot be written: {why}.", "Name another file.", UNREADABLE)


def _offered(trace: str, cluster: Cluster | None, seed: int | None) -> Offered:
    from dataclasses import replace

    from berth.simulation import harbour
    from berth.simulation.queueing.arrivals import Offered, from_the_first
    from berth.simulation.queueing.cluster import refuse_too_wide, with_queues
    from berth.simulation.queueing.shown import workloads_of

    if trace == HARBOUR:
        if cluster is not None or seed is not None:
            raise click.UsageError(f"--cluster and --limits are for traces; {HARBOUR} has its own.")
        return harbour.offered()
    jobs = from_the_first(offered_jobs(trace, seed))
    for remark in jobs.remarks:
        say(f"note: {remark}")
    shape = cluster.shape if cluster is not None else None
    site = seen_site(cluster.dump) if cluster is not None and cluster.dump else site_of(jobs, shape)
    refuse_too_wide(jobs, site)
    site = with_queues(site, jobs)
    workloads = workloads_of(jobs, site.node_gpus, heeds_class=site.heeds_class and bool(jobs.classes))
    return Offered(site.snapshot, replace(jobs, notes=(*jobs.notes, *site.notes)), workloads)


def _watch_of(offered: Offered) -> Watch:
    from berth.views.live import Watch

    jobs = offered.jobs
    queues = [jobs.queues[q] for q in jobs.queue.tolist()]
    keys = [f"{queue}/{name}" for queue, name in zip(queues, jobs.names, strict=True)]
    return Watch(jobs.name, jobs, keys, offered.cluster.nodes, offered.begins_s, offered.length_s)


def _started(offered: Offered, speed: float) -> tuple[Ahead, Explained]:
    """Decisions, from now on, and what counts why jobs wait."""
    import numpy as np

    from berth.app.cli.ahead import Ahead
    from berth.app.cli.watching import spacing_of
    from berth.scheduling.cycle import cycle
    from berth.scheduling.policy import Policy
    from berth.scheduling.tables import Tables
    from berth.simulation.queueing.causes import Explained, every_s
    from berth.simulation.queueing.engine import steps
    from berth.simulation.queueing.foreseen import Foreseen
    from berth.simulation.queueing.schedule import Overhead

    policy, cache = Policy(), Tables()

    def decide(snapshot: Snapshot) -> Plan:
        return cycle(snapshot, policy, cache)

    spacing = spacing_of(speed)
    often_s = 5 * spacing if isfinite(speed) else float(np.ptp(offered.jobs.submit_s)) / FORESEEN
    foreseen = Foreseen(decide, policy, max(FORESEEN_S, often_s))
    counted = Explained(foreseen, foreseen, min(offered.length_s / 200, every_s(offered.jobs, 1)))
    going = steps(offered.jobs, offered.cluster, Overhead.AtStart, counted, remembers=True, workloads=offered.workloads)
    ahead = Ahead(going, offered.length_s, spacing, foreseen.starts)
    ahead.start()
    return ahead, counted


def _finish(
    ahead: Ahead, counted: Explained, shown: Watch, now_s: float, offered: Offered, how: How, page: Path
) -> None:
    """What it came to, on the terminal and as a page."""
    from berth.app.cli.written import write
    from berth.simulation.queueing.figures import figures_of
    from berth.simulation.queueing.scene import schedule_at
    from berth.simulation.queueing.schedule import PARTS
    from berth.views import live_page, live_plain, tables

    ahead.stop()
    if ahead.state is None or shown.scene is None:
        say("berth: it ended before anything was decided; there is nothing to report.")
        return
    weights = {queue.name: float(queue.weight) for queue in offered.cluster.queues}
    schedule = schedule_at(ahead.state, shown.scene, now_s)
    causes = counted.over_time(schedule.events, PARTS)
    figures = figures_of(schedule, "start: who starts pays its restart", causes, weights, offered.cluster.queues)
    notes = _notes(how, shown, now_s)
    live_plain.show(shown, figures, now_s, tables.console())
    for note in notes:
        click.echo(f"It {note}.")
    write(str(page), live_page.page_of(shown, figures, notes, now_s).encode())
    click.echo(f"The report: {page}")


def _notes(how: How, shown: Watch, now_s: float) -> tuple[str, ...]:
    from berth.app.cli.watching import How

    if how is How.Over:
        return ()
    return (f"was ended at {shown.clock(now_s)}, with {100 * shown.done(now_s):.0f} % of {shown.name} seen",)
