"""What the status of a GPUQueue says: what it holds, who waits in it, whether it can be used as it is written."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from berth.actions.subjects import stamp
from berth.model.as_written import queue_problem
from berth.model.cluster import Allocation
from berth.model.paying import payers_of
from berth.model.queue import ANY_CLASS, Queue
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, Workload
from berth.scheduling.quota import gpu_milli, milli_of

ACCEPTED = "Accepted"
_SLICE = 5000  # allocations counted before the event loop has its turn


TOLD_PART = 0.01  # of past usage: what differs by less has been told


class QueueSaid(Struct, frozen=True):
    """`used` in whole GPUs by GPU class, "*" for all; a part of a GPU counts once it makes a whole one.

    `problem` is why the queue cannot be used as written: (reason, message), ("", "") where it can.
    """

    used: tuple[tuple[str, int], ...] = ()
    running: int = 0
    waiting: int = 0
    waiting_gpus: int = 0
    problem: tuple[str, str] = ("", "")
    due: float | None = None  # GPUs by their value; None where there is one queue
    past: tuple[float, float] | None = None  # value hours of its own workloads, and as of when


def listed_namespaces(queues: Iterable[Queue]) -> dict[str, str]:
    return {namespace: queue.name for queue in queues for namespace in queue.namespaces}


class QueueCount(Struct, frozen=True):
    """What is said of each queue object, and what each queue that pays holds: GPUs times their value."""

    said: dict[str, QueueSaid]
    holds: dict[str, float]


async def counted(snapshot: Snapshot, waiting: Sequence[Workload], due: Mapping[str, float]) -> QueueCount:
    """Of each queue object; amounts with those of the queues below it. `waiting` are the workloads that still do."""
    queues = snapshot.queues
    payers = payers_of(queues)
    above = {q.name: _chain(q.name, {p.name: p.parent for p in queues}) for q in queues}
    used: dict[str, dict[str, int]] = {q.name: {} for q in queues}
    running: dict[str, set[str]] = {q.name: set() for q in queues}
    class_of = {node.name: node.gpu_class for node in snapshot.nodes}
    worth = {c.name: max(c.value_per_hour, 0.0) for c in snapshot.gpu_classes}
    holds: dict[str, float] = {}
    milli_by_class: dict[int, tuple[PodClass, int]] = {}
    for start in range(0, len(snapshot.allocations), _SLICE):
        for held in snapshot.allocations[start : start + _SLICE]:
            payer = payers.of(held.queue, held.namespace)
            milli, gpu_class = _milli(held, milli_by_class), class_of.get(held.node, "")
            if milli:
                holds[payer] = holds.get(payer, 0.0) + milli / 1000 * worth.get(gpu_class, 1.0)
            chain = above.get(payer)
            if chain is None:
                continue
            for name in chain:
                running[name].add(held.workload_identity)
                if milli:
                    amounts = used[name]
                    amounts[ANY_CLASS] = amounts.get(ANY_CLASS, 0) + milli
                    if gpu_class:
                        amounts[gpu_class] = amounts.get(gpu_class, 0) + milli
        await asyncio.sleep(0)
    counts: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    for workload in waiting:
        for name in above.get(payers.of(workload.queue, workload.namespace), ()):
            counts[name] += 1
            gpus[name] += milli_of(workload, minimum=True)
    known = {c.name for c in snapshot.gpu_classes}
    said = {
        q.name: QueueSaid(
            tuple(sorted((c, milli // 1000) for c, milli in used[q.name].items())),
            len(running[q.name]),
            counts[q.name],
            -(-gpus[q.name] // 1000),
            queue_problem(q, queues, known),
            round(due[q.name], 1) if q.name in due else None,
        )
        for q in queues
    }
    return QueueCount(said, holds)


def status_change(queue: Mapping[str, Any], said: QueueSaid, at: str) -> dict[str, Any] | None:
    """The status as a merge patch; None where the object says it already."""
    before = queue.get("status") or {}
    generation = (queue.get("metadata") or {}).get("generation")
    conditions = [c for c in before.get("conditions") or () if isinstance(c, dict)]
    old = next((c for c in conditions if c.get("type") == ACCEPTED), None)
    reason, message = said.problem
    condition: dict[str, Any] = {
        "type": ACCEPTED, "status": "False" if reason else "True", "reason": reason or ACCEPTED,
        "message": message or "the queue is used as it is written",
    }  # fmt: skip
    same = old is not None and old.get("status") == condition["status"]
    condition["lastTransitionTime"] = (old or {}).get("lastTransitionTime") if same else at
    if generation is not None:
        condition["observedGeneration"] = generation
    used = dict(said.used)
    status: dict[str, Any] = {
        "observedGeneration": generation,
        "used": used,
        "running": said.running,
        "waiting": said.waiting,
        "waitingGpus": said.waiting_gpus,
        "conditions": [*(c for c in conditions if c is not old), condition],
    }
    if said.due is not None or "dueShare" in before:
        status["dueShare"] = said.due
    if _has_moved(before.get("pastUsage"), said.past):
        hours, at_s = said.past or (0.0, 0.0)
        status |= {"pastUsage": round(hours, 3), "pastUsageAt": stamp(at_s)}
    if all(before.get(key) == value for key, value in status.items()):
        return None
    # A class that is used no more has to be taken out by name.
    return {**status, "used": {**dict.fromkeys(before.get("used") or ()), **used}}


def _has_moved(told: Any, past: tuple[float, float] | None) -> bool:
    """Past usage is another than was told, by enough to be worth a write."""
    if past is None:
        return False
    if not isinstance(told, int | float):
        return past[0] >= TOLD_PART
    return abs(past[0] - told) > max(TOLD_PART * max(past[0], told), TOLD_PART)


def _chain(name: str, parents: Mapping[str, str]) -> tuple[str, ...]:
    chain = [name]
    while (up := parents.get(chain[-1], "")) in parents and up not in chain:
        chain.append(up)
    return tuple(chain)


def _milli(held: Allocation, known: dict[int, tuple[PodClass, int]]) -> int:
    # Pods that ask for the same share their class: by its identity it is worked out once.
    found = known.get(id(held.pod_class))
    if found is None:
        milli = gpu_milli(held.pod_class.requests, held.pod_class.gpu_milli)
        found = known[id(held.pod_class)] = (held.pod_class, milli)
    return found[1]
