"""Who may run at all: gates, missing pods, quota and limits. Each refusal is the cause that is told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from berth.base.units import counted, from_milli
from berth.model.reasons import Cause, Reason
from berth.model.workload import Workload
from berth.scheduling.quota import Ledger, milli_of

Mask = NDArray[np.bool_]


def not_ready(workload: Workload) -> Cause | None:
    """The workload's own state keeps it: a closed gate, pods that nobody has created."""
    if workload.gates:
        gates = ", ".join(workload.gates)
        return Cause(
            Reason.Gated, f"the scheduling gate {gates} is closed", need=len(workload.gates), unit="gates",
            where=workload.gates[0], unlock=(f"whoever set {workload.gates[0]} removes it",),
        )  # fmt: skip
    minimum = sum(s.min_count for s in workload.pod_sets)
    created = workload.pod_count - workload.missing_pods
    if workload.missing_pods and created < minimum:
        return Cause(
            Reason.WaitingForGang, f"{created} of the {counted(minimum, 'pod')} that start together have been created",
            need=minimum, have=created, unit="pods", unlock=(f"{counted(minimum - created, 'more pod')} created",),
        )  # fmt: skip
    return None


def over_limit(workload: Workload, queue: int, ledger: Ledger) -> Cause | None:
    """The limit over all GPU classes of the queue, or of one above it."""
    need = milli_of(workload, minimum=True)
    if not need or not ledger.has_limits:
        return None
    bound = int(ledger.bound(queue)[-1])
    tightest = ledger.names[ledger.tightest(queue, -1)]
    if need > bound:
        return Cause(
            Reason.LargerThanLimit,
            f"{from_milli(need)} GPUs are asked for; the limit of queue {tightest} is {from_milli(bound)}",
            need=-(-need // 1000), have=bound // 1000, where=tightest, unlock=(f"a higher limit of {tightest}",),
        )  # fmt: skip
    room = int(ledger.room(queue)[-1])
    return limit_reached(need, room, bound, tightest) if need > room else None


def limit_reached(need: int, room: int, bound: int, where: str) -> Cause:
    """The sentence on a limit that is used up; amounts in milli, `where` a queue, or a queue and a GPU class."""
    return Cause(
        Reason.LimitExceeded,
        f"{from_milli(need)} GPUs are asked for; {where} has {from_milli(max(room, 0))} left "
        f"of its limit of {from_milli(bound)}",
        need=-(-need // 1000), have=max(room, 0) // 1000, where=where,
        unlock=(f"{from_milli(need - room)} GPUs released in {where}, or a higher limit",),
    )  # fmt: skip


def open_classes(workload: Workload, queue: int, ledger: Ledger) -> Mask:
    """(C + 1,) GPU classes of which the queue may still take the whole minimum of the workload.

    The last stands for nodes whose class is not known, or that have no GPU.
    """
    need = milli_of(workload, minimum=True)
    room: Mask = ledger.room(queue) >= need
    return room


def over_quota(workload: Workload, queue: int, ledger: Ledger, waiting: str) -> Cause:
    """Borrowing is refused while `waiting`, a workload within its quota, waits for the same GPUs."""
    need, quota = milli_of(workload), int(ledger.quota[queue, -1])
    held = int(ledger.used[queue, -1])
    name = ledger.names[queue]
    bound = f"quota {from_milli(quota)}, " if quota < 2**62 else ""
    return Cause(
        Reason.QuotaExceeded,
        f"{from_milli(need)} GPUs would take queue {name} above its quota ({bound}{from_milli(held)} held), while "
        f"{waiting} waits within its own",
        need=-(-need // 1000), have=max(quota - held, 0) // 1000 if quota < 2**62 else 0, where=name,
        unlock=(f"{waiting} placed, or a higher quota of {name}",),
    )  # fmt: skip
