"""Whether pods that are deleted come back, and what that costs their owner."""

from __future__ import annotations

from collections.abc import Sequence

from berth.dialects.fields import Field
from berth.dialects.objects import Objects, OwnerRef, chain, controlling

_BACKOFF_LIMIT = 6  # where a Job does not say: batch/v1 JobSpec


def lost_for_good(refs: Sequence[OwnerRef], namespace: str, pods: int, objects: Objects) -> str:
    """Why `pods` pods of these owners must not be deleted: nobody makes them again, or their Job would fail for it.

    "" where they may be. A Job counts a deleted pod as failed, unless its policy passes over disruptions (batch/v1,
    podFailurePolicy with the condition DisruptionTarget).
    """
    if controlling(refs) is None:
        return "no controller makes them again"
    for ref, thing in chain(refs, namespace, objects):
        if (ref.group, ref.kind) != ("batch", "Job") or thing is None:
            continue
        job = Field(thing)
        if _passes_over(job):
            continue
        left = job["spec.backoffLimit"].number(_BACKOFF_LIMIT) - job["status.failed"].number()
        if left < pods:
            return f"Job {ref.name} would fail: {pods} failures more, and {max(0, left)} are left of its backoffLimit"
    return ""


def _passes_over(job: Field) -> bool:
    return any(
        rule["action"].text() == "Ignore"
        and any(condition["type"].text() == "DisruptionTarget" for condition in rule["onPodConditions"].items())
        for rule in job["spec.podFailurePolicy.rules"].items()
    )
