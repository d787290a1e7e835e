"""Jobs over time: Berth's cycle beside the published policies on Muri's traces, in one simulator and one run.

`python -m benchmarks.jobs [--traces 1,2,3,4] [--overhead published|start] [--blind]`; needs BERTH_DATA. A ratio is of
average job completion time, of its 99th percentile and of the makespan, each over SRSF's; where starts cost something
SRSF is the one that moves nobody without need. `--blind` does not tell durations, and compares with Themis, too.
`--aging 0,0.02,0.2 --curve FILE.svg` draws average against tail.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from berth.model.jobs import Jobs
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.baselines import schedules
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import run
from berth.simulation.queueing.figures import Figures, figures_of
from berth.simulation.queueing.schedule import Overhead
from berth.sources.job_traces import read_jobs
from berth.views.tradeoff import Point, drawn

NODES, GPUS = 8, 8
OVERHEADS = {"published": Overhead.EachEvent, "start": Overhead.AtStart}
STOP_WAIT_S = 1000.0  # where starts cost something, as the command has it
THEMIS_S = {"1": 1_823_179, "2": 4_628_172, "3": 397_059, "4": 994_971}  # average JCT as published with Muri


@dataclass(frozen=True)
class Row:
    """One trace with one setting: ours, SRSF of the same overhead, and SRSF that is placed anew at each event."""

    trace: str
    aging: float
    ours: Figures
    theirs: Figures
    placed_anew: Figures
    cpu_s: float

    def over(self, figure: str) -> float:
        return float(getattr(self.ours, figure) / getattr(self.theirs, figure))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", default="1,2,3,4", help="1 to 4, and 1p to 4p")
    parser.add_argument("--overhead", choices=OVERHEADS, default="published")
    parser.add_argument("--blind", action="store_true", help="durations are not known")
    parser.add_argument("--aging", default=str(Policy().aging), help="several by comma")
    parser.add_argument("--stop-wait", type=float, help="seconds; default 1000 where starts cost something, else 0")
    parser.add_argument("--curve", type=Path, metavar="FILE.svg")
    given = parser.parse_args()
    overhead = OVERHEADS[given.overhead]
    wait_s = given.stop_wait if given.stop_wait is not None else STOP_WAIT_S * (overhead is Overhead.AtStart)
    rows = []
    print(f"{'trace':6} {'aging':>6} {'SRSF s':>12} {'avg':>7} {'p99':>7} {'makespan':>9} {'Themis':>7}  stops a job: "
          "ours, SRSF, placed anew; CPU s")  # fmt: skip
    for name in given.traces.split(","):
        jobs = read_jobs(f"muri:{name}")
        for aging in map(float, given.aging.split(",")):
            rows.append(_row(name, jobs, overhead, Policy(sets_aside=True, explains=False, aging=aging,
                                                          stop_wait_s=wait_s), not given.blind))  # fmt: skip
            print(_line(rows[-1]), flush=True)
    if given.curve:
        points = [
            Point(f"trace {row.trace}", f"{row.aging:g}", row.over("avg_jct_s"), row.over("p99_jct_s")) for row in rows
        ]
        axes = "average JCT over SRSF's", "p99 over SRSF's"
        given.curve.write_text(drawn(points, "Average against tail, by aging", *axes))


def _row(name: str, jobs: Jobs, overhead: Overhead, policy: Policy, knows: bool) -> Row:
    plain = figures_of(schedules.run("srsf", jobs, NODES, GPUS, overhead), "")
    sticky = figures_of(schedules.run("srsf-sticky", jobs, NODES, GPUS, overhead), "")
    began, cache = process_time(), Tables()
    schedule = run(
        "berth", jobs, like_nodes(NODES, GPUS), overhead, lambda snapshot: cycle(snapshot, policy, cache),
        knows=knows, remembers=not knows,
    )  # fmt: skip
    ours, spent = figures_of(schedule, ""), process_time() - began
    return Row(name, policy.aging, ours, sticky if overhead is Overhead.AtStart else plain, plain, spent)


def _line(row: Row) -> str:
    told = " ".join(
        f"{row.over(key):{width}.4f}" for key, width in (("avg_jct_s", 7), ("p99_jct_s", 7), ("makespan_s", 9))
    )
    themis = f"{row.ours.avg_jct_s / THEMIS_S[row.trace]:7.4f}" if row.trace in THEMIS_S else " " * 7
    stops = ", ".join(f"{one.preemptions / one.jobs:.2f}" for one in (row.ours, row.theirs, row.placed_anew))
    return f"{row.trace:6} {row.aging:6g} {row.theirs.avg_jct_s:12,.0f} {told} {themis}  {stops}; {row.cpu_s:.0f}"


if __name__ == "__main__":
    main()
