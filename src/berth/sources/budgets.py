"""From a PodDisruptionBudget to a budget of the model."""

from __future__ import annotations

from berth.kube import wire, wire_budgets
from berth.model.budget import Budget
from berth.sources.selectors import Problems, label_selector


def budget_of(budget: wire_budgets.PodDisruptionBudget) -> Budget | None:
    """The budget; None for one without a selector, which is about no pods.

    As long as its controller has not counted, nothing is allowed. A selector that cannot be read matches nothing.
    """
    meta = budget.metadata or wire.NO_META
    selector = budget.spec.selector if budget.spec else None
    if selector is None:
        return None
    problems = Problems()
    read = label_selector(selector, "spec.selector", problems, {})
    if problems:
        return None
    allowed = (budget.status.disruptions_allowed if budget.status else None) or 0
    return Budget(meta.namespace or "default", meta.name or "", read, max(allowed, 0))
