"""Who may run at all: gates, missing pods, quota and limits. Each refusal is the cause that is told."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from berth.base.units import counted, duration, from_milli
from berth.model.queue_rules import QueueRules
from berth.model.reasons import Cause, Reason
from berth.model.workload import NO_VOLUME, SUSPENDED, Unbound, Workload
from berth.scheduling.quota import ALL_BUT, NO_BOUND, Ledger, milli_of
from berth.scheduling.wording import gpus

Mask = NDArray[np.bool_]

_EXAMPLE = re.compile(r"Write (\S+), for example")


def not_ready(workload: Workload) -> Cause | None:
    """The workload itself keeps it: what Berth does not place, an owner, a gate, pods that nobody has created."""
    for pod_set in workload.pod_sets:
        for refused in pod_set.pod_class.unsupported:
            return Cause(
                Reason.Unsupported, f"the pod asks for {refused}, which Berth does not place", where=refused,
                unlock=(f"the pod without {refused}, or another scheduler for it",),
            )  # fmt: skip
        for problem in pod_set.pod_class.problems:
            return Cause(
                Reason.InvalidRequest, problem.rstrip("."), where=problem.partition(" ")[0],
                unlock=(_lawful(problem),),
            )  # fmt: skip
    if unbound := [claim for s in workload.pod_sets for claim in s.pod_class.unbound]:
        return _waits_for(unbound)
    if workload.unmet:
        more = f"; {counted(len(workload.unmet) - 1, 'other')} to wait for" if len(workload.unmet) > 1 else ""
        return Cause(
            Reason.WaitingForOwner, workload.unmet[0].what + more, need=len(workload.unmet), unit="owners",
            unlock=tuple(one.unlock for one in workload.unmet),
        )  # fmt: skip
    if workload.gates:
        if workload.gates == (SUSPENDED,):
            sentence = f"it is suspended: {SUSPENDED} is true"
            unlock: tuple[str, ...] = (f"whoever set {SUSPENDED} makes it false",)
        else:
            closed = f"{'gate' if len(workload.gates) == 1 else 'gates'} {', '.join(workload.gates)}"
            sentence = f"the scheduling {closed} {'is' if len(workload.gates) == 1 else 'are'} closed"
            unlock = tuple(f"whoever set {gate} removes it" for gate in workload.gates)
        return Cause(
            Reason.Gated, sentence, need=len(workload.gates), unit="gates", where=workload.gates[0], unlock=unlock,
        )  # fmt: skip
    if workload.awaited:
        return Cause(
            Reason.WaitingForVolume, workload.held_off, need=len(workload.awaited), unit="volume claims",
            where=workload.awaited[0], unlock=(f"{workload.awaited[0]} bound",),
        )  # fmt: skip
    if workload.held_off:
        return Cause(
            Reason.BindRefused, workload.held_off, unit="pods",
            unlock=("what the refusal names; it is tried again by itself",),
        )  # fmt: skip
    minimum = sum(s.min_count for s in workload.pod_sets)
    created = workload.pod_count - workload.missing_pods
    if workload.missing_pods and created < minimum:
        return Cause(
            Reason.WaitingForGang, f"{created} of the {counted(minimum, 'pod')} that start together have been created",
            need=minimum, have=created, unit="pods", unlock=(f"{counted(minimum - created, 'more pod')} created",),
        )  # fmt: skip
    return None


def _lawful(problem: str) -> str:
    """What to ask for instead. Berth's own keys are no business of Kubernetes."""
    if "berth.dev/" not in problem:
        return "a request that Kubernetes allows"
    example = _EXAMPLE.search(problem)
    return f"a value such as {example[1]}" if example else "a value that can be read"


