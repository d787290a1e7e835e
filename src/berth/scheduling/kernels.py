"""The compiled hot loops: arrays in, arrays out, no policy in them. berth.scheduling.plain says the same slowly.

Shapes: N nodes, R resources, G devices of the largest node, M pod classes. See columns.py and tables.py for
what each array holds. Where Numba is absent the same functions run as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.model.reasons import Block

try:
    from numba import njit as _njit

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        """Compiled once, cached on disk, without the interpreter's lock."""
        try:
            decorated: Callable[..., Any] = _njit(cache=True, nogil=True)(function)
        except RuntimeError:  # nowhere to keep it
            decorated = _njit(nogil=True)(function)
        return decorated

    def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
        """Compiled into its callers: handing over many arrays would cost more than the work."""
        decorated: Callable[..., Any] = _njit(inline="always", nogil=True)(function)
        return decorated

except ImportError:  # the same functions, slower

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        """The definition itself."""
        return function

    inlined = compiled


I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]

NEVER = -2
WHOLE = 1000
MOST = 2**30  # copies of a class that asks for nothing

_GPUS, _SHARE, _CPU = int(Block.Gpus), int(Block.GpuShare), int(Block.Cpu)
_MEMORY, _PODS, _RESOURCE = int(Block.Memory), int(Block.Pods), int(Block.Resource)


@inlined
def copies_on(need, ask, free, left, islands, pool):  # type: ignore[no-untyped-def]
    """How many pods of a class one node still takes, and the first block where it takes none.

    need (R,) int64: amounts of one pod; a share of a device is not in it
    ask  (4,) int32: the device resource, devices, milli of each, 1 where they must share an island
    free (R,), left (G,), islands (G,), pool: the node's
    """
    most = MOST
    if ask[1] > 0 and pool == ask[0]:
        most, block = _copies_of_devices(left, islands, ask[1], ask[2], ask[3])
        if most == 0:
            return 0, block
    for r in range(need.shape[0]):
        if need[r] > 0:
            copies = free[r] // need[r]
            if copies < most:
                most = copies
                if most <= 0:
                    if r == ask[0]:
                        return 0, _GPUS
                    if r == 0:
                        return 0, _CPU
                    if r == 1:
                        return 0, _MEMORY
                    if r == 2:
                        return 0, _PODS
                    return 0, _RESOURCE
    return most, 0


