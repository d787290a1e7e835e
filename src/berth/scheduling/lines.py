"""The lines that form before a cluster: what each queue holds and may hold, and who waits in it, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Health, Node
from berth.model.paying import payers_of
from berth.model.queue import ANY_CLASS
from berth.model.resources import get, is_accelerator
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, Workload
from berth.scheduling.order import ordered
from berth.scheduling.policy import Policy
from berth.scheduling.quota import Ledger, gpu_milli, ledger_of, milli_of
from berth.scheduling.shares import Shares, shares_of, worths
from berth.scheduling.waiting import Register

N = TypeVar("N", int, float)


@dataclass(frozen=True)
class QueueLine:
    """One queue with those below it. Used is GPU milli by GPU class, `*` for all classes together."""

    name: str
    parent: str
    depth: int  # 0 at the top
    weight: int
    is_object: bool  # False: the queue of a namespace, which nobody wrote
    used_milli: Mapping[str, int]
    quota: Mapping[str, int]  # GPUs by class; a class that is not there has none
    limit: Mapping[str, int]
    running: int  # workloads that hold a place; -1 where it is not known
    waiting: int  # workloads
    waiting_milli: int  # GPU milli that they need to start
    due_milli: int = -1  # GPU milli that it is due, at the mean value of the cluster's GPUs; -1 where it is not known
    used_hours: float = 0.0  # decayed value hours of the past


@dataclass(frozen=True)
class InLine:
    """A workload that waits."""

    workload: Workload
    index: int  # of the workload in its snapshot
    queue: str
    position: int  # among those that wait in the same queue; 1 is next
    ahead: int  # workloads of all queues that are decided before it
    is_above_quota: bool


def lines_of(snapshot: Snapshot) -> tuple[tuple[QueueLine, ...], tuple[InLine, ...]]:
    """Queues as a tree, parents before their children and both by name; workloads in the order of decision."""
    ledger = ledger_in(snapshot)
    workloads = snapshot.workloads
    queue = np.fromiter((ledger.queue_of(w.queue, w.namespace) for w in workloads), np.int32, len(workloads))
    milli = np.fromiter((milli_of(w) for w in workloads), np.int64, len(workloads))
    shares = shares_in(snapshot, ledger, queue, milli)
    order, above_quota = ordered(
        Register().read(workloads), milli, milli.astype(np.float64) * shares.mean_worth, queue, ledger, shares
    )  # fmt: skip
    inline = []
    places: dict[int, int] = {}
    for ahead, w in enumerate(order.tolist()):
        q = int(queue[w])
        places[q] = places.get(q, 0) + 1
        inline.append(InLine(workloads[w], w, ledger.names[q], places[q], ahead, bool(above_quota[w])))
    waiting = _with_parents(ledger, places)
    needed = _with_parents(
        ledger, _sums((int(q), milli_of(w, minimum=True)) for q, w in zip(queue, workloads, strict=True))
    )
    running = _with_parents(ledger, _running(snapshot, ledger))
    used_hours = _with_parents(
        ledger, {ledger.index[name]: hours for name, hours in snapshot.usage.items() if name in ledger.index}
    )
    stated = {q.name: q for q in snapshot.queues}
    rows = []
    for q, depth in _tree(ledger):
        name = ledger.names[q]
        own = stated.get(name)
        rows.append(
            QueueLine(
                name=name,
                parent=ledger.names[ledger.parent[q]] if ledger.parent[q] >= 0 else "",
                depth=depth,
                weight=int(ledger.weight[q]),
                is_object=own is not None,
                used_milli=_used(ledger, q),
                quota=dict(own.quota) if own else {},
                limit=dict(own.limit) if own else {},
                running=running.get(q, 0),
                waiting=waiting.get(q, 0),
                waiting_milli=needed.get(q, 0),
                due_milli=round(float(shares.due[q]) / (shares.mean_worth or 1.0)),
                used_hours=used_hours.get(q, 0.0),
            )
        )
    return tuple(rows), tuple(inline)


def ledger_in(snapshot: Snapshot) -> Ledger:
    """Every queue of which there is an object, a workload that waits or a pod with GPUs; with what is held."""
    classes = [c.name for c in snapshot.gpu_classes]
    payers = payers_of(snapshot.queues)
    named = {payers.of(w.queue, w.namespace): None for w in snapshot.workloads}
    held: dict[tuple[str, str, str], int] = {}
    for a in snapshot.allocations:
        if milli := gpu_milli(a.pod_class.requests, a.pod_class.gpu_milli):
            key = (a.queue, a.namespace, a.node)
            held[key] = held.get(key, 0) + milli
            named[payers.of(a.queue, a.namespace)] = None
    ledger = ledger_of(snapshot.queues, classes, list(named))
    column = {n.name: classes.index(n.gpu_class) if n.gpu_class in classes else -1 for n in snapshot.nodes}
    for (name, namespace, node), milli in held.items():
        ledger.take(ledger.queue_of(name, namespace), column.get(node, -1), milli)
    return ledger


def shares_in(snapshot: Snapshot, ledger: Ledger, queue: NDArray[np.int32], milli: NDArray[np.int64]) -> Shares:
    """What a cycle would say that queues are due."""
    worth = worths(snapshot.gpu_classes)
    value_of = {c.name: float(v) for c, v in zip(snapshot.gpu_classes, worth, strict=False)}
    offered = [(offers(node), value_of.get(node.gpu_class, float(worth[-1]))) for node in snapshot.nodes]
    in_all, value = sum(m for m, _ in offered), sum(m * v for m, v in offered)
    mean = value / in_all if in_all else 1.0
    is_ready = np.array([not (w.gates or w.unmet or w.awaited) for w in snapshot.workloads], bool)
    asked = np.bincount(queue, weights=milli * is_ready * mean, minlength=len(ledger.names)).astype(np.float64)
    return shares_of(ledger, asked, value, worth, mean, snapshot.usage, Policy().usage_weight)


def offers(node: Node) -> int:
    """GPU milli that a node has to give out: fit devices, and partitions."""
    fit = sum(device.health < Health.Unfit for device in node.devices) if node.device_resource else 0
    rest = sum(n for name, n in node.allocatable if is_accelerator(name) and name != node.device_resource)
    return (min(fit, get(node.allocatable, node.device_resource)) + rest) * WHOLE


def _used(ledger: Ledger, q: int) -> dict[str, int]:
    by_class = {name: int(ledger.used[q, c]) for c, name in enumerate(ledger.classes) if ledger.used[q, c]}
    return {ANY_CLASS: int(ledger.used[q, -1]), **by_class}


def _running(snapshot: Snapshot, ledger: Ledger) -> dict[int, int]:
    """Workloads that hold a place, by the queue that pays; DaemonSets and what asks for no GPU is nobody's."""
    seen: dict[str, int] = {}
    for a in snapshot.allocations:
        if not a.is_daemon and gpu_milli(a.pod_class.requests, a.pod_class.gpu_milli):
            seen.setdefault(a.workload_identity, ledger.queue_of(a.queue, a.namespace))
    return _sums((q, 1) for q in seen.values())


def _sums(pairs: Iterable[tuple[int, N]]) -> dict[int, N]:
    found: dict[int, N] = {}
    for q, number in pairs:
        found[q] = found[q] + number if q in found else number
    return found


def _with_parents(ledger: Ledger, numbers: Mapping[int, N]) -> dict[int, N]:
    return _sums((above, number) for q, number in numbers.items() for above in ledger.chain(q))


def _tree(ledger: Ledger) -> list[tuple[int, int]]:
    """(queue, depth), parents before their children, both by name."""
    children: dict[int, list[int]] = {}
    for q in sorted(range(len(ledger.names)), key=lambda q: ledger.names[q]):
        children.setdefault(int(ledger.parent[q]), []).append(q)
    found: list[tuple[int, int]] = []
    todo = [(q, 0) for q in reversed(children.get(-1, ()))]
    while todo:
        q, depth = todo.pop()
        found.append((q, depth))
        todo.extend((c, depth + 1) for c in reversed(children.get(q, ())))
    return found
