"""Expected starts: of small clusters, where one can say what is right."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from berth.model.cluster import Allocation, Device, GpuClass, Node
from berth.model.history import History
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.starts_coming import coming
from berth.scheduling.starts_hindsight import NO_HINDSIGHT, Hindsight, Record, corrected
from berth.scheduling.starts_lasting import (
    Lasting,
    by_likes,
    by_limit,
    common_of,
    lasting_s,
    parts_used,
    spread,
)
from berth.scheduling.starts_past import Past, running_since
from berth.scheduling.starts_turn import Standing, ranks_of
from berth.scheduling.starts_watch import Watch

HOUR_S = 3600.0
NOW_S = 1_000_000.0
POLICY = Policy(evicts=False)


def pod_class(gpus: int) -> PodClass:
    return PodClass(resources({"cpu": 1000, "nvidia.com/gpu": gpus}))


def node(name: str) -> Node:
    amounts = resources({"cpu": 64_000, "memory": 2**38, "pods": 110, "nvidia.com/gpu": 8})
    return Node(
        name, allocatable=amounts, gpu_class="GPU", device_resource="nvidia.com/gpu",
        devices=tuple(Device(g, island=0) for g in range(8)),
    )  # fmt: skip


def running(name: str, gpus: int = 8, ran_s: float = HOUR_S, limit_s: float = 0.0, on: str = "node-0") -> Allocation:
    return Allocation(
        on, "team", name, pod_class(gpus), workload=f"team/{name}", workload_kind="Job", queue="team",
        started_s=NOW_S - ran_s, time_limit_s=limit_s,
    )  # fmt: skip


def waiting(name: str, gpus: int = 8, age_s: float = 60.0, limit_s: float = 0.0, **more) -> Workload:
    return Workload(
        name, (PodSet("main", pod_class(gpus)),), "team", "Job", "team", created_s=NOW_S - age_s, time_limit_s=limit_s,
        **more,
    )  # fmt: skip


def cluster(allocations, workloads, nodes=1) -> Snapshot:
    return Snapshot(
        nodes=tuple(node(f"node-{n}") for n in range(nodes)), allocations=tuple(allocations),
        workloads=tuple(workloads), gpu_classes=(GpuClass("GPU"),), now_s=NOW_S,
    )  # fmt: skip


def starts(snapshot: Snapshot, watch: Watch | None = None):
    plan = cycle(snapshot, POLICY)
    found = (watch or Watch(POLICY)).look(snapshot, plan)
    return {snapshot.workloads[w].name: start for w, start in found.items()}


# ---- whole answers


def test_who_is_next_starts_before_the_limit_of_who_runs_is_over():
    start = starts(cluster([running("a", ran_s=HOUR_S, limit_s=4 * HOUR_S)], [waiting("next")]))["next"]
    assert NOW_S < start.p10_s < start.p50_s < start.p90_s
    assert start.p50_s < NOW_S + 3 * HOUR_S


def test_who_stands_behind_starts_later():
    snapshot = cluster(
        [running("a", limit_s=2 * HOUR_S)],
        [waiting("first", age_s=90, limit_s=HOUR_S), waiting("second", age_s=60, limit_s=HOUR_S)],
    )
    found = starts(snapshot)
    assert found["first"].p50_s < found["second"].p50_s
    assert found["first"].p10_s < found["second"].p10_s


def test_a_short_job_that_delays_nobody_is_foreseen_to_pass():
    """The gang of two nodes waits for the long job; in the free half of a node there is room for a short one once the
    one that runs there ends."""
    snapshot = cluster(
        [running("long", limit_s=100 * HOUR_S), running("a", gpus=4, limit_s=HOUR_S * 1.1, on="node-1"),
         running("b", gpus=4, limit_s=100 * HOUR_S, on="node-1")],
        [
            Workload("wide", (PodSet("main", pod_class(8), 2, 2),), "team", "Job", "team", created_s=NOW_S - 90,
                     time_limit_s=HOUR_S),
            waiting("short", gpus=4, age_s=60, limit_s=60),
        ],
        nodes=2,
    )  # fmt: skip
    found = starts(snapshot)
    assert found["short"].p90_s < NOW_S + 0.5 * HOUR_S < found["wide"].p50_s


def test_the_same_snapshot_has_the_same_answer():
    snapshot = cluster([running("a", limit_s=4 * HOUR_S)], [waiting(f"w{i}", gpus=1 + i % 4) for i in range(12)])
    assert starts(snapshot) == starts(snapshot)


def test_who_waits_for_somebody_else_has_no_moment():
    snapshot = cluster(
        [running("a", limit_s=4 * HOUR_S)],
        [waiting("gated", gates=("held",)), waiting("huge", gpus=9), waiting("next")],
    )
    assert set(starts(snapshot)) == {"next"}


def test_the_rest_of_a_gang_that_runs_has_had_its_start():
    held = [running("elastic", gpus=4, limit_s=4 * HOUR_S), running("a", gpus=4, limit_s=4 * HOUR_S)]
    assert set(starts(cluster(held, [waiting("elastic", gpus=4), waiting("next", gpus=4)]))) == {"next"}
    rest = waiting("elastic+", gpus=4, has_begun=True)
    assert set(starts(cluster(held, [rest, waiting("next", gpus=4)]))) == {"next"}, "whatever it is called"


def test_nothing_is_expected_where_nobody_waits():
    assert starts(cluster([running("a")], [])) == {}


def test_a_queue_at_its_limit_waits_for_its_own():
    from berth.model.queue import Queue

    held = [running("a", gpus=4, limit_s=10 * HOUR_S, ran_s=9 * HOUR_S)]
    snapshot = cluster(held, [waiting("next", gpus=4)])
    free = starts(replace(snapshot, queues=(Queue("team", limit=(("*", 4),)),)))["next"]
    assert free.p10_s > NOW_S
    assert free.p90_s <= NOW_S + 1.5 * HOUR_S


# ---- run times


def test_parts_of_a_limit_that_are_over_are_ruled_out():
    asked = Lasting(np.array([1]), np.array([-1]), np.array([6.0]), np.array([10.0]))
    found = by_limit(asked, parts_used(None), np.full((1, 64), 1 / 64), np.array([[0.1], [0.6]]))
    assert found.ravel().tolist() == pytest.approx([10 / 1.5 - 6, 4.0])


def test_who_is_past_its_limit_ends_a_tenth_of_its_run_later():
    asked = Lasting(np.array([1]), np.array([-1]), np.array([2000.0]), np.array([1000.0]))
    assert lasting_s(asked, None, np.array([[0.5]]))[0, 0] == 200.0


def history(attained, limits=0.0, submitted=None) -> History:
    count = len(attained)
    zeros = np.zeros(count, np.int64)
    return History(
        np.arange(count, dtype=float) if submitted is None else np.asarray(submitted, float),
        np.asarray(attained, float),
        np.ones(count, bool), zeros + 1, zeros, zeros, {}, np.full(count, limits, float), zeros, ("team",),
    )  # fmt: skip


def test_a_long_limit_is_not_believed_where_those_like_it_were_short():
    levels = spread(64, 1, np.random.default_rng(1))
    asked = Lasting(np.array([1]), np.array([-1]), np.array([0.0]), np.array([36_000.0]))
    short, long = history([3_600.0] * 50, 7_200.0), history([30_000.0] * 50, 60_000.0)
    assert np.median(lasting_s(asked, short, levels)) < np.median(lasting_s(asked, long, levels))


def test_which_part_of_a_limit_is_used_is_learned():
    assert np.median(parts_used(history([900.0] * 200, 1000.0))) == pytest.approx(0.9)


def test_without_a_past_run_times_are_those_of_other_clusters():
    levels = spread(64, 2, np.random.default_rng(1))
    asked = Lasting(np.array([1, 8]), np.array([-1, -1]), np.array([0.0, 0.0]), np.array([np.inf, np.inf]))
    one, wide = np.median(by_likes(asked, None, levels), axis=0)
    assert 2_000 < one < 6_000 < wide


# ---- who comes


def test_run_times_of_one_sample_are_alike_and_as_likely_as_before():
    rng = np.random.default_rng(1)
    levels = spread(64, 400, rng, common_of(64, rng))
    assert np.sort(levels.mean(axis=1))[[0, -1]].tolist() == pytest.approx([0.32, 0.68], abs=0.06)
    alone = spread(64, 400, rng).mean(axis=1)
    assert alone.min() > 0.44 and alone.max() < 0.56
    assert levels.mean() == pytest.approx(0.5, abs=0.01)
    assert np.quantile(levels, [0.1, 0.9]).tolist() == pytest.approx([0.1, 0.9], abs=0.02)
    assert levels.min() > 0 and levels.max() < 1


# ---- the order by what is left to do


def test_who_has_least_left_is_foreseen_first_where_that_is_the_order():
    """The long one came first; the short one behind it is expected first once the order is by what is left."""
    held = [running("a", limit_s=2 * HOUR_S)]
    snapshot = cluster(
        held, [waiting("long", age_s=90, limit_s=50 * HOUR_S), waiting("short", age_s=60, limit_s=HOUR_S)]
    )
    by_age = starts(snapshot)
    assert by_age["long"].p50_s < by_age["short"].p50_s
    policy = Policy(evicts=False, least_left=True)
    found = Watch(policy).look(snapshot, cycle(snapshot, policy))
    by_left = {snapshot.workloads[w].name: start for w, start in found.items()}
    assert by_left["short"].p50_s < by_left["long"].p50_s


def test_ranks_are_of_what_is_known_then_of_limits_then_of_those_like_it():
    one = np.ones(4, np.int64)
    of = Standing(np.array([-1, -1, -1, 0]), one, np.zeros(4), np.zeros(4), np.array([1e4, 1e4, np.inf, np.inf]))
    ranks = ranks_of(of, history([300.0] * 50), 8, 0.0, np.array([100.0, np.nan, np.nan, np.nan]))
    assert ranks[:3].tolist() == [100.0, 5000.0, -1.0], "who is not known goes first"
    assert 100 < ranks[3] < 1000


def test_the_part_of_a_limit_that_others_used_ranks_who_waits():
    of = Standing(np.array([-1]), np.array([1]), np.zeros(1), np.array([200.0]), np.array([1200.0]))
    assert ranks_of(of, history([90.0] * 20, 100.0), 8, 0.0).tolist() == pytest.approx([900.0])


def test_who_comes_came_before_in_the_same_gaps():
    past = history([60.0] * 40, submitted=np.arange(40) * 100.0)
    at, rows = coming(past, 4000.0, 5, 12, np.random.default_rng(3))
    assert at.shape == rows.shape == (5, 12)
    assert (np.diff(at, axis=1) > 0).all() and (at[:, 0] >= 0).all()
    assert np.allclose(np.diff(at, axis=1), 100.0, atol=1.0)


def test_without_a_past_nobody_comes():
    assert coming(None, 0.0, 4, 10, np.random.default_rng(1))[0].shape == (4, 0)


# ---- hindsight


def test_without_hindsight_an_answer_is_only_less_sure():
    said = np.array([[600.0, 3600.0, 14_000.0]])
    low, middle, high = corrected(said, np.array([4]), NO_HINDSIGHT)[0]
    assert middle == pytest.approx(3600.0, rel=0.01)
    assert 300 < low < 600
    assert 14_000 < high < 28_000


SAID = (10.0, 20.0, 30.0)


def replace_wider(one: Hindsight, wider: float) -> Hindsight:
    return Hindsight(one.gpus, one.said_s, one.waited_s, one.has_started, wider)


def known(factor: float, has_started=True, count=300) -> Hindsight:
    said = np.tile([1800.0, 3600.0, 7200.0], (count, 1))
    noise = np.exp(np.random.default_rng(5).normal(0, 0.5, count))
    return Hindsight(np.full(count, 4), said, 3600.0 * factor * noise, np.full(count, has_started))


def test_who_was_always_said_to_start_too_early_is_said_to_start_later():
    said = np.array([[1800.0, 3600.0, 7200.0]])
    found = corrected(said, np.array([4]), known(4.0))[0]
    assert found[1] == pytest.approx(2 * 3600, rel=0.2), "half of the way"
    assert found[0] <= found[1] < 4 * 3600 < found[2], "and the interval holds what is right"


def test_who_waits_still_counts_as_waiting_longer():
    said = np.array([[1800.0, 3600.0, 7200.0]])
    still, started = known(1.0, has_started=False), known(1.0)
    assert corrected(said, np.array([4]), still)[0, 1] > corrected(said, np.array([4]), started)[0, 1]


def test_the_record_knows_when_who_was_told_of_started():
    record = Record()
    for name in "abc":
        record.note(f"Job {name}", 4, 100.0, SAID, SAID)
    record.settle({"Job b": None}, {"Job a": 125.0}, 160.0)
    found = record.hindsight(160.0)
    assert sorted(zip(found.waited_s.tolist(), found.has_started.tolist(), strict=True)) == [
        (25.0, True),
        (60.0, False),
    ]


def test_the_first_answer_counts_and_no_later_one():
    record = Record()
    record.note("Job a", 4, 100.0, SAID, SAID)
    record.note("Job a", 4, 900.0, SAID, SAID)
    record.settle({}, {"Job a": 1000.0}, 1000.0)
    assert record.hindsight(1000.0).waited_s.tolist() == [900.0]


def wider_after(*started_s: float) -> float:
    record = Record()
    for i, at in enumerate(started_s):
        record.note(f"Job {i}", 4, 0.0, SAID, SAID)
        record.settle({}, {f"Job {i}": at}, 1000.0)
    return record.hindsight(1000.0).wider


def test_answers_that_were_wrong_make_new_ones_wider_and_right_ones_narrower():
    assert wider_after(20.0) < 1.0 < wider_after(5.0)
    assert wider_after(5.0) == wider_after(900.0), "too early or too late"
    assert wider_after(5.0, 20.0, 20.0, 20.0, 20.0) == pytest.approx(1.0), "four of five were right"
    assert wider_after(*[5.0] * 1000) == pytest.approx(np.exp(0.5)), "but not without bound"


def test_an_answer_is_wrong_as_soon_as_the_wait_is_longer_and_counts_once():
    record = Record()
    record.note("Job a", 4, 0.0, SAID, SAID)
    record.settle({"Job a": None}, {}, 25.0)
    assert record.hindsight(25.0).wider == 1.0, "nobody knows yet"
    record.settle({"Job a": None}, {}, 31.0)
    late = record.hindsight(31.0).wider
    assert late > 1.0
    record.settle({}, {"Job a": 40.0}, 50.0)
    assert record.hindsight(50.0).wider == late


def test_a_record_goes_on_where_another_ended_unless_it_knows_better():
    fresh, known = Record(), Record()
    fresh.resume(1.3)
    assert fresh.wider == pytest.approx(1.3)
    known.note("Job a", 4, 0.0, SAID, SAID)
    known.settle({}, {"Job a": 5.0}, 10.0)
    learned = known.wider
    known.resume(1.3)
    assert known.wider == learned
    for absurd, wanted in ((float("nan"), 1.0), (-1.0, 1.0), (0.0, 1.0), (float("inf"), 1.0), (1e9, np.exp(0.5))):
        other = Record()
        other.resume(absurd)
        assert other.wider == pytest.approx(wanted)


def test_a_factor_widens_to_both_sides():
    said, gpus = np.array([[1800.0, 3600.0, 7200.0]]), np.array([4])
    low, middle, high = corrected(said, gpus, NO_HINDSIGHT)[0]
    lower, same, higher = corrected(said, gpus, replace_wider(NO_HINDSIGHT, 1.5))[0]
    assert lower < low < middle == same < high < higher


def test_who_starts_and_is_over_between_two_looks_is_known_by_the_plan():
    watch = Watch(POLICY)
    first = cluster([running("a", limit_s=2 * HOUR_S)], [waiting("next")])
    starts(first, watch)
    free = replace(first, allocations=(), now_s=NOW_S + 600)
    watch.notice(cycle(free, POLICY), free.now_s)
    later = replace(free, workloads=(), now_s=NOW_S + HOUR_S)
    watch.look(later, cycle(later, POLICY))
    found = watch.hindsight(later.now_s)
    assert (found.waited_s.tolist(), found.has_started.tolist()) == ([600.0], [True])


# ---- the past as snapshots show it


def test_who_neither_runs_nor_waits_any_more_has_ended():
    past = Past()
    both = cluster([running("a", gpus=4), running("b", gpus=4)], [])
    plan = cycle(both, POLICY)
    past.look(both, plan, running_since(both, plan))
    later = replace(both, allocations=both.allocations[:1], now_s=NOW_S + 100)
    plan = cycle(later, POLICY)
    found = past.look(later, plan, running_since(later, plan))
    rows = found.rows
    assert found.has_ended[rows["Job team/b"]] and not found.has_ended[rows["Job team/a"]]
    assert found.attained_s[rows["Job team/b"]] == HOUR_S + 50
    assert found.attained_s[rows["Job team/a"]] == HOUR_S + 100
    assert found.width[rows["Job team/a"]] == 4
