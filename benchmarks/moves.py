"""How much nearer to the possible do moves bring a cluster? Berth without and with moves, and the bound.

    python benchmarks/moves.py --bounds bound.json [--percent 1] [--learned] [--traces default] [--seeds 42-51]

Needs the public data (BERTH_DATA). Unallocated GPU %, mean of the seeds. `bound` is from `benchmarks/bound.py
--json` with the same seeds; without it that column is empty. `nearer` is the share of the distance to the bound
that moves recover, `moved` GPU milli moved in percent of what pods hold at the end, and `all fit` 100 − the load up
to which everything could run: the fair mark for a policy that takes pods as they come (berth.simulation.bound).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from statistics import mean
from time import process_time

from berth.base.errors import BadInput
from berth.scheduling.policy import Policy
from berth.simulation import moves, own
from berth.simulation.packing import Run, experiment
from berth.sources.traces import PUBLISHED_VARIANTS, read_trace
from fidelity import cpu_seconds

LOADS = ("100", "130")
NAN = float("nan")


def rows_of(runs: list[Run], bounds: dict[str, dict]) -> dict[str, list[float]]:
    """By trace: at each load without, with, bound and share recovered in percent; then moved % and `all fit`."""
    rows: dict[str, list[float]] = {}
    for trace in dict.fromkeys(run.trace for run in runs):
        name = trace.removeprefix("openb:")
        without, having = ([r for r in runs if (r.trace, r.policy) == (trace, p)] for p in ("berth", "berth+moves"))
        row: list[float] = []
        for load in LOADS:
            before, after = (mean(r.unallocated_gpu_pct[load] for r in some) for some in (without, having))
            bound = bounds.get(name, {}).get(load, NAN)
            row += [before, after, bound, 100 * (before - after) / (before - bound)]
        row += [mean(r.moved_pct for r in having), bounds.get(name, {}).get("all_fit", NAN)]
        rows[name] = row
    return rows


def table(rows: dict[str, list[float]]) -> str:
    """One row a trace and their mean. The share of the mean row is that of the mean distances."""
    heads = [f"{head}@{load}" for load in LOADS for head in ("without", "with", "bound", "nearer")]
    lines = [f"{'trace':<12}" + "".join(f"{head:>12}" for head in (*heads, "moved %", "all fit"))]
    total = [mean(column) for column in zip(*rows.values(), strict=True)]
    for at in range(0, 4 * len(LOADS), 4):
        total[at + 3] = 100 * (total[at] - total[at + 1]) / (total[at] - total[at + 2])
    for name, row in (*rows.items(), ("mean", total)):
        cells = [f"{v:.0f} %" if i in (3, 7) else f"{v:.3f}" if i == 8 else f"{v:.2f}" for i, v in enumerate(row)]
        lines.append(f"{name:<12}" + "".join(f"{'-' if 'nan' in cell else cell:>12}" for cell in cells))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", default=",".join(PUBLISHED_VARIANTS))
    parser.add_argument("--seeds", default="42-51", help="first-last")
    parser.add_argument("--percent", type=float, default=1.0, help="of the GPU milli placed so far that may move")
    parser.add_argument("--learned", action="store_true", help="what is to come is not known")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--bounds", type=Path, help="JSON of benchmarks/bound.py")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    options = parser.parse_args()
    first, last = (int(part) for part in options.seeds.split("-"))
    bounds = {one["trace"]: one for one in json.loads(options.bounds.read_text())} if options.bounds else {}
    numbers = Policy(learn_arrivals=options.learned)
    policies = {
        "berth": partial(own.placements, policy=numbers),
        "berth+moves": partial(moves.placements, percent=options.percent, policy=numbers),
    }
    traces = [read_trace(f"openb:{variant}") for variant in options.traces.split(",")]
    began = process_time()
    runs = experiment(traces, policies, range(first, last + 1), options.jobs)
    rows = rows_of(runs, bounds)
    print(
        f"unallocated GPU %, seeds {first} to {last}, demand {'learned' if options.learned else 'known'}, "
        f"moves of at most {options.percent:g} %"
    )
    print(table(rows))
    spent = cpu_seconds() if options.jobs > 1 else process_time() - began
    print(f"{len(runs)} runs, {spent / len(runs):.2f} CPU seconds a run")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadInput as wrong:
        print(wrong.sentence, file=sys.stderr)
        sys.exit(wrong.exit_code)
