"""Who is like one that found no room is not tried: the plan is the same as if everybody were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.model.queue import Queue
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, Workload
from berth.scheduling import cycle as cycles
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.vain import Vain
from berth.simulation.queueing.cluster import like_nodes

NODES, GPUS = 3, 4
OF_GPUS = {gpus: PodClass(resources({"cpu": 1000, "nvidia.com/gpu": gpus})) for gpus in range(1, GPUS + 2)}
SETS = {
    (pods, gpus, more): (
        PodSet("pods", OF_GPUS[gpus], pods, pods), *((PodSet("more", OF_GPUS[more], 2, 0),) if more else ())
    )
    for pods in (1, 2, 3)
    for gpus in (1, 2, 3, 4)
    for more in (0, 1, GPUS + 1)
}  # fmt: skip
# (pods, GPUs of each, of each of two pods that it can start without, queue, priority, run-time limit): more than there
# is room for, and many alike; some of what they can start without fits on no node
Row = tuple[int, int, int, str, int, float]
asked = st.lists(
    st.tuples(
        st.sampled_from([1, 1, 2, 3]), st.integers(1, GPUS), st.sampled_from([0, 0, 0, 1, GPUS + 1]),
        st.sampled_from("ab"), st.sampled_from([0, 0, 5]), st.sampled_from([0.0, 60.0, 3600.0]),
    ),
    min_size=4, max_size=24,
)  # fmt: skip
queues = st.sampled_from([(), (Queue("a"), Queue("b", limit=(("*", 5),))), (Queue("a", quota=(("*", 4),)), Queue("b"))])


def waiting(rows: list[Row], of: tuple[Queue, ...]) -> Snapshot:
    workloads = tuple(
        Workload(
            f"w{i}", SETS[pods, gpus, more], kind="Job", namespace=queue, queue=queue, priority=priority,
            created_s=float(i), time_limit_s=limit,
        )
        for i, (pods, gpus, more, queue, priority, limit) in enumerate(rows)
    )  # fmt: skip
    return replace(like_nodes(NODES, GPUS), workloads=workloads, queues=of, now_s=1_000.0)


def told(plan: Plan) -> object:
    columns = [column.tolist() for column in (plan.workload, plan.pod_set, plan.node, plan.devices)]
    return columns, plan.evictions, plan.holds, dict(plan.verdicts), dict(plan.scopes), dict(plan.starts_by)


@settings(max_examples=60, deadline=None)
@given(asked, queues, st.sampled_from([1, 3]))
def test_a_plan_is_the_same_with_everybody_tried(
    rows: list[Row], of: tuple[Queue, ...], reservations: int
) -> None:
    snapshot, policy = waiting(rows, of), Policy(reservations=reservations)
    with_it = told(cycle(snapshot, policy))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Vain, "knows_gang", lambda *_: None)
        patched.setattr(Vain, "has_row", lambda *_: False)
        assert told(cycle(snapshot, policy)) == with_it


@settings(max_examples=40, deadline=None)
@given(asked, queues)
def test_where_a_cycle_ends_at_once_nothing_would_have_started(
    rows: list[Row], of: tuple[Queue, ...]
) -> None:
    snapshot, policy = waiting(rows, of), Policy(explains=False)
    plan = cycle(snapshot, policy)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cycles, "_nothing_starts", lambda *_: False)
        slowly = cycle(snapshot, policy)
    assert np.array_equal(plan.workload, slowly.workload)
    assert np.array_equal(plan.node, slowly.node)


@settings(max_examples=80, deadline=None)
@given(asked, queues, st.sampled_from([1, 3]))
def test_places_in_time_that_nobody_is_told_of_are_kept_where_they_matter(
    rows: list[Row], of: tuple[Queue, ...], reservations: int
) -> None:
    """Without verdicts a place is worked out only where it keeps somebody off."""
    snapshot = waiting(rows, of)
    plans = [cycle(snapshot, Policy(reservations=reservations, evicts=False, explains=says)) for says in (True, False)]
    with_words, without = ([c.tolist() for c in (p.workload, p.pod_set, p.node, p.devices)] for p in plans)
    assert with_words == without


def test_a_gang_starts_though_what_it_can_do_without_fits_nowhere() -> None:
    """It passes a place in time of another, for which nodes were looked at before."""
    rows: list[Row] = [
        (3, 2, 0, "a", 0, 3600.0),  # half of each node
        (3, 4, 0, "a", 0, 3600.0),  # waits for all of them
        (1, 1, GPUS + 1, "a", 0, 60.0),
    ]
    plan = cycle(waiting(rows, ()), Policy(evicts=False))
    assert plan.starts_by == {1: 4_600.0}
    assert sorted(set(plan.workload.tolist())) == [0, 2]
