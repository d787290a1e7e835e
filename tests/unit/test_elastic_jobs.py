"""Gangs that run with some of their pods, slower, and change their size while they run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.model.jobs import Jobs, NodeEvent
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import run
from berth.simulation.queueing.schedule import Overhead, Schedule
from berth.sources.job_traces import jobs_of

NODES, NODE_GPUS = 3, 4
OVERHEADS = list(Overhead)


def offered(rows: list[tuple[float, float, int, int, int, float]]) -> Jobs:
    """Rows of (submit, duration, GPUs of a pod, pods, minimum, restart)."""
    made = jobs_of("made up", [(f"j{i}", s, d, g * p, r, "") for i, (s, d, g, p, _, r) in enumerate(rows)])
    order = [int(name[1:]) for name in made.names]
    column = {n: np.array([rows[i][n] for i in order], np.int64) for n in (2, 4)}
    return replace(made, pod_gpus=column[2], min_pods=column[4])


def own(jobs: Jobs, overhead: Overhead = Overhead.Nothing, *, knows: bool = False) -> Schedule:
    policy, cache = Policy(evicts=True, sets_aside=knows, explains=False), Tables()
    cluster = like_nodes(NODES, NODE_GPUS)
    return run("berth", jobs, cluster, overhead, lambda snapshot: cycle(snapshot, policy, cache), knows=knows)


def test_it_begins_with_what_is_free_and_grows_when_more_is() -> None:
    """Two of three pods for 10 s compute 20 of its 90 pod-seconds; three of them need 70 / 3 s for the rest."""
    got = own(offered([(0, 10, 4, 1, 1, 0), (0, 30, 4, 3, 1, 0)]))
    assert got.start_s.tolist() == [0.0, 0.0]
    assert got.end_s == pytest.approx([10.0, 10.0 + 70 / 3])
    assert not got.preemptions.any()


def test_without_a_minimum_it_waits_for_all_of_its_pods() -> None:
    assert own(offered([(0, 10, 4, 1, 1, 0), (0, 30, 4, 3, 3, 0)])).start_s.tolist() == [0.0, 10.0]


def test_it_shrinks_with_a_node_that_fails_and_grows_when_it_is_back() -> None:
    """30 s with three pods, 30 s with two (20 s' worth), and the last 10 s with three again."""
    fails = (NodeEvent(30.0, "node-0001", False), NodeEvent(60.0, "node-0001", True))
    got = own(replace(offered([(0, 60, 4, 3, 2, 0)]), node_events=fails))
    assert got.end_s == pytest.approx([70.0]) and got.preemptions.tolist() == [0]
    assert got.lost_s.tolist() == [0.0]
    assert got.events.up.tolist() == [12.0, 8.0, 12.0, 12.0]


def test_below_its_minimum_it_stops() -> None:
    fails = (NodeEvent(30.0, "node-0001", False), NodeEvent(60.0, "node-0001", True))
    got = own(replace(offered([(0, 60, 4, 3, 3, 0)]), node_events=fails))
    assert got.end_s == pytest.approx([120.0]) and got.preemptions.tolist() == [1]


def test_it_shrinks_for_who_has_priority() -> None:
    """Of three pods one leaves for ten seconds; nobody stops."""
    jobs = offered([(0, 30, 4, 3, 1, 0), (10, 10, 4, 1, 1, 0)])
    got = own(replace(jobs, priority=np.array([0, 5])))
    assert got.start_s.tolist() == [0.0, 10.0]
    assert got.end_s[0] == pytest.approx(20.0 + 30 - 10 - 10 * 2 / 3)
    assert not got.preemptions.any()


def test_a_change_of_size_costs_what_a_start_costs() -> None:
    got = own(offered([(0, 10, 4, 1, 1, 0), (0, 30, 4, 3, 1, 3)]), Overhead.AtStart)
    assert got.end_s[1] == pytest.approx(10.0 + 3 + (90 - 7 * 2) / 3)
    assert got.lost_s[1] == pytest.approx(3 * 2 / 3 + 3), "in seconds of the whole gang"


some_jobs = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3),
              st.integers(0, 6)),
    min_size=1, max_size=10,
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(some_jobs, st.sampled_from(OVERHEADS), st.booleans(), st.integers(0, 60), st.integers(1, 60))
def test_all_time_of_gpus_is_accounted_for(
    rows: list[tuple[int, int, int, int, int, int]], overhead: Overhead, knows: bool, at_s: int, for_s: int
) -> None:
    """Whatever grows, shrinks and stops: what is in use computes or pays, everybody ends, nothing stays booked."""
    jobs = offered([(s, d, g, p, min(least, p), r) for s, d, g, p, least, r in rows])
    fails = (NodeEvent(at_s, "node-0000", False), NodeEvent(at_s + for_s, "node-0000", True))
    got = own(replace(jobs, node_events=fails, priority=np.arange(len(jobs)) % 3), overhead, knows=knows)
    assert np.isfinite(got.end_s).all()
    events = got.events
    lasted = np.diff(events.at_s, append=events.at_s[-1])
    assert (events.used.sum(axis=1) * lasted).sum() == pytest.approx(((jobs.service_s + got.lost_s) * jobs.width).sum())
    assert (events.used[-1] == 0).all() and (events.wanted[-1] == 0).all() and (events.waiting[-1] == 0).all()
    assert (events.used.sum(axis=1) <= events.up + 1e-9).all()
