"""Past usage: halves in its half-life, counts what is held, and does not depend on how often one looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.usage import HALF_LIFE_S, decayed

hours = st.floats(0, 1000)


def test_it_halves() -> None:
    assert decayed({"a": 8.0}, {}, HALF_LIFE_S) == pytest.approx({"a": 4.0})
    assert decayed({"a": 8.0}, {}, 3 * HALF_LIFE_S) == pytest.approx({"a": 1.0})


def test_what_is_held_for_a_short_time_counts_in_full() -> None:
    assert decayed({}, {"a": 4.0}, 3600.0)["a"] == pytest.approx(4.0, rel=0.01)
    assert decayed({}, {"a": 4.0}, 3600.0, half_life_s=0.0) == {"a": 4.0}


def test_a_clock_that_goes_back_changes_nothing() -> None:
    assert decayed({"a": 8.0}, {"a": 4.0}, -60.0) == {"a": 8.0}


@given(hours, st.floats(0, 64), st.floats(0, 10**6), st.floats(0, 10**6))
def test_two_looks_are_one(before: float, held: float, first: float, second: float) -> None:
    once = decayed({"a": before}, {"a": held}, first + second)
    twice = decayed(decayed({"a": before}, {"a": held}, first), {"a": held}, second)
    assert twice["a"] == pytest.approx(once["a"], rel=1e-9, abs=1e-9)
