"""Backfill: who has a place in time starts by then, whoever fills in before it, and nothing waits without a reason."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.model.jobs import Jobs
from berth.model.snapshot import Snapshot
from berth.scheduling import reservation
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import run
from berth.simulation.queueing.schedule import Overhead, Schedule
from berth.sources.job_traces import jobs_of

NODES, GPUS = 3, 4

# (submitted, runs, GPUs, limit ÷ run): an owner's limit is never below what the job takes
rows = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(1, NODES * GPUS), st.sampled_from([1, 2, 5])),
    min_size=2, max_size=14,
)  # fmt: skip


def offered(some: list[tuple[int, int, int, int]]) -> Jobs:
    named = [(f"j{i}", float(at), float(runs), width, 0.0, "") for i, (at, runs, width, _) in enumerate(some)]
    jobs = jobs_of("made up", named)
    factor = dict(zip((row[0] for row in named), (row[3] for row in some), strict=True))
    jobs.limit_s[:] = [jobs.service_s[i] * factor[name] for i, name in enumerate(jobs.names)]
    return jobs


def replayed(jobs: Jobs, reservations: int = 1) -> tuple[Schedule, list[tuple[Snapshot, Plan]]]:
    policy, cache, seen = Policy(evicts=False, reservations=reservations), Tables(), []

    def decide(snapshot: Snapshot) -> Plan:
        plan = cycle(snapshot, policy, cache)
        seen.append((snapshot, plan))
        return plan

    return run("berth", jobs, like_nodes(NODES, GPUS), Overhead.Nothing, decide), seen


@settings(max_examples=60, deadline=None)
@given(rows, st.sampled_from([1, 3]))
def test_who_has_a_place_in_time_starts_by_then(some: list[tuple[int, int, int, int]], reservations: int) -> None:
    """With one queue and no priorities nobody comes before the first that waits, so that no promise is ever broken."""
    jobs = offered(some)
    schedule, seen = replayed(jobs, reservations)
    start = dict(zip(jobs.names, schedule.start_s.tolist(), strict=True))
    for snapshot, plan in seen:
        waits = [w.name for w in snapshot.workloads if w.name not in {bind.workload.name for bind in plan.binds()}]
        if waits:
            first = min(waits, key=lambda name: (jobs.submit_s[jobs.names.index(name)], jobs.names.index(name)))
            promised = {snapshot.workloads[w].name: at for w, at in plan.starts_by.items()}
            assert first in promised, "the first that waits always has a place: everybody has a limit"
            assert start[first] <= promised[first] + 1e-6


@settings(max_examples=60, deadline=None)
@given(rows)
def test_no_gang_starves_where_limits_are_kept(some: list[tuple[int, int, int, int]]) -> None:
    """The first that waits is in by the time that the last of those who ran has to have ended."""
    jobs = offered(some)
    schedule, _ = replayed(jobs)
    order = np.lexsort((np.arange(len(jobs)), jobs.submit_s))
    for place, j in enumerate(order.tolist()):
        ahead = order[:place]
        is_first_at = max([jobs.submit_s[j], *schedule.start_s[ahead]])
        assert schedule.start_s[j] <= is_first_at + jobs.limit_s.max() + 1e-6


@settings(max_examples=60, deadline=None)
@given(rows)
def test_nothing_waits_that_could_start_without_delaying_the_first(some: list[tuple[int, int, int, int]]) -> None:
    """Work conservation. Who is left waiting while it would fit would run into the place of the first, or take it."""
    _, seen = replayed(offered(some))
    for snapshot, plan in seen:
        started = {bind.workload.name for bind in plan.binds()}
        if not plan.starts_by:
            continue
        (at_s,) = plan.starts_by.values()
        for w, workload in enumerate(snapshot.workloads):
            if workload.name in started or w in plan.starts_by:
                continue
            if snapshot.now_s + workload.time_limit_s <= at_s:
                alone = _after(snapshot, plan, w)
                again = cycle(replace(alone, workloads=(workload,)), Policy(evicts=False), Tables())
                assert not list(again.binds()), f"{workload.name} fits, and has to have ended before"


def _after(snapshot: Snapshot, plan: Plan, w: int) -> Snapshot:
    """The cluster once the plan's pods are there."""
    from berth.model.cluster import Allocation

    more = tuple(
        Allocation(
            node=bind.node.name, namespace="x", name=f"new-{i}",
            pod_class=bind.workload.pod_sets[bind.pod_set].pod_class, devices=bind.devices,
        )
        for i, bind in enumerate(plan.binds())
    )  # fmt: skip
    return replace(snapshot, allocations=(*snapshot.allocations, *more))


