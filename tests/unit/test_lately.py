"""A memory that stays small: what is asked for again and again stays, the rest goes."""

from __future__ import annotations

from berth.base.lately import Lately, itself


def test_equal_things_are_one_object():
    share = Lately(itself)
    first = ("app", "x" * 3)
    assert share(first) is first
    assert share(("app", "xxx")) is first


def test_at_most_twice_as_many_are_kept():
    made = []
    of = Lately(lambda key: made.append(key) or [key], most=10)
    for key in range(1000):
        of(key)
        assert len(of) <= 20
    assert len(made) == 1000


def test_what_is_asked_for_in_between_stays():
    made = []
    of = Lately(lambda key: made.append(key) or [key], most=10)
    kept = of("kept")
    for key in range(1000):
        of(key)
        if key % 9 == 0:
            assert of("kept") is kept
    assert made.count("kept") == 1
