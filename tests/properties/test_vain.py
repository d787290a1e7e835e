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
SETS = {
    (pods, gpus): (PodSet("pods", PodClass(resources({"cpu": 1000, "nvidia.com/gpu": gpus})), pods, pods),)
    for pods in (1, 2, 3)
    for gpus in (1, 2, 3, 4)
}
# (pods, GPUs of each, queue, priority, run-time limit): more than there is room for, and many alike
asked = st.lists(
    st.tuples(
        st.sampled_from([1, 1, 2, 3]), st.integers(1, GPUS), st.sampled_from("ab"), st.sampled_from([0, 0, 5]),
        st.sampled_from([0.0, 60.0, 3600.0]),
    ),
    min_size=4, max_size=24,
)  # fmt: skip
queues = st.sampled_from([(), (Queue("a"), Queue("b", limit=(("*", 5),))), (Queue("a", quota=(("*", 4),)), Queue("b"))])


def waiting(rows: list[tuple[int, int, str, int, float]], of: tuple[Queue, ...]) -> Snapshot:
    workloads = tuple(
        Workload(
            f"w{i}", SETS[pods, gpus], kind="Job", namespace=queue, queue=queue, priority=priority, created_s=float(i),
            time_limit_s=limit,
        )
        for i, (pods, gpus, queue, priority, limit) in enumerate(rows)
    )  # fmt: skip
    return replace(like_nodes(NODES, GPUS), workloads=workloads, queues=of, now_s=1_000.0)


def told(plan: Plan) -> object:
    columns = [column.tolist() for column in (plan.workload, plan.pod_set, plan.node, plan.devices)]
    return columns, plan.evictions, plan.holds, dict(plan.verdicts), dict(plan.scopes), dict(plan.starts_by)


@settings(max_examples=60, deadline=None)
@given(asked, queues, st.sampled_from([1, 3]))
def test_a_plan_is_the_same_with_everybody_tried(
    rows: list[tuple[int, int, str, int, float]], of: tuple[Queue, ...], reservations: int
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
    rows: list[tuple[int, int, str, int, float]], of: tuple[Queue, ...]
) -> None:
    snapshot, policy = waiting(rows, of), Policy(explains=False)
    plan = cycle(snapshot, policy)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cycles, "_nothing_starts", lambda *_: False)
        slowly = cycle(snapshot, policy)
    assert np.array_equal(plan.workload, slowly.workload)
    assert np.array_equal(plan.node, slowly.node)