def test_backfill_shortens_waits_and_delays_nobody() -> None:
    """A wide job that waits for one that runs 100 s: a short one passes, a long one does not."""
    some = [(0, 100, 8, 1), (1, 50, 12, 1), (2, 30, 4, 1), (3, 120, 4, 1)]
    schedule, _ = replayed(offered(some))
    assert schedule.start_s.tolist() == [0.0, 100.0, 2.0, 150.0]
    without, _ = replayed(offered(some), reservations=0)
    assert without.start_s.tolist() == [0.0, 152.0, 2.0, 32.0], "everybody who fits passes, and the wide one waits"


def test_who_ends_early_brings_the_place_forward() -> None:
    schedule, seen = replayed(offered([(0, 10, 12, 5), (1, 5, 12, 5)]))
    assert [plan.starts_by for _, plan in seen][:2] == [{}, {0: 50.0}]
    assert schedule.start_s.tolist() == [0.0, 10.0]


@pytest.mark.parametrize("late_s", [0.0, 1.0, 500.0])
def test_who_is_past_its_limit_does_not_take_the_place_away(late_s: float) -> None:
    """The first keeps a place soon; only who ends before it fills in."""
    from berth.model.cluster import Allocation
    from berth.model.workload import Workload
    from berth.simulation.queueing.shown import pod_sets

    cluster = like_nodes(1, 8)
    sets = pod_sets(6, 8)
    runs = Allocation(
        node="node-0000", namespace="x", name="runs", pod_class=sets[0].pod_class, started_s=0.0, time_limit_s=100.0
    )
    waiting = (
        Workload(name="first", pod_sets=pod_sets(8, 8), created_s=1.0, time_limit_s=50.0),
        Workload(name="long", pod_sets=pod_sets(2, 8), created_s=2.0, time_limit_s=1000.0),
    )
    now = replace(cluster, now_s=100.0 + late_s, allocations=(runs,), workloads=waiting)
    plan = cycle(now, Policy(evicts=False), Tables())
    assert plan.starts_by == {0: now.now_s + 60.0} and not list(plan.binds())


def test_for_many_without_a_place_few_are_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody who runs ever ends, so that no place can be known: some are looked for, and then everybody waits."""
    from berth.model.cluster import Allocation
    from berth.model.workload import Workload
    from berth.simulation.queueing.shown import pod_sets

    sets = pod_sets(8, 8)
    runs = Allocation(node="node-0000", namespace="x", name="runs", pod_class=sets[0].pod_class)
    waiting = tuple(
        Workload(name=f"w{i}", pod_sets=pod_sets(1 + i % 8, 8), created_s=float(i), time_limit_s=60.0)
        for i in range(200)
    )
    sought: list[int] = []
    monkeypatch.setattr(reservation, "_earliest", lambda w, now: sought.append(w))
    now = replace(like_nodes(1, 8), now_s=1000.0, allocations=(runs,), workloads=waiting)
    plan = cycle(now, Policy(evicts=False), Tables())
    assert len(sought) == Policy().reservation_searches
    assert not plan.starts_by and not list(plan.binds()) and len(plan.verdicts) == 200
