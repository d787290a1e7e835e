"""Jobs over time where nobody knows durations: siblings tell, a job that outlives them is put off, and the cycle is
asked again at the time that it names."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.model.jobs import Jobs
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import run
from berth.simulation.queueing.schedule import Overhead, Schedule
from berth.sources.job_traces import jobs_of, read_jobs


def blind(jobs: Jobs, nodes: int, gpus: int, overhead: Overhead = Overhead.EachEvent, **policy: float) -> Schedule:
    rule, cache = Policy(sets_aside=True, explains=False, **policy), Tables()
    return run(
        "berth", jobs, like_nodes(nodes, gpus), overhead, lambda snapshot: cycle(snapshot, rule, cache), remembers=True
    )


def test_short_ones_go_before_a_long_one_once_short_ones_have_shown_that_they_are() -> None:
    """Jobs of one GPU take a minute, of two an hour. Two of an hour fill the node when one of a minute comes."""
    seen = [(f"s{i}", 200.0 * i, 60.0, 1, 0.0, "x") for i in range(20)]
    seen += [(f"l{i}", 4000.0 * i, 3600.0, 2, 0.0, "x") for i in range(20)]
    last = [("long", 90_000.0, 3600.0, 2, 0.0, "x"), ("other", 90_000.0, 3600.0, 2, 0.0, "x"),
            ("short", 90_001.0, 60.0, 1, 0.0, "x")]  # fmt: skip
    jobs = jobs_of("made up", sorted([*seen, *last], key=lambda row: row[1]))
    got = blind(jobs, 1, 4)
    assert got.jct_s[list(jobs.names).index("short")] == pytest.approx(60.0)


def test_one_that_outlives_its_like_makes_room_though_nothing_happens() -> None:
    """All took 100 s. The one that runs does not end, and the one that waits is of those: the plan asks to be asked."""
    seen = [(f"s{i}", 500.0 * i, 100.0, 1, 0.0, "x") for i in range(30)]
    jobs = jobs_of("made up", [*seen, ("stuck", 20_000.0, 1e6, 1, 0.0, "x"), ("new", 20_001.0, 100.0, 1, 0.0, "x")])
    got = blind(jobs, 1, 1)
    assert got.jct_s[-1] < 20_000 and got.preemptions[-2] > 0


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30_000), st.integers(0, 20_000), st.integers(1, 10)), min_size=1, max_size=10),
    st.sampled_from([Overhead.EachEvent, Overhead.AtStart]), st.sampled_from([0.0, 500.0]),
)  # fmt: skip
def test_every_job_ends_and_twice_the_same(rows: list[tuple[int, int, int]], overhead: Overhead, wait_s: float) -> None:
    jobs = jobs_of("made up", [(f"j{i}", float(s), float(d), w, 5.0, "x") for i, (s, d, w) in enumerate(sorted(rows))])
    once, again = (blind(jobs, 3, 4, overhead, stop_wait_s=wait_s) for _ in range(2))
    assert np.isfinite(once.end_s).all() and np.array_equal(once.end_s, again.end_s)


@pytest.mark.skipif("BERTH_DATA" not in os.environ, reason="BERTH_DATA names no folder of public data")
def test_below_the_published_policy_that_knows_no_durations() -> None:
    """Themis has 397,059 s on this trace, and this 273,426 s when it was measured."""
    assert blind(read_jobs("muri:3"), 8, 8).jct_s.mean() < 0.72 * 397_059
