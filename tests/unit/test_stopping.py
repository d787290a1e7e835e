"""Stops that pay: nobody leaves before those who would start have waited as long as a stop costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduling.stopping import Stops, stops_that_pay

COST_S = 300.0


def asked(wants: list[tuple[int, float]], held: list[int], free: int = 0, cost_s: float = COST_S) -> Stops:
    """(GPUs, seconds waited) of who should run, GPUs of who should not."""
    gpus, waited = np.array([w[0] for w in wants], np.int64), np.array([w[1] for w in wants], float)
    return stops_that_pay(gpus, waited, np.array(held, np.int64), free, 8, cost_s)


def test_nobody_is_stopped_before_its_time_and_the_time_is_told() -> None:
    early = asked([(4, 100.0)], [4])
    assert not early.leaves.any() and not early.starts.any() and early.again_s == 200.0
    due = asked([(4, 300.0)], [4])
    assert due.leaves.tolist() == [True] and due.starts.tolist() == [True] and due.again_s == np.inf


def test_who_finds_room_waits_for_nobody() -> None:
    found = asked([(4, 0.0), (8, 0.0)], [8], free=4)
    assert found.starts.tolist() == [True, False] and not found.leaves.any()


@pytest.mark.parametrize(("waited", "leaves"), [(299.0, False), (300.0, True)])
def test_what_several_have_waited_adds_up_for_one_that_leaves(waited: float, leaves: bool) -> None:
    found = asked([(2, waited / 3)] * 3, [8])
    assert found.leaves.tolist() == [leaves] and found.starts.all() == leaves


@pytest.mark.parametrize(("waited", "leaves"), [(599.0, 0), (600.0, 2)])
def test_one_that_needs_several_to_leave_waits_for_each(waited: float, leaves: int) -> None:
    assert asked([(8, waited)], [4, 4, 4]).leaves.sum() == leaves


def test_the_one_that_is_worth_least_leaves() -> None:
    assert asked([(4, 1000.0)], [4, 4, 4]).leaves.tolist() == [True, False, False]


def test_a_wide_one_is_given_nodes_that_are_held_whole() -> None:
    """Narrow ones that should leave first stand in between: only those that hold nodes make room at this price."""
    found = asked([(16, 600.0)], [1, 8, 1, 8])
    assert found.leaves.tolist() == [False, True, False, True]


wants = st.lists(st.tuples(st.sampled_from([1, 2, 4, 8, 16]), st.floats(0, 2000)), max_size=6)
held = st.lists(st.sampled_from([1, 2, 4, 8, 16]), max_size=6)


@settings(max_examples=300, deadline=None)
@given(wants, held, st.integers(0, 16), st.floats(1, 1000))
def test_all_that_start_fit_and_have_waited_for_all_that_leave(
    wants: list[tuple[int, float]], held: list[int], free: int, cost_s: float
) -> None:
    found = asked(wants, held, free, cost_s)
    gpus, waited = np.array([w[0] for w in wants], np.int64), np.array([w[1] for w in wants], float)
    assert gpus[found.starts].sum() <= free + np.array(held, np.int64)[found.leaves].sum()
    assert waited[found.starts].sum() >= cost_s * found.leaves.sum() - 1e-3
    if found.again_s < 1e6 and not found.starts.all():
        later = asked([(g, w + found.again_s + 1e-3) for g, w in wants], held, free, cost_s)
        assert (later.leaves != found.leaves).any() or (later.starts != found.starts).any(), "it was worth the look"
