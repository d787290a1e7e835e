"""Moves because what is free is scattered: only of work that loses little, within a budget, with a place for each."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from berth.model.budget import Budget
from berth.model.cluster import Allocation, Device, Node
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.workload import LabelSelector, PodClass, PodSet, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Rule

GPU = "nvidia.com/gpu"
HOUR = 3600.0


def node(n: int) -> Node:
    amounts = resources({GPU: 8, "cpu": 10**6, "pods": 100})
    return Node(
        f"n{n}", allocatable=amounts, capacity=amounts, device_resource=GPU, devices=tuple(Device(g) for g in range(8))
    )


def pod_class(gpus: int) -> PodClass:
    return PodClass(resources({GPU: gpus, "cpu": 100}))


def runs(name: str, n: int, first: int, gpus: int = 1, **more: object) -> Allocation:
    usual = {"is_controlled": True, "checkpoint_every_s": 600.0, "started_s": 0.0}
    return Allocation(
        f"n{n}", "team", name, pod_class(gpus), devices=tuple(range(first, first + gpus)), **{**usual, **more}
    )


@dataclass(frozen=True)
class Scattered:
    """Two nodes: one with six GPUs and one with two held, and a pod of eight that waits."""

    small: tuple[Allocation, ...]
    large: Allocation

    def snapshot(self, hours: float = 10.0, **more: object) -> Snapshot:
        waits = Workload("wide", (PodSet("s", pod_class(8)),), namespace="team", created_s=1.0)
        return Snapshot(
            (node(0), node(1)), (self.large, *self.small), (waits,), now_s=10 * HOUR, moves_hours=hours, **more
        )


@pytest.fixture
def scattered() -> Scattered:
    return Scattered((runs("a", 1, 0), runs("b", 1, 1)), runs("large", 0, 0, 6, preemptible=False))


def test_the_cheapest_move_and_the_place_is_held(scattered: Scattered) -> None:
    plan = cycle(scattered.snapshot())
    assert {e.allocation.name for e in plan.evictions} == {"a", "b"}
    assert {e.rule for e in plan.evictions} == {Rule.Moved}
    # Ten minutes since the last checkpoint at most, and five for the restart, of one GPU each.
    assert sum(e.gpu_hours for e in plan.evictions) == pytest.approx(2 * 900 / 3600)
    (hold,) = plan.holds
    assert [(place.node, place.count) for place in hold.places] == [("n1", 1)]
    assert "room" in plan.verdicts[0].causes[0].sentence


def test_afterwards_all_have_a_place(scattered: Scattered) -> None:
    snapshot = scattered.snapshot()
    plan = cycle(snapshot)
    back = tuple(
        Workload(e.allocation.name, (PodSet("s", pod_class(1)),), namespace="team", created_s=11 * HOUR)
        for e in plan.evictions
    )
    after = replace(
        snapshot, allocations=(scattered.large,), workloads=(*snapshot.workloads, *back), holds=plan.holds,
        moves_hours=0.0,
    )  # fmt: skip
    placed = {bind.workload.name: bind.node.name for bind in cycle(after).binds()}
    assert placed == {"wide": "n1", "a": "n0", "b": "n0"}


def test_not_beyond_what_may_be_lost(scattered: Scattered) -> None:
    assert not cycle(scattered.snapshot(0.49)).evictions
    assert len(cycle(scattered.snapshot(0.51)).evictions) == 2
    assert not cycle(scattered.snapshot(0.0)).evictions


@pytest.mark.parametrize(
    "keeps",
    [
        {"checkpoint_every_s": 0.0},
        {"is_controlled": False},
        {"preemptible": False},
        {"min_runtime_s": 11 * HOUR},
        {"is_ending": True},
        {"is_daemon": True},
        {"disruption": "all", "workload": "team/gang", "workload_kind": "Job"},
    ],
)
def test_who_would_lose_much_or_may_not_leave_stays(scattered: Scattered, keeps: dict[str, object]) -> None:
    one = replace(scattered.small[0], **keeps)
    plan = cycle(Scattered((one, scattered.small[1]), scattered.large).snapshot())
    assert not any(e.rule is Rule.Moved for e in plan.evictions)


def test_budgets_are_kept(scattered: Scattered) -> None:
    labelled = tuple(replace(a, labels=(("app", "x"),)) for a in scattered.small)
    for allowed, moves in ((2, 2), (1, 0), (0, 0)):
        budget = Budget("team", "one", LabelSelector((("app", "x"),)), allowed)
        plan = cycle(Scattered(labelled, scattered.large).snapshot(budgets=(budget,)))
        assert len(plan.evictions) == moves


def test_the_one_that_holds_more_moves_where_the_others_may_not(scattered: Scattered) -> None:
    firm = tuple(replace(a, preemptible=False) for a in scattered.small)
    plan = cycle(Scattered(firm, replace(scattered.large, preemptible=None)).snapshot())
    assert [e.allocation.name for e in plan.evictions] == ["large"]


def test_nobody_moves_where_too_little_is_free(scattered: Scattered) -> None:
    full = replace(scattered.large, pod_class=pod_class(7), devices=tuple(range(7)))
    assert not cycle(Scattered(scattered.small, full).snapshot()).evictions
