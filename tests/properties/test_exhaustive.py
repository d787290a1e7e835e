"""On small clusters a single workload is placed exactly where trying every placement finds one.

The verdict is *never* exactly where no placement of the minimum exists in the cluster as it is built: only
DaemonSets run, every cordoned, unready or unfit node is in service, every device that is there is fit, and
topology, taints, selectors and capabilities are asked for as before. A gate or pods not created are no *never*.
"""

from __future__ import annotations

import oracle
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from strategies import BIG, SMALL, TIGHT, TOPOLOGY, Size, allocations, mostly, nodes, pod_classes, workloads

from berth.model.reasons import Answer
from berth.model.snapshot import Snapshot
from berth.model.topology import Topology
from berth.scheduling.cycle import cycle

ODD = Size(nodes=5, pods=4, gates=False, priorities=False)
MOST_PODS = 5

exhaustively = settings(
    max_examples=300, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip


@st.composite
def lone_workloads(draw, size=ODD, least_sets=1):
    """A small cluster in which one workload waits."""
    cluster = tuple(draw(nodes(f"n{i}", size)) for i in range(draw(st.integers(1, size.nodes))))
    classes = draw(st.lists(pod_classes(size), min_size=1, max_size=3))
    running = tuple(draw(allocations(cluster, f"a{i}")) for i in range(draw(st.integers(0, 5))))
    workload = draw(workloads("w", classes, size, least_sets=least_sets))
    topology = draw(mostly(TOPOLOGY, Topology())) if size.odd_nodes else TOPOLOGY
    return Snapshot(cluster, running, (workload,), (BIG, SMALL), topology=topology)


# What fits one by one and not together is frequent where everything is plain but the sets.
tight_gangs = lone_workloads(TIGHT, least_sets=2)
clusters = st.one_of(lone_workloads(), lone_workloads(TIGHT), tight_gangs)


def is_placed(plan):
    return 0 not in plan.verdicts


def is_small(workload):
    return sum(s.min_count for s in workload.pod_sets) <= MOST_PODS


@exhaustively
@given(snapshot=clusters)
def test_a_workload_is_placed_exactly_where_it_fits(snapshot):
    assume(is_small(snapshot.workloads[0]))
    event(f"fits {assert_placed_exactly_where_it_fits(snapshot)}, sets {len(snapshot.workloads[0].pod_sets)}")


def assert_placed_exactly_where_it_fits(snapshot):
    fits, plan = oracle.fits(snapshot.workloads[0], snapshot), cycle(snapshot)
    if not is_placed(plan):
        assert all(cause.proven for cause in plan.verdicts[0].causes)
    assert is_placed(plan) == fits, plan.verdicts
    return fits


@exhaustively
@given(snapshot=clusters)
def test_never_is_said_exactly_where_the_cluster_as_built_is_too_small(snapshot):
    assume(is_small(snapshot.workloads[0]))
    assert_never_exactly_where_too_small(snapshot)


def assert_never_exactly_where_too_small(snapshot):
    plan = cycle(snapshot)
    if not is_placed(plan):
        could = oracle.fits(snapshot.workloads[0], snapshot, empty=True)
        assert (plan.verdicts[0].answer is Answer.Never) == (not could), plan.verdicts