def _waits_for(unbound: Sequence[Unbound]) -> Cause:
    first = unbound[0]
    like_it = [one for one in unbound if one.why == first.why]
    if len(unbound) == 1:
        said = f"the volume claim {first.claim} {first.why}"
    elif len(like_it) == len(unbound) and first.why == NO_VOLUME:
        said = f"the volume claims {', '.join(one.claim for one in unbound[:3])} have no volume yet"
    else:
        said = f"the volume claim {first.claim} {first.why}; {counted(len(unbound) - 1, 'other')} to wait for"
    return Cause(
        Reason.WaitingForVolume, said, need=len(unbound), unit="volume claims", where=first.claim,
        unlock=(first.unlock or f"{first.claim} bound",),
    )  # fmt: skip


def against_rules(workload: Workload, rules: QueueRules) -> Cause | None:
    """What its queue, or one above it, does not admit whatever is free."""
    if 0 < rules.max_time_limit_s < workload.time_limit_s:
        longest = duration(rules.max_time_limit_s)
        return Cause(
            Reason.TimeLimitTooLong,
            f"its run-time limit is {duration(workload.time_limit_s)}; queue {rules.max_by} allows {longest} at most",
            need=round(workload.time_limit_s), have=round(rules.max_time_limit_s), unit="s", where=rules.max_by,
            unlock=(f"a run-time limit of at most {longest}", f"a longer maxTimeLimit of queue {rules.max_by}"),
        )  # fmt: skip
    if not rules.checkpoint_by or workload.preemptible is False or workload.checkpoint_every_s:
        return None
    if 0 < workload.time_limit_s <= workload.min_runtime_s or not milli_of(workload):
        return None  # it never has to leave before its time, or it has nothing that others would want
    return Cause(
        Reason.CheckpointMissing,
        f"it may be asked to leave and does not say how often it saves; queue {rules.checkpoint_by} wants that",
        unit="pods", where=rules.checkpoint_by,
        unlock=("annotation berth.dev/checkpoint-every, such as 30m", 'or berth.dev/preemptible: "false"'),
    )  # fmt: skip


def over_limit(workload: Workload, queue: int, ledger: Ledger) -> Cause | None:
    """The limit over all GPU classes of the queue, or of one above it."""
    need = milli_of(workload, minimum=True)
    if not need or not ledger.has_limits:
        return None
    bound = int(ledger.bound(queue)[-1])
    tightest = ledger.tightest(queue, -1)
    if need > bound:
        return larger_than_limit(need, bound, tightest)
    room = int(ledger.room(queue)[-1])
    return limit_reached(need, room, bound, tightest) if need > room else None


def larger_than_limit(need: int, bound: int, queue: str, gpu_class: str = "") -> Cause:
    """A limit that is too low whatever runs, over all GPUs or of one class; amounts in milli."""
    of_class = f" of {gpu_class}" if gpu_class else ""
    number, have, unit = _count(need, bound)
    if keeper := _keeper(queue):
        return Cause(
            Reason.LargerThanLimit,
            f"{gpus(need)} asked for; beside what queue {keeper} does not lend there are {from_milli(bound)}{of_class}",
            need=number, have=have, unit=unit, where=keeper, unlock=_lent(keeper),
        )  # fmt: skip
    return Cause(
        Reason.LargerThanLimit,
        f"{gpus(need)} asked for; the limit of queue {queue} is {from_milli(bound)}{of_class}",
        need=number, have=have, unit=unit, where=queue, unlock=(f"a higher limit of {queue}",),
    )  # fmt: skip


def _keeper(queue: str) -> str:
    """The queue that does not lend, where the limit is what it leaves to others; "" where it is a queue's own."""
    return queue.removeprefix(ALL_BUT) if queue.startswith(ALL_BUT) else ""


def _lent(keeper: str) -> tuple[str, ...]:
    return (f"lending: true in queue {keeper}, or a lower quota of it",)


