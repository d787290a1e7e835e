"""The lines that form before a cluster: what each queue holds and may hold, and who waits in it, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from berth.model.paying import payers_of
from berth.model.queue import ANY_CLASS
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload
from berth.scheduling.order import ordered
from berth.scheduling.quota import Ledger, gpu_milli, ledger_of, milli_of


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
    ledger = _ledger(snapshot)
    workloads = snapshot.workloads
    queue = np.fromiter((ledger.queue_of(w.queue, w.namespace) for w in workloads), np.int32, len(workloads))
    milli = np.fromiter((milli_of(w) for w in workloads), np.int64, len(workloads))
    order, above_quota = ordered(workloads, milli, queue, ledger)
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
            )
        )
    return tuple(rows), tuple(inline)


def _ledger(snapshot: Snapshot) -> Ledger:
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


def _sums(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for q, number in pairs:
        found[q] = found.get(q, 0) + number
    return found


def _with_parents(ledger: Ledger, numbers: Mapping[int, int]) -> dict[int, int]:
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
