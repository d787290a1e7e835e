"""On small clusters the compiled policies decide as their plain twins, and the replay counts as by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.model.trace import Trace, TraceCluster, TracePods
from berth.simulation.baselines import BASELINES, bestfit, clustering, dotprod, fgd, packing
from berth.simulation.baselines import random as drawing
from berth.simulation.baselines.plain import PlainPolicy, place_plain
from berth.simulation.fragmentation import fragmented, fragmented_plain, tables
from berth.simulation.inflation import offer, prepare
from berth.simulation.replay import measure
from berth.simulation.typical import typical_pods

TWINS = {
    "dotprod": dotprod.PLAIN, "clustering": clustering.PLAIN, "packing": packing.PLAIN,
    "bestfit": bestfit.PLAIN, "fgd": fgd.PLAIN,
}
SPECS = ((), ("G2",), ("G2", "T4"), ("T4", "V100"), ("nobody",))

# Includes nodes larger than the shape that the published scores assume, and nodes without GPUs.
machines = st.tuples(
    st.sampled_from([4_000, 8_000, 32_000, 96_000, 256_000]),
    st.sampled_from([2_000, 64_000, 262_144]),
    st.sampled_from([(0, -1), (1, 2), (2, 1), (4, 1), (8, 0), (8, 2), (16, 0)]),
)
requests = st.tuples(
    st.sampled_from([0, 100, 1_000, 3_152, 8_000, 24_000]),
    st.sampled_from([0, 500, 1_900, 12_288]),
    st.sampled_from([(0, 0), (1, 30), (1, 460), (1, 500), (1, 810), (1, 1000), (2, 1000),
                     (4, 1000), (8, 1000)]),
    st.integers(0, len(SPECS) - 1),
)


@st.composite
def small_traces(draw):
    nodes = draw(st.lists(machines, min_size=1, max_size=7).filter(lambda all_: any(n[2][0] for n in all_)))
    kinds = draw(st.lists(requests, min_size=1, max_size=6))
    pods = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=60))
    machine = np.array([(cpu, memory, *gpus) for cpu, memory, gpus in nodes], dtype=np.int64).T
    asked = np.array([(cpu, memory, *gpus, spec) for cpu, memory, gpus, spec in pods], dtype=np.int64).T
    return Trace(
        "drawn",
        TraceCluster(tuple(f"n{i}" for i in range(len(nodes))), *machine, ("G2", "T4", "V100")),
        TracePods(tuple(f"p{i}" for i in range(len(pods))), *asked, SPECS),
    )


def affordable(trace):
    """A plain run scores every node for every pod, so lists that grow a hundredfold are left out."""
    asked = int(trace.pods.asked_milli.sum())
    return asked == 0 or trace.cluster.capacity_milli * len(trace.pods.names) < 300 * asked


offers = st.builds(lambda trace, seed: offer(prepare(trace), seed), small_traces().filter(affordable),
                   st.integers(0, 2**32))
slowly = settings(max_examples=60, deadline=None, derandomize=True,
                  suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@pytest.mark.parametrize("policy", TWINS)
@slowly
@given(offered=offers)
def test_compiled_policies_decide_as_their_plain_twins(policy, offered):
    compiled, plain = BASELINES[policy](offered), place_plain(TWINS[policy], offered)
    assert compiled.node.tolist() == plain.node.tolist()
    assert compiled.gpus.tolist() == plain.gpus.tolist()


@slowly
@given(offered=offers)
def test_random_draws_as_its_plain_twin(offered):
    compiled = BASELINES["random"](offered)
    draws = drawing.draws(offered.seed, len(offered.class_of))
    plain = place_plain(PlainPolicy(lambda node, pod, typical: 0), offered, draws)
    assert compiled.node.tolist() == plain.node.tolist()
    assert compiled.gpus.tolist() == plain.gpus.tolist()


@slowly
@given(offered=offers, policy=st.sampled_from(sorted(BASELINES)))
def test_the_replay_counts_as_one_would_by_hand(offered, policy):
    placements = BASELINES[policy](offered)
    curves = measure(offered, placements)
    capacity, weight = offered.capacity_milli, offered.typical.weight
    model = [offered.models[t] if t >= 0 else "" for t in offered.nodes.model]
    cpu = offered.nodes.cpu_milli.tolist()
    gpu = [[1000] * count for count in offered.nodes.gpus]
    wasted = [fragmented_plain(offered.typical, model[n], cpu[n], gpu[n]) for n in range(len(gpu))]
    arrived, events = 0, {}
    for p, c in enumerate(offered.class_of):
        milli = int(offered.classes.gpu_milli[c])
        arrived += milli * int(offered.classes.num_gpu[c])
        n = placements.node[p]
        if n >= 0:
            cpu[n] -= int(offered.classes.cpu_milli[c])
            gpu[n] = [free - milli if placements.gpus[p] >> g & 1 else free for g, free in enumerate(gpu[n])]
            assert min(gpu[n], default=0) >= 0 and cpu[n] >= 0
            wasted[n] = fragmented_plain(offered.typical, model[n], cpu[n], gpu[n])
        idle = sum(map(sum, gpu))
        events.setdefault(round(Fraction(100 * arrived, capacity)), []).append(
            (100 * idle / capacity, 100 * sum(wasted) / weight / idle if idle else 0.0,
             100 * sum(wasted) / weight / capacity))
    assert {load for load, value in enumerate(curves.unallocated) if not np.isnan(value)} == set(events)
    for load, values in events.items():
        expected = np.mean(values, axis=0)
        found = curves.unallocated[load], curves.frag_rate[load], curves.fragmented[load]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert curves.failed == int((placements.node < 0).sum())


@slowly
@given(trace=small_traces(), cpu=st.integers(0, 100_000), model=st.integers(0, 2),
       gpu=st.lists(st.integers(0, 1000) | st.just(1000), min_size=1, max_size=16))
def test_the_tables_give_the_fragmentation_of_the_definition(trace, cpu, model, gpu):
    typical = typical_pods(trace)
    found = fragmented(tables(typical, trace.cluster.models, 16), model, cpu, np.array(gpu, np.int32))
    assert found == fragmented_plain(typical, trace.cluster.models[model], cpu, gpu)