def limit_reached(need: int, room: int, bound: int, queue: str, gpu_class: str = "") -> Cause:
    """A limit that is used up, over all GPUs or of one class; amounts in milli."""
    of_class = f" of {gpu_class}" if gpu_class else ""
    number, have, unit = _count(need, max(room, 0))
    if keeper := _keeper(queue):
        return Cause(
            Reason.LimitExceeded,
            f"{gpus(need)} asked for; beside what queue {keeper} does not lend {from_milli(max(room, 0))} are left of "
            f"{from_milli(bound)}{of_class}",
            need=number, have=have, unit=unit, where=keeper,
            unlock=(f"{gpus(need - room)}{of_class} released outside queue {keeper}", *_lent(keeper)),
        )  # fmt: skip
    return Cause(
        Reason.LimitExceeded,
        f"{gpus(need)} asked for; queue {queue} has {from_milli(max(room, 0))} left of its limit of "
        f"{from_milli(bound)}{of_class}",
        need=number, have=have, unit=unit, where=queue,
        unlock=(f"{gpus(need - room)}{of_class} released in queue {queue}, or a higher limit",),
    )  # fmt: skip


def open_classes(workload: Workload, queue: int, ledger: Ledger) -> Mask:
    """(C + 1,) GPU classes of which the queue may still take the whole minimum of the workload.

    The last stands for nodes whose class is not known, or that have no GPU.
    """
    need = milli_of(workload, minimum=True)
    room: Mask = ledger.room(queue) >= need
    return room


def over_quota(workload: Workload, queue: int, ledger: Ledger, ahead: int, waiting: str) -> Cause:
    """Borrowing is refused while `waiting`, a workload within its quota, waits for the same GPUs.

    `ahead` is the GPU milli of the workloads of the same queue that wait before this one.
    """
    need, name = milli_of(workload), ledger.names[queue]
    bounds = [int(ledger.quota[q, -1]) for q in ledger.chain(queue) if ledger.quota[q, -1] < NO_BOUND]
    held = int(ledger.used[queue, -1])
    room = max(bounds[0] - held - ahead, 0) if bounds else 0
    said = f"quota {from_milli(bounds[0])}, " if bounds else ""
    before = f" and {from_milli(ahead)} asked for before it" if ahead else ""
    number, have, unit = _count(need, min(room, need - 1) if room >= need else room)
    return Cause(
        Reason.QuotaExceeded,
        f"{gpus(need)} would take queue {name} above its quota ({said}{from_milli(held)} held{before}), while "
        f"{waiting} waits within its own",
        need=number, have=have, unit=unit, where=name, unlock=(f"{waiting} placed, or a higher quota of {name}",),
    )  # fmt: skip


def may_not_borrow(workload: Workload, queue: int, ledger: Ledger) -> Cause | None:
    """What runs beyond a quota is asked to leave once its owner wants it: who may not be asked does not start there."""
    if workload.preemptible is not False or not ledger.has_quotas:
        return None
    need = milli_of(workload, minimum=True)
    for q in ledger.chain(queue):
        quota, held = int(ledger.quota_in_all[q]), int(ledger.used[q, -1])
        if need and quota < NO_BOUND and held + need > quota:
            room = max(quota - held, 0)
            number, have, unit = _count(need, room)
            return Cause(
                Reason.QuotaExceeded,
                f"{gpus(need)} would take queue {ledger.names[q]} above its quota ({from_milli(quota)}, "
                f"{from_milli(held)} held), where only work runs that may be asked to leave, and this may not",
                need=number, have=have, unit=unit, where=ledger.names[q],
                unlock=(
                    f"{gpus(need - room)} released in queue {ledger.names[q]}, a higher quota, or preemptible work",
                ),
            )  # fmt: skip
    return None


def _count(need: int, have: int) -> tuple[int, int, str]:
    """Milli as GPUs where both are whole, else as thousandths."""
    if need % 1000 or have % 1000:
        return need, have, "milli-GPUs"
    return need // 1000, have // 1000, "GPUs"
