"""What each queue of a trace is owed over time, by the weights of a tree of queues.

Weights alone: what is guaranteed and what was used in the past are the scheduler's (scheduling/shares.py), and policies
that know neither are charted, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from berth.model.jobs import Float
from berth.model.queue import Queue
from berth.scheduling.shares import filled


def due_over_time(names: Sequence[str], wanted: Float, gpus: float, queues: Sequence[Queue] = ()) -> Float:
    """(Q, B) GPUs owed to the jobs of each queue itself, for (Q, B) that they want. Level by level of the tree capacity
    rises for all by weight until one has what it wants; a queue's own jobs are beside its children, with weight 1.
    Queues that are in no tree weigh 1."""
    known = {queue.name: queue for queue in queues}
    own = {name: wanted[q] for q, name in enumerate(names)}
    children: dict[str, list[str]] = {}
    for name in dict.fromkeys([*known, *names]):
        parent = known[name].parent if name in known else ""
        children.setdefault(parent if parent in known else "", []).append(name)
    nothing = np.zeros(wanted.shape[1])
    below: dict[str, Float] = {}

    def wants(name: str) -> Float:
        if name not in below:
            below[name] = own.get(name, nothing) + sum((wants(child) for child in children.get(name, ())), nothing)
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
