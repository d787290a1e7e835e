"""Workloads of one shape wait for the same reason, and it is worked out once for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.neighbours import Who

if TYPE_CHECKING:
    from berth.scheduling.round import Round

Mask = NDArray[np.bool_]


def shapes(now: Round) -> list[object]:
    """(W,) the shape of each."""
    if now.draft.neighbours is not None or now.booked.booked:
        return [shape(w, now) for w in range(len(now.waits))]
    waits, width = now.waits, len(now.waits)
    columns = [
        np.array([ask.number for ask in now.asks], np.int64)[waits.kind],
        waits.has_begun,
        waits.wish,
        np.where(now.bounded[now.queue], now.queue, -1),
        _mask(now.unproven, width),
    ]
    if now.holds:
        columns += [waits.priority, _mask(now.holds, width)]
    if now.reserved:
        columns.append(_mask(now.reserved, width))
    in_time = now.in_time if now.reserved else repeat(())
    return list(zip(*(column.tolist() for column in columns), in_time, strict=False))


def shape(w: int, now: Round, limits: bool = True) -> object:
    """That of one; without `limits` the same for all queues."""
    workload = now.workloads[w]
    queue = int(now.queue[w]) if limits and now.is_bounded(w) else -1
    # Pods that look at each other's labels, or are looked at, are alike only where their labels are.
    neighbours = now.draft.neighbours
    labels = None
    if neighbours is not None and any(
        neighbours.concern(Who(workload.namespace, s.labels, s.pod_class)) for s in workload.pod_sets
    ):
        labels = (workload.namespace, tuple(s.labels for s in workload.pod_sets))
    held: object = (workload.priority, w in now.holds) if now.holds else None
    held = (held, now.in_time[w], w in now.reserved) if now.reserved else held
    held = (held, now.booked.blocked(w), workload.time_limit_s > 0) if now.booked.booked else held
    # Whether it is a gang is told by what it asks for.
    asks = (now.number(w), workload.has_begun)
    return (asks, workload.topology, queue, labels, w in now.unproven, held)


def _mask(some: Iterable[int], width: int) -> Mask:
    mask = np.zeros(width, bool)
    mask[list(some)] = True
    return mask
