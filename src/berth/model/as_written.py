"""Whether queues and reservations can be used as they are written, among all that there is in the cluster.

What a schema can say of an object by itself has been said before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches

from berth.model.booking import Booking, has_zone
from berth.model.cluster import Node
from berth.model.queue import ANY_CLASS, Queue
from berth.model.resources import is_accelerator
from berth.model.snapshot import Snapshot


def problems(snapshot: Snapshot) -> Iterator[str]:
    """A sentence for each that cannot be, naming it."""
    classes = {c.name for c in snapshot.gpu_classes}
    gpus = _gpus(snapshot)
    for queue in snapshot.queues:
        for _, message in _of_queue(queue, snapshot.queues, classes):
            yield f"GPUQueue {queue.name}: {message}"
        for message in _beyond(queue, snapshot.queues, gpus):
            yield f"GPUQueue {queue.name}: {message}"
    yield from _together(snapshot.queues, gpus)
    for booking in snapshot.bookings:
        for _, message in _of_booking(booking, snapshot):
            yield f"GPUReservation {booking.name}: {message}"
        if booking.window(snapshot.now_s) is None:
            yield f"GPUReservation {booking.name}: its time is over, and it keeps nothing"
        elif 0 < gpus[booking.gpu_class] < booking.gpus:
            said = f"{_some(booking.gpus, booking.gpu_class)} are to be kept, and there are {gpus[booking.gpu_class]:,}"
            yield f"GPUReservation {booking.name}: {said}"


def _beyond(queue: Queue, queues: Sequence[Queue], there: Mapping[str, int]) -> Iterator[str]:
    """Guarantees that nobody can keep: beyond a limit above, beyond all that there is."""
    if not queue.quota:
        return
    above = {q.name: q for q in queues}
    for gpu_class, gpus in queue.quota:
        seen, up = {queue.name}, above.get(queue.parent)
        while up is not None and up.name not in seen:
            limit = dict(up.limit)
            if (most := min(limit.get(gpu_class, gpus), limit.get(ANY_CLASS, gpus))) < gpus:
                guaranteed = f"{_some(gpus, gpu_class)} are guaranteed"
                yield f"{guaranteed}, and queue {up.name} above it has a limit of {most:,}"
            seen.add(up.name)
            up = above.get(up.parent)
        if 0 < there[gpu_class] < gpus:
            yield f"{_some(gpus, gpu_class)} are guaranteed, and there are {there[gpu_class]:,}"


def _together(queues: Sequence[Queue], there: Mapping[str, int]) -> Iterator[str]:
    """Guarantees that nobody can keep all at once, each of which could be kept alone. A queue guarantees as much as
    those below it do together, if that is more."""
    names = {queue.name for queue in queues}
    below: dict[str, list[Queue]] = {}
    for queue in queues:
        below.setdefault(queue.parent if queue.parent in names else "", []).append(queue)

    def of_all(above: str, gpu_class: str) -> int:
        return sum(max(_guaranteed(q, gpu_class), of_all(q.name, gpu_class)) for q in below.get(above, ()))

    for gpu_class in dict.fromkeys((ANY_CLASS, *(c for queue in queues for c, _ in queue.quota))):
        total, most = of_all("", gpu_class), max((_guaranteed(q, gpu_class) for q in queues), default=0)
        if 0 < most <= there[gpu_class] < total:
            said = f"add up to {_some(total, gpu_class)}, and there are {there[gpu_class]:,}"
            yield f"quotas of GPUQueues {said}: where all are wanted, all are cut by the same part"
            return


def _guaranteed(queue: Queue, gpu_class: str) -> int:
    """Of a class; of all (`*`) what it says of them, or of its classes together where that is more."""
    quota = dict(queue.quota)
    of_classes = sum(gpus for name, gpus in queue.quota if name != ANY_CLASS)
    return max(quota.get(ANY_CLASS, 0), of_classes) if gpu_class == ANY_CLASS else quota.get(gpu_class, 0)


def _some(gpus: int, gpu_class: str) -> str:
    return f"{gpus:,} GPUs" + ("" if gpu_class == ANY_CLASS else f" of class {gpu_class}")


def _gpus(snapshot: Snapshot) -> Counter[str]:
    """By class: devices, or the partitions and replicas that are advertised, each of which counts as one."""
    found: Counter[str] = Counter()
    for node in snapshot.nodes:
        gpus = max(len(node.devices), sum(n for name, n in node.allocatable if is_accelerator(name)))
        found[ANY_CLASS] += gpus
        found[node.gpu_class] += gpus
    return found


def queue_problem(queue: Queue, queues: Sequence[Queue], classes: Collection[str]) -> tuple[str, str]:
    """Why a queue cannot be used as it is written: (reason, message); ("", "") where it can."""
    return next(_of_queue(queue, queues, classes), ("", ""))


def booking_problem(booking: Booking, snapshot: Snapshot) -> tuple[str, str]:
    """Why a reservation cannot be kept as it is written: (reason, message); ("", "") where it can."""
    return next(_of_booking(booking, snapshot), ("", ""))


def _of_queue(queue: Queue, queues: Sequence[Queue], classes: Collection[str]) -> Iterator[tuple[str, str]]:
    parents = {q.name: q.parent for q in queues}
    if queue.parent and queue.parent not in parents:
        there_is_none = f"there is no such queue{_close(queue.parent, set(parents) - {queue.name})}"
        yield "ParentNotFound", f"spec.parent is {queue.parent}, and {there_is_none}: it counts as a root"
    elif _has_cycle(queue.name, parents):
        yield "ParentCycle", f"{queue.name} is above itself by way of {queue.parent}: the cycle is cut at its end"
    taken = {namespace: one.name for one in queues for namespace in one.namespaces}
    for namespace in queue.namespaces:
        if taken[namespace] != queue.name:
            yield "NamespaceTaken", f"namespace {namespace} is listed by {taken[namespace]}, too, which has it"
    named = {c for c, _ in (*queue.quota, *queue.limit)} | set(queue.allowed_classes)
    unknown = sorted(named - set(classes) - {ANY_CLASS})
    if unknown and classes:
        close = _close(unknown[0], classes)
        yield "UnknownClass", f"no node has GPUs of class {unknown[0]}{close or f'; there are {_listed(classes)}'}"


def _of_booking(booking: Booking, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    queues = {q.name for q in snapshot.queues}
    if booking.queue and booking.queue not in queues:
        there_is_none = f"there is no GPUQueue {booking.queue}{_close(booking.queue, queues)}"
        yield "QueueNotFound", f"{there_is_none}: nobody may enter"
    if booking.repeat is not None and not has_zone(booking.repeat.zone):
        yield "UnknownTimeZone", f"there is no time zone {booking.repeat.zone}: UTC is taken"
    known = {node.name for node in snapshot.nodes}
    if unknown := [name for name in booking.nodes if name not in known]:
        yield "NodeNotFound", f"there is no node {unknown[0]}{_close(unknown[0], known)}"
    if booking.level:
        levels = snapshot.topology.levels
        level = next((one for one in levels if booking.level in (one.name, one.label)), None)
        if level is None:
            close = _close(booking.level, {one.name for one in levels})
            yield "LevelNotFound", f"there is no level {booking.level} in the topology{close}"
        elif not any(_is_in(node, booking, level.label) for node in snapshot.nodes):
            close = _close(booking.domain, {node.labels.get(level.label, "") for node in snapshot.nodes})
            yield "DomainNotFound", f"no node is in {booking.level} {booking.domain}{close}"
    classes = {c.name for c in snapshot.gpu_classes}
    if booking.gpu_class != ANY_CLASS and booking.gpu_class not in classes:
        close = _close(booking.gpu_class, classes)
        yield "UnknownClass", f"no node has GPUs of class {booking.gpu_class}{close}"


def _is_in(node: Node, booking: Booking, label: str) -> bool:
    """By the label's value; of a whole name (`zone-a/r1`) the last part is one."""
    value = node.labels.get(label)
    return value is not None and value in (booking.domain, booking.domain.rpartition("/")[2])


def _has_cycle(name: str, parents: Mapping[str, str]) -> bool:
    seen, up = {name}, parents.get(name, "")
    while up in parents and up not in seen:
        seen.add(up)
        up = parents[up]
    return up == name


def _close(name: str, known: Collection[str]) -> str:
    lower = {one.lower(): one for one in sorted(known)}
    close = get_close_matches(name.lower(), lower, 1, 0.6)
    return f" (close to it: {lower[close[0]]})" if close else ""


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
