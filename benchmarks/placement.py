"""How full does Berth's own placement get a cluster? The 17 published traces, beside published FGD.

    python benchmarks/placement.py [--seeds 42-51] [--traces default,cpu050] [--jobs 2] [--only known|learned]

Needs the public data: BERTH_DATA names the folder that holds traces/openb-v2023 and
traces/fgd-atc23-results. Each cell is the mean of unallocated GPU % over the seeds, with its standard deviation at
100 % arrived. "known": demand is the trace's popularity, as FGD is given it. "learned": it is what has arrived so
far, nothing before. Exits 1 if published FGD (USENIX ATC 2023) is better on any trace.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from statistics import mean
from time import perf_counter

from berth.base.errors import BadInput
from berth.scheduling.policy import Policy
from berth.simulation import own
from berth.simulation.packing import Summary, experiment, summaries
from berth.sources.traces import PUBLISHED_VARIANTS, data_folder, read_trace
from fidelity import METRIC, PUBLISHED_FILE, cpu_seconds, published

POLICIES = {"known": own.placements, "learned": own.learned}
LOADS = (100, 130)


def table(ours: Sequence[Summary], theirs: dict[int, dict[str, float]]) -> tuple[str, list[str]]:
    """A row for each trace, and the traces on which published FGD is better."""
    at = {(summary.trace.removeprefix("openb:"), summary.policy): summary for summary in ours}
    traces, policies = (list(dict.fromkeys(key[i] for key in at)) for i in (0, 1))
    heads = [f"{policy} {load}" for policy in policies for load in LOADS]
    lines = [f"{'trace':<12}" + "".join(f"{f'FGD {load}':>9}" for load in LOADS) + "".join(f"{h:>16}" for h in heads)]
    worse: list[str] = []
    columns: list[list[float]] = [[] for _ in range(len(LOADS) + len(heads))]
    for trace in traces:
        cells = [theirs[load][trace] for load in LOADS]
        row = f"{trace:<12}" + "".join(f"{cell:>9.2f}" for cell in cells)
        for policy in policies:
            summary = at[trace, policy]
            for load in LOADS:
                value, deviation = summary.mean[METRIC][str(load)], summary.sd[METRIC][str(load)]
                row += f"{value:>9.2f}" + (f" ± {deviation or 0.0:.2f}" if load == 100 else " " * 7)
                cells.append(value)
                if value > theirs[load][trace]:
                    worse.append(f"{trace} {policy} at {load} %")
        lines.append(row.rstrip())
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
    means = [mean(column) for column in columns]
    published_means = "".join(f"{value:>9.2f}" for value in means[: len(LOADS)])
    own_means = "".join(f"{value:>9.3f}{'':>7}" for value in means[len(LOADS) :])
    lines.append(f"{'mean':<12}{published_means}{own_means}".rstrip())
    return "\n".join(lines), worse


def main() -> int:
    """Run, print; 1 if published FGD is better somewhere."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", default="42-51", help="first-last")
    parser.add_argument("--traces", default=",".join(PUBLISHED_VARIANTS))
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--only", choices=tuple(POLICIES))
    options = parser.parse_args()
    first, last = (int(part) for part in options.seeds.split("-"))
    started = perf_counter()
    names = [options.only] if options.only else list(POLICIES)
    traces = [read_trace(f"openb:{variant}") for variant in options.traces.split(",")]
    file = data_folder() / PUBLISHED_FILE
    theirs = {
        load: {trace: cell[0] for (trace, policy), cell in published(file, load).items() if policy == "fgd"}
        for load in LOADS
    }
    runs = experiment(traces, {name: POLICIES[name] for name in names}, range(first, last + 1), options.jobs)
    text, worse = table(summaries(runs), theirs)
    print(f"{METRIC} at 100 and 130 % arrived, seeds {options.seeds}; {Policy()}")
    print(text)
    print(f"{len(runs)} runs, {perf_counter() - started:.0f} s wall, {cpu_seconds():.0f} s CPU")
    print(f"published FGD is better: {', '.join(worse) or 'nowhere'}")
    return 1 if worse else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadInput as wrong:
        print(wrong.sentence, file=sys.stderr)
        sys.exit(wrong.exit_code)
