"""PodDisruptionBudgets as they travel. Source: k8s.io/api, policy/v1."""

from __future__ import annotations

from berth.kube.wire import LabelSelector, ObjectMeta, Wire


class BudgetSpec(Wire, frozen=True, gc=False):
    selector: LabelSelector | None = None


class BudgetStatus(Wire, frozen=True, gc=False):
    disruptions_allowed: int | None = None


class PodDisruptionBudget(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None
