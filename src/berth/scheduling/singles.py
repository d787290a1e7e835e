"""A run of single pods, one after the other: the hottest loop of the core.

Shapes: N nodes, M class rows, J kinds of demand, W pods of the run, Q queues, C GPU classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.base.staleness import forget_stale
from berth.scheduling import headroom, kernels, portable, prices, scoring
from berth.scheduling.headroom import Book, Nodes, appraise
from berth.scheduling.kernels import choose_devices, compiled, take
from berth.scheduling.prices import FAST, set_worth, settle, warm_up
from berth.scheduling.scoring import NO_ROOM, rank_on

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

WARM_REFRESHES = 5  # how often prices that are learned from arrivals start again
SETTLING = 10.0  # how much larger their first steps are


class Queues(NamedTuple):
    """of (W,) who pays; limited; parent (Q,), limit and used (Q, C + 1) milli as in quota.Ledger.

    gpu_class (N,) of each node, the last where it is not known; milli (M,) of one pod of each class.
    """

    of: I32
    limited: bool
    parent: I32
    limit: I64
    used: I64
    gpu_class: I32
    milli: I64


class Learning(NamedTuple):
    """kind (M,) whose count grows with an arrival of a class, -1 for none; counts (J,); arrived (1,) pods so far."""

    on: bool
    kind: I64
    counts: F64
    arrived: I64


class Following(NamedTuple):
    """now, smooth (J + 1,); steps at each refresh, warm_steps, refresh in arrivals; shapes of the empty cluster."""

    now: F64
    smooth: F64
    steps: int
    warm_steps: int
    refresh: int
    shapes: Nodes
    shape_book: Book


@compiled
def refresh(mix, knobs, following, learning, nodes, worth, book, scratch):  # type: ignore[no-untyped-def]
    """Bring the prices up to what is free now, and to what has arrived where that is learned."""
    steps, eta = following.steps, knobs.eta
    if learning.on:
        # What is known of the demand is little at first, and so are the prices: larger steps, and more of them.
        steps *= 2
        eta *= min(FAST, 1.0 + SETTLING / (1.0 + learning.arrived[0] // following.refresh))
        total = 0.0
        for j in range(learning.counts.shape[0]):
            total += learning.counts[j]
        for j in range(learning.counts.shape[0]):
            mix.share[j] = learning.counts[j] / total if total > 0.0 else 0.0
        if learning.arrived[0] < WARM_REFRESHES * following.refresh:
            warm_up(following.warm_steps, following.now, following.smooth, mix, knobs, following.shapes, worth,
                    following.shape_book, scratch)  # fmt: skip
    settle(steps, eta, following.now, following.smooth, mix, knobs, nodes, worth, book, scratch)
    set_worth(following.smooth, mix, knobs, nodes, worth, book, scratch)


@compiled
def place_run(  # type: ignore[no-untyped-def]
    run, classes, cluster, queues, mix, knobs, following, learning, worth, book, scratch, stops, node, devices
):
    """Place a run of single pods one after the other, each on the node where it costs least. How many were looked at:
    all, or with `stops` those before the first that found no room.

    run (W,) class rows in order. Writes node (W,): its index, -1 no node, -2 over a limit; devices (W,) bit masks.
    What is used up in a run stays used up, so a node that has no room for a class is not asked again. Nodes that
    are alike share their ranks until one is touched.
    """
    size = cluster.free.shape[0]
    nodes = Nodes(cluster.group, np.ones(size, np.int64), cluster.free, cluster.left)
    slot = np.full(classes.need.shape[0], -1, np.int32)  # class rows of this run, numbered as they come
    slots, groups = 0, 0
    for w in range(run.shape[0]):
        if slot[run[w]] < 0:
            slot[run[w]] = slots
            slots += 1
    for n in range(size):
        groups = max(groups, cluster.alike[n] + 1)
    ranks = np.empty((slots, size), np.int64)
    candidates = np.empty((slots, size), np.int32)
    count = np.full(slots, -1, np.int32)
    epoch_of = np.full(slots, -1, np.int64)  # refreshes before the ranks were worked out
    seen_until = np.zeros(slots, np.int64)  # entries of `changed` that the ranks know of
    changed = np.empty(run.shape[0], np.int32)  # the nodes that were touched, in order
    changes, epoch, serial = 0, np.int64(0), np.int64(0)
    touched = np.zeros(size, np.bool_)
    shared_at = np.zeros(groups, np.int64)
    shared = np.empty(groups, np.int64)
    open_ = np.ones(queues.limit.shape[1], np.bool_)
    for w in range(run.shape[0]):
        m = run[w]
        s = slot[m]
        if learning.kind[m] >= 0:
            learning.counts[learning.kind[m]] += 1.0
        if learning.arrived[0] % following.refresh == 0 and (learning.on or learning.arrived[0] > 0):
            refresh(mix, knobs, following, learning, nodes, worth, book, scratch)
            epoch += 1
        learning.arrived[0] += 1
        node[w] = -1
        if count[s] < 0:
            count[s] = 0
            for n in range(size):
                ranks[s, n] = NO_ROOM
                if classes.copies[m, n] > 0:
                    candidates[s, count[s]] = n
                    count[s] += 1
        if count[s] == 0:
            if stops:
                return w
            continue
        row = ranks[s]
        if epoch_of[s] != epoch:
            serial += 1
            kept = 0
            for i in range(count[s]):
                n = candidates[s, i]
                if touched[n]:
                    rank, _ = rank_on(n, m, classes, cluster, worth, book)
                else:
                    k = cluster.alike[n]
                    if shared_at[k] != serial:
                        shared_at[k] = serial
                        shared[k], _ = rank_on(n, m, classes, cluster, worth, book)
                    rank = shared[k]
                row[n] = rank
                if rank < NO_ROOM:
                    candidates[s, kept] = n
                    kept += 1
            count[s] = kept
            epoch_of[s] = epoch
        else:
            for i in range(seen_until[s], changes):
                n = changed[i]
                if row[n] < NO_ROOM:
                    row[n], _ = rank_on(n, m, classes, cluster, worth, book)
        seen_until[s] = changes
        least = np.int64(NO_ROOM)
        for n in range(size):
            least = min(least, row[n])
        if least == NO_ROOM:
            count[s] = 0
            if stops:
                return w
            continue
        if queues.limited and queues.milli[m] > 0:
            if not _open_classes(queues.of[w], queues.milli[m], queues.parent, queues.limit, queues.used, open_):
                node[w] = -2
                continue
            least = np.int64(NO_ROOM)
            for n in range(size):
                if row[n] < least and open_[queues.gpu_class[n]]:
                    least = row[n]
            if least == NO_ROOM:
                if stops:
                    return w
                continue
        best = 0
        while row[best] != least or (queues.limited and queues.milli[m] > 0 and not open_[queues.gpu_class[best]]):
            best += 1
        _, chosen = rank_on(best, m, classes, cluster, worth, book)
        if chosen == 0 and classes.ask[m, 1] > 0 and cluster.pool[best] == classes.ask[m, 0]:
            chosen = choose_devices(cluster.left[best], cluster.island[best], classes.ask[m, 1], classes.ask[m, 2],
                                    classes.ask[m, 3])  # fmt: skip
        node[w], devices[w] = best, chosen
        take(1, chosen, classes.need[m], classes.ask[m], cluster.free[best], cluster.left[best], cluster.pool[best])
        appraise(best, cluster.free[best, 0], cluster.left[best], cluster.group[best], worth, book)
        touched[best] = True
        changed[changes] = best
        changes += 1
        if queues.limited and queues.milli[m] > 0:
            q = queues.of[w]
            while q >= 0:
                queues.used[q, queues.gpu_class[best]] += queues.milli[m]
                if queues.gpu_class[best] != queues.used.shape[1] - 1:
                    queues.used[q, queues.used.shape[1] - 1] += queues.milli[m]
                q = queues.parent[q]
    return run.shape[0]


@compiled
def _open_classes(q, milli, parent, limit, used, open_):  # type: ignore[no-untyped-def]
    """Which GPU classes the queue may still take `milli` of, into `open_` (C + 1,); False where none."""
    open_[:] = True
    last = open_.shape[0] - 1
    while q >= 0:
        for c in range(open_.shape[0]):
            if used[q, c] + milli > limit[q, c]:
                open_[c] = False
        q = parent[q]
    if not open_[last]:
        open_[:] = False
        return False
    return open_.any()


for _kernel in (refresh, place_run):
    forget_stale(_kernel, headroom, kernels, portable, prices, scoring)
