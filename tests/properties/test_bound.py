"""The bound: its patterns against all patterns, its proof against what policies do and against every packing."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.model.trace import Trace, TraceCluster, TracePods
from berth.simulation import moves, own
from berth.simulation.baselines import BASELINES
from berth.simulation.bound import (
    PRICE_ONE,
    all_fit,
    best_patterns,
    ceiling,
    held_at_most,
    mean_arrivals,
    mix,
    problem,
)
from berth.simulation.inflation import offer, prepare
from berth.simulation.replay import measure
from berth.simulation.tiny import TINY

carefully = settings(max_examples=120, deadline=None, derandomize=True)

ASKS = [(0, 1, 500), (100, 1, 300), (250, 1, 700), (100, 1, 1000), (300, 2, 1000), (200, 0, 0), (0, 3, 1000)]


def ints(values):
    return np.array(list(values), np.int64)


@st.composite
def traces(draw):
    """One or two small nodes of two GPU models, and up to five requests, some of which exclude a model."""
    nodes = draw(st.lists(st.tuples(st.sampled_from([100, 350, 600]), st.integers(0, 3), st.integers(0, 1)),
                          min_size=1, max_size=2).filter(lambda some: any(gpus for _, gpus, _ in some)))  # fmt: skip
    pods = draw(st.lists(st.tuples(st.sampled_from(ASKS), st.integers(0, 1)), min_size=1, max_size=5))
    cluster = TraceCluster(
        tuple(f"n{i}" for i in range(len(nodes))), ints(n[0] for n in nodes), ints(10**6 for _ in nodes),
        ints(n[1] for n in nodes), ints(n[2] if n[1] else -1 for n in nodes), ("A", "B"),
    )  # fmt: skip
    asked = TracePods(
        tuple(f"p{i}" for i in range(len(pods))), ints(a[0] for a, _ in pods), ints(0 for _ in pods),
        ints(a[1] for a, _ in pods), ints(a[2] for a, _ in pods), ints(s for _, s in pods), ((), ("A",)),
    )  # fmt: skip
    return Trace("drawn", cluster, asked)


def fits(some, t, pattern):
    """Whether a node holds so many pods of each kind, by trying every deal of the shares to GPUs."""
    if int(pattern @ some.need) > some.cpu[t]:
        return False
    if any(pattern[j] and not some.runs_on(j, t) for j in range(len(pattern))):
        return False
    several = int(sum(pattern[j] * some.many[j] for j in range(len(pattern)) if some.many[j] > 1))
    left = int(some.gpus[t]) - several
    if left < 0:
        return False
    sizes = [int(some.units[j]) for j in range(len(pattern)) if some.many[j] == 1 for _ in range(pattern[j])]
    for deal in product(range(left), repeat=len(sizes)):
        used = [0] * left
        for g, size in zip(deal, sizes, strict=True):
            used[g] += size
        if all(u <= some.whole for u in used):
            return True
    return False


def all_patterns(some, t, most=4):
    """Every pattern of at most `most` pods of a kind."""
    for pattern in product(range(most + 1), repeat=len(some.need)):
        if fits(some, t, ints(pattern)):
            yield ints(pattern)


@carefully
@given(trace=traces(), data=st.data())
def test_patterns_fit_and_none_is_worth_more(trace, data):
    some = problem(prepare(trace))
    price = ints(data.draw(st.integers(0, 50)) for _ in some.need)
    price[some.is_free] = 0
    values, patterns = best_patterns(some, price)
    for t, (value, pattern) in enumerate(zip(values, patterns, strict=True)):
        assert pattern @ price == value
        if pattern.sum() <= 7:
            assert fits(some, t, pattern)
        few = 4 if len(some.need) <= 3 else 2
        assert max(int(p @ price) for p in all_patterns(some, t, few)) <= value


def test_a_pod_that_takes_nothing_has_no_price():
    pods = replace(TINY.pods, cpu_milli=TINY.pods.cpu_milli * 0)
    some = problem(prepare(replace(TINY, pods=pods)))
    assert some.is_free.sum() == 1
    with pytest.raises(ValueError, match="takes nothing"):
        best_patterns(some, np.ones(len(some.need), np.int64))


@carefully
@given(trace=traces(), data=st.data())
def test_no_packing_of_what_has_arrived_holds_more(trace, data):
    """Every way to run some of the pods on up to two nodes against the bound, whatever the prices."""
    some = problem(prepare(trace))
    arrived = ints(data.draw(st.integers(0, 2)) for _ in some.need)
    best = 0.0
    shapes = [t for t in range(len(some.cpu)) for _ in range(some.count[t])]
    for chosen in product(*(list(all_patterns(some, t, 2)) for t in shapes)):
        runs = np.minimum(sum(chosen), arrived)
        best = max(best, float(runs @ some.milli))
    for _ in range(4):
        price = ints(data.draw(st.integers(0, 2 * PRICE_ONE)) * int(m) // 2 for m in some.milli)
        assert ceiling(some, price, arrived.astype(float)) >= best - 1e-6


def tripled():
    cluster, pods = TINY.cluster, TINY.pods
    columns = {name: np.tile(getattr(cluster, name), 3) for name in ("cpu_milli", "memory_mib", "gpus", "model")}
    cluster = replace(cluster, names=tuple(f"node-{i}" for i in range(9)), **columns)
    return replace(TINY, cluster=cluster, pods=pods)


@pytest.mark.parametrize("load", [100, 130])
def test_no_policy_beats_the_bound(load):
    """The mean over seeds of every policy, moves included, at prices that are not even good."""
    prepared = prepare(tripled())
    some = problem(prepared)
    seeds = [seed for seed in range(30) if np.isfinite(at_load(prepared, own.placements, seed, load))]
    assert len(seeds) > 5
    arrivals = mean_arrivals(some, [offer(prepared, seed) for seed in seeds], load)
    price = np.rint(some.milli * PRICE_ONE).astype(np.int64)
    least = min(
        100 - 100 * held_at_most(some, tried, best_patterns(some, tried)[0], arrivals) / some.capacity
        for tried in (price, price * 7 // 10, price * 12 // 10)
    )
    for policy in (*BASELINES.values(), own.placements, lambda o: moves.placements(o, 50.0)):
        assert np.mean([at_load(prepared, policy, seed, load) for seed in seeds]) >= least - 1e-9


def at_load(prepared, policy, seed, load):
    offered = offer(prepared, seed)
    curve = measure(offered, policy(offered)).unallocated
    return curve[load] if load < len(curve) else np.nan


def test_mean_arrivals_are_the_mean_over_events():
    prepared = prepare(tripled())
    some = problem(prepared)
    offered = offer(prepared, 4)
    milli = some.milli[some.kind_of[offered.class_of]]
    arrived = np.cumsum(milli)
    loads = np.rint(100 * arrived / some.capacity).astype(int)
    load = int(loads[len(loads) // 2])
    counts = np.cumsum(np.eye(len(some.need))[some.kind_of[offered.class_of]], axis=0)
    assert mean_arrivals(some, [offered], load) == pytest.approx(counts[loads == load].mean(axis=0))
    with pytest.raises(ValueError, match="no pod event"):
        mean_arrivals(some, [offered], 1)


def test_all_fit_is_a_ceiling():
    """Two GPUs and pods of 0.7: two of them fit, so twice one pod is the most, and prices prove it."""
    pods = TracePods(("p",), ints([0]), ints([0]), ints([1]), ints([700]), ints([0]), ((),))
    cluster = TraceCluster(("n",), ints([1000]), ints([0]), ints([2]), ints([0]), ("A",))
    prepared = prepare(Trace("two", cluster, pods))
    some = problem(prepared)
    price = ints([5])
    values, _ = best_patterns(some, price)
    assert all_fit(some, price, values, np.ones(1)) == 2.0
    assert mix(some, prepared) @ some.milli == 2000
