"""Jobs over time step by step: what a watcher is told of each moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np

from berth.model.jobs import Jobs, NodeEvent
from berth.model.workload import Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Rule
from berth.scheduling.policy import Policy
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import schedule_of, steps
from berth.simulation.queueing.schedule import Overhead, Schedule
from berth.simulation.queueing.shown import workloads_of
from berth.simulation.queueing.state import State, What
from berth.sources.job_traces import jobs_of

TWO = [("low", 0.0, 100.0, 8, 0.0, ""), ("high", 30.0, 10.0, 8, 0.0, "")]


Told = list[tuple[What, int, int]]


def played(jobs: Jobs, workloads: tuple[Workload, ...] | None = None) -> Iterator[State]:
    policy = Policy()
    return steps(jobs, like_nodes(1, 8), Overhead.AtStart, lambda one: cycle(one, policy), workloads=workloads)


def told(jobs: Jobs) -> list[tuple[float, Told]]:
    return [(state.now_s, [(h.what, h.job, h.other) for h in state.happened]) for state in played(jobs)]


def last(jobs: Jobs, workloads: tuple[Workload, ...] | None = None) -> Schedule:
    *_, state = played(jobs, workloads)
    return schedule_of("berth", state)


def test_each_moment_says_what_happened_and_for_whom() -> None:
    jobs = replace(jobs_of("two", TWO), priority=np.array([0, 5]))
    assert told(jobs) == [
        (0.0, [(What.Came, 0, -1), (What.Started, 0, -1)]),
        (30.0, [(What.Came, 1, -1), (What.SetAside, 0, 1), (What.Started, 1, -1)]),
        (40.0, [(What.Ended, 1, -1), (What.Started, 0, -1)]),
        (110.0, [(What.Ended, 0, -1)]),
    ]


def test_why_it_was_set_aside_is_told() -> None:
    jobs = replace(jobs_of("two", TWO), priority=np.array([0, 5]))
    rules = [h.rule for state in played(jobs) for h in state.happened if h.what is What.SetAside]
    assert rules in ([Rule.LowerPriority], [Rule.WithGang])


def test_who_waits_has_its_verdict_and_who_runs_has_none() -> None:
    steps_of = played(jobs_of("two", TWO))
    reasons = {s.now_s: {job: v.reason.name for job, v in s.said.items() if v.reason} for s in steps_of}
    assert reasons[0.0] == {} and reasons[30.0] == {1: "NotEnoughGpus"}


def test_a_node_that_fails_costs_what_came_after_the_last_checkpoint() -> None:
    fails = (NodeEvent(75.0, "node-0000", False), NodeEvent(80.0, "node-0000", True))
    jobs = replace(jobs_of("one", [("long", 0.0, 100.0, 8, 0.0, "")]), node_events=fails)
    saved = tuple(msgspec.structs.replace(one, checkpoint_every_s=30.0) for one in workloads_of(jobs, 8))
    kept, lost = last(jobs, saved), last(jobs)
    assert kept.end_s.tolist() == [120.0] and kept.lost_s.tolist() == [15.0], "60 s are safe, 40 s are left"
    assert lost.end_s.tolist() == [180.0] and lost.lost_s.tolist() == [75.0]
