"""Who pays, how urgent it is, and for how long: queue, priority, limits of time, by every dialect's keys.

Order where several speak: Berth's keys, KAI, Volcano, Kueue; within a dialect the pod before its owners. The
first is taken, and another that disagrees is told.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from berth.dialects.carriers import Carrier, Said, annotation, either, label

QUEUE = "berth.dev/queue"
GANG = "berth.dev/gang"
POD_SET = "berth.dev/pod-set"
MIN_COUNT = "berth.dev/min-count"
TIME_LIMIT = "berth.dev/time-limit"
MIN_RUNTIME = "berth.dev/min-runtime"
CHECKPOINT_EVERY = "berth.dev/checkpoint-every"
PREEMPTIBLE = "berth.dev/preemptible"
KAI_QUEUES = ("kai.scheduler/queue", "runai/queue")
VOLCANO_QUEUES = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"


class Terms(Struct, frozen=True):
    """What keys say beside gang and topology. Durations in seconds, 0.0 where none is given."""

    queue: str = ""
    priority_class: str = ""
    preemptible: bool | None = None
    time_limit_s: float = 0.0
    min_runtime_s: float = 0.0
    checkpoint_every_s: float = 0.0
    provenance: tuple[tuple[str, str], ...] = ()
    contradictions: tuple[str, ...] = ()


class Candidate(Struct, frozen=True):
    """A value for a term, from a field of an owner or a group: ("train", "spec.queue of Volcano Job x")."""

    value: str
    by: str


def terms_of(
    carriers: Sequence[Carrier],
    *,
    kai_queue: Candidate | None = None,
    volcano_queue: Candidate | None = None,
    priority_classes: Sequence[Candidate] = (),
    pod_priority_class: str = "",
    time_limit: tuple[float, str] = (0.0, ""),
) -> Terms:
    """All terms. `priority_classes` are the owners' and groups' own, most binding first.

    Raises BadInput for a value that cannot be read.
    """
    queues = [
        either(carriers, QUEUE),
        either(carriers, *KAI_QUEUES) or kai_queue,
        either(carriers, *VOLCANO_QUEUES) or volcano_queue,
        label(carriers, KUEUE_QUEUE),
    ]
    classes: list[Said | Candidate | None] = [
        *priority_classes,
        label(carriers, "priorityClassName"),
        label(carriers, "ray.io/priority-class-name"),
        Candidate(pod_priority_class, "spec.priorityClassName of the pod") if pod_priority_class else None,
        label(carriers, "kueue.x-k8s.io/priority-class"),
    ]
    queue, contradictions = _agreed(queues, "queue")
    # A priority class on both group and pod is common and harmless: the group's is meant for the group.
    priority, _ = _agreed(classes, "priority class")
    provenance = [("queue", queue.by)] if queue else []
    if priority:
        provenance.append(("priority", priority.by))

    limit_s, limit_by = time_limit
    if said := annotation(carriers, TIME_LIMIT):
        limit_s, limit_by = said.field.seconds(), said.by
    elif not limit_s and (said := label(carriers, "kueue.x-k8s.io/max-exec-time-seconds")):
        limit_s, limit_by = float(said.field.number_in_text()), said.by
    if limit_s:
        provenance.append(("time limit", limit_by))
    preemptible, preemptible_by = _preemptible(carriers)
    if preemptible is not None:
        provenance.append(("preemptible", preemptible_by))
    runtime, checkpoint = annotation(carriers, MIN_RUNTIME), annotation(carriers, CHECKPOINT_EVERY)
    return Terms(
        queue=queue.value if queue else "",
        priority_class=priority.value if priority else "",
        preemptible=preemptible,
        time_limit_s=limit_s,
        min_runtime_s=runtime.field.seconds() if runtime else 0.0,
        checkpoint_every_s=checkpoint.field.seconds() if checkpoint else 0.0,
        provenance=tuple(provenance),
        contradictions=contradictions,
    )


def minimum_of(carriers: Sequence[Carrier], *, is_batch: bool = False) -> tuple[int, str, Said | None]:
    """(minimum, who said it, the value) of the gang by annotation; (0, "", None) where nobody says.

    `is_batch`: the owner is a Job or JobSet, for which KAI and Kueue have keys of their own.
    """
    said = either(carriers, MIN_COUNT)
    if said is None and is_batch:
        said = annotation(carriers, "kai.scheduler/batch-min-member")
    if said is None:
        said = annotation(carriers, "scheduling.volcano.sh/group-min-member")
    if said is None and is_batch:
        said = annotation(carriers, "kueue.x-k8s.io/job-min-parallelism")
    if said is None:
        return 0, "", None
    return said.field.number_in_text(least=1), said.by, said


def _preemptible(carriers: Sequence[Carrier]) -> tuple[bool | None, str]:
    if said := either(carriers, PREEMPTIBLE):
        return said.field.flag_in_text(), said.by
    if said := label(carriers, "kai.scheduler/preemptibility"):
        # semi-preemptible gives up only what lies above its minimum, so the gang itself stays
        known = {"preemptible": True, "non-preemptible": False, "semi-preemptible": False}
        if said.value not in known:
            raise said.field.bad("KAI knows preemptible and non-preemptible", "Write one of them.")
        return known[said.value], said.by
    if said := either(carriers, "volcano.sh/preemptable"):
        return said.field.flag_in_text(), said.by
    return None, ""


def _agreed(found: Sequence[Said | Candidate | None], what: str) -> tuple[Said | Candidate | None, tuple[str, ...]]:
    given = [one for one in found if one is not None and one.value]
    if not given:
        return None, ()
    first = given[0]
    return first, tuple(
        f"The {what} is {first.value} by {first.by}, but {other.value} by {other.by}; the first was taken."
        for other in given[1:]
        if other.value != first.value
    )
