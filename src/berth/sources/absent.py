"""What pods belong to and is not known: how it is said that they wait for it."""

from __future__ import annotations

from berth.dialects.objects import Unseen
from berth.model.workload import Unmet


def unmet(one: Unseen, needs: str = "") -> Unmet:
    """`needs` are the rights without which it cannot be seen, "" where nobody has made it yet.

    `get, list, watch on pytorchjobs.kubeflow.org`.
    """
    if not needs:
        return Unmet(f"{one.called} does not exist yet", f"{one.kind} {one.namespace}/{one.name} created")
    return Unmet(
        f"{one.kind} {one.namespace}/{one.name} has not been seen: Berth needs {needs}",
        f"the right to {needs} for Berth's ServiceAccount",
    )
