"""Workloads as their queues want them: defaults where a pod and its owners say nothing, and the classes allowed.

What the pod or its owners say is not touched. What a queue refuses is refused by the scheduler, with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from berth.base.errors import BadInput
from berth.dialects.fields import Field
from berth.model.cluster import Allocation
from berth.model.paying import Payers
from berth.model.queue import Queue
from berth.model.queue_rules import QueueRules, rules_of
from berth.model.resources import is_accelerator
from berth.model.workload import Capability, PodClass, Workload
from berth.sources.pod_class import CAPABILITY_KEYS, PREFIX, capability
from berth.sources.requests import Problems

TIME_LIMIT, MIN_RUNTIME, CHECKPOINT_EVERY, PREEMPTIBLE = "time-limit", "min-runtime", "checkpoint-every", "preemptible"
# Keys that a queue may give a value for; the others say what a workload is, which no queue knows.
DEFAULT_KEYS = (
    TIME_LIMIT,
    MIN_RUNTIME,
    CHECKPOINT_EVERY,
    PREEMPTIBLE,
    *(key[len(PREFIX) :] for key in CAPABILITY_KEYS),
)


class Given(Struct, frozen=True):
    """What a queue gives, read: durations in seconds, 0.0 and None where it gives none. `by` says which queue gives
    what. `findings` are values that cannot be read, a sentence each."""

    time_limit_s: float = 0.0
    min_runtime_s: float = 0.0
    checkpoint_every_s: float = 0.0
    preemptible: bool | None = None
    least: Capability = Capability()
    by: tuple[tuple[str, str], ...] = ()
    findings: tuple[str, ...] = ()


class Governors:
    """The rules of all queues, for workloads by the queue that pays for them."""

    def __init__(self, queues: Sequence[Queue] = ()) -> None:
        self._rules = rules_of(queues)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def workload(self, workload: Workload, payers: Payers) -> Workload:
        """As its queue wants it."""
        rules = self._rules.get(payers.of(workload.queue, workload.namespace)) if self._rules else None
        return workload if rules is None else governed(workload, rules)

    def allocation(self, held: Allocation, payers: Payers) -> Allocation:
        """A pod that runs, with the defaults that its workload was started with."""
        rules = self._rules.get(payers.of(held.queue, held.namespace)) if self._rules else None
        if rules is None:
            return held
        given = given_by(rules)
        return replace(
            held, time_limit_s=_limit(held.time_limit_s, rules, given)[0],
            min_runtime_s=held.min_runtime_s or given.min_runtime_s,
            checkpoint_every_s=held.checkpoint_every_s or given.checkpoint_every_s,
            preemptible=given.preemptible if held.preemptible is None else held.preemptible,
        )  # fmt: skip


def governed(workload: Workload, rules: QueueRules) -> Workload:
    """The workload with what its queue gives where nobody says anything, each value with where it came from."""
    given = given_by(rules)
    by = dict(given.by)
    limit_s, limit_by = _limit(workload.time_limit_s, rules, given)
    told = [("time limit", limit_by)] if limit_by else []
    values = {}
    for name, key, said, value in (
        ("min_runtime_s", MIN_RUNTIME, workload.min_runtime_s, given.min_runtime_s),
        ("checkpoint_every_s", CHECKPOINT_EVERY, workload.checkpoint_every_s, given.checkpoint_every_s),
    ):
        values[name] = said or value
        if value and not said:
            told.append((key.replace("-", " "), by[key]))
    preemptible = workload.preemptible
    if preemptible is None and given.preemptible is not None:
        preemptible = given.preemptible
        told.append((PREEMPTIBLE, by[PREEMPTIBLE]))
    sets = tuple(replace(s, pod_class=_class(s.pod_class, rules, given)) for s in workload.pod_sets)
    if given.least != Capability() and sets != workload.pod_sets:
        told += [(key, origin) for key, origin in given.by if PREFIX + key in CAPABILITY_KEYS]
    return replace(
        workload, time_limit_s=limit_s, **values, preemptible=preemptible,
        pod_sets=workload.pod_sets if sets == workload.pod_sets else sets,
        provenance=(*workload.provenance, *told), findings=(*workload.findings, *given.findings),
    )  # fmt: skip


@lru_cache(maxsize=1024)
def given_by(rules: QueueRules) -> Given:
    """The values of a queue's defaults, read once."""
    values: dict[str, Field] = {}
    by: dict[str, str] = {}
    findings: list[str] = []
    for key, (value, queue) in rules.defaults:
        if key in DEFAULT_KEYS:
            values[key] = Field(value, f"GPUQueue {queue}", f"spec.defaults.{key}")
            by[key] = f"defaults of queue {queue}"

    def seconds(key: str) -> float:
        if key not in values:
            return 0.0
        try:
            return values[key].seconds()
        except BadInput as error:
            findings.append(f"{error.sentence} It was passed over.")
            return 0.0

    preemptible = rules.preemptible
    if PREEMPTIBLE in values:
        try:
            preemptible = values[PREEMPTIBLE].flag_in_text()
        except BadInput as error:
            findings.append(f"{error.sentence} It was passed over.")
    elif preemptible is not None:
        by[PREEMPTIBLE] = f"preemptible of queue {rules.preemptible_by}"
    problems = Problems()
    wishes = tuple(str(values[key[len(PREFIX) :]].value) if key[len(PREFIX) :] in values else None
                   for key in CAPABILITY_KEYS)  # fmt: skip
    least = capability(wishes, problems)
    return Given(
        seconds(TIME_LIMIT), seconds(MIN_RUNTIME), seconds(CHECKPOINT_EVERY), preemptible, least,
        tuple(sorted(by.items())), (*findings, *problems),
    )  # fmt: skip


def _limit(stated_s: float, rules: QueueRules, given: Given) -> tuple[float, str]:
    """The run-time limit, and where it came from if not from the workload: the default, else the longest allowed."""
    if stated_s:
        return stated_s, ""
    if given.time_limit_s and not 0 < rules.max_time_limit_s < given.time_limit_s:
        return given.time_limit_s, dict(given.by)[TIME_LIMIT]
    if rules.max_time_limit_s:
        return rules.max_time_limit_s, f"maxTimeLimit of queue {rules.max_by}"
    return 0.0, ""


def _class(pod_class: PodClass, rules: QueueRules, given: Given) -> PodClass:
    if not any(is_accelerator(name) for name, _ in pod_class.requests):
        return pod_class
    own, least = pod_class.least, given.least
    if least != Capability():
        own = Capability(
            own.memory_bytes or least.memory_bytes, own.compute if own.compute != (0, 0) else least.compute,
            own.products or least.products, own.precision or least.precision, own.link or least.link,
            own.rdma or least.rdma,
        )  # fmt: skip
    if own == pod_class.least and rules.classes is None and rules.sharing is None:
        return pod_class
    return replace(pod_class, least=own, queue_classes=rules.classes, queue_sharing=rules.sharing)
