"""The packing experiment: its published test vectors, its rules, and that nothing is left to chance."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from berth.base.errors import BadInput
from berth.model.trace import Trace, TraceCluster, TracePods
from berth.simulation import inflation, packing
from berth.simulation.baselines import BASELINES
from berth.simulation.fragmentation import fragmented, fragmented_plain, tables
from berth.simulation.inflation import offer, prepare
from berth.simulation.offer import Placements
from berth.simulation.packing import experiment, summaries
from berth.simulation.replay import BrokenPlacement, load_of, measure
from berth.simulation.typical import typical_pods
from berth.sources.traces import read_trace

NO_DATA = "BERTH_DATA is not set: no public traces"
needs_data = pytest.mark.skipif(not os.environ.get("BERTH_DATA"), reason=NO_DATA)


def ints(*values):
    return np.array(values, dtype=np.int64)


def small(pods=40, asks=((4000, 1, 460), (8000, 1, 1000), (2000, 0, 0), (16000, 2, 1000))):
    """Three nodes of 8, 2 and 2 GPUs and pods that take the requests in turn."""
    cpu, num_gpu, milli = (ints(*(asks[i % len(asks)][j] for i in range(pods))) for j in range(3))
    return Trace(
        "small",
        TraceCluster(("a", "b", "c"), ints(96000, 64000, 64000), ints(10**6, 10**6, 10**6), ints(8, 2, 2),
                     ints(0, 1, 1), ("G2", "T4")),
        TracePods(tuple(f"p{i}" for i in range(pods)), cpu, np.full(pods, 1000), num_gpu, milli,
                  np.zeros(pods, np.int64), ((),)),
    )


# Public traces -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def default():
    return read_trace("openb:default")


@needs_data
@pytest.mark.parametrize(
    ("variant", "classes"),
    [("default", 35), ("multigpu20", 38), ("multigpu50", 43), ("gpushare40", 36), ("gpushare100", 21),
     ("gpuspec10", 74), ("gpuspec33", 127), ("cpu050", 35), ("cpu250", 34)],
)
def test_typical_pods_are_as_many_as_published(variant, classes):
    assert len(typical_pods(read_trace(f"openb:{variant}")).count) == classes


@needs_data
def test_the_most_popular_class(default):
    typical = typical_pods(default)
    assert (typical.cpu_milli[0], typical.num_gpu[0], typical.gpu_milli[0]) == (3152, 1, 810)
    assert typical.count[0] / typical.weight == pytest.approx(0.13482, abs=5e-6)
    assert typical.weight / len(default.pods.names) == pytest.approx(0.9526, abs=5e-5)


@needs_data
@pytest.mark.parametrize(
    ("model", "cores", "gpu", "expected"),
    [
        ("G2", 96, [1000] * 8, 1087.8187),
        ("G2", 92, [780] + [1000] * 7, 1549.0446),
        ("T4", 96, [500, 500, 1000, 1000], 1087.0461),
        ("G2", 4, [1000] * 8, 5731.6508),
        ("T4", 104, [190, 1000], 324.6562),
        ("P100", 2, [140, 640], 780.0),
    ],
)
def test_fragmentation_of_a_node_is_the_published_one(default, model, cores, gpu, expected):
    typical = typical_pods(default)
    plain = fragmented_plain(typical, model, cores * 1000, gpu)
    assert plain / typical.weight == pytest.approx(expected, abs=5e-5)
    index = default.cluster.models.index(model)
    table = tables(typical, default.cluster.models, 8)
    assert fragmented(table, index, cores * 1000, np.array(gpu, np.int32)) == plain


@needs_data
def test_fragmentation_of_the_empty_cluster_is_the_published_one(default):
    typical, cluster = typical_pods(default), default.cluster
    table = tables(typical, cluster.models, 8)
    total = sum(
        fragmented(table, cluster.model[n], cluster.cpu_milli[n], np.full(cluster.gpus[n], 1000, np.int32))
        for n in range(len(cluster.names))
    )
    assert total / typical.weight == pytest.approx(866_232.552, abs=5e-4)
    assert 100 * total / typical.weight / cluster.capacity_milli == pytest.approx(13.94, abs=0.005)


@needs_data
def test_a_default_run_offers_and_fails_as_many_pods_as_published(default):
    runs = {one.policy: one for one in experiment([default], BASELINES, [42])}
    assert all(10_600 < one.offered_pods < 11_050 for one in runs.values())
    assert 2_350 < runs["fgd"].failed_pods < 2_600
    assert 2_650 < runs["dotprod"].failed_pods < 2_900


@needs_data
def test_published_results_hold_for_two_seeds(default):
    """The whole comparison is benchmarks/fidelity.py; five standard deviations of two seeds catch a slip."""
    published = {"random": (13.70, 0.33), "dotprod": (9.38, 0.19), "clustering": (8.35, 0.61),
                 "packing": (8.22, 0.53), "bestfit": (7.14, 0.14), "fgd": (4.77, 0.11)}
    for summary in summaries(experiment([default], BASELINES, [42, 43])):
        mean, sd = published[summary.policy]
        assert summary.mean["unallocated_gpu_pct"]["100"] == pytest.approx(mean, abs=5 * sd), summary.policy
        assert summary.mean["unallocated_gpu_pct"]["50"] == pytest.approx(50.0, abs=0.2)


# The offer -----------------------------------------------------------------------------------------------


def test_a_list_that_asks_for_too_little_grows_to_the_limit():
    prepared = prepare(small(pods=12))
    for seed in range(30):
        pods = offer(prepared, seed)
        asked = (pods.classes.num_gpu * pods.classes.gpu_milli)[pods.class_of]
        assert asked.sum() - asked[-1] <= 15_600
        assert asked.sum() <= 15_600 + 1000, "the next pod's share of one GPU is what is tested"
        assert asked.sum() > 15_600 - 1000
        assert np.bincount(pods.class_of[:12]).tolist() == [3, 3, 3, 3], "the trace itself comes first"


def test_a_list_that_asks_for_too_much_is_cut_just_below_the_limit():
    prepared = prepare(small(pods=400))
    for seed in range(30):
        pods = offer(prepared, seed)
        asked = (pods.classes.num_gpu * pods.classes.gpu_milli)[pods.class_of]
        assert 15_600 - 2000 < asked.sum() <= 15_600


def test_an_offer_depends_on_its_seed_alone():
    prepared = prepare(small())
    first, again, other = offer(prepared, 7), offer(prepared, 7), offer(prepared, 8)
    assert first.class_of.tolist() == again.class_of.tolist()
    assert first.origin.tolist() == again.origin.tolist()
    assert first.class_of.tolist() != other.class_of.tolist()
    assert sorted(first.origin.tolist()) == [0, 1, 2]
    assert first.nodes.gpus.tolist() == [(8, 2, 2)[n] for n in first.origin]


def test_pods_that_ask_for_no_gpu_are_offered_once():
    pods = offer(prepare(small(asks=((1000, 0, 0),))), 1)
    assert len(pods.class_of) == 40


def test_a_trace_that_would_need_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(inflation, "MAX_TABLE", 11)
    with pytest.raises(BadInput, match="4 distinct requests and 3 nodes"):
        prepare(small())
    monkeypatch.setattr(inflation, "MAX_TABLE", 12)
    monkeypatch.setattr(inflation, "MAX_OFFERED", 100)
    with pytest.raises(BadInput, match="so little GPU"):
        prepare(small(asks=((1000, 1, 1), (1000, 0, 0))))


# The measure ---------------------------------------------------------------------------------------------


def test_loads_round_half_to_even():
    for capacity in (8, 1000, 6_212_000, 7_000):
        for arrived in [*range(60), *range(capacity // 200, 3 * capacity, max(capacity // 400, 1))]:
            assert load_of(arrived, capacity) == round(Fraction(100 * arrived, capacity))


def test_the_value_at_a_load_is_the_mean_over_its_events():
    trace = small(pods=4, asks=((1000, 1, 500), (1000, 0, 0)))
    offered = replace(offer(prepare(trace), 1), class_of=ints(1, 1, 0, 1))  # share, share, CPU-only, share
    assert offered.classes.num_gpu.tolist() == [0, 1]
    big = int(np.argmax(offered.nodes.gpus))
    curves = measure(offered, Placements(ints(big, -1, big, big), ints(1, 0, 0, 1)))
    # 500 of 12,000 milli arrived is 4 %, 1,000 is 8 % (two events, the CPU-only pod's is one), 1,500 is 12 %.
    assert curves.unallocated[[4, 8, 12]] == pytest.approx([100 - 50 / 12, 100 - 50 / 12, 100 - 100 / 12])
    assert np.isnan(curves.unallocated[5])
    assert (curves.offered, curves.failed) == (4, 1)
    # Half the typical pods ask for no GPU, for them all idle GPU is fragmented; the others can use the rest.
    assert curves.fragmented[12] == pytest.approx(50 * 11_000 / 12_000)
    assert curves.frag_rate[12] == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("node", "gpus", "told"),
    [
        ([9, 0], [1, 1], "does not exist"),
        ([0, 0], [1, 0], "another number"),
        ([0, 0], [1, 3], "another number"),
        ([0, 0], [1, 1], "less free"),
        ([0, 0], [1, 1 << 8], "GPU that does not exist"),
        ([0, 0], [1, -(2**63)], "GPU that does not exist"),
    ],
)
def test_a_policy_cannot_give_what_is_not_there(node, gpus, told):
    offered = replace(offer(prepare(small(asks=((1000, 1, 1000),))), 1), class_of=ints(0, 0))
    with pytest.raises(BrokenPlacement, match=told):
        measure(offered, Placements(ints(*node), ints(*gpus)))


def test_a_policy_cannot_give_a_node_more_than_its_cpu_or_an_excluded_model():
    offered = replace(offer(prepare(small(asks=((60_000, 1, 100),))), 1), class_of=ints(0, 0))
    two = int(np.argmin(offered.nodes.gpus))
    with pytest.raises(BrokenPlacement, match="CPU or memory"):
        measure(offered, Placements(ints(two, two), ints(1, 1)))
    picky = replace(offered, classes=offered.classes._replace(models=ints(1)))
    with pytest.raises(BrokenPlacement, match="excludes"):
        measure(picky, Placements(ints(two, -1), ints(1, 0)))


# The experiment ------------------------------------------------------------------------------------------


def facts(runs):
    return [replace(one, placements_per_second=0.0) for one in runs]


def test_the_number_of_processes_changes_nothing():
    traces = [small(), replace(small(pods=60), name="larger")]
    seen = []
    alone = experiment(traces, BASELINES, [1, 2, 3], jobs=1)
    shared = experiment(traces, BASELINES, [1, 2, 3], jobs=2, progress=lambda *told: seen.append(told))
    assert facts(alone) == facts(shared) == facts(experiment(traces, BASELINES, [1, 2, 3]))
    assert [(one.trace, one.policy, one.seed) for one in alone] == [
        (trace, policy, seed) for trace in ("small", "larger") for policy in BASELINES for seed in (1, 2, 3)]
    assert seen[-1] == (36, 36) and len(seen) == 6


def test_a_policy_of_ones_own_joins_the_same_experiment():
    def nothing_fits(offered):
        return Placements(np.full(len(offered.class_of), -1), np.zeros(len(offered.class_of), np.int64))

    ours, fgd = experiment([small()], {"nothing": nothing_fits, "fgd": BASELINES["fgd"]}, [5])
    assert ours.offered_pods == ours.failed_pods == fgd.offered_pods > fgd.failed_pods
    assert set(ours.unallocated_gpu_pct.values()) <= {100.0, None}


def test_a_summary_holds_mean_and_sample_deviation():
    trace = small(pods=60, asks=((1000, 1, 120), (1000, 1, 240)))
    runs = experiment([trace], {"random": BASELINES["random"]}, range(5))
    (summary,) = summaries(runs)
    assert summary.n == 5
    seen = 0
    for load, mean in summary.mean["unallocated_gpu_pct"].items():
        values = [one.unallocated_gpu_pct[load] for one in runs if one.unallocated_gpu_pct[load] is not None]
        if len(values) > 1:
            seen += 1
            assert mean == pytest.approx(np.mean(values))
            assert summary.sd["unallocated_gpu_pct"][load] == pytest.approx(np.std(values, ddof=1))
    assert seen >= 3
    assert summary.mean["failed_pods"] == pytest.approx(np.mean([one.failed_pods for one in runs]))
    assert list(summary.mean["frag_rate_pct"]) == [str(load) for load in packing.LOADS]
    (alone,) = summaries(runs[:1])
    assert alone.sd["failed_pods"] is None
