"""Expected starts: how often they are right, and what they cost.

`python -m benchmarks.starts [--traces itp:06=13x8,itp:03/1500=21x8] [--seed 1]` replays traces, or so many of their
first jobs, under the policy that schedules clusters, and asks whenever a job is submitted; needs BERTH_DATA. `--every
4` asks at every fourth submission, `--restarts 24` with a scheduler that starts anew every 24 h and knows of its own
answers before only how wide they had to be, `--least-left` with the order by what is left to do. `python -m
benchmarks.starts --cost` times one forecast of 10,000 workloads that wait on 5,000 nodes.
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time

import numpy as np
from rich.console import Console

from benchmarks.philly import first
from berth.model.cluster import Allocation
from berth.model.jobs import Jobs
from berth.model.snapshot import Snapshot
from berth.model.workload import PodSet, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.starts_watch import Watch
from berth.scheduling.tables import Tables
from berth.simulation.queueing.as_live import AsLive
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.drawn import PREFIX, drawn_jobs
from berth.simulation.queueing.engine import steps
from berth.simulation.queueing.forecasts import Accuracy, Forecasting
from berth.simulation.queueing.limits import with_limits
from berth.simulation.queueing.schedule import Overhead
from berth.simulation.queueing.shown import pod_sets
from berth.sources.job_traces import read_jobs
from berth.views.forecasts import show

TRACES = "itp:06=13x8,itp:03/1500=21x8,itp:10=2x8,itp:05/1500=2x8,muri:3=8x8,muri:4/1000=15x8,builtin:week=9x8"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", default=TRACES, help="each with its cluster, nodes x GPUs")
    parser.add_argument("--every", type=int, default=1, help="submissions from one forecast to the next")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--restarts", type=float, default=np.inf, help="hours from one to the next")
    parser.add_argument("--least-left", action="store_true")
    parser.add_argument("--without-limits", action="store_true")
    parser.add_argument("--cost", action="store_true")
    given = parser.parse_args()
    if given.cost:
        _cost()
        return
    screen = Console(width=140)
    for pair in given.traces.split(","):
        name, _, shape = pair.partition("=")
        nodes, gpus = (int(part) for part in shape.split("x"))
        jobs = offered(name, None if given.without_limits else given.seed)
        print(*jobs.notes, sep="; ")
        began = process_time()
        show([measured(jobs, nodes, gpus, given.every, 3600 * given.restarts, given.least_left)], screen)
        print(f"{process_time() - began:.0f} s of CPU in all", flush=True)


def offered(name: str, seed: int | None) -> Jobs:
    """The jobs of a trace, or as many of the first as the name says, with limits where it has none and a seed is
    given."""
    trace, _, count = name.partition("/")
    jobs = drawn_jobs(trace) if trace.startswith(PREFIX) else read_jobs(trace)
    jobs = first(jobs, int(count)) if count else jobs
    return jobs if seed is None else with_limits(jobs, seed)


def measured(jobs: Jobs, nodes: int, gpus: int, every: int, restarts_s: float, least_left: bool) -> Accuracy:
    """Forecasts along one trace."""
    policy, tables, born_s = Policy(explains=False, least_left=least_left), Tables(), 0.0
    by_left = AsLive(False, policy)
    decide = by_left.decide if least_left else lambda snapshot: cycle(snapshot, policy, tables)
    watching = Forecasting(decide, policy, every)
    for state in steps(jobs, like_nodes(nodes, gpus), Overhead.AtStart, watching.decide):
        if state.now_s - born_s >= restarts_s:
            wider, watching.watch, born_s = watching.watch.wider, Watch(policy, every_s=0.0), state.now_s
            watching.watch.resume(wider)
        watching.look(state)
    return watching.accuracy("berth-live-least-left" if least_left else "berth-live", state)


def _cost() -> None:
    """CPU seconds of the second look and on: the first one reads the cluster and loads compiled code."""
    snapshot, plan = crowded(5_000, 10_000)
    watch = Watch()
    for _ in range(3):
        began, wall = process_time(), perf_counter()
        found = watch.look(snapshot, plan)
        print(f"{len(found)} forecasts: {process_time() - began:.2f} s of CPU, {perf_counter() - wall:.2f} s")


def crowded(nodes: int, waits: int) -> tuple[Snapshot, Plan]:
    """Full nodes, and many that wait in five queues, with limits."""
    rng = np.random.default_rng(1)
    cluster = like_nodes(nodes, 8)
    shapes = {width: pod_sets(width, 8) for width in (1, 2, 4, 8, 16, 32)}
    half = shapes[4][0].pod_class
    held = tuple(
        Allocation(
            node.name, f"team-{n % 5}", f"r-{n}-{i}", half, workload=f"team-{n % 5}/r-{n}-{i}", workload_kind="Job",
            queue=f"team-{n % 5}", started_s=float(rng.uniform(0, 80_000)), time_limit_s=float(rng.uniform(1e5, 3e5)),
        )
        for n, node in enumerate(cluster.nodes)
        for i in range(2)
    )  # fmt: skip
    waiting = tuple(_waits(w, shapes, rng) for w in range(waits))
    empty = np.zeros(0, np.int32)
    plan = Plan(waiting, cluster.nodes, empty, empty, empty, np.zeros(0, np.int64), {}, {}, {})
    full = Snapshot(
        nodes=cluster.nodes, allocations=held, workloads=waiting, gpu_classes=cluster.gpu_classes, now_s=90_000.0
    )
    return full, plan


def _waits(number: int, shapes: dict[int, tuple[PodSet, ...]], rng: np.random.Generator) -> Workload:
    width = int(rng.choice(list(shapes), p=(0.5, 0.15, 0.1, 0.15, 0.06, 0.04)))
    return Workload(
        f"w-{number}", shapes[width], f"team-{number % 5}", "Job", f"team-{number % 5}", created_s=80_000.0 + number,
        time_limit_s=float(rng.lognormal(9, 1.5)),
    )  # fmt: skip


if __name__ == "__main__":
    main()
