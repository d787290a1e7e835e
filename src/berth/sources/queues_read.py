"""From GPUQueue objects to queues of the model."""

from __future__ import annotations

from collections.abc import Mapping

from berth.base.errors import BadInput
from berth.dialects.fields import Field
from berth.kube.wire_queues import GPUQueue
from berth.model.queue import Queue, Reclaim
from berth.model.sharing import KINDS

_RECLAIM: dict[str, Reclaim] = {"Never": "Never", "LowerPriority": "LowerPriority", "Any": "Any"}


def queues_in(objects: Mapping[str, GPUQueue]) -> tuple[Queue, ...]:
    """By name."""
    return tuple(queue_of(name, thing) for name, thing in sorted(objects.items()))


def queue_of(name: str, thing: GPUQueue) -> Queue:
    """The queue that an object says. A value that the schema refuses, and an old dump may have, counts as not said."""
    spec = thing.spec
    if spec is None:
        return Queue(name)
    return Queue(
        name,
        spec.parent or "",
        1 if spec.weight is None else spec.weight,
        tuple(sorted((spec.quota or {}).items())),
        tuple(sorted((spec.limit or {}).items())),
        tuple(spec.namespaces or ()),
        borrowing=spec.borrowing is not False,
        lending=spec.lending is not False,
        reclaim=_RECLAIM.get(spec.reclaim or "", "Any"),
        defaults=tuple(sorted((key, value) for key, value in (spec.defaults or {}).items() if value is not None)),
        max_time_limit_s=duration_in(spec.max_time_limit),
        preemptible=spec.preemptible,
        allowed_classes=tuple(spec.allowed_classes or ()),
        sharing=tuple(kind for kind in spec.sharing or () if kind in KINDS),
        checkpoint_required=bool(spec.checkpoint_required),
    )


def duration_in(text: str | None) -> float:
    """Seconds of a duration; 0.0 where there is none, or it is no duration."""
    try:
        return Field(text).seconds()
    except BadInput:
        return 0.0
