"""Microsoft's ITP traces, each on a cluster of such a size that the mean load is as asked: averages and waits by size.

`python -m benchmarks.itp [--clusters 01,…] [--loads 70,85] [--policies fifo,srsf,berth]`; needs BERTH_DATA. The load is
GPU-seconds ÷ time of submissions ÷ GPUs, on nodes of eight GPUs, rounded up to a node: small clusters have less. Who
starts, moves or starts again pays 10 s.
"""

from __future__ import annotations

import argparse
from time import process_time

from berth.app.cli.simulate_jobs import STOP_WAIT_S
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.baselines import schedules
from berth.simulation.queueing.cluster import Site, site_for
from berth.simulation.queueing.engine import run
from berth.simulation.queueing.figures import SIZES, Figures, figures_of
from berth.simulation.queueing.schedule import Overhead, Schedule
from berth.sources.job_traces import read_jobs
from berth.views.jobs import duration

ALL = ",".join(f"{number:02}" for number in range(1, 11))
NAMES = tuple(f"{low}" if low == high else f"{low}-{high}" if high < 10**6 else f"{low}+" for low, high in SIZES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", default=ALL)
    parser.add_argument("--loads", default="70,85")
    parser.add_argument("--policies", default="fifo,srsf,berth")
    given = parser.parse_args()
    print(f"| trace | GPUs | load | policy | avg JCT | p99 | avg wait | {' | '.join(NAMES)} | stops | CPU s |")
    print("|---" * (9 + len(NAMES)) + "|")
    for name in given.clusters.split(","):
        jobs = read_jobs(f"itp:{name}")
        came = float(jobs.submit_s[-1] - jobs.submit_s[0])
        # A small cluster may be of one size for both loads.
        sites = {site.gpus: site for site in (site_for(jobs, float(load)) for load in given.loads.split(","))}
        for site in sites.values():
            asked = float((jobs.service_s * jobs.width).sum()) / came / site.gpus
            for policy in given.policies.split(","):
                began = process_time()
                if policy == "berth":
                    schedule = _own(jobs, site)
                else:
                    assert site.shape is not None
                    schedule = schedules.run(policy, jobs, *site.shape, Overhead.AtStart)
                spent = process_time() - began
                print(_line(name, site.gpus, asked, figures_of(schedule, ""), spent), flush=True)


def _own(jobs, site: Site) -> Schedule:  # type: ignore[no-untyped-def]
    policy, cache = Policy(sets_aside=True, explains=False, stop_wait_s=STOP_WAIT_S), Tables()
    return run(
        "berth", jobs, site.snapshot, Overhead.AtStart, lambda snapshot: cycle(snapshot, policy, cache), knows=True
    )


def _line(name: str, gpus: int, load: float, run: Figures, spent_s: float) -> str:
    waits = {size.gpus: duration(size.avg_wait_s) for size in run.sizes}
    by_size = " | ".join(waits.get(f"{low}" if low == high else _words(low, high), "") for low, high in SIZES)
    return (
        f"| {name} | {gpus} | {100 * load:.0f} % | {run.policy} | {duration(run.avg_jct_s)} "
        f"| {duration(run.p99_jct_s)} | {duration(run.avg_wait_s)} | {by_size} | {run.preemptions} | {spent_s:.0f} |"
    )


def _words(low: int, high: int) -> str:
    return f"{low} and more" if high > 10**6 else f"{low} to {high}"


if __name__ == "__main__":
    main()
