"""Estimates of run times: the compiled estimator says what the definition says, however often it has been told of
something new, and says it of a longer past with longer times."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.model.history import History
from berth.scheduling import estimates
from berth.scheduling.estimates import BELL, BINS, EDGES, PRIOR, SHORTEST_S, SPREAD, Estimator, index_of, quantiles

often = settings(max_examples=120, deadline=None, derandomize=True)


@st.composite
def histories(draw: st.DrawFn) -> History:
    count = draw(st.integers(1, 30))
    many = lambda of: np.array(draw(st.lists(of, min_size=count, max_size=count)))  # noqa: E731
    gaps = many(st.sampled_from([0.0, 1.0, 60.0, 5e4]))
    return History(
        np.cumsum(gaps), many(st.sampled_from([0.0, 3.0, 10.0, 100.0, 3600.0, 86400.0, 2e6, 1e7])),
        many(st.booleans()), many(st.sampled_from([1, 2, 3, 8, 16])), many(st.integers(0, 1)), many(st.integers(0, 2)),
    )  # fmt: skip


# --- the definition, slowly


def bin_of(seconds: float) -> int:
    return int(np.clip(np.searchsorted(EDGES, max(seconds, SHORTEST_S) * (1 + 1e-12), side="right") - 1, 0, BINS - 1))


def spread(at: int) -> np.ndarray:
    found = np.zeros(BINS)
    for d in range(-SPREAD, SPREAD + 1):
        found[min(max(at + d, 0), BINS - 1)] += BELL[d + SPREAD]
    return found


def corrected(cases: list[tuple[float, float, bool]], above: np.ndarray, worth: float) -> np.ndarray:
    """(weight, seconds, ended) each: events over those at risk, and what stands above for so many cases."""
    events, kept = np.zeros(BINS), np.zeros(BINS)
    for weight, seconds, ended in cases:
        if ended:
            events += weight * spread(bin_of(seconds))
        elif seconds > SHORTEST_S:
            kept[bin_of(seconds)] += weight
    hazard = np.zeros(BINS)
    for b in range(BINS):
        at_risk = events[b:].sum() + kept[b + 1 :].sum()
        hazard[b] = (events[b] + worth * above[b]) / (at_risk + worth)
    return hazard


def hazard_of(row: int, past: History) -> np.ndarray:
    rows = range(len(past))
    wide = [math.ceil(math.log2(gpus)) for gpus in past.width.tolist()]
    case = [(1.0, float(past.attained_s[r]), bool(past.has_ended[r])) for r in rows]
    hazard = corrected(case, np.full(BINS, PRIOR), 5.0)
    hazard = corrected([case[r] for r in rows if wide[r] == wide[row]], hazard, 10.0)
    nobody = np.zeros(len(past), int)
    for kind in (nobody, past.queue, past.owner):
        if kind is not nobody and len(set(kind.tolist())) < 2:
            continue
        like = [r for r in rows if wide[r] == wide[row] and kind[r] == kind[row]]
        me, near = like.index(row), []
        for place, other in enumerate(like):
            if 0 < abs(place - me) <= 20:
                apart_s = abs(past.submitted_s[other] - past.submitted_s[row])
                weight = (1 + apart_s / 2e4) ** -0.7 / abs(place - me)
                near.append((float(weight), *case[other][1:]))
        hazard = corrected(near, hazard, 0.3)
    return hazard


@often
@given(histories())
def test_the_compiled_estimator_says_what_the_definition_says(past: History) -> None:
    rows = np.arange(len(past))
    found = Estimator().follow(past).hazards(rows)
    assert found == pytest.approx(np.array([hazard_of(r, past) for r in rows]), rel=1e-9, abs=1e-12)


@often
@given(histories(), st.sampled_from([0.0, 4.0, 77.0, 5000.0, 3e6, 2e7]))
def test_the_index_is_the_least_price_of_an_end(past: History, attained: float) -> None:
    """Tried at each end of a bin, with what is expected until there."""
    hazard = Estimator().follow(past).hazards(np.array([0]))
    index, until = estimates._gittins(hazard, np.array([attained]), EDGES)
    first = bin_of(attained)
    left, ended, spent, prices = 1.0, 0.0, 0.0, {}
    for b in range(first, BINS):
        begins, ends = max(EDGES[b], attained), max(EDGES[b + 1], attained * 1.1)
        part = 1.0
        if b == first and attained > SHORTEST_S and b < BINS - 1:
            part = np.clip(math.log(EDGES[b + 1] / attained) / math.log(EDGES[b + 1] / EDGES[b]), 0.02, 1.0)
        mass = left * (1.0 if b == BINS - 1 else hazard[0, b] * part)
        ended, spent, left = ended + mass, spent + mass * (math.sqrt(begins * ends) - attained), left - mass
        prices[ends] = (spent + left * (ends - attained)) / ended
    assert index[0] == pytest.approx(min(prices.values()), rel=1e-9)
    assert prices[until[0]] == pytest.approx(index[0], rel=1e-9)


# --- whatever it was told before


@often
@given(histories(), st.lists(st.tuples(st.integers(0, 29), st.floats(1, 1e5), st.booleans()), max_size=8), st.data())
def test_what_was_told_before_makes_no_difference(
    last: History, changes: list[tuple[int, float, bool]], data: st.DataObject
) -> None:
    """A few rows, then more and more of them, with times that go on, and at the end a past that is another one."""
    told = Estimator()
    for count in range(1, len(last) + 1, 7):
        attained, ended = last.attained_s[:count].copy(), last.has_ended[:count].copy()
        for row, more_s, ends in changes:
            if row < count:
                attained[row], ended[row] = attained[row] + more_s, ends
        seen = History(
            last.submitted_s[:count], attained, ended, last.width[:count], last.queue[:count], last.owner[:count]
        )
        rows = np.arange(count)
        assert np.array_equal(told.follow(seen).hazards(rows), Estimator().follow(seen).hazards(rows))
        assert np.array_equal(told.index_of(rows).index_s, index_of(rows, seen).index_s)
    other = data.draw(histories())
    rows = np.arange(len(other))
    assert np.array_equal(told.follow(other).hazards(rows), Estimator().follow(other).hazards(rows))


@often
@given(histories(), st.sampled_from([0.0, 50.0, 4000.0]))
def test_quantiles_rise_and_more_has_ended_by_none_of_them(past: History, attained: float) -> None:
    rows, parts = np.arange(len(past)), (0.01, 0.1, 0.5, 0.9, 0.99)
    found = quantiles(rows, past, parts, np.full(len(past), attained))
    assert (found >= 0).all() and (np.diff(found, axis=1) >= -1e-9 * found[:, 1:]).all()


@often
@given(histories(), st.sampled_from([2.0, 10.0, 100.0]))
def test_where_all_took_longer_nobody_is_expected_to_take_less(past: History, times: float) -> None:
    """Of one that has shown nothing, among some that have ended: the median does not fall when all took longer."""
    ended = replace(past, has_ended=np.ones(len(past), bool), attained_s=np.clip(past.attained_s, 10.0, 2e4))
    longer = replace(ended, attained_s=ended.attained_s * times)
    row, nothing = np.array([0]), np.zeros(1)
    now, then = (quantiles(row, one, (0.5,), nothing)[0, 0] for one in (ended, longer))
    assert then >= now * (1 - 1e-9)
