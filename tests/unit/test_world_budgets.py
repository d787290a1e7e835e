"""Disruption budgets that change: who waits for a place is looked at again when more may leave than before."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube import wire_budgets
from berth.sources.live.world import World

NO_SELECTOR: dict[str, Any] = {}
APP = {"selector": {"matchLabels": {"app": "low"}}}
OTHER = {"selector": {"matchLabels": {"app": "other"}}}
UNREADABLE = {"selector": {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["low"]}]}}


def budget(allowed: int | None, spec: dict[str, Any] = APP, seen: int = 0) -> wire_budgets.PodDisruptionBudget:
    status = {"disruptionsAllowed": allowed, "observedGeneration": seen}
    made = {"metadata": {"name": "low", "namespace": "a"}, "spec": spec, "status": status}
    return msgspec.convert(made, wire_budgets.PodDisruptionBudget)


def world(*budgets: wire_budgets.PodDisruptionBudget) -> tuple[World, list[int]]:
    """It, and as many entries as it has called for a decision since."""
    made, woken = World({"berth"}), list[int]()
    for one in budgets:
        made.put_budget(one)
    made.on_change = lambda: woken.append(1)
    return made, woken


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (budget(0), budget(1)),
        (budget(None), budget(1)),
        (budget(1), budget(2)),
        (budget(1), budget(0, OTHER)),
        (budget(0), budget(0, NO_SELECTOR)),
        (budget(0), budget(0, UNREADABLE)),
    ],
    ids=["allows one", "is counted", "allows one more", "is about others", "is about none", "cannot be read"],
)
def test_a_budget_that_allows_more_than_before_wakes_who_waits(
    before: wire_budgets.PodDisruptionBudget, after: wire_budgets.PodDisruptionBudget
) -> None:
    w, woken = world(before)
    w.put_budget(after)
    assert len(woken) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [(budget(1), budget(1, seen=2)), (budget(1), budget(0)), (budget(0, NO_SELECTOR), budget(3)),
     (budget(0, NO_SELECTOR), budget(0, UNREADABLE))],
    ids=["the same", "less", "none before", "of none still"],
)  # fmt: skip
def test_a_budget_that_allows_no_more_than_before_wakes_nobody(
    before: wire_budgets.PodDisruptionBudget, after: wire_budgets.PodDisruptionBudget
) -> None:
    w, woken = world(before)
    w.put_budget(after)
    assert not woken


def test_a_budget_that_goes_wakes_who_waits_once() -> None:
    w, woken = world(budget(0))
    w.drop_budget(("a", "low"))
    w.drop_budget(("a", "low"))
    assert len(woken) == 1
    assert not w.snapshot(0.0).budgets
