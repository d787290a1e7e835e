"""What each queue of a trace is owed over time, by the weights and limits of a tree of queues.

What is guaranteed and what was used in the past are the scheduler's (scheduling/shares.py), and policies that know
neither are charted, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from berth.model.jobs import Float
from berth.model.queue import ANY_CLASS, Queue
from berth.scheduling.shares import filled


def most_of(queue: Queue, there: Mapping[str, int]) -> float:
    """GPUs that a queue and those below it may ever have, of so many by class: its limit, and its quota where it may
    not borrow."""
    limit = dict(queue.limit)
    most = float(limit.get(ANY_CLASS, inf))
    if there:
        most = min(most, float(sum(min(gpus, limit.get(name, gpus)) for name, gpus in there.items())))
    return most if queue.borrowing or not queue.quota else min(most, float(sum(gpus for _, gpus in queue.quota)))


def _parents(queues: Sequence[Queue]) -> dict[str, str]:
    """The queue above each, "" at the top. Where queues are above themselves, the circle is cut at its end."""
    names = {queue.name for queue in queues}
    parents = {queue.name: queue.parent if queue.parent in names else "" for queue in queues}
    for name in parents:
        seen, last = {name}, name
        while (up := parents[last]) and up not in seen:
            seen.add(up)
            last = up
        parents[last] = ""
    return parents


def due_over_time(
    names: Sequence[str],
    wanted: Float,
    gpus: float,
    queues: Sequence[Queue] = (),
    there: Mapping[str, int] | None = None,
) -> Float:
    """(Q, B) GPUs owed to the jobs of each queue itself, for (Q, B) that they want. Level by level of the tree capacity
    rises for all by weight until one has what it wants, at most what it may have; a queue's own jobs are beside its
    children, with weight 1. Queues that are in no tree weigh 1. `there` are the GPUs by class, for limits by class."""
    known = {queue.name: queue for queue in queues}
    parents = _parents(queues)
    own = {name: wanted[q] for q, name in enumerate(names)}
    children: dict[str, list[str]] = {}
    for name in dict.fromkeys([*known, *names]):
        children.setdefault(parents.get(name, ""), []).append(name)
    nothing = np.zeros(wanted.shape[1])
    below: dict[str, Float] = {}

    def wants(name: str) -> Float:
        if name not in below:
            of_all = own.get(name, nothing) + sum((wants(child) for child in children.get(name, ())), nothing)
            below[name] = np.minimum(of_all, most_of(known[name], there or {})) if name in known else of_all
        return below[name]

    due: dict[str, Float] = {}

    def give(name: str, room: Float) -> None:
        under = children.get(name, [])
        if not under:
            due[name] = room
            return
        weights = [float(known[child].weight) if child in known else 1.0 for child in under]
        parts = [wants(child) for child in under]
        if name in own:
            weights, parts = [*weights, 1.0], [*parts, own[name]]
        columns = zip(zip(*parts, strict=True), room, strict=True)
        given = np.array([filled(weights, column, most) for column, most in columns]).T
        for child, of in zip(under, given, strict=False):
            give(child, of)
        if name in own:
            due[name] = given[-1]

    give("", np.full(wanted.shape[1], float(gpus)))
    owed: Float = np.array([np.minimum(due.get(name, nothing), own[name]) for name in names]).reshape(wanted.shape)
    return owed
