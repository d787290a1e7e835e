"""What is left of a run of which nobody knows the length: distributions from those like it."""

from __future__ import annotations

import numpy as np
import pytest

from berth.model.history import History
from berth.scheduling.estimates import index_of, quantiles

PARTS = (0.1, 0.5, 0.9)


def history(cases: list[tuple[float, bool, int]], *, every_s: float = 60.0, **more: list[int]) -> History:
    """(seconds computed, ended, GPUs) each, submitted one after the other."""
    count = len(cases)
    none = [0] * count
    return History(
        np.arange(count) * every_s, np.array([c[0] for c in cases], float), np.array([c[1] for c in cases], bool),
        np.array([c[2] for c in cases]), np.array(more.get("queue", none)), np.array(more.get("owner", none)),
    )  # fmt: skip


def of(row: int, past: History, parts: tuple[float, ...] = PARTS) -> list[float]:
    found: list[float] = quantiles(np.array([row]), past, parts)[0].tolist()
    return found


def test_who_comes_after_many_of_an_hour_takes_about_an_hour() -> None:
    low, middle, high = of(30, history([(3600.0, True, 1)] * 30 + [(0.0, False, 1)]))
    assert 1500 < low < 3600 < high < 8000
    assert middle == pytest.approx(3600, rel=0.3)


def test_the_same_owner_says_more_than_the_same_queue_than_anybody() -> None:
    """Jobs of ten seconds, of an hour and of a day in turn; who comes last is of the owner of the days."""
    cases = [(10.0, True, 1), (3600.0, True, 1), (86400.0, True, 1)] * 20 + [(0.0, False, 1)]
    queue, owner = [0, 1, 1] * 20 + [1], [0, 1, 2] * 20 + [2]
    of_all, of_queue = of(60, history(cases))[1], of(60, history(cases, queue=queue))
    of_owner = of(60, history(cases, queue=queue, owner=owner))
    assert of_all < 3600 * 2 and of_queue[0] > 1000
    assert of_owner[0] > 40_000 and of_owner[1] == pytest.approx(86400, rel=0.3)


def test_wide_jobs_say_little_of_narrow_ones() -> None:
    cases = [(100.0, True, 1)] * 15 + [(10_000.0, True, 16)] * 15 + [(0.0, False, 1), (0.0, False, 16)]
    assert of(30, history(cases))[1] == pytest.approx(100, rel=0.3)
    assert of(31, history(cases))[1] == pytest.approx(10_000, rel=0.3)


def test_what_neighbours_that_still_run_have_shown_counts() -> None:
    """Nobody has ended; those before it have computed for a day already."""
    still = of(10, history([(86400.0, False, 1)] * 10 + [(0.0, False, 1)]))[1]
    nobody = of(0, history([(0.0, False, 1)]))[1]
    assert nobody < 10 and still > 80_000


def test_who_has_outlived_those_like_it_is_not_told_that_it_is_over() -> None:
    past = history([(100.0, True, 1)] * 20 + [(50_000.0, False, 1)])
    assert of(20, past)[1] > 500


def test_of_one_that_is_not_in_the_history_it_is_what_all_took() -> None:
    past = history([(3600.0, True, 1)] * 200)
    assert quantiles(np.array([-1]), past, (0.5,))[0, 0] == pytest.approx(3600, rel=0.5)
    assert quantiles(np.array([-1]), history([]), (0.5,))[0, 0] > 0


def test_the_index_asks_for_an_end_soon_before_a_sure_one() -> None:
    """Half of them take ten seconds and half a day: ten seconds are worth trying; who has outlived them is not."""
    cases = [(10.0, True, 1), (86400.0, True, 1)] * 20 + [(0.0, False, 1), (60.0, False, 1)]
    found = index_of(np.array([40, 41]), history(cases))
    assert found.index_s[0] < 100 < 2_000 < found.index_s[1]
    assert found.until_s[0] < 60 < found.until_s[1]
