"""Pods beside pods: affinity, anti-affinity, spread and host ports are kept; a gang that can keep them is placed."""

from __future__ import annotations

import dataclasses

import oracle
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import BIG, SMALL, TIGHT, TOPOLOGY, allocations, mostly, nodes, pod_classes, queue_trees, workloads

from berth.model.reasons import Reason
from berth.model.snapshot import Snapshot
from berth.model.topology import HOST_LABEL
from berth.model.workload import LabelSelector, PodTerm, Requirement, Spread
from berth.scheduling.cycle import cycle
from berth.scheduling.tables import Tables
from test_invariants import answer_of, assert_topology_is_kept, by_workload

often = settings(
    max_examples=150, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip
FEW = dataclasses.replace(TIGHT, nodes=4, asks=("none", "one", "one", "many", "share"), pod_sets=2)

keys = st.sampled_from([HOST_LABEL, HOST_LABEL, "rack", "block"])
apps = st.sampled_from([(("app", "a"),), (("app", "a"),), (("app", "b"),), ()])
selectors = st.sampled_from(
    [
        LabelSelector((("app", "a"),)),
        LabelSelector((("app", "a"),)),
        LabelSelector((("app", "b"),)),
        LabelSelector((), (Requirement("app", "Exists"),)),
    ]
)
terms = st.builds(PodTerm, selectors, keys, namespaces=mostly((), ("team-a",)), all_namespaces=mostly(False, True))
spreads = st.builds(Spread, selectors, keys, max_skew=st.integers(1, 2), min_domains=mostly(1, 2))
ports = st.sampled_from(
    [("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), ("0.0.0.0", "UDP", 80)]
)
DRAWN = {"near": terms, "apart": terms, "spread": spreads, "host_ports": ports}


@st.composite
def social_classes(draw):
    """A plain class with up to two constraints on other pods."""
    constraints = dict.fromkeys(DRAWN, ())
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        kind = draw(st.sampled_from(["near", "near", "apart", "apart", "spread", "spread", "host_ports"]))
        constraints[kind] = (*constraints[kind], draw(DRAWN[kind]))
    return replace(draw(pod_classes(FEW)), **constraints)


@st.composite
def social_snapshots(draw, most=4):
    """Pods that run and that wait look at each other; `most` workloads wait."""
    cluster = []
    for i in range(draw(st.integers(1, FEW.nodes))):
        node = draw(nodes(f"n{i}", FEW))
        cluster.append(replace(node, labels={**node.labels, HOST_LABEL: node.name}))
    classes = draw(st.lists(social_classes(), min_size=1, max_size=3))
    running = [
        replace(draw(allocations(cluster, f"a{i}", classes)), labels=draw(apps)) for i in range(draw(st.integers(0, 3)))
    ]
    queues = draw(queue_trees()) if most > 1 and draw(mostly(False, True)) else ()
    names = tuple(q.name for q in queues)
    size = FEW if most == 1 else dataclasses.replace(FEW, priorities=True)
    waiting = []
    for i in range(draw(st.integers(1, most))):
        workload = draw(workloads(f"w{i}", classes, size, names))
        sets = tuple(replace(s, labels=draw(apps)) for s in workload.pod_sets)
        waiting.append(replace(workload, pod_sets=sets))
    return Snapshot(tuple(cluster), tuple(running), tuple(waiting), (BIG, SMALL), queues, TOPOLOGY)


@often
@given(snapshot=social_snapshots())
def test_every_placed_workload_can_join_those_before_it(snapshot):
    """In the plan's order of workloads, and inside each in some order of its pods."""
    there, plan = oracle.running_beside(snapshot), cycle(snapshot)
    assert_topology_is_kept(snapshot, plan)
    for w, binds in by_workload(plan).items():
        workload = snapshot.workloads[w]
        sets = workload.pod_sets
        pods = [oracle.Beside(node, workload.namespace, sets[s].labels, sets[s].pod_class) for s, node, _ in binds]
        order = oracle.some_order(pods, there, snapshot.nodes)
        assert order is not None, workload.key
        there += order


@often
@given(snapshot=social_snapshots(most=1))
def test_a_gang_is_placed_exactly_where_its_pods_can_join_in_some_order(snapshot):
    workload = snapshot.workloads[0]
    assume(sum(s.min_count for s in workload.pod_sets) <= 4)
    assume(not any(w.slice_size for s in workload.pod_sets for w in (*s.topology, *workload.topology)))
    event(f"fits {assert_placed_exactly_where_pods_can_join(snapshot)}")


def assert_placed_exactly_where_pods_can_join(snapshot):
    workload, plan = snapshot.workloads[0], cycle(snapshot)
    fits = oracle.fits_beside(workload, snapshot)
    assert (0 not in plan.verdicts) == fits, plan.verdicts
    for verdict in plan.verdicts.values():
        assert all(cause.proven for cause in verdict.causes)
        if [c.reason for c in verdict.causes] == [Reason.PodsInTheWay]:
            alone = [replace(s, pod_class=without_others(s.pod_class), labels=()) for s in workload.pod_sets]
            assert oracle.fits(replace(workload, pod_sets=tuple(alone)), snapshot), verdict
    return fits


def without_others(pod_class):
    return replace(pod_class, near=(), apart=(), spread=(), host_ports=())


@often
@given(snapshot=social_snapshots())
def test_the_plan_with_neighbours_depends_on_nothing_but_the_snapshot(snapshot):
    kept = Tables()
    first = answer_of(cycle(snapshot, cache=kept))
    assert first == answer_of(cycle(snapshot)) == answer_of(cycle(snapshot, cache=kept))
