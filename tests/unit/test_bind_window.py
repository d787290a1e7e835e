"""How many binds are under way follows how soon they are answered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth.actions.window import LEAST, SLOW_S, TIMES, Window


def rounds(window: Window, *seconds: float, at_s: float = 0.0) -> float:
    """Each a round of requests that are sent together and take so long; the moment after the last."""
    for took_s in seconds:
        for _ in range(window.size):
            window.heard(at_s, at_s + took_s)
        at_s += took_s
    return at_s


def test_quick_answers_change_nothing_at_the_most():
    window = Window(64)
    rounds(window, 0.02, 0.05, 0.09)
    assert window.size == 64


def test_a_round_makes_it_smaller_by_as_much_as_it_was_slower():
    window = Window(64)
    window.heard(0.0, 0.02)
    assert rounds(window, 2 * SLOW_S) and window.size == 32
    window = Window(64)
    window.heard(0.0, 0.02)
    for took_s in (1.0, 2.0, 4.0):  # of one round the slowest counts, and not all of them one after the other
        window.heard(1.0, 1.0 + took_s * SLOW_S)
    assert window.size == 16


def test_it_never_stops_and_grows_back_in_a_few_quick_rounds():
    window = Window(64)
    window.heard(0.0, 0.02)
    at_s = rounds(window, 1.0, 1.0, 1.0)
    assert window.size == LEAST
    rounds(window, 0.02, 0.02, 0.02, 0.02, at_s=at_s)
    assert window.size == 64


def test_a_long_way_is_not_a_busy_server():
    window = Window(64)
    rounds(window, *[0.2] * 5)
    assert window.size == 64
    rounds(window, 0.9 * TIMES * 0.2)
    assert window.size == 64


def test_a_way_that_becomes_longer_for_good_is_so_after_a_while():
    window = Window(64)
    at_s = rounds(window, *[0.01] * 3)
    at_s = rounds(window, *[0.25] * 10, at_s=at_s)
    assert window.size == LEAST
    rounds(window, *[0.25] * 100, at_s=at_s)
    assert window.size == 64


def test_an_answer_that_is_late_already_counts_before_it_comes():
    window = Window(64)
    window.heard(0.0, 0.01)
    assert window.room(0.9 * SLOW_S) == 64
    assert window.room(1.1 * SLOW_S) == LEAST
    assert window.size == 64


@given(st.integers(1, 200), st.lists(st.tuples(st.floats(0, 100), st.floats(0, 60)), max_size=50))
def test_whatever_is_heard_there_is_room_for_one_and_never_for_more_than_the_most(most, answers):
    window = Window(most)
    for sent_s, took_s in answers:
        window.heard(sent_s, sent_s + took_s)
        assert min(LEAST, most) <= window.size <= most
