"""Who should run: the set of greatest value that fits, found by every means."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduling.choice import B, chosen, keys_of

some = st.lists(st.tuples(st.integers(1, 1000), st.sampled_from([1, 2, 3, 4, 8, 12, 16])), min_size=1, max_size=9)


@settings(max_examples=200, deadline=None)
@given(some, st.integers(1, 24))
def test_no_other_set_that_fits_is_worth_more(candidates: list[tuple[int, int]], capacity: int) -> None:
    left, gpus = np.array([c[0] for c in candidates], float), np.array([c[1] for c in candidates])
    key = keys_of(left, gpus, np.zeros(len(left)), 8, 0.0)
    value = gpus * key**-B
    taken = chosen(key, gpus, capacity)
    assert gpus[taken].sum() <= capacity
    numbers = range(len(candidates))
    best = max(
        sum(value[list(group)], 0.0)
        for size in range(len(candidates) + 1)
        for group in combinations(numbers, size)
        if gpus[list(group)].sum() <= capacity
    )
    walk_is_best = value[taken].sum() == pytest.approx(best)
    shortest_first = np.argsort(key, kind="stable")
    nobody_passed = gpus[shortest_first].cumsum()[taken.sum() - 1] == gpus[taken].sum() if taken.any() else True
    assert walk_is_best or nobody_passed


@pytest.mark.parametrize(
    ("candidates", "capacity", "runs"),
    [
        ([(10, 1), (20, 1)], 2, [True, True]),
        ([(10, 1), (20, 1)], 1, [True, False]),
        ([(100, 8), (10, 1)], 8, [False, True]),
        ([(10, 8), (11, 4), (11, 4)], 8, [False, True, True]),
        ([(0, 4), (0, 4)], 4, [True, False]),
        ([(5, 16)], 8, [False]),
    ],
)
def test_by_what_is_left_and_what_is_held(candidates: list[tuple[int, int]], capacity: int, runs: list[bool]) -> None:
    left, gpus = np.array([c[0] for c in candidates], float), np.array([c[1] for c in candidates])
    assert chosen(keys_of(left, gpus, np.zeros(len(left)), 8, 0.0), gpus, capacity).tolist() == runs


def test_ten_thousand_are_no_matter() -> None:
    """The table is over those who can be of a best set, not over all."""
    rng = np.random.default_rng(1)
    gpus = rng.choice([1, 2, 4, 8, 16, 32], 10_000)
    key = keys_of(rng.uniform(1, 1e6, 10_000), gpus, np.zeros(10_000), 8, 0.0)
    taken = chosen(key, gpus, 64)
    assert 0 < gpus[taken].sum() <= 64


def test_who_has_waited_long_goes_before_who_has_as_much_to_do() -> None:
    left, gpus = np.array([100.0, 101.0]), np.array([4, 4])
    key = keys_of(left, gpus, np.array([0.0, 2e6]), 8, 0.02)
    assert chosen(key, gpus, 4).tolist() == [False, True]
