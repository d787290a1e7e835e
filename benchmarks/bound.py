"""How far from the possible is a policy? A bound for each trace of the packing experiment that none can beat.

    python benchmarks/bound.py [--traces default,cpu050] [--seeds 42-51] [--mix] [--own results.json] [--json out.json]

Needs the public data (BERTH_DATA) and scipy. For the mean over the seeds, or with --mix for the arrivals that the
trace's mix leads one to expect, the table shows unallocated GPU % at 100 % and 130 % arrived: the bound, the
published FGD (USENIX ATC 2023), own results (`berth simulate packing -o json`, its policy that begins with
`berth`) and their distance from the bound; and as `all fit` 100 − the load up to which everything that arrives
could run. What the two mean, and the proof, is in berth.simulation.bound: the solver here only looks for prices,
and any prices give a true bound.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import mean
from time import process_time

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csc_matrix

from berth.base.errors import BadInput
from berth.simulation.bound import PRICE_ONE, Problem, all_fit, best_patterns, held_at_most, mean_arrivals, mix, problem
from berth.simulation.inflation import offer, prepare
from berth.sources.traces import PUBLISHED_VARIANTS, data_folder, read_trace
from fidelity import PUBLISHED_FILE, published

LOADS = (100, 130)
CLOSE_PCT = 0.005  # stop when prices prove this much of the program's own value, in percent of all GPUs
MOST_ROUNDS = 300
MOST_COLUMNS = 5_000
CENTRE = 0.7  # how much of the best prices so far is in the prices that are tried first


class Columns:
    """Patterns found so far, (shape, pods of each kind); useful for every program over the same problem."""

    def __init__(self, given: Problem) -> None:
        self.found: dict[bytes, tuple[int, np.ndarray]] = {}
        for j in range(len(given.need)):
            for t in range(len(given.cpu)):
                if given.runs_on(j, t):
                    alone = np.zeros(len(given.need), np.int64)
                    alone[j] = 1 if given.many[j] or not given.need[j] else given.cpu[t] // given.need[j]
                    self.add(t, alone)

    def add(self, t: int, pattern: np.ndarray) -> None:
        self.found.setdefault(bytes([t]) + pattern.tobytes(), (t, pattern))

    def keep(self, used: np.ndarray) -> None:
        """Only those that a solution uses, and the newest."""
        if len(self.found) > MOST_COLUMNS:
            items = list(self.found.items())
            newest = len(items) - MOST_COLUMNS // 3
            self.found = dict(item for i, item in enumerate(items) if used[i] > 1e-9 or i > newest)


def held(given: Problem, columns: Columns, arrivals: np.ndarray) -> float:
    """GPU milli that no policy can exceed, proven; with prices from column generation."""
    close = CLOSE_PCT / 100 * given.capacity
    kinds = np.flatnonzero(given.milli > 0)
    best, centre, price = float("inf"), None, given.milli.copy()
    for _ in range(MOST_ROUNDS):
        for tried in [price] if centre is None else [CENTRE * centre + (1 - CENTRE) * price, price]:
            whole = np.rint(tried * PRICE_ONE).astype(np.int64)
            values, patterns = best_patterns(given, whole)
            proven = held_at_most(given, whole, values, arrivals)
            if proven < best:
                best, centre = proven, tried
            for t, pattern in enumerate(patterns):
                columns.add(t, pattern)
        value, price, used = _held_program(given, columns, kinds, arrivals)
        if best - value < close:
            break
        columns.keep(used)
    return best


def fits_up_to(given: Problem, columns: Columns, arrivals: np.ndarray) -> float:
    """The largest multiple of the arrivals that could run whole, at most; proven in the same way."""
    kinds = np.flatnonzero(given.can_run & ~given.is_free)
    milli = np.where(given.many == 0, given.need * 20.0, given.milli) * given.can_run
    best, centre, price = float("inf"), None, milli
    for _ in range(MOST_ROUNDS):
        for tried in [price] if centre is None else [CENTRE * centre + (1 - CENTRE) * price, price]:
            # Prices count by their ratios alone: scaled so that rounding them loses nothing.
            scaled = tried * (given.capacity / max(float(tried @ arrivals), 1e-9))
            whole = np.rint(scaled * PRICE_ONE).astype(np.int64)
            values, patterns = best_patterns(given, whole)
            proven = all_fit(given, whole, values, arrivals)
            if proven < best:
                best, centre = proven, scaled
            for t, pattern in enumerate(patterns):
                columns.add(t, pattern)
        value, price, used = _fit_program(given, columns, kinds, arrivals)
        price = price * (given.capacity / max(float(price @ arrivals), 1e-9))
        if best - value < CLOSE_PCT / 100:
            break
        columns.keep(used)
    return best


def _matrix(columns: Columns, kinds: np.ndarray, last: np.ndarray | None, size: int) -> csc_matrix:
    """Rows: a kind each (what runs less what patterns hold), then a node shape each. `last`: one more column."""
    row_of = {j: i for i, j in enumerate(kinds.tolist())}
    rows, cols, data = [], [], []
    for i, (t, pattern) in enumerate(columns.found.values()):
        for j in np.flatnonzero(pattern).tolist():
            if j in row_of:
                rows.append(row_of[j])
                cols.append(i)
                data.append(-float(pattern[j]))
        rows.append(len(kinds) + t)
        cols.append(i)
        data.append(1.0)
    count = len(columns.found)
    extra = np.arange(len(kinds))
    if last is None:
        rows, cols, data = [*rows, *extra], [*cols, *(count + extra)], [*data, *np.ones(len(kinds))]
        width = count + len(kinds)
    else:
        rows, cols, data = [*rows, *extra], [*cols, *np.full(len(kinds), count)], [*data, *last]
        width = count + 1
    return csc_matrix((data, (rows, cols)), (len(kinds) + size, width))


def _held_program(given, columns, kinds, arrivals):
    """Value, prices (J,) and use of the columns of: most GPU milli from the patterns found so far."""
    count = len(columns.found)
    matrix = _matrix(columns, kinds, None, len(given.cpu))
    limits = np.concatenate([np.zeros(len(kinds)), given.count])
    bounds = [(0, None)] * count + [(0, a) for a in arrivals[kinds]]
    solved = linprog(np.concatenate([np.zeros(count), -given.milli[kinds]]), matrix, limits, bounds=bounds)
    price = np.zeros(len(given.need))
    price[kinds] = np.maximum(-solved.ineqlin.marginals[: len(kinds)], 0)
    return -solved.fun, price, solved.x[:count]


def _fit_program(given, columns, kinds, arrivals):
    """The same of: largest multiple of the arrivals."""
    count = len(columns.found)
    matrix = _matrix(columns, kinds, arrivals[kinds], len(given.cpu))
    limits = np.concatenate([np.zeros(len(kinds)), given.count])
    solved = linprog(np.concatenate([np.zeros(count), [-1.0]]), matrix, limits)
    price = np.zeros(len(given.need))
    price[kinds] = np.maximum(-solved.ineqlin.marginals[: len(kinds)], 0)
    return -solved.fun, price, solved.x[:count]


def bounds_of(variant: str, seeds: range | None) -> dict:
    """Bounds of one trace in percent of all GPUs: by load, and `all_fit`; for the mix where there are no seeds."""
    prepared = prepare(read_trace(f"openb:{variant}"))
    given = problem(prepared)
    columns = Columns(given)
    expected = mix(given, prepared)
    offers = [offer(prepared, seed) for seed in seeds or ()]
    found: dict = {"trace": variant}
    for load in LOADS:
        arrivals = mean_arrivals(given, offers, load) if offers else expected * (load / 100)
        found[str(load)] = max(0.0, 100 - 100 * held(given, columns, arrivals) / given.capacity)
    found["all_fit"] = 100 - 100 * fits_up_to(given, columns, expected)
    return found


def own_results(path: Path | None) -> dict[tuple[str, str], float]:
    """(trace, load) -> mean of the policy that begins with `berth`, from `berth simulate packing -o json`."""
    if path is None:
        return {}
    mine = [one for one in json.loads(path.read_text())["summary"] if one["policy"].startswith("berth")]
    if len({one["policy"] for one in mine}) > 1:
        raise BadInput(str(path), "holds two policies of ours.", "Write one of them.")
    return {
        (one["trace"].removeprefix("openb:"), load): one["mean"]["unallocated_gpu_pct"][load]
        for one in mine
        for load in ("100", "130")
    }


def table(found: list[dict], own: dict[tuple[str, str], float]) -> str:
    """One row a trace: at each load bound, FGD, own, and own less the bound; then `all fit`."""
    theirs = {load: published(data_folder() / PUBLISHED_FILE, load) for load in LOADS}
    heads = [f"{name}@{load}" for load in LOADS for name in ("bound", "FGD", *(("own", "over") if own else ()))]
    lines = [f"{'trace':<12}" + "".join(f"{head:>11}" for head in (*heads, "all fit"))]
    rows = []
    for one in found:
        row: list[float] = []
        for load in LOADS:
            row += [one[str(load)], theirs[load][one["trace"], "fgd"][0]]
            if own:
                mine = own.get((one["trace"], str(load)), float("nan"))
                row += [mine, mine - one[str(load)]]
        rows.append([*row, one["all_fit"]])
        lines.append(f"{one['trace']:<12}" + "".join(f"{value:>11.2f}" for value in rows[-1]))
    lines.append(f"{'mean':<12}" + "".join(f"{mean(column):>11.2f}" for column in zip(*rows, strict=True)))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", default=",".join(PUBLISHED_VARIANTS))
    parser.add_argument("--seeds", default="42-51", help="first-last")
    parser.add_argument("--mix", action="store_true", help="the expected arrivals instead of those of the seeds")
    parser.add_argument("--own", type=Path, help="JSON of `berth simulate packing`")
    parser.add_argument("--json", type=Path, help="also write the bounds here")
    options = parser.parse_args()
    first, last = (int(part) for part in options.seeds.split("-"))
    own = own_results(options.own)
    found = []
    for variant in options.traces.split(","):
        found.append(bounds_of(variant, None if options.mix else range(first, last + 1)))
        print(f"{variant}: {process_time():.0f} CPU seconds", file=sys.stderr)
    print("unallocated GPU %, " + ("expected arrivals" if options.mix else f"mean of seeds {first} to {last}"))
    print(table(found, own))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadInput as wrong:
        print(wrong.sentence, file=sys.stderr)
        sys.exit(wrong.exit_code)
