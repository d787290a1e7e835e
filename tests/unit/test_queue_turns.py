"""The order of a live cluster by what is left to do: within a queue, and only work that saves itself is set aside."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from berth.model.budget import Budget
from berth.model.cluster import Allocation
from berth.model.queue import Queue
from berth.model.resources import CPU
from berth.model.snapshot import Left, Snapshot
from berth.model.workload import LabelSelector, PodClass, PodSet, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan, Rule
from berth.scheduling.policy import Policy
from berth.scheduling.queue_turns import queue_turn_of
from berth.scheduling.round import Round
from berth.scheduling.run_times import RunTimes
from berth.scheduling.tables import Tables
from berth.simulation.queueing.as_live import AsLive
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.shown import pod_sets

NOW_S = 100_000.0
SAVES: dict[str, Any] = {"preemptible": True, "checkpoint_every_s": 600.0}


def runs(name: str, gpus: int, node: int = 0, **more: Any) -> Allocation:
    return Allocation(
        **{
            "node": f"node-{node:04d}", "namespace": "x", "name": f"{name}-0", "workload": f"x/{name}",
            "pod_class": pod_sets(gpus, 8)[0].pod_class, "workload_kind": "Job", "disruption": "all",
            "started_s": NOW_S - 500, **more,
        }
    )  # fmt: skip


def waits(name: str, gpus: int, **more: Any) -> Workload:
    return Workload(
        **{
            "name": name, "namespace": "x", "kind": "Job", "pod_sets": pod_sets(gpus, 8),
            "created_s": NOW_S - 2000, **more,
        }
    )  # fmt: skip


def seen(running: list[Allocation], waiting: list[Workload], nodes: int = 1, **more: Any) -> Snapshot:
    return replace(
        like_nodes(nodes, 8), now_s=NOW_S, allocations=tuple(running), workloads=tuple(waiting), **more
    )  # fmt: skip


def decided(snapshot: Snapshot, left: dict[str, float], **policy: Any) -> Plan:
    known = {f"Job x/{name}": Left(left_s, NOW_S - 2000) for name, left_s in left.items()}
    chosen = {"least_left": True, "savers_leave": True, "stop_wait_s": 1000.0, **policy}
    return cycle(replace(snapshot, left=known), Policy(**chosen), Tables())


def leaving(plan: Plan) -> dict[str, Rule]:
    return {one.allocation.workload: one.rule for one in plan.evictions}


LEFT = {"long": 50_000.0, "short": 60.0}


def test_who_has_least_left_goes_first_whoever_came_first() -> None:
    both = [waits("long", 8, created_s=1.0), waits("short", 8, created_s=2.0)]
    assert [bind.workload.name for bind in decided(seen([], both), LEFT).binds()] == ["short"]
    by_age = decided(seen([], both), LEFT, least_left=False)
    assert [bind.workload.name for bind in by_age.binds()] == ["long"]


def test_priority_goes_before_what_is_left_to_do() -> None:
    both = [waits("long", 8, priority=5), waits("short", 8)]
    assert [bind.workload.name for bind in decided(seen([], both), LEFT).binds()] == ["long"]


def test_work_that_saves_itself_is_set_aside_and_told_so() -> None:
    plan = decided(seen([runs("long", 8, **SAVES)], [waits("short", 4)]), LEFT)
    assert leaving(plan) == {"x/long": Rule.SetAside}
    assert [hold.workload for hold in plan.holds] == ["Job x/short"]


@pytest.mark.parametrize(
    ("running", "policy"),
    [
        ({"preemptible": None, "checkpoint_every_s": 600.0}, {}),
        ({"preemptible": False, "checkpoint_every_s": 600.0}, {}),
        ({"preemptible": True}, {}),
        ({"preemptible": True, "last_checkpoint_s": NOW_S - 10}, {}),
        ({**SAVES, "min_runtime_s": 3600.0}, {}),
        ({**SAVES, "priority": 1}, {}),
        (SAVES, {"savers_leave": False}),
        (SAVES, {"evicts": False}),
        (SAVES, {"stop_wait_s": 5000.0}),
    ],
    ids=["nobody says that it may", "it says no", "it does not save", "how often it saves is not said",
         "it has not run for its least time", "it has a higher priority", "nobody is set aside here",
         "nobody is evicted here", "nobody has waited for long enough"],
)  # fmt: skip
def test_who_runs_on(running: dict[str, Any], policy: dict[str, Any]) -> None:
    plan = decided(seen([runs("long", 8, **running)], [waits("short", 4)]), LEFT, **policy)
    assert not plan.evictions and not plan.holds


def test_a_disruption_budget_holds_even_where_priority_may_pass_over_it() -> None:
    label = (("app", "long"),)
    budget = Budget("x", "b", LabelSelector(labels=label), 0)
    one = seen([runs("long", 8, labels=label, **SAVES)], [waits("short", 4)], budgets=(budget,))
    assert not decided(one, LEFT, beyond_budgets=True).evictions
    urgent = seen([runs("long", 8, labels=label, **SAVES)], [waits("short", 4, priority=9)], budgets=(budget,))
    assert leaving(decided(urgent, LEFT, beyond_budgets=True)) == {"x/long": Rule.BeyondBudget}


def test_nobody_is_set_aside_for_another_queue() -> None:
    """Both queues hold what they are due."""
    queues = (Queue("mine"), Queue("theirs"))
    running = [runs("long", 4, queue="theirs", **SAVES), runs("other", 4, queue="mine", preemptible=False)]
    short = waits("short", 4, queue="mine")
    assert not decided(seen(running, [short], queues=queues), {**LEFT, "other": 10.0}).evictions
    own = [runs("long", 4, queue="mine", **SAVES), runs("other", 4, queue="theirs", preemptible=False)]
    assert leaving(decided(seen(own, [short], queues=queues), LEFT)) == {"x/long": Rule.SetAside}


def test_shares_decide_between_queues_as_ever() -> None:
    """A queue that holds nothing takes back its half, from work that nobody could set aside."""
    queues = (Queue("mine"), Queue("theirs"))
    running = [runs(f"a{i}", 1, queue="theirs") for i in range(8)]
    plan = decided(seen(running, [waits("wide", 4, queue="mine")], queues=queues), {"wide": 9000.0})
    assert set(leaving(plan).values()) == {Rule.Reclaimed} and len(plan.evictions) == 4


def test_priority_makes_room_where_turns_do_not() -> None:
    plan = decided(seen([runs("low", 8)], [waits("short", 8, priority=9)]), {"short": 60.0})
    assert leaving(plan) == {"x/low": Rule.LowerPriority}


def test_who_asks_for_no_gpu_goes_by_age_before_the_others() -> None:
    plain = (PodSet("p", PodClass(requests=((CPU, 1000),))),)
    lone = [replace(waits(name, 1, created_s=at), pod_sets=plain) for name, at in (("b", 2.0), ("a", 1.0))]
    snapshot = seen([], [waits("long", 8), *lone, waits("short", 8)], left={
        "Job x/long": Left(9000.0, 0.0), "Job x/short": Left(60.0, 0.0),
    })  # fmt: skip
    line = queue_turn_of(Round.of(snapshot, Policy(least_left=True), Tables())).line
    assert [snapshot.workloads[w].name for w in line.argsort()] == ["a", "b", "short", "long"]


def test_where_nobody_waits_or_nobody_runs_nothing_is_chosen() -> None:
    assert not decided(seen([runs("long", 8, **SAVES)], []), LEFT).evictions
    assert not decided(seen([], []), LEFT).evictions
    times = RunTimes()
    for snapshot in (seen([], []), seen([runs("long", 8, **SAVES)], []), seen([], [waits("w", 8)])):
        cycle(times.of(snapshot), Policy(least_left=True, savers_leave=True), Tables())


# ---- what is known of how long it takes


def test_short_jobs_of_unknown_length_pass_one_that_says_that_it_is_long() -> None:
    """Twelve like them have ended after a minute; nobody says anything of these."""
    times = RunTimes()
    before = [runs(f"old{i}", 1, node=i // 8, started_s=NOW_S - 60) for i in range(12)]
    times.of(seen(before, [], nodes=2))
    times.of(replace(seen([], [], nodes=2), now_s=NOW_S + 10))
    long = waits("long", 8, created_s=NOW_S, time_limit_s=4 * 3600.0)
    short = waits("short", 1, created_s=NOW_S + 5)
    snapshot = times.of(replace(seen([], [long, short]), now_s=NOW_S + 20))
    assert set(snapshot.left) == {"Job x/long"} and snapshot.left["Job x/long"].left_s == 2 * 3600.0
    plan = cycle(snapshot, Policy(least_left=True), Tables())
    assert [bind.workload.name for bind in plan.binds()] == ["short"]


def test_what_is_left_of_a_limit_is_the_part_that_others_took_of_theirs() -> None:
    times = RunTimes()
    before = [runs(f"old{i}", 1, node=i // 8, started_s=NOW_S - 100, time_limit_s=1000.0) for i in range(8)]
    times.of(seen(before, []))
    after = times.of(replace(seen([runs("new", 1, started_s=NOW_S, time_limit_s=5000.0)], []), now_s=NOW_S + 200))
    taken = 200 / 1000  # they ended half way between the looks
    assert after.left["Job x/new"].left_s == pytest.approx(taken * (5000 - 200))


def test_the_longest_run_that_a_queue_allows_is_no_word_of_its_jobs() -> None:
    queues = (Queue("x", max_time_limit_s=3600.0),)
    both = [waits("all", 1, time_limit_s=3600.0), waits("own", 1, time_limit_s=1800.0)]
    found = RunTimes().of(seen([runs("r", 1, time_limit_s=3600.0)], both, queues=queues))
    assert set(found.left) == {"Job x/own"}
    assert found.history is not None and len(found.history) == 3


def test_who_was_set_aside_keeps_what_it_saved_and_waits_since_then() -> None:
    times = RunTimes()
    times.of(seen([runs("long", 8, started_s=NOW_S - 5000, **SAVES)], []))
    again = waits("long", 8, created_s=NOW_S - 6000, time_limit_s=10_000.0, **SAVES)
    found = times.of(replace(seen([], [again]), now_s=NOW_S + 10))
    assert found.workloads[0].waits_since_s == NOW_S + 10
    assert found.left["Job x/long"].left_s == pytest.approx(0.5 * (10_000 - (5000 - 600)))
    third = times.of(replace(seen([runs("long", 8, started_s=NOW_S + 50, time_limit_s=10_000.0, **SAVES)], []),
                             now_s=NOW_S + 150))  # fmt: skip
    assert third.left["Job x/long"].left_s == pytest.approx(0.5 * (10_000 - (5000 - 600) - 100))


def test_who_saves_nothing_begins_anew() -> None:
    times = RunTimes()
    times.of(seen([runs("long", 8, started_s=NOW_S - 5000)], []))
    found = times.of(replace(seen([], [waits("long", 8)]), now_s=NOW_S + 10))
    assert found.history is not None
    assert found.history.attained_s.tolist() == [0.0] and not found.history.has_ended.any()


def test_who_was_asked_to_leave_has_not_ended_when_it_is_gone() -> None:
    times = RunTimes()
    snapshot = seen([runs("long", 8, **SAVES), runs("other", 1, node=1)], [waits("short", 8, priority=1)])
    times.of(snapshot)
    plan = decided(snapshot, LEFT)
    assert leaving(plan)
    times.told(plan)
    gone = times.of(replace(seen([], []), now_s=NOW_S + 10)).history
    assert gone is not None
    ended = {identity for identity, row in gone.rows.items() if gone.has_ended[row]}
    assert ended == {"Job x/other"}


def test_who_was_asked_to_leave_and_stays_ends_like_everybody() -> None:
    times = RunTimes()
    snapshot = seen([runs("long", 8, **SAVES)], [waits("short", 4)])
    times.of(snapshot)
    times.told(decided(snapshot, LEFT))
    times.of(replace(snapshot, now_s=NOW_S + 1000))
    gone = times.of(replace(seen([], []), now_s=NOW_S + 1010)).history
    assert gone is not None and gone.has_ended[gone.rows["Job x/long"]]


def test_who_is_new_is_known_at_once_and_those_that_run_now_and_then() -> None:
    times = RunTimes(every_s=100.0)
    one = runs("a", 1, started_s=NOW_S - 10)
    first = times.of(seen([one], [])).history
    assert first is not None and first.attained_s.tolist() == [10.0]
    later = times.of(replace(seen([one], [waits("new", 1)]), now_s=NOW_S + 50)).history
    assert later is not None and len(later) == 2 and later.attained_s.max() == 10.0
    again = times.of(replace(seen([one], [waits("new", 1), waits("old", 1, created_s=1.0)]), now_s=NOW_S + 60)).history
    assert again is not None and (again.submitted_s[1:] >= again.submitted_s[:-1]).all()
    assert [again.rows[f"Job x/{name}"] for name in ("old", "a", "new")] == [0, 2, 1]
    much = times.of(replace(seen([one], []), now_s=NOW_S + 101)).history
    assert much is not None and much.attained_s.max() == 111.0


def test_the_simulator_decides_as_a_live_scheduler_would() -> None:
    """It knows of no job how long it takes; twelve short ones have ended when a long and a short one wait."""
    before = tuple(runs(f"old{i}", 1, node=i // 8, started_s=NOW_S - 60) for i in range(12))
    pair = (waits("long", 8, time_limit_s=4 * 3600.0, created_s=NOW_S), waits("short", 1, created_s=NOW_S + 5))
    for all_save in (False, True):
        live = AsLive(all_save, Policy(stop_wait_s=1000.0))
        live.decide(seen(list(before), [], nodes=2))
        live.decide(replace(seen([], [], nodes=2), now_s=NOW_S + 10))
        plan = live.decide(replace(seen([], list(pair)), now_s=NOW_S + 20))
        assert [bind.workload.name for bind in plan.binds()] == ["short"]
        late = replace(seen([runs("long", 8, time_limit_s=4 * 3600.0)], [pair[1]]), now_s=NOW_S + 2000)
        assert bool(live.decide(late).evictions) == all_save


@pytest.mark.parametrize(("stop_wait_s", "stops"), [(0.0, True), (1000.0, False)])
def test_who_has_waited_little_stops_nobody_unless_no_wait_is_asked_for(stop_wait_s: float, stops: bool) -> None:
    live = AsLive(True, Policy(stop_wait_s=stop_wait_s))
    before = tuple(runs(f"old{i}", 1, node=i // 8, started_s=NOW_S - 60) for i in range(12))
    live.decide(seen(list(before), [], nodes=2))
    live.decide(replace(seen([], [], nodes=2), now_s=NOW_S + 10))
    pair = [runs("long", 8, time_limit_s=4 * 3600.0)], [waits("short", 1, created_s=NOW_S + 1900)]
    assert bool(live.decide(replace(seen(*pair), now_s=NOW_S + 2000)).evictions) == stops
