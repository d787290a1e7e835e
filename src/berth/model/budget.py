"""PodDisruptionBudgets: how many pods of a kind may be asked to leave now. Source: policy/v1."""

from __future__ import annotations

from msgspec import Struct

from berth.model.workload import LabelSelector


class Budget(Struct, frozen=True, gc=False):
    """Of the pods of a namespace that match, `allowed` more may be disrupted (status.disruptionsAllowed)."""

    namespace: str
    name: str
    selector: LabelSelector
    allowed: int = 0
