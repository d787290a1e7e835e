"""Moves cost no more within a day than is allowed, and only while the window is open."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from berth.app.scheduler.move_budget import MoveBudget, minute_of
from berth.app.scheduler.settings import Defragmentation

SATURDAY = datetime(2026, 11, 28, 3, 0, tzinfo=UTC).timestamp()
HOUR = 3600.0


def test_what_was_spent_counts_for_a_day() -> None:
    budget = MoveBudget(Defragmentation(8.0))
    assert budget.left(SATURDAY) == 8.0
    budget.spend(SATURDAY, 5.0)
    budget.spend(SATURDAY + HOUR, 3.0)
    assert budget.left(SATURDAY + 2 * HOUR) == 0.0
    assert budget.left(SATURDAY + 24 * HOUR) == 5.0
    assert budget.left(SATURDAY + 25 * HOUR) == 8.0
    budget.spend(SATURDAY + 25 * HOUR, 100.0)
    assert budget.left(SATURDAY + 26 * HOUR) == 0.0


def test_only_while_the_window_is_open() -> None:
    budget = MoveBudget(Defragmentation(8.0, ("Sat",), "02:00", "04:00", "UTC"))
    assert budget.left(SATURDAY) == 8.0 and budget.next_s(SATURDAY) == math.inf
    assert budget.left(SATURDAY + HOUR) == 0.0
    assert budget.next_s(SATURDAY + HOUR) == SATURDAY - HOUR + 7 * 24 * HOUR


def test_without_a_budget_nothing_moves_and_nobody_is_woken() -> None:
    budget = MoveBudget(Defragmentation(0.0, ("Sat",), "02:00", "04:00"))
    assert budget.left(SATURDAY) == 0.0 and budget.next_s(SATURDAY + HOUR) == math.inf


@pytest.mark.parametrize(
    ("text", "minute"),
    [("02:30", 150), ("24:00", 1440), ("00:00", 0), ("24:01", None), ("2", None), ("02:60", None), ("a:00", None),
     ("02:5", None), ("-1:00", None)],
)  # fmt: skip
def test_times_of_day(text: str, minute: int | None) -> None:
    assert minute_of(text) == minute
