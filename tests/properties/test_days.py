"""Days of several queues through the cycle that schedules clusters: shares, priorities, reclaim, places in time.

Whatever comes, the same day gives the same plan, all that is held is charged, everybody gets a turn, and no GPU is idle
that somebody who waits could start on at once.
"""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.model.jobs import Jobs
from berth.model.queue import ANY_CLASS, Queue
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import steps
from berth.simulation.queueing.schedule import Overhead
from berth.simulation.queueing.state import State

NAMES = ("a", "b", "c")
NODES, NODE_GPUS = 2, 4
often = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

Drawn = tuple[int, int, int, int, int]  # gap, takes, width, queue, priority
days = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 10, 60]), st.integers(1, 200), st.sampled_from([1, 1, 2, 4, 8]), st.integers(0, 2),
        st.sampled_from([0, 0, 0, 5]),
    ),
    min_size=2, max_size=14,
)  # fmt: skip
queues = st.tuples(
    *[st.tuples(st.integers(1, 3), st.sampled_from([None, None, 0, 4]), st.sampled_from(["Any", "Never"]))] * 3
)


def jobs_of(drawn: list[Drawn], *, limits: bool) -> Jobs:
    gap, takes, width, queue, priority = (np.array(column) for column in zip(*drawn, strict=True))
    count = len(drawn)
    whole = np.zeros(count, np.int64)
    return Jobs(
        "drawn", tuple(f"j{i}" for i in range(count)), np.cumsum(gap).astype(float), takes.astype(float),
        takes * 2.0 if limits else np.zeros(count), np.full(count, 5.0), width.astype(np.int64), whole,
        priority.astype(np.int64), queue.astype(np.int64), whole, whole - 1, NAMES,
    )  # fmt: skip


def day(drawn: list[Drawn], some: tuple[tuple[int, int | None, str], ...], *, limits: bool = False) -> list[State]:
    """The last state, once for each step that led there."""
    cluster = like_nodes(NODES, NODE_GPUS)
    made = tuple(
        Queue(name, weight=weight, quota=() if quota is None else ((ANY_CLASS, quota),), reclaim=reclaim)  # type: ignore[arg-type]
        for name, (weight, quota, reclaim) in zip(NAMES, some, strict=True)
    )

    cluster = msgspec.structs.replace(cluster, queues=made)
    policy, cache = Policy(explains=False), Tables()

    def decide(snapshot: object) -> Plan:
        return cycle(snapshot, policy, cache)  # type: ignore[arg-type]

    return list(steps(jobs_of(drawn, limits=limits), cluster, Overhead.AtStart, decide))


@often
@given(drawn=days, some=queues)
def test_everybody_ends_and_the_same_day_is_the_same(
    drawn: list[Drawn], some: tuple[tuple[int, int | None, str], ...]
) -> None:
    first, second = day(drawn, some)[-1], day(drawn, some)[-1]
    assert np.isfinite(first.end_s).all(), "nobody starves"
    assert (first.end_s == second.end_s).all() and (first.stops == second.stops).all()
    assert not first.running and not first.waiting and not first.row.any()


@often
@given(drawn=days, some=queues, limits=st.booleans())
def test_what_is_held_is_charged(
    drawn: list[Drawn], some: tuple[tuple[int, int | None, str], ...], limits: bool
) -> None:
    """GPU seconds in use are those that jobs computed and those that starts and stops cost."""
    last = day(drawn, some, limits=limits)[-1]
    at = np.array([at for at, _ in last.table])
    used = np.array([row[0].sum() for _, row in last.table])
    held = float((used[:-1] * np.diff(at)).sum())
    charged = float(((last.jobs.service_s + last.lost_s) * last.jobs.width).sum())
    assert abs(held - charged) < 1e-6 * max(charged, 1.0)


@often
@given(drawn=days, some=queues)
def test_used_and_idle_are_all_there_is(drawn: list[Drawn], some: tuple[tuple[int, int | None, str], ...]) -> None:
    for _, row in day(drawn, some)[-1].table:
        assert 0 <= row[0].sum() <= NODES * NODE_GPUS and (row >= 0).all()
        assert (row[1] >= row[0]).all(), "who runs wanted it"
