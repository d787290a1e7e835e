"""Room for a queue that is played forward: free units by node, who takes them, and one place in time.

Among nodes that would do, the one with the fewest free units is taken, of those the one that became so last. Shapes are
those of starts_columns.py; a heap is ordered by time, then by workload.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.kernels import compiled
from berth.scheduling.starts_columns import F64, I64, Asked, Rules


class Room(NamedTuple):
    """free, kept, before, after (N,), head, number (P, L + 1): nodes in lists by pool and visible units (free - kept).
    idle (1,): all free units."""

    free: I64
    kept: I64
    before: I64
    after: I64
    head: I64
    number: I64
    pool: I64
    idle: I64


class Place(NamedTuple):
    """A place in time: what is taken and released until then by node (N,), and which nodes (their number first)."""

    taken: I64
    released: I64
    nodes: I64
    at_s: F64


class Pods(NamedTuple):
    """Pods that run as lists: first (J,) of each workload, next, node, units (E,); used: how many there are."""

    first: I64
    next: I64
    node: I64
    units: I64
    used: I64


class Heap(NamedTuple):
    """By time, then by workload; size[0] of them."""

    at: F64
    who: I64
    size: I64


@compiled
def push(heap: Heap, at: float, who: int) -> None:
    i = heap.size[0]
    heap.size[0] += 1
    while i > 0:
        up = (i - 1) // 2
        if heap.at[up] < at or (heap.at[up] == at and heap.who[up] < who):
            break
        heap.at[i], heap.who[i] = heap.at[up], heap.who[up]
        i = up
    heap.at[i], heap.who[i] = at, who


@compiled
def pop(heap: Heap) -> None:
    heap.size[0] -= 1
    count = heap.size[0]
    at, who = heap.at[count], heap.who[count]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= count:
            break
        if down + 1 < count and (
            heap.at[down + 1] < heap.at[down]
            or (heap.at[down + 1] == heap.at[down] and heap.who[down + 1] < heap.who[down])
        ):
            down += 1
        if at < heap.at[down] or (at == heap.at[down] and who < heap.who[down]):
            break
        heap.at[i], heap.who[i] = heap.at[down], heap.who[down]
        i = down
    heap.at[i], heap.who[i] = at, who


@compiled
def _unlink(room: Room, n: int) -> None:
    p, level = room.pool[n], room.free[n] - room.kept[n]
    if room.before[n] >= 0:
        room.after[room.before[n]] = room.after[n]
    else:
        room.head[p, level] = room.after[n]
    if room.after[n] >= 0:
        room.before[room.after[n]] = room.before[n]
    room.number[p, level] -= 1


@compiled
def link(room: Room, n: int) -> None:
    p, level = room.pool[n], room.free[n] - room.kept[n]
    room.before[n], room.after[n] = -1, room.head[p, level]
    if room.head[p, level] >= 0:
        room.before[room.head[p, level]] = n
    room.head[p, level] = n
    room.number[p, level] += 1


@compiled
def set_node(room: Room, n: int, free: int, kept: int) -> None:
    """A node has so much free, and so much of it is kept."""
    room.idle[0] += free - room.free[n]
    if free - kept == room.free[n] - room.kept[n]:
        room.free[n], room.kept[n] = free, kept
        return
    _unlink(room, n)
    room.free[n], room.kept[n] = free, kept
    link(room, n)


@compiled
def _tightest(room: Room, pools: int, units: int) -> int:
    for level in range(units, room.head.shape[1]):
        for p in range(room.head.shape[0]):
            if pools >> p & 1 and room.head[p, level] >= 0:
                return int(room.head[p, level])
    return -1


@compiled
def put(room: Room, pods: Pods, asked: Asked, j: int, r: int) -> bool:
    """All pods of a workload, or none."""
    mark = pods.used[0]
    placed = True
    for part in range(2):
        count = asked.pods_a[r] if part == 0 else asked.pods_b[r]
        units = asked.units_a[r] if part == 0 else asked.units_b[r]
        for _ in range(count):
            n = _tightest(room, asked.pools[r], units)
            if n < 0:
                placed = False
                break
            e = pods.used[0]
            pods.node[e], pods.units[e], pods.next[e] = n, units, pods.first[j]
            pods.first[j] = e
            pods.used[0] += 1
            set_node(room, n, room.free[n] - units, room.kept[n])
        if not placed:
            break
    if not placed:
        while pods.used[0] > mark:
            pods.used[0] -= 1
            e = pods.used[0]
            set_node(room, pods.node[e], room.free[pods.node[e]] + pods.units[e], room.kept[pods.node[e]])
        pods.first[j] = -1
    return placed


@compiled
def _keep(room: Room, place: Place) -> None:
    for i in range(1, place.nodes[0] + 1):
        n = place.nodes[i]
        kept = min(max(place.taken[n] - place.released[n], 0), room.free[n])
        set_node(room, n, room.free[n], kept)


@compiled
def give_back(room: Room, place: Place) -> None:
    for i in range(1, place.nodes[0] + 1):
        set_node(room, place.nodes[i], room.free[place.nodes[i]], 0)


@compiled
def forget(place: Place) -> None:
    for i in range(1, place.nodes[0] + 1):
        place.taken[place.nodes[i]] = 0
        place.released[place.nodes[i]] = 0
    place.nodes[0] = 0


@compiled
def put_before(room: Room, place: Place, pods: Pods, asked: Asked, j: int, r: int) -> bool:
    """Put it where room is kept, too: it has to have ended by then."""
    give_back(room, place)
    placed: bool = put(room, pods, asked, j, r)
    if placed:
        e = pods.first[j]
        while e >= 0:
            if place.taken[pods.node[e]] > 0:
                place.released[pods.node[e]] += pods.units[e]
            e = pods.next[e]
    _keep(room, place)
    return placed


@compiled
def _settle(room: Room, place: Place, touched: I64, lift: I64, asked: Asked, r: int) -> bool:
    """Lay a workload out on what will be free: nodes that somebody leaves first, then those with the fewest free."""
    done = True
    for part in range(2):
        left = asked.pods_a[r] if part == 0 else asked.pods_b[r]
        units = asked.units_a[r] if part == 0 else asked.units_b[r]
        if left == 0:
            continue
        for i in range(1, touched[0] + 1):
            n = touched[i]
            while left > 0 and room.free[n] + lift[n] - place.taken[n] >= units:
                _take(place, n, units)
                left -= 1
        for level in range(units, room.head.shape[1]):
            for p in range(room.head.shape[0]):
                n = room.head[p, level] if asked.pools[r] >> p & 1 else -1
                while n >= 0 and left > 0:
                    while left > 0 and lift[n] == 0 and room.free[n] - place.taken[n] >= units:
                        _take(place, n, units)
                        left -= 1
                    n = room.after[n]
        done = done and left == 0
    if not done:
        forget(place)
        return False
    for i in range(1, place.nodes[0] + 1):
        place.released[place.nodes[i]] = lift[place.nodes[i]]
    return True


@compiled
def _take(place: Place, n: int, units: int) -> None:
    if place.taken[n] == 0:
        place.nodes[0] += 1
        place.nodes[place.nodes[0]] = n
    place.taken[n] += units


@compiled
def widest_of(room: Room) -> int:
    """The most visible units of any node."""
    for level in range(room.head.shape[1] - 1, 0, -1):
        for p in range(room.head.shape[0]):
            if room.head[p, level] >= 0:
                return level
    return 0


@compiled
def _fitting(room: Room, pools: int, units: int) -> int:
    found = 0
    for p in range(room.head.shape[0]):
        if pools >> p & 1:
            for level in range(units, room.head.shape[1]):
                found += room.number[p, level] * (level // units)
    return found


@compiled
def reserve(
    room: Room, place: Place, pods: Pods, ends: Heap, popped: Heap, gone: NDArray[np.bool_], lift: I64,
    touched: I64, asked: Asked, r: int, now: float, rules: Rules, began: F64, due: F64,
) -> bool:  # fmt: skip
    """The earliest moment at which there is room, if those who have limits keep them."""
    pools, a, b = asked.pools[r], asked.units_a[r], asked.units_b[r]
    of_a, of_b = _fitting(room, pools, a), _fitting(room, pools, b) if asked.pods_b[r] > 0 else 0
    beside = asked.pods_b[r] + asked.pods_a[r] * (a // b) if asked.pods_b[r] > 0 else 0
    found = False
    popped.size[0], touched[0] = 0, 0
    while ends.size[0] > 0 and popped.size[0] < rules.pops:
        at, who = ends.at[0], ends.who[0]
        pop(ends)
        if gone[who]:
            continue
        if at <= now:  # past its limit: it is taken to end soon
            due[who] = now + max(rules.overrun_s, (now - began[who]) / 10)
            push(ends, due[who], who)
            continue
        popped.at[popped.size[0]], popped.who[popped.size[0]] = due[who], who
        popped.size[0] += 1
        e = pods.first[who]
        while e >= 0:
            n, units = pods.node[e], pods.units[e]
            if pools >> room.pool[n] & 1:
                if lift[n] == 0:
                    touched[0] += 1
                    touched[touched[0]] = n
                was = room.free[n] + lift[n]
                of_a += (was + units) // a - was // a
                if asked.pods_b[r] > 0:
                    of_b += (was + units) // b - was // b
                lift[n] += units
            e = pods.next[e]
        if ends.size[0] > 0 and ends.at[0] <= at:
            continue
        if of_a >= asked.pods_a[r] and of_b >= beside and _settle(room, place, touched, lift, asked, r):
            place.at_s[0] = at
            found = True
            break
    for i in range(popped.size[0]):
        push(ends, popped.at[i], popped.who[i])
    for i in range(1, touched[0] + 1):
        lift[touched[i]] = 0
    if found:
        _keep(room, place)
    return found
