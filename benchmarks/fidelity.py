"""Does the packing experiment give the published results? Six policies, 17 traces, 10 seeds: 1,020 runs.

    python benchmarks/fidelity.py [--seeds 42-51] [--jobs 2] [--load 100] [--traces default,cpu050]

Needs the public data: BERTH_DATA names the folder that holds traces/openb-v2023 and
traces/fgd-atc23-results. Each cell compares our mean of unallocated GPU % with the published one (FGD, USENIX
ATC 2023; both of 10 seeds, from different generators). A cell holds within max(0.3, 3.5 standard errors of
the difference) points. Exits 1 if one does not.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import sys
from math import sqrt
from pathlib import Path
from statistics import mean
from time import perf_counter

from berth.base.errors import BadInput
from berth.simulation.baselines import BASELINES
from berth.simulation.packing import LOADS, Run, Summary, experiment, summaries
from berth.sources.traces import PUBLISHED_VARIANTS, data_folder, read_trace

PUBLISHED_NAMES = {
    "Random": "random", "DotProd": "dotprod", "GpuClustering": "clustering", "GpuPacking": "packing",
    "BestFit": "bestfit", "FGD": "fgd",
}
METRIC = "unallocated_gpu_pct"
PUBLISHED_FILE = Path("traces") / "fgd-atc23-results" / "published_summary.csv"
# (trace, policy) -> mean, sd and number of seeds.
Published = dict[tuple[str, str], tuple[float, float, int]]
FLOOR = 0.3
ERRORS = 3.5


def published(path: Path, load: int) -> Published:
    """The published unallocated GPU % at a load."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row["trace"], PUBLISHED_NAMES[row["policy"]]):
                (float(row["mean"]), float(row["sd"]), int(row["seeds"]))
            for row in csv.DictReader(file)
            if row["metric"] == METRIC and int(row["arrived_pct"]) == load
        }


def compare(ours: list[Summary], theirs: Published, load: int) -> list[dict]:
    """A cell for each trace and policy: both means and deviations, the distance and its bound."""
    cells = []
    for summary in ours:
        trace = summary.trace.removeprefix("openb:")
        their_mean, their_sd, their_n = theirs[trace, summary.policy]
        own_mean, own_sd = summary.mean[METRIC][str(load)], summary.sd[METRIC][str(load)] or 0.0
        bound = max(FLOOR, ERRORS * sqrt(their_sd**2 / their_n + own_sd**2 / summary.n))
        cells.append({
            "trace": trace, "policy": summary.policy, "published": their_mean, "published_sd": their_sd,
            "own": own_mean, "own_sd": own_sd, "distance": own_mean - their_mean, "bound": bound,
            "holds": abs(own_mean - their_mean) <= bound,
        })
    return cells


def table(cells: list[dict]) -> str:
    """Own mean and signed distance, one row a trace; an exclamation mark where the bound is exceeded."""
    policies = list(dict.fromkeys(cell["policy"] for cell in cells))
    at = {(cell["trace"], cell["policy"]): cell for cell in cells}
    lines = [f"{'trace':<12}" + "".join(f"{policy:>16}" for policy in policies)]
    for trace in dict.fromkeys(cell["trace"] for cell in cells):
        row = [at[trace, policy] for policy in policies]
        lines.append(f"{trace:<12}" + "".join(
            f"{cell['own']:>8.2f} {cell['distance']:>+6.2f}{' ' if cell['holds'] else '!'}" for cell in row))
    signed = [mean(at[trace, policy]["distance"] for trace in dict.fromkeys(c["trace"] for c in cells))
              for policy in policies]
    own = [mean(cell["own"] for cell in cells if cell["policy"] == policy) for policy in policies]
    lines.append(f"{'mean':<12}" + "".join(
        f"{value:>8.2f} {distance:>+6.2f} " for value, distance in zip(own, signed, strict=True)))
    return "\n".join(lines)


def rates(runs: list[Run]) -> dict[str, float]:
    """Placements a second of each policy's own time, over all its runs."""
    placed: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for one in runs:
        pods = one.offered_pods - one.failed_pods
        placed[one.policy] = placed.get(one.policy, 0) + pods
        seconds[one.policy] = seconds.get(one.policy, 0.0) + pods / one.placements_per_second
    return {policy: placed[policy] / seconds[policy] for policy in placed}


def cpu_seconds() -> float:
    """CPU time of this process and its finished workers: it tells a busy machine from slow code."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> int:
    """Run, compare, print; 1 if a cell exceeds its bound."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="42-51", help="first-last")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--load", type=int, default=100, choices=LOADS)
    parser.add_argument("--traces", default=",".join(PUBLISHED_VARIANTS))
    parser.add_argument("--json", type=Path, help="also write the cells and runs here")
    options = parser.parse_args()
    first, last = (int(part) for part in options.seeds.split("-"))

    started = perf_counter()
    theirs = published(data_folder() / PUBLISHED_FILE, options.load)
    traces = [read_trace(f"openb:{variant}") for variant in options.traces.split(",")]
    runs = experiment(traces, BASELINES, range(first, last + 1), options.jobs)
    wall_s, cpu_s = perf_counter() - started, cpu_seconds()

    cells = compare(summaries(runs), theirs, options.load)
    broken = [cell for cell in cells if not cell["holds"]]
    print(f"{METRIC} at {options.load} % arrived: own mean, distance from the published mean in points")
    print(table(cells))
    print(f"{'placed/s':<12}" + "".join(f"{rate:>15,.0f} " for rate in rates(runs).values()))
    print(f"mean absolute distance {mean(abs(cell['distance']) for cell in cells):.3f} points")
    print(f"{len(runs)} runs, {options.jobs} processes, {wall_s:.1f} s wall, "
          f"{cpu_s:.1f} s CPU with start and workers: {cpu_s / len(runs):.3f} CPU seconds a run")
    for cell in broken:
        print(f"beyond the bound: {cell['trace']} {cell['policy']}: {cell['own']:.2f} ± {cell['own_sd']:.2f}"
              f", published {cell['published']:.2f} ± {cell['published_sd']:.2f}, bound {cell['bound']:.2f}")
    print(f"{len(cells) - len(broken)} of {len(cells)} cells within max({FLOOR}, {ERRORS} standard errors)")
    if options.json:
        report = {"wall_s": wall_s, "cpu_s": cpu_s, "jobs": options.jobs, "load": options.load, "cells": cells}
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadInput as wrong:
        print(wrong.sentence, file=sys.stderr)
        sys.exit(wrong.exit_code)
