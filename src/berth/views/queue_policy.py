"""What `berth queue NAME` says of the queue itself: what it may use, what it asks of its workloads, what is kept for
it, and how long who comes has to wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.text import Text

from berth.base.units import counted, duration, from_milli
from berth.model.booking import FOR_EVER, Booking
from berth.model.queue import ANY_CLASS, Queue
from berth.model.queue_rules import NO_RULES, QueueRules, rules_of
from berth.model.sharing import KINDS, WORDS
from berth.scheduling.lines import QueueLine
from berth.views.queues import Waiting, amounts
from berth.views.tables import QUIET_STYLE
from berth.views.told import clock, moment

_RECLAIM = {
    "Never": "takes back nothing that others use of it",
    "LowerPriority": "takes back what it is due from work of lower priority",
    "Any": "takes back what it is due from work of any priority",
}
_WIDTH = 14


@dataclass(frozen=True)
class QueuePolicy:
    """A queue with the rules that hold in it, its own and those of the queues above. `wait_s` is how long half of those
    that wait are expected to wait still; None where nobody knows."""

    queue: Queue
    rules: QueueRules
    line: QueueLine | None
    wait_s: float | None
    reservations: tuple[Booking, ...]


def policy_of(
    name: str,
    queues: Sequence[Queue],
    lines: Sequence[QueueLine],
    waiting: Sequence[Waiting],
    bookings: Sequence[Booking],
    now_s: float,
) -> QueuePolicy:
    """Of a queue that is an object, or only a name on workloads."""
    queue = next((q for q in queues if q.name == name), Queue(name, is_stated=False))
    expected = [max(w.starts_s[1] - now_s, 0.0) for w in waiting if 0.0 < w.starts_s[1] < FOR_EVER]
    return QueuePolicy(
        queue,
        rules_of(queues).get(name, NO_RULES),
        next((line for line in lines if line.name == name), None),
        median(expected) if expected else None,
        tuple(b for b in bookings if b.queue == name and b.window(now_s) is not None),
    )


def show(policy: QueuePolicy, screen: Console, now_s: float) -> None:
    """A line for each part."""
    queue = policy.queue
    above = f", below {queue.parent}" if queue.parent else ""
    stated = "" if queue.is_stated else " (the queue of a namespace: nobody wrote a GPUQueue)"
    screen.print(Text.assemble(("Queue ", "bold"), (queue.name, "bold"), above, (stated, QUIET_STYLE)), soft_wrap=True)
    for label, words in _parts(policy, now_s):
        screen.print(Text.assemble("  ", (label.ljust(_WIDTH), QUIET_STYLE), words), soft_wrap=True)


def _parts(policy: QueuePolicy, now_s: float) -> list[tuple[str, str]]:
    queue, rules, line = policy.queue, policy.rules, policy.line
    parts = [("uses", _uses(queue, line))]
    if line is not None and line.due_milli >= 0:
        past = f"; {line.used_hours:,.1f} GPU-hours of the past count" if line.used_hours >= 0.05 else ""
        parts.append(("due", f"{from_milli(round(line.due_milli, -2))} GPUs now, by weight {queue.weight}{past}"))
    borrows = "uses what others leave idle" if queue.borrowing else "uses its quota and no more"
    lends = "lends what it leaves idle" if queue.lending else "lends nothing of its quota"
    parts.append(("shares", f"{borrows}; {lends}; {_RECLAIM[queue.reclaim]}"))
    parts.append(("wait", _wait(policy)))
    longest = f"{duration(rules.max_time_limit_s)}{_by(rules.max_by, queue)}" if rules.max_time_limit_s else "no bound"
    parts.append(("longest run", longest))
    parts.append(("may leave", _may_leave(rules, queue)))
    classes = "all" if rules.classes is None else ", ".join(rules.classes) or "none"
    parts.append(("GPU classes", f"{classes}{_by(rules.classes_by, queue)}"))
    kinds = [WORDS[kind] for kind in KINDS if rules.sharing is None or kind in rules.sharing]
    ways = f"{', '.join(kinds[:-1])} and {kinds[-1]}" if len(kinds) > 1 else "".join(kinds) or "nothing"
    alone = f"{ways}, as pods ask" if rules.sharing is None else f"{ways} alone{_by(rules.sharing_by, queue)}"
    parts.append(("sharing", f"{alone}; each counts as one GPU"))
    saves = f"required{_by(rules.checkpoint_by, queue)} of what may have to leave" if rules.checkpoint_by else "welcome"
    parts.append(("checkpoints", saves))
    if rules.defaults:
        given = (f"{key} {value}{_by(by, queue)}" for key, (value, by) in rules.defaults)
        parts.append(("defaults", ", ".join(given)))
    if queue.namespaces:
        parts.append(("namespaces", ", ".join(queue.namespaces)))
    for booking in policy.reservations:
        parts.append(("reserved", _reserved(booking, now_s)))
    return parts


def _uses(queue: Queue, line: QueueLine | None) -> str:
    used = "not known" if line is None or (not line.used_milli and line.running < 0) else ""
    if line is not None and not used:
        by_class = {c: milli / 1000 for c, milli in line.used_milli.items()}
        used = amounts(by_class) if by_class else "nothing"
    quota, limit = amounts(dict(queue.quota)), amounts(dict(queue.limit))
    return f"{used}; guaranteed {quota if queue.quota else 'nothing'}, limit {limit if queue.limit else 'none'}"


def _wait(policy: QueuePolicy) -> str:
    line = policy.line
    if line is None or not line.waiting:
        return "nobody waits"
    gpus = f"{counted(line.waiting, 'workload waits', 'workloads wait')} for {from_milli(line.waiting_milli)} GPUs"
    if policy.wait_s is None:
        return gpus
    return f"{gpus}; half of them are expected to start within {duration(policy.wait_s)}"


def _may_leave(rules: QueueRules, queue: Queue) -> str:
    default = next((value for key, value in rules.defaults if key == "preemptible"), None)
    if default is not None:
        says, by = default[0] == "true", default[1]
    elif rules.preemptible is not None:
        says, by = rules.preemptible, rules.preemptible_by
    else:
        return "by priority, where a workload says nothing"
    return f"{'yes' if says else 'no'}{_by(by, queue)}, where a workload says nothing"


def _by(name: str, queue: Queue) -> str:
    """Which queue above says it."""
    return f" (queue {name})" if name and name != queue.name else ""


def _reserved(booking: Booking, now_s: float) -> str:
    window = booking.window(now_s)
    assert window is not None, "those that are over are left out"
    where = f" in {booking.level} {booking.domain}" if booking.level else ""
    of_class = "" if booking.gpu_class == ANY_CLASS else f" of {booking.gpu_class}"
    nodes = f"nodes {', '.join(booking.nodes)}" if booking.nodes else f"all{where}"
    what = f"{counted(booking.gpus, 'GPU')}{of_class}{where}" if booking.gpus else nodes
    until = "" if window.closes_s == FOR_EVER else f" until {clock(window.closes_s, now_s)}"
    begins = "now" if window.opens_s <= now_s else f"from {clock(window.opens_s, now_s)}"
    again = ", and again" if booking.repeat is not None else ""
    return f"{booking.name}: {what}, {begins}{until}{again}"


def record(policy: QueuePolicy, now_s: float) -> dict[str, Any]:
    """The same as JSON; null where nothing is said."""
    queue, rules, line = policy.queue, policy.rules, policy.line
    return {
        "name": queue.name,
        "object": queue.is_stated,
        "weight": queue.weight,
        "dueGpus": line.due_milli / 1000 if line is not None and line.due_milli >= 0 else None,
        "pastGpuHours": round(line.used_hours, 3) if line is not None else None,
        "expectedWaitSeconds": policy.wait_s,
        "borrowing": queue.borrowing,
        "lending": queue.lending,
        "reclaim": queue.reclaim,
        "maxTimeLimitSeconds": rules.max_time_limit_s or None,
        "preemptible": rules.preemptible,
        "allowedClasses": None if rules.classes is None else list(rules.classes),
        "sharing": None if rules.sharing is None else list(rules.sharing),
        "checkpointRequired": bool(rules.checkpoint_by),
        "defaults": {key: value for key, (value, _) in rules.defaults},
        "namespaces": list(queue.namespaces),
        "reservations": [_reservation(one, now_s) for one in policy.reservations],
    }


def _reservation(booking: Booking, now_s: float) -> dict[str, Any]:
    window = booking.window(now_s)
    assert window is not None, "those that are over are left out"
    return {
        "name": booking.name,
        "gpus": booking.gpus or None,
        "gpuClass": None if booking.gpu_class == ANY_CLASS else booking.gpu_class,
        "nodes": list(booking.nodes) or [share.node for share in booking.shares],
        "domain": {"level": booking.level, "name": booking.domain} if booking.level else None,
        "open": window.opens_s <= now_s,
        "from": moment(window.opens_s),
        "until": None if window.closes_s == FOR_EVER else moment(window.closes_s),
    }
