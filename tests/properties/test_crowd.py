"""However pods come, go and change places, the columns that follow them equal those that are made anew."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.model.cluster import Allocation, Node
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.workload import LabelSelector, PodClass, PodSet, PodTerm, Workload
from berth.scheduling import crowd as crowd_module
from berth.scheduling.columns import columns_of
from berth.scheduling.crowd import Crowd, align
from berth.scheduling.neighbours import Neighbours, Residents
from berth.scheduling.seen import demand_seen

often = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

APP = {name: LabelSelector((("app", name),)) for name in "ab"}
CLASSES = [
    PodClass(resources({"cpu": 1000})),
    PodClass(resources({"cpu": 1000})),  # equal to the first, another object
    PodClass(resources({"cpu": 2000, "nvidia.com/gpu": 1})),
    PodClass(resources({"cpu": 500}), host_ports=(("0.0.0.0", "TCP", 80),)),
    PodClass(resources({"cpu": 500}), apart=(PodTerm(APP["a"], "kubernetes.io/hostname"),)),
]
NODES = tuple(
    Node(f"n{i}", labels={"kubernetes.io/hostname": f"n{i}"}, allocatable=resources({"cpu": 64_000, "pods": 99}))
    for i in range(4)
)


@st.composite
def pods(draw, name):
    return Allocation(
        draw(st.sampled_from(["n0", "n1", "n2", "n3", "gone"])),
        draw(st.sampled_from(["x", "y"])),
        name,
        draw(st.sampled_from(CLASSES)),
        labels=(("app", draw(st.sampled_from("ab"))),),
        queue=draw(st.sampled_from(["", "q"])),
        is_daemon=draw(st.booleans()),
    )


@st.composite
def histories(draw):
    """Lists of pods, each made from the one before: some go, some come, some are replaced, some change places."""
    now = [draw(pods(f"p{i}")) for i in range(draw(st.integers(0, 12)))]
    found = [tuple(now)]
    for step in range(draw(st.integers(1, 4))):
        for i in range(draw(st.integers(0, 5))):
            place = draw(st.integers(0, len(now)))
            match draw(st.sampled_from(["come", "come", "go", "go", "replace", "swap"])):
                case "come":
                    now.insert(place, draw(pods(f"s{step}-{i}")))
                case "go" if place < len(now):
                    del now[place]
                case "replace" if place < len(now):
                    now[place] = draw(pods(now[place].name))
                case "swap" if place + 1 < len(now):
                    other = draw(st.integers(0, len(now) - 1))
                    now[place], now[other] = now[other], now[place]
        found.append(tuple(now))
    return found


@pytest.fixture(params=[(1024, 64, 512), (3, 2, 512), (3, 2, 2)], ids=["as it is", "small steps", "soon looked up"])
def sizes(request, monkeypatch):
    for name, value in zip(("CHUNK", "WINDOW", "MOST_MISSES"), request.param, strict=True):
        monkeypatch.setattr(crowd_module, name, value)


@settings(often, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=histories())
def test_pods_that_stay_are_found(sizes, history):
    for old, new in pairwise(history):
        source = align(old, new)
        known = source[source >= 0]
        assert len(set(known.tolist())) == len(known)
        for p, s in enumerate(source.tolist()):
            assert s < 0 or old[s] == new[p]
        if old == new:
            assert (source == np.arange(len(new))).all()


@settings(often, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=histories())
def test_columns_that_follow_equal_new_ones(sizes, history):
    columns = columns_of(Snapshot(NODES))
    kept, before = Crowd(), None
    residents = None
    for allocations in history:
        kept.follow(allocations)
        changed = kept.settle(columns.index, before is None)
        if residents is None:
            residents = Residents(columns, kept)
        else:
            residents.follow()
        by_node = {n: [a for a in allocations if a.node == node.name] for n, node in enumerate(NODES)}
        if before is not None:
            assert {n for n in by_node if by_node[n] != before[n]} <= set(changed.tolist())
        assert kept.on(np.arange(len(NODES)), len(NODES)) == by_node
        before = by_node
        assert [kept.classes[k] for k in kept.kind.tolist()] == [a.pod_class for a in allocations]
        assert [kept.payers[k] for k in kept.payer.tolist()] == [(a.queue, a.namespace) for a in allocations]
        assert kept.node.tolist() == [columns.index.get(a.node, -1) for a in allocations]
        assert kept.daemon.tolist() == [a.is_daemon for a in allocations]
        waits = Snapshot(NODES, allocations, (Workload("w", (PodSet("p", CLASSES[2]),)),))
        assert demand_seen(waits, kept) == demand_seen(waits)
        assert_residents(residents, allocations)


def assert_residents(residents, allocations):
    there = [(i, a) for i, node in enumerate(NODES) for a in allocations if a.node == node.name]
    for name, selector in APP.items():
        for scope in (None, ("x",)):
            expected = Counter(
                n for n, a in there if dict(a.labels)["app"] == name and (scope is None or a.namespace in scope)
            )
            assert residents.count((selector, scope)).tolist() == [expected[n] for n in range(len(NODES))]
    ports = Counter((port, n) for n, a in there for port in a.pod_class.host_ports)
    terms = Counter(((term, a.namespace), n) for n, a in there for term in a.pod_class.apart)
    for found, expected in ((residents.ports, ports), (residents.holding, terms)):
        assert {(k, n): c for k, counts in found.items() for n, c in enumerate(counts.tolist()) if c} == expected
        assert all(counts.any() for counts in found.values()), "what nobody has is no rule"
    rules = any(a.pod_class.depends_on_pods for a in allocations)
    assert (Neighbours.of((), residents) is not None) == rules
