"""Who is set aside for whom, in one cycle: by what both still have to compute, and nobody who is protected."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from berth.model.cluster import Allocation
from berth.model.snapshot import Left, Snapshot
from berth.model.workload import Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan, Rule
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.shown import pod_sets

NOW_S = 1000.0


def runs(name: str, node: int, gpus: int, **more: Any) -> Allocation:
    return Allocation(
        **{
            "node": f"node-{node:04d}", "namespace": "x", "name": f"{name}-0", "workload": f"x/{name}",
            "pod_class": pod_sets(gpus, 8)[0].pod_class, "workload_kind": "Job", "disruption": "all", **more,
        }
    )  # fmt: skip


def waits(name: str, gpus: int, **more: Any) -> Workload:
    return Workload(**{"name": name, "namespace": "x", "kind": "Job", "pod_sets": pod_sets(gpus, 8), **more})


def decided(
    running: list[Allocation], waiting: list[Workload], left: dict[str, float], nodes: int = 1, **policy: Any
) -> Plan:
    snapshot: Snapshot = replace(
        like_nodes(nodes, 8), now_s=NOW_S, allocations=tuple(running), workloads=tuple(waiting),
        left={f"Job x/{name}": Left(left_s, 0.0) for name, left_s in left.items()},
    )  # fmt: skip
    return cycle(snapshot, Policy(**{"sets_aside": True, **policy}), Tables())


def set_aside(plan: Plan) -> set[str]:
    assert all(one.rule is Rule.SetAside for one in plan.evictions)
    return {one.allocation.workload for one in plan.evictions}


def test_who_has_more_left_to_do_makes_room() -> None:
    plan = decided([runs("long", 0, 8)], [waits("short", 4)], {"long": 5000.0, "short": 60.0})
    assert set_aside(plan) == {"x/long"}
    assert [hold.workload for hold in plan.holds] == ["Job x/short"], "the room is held for whom it was made"


@pytest.mark.parametrize(
    ("left", "more", "policy"),
    [
        ({"long": 50.0, "short": 60.0}, {}, {}),
        ({"short": 60.0}, {}, {}),
        ({"long": 5000.0}, {}, {}),
        ({"long": 5000.0, "short": 60.0}, {"preemptible": False}, {}),
        ({"long": 5000.0, "short": 60.0}, {"min_runtime_s": 2000.0}, {}),
        ({"long": 5000.0, "short": 60.0}, {"is_daemon": True}, {}),
        ({"long": 5000.0, "short": 60.0}, {}, {"sets_aside": False}),
        ({"long": 5000.0, "short": 60.0}, {}, {"evicts": False}),
    ],
    ids=["less left", "how long it runs is not known", "how long who waits takes is not known", "not preemptible",
         "protected", "of a DaemonSet", "not by this policy", "nobody is evicted"],
)  # fmt: skip
def test_who_runs_on(left: dict[str, float], more: dict[str, Any], policy: dict[str, Any]) -> None:
    plan = decided([runs("long", 0, 8, **more)], [waits("short", 4)], left, **policy)
    assert not plan.evictions and not plan.holds


def test_priority_goes_before_what_is_left_to_do() -> None:
    left = {"long": 5000.0, "short": 60.0}
    assert not decided([runs("long", 0, 8, priority=10)], [waits("short", 4)], left).evictions
    plan = decided([runs("long", 0, 8, priority=10)], [waits("short", 4, priority=10)], left)
    assert set_aside(plan) == {"x/long"}


def test_who_has_started_at_this_moment_runs_on() -> None:
    plan = decided([runs("long", 0, 8, started_s=NOW_S)], [waits("short", 4)], {"long": 5000.0, "short": 60.0})
    assert not plan.evictions


def test_gpus_that_nobody_may_use_are_no_room() -> None:
    """Two nodes, one of which is down: the short job should run, and not both."""
    cluster = like_nodes(2, 8)
    down = replace(cluster.nodes[1], ready=False)
    snapshot = replace(
        cluster, nodes=(cluster.nodes[0], down), now_s=NOW_S, allocations=(runs("long", 0, 8),),
        workloads=(waits("short", 8),), left={"Job x/long": Left(5000.0, 0.0), "Job x/short": Left(60.0, 0.0)},
    )  # fmt: skip
    assert set_aside(cycle(snapshot, Policy(sets_aside=True), Tables())) == {"x/long"}


def test_nobody_is_set_aside_for_who_fits_anyway() -> None:
    plan = decided([runs("long", 0, 4)], [waits("short", 4)], {"long": 5000.0, "short": 60.0})
    assert not plan.evictions and len(list(plan.binds())) == 1


def test_the_first_in_line_is_who_has_least_left_to_do() -> None:
    plan = decided([], [waits("long", 8), waits("short", 8)], {"long": 5000.0, "short": 60.0})
    assert [bind.workload.name for bind in plan.binds()] == ["short"]


def test_a_wide_job_that_is_worth_more_than_the_narrow_ones_is_not_passed_over() -> None:
    """One GPU more than is left in the line: the walk would skip the wide job, the best filling does not."""
    running = [runs("narrow", 0, 1), runs("other", 0, 7)]
    plan = decided(running, [waits("wide", 8)], {"narrow": 30.0, "other": 9000.0, "wide": 100.0})
    assert set_aside(plan) == set(), "the narrow one alone is worth more than the wide one"
    plan = decided(running, [waits("wide", 8)], {"narrow": 3000.0, "other": 9000.0, "wide": 100.0})
    assert set_aside(plan) == {"x/narrow", "x/other"}


def test_a_narrow_job_goes_elsewhere_for_a_wide_one() -> None:
    """Both should run; the wide one needs a node for itself."""
    running = [runs("narrow", 0, 2), runs("beside", 1, 2), runs("long", 0, 4)]
    plan = decided(running, [waits("wide", 8)], {"narrow": 50.0, "beside": 50.0, "long": 9000.0, "wide": 60.0}, nodes=2)
    gone = {one.allocation.workload for one in plan.evictions}
    assert gone in ({"x/narrow", "x/long"}, {"x/beside"})
    assert [place.node for hold in plan.holds for place in hold.places] == [
        "node-0001" if gone == {"x/beside"} else "node-0000"
    ]
