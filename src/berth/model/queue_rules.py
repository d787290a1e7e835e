"""What queues ask of the workloads that they admit: of a queue and of those above it.

What is asked of all below a queue holds for them, too: of limits of time the shortest, of classes and of kinds of
sharing those that every queue on the way allows. Of defaults and of being preemptible the nearest queue that says
something is believed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from berth.model.queue import Queue


class QueueRules(Struct, frozen=True):
    """The rules of one queue, each with the queue that states it; "" and empty where nobody states any.

    `classes` and `sharing` are None where all are allowed. `defaults` are keys without `berth.dev/`, with value and
    queue.
    """

    max_time_limit_s: float = 0.0
    max_by: str = ""
    classes: tuple[str, ...] | None = None
    classes_by: str = ""
    sharing: tuple[str, ...] | None = None
    sharing_by: str = ""
    checkpoint_by: str = ""
    preemptible: bool | None = None
    preemptible_by: str = ""
    defaults: tuple[tuple[str, tuple[str, str]], ...] = ()


NO_RULES = QueueRules()


def rules_of(queues: Sequence[Queue]) -> Mapping[str, QueueRules]:
    """By name, the queues for which there are any."""
    if not any(_states(queue) for queue in queues):
        return {}
    known = {queue.name: queue for queue in queues}
    found = {name: _rules(known, name) for name in known}
    return {name: rules for name, rules in found.items() if rules != NO_RULES}


def _states(queue: Queue) -> bool:
    return bool(
        queue.defaults or queue.max_time_limit_s or queue.allowed_classes or queue.checkpoint_required
        or queue.sharing
    ) or queue.preemptible is not None  # fmt: skip


def _rules(known: Mapping[str, Queue], name: str) -> QueueRules:
    limit_s, limit_by, classes_by, sharing_by, checkpoint_by = 0.0, "", "", "", ""
    classes: tuple[str, ...] | None = None
    sharing: tuple[str, ...] | None = None
    preemptible: tuple[bool | None, str] = (None, "")
    defaults: dict[str, tuple[str, str]] = {}
    seen: set[str] = set()
    while name in known and name not in seen:
        seen.add(name)
        queue, name = known[name], known[name].parent
        if queue.max_time_limit_s and (not limit_s or queue.max_time_limit_s < limit_s):
            limit_s, limit_by = queue.max_time_limit_s, queue.name
        if queue.allowed_classes:
            allowed = queue.allowed_classes
            classes = allowed if classes is None else tuple(c for c in classes if c in allowed)
            classes_by = queue.name
        if queue.sharing:
            sharing = queue.sharing if sharing is None else tuple(kind for kind in sharing if kind in queue.sharing)
            sharing_by = queue.name
        if queue.checkpoint_required and not checkpoint_by:
            checkpoint_by = queue.name
        if queue.preemptible is not None and not preemptible[1]:
            preemptible = queue.preemptible, queue.name
        for key, value in queue.defaults:
            defaults.setdefault(key, (value, queue.name))
    return QueueRules(
        limit_s, limit_by, classes, classes_by, sharing, sharing_by, checkpoint_by, *preemptible,
        tuple(sorted(defaults.items())),
    )
