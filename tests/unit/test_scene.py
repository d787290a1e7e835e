"""What a watcher sees of jobs over time: who holds which device, who waits, and what is worth telling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.base.units import GIB
from berth.model.cluster import Device, Node, Partition
from berth.model.jobs import Jobs, NodeEvent
from berth.model.queue import Queue
from berth.model.resources import CPU, MEMORY, PODS, resources
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.simulation.queueing.arrivals import from_the_first, jobs_of
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import steps
from berth.simulation.queueing.scene import DOWN, IDLE, Scene, scene_of, schedule_at
from berth.simulation.queueing.schedule import Overhead
from berth.simulation.queueing.state import State
from berth.simulation.queueing.stories import Kind, Story, stories_of
from berth.sources.job_traces import jobs_of as trace_of

Rows = list[tuple[str, float, float, int, float, str]]


def played(
    jobs: Jobs, cluster: Snapshot | None = None, workloads: tuple[Workload, ...] | None = None
) -> Iterator[tuple[State, list[Story], Scene]]:
    policy = Policy()
    there = cluster or like_nodes(2, 4)
    for state in steps(jobs, there, Overhead.AtStart, lambda one: cycle(one, policy), workloads=workloads):
        stories = stories_of(state)
        yield state, stories, scene_of(state, stories)


def told(jobs: Jobs) -> list[tuple[float, Kind, int]]:
    return [(one.at_s, one.kind, one.job) for _, stories, _ in played(jobs) for one in stories]


def test_devices_show_the_queue_that_holds_them() -> None:
    rows: Rows = [("a", 0.0, 10.0, 4, 0.0, "x"), ("b", 0.0, 20.0, 2, 0.0, "y")]
    scenes = [scene for *_, scene in played(trace_of("two", rows))]
    assert sorted(scenes[0].queue.ravel().tolist()) == [IDLE, IDLE, 0, 0, 0, 0, 1, 1]
    assert scenes[0].is_new.sum() == 6 and scenes[0].held.sum() == 6
    assert sorted(scenes[1].queue.ravel().tolist()) == [IDLE] * 6 + [1, 1] and not scenes[1].is_new.any()
    assert scenes[0].used.tolist() == [4, 2] and scenes[1].used.tolist() == [0, 2]


def test_a_node_that_failed_is_down_and_what_ran_there_is_told() -> None:
    fails = (NodeEvent(4.0, "node-0000", False), NodeEvent(5.0, "node-0001", False), NodeEvent(9.0, "node-0000", True))
    jobs = replace(trace_of("one", [("a", 0.0, 10.0, 8, 0.0, "")]), node_events=fails)
    seen = [
        (state.now_s, [s.kind for s in stories], (scene.queue == DOWN).sum()) for state, stories, scene in played(jobs)
    ]
    assert seen[1] == (4.0, [Kind.NodeFails, Kind.StopsWithNode], 4)
    assert seen[2] == (5.0, [Kind.NodeFails], 8) and seen[3][:2] == (9.0, [Kind.NodeIsBack]) and seen[3][2] == 4


def test_many_that_leave_for_one_are_one_story_and_a_gang_starts_whole() -> None:
    rows: Rows = [(f"low{i}", 0.0, 100.0, 2, 0.0, "x") for i in range(4)]
    rows.append(("wide", 10.0, 5.0, 8, 0.0, "x"))
    jobs = replace(trace_of("five", rows), priority=np.array([0, 0, 0, 0, 9]))
    (leaves,) = [one for _, stories, _ in played(jobs) for one in stories if one.kind is Kind.LeavesForPriority]
    assert (leaves.job, leaves.jobs, leaves.gpus) == (4, 4, 8.0)
    assert (10.0, Kind.GangStarts, 4) in told(jobs)
    starts = [one.waited_s for _, stories, _ in played(jobs) for one in stories if one.job == 0]
    assert starts[0] == 0.0 and -1.0 in starts, "it has begun before: it goes on"


def test_who_can_never_start_is_told_at_once_and_stands_last() -> None:
    jobs = trace_of(
        "two", [("a", 0.0, 50.0, 8, 0.0, ""), ("large", 1.0, 9.0, 80, 0.0, ""), ("b", 2.0, 9.0, 8, 0.0, "")]
    )
    seen = [(stories, scene) for state, stories, scene in played(jobs) if state.now_s in (1.0, 2.0)]
    assert [one.kind for one in seen[0][0]] == [Kind.CanNeverStart] and "LargerThanCluster" in seen[0][0][0].said
    assert [one.job for one in seen[1][1].waits] == [2, 1]


def test_who_fills_in_before_a_larger_one_with_its_place_in_time_is_told() -> None:
    rows: Rows = [("long", 0.0, 100.0, 6, 0.0, ""), ("wide", 1.0, 10.0, 8, 0.0, ""), ("small", 2.0, 20.0, 2, 0.0, "")]
    jobs = replace(trace_of("three", rows), limit_s=np.array([100.0, 10.0, 20.0]))
    passing = [one for _, stories, _ in played(jobs) for one in stories if one.kind is Kind.Passes]
    assert [(one.at_s, one.job, one.other) for one in passing] == [(2.0, 2, 1)]
    (place,) = {one.place_s for state, _, scene in played(jobs) if state.now_s == 2.0 for one in scene.waits}
    assert place == 100.0


def cut_in_halves() -> tuple[Jobs, Snapshot, tuple[Workload, ...]]:
    half, whole = "nvidia.com/mig-3g.40gb", resources({CPU: 8000, MEMORY: 64 * GIB, PODS: 50})
    node = Node(
        "cut", allocatable=(*whole, (half, 4)), capacity=(*whole, (half, 4)), gpu_class="A100-80GB",
        devices=tuple(Device(g, partitions=(Partition("3g.40gb", half),) * 2) for g in range(2)),
    )  # fmt: skip
    asked = PodSet("pod", PodClass(resources({CPU: 1000, half: 1})))
    cluster = Snapshot(nodes=(node,), queues=(Queue("x"), Queue("y")))
    workloads = tuple(
        Workload(f"w{i}", (asked,), namespace=queue, queue=queue, kind="Job") for i, queue in enumerate("xxy")
    )
    return jobs_of("cut", workloads, [10.0] * 3, cluster), cluster, workloads


def test_partitions_are_parts_of_a_gpu() -> None:
    jobs, cluster, workloads = cut_in_halves()
    assert jobs.width.tolist() == [0.5, 0.5, 0.5]
    (_, _, scene), *_ = played(jobs, cluster, workloads)
    assert scene.queue.tolist() == [[0, 1]] and scene.held.tolist() == [[1.0, 0.5]]
    assert scene.used.tolist() == [1.0, 0.5]


def test_a_trace_is_watched_from_its_first_submission() -> None:
    jobs = trace_of("late", [("a", 900.0, 10.0, 4, 0.0, ""), ("b", 905.0, 5.0, 4, 0.0, "")])
    given = replace(jobs, cancelled_s=np.array([np.inf, 907.0]), node_events=(NodeEvent(902.0, "node-0000", False),))
    moved = from_the_first(given)
    assert moved.submit_s.tolist() == [0.0, 5.0] and moved.cancelled_s.tolist() == [np.inf, 7.0]
    assert moved.node_events[0].at_s == 2.0 and moved.service_s.tolist() == [10.0, 5.0]


def test_what_is_not_over_yet_is_not_told() -> None:
    jobs = trace_of("three", [("a", 0.0, 10.0, 4, 0.0, ""), ("b", 2.0, 50.0, 4, 0.0, ""), ("c", 30.0, 5.0, 8, 0.0, "")])
    early: Scene | None = None
    for state, _, scene in played(jobs):
        early = scene if scene.at_s <= 10.0 else early
        last = state
    assert early is not None
    schedule = schedule_at(last, early, early.at_s)
    assert schedule.jobs.names == ("a", "b") and schedule.end_s.tolist() == [10.0, np.inf]
    assert schedule.events.at_s.tolist() == [0.0, 2.0, 10.0] and len(schedule.events.used) == 3
    later = schedule_at(last, early, 20.0)
    assert later.events.at_s.tolist() == [0.0, 2.0, 10.0, 20.0], "what is used goes on until it is looked at"
    assert later.events.used[-1].tolist() == schedule.events.used[-1].tolist()


def test_who_was_stopped_waits_since_then() -> None:
    jobs = trace_of("two", [("a", 0.0, 100.0, 4, 0.0, "")])
    fails = replace(jobs, node_events=(NodeEvent(40.0, "node-0000", False), NodeEvent(90.0, "node-0000", True)))
    waits = [(scene.at_s, one.since_s) for _, _, scene in played(fails, like_nodes(1, 4)) for one in scene.waits]
    assert waits == [(40.0, 40.0)]


some = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(1, 10), st.sampled_from("xyz")),
    min_size=1,
    max_size=9,
)


@settings(max_examples=15, deadline=None)
@given(some, st.integers(0, 60))
def test_the_map_is_what_is_in_use(rows: list[tuple[int, int, int, str]], fails_s: int) -> None:
    jobs = trace_of("made up", [(f"j{i}", float(s), float(d), w, 0.0, q) for i, (s, d, w, q) in enumerate(rows)])
    fails = (NodeEvent(fails_s, "node-0000", False), NodeEvent(fails_s + 5, "node-0000", True))
    for state, stories, scene in played(replace(jobs, node_events=fails)):
        by_queue = [(scene.held * (scene.queue == q)).sum() for q in range(len(jobs.queues))]
        assert by_queue == pytest.approx(scene.used.tolist())
        assert scene.running == len(state.running) and scene.still == len(state.waiting)
        assert scene.due.sum() <= 8 + 0.01 and (scene.due >= 0).all()
        assert [one.kind for one in stories] == sorted(one.kind for one in stories)


def test_a_scene_does_not_change_with_what_comes() -> None:
    jobs = trace_of("two", [("a", 0.0, 10.0, 4, 0.0, "x"), ("b", 5.0, 20.0, 8, 0.0, "y")])
    kept: list[tuple[Scene, bytes]] = []
    for *_, scene in played(jobs):
        kept.append(
            (scene, msgspec.json.encode([scene.queue.tolist(), scene.used.tolist(), scene.so_far.stops.tolist()]))
        )
    for scene, was in kept:
        assert msgspec.json.encode([scene.queue.tolist(), scene.used.tolist(), scene.so_far.stops.tolist()]) == was
