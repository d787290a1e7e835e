"""All of Philly through the full cycle: 82,247 jobs of 109 days, on 68 x 8 GPUs (about 69 % load) and on 54 x 8.

    python -m benchmarks.philly [--nodes 68 54] [--policy berth berth-blind] [--jobs N] [--profile]

CPU seconds of one process, reading the trace and compiled code aside. Limits are drawn (seed 1). The digest is of every
bind and eviction in its order: a change that is to make the cycle faster, and nothing else, leaves it as it is.
Needs BERTH_DATA.
"""

from __future__ import annotations

import argparse
import cProfile
import hashlib
import pstats
import time
from dataclasses import fields, replace

import numpy as np

from berth.model.jobs import Jobs
from berth.model.snapshot import Snapshot
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import run
from berth.simulation.queueing.figures import figures_of
from berth.simulation.queueing.limits import with_limits
from berth.simulation.queueing.schedule import Overhead
from berth.sources.job_traces import read_jobs

NODE_GPUS, SEED = 8, 1
KNOWS = {"berth": True, "berth-blind": False}


def first(jobs: Jobs, count: int) -> Jobs:
    """The first so many jobs of a trace."""
    columns = {one.name: getattr(jobs, one.name) for one in fields(jobs)}
    per_job = {
        name: column[:count]
        for name, column in columns.items()
        if name != "queues" and isinstance(column, (np.ndarray, tuple)) and len(column) == len(jobs)
    }
    return replace(jobs, **per_job)


def told(plan: Plan, digest: hashlib._Hash) -> None:
    for column in (plan.workload, plan.pod_set, plan.node, plan.devices):
        digest.update(column.tobytes())
    for one in plan.evictions:
        digest.update(f"{one.allocation.name} {one.beneficiary} {one.rule.name}".encode())


def replay(name: str, jobs: Jobs, nodes: int) -> str:
    policy, tables, digest = Policy(evicts=KNOWS[name], sets_aside=KNOWS[name], explains=False), Tables(), hashlib.md5()
    cycles = 0

    def decide(snapshot: Snapshot) -> Plan:
        nonlocal cycles
        plan = cycle(snapshot, policy, tables)
        told(plan, digest)
        cycles += 1
        return plan

    began = time.process_time()
    schedule = run(name, jobs, like_nodes(nodes, NODE_GPUS), Overhead.AtStart, decide, knows=KNOWS[name])
    spent = time.process_time() - began
    figures = figures_of(schedule, "")
    return (
        f"{nodes} x {NODE_GPUS}  {name:12} {len(jobs):,} jobs  {spent:7.1f} s of CPU  {cycles:,} cycles, "
        f"{1000 * spent / cycles:.3f} ms each  average {figures.avg_jct_s:,.0f} s, wait {figures.avg_wait_s:,.0f} s, "
        f"{figures.preemptions:,} stops, used {figures.gpu_utilisation:.3f}  {digest.hexdigest()[:12]}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[68, 54])
    parser.add_argument("--policy", nargs="+", choices=KNOWS, default=list(KNOWS))
    parser.add_argument("--jobs", type=int, default=0, help="the first so many; 0 is all of them")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    jobs = with_limits(read_jobs("philly"), SEED)
    for name in options.policy:
        replay(name, first(jobs, 50), options.nodes[0])  # compiled code is there from now on
    if options.jobs:
        jobs = first(jobs, options.jobs)
    for name in options.policy:
        for nodes in options.nodes:
            profile = cProfile.Profile(time.process_time)
            if options.profile:
                profile.enable()
            line = replay(name, jobs, nodes)
            profile.disable()
            print(line, flush=True)
            if options.profile:
                pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()