@compiled
def _copies_in_island(left, islands, island, devices, milli):  # type: ignore[no-untyped-def]
    """Copies that the devices of one island take: t of them use each device at most t times."""
    total = 0
    for g in range(left.shape[0]):
        if islands[g] == island and left[g] >= milli:
            total += left[g] // milli
    copies = total // devices
    while copies > 0:
        usable = 0
        for g in range(left.shape[0]):
            if islands[g] == island and left[g] >= milli:
                usable += min(left[g] // milli, copies)
        if usable >= copies * devices:
            return copies
        copies -= 1
    return 0


@compiled
def _copies_of_devices(left, islands, devices, milli, one_island):  # type: ignore[no-untyped-def]
    """Copies that the devices of a node take, each on `devices` different ones; and the block."""
    if one_island and devices > 1:
        copies = 0
        for first in range(left.shape[0]):
            # Each island is counted at its first device.
            is_first = left[first] >= 0 and islands[first] >= 0
            for g in range(first):
                if left[g] >= 0 and islands[g] == islands[first]:
                    is_first = False
            if is_first:
                copies += _copies_in_island(left, islands, islands[first], devices, milli)
        return copies, _GPUS
    total, able = 0, 0
    for g in range(left.shape[0]):
        if left[g] >= milli:
            able += 1
            total += left[g] // milli
    if devices == 1:
        if total == 0:
            idle = 0
            for g in range(left.shape[0]):
                if left[g] > 0:
                    idle += left[g]
            return 0, _SHARE if milli < WHOLE and idle >= milli else _GPUS
        return total, 0
    if able < devices:
        return 0, _GPUS
    if milli == WHOLE:
        return able // devices, 0
    copies = total // devices
    while copies > 1:
        # t copies use each device at most t times.
        usable = 0
        for g in range(left.shape[0]):
            if left[g] >= milli:
                usable += min(left[g] // milli, copies)
        if usable >= copies * devices:
            return copies, 0
        copies -= 1
    return 1, 0


@compiled
def refresh_nodes(nodes, rows, need, ask, static, free, device_free, island, pool, copies, block):  # type: ignore[no-untyped-def]
    """Count again what fits on `nodes`, for the classes in `rows`. Writes copies (M, N) and block (M, N)."""
    for i in range(nodes.shape[0]):
        n = nodes[i]
        for j in range(rows.shape[0]):
            m = rows[j]
            if static[m, n] != 0:
                copies[m, n] = 0
                block[m, n] = static[m, n]
            else:
                count, why = copies_on(need[m], ask[m], free[n], device_free[n], island[n], pool[n])
                copies[m, n] = count
                block[m, n] = why


@compiled
def choose_devices(left, islands, devices, milli, one_island):  # type: ignore[no-untyped-def]
    """Bit mask of the devices for one pod: the fullest that fit; whole ones from the island that they spoil least.

    0 where they do not fit. Lowest index first where all else is equal.
    """
    size = left.shape[0]
    if devices == 1:
        best = -1
        for g in range(size):
            if left[g] >= milli and (best < 0 or left[g] < left[best]):
                best = g
        return np.int64(0) if best < 0 else np.int64(1) << best
    # The island with the fewest devices that still has enough; -2 while any device will do.
    chosen, fewest = -2, size + 1
    for first in range(size):
        if left[first] >= milli and islands[first] >= 0:
            here = 0
            for g in range(size):
                if left[g] >= milli and islands[g] == islands[first]:
                    here += 1
            if devices <= here < fewest:
                chosen, fewest = islands[first], here
    if one_island and chosen == -2:
        return np.int64(0)
    if milli < WHOLE:
        # Shares on several devices: the emptiest, so that as many devices as can be stay open to the next pod.
        mask, picked = np.int64(0), 0
        while picked < devices:
            best = -1
            for g in range(size):
                if left[g] < milli or (mask >> g) & 1 or (one_island and islands[g] != chosen):
                    continue
                if best < 0 or left[g] > left[best]:
                    best = g
            if best < 0:
                return np.int64(0)
            mask |= np.int64(1) << best
            picked += 1
        return mask
    mask, picked = np.int64(0), 0
    for g in range(size):
        if picked < devices and left[g] >= milli and (chosen == -2 or islands[g] == chosen):
            mask |= np.int64(1) << g
            picked += 1
    return mask if picked == devices else np.int64(0)


@compiled
def take(sign, mask, need, ask, free, left, pool):  # type: ignore[no-untyped-def]
    """Put one pod of a class on a node (sign 1) or take it away again (sign -1), on the devices of `mask`."""
    for r in range(need.shape[0]):
        free[r] -= sign * need[r]
    if ask[1] > 0 and pool == ask[0]:
        whole = 0
        for g in range(left.shape[0]):
            if (mask >> g) & 1:
                left[g] -= sign * ask[2]
            if left[g] == WHOLE:
                whole += 1
        free[pool] = whole


@compiled
def put_copies(m, n, masks, need, ask, free, device_free, island, pool):  # type: ignore[no-untyped-def]
    """Put len(masks) pods of class m on node n, one after the other, and write which devices each got."""
    on_devices = ask[m, 1] > 0 and pool[n] == ask[m, 0]
    for i in range(masks.shape[0]):
        mask = np.int64(0)
        if on_devices:
            mask = choose_devices(device_free[n], island[n], ask[m, 1], ask[m, 2], ask[m, 3])
        masks[i] = mask
        take(1, mask, need[m], ask[m], free[n], device_free[n], pool[n])


@compiled
def put_what_fits(count, need, ask, free, left, islands, pool):  # type: ignore[no-untyped-def]
    """Put at most `count` pods on a node, (R,) free and (G,) left, as many as there is room for; how many."""
    copies, _ = copies_on(need, ask, free, left, islands, pool)
    placed = 0
    while placed < count and placed < copies:
        mask = np.int64(0)
        if ask[1] > 0 and pool == ask[0]:
            mask = choose_devices(left, islands, ask[1], ask[2], ask[3])
        take(1, mask, need, ask, free, left, pool)
        placed += 1
    return placed


@compiled
def release(pods, node, kind, mask, need, ask, free, device_free, pool):  # type: ignore[no-untyped-def]
    """Pods leave their nodes: what each holds for itself is given back."""
    for p in pods:
        n, k = node[p], kind[p]
        take(-1, mask[p], need[k], ask[k], free[n], device_free[n], pool[n])


@compiled
def first_with_copies(wanted, milli, free, node, freed, time):  # type: ignore[no-untyped-def]
    """The first time, of those at which (E,) `freed` milli come back to nodes, in their order, at which the nodes' free
    milli (N,), which it changes, hold `wanted` pods of so many milli: -1 for before all, NEVER for at none."""
    there = 0
    for n in range(free.shape[0]):
        there += free[n] // milli
    if there >= wanted:
        return -1
    for e in range(node.shape[0]):
        n = node[e]
        there -= free[n] // milli
        free[n] += freed[e]
        there += free[n] // milli
        if there >= wanted and (e + 1 == node.shape[0] or time[e + 1] > time[e]):
            return e
    return NEVER


@compiled
def fill_node(run, stops, n, need, ask, static, free, device_free, island, pool, node, devices):  # type: ignore[no-untyped-def]
    """Put single pods of whole devices on node n as long as there is room; who finds none is left. With `stops` it ends
    before the first of these. How many were looked at."""
    for w in range(run.shape[0]):
        m, copies = run[w], 0
        if static[m, n] == 0:
            copies, _ = copies_on(need[m], ask[m], free[n], device_free[n], island[n], pool[n])
        node[w] = -1
        if copies > 0:
            mask = np.int64(0)
            if ask[m, 1] > 0 and pool[n] == ask[m, 0]:
                mask = choose_devices(device_free[n], island[n], ask[m, 1], ask[m, 2], ask[m, 3])
            take(1, mask, need[m], ask[m], free[n], device_free[n], pool[n])
            node[w], devices[w] = n, mask
        elif stops:
            return w
    return run.shape[0]


@compiled
def numbered_as_met(codes, known):  # type: ignore[no-untyped-def]
    """Codes below `known`, numbered anew in the order in which they are met, (W,), and those that are, (K,)."""
    number, found, met = np.full(known, -1, np.int64), np.empty(codes.shape[0], np.int64), np.empty(known, np.int64)
    count = 0
    for w in range(codes.shape[0]):
        code = codes[w]
        if number[code] < 0:
            number[code] = count
            met[count] = code
            count += 1
        found[w] = number[code]
    return found, met[:count]


@compiled
def first_unknown(known, row, passage, run, at):  # type: ignore[no-untyped-def]
    """Where in a run, from `at` on, somebody is of whose class row and passage (W,) nothing is `known` (K, M); its end
    where nobody is."""
    while at < run.shape[0] and known[passage[run[at]], row[run[at]]]:
        at += 1
    return at


@compiled
def virtual_times(amount, first, beyond, weight):  # type: ignore[no-untyped-def]
    """(W,) for the members of lines that stand one after the other, each from its `first` on: what a line holds beyond
    its guarantee once it had the `amount` of all up to this member, by its weight; infinite for a line of weight 0."""
    found = np.empty(amount.shape[0])
    for i in range(first.shape[0]):
        end = first[i + 1] if i + 1 < first.shape[0] else amount.shape[0]
        so_far = 0.0
        for w in range(first[i], end):
            so_far += amount[w]
            found[w] = max(beyond[i] + so_far, 0.0) / weight[i] if weight[i] > 0 else np.inf
    return found


@compiled
def filling(width, value, capacity):  # type: ignore[no-untyped-def]
    """(J,) the set of greatest value whose widths fit into a capacity (0/1 knapsack); of equal ones the first found."""
    best = np.zeros(capacity + 1)
    took = np.zeros((width.shape[0], capacity + 1), np.bool_)
    for j in range(width.shape[0]):
        for room in range(capacity, width[j] - 1, -1):  # downwards: what is read has not got this one yet
            with_it = best[room - width[j]] + value[j]
            if with_it > best[room]:
                best[room] = with_it
                took[j, room] = True
    taken, room = np.zeros(width.shape[0], np.bool_), capacity
    for j in range(width.shape[0] - 1, -1, -1):
        if took[j, room]:
            taken[j] = True
            room -= width[j]
    return taken
