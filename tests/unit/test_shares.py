"""Weighted max-min fairness: nobody gets more than it wants, nothing is left while somebody wants, equals are equal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.shares import due_shares


@pytest.mark.parametrize(
    ("weight", "wanted", "capacity", "due"),
    [
        ((1, 1), (10, 10), 8, (4, 4)),
        ((3, 1), (10, 10), 8, (6, 2)),
        ((1, 1), (1, 10), 8, (1, 7)),
        ((1, 1, 2), (1, 10, 10), 9, (1, 8 / 3, 16 / 3)),
        ((1, 1), (1, 2), 8, (1, 2)),
        ((0, 1), (8, 3), 8, (5, 3)),
        ((0, 0), (8, 8), 8, (4, 4)),
        ((1, 1), (0, 0), 8, (0, 0)),
        ((1,), (5,), 0, (0,)),
    ],
)
def test_by_weight_and_wish(
    weight: tuple[float, ...], wanted: tuple[float, ...], capacity: float, due: tuple[float, ...]
) -> None:
    got = due_shares(np.array(weight, float), np.array(wanted, float)[:, None], capacity)
    assert got[:, 0] == pytest.approx(due)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), min_size=1, max_size=6), st.integers(0, 100))
def test_what_holds_of_every_share(queues: list[tuple[int, int]], capacity: int) -> None:
    weight, wanted = (np.array(column, float) for column in zip(*queues, strict=True))
    due = due_shares(weight, wanted[:, None], capacity)[:, 0]
    assert (due <= wanted + 1e-9).all() and (due >= 0).all()
    assert due.sum() == pytest.approx(min(capacity, wanted.sum()))
    unfilled = [d / w for d, w, want in zip(due, weight, wanted, strict=True) if w and d < want - 1e-6]
    filled = [d / w for d, w, want in zip(due, weight, wanted, strict=True) if w and d >= want - 1e-6]
    assert not unfilled or max(unfilled) - min(unfilled) < 1e-6, "who wants more has the same for each unit of weight"
    assert not unfilled or all(one <= unfilled[0] + 1e-6 for one in filled)
