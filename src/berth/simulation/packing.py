"""The packing experiment: how full a policy gets a cluster before pods stop fitting.

Pods of a trace arrive in random order up to 130 % of the cluster's GPUs; none leaves. The policies are given
by an explicit dict, all see the same offers, and `replay` measures them all. Source: FGD, USENIX ATC 2023.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan
from statistics import mean, stdev
from time import perf_counter

from berth.model.trace import Trace
from berth.simulation.inflation import Prepared, offer, prepare
from berth.simulation.offer import Offer, Policy
from berth.simulation.replay import Curves, measure

LOADS = (50, 80, 90, 95, 100, 110, 120, 130)
PUBLISHED_SEEDS = tuple(range(42, 52))
METRICS = ("unallocated_gpu_pct", "frag_rate_pct", "frag_pct_of_capacity")
COUNTS = ("failed_pods", "placements_per_second")

# A value by load in percent, as text so that it is a JSON key; None where no pod event fell on that load.
ByLoad = dict[str, float | None]


@dataclass(frozen=True)
class Run:
    """One trace, policy and seed. Percentages by load; placements a second of the policy's own time.

    `moved_pct`: GPU milli of pods that were moved, in percent of what pods hold at the end.
    """

    trace: str
    policy: str
    seed: int
    unallocated_gpu_pct: ByLoad
    frag_rate_pct: ByLoad
    frag_pct_of_capacity: ByLoad
    offered_pods: int
    failed_pods: int
    placements_per_second: float
    moved_pct: float = 0.0


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation over n seeds, by metric: a value by load, or a number."""

    trace: str
    policy: str
    n: int
    mean: dict[str, ByLoad | float]
    sd: dict[str, ByLoad | float | None]


def run(name: str, policy: Policy, trace: str, offered: Offer) -> Run:
    """Place one offer by one policy and measure what it did."""
    started = perf_counter()
    placements = policy(offered)
    seconds = perf_counter() - started
    curves = measure(offered, placements)
    placed = curves.offered - curves.failed
    return Run(
        trace=trace,
        policy=name,
        seed=offered.seed,
        unallocated_gpu_pct=_by_load(curves, "unallocated"),
        frag_rate_pct=_by_load(curves, "frag_rate"),
        frag_pct_of_capacity=_by_load(curves, "fragmented"),
        offered_pods=curves.offered,
        failed_pods=curves.failed,
        placements_per_second=placed / max(seconds, 1e-9),
        moved_pct=100.0 * curves.moved_milli / max(curves.placed_milli, 1),
    )


def experiment(
    traces: Sequence[Trace],
    policies: Mapping[str, Policy],
    seeds: Sequence[int] = PUBLISHED_SEEDS,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Run]:
    """Every trace x policy x seed, in that order, whatever the number of processes.

    `progress(done, total)` is called after each trace and seed, with runs as the unit.
    """
    prepared = [prepare(trace) for trace in traces]
    if not prepared or not seeds:
        return []
    pairs = [(t, seed) for t in range(len(traces)) for seed in seeds]
    runs: list[Run] = []
    each = _all_policies(prepared, policies, pairs, jobs)
    for done, some in enumerate(each, start=1):
        runs.extend(some)
        if progress:
            progress(done * len(policies), len(pairs) * len(policies))
    place = {name: i for i, name in enumerate(policies)}
    width, count = len(policies), len(seeds)
    order = [
        (t * count + s) * width + place[name] for t in range(len(traces)) for name in policies for s in range(count)
    ]
    return [runs[i] for i in order]


def summaries(runs: Sequence[Run]) -> list[Summary]:
    """One summary for each trace and policy, in the order of their first runs."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for one in runs:
        groups.setdefault((one.trace, one.policy), []).append(one)
    return [_summary(trace, policy, group) for (trace, policy), group in groups.items()]


def _summary(trace: str, policy: str, group: Sequence[Run]) -> Summary:
    means: dict[str, ByLoad | float] = {}
    deviations: dict[str, ByLoad | float | None] = {}
    for metric in METRICS:
        by_load = {
            load: [value for one in group if (value := getattr(one, metric)[load]) is not None]
            for load in getattr(group[0], metric)
        }
        means[metric] = {load: mean(values) if values else None for load, values in by_load.items()}
        deviations[metric] = {load: _deviation(values) for load, values in by_load.items()}
    for count in COUNTS:
        values = [float(getattr(one, count)) for one in group]
        means[count], deviations[count] = mean(values), _deviation(values)
    return Summary(trace, policy, len(group), means, deviations)


def _deviation(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None


def _by_load(curves: Curves, name: str) -> ByLoad:
    curve = getattr(curves, name)
    at = {load: float(curve[load]) if load < len(curve) else float("nan") for load in LOADS}
    return {str(load): None if isnan(value) else value for load, value in at.items()}


def _all_policies(prepared, policies, pairs, jobs):
    """The runs of each (trace, seed) in order: one offer serves all policies."""
    _warm_up(prepared, policies)
    if jobs <= 1 or len(pairs) <= 1:
        yield from map(partial(_runs_of, prepared, policies), pairs)
        return
    # Forked workers inherit the compiled code and the traces; elsewhere they load and unpickle them.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with context.Pool(min(jobs, len(pairs)), _adopt, (prepared, policies)) as pool:
        yield from pool.imap(_adopted_runs_of, pairs)
        pool.close()
        pool.join()


def _warm_up(prepared: Sequence[Prepared], policies: Mapping[str, Policy]) -> None:
    """Load or compile what the policies need, once and before any clock runs: one pod by each."""
    offered = offer(prepared[0], 0)
    offered = replace(offered, class_of=offered.class_of[:1])
    for policy in policies.values():
        measure(offered, policy(offered))


def _runs_of(prepared: Sequence[Prepared], policies: Mapping[str, Policy], pair: tuple[int, int]) -> list[Run]:
    t, seed = pair
    offered = offer(prepared[t], seed)
    return [run(name, policy, prepared[t].trace.name, offered) for name, policy in policies.items()]


_adopted: tuple[Sequence[Prepared], Mapping[str, Policy]] = ((), {})


def _adopt(prepared: Sequence[Prepared], policies: Mapping[str, Policy]) -> None:
    """Give a worker what all its tasks share, so that a task is two numbers."""
    global _adopted
    _adopted = (prepared, policies)
    _warm_up(prepared, policies)


def _adopted_runs_of(pair: tuple[int, int]) -> list[Run]:
    return _runs_of(*_adopted, pair)
