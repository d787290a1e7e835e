"""What a placement costs: how much less a node is worth with the pod on it (headroom.py), in whole quanta.

The node with the least loss is taken, suspect nodes after all others. Among equal losses the one that the pod prefers
most (preferred node affinity), then the one whose device is filled most by a share, then the first. Losses are cut to
quanta because differences below one are noise, and ties that go to the first node keep the others whole.

Shapes: N nodes, R resources, G devices, M class rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.base.staleness import forget_stale
from berth.scheduling import kernels
from berth.scheduling.headroom import LANES, LEVEL
from berth.scheduling.kernels import WHOLE, choose_devices, compiled, inlined

I16 = NDArray[np.int16]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

NO_ROOM = 2**62
LATE = 2**60  # of a node that comes after all others: more than any loss
# A rank is a loss in quanta, then what the preference lacks of the most, then the level of the device.
_LEVEL_BITS, _PREFERENCE_BITS = 7, 15
_LOSS_SHIFT = _LEVEL_BITS + _PREFERENCE_BITS
_MOST_LEVEL, MOST_PREFERENCE = 2**_LEVEL_BITS - 1, 2**_PREFERENCE_BITS - 1
_QUANTUM_BITS = 30
_HALF = 2 ** (_QUANTUM_BITS - 1)


class Classes(NamedTuple):
    """need (M, R), ask (M, 4), copies (M, N), preference (M, N) as in Tables and Draft."""

    need: I64
    ask: I32
    copies: I32
    preference: I16


class Cluster(NamedTuple):
    """free (N, R), left (N, G), island (N, G), pool (N,), alike (N,) as in Draft; group (N,) as in Nodes.

    late (N,) is 0, or LATE where a node comes after all others.
    """

    free: I64
    left: I32
    island: I32
    pool: I32
    alike: I32
    group: I64
    late: I64


@inlined
def rank_on(n, m, classes, cluster, worth, book):  # type: ignore[no-untyped-def]
    """Rank of a pod of class m on node n, NO_ROOM where it does not fit; and the device of a share as a bit mask."""
    for r in range(classes.need.shape[1]):
        if classes.need[m, r] > cluster.free[n, r] and classes.need[m, r] > 0:
            return np.int64(NO_ROOM), np.int64(0)
    k, cpu = cluster.group[n], classes.need[m, 0]
    devices, milli = classes.ask[m, 1], classes.ask[m, 2]
    taste = (np.int64(MOST_PREFERENCE - classes.preference[m, n]) << _LEVEL_BITS) + cluster.late[n]
    before = book.value[n] + _HALF
    if devices == 0 or cluster.pool[n] != classes.ask[m, 0]:
        least = book.by_lane[n, 0] - worth.rate[0] * cpu
        for lane in range(1, LANES):
            least = min(least, book.by_lane[n, lane] - worth.rate[lane] * cpu)
        filled = np.int64(cluster.pool[n] >= 0)  # a pod without devices leaves nodes that have some alone
        if devices > 0:
            filled = min(cluster.free[n, classes.ask[m, 0]], _MOST_LEVEL)
        return ((before - least) >> _QUANTUM_BITS << _LOSS_SHIFT) + taste + filled, np.int64(0)
    whole = book.wholes[n]
    if milli == WHOLE:
        if whole < devices or (
            classes.ask[m, 3] and devices > 1
            and choose_devices(cluster.left[n], cluster.island[n], devices, milli, classes.ask[m, 3]) == 0
        ):  # fmt: skip
            return np.int64(NO_ROOM), np.int64(0)
        after = whole - devices
        least = np.int64(NO_ROOM)
        for lane in range(LANES):
            least = min(
                least,
                book.by_lane[n, lane] - worth.rate[lane] * cpu + worth.whole[k, after, lane]
                - worth.whole[k, whole, lane],
            )  # fmt: skip
        return ((before - least) >> _QUANTUM_BITS << _LOSS_SHIFT) + taste, np.int64(0)
    if devices > 1:
        return _rank_of_shares(n, m, classes, cluster, worth, book, before, taste)
    best, chosen = np.int64(NO_ROOM), np.int64(0)
    for g in range(cluster.left.shape[1]):
        level = cluster.left[n, g]
        if level < milli:
            continue
        seen = False
        for h in range(g):
            if cluster.left[n, h] == level:
                seen = True
        if seen:
            continue
        after, now = (level - milli) // LEVEL, level // LEVEL
        least = np.int64(NO_ROOM)
        if level == WHOLE:
            for lane in range(LANES):
                least = min(
                    least,
                    book.by_lane[n, lane] - worth.rate[lane] * cpu + worth.device[k, after, lane]
                    + worth.whole[k, whole - 1, lane] - worth.whole[k, whole, lane],
                )  # fmt: skip
        else:
            for lane in range(LANES):
                least = min(
                    least,
                    book.by_lane[n, lane] - worth.rate[lane] * cpu + worth.device[k, after, lane]
                    - worth.device[k, now, lane],
                )  # fmt: skip
        rank = ((before - least) >> _QUANTUM_BITS << _LOSS_SHIFT) + taste + now
        if rank < best:
            best, chosen = rank, np.int64(1) << g
    return best, chosen


@compiled
def _rank_of_shares(n, m, classes, cluster, worth, book, before, taste):  # type: ignore[no-untyped-def]
    """The same for shares of several devices, which are chosen beforehand."""
    k, cpu, milli = cluster.group[n], classes.need[m, 0], classes.ask[m, 2]
    left = cluster.left[n]
    mask = choose_devices(left, cluster.island[n], classes.ask[m, 1], milli, classes.ask[m, 3])
    if mask == 0:
        return np.int64(NO_ROOM), np.int64(0)
    opened = 0
    for g in range(left.shape[0]):
        if (mask >> g) & 1 and left[g] == WHOLE:
            opened += 1
    whole = book.wholes[n]
    least = np.int64(NO_ROOM)
    for lane in range(LANES):
        after = book.by_lane[n, lane] - worth.rate[lane] * cpu
        after += worth.whole[k, whole - opened, lane] - worth.whole[k, whole, lane]
        for g in range(left.shape[0]):
            if (mask >> g) & 1:
                after += worth.device[k, (left[g] - milli) // LEVEL, lane]
                if left[g] < WHOLE:
                    after -= worth.device[k, left[g] // LEVEL, lane]
        least = min(least, after)
    return ((before - least) >> _QUANTUM_BITS << _LOSS_SHIFT) + taste, mask


@compiled
def rank_row(m, nodes, classes, cluster, worth, book, ranks):  # type: ignore[no-untyped-def]
    """Ranks of a pod of class m on some nodes, into `ranks` (N,)."""
    for i in range(nodes.shape[0]):
        rank, _ = rank_on(nodes[i], m, classes, cluster, worth, book)
        ranks[nodes[i]] = rank


forget_stale(rank_row, kernels)
