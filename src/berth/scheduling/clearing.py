"""What it costs to clear room on nodes: the cheapest pods to leave, and over which nodes to spread those that come.

Compiled loops over columns, no policy in them. Shapes: K nodes, P pods of those nodes, J classes of them, C copies
at most on a node. The pods of nodes[i] are first[i]:first[i + 1], the dearest first. Prices are whole numbers whose
sum is to be least; `out` marks pods that do not count (they have left, or must not).

Of one node the answer is the cheapest as long as `steps` sets of pods suffice to see that, and as cheap as putting
pods back one by one, the dearest first, makes it otherwise. Of pods that are alike it is always the cheapest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from berth.base.staleness import forget_stale
from berth.scheduling import kernels
from berth.scheduling.kernels import WHOLE, compiled, copies_on, take

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

NEVER = 2**62  # the cost of what cannot be
MOST_CELLS = 8_000_000  # nodes × copies asked for × copies on a node that are dealt exactly


@compiled
def _is_alike(p, q, kind, mask, ask, one_island):  # type: ignore[no-untyped-def]
    """Two pods of a node give back the same, as far as it matters to who comes."""
    if kind[p] != kind[q]:
        return False
    if ask[kind[p], 1] == 0:
        return True
    return mask[p] == mask[q] or (ask[kind[p], 2] == WHOLE and one_island == 0)


@compiled
def release_least(m_need, m_ask, copies, steps, begin, end, kind, mask, price, out, need, ask,  # type: ignore[no-untyped-def]
                  free, left, islands, pool, gone):  # fmt: skip
    """The cheapest pods of a node without which so many copies of a class fit there; NEVER where none suffice.

    Marks them in `gone` (P,), the node's other pods not.
    """
    amounts, devices = free.copy(), left.copy()
    for p in range(begin, end):
        gone[p] = not out[p]
        if gone[p]:
            take(-1, mask[p], need[kind[p]], ask[kind[p]], amounts, devices, pool)
    fit, _ = copies_on(m_need, m_ask, amounts, devices, islands, pool)
    if fit < copies:
        return NEVER
    spent = 0
    for p in range(begin, end):
        if not gone[p]:
            continue
        take(1, mask[p], need[kind[p]], ask[kind[p]], amounts, devices, pool)
        fit, _ = copies_on(m_need, m_ask, amounts, devices, islands, pool)
        if fit >= copies:
            gone[p] = False
        else:
            take(-1, mask[p], need[kind[p]], ask[kind[p]], amounts, devices, pool)
            spent += price[p]
    if spent == 0:
        return spent
    # Look for a cheaper set, depth first, the cheapest pods first.
    amounts, devices = free.copy(), left.copy()
    chosen = np.zeros(end - begin, np.bool_)
    stack = np.empty(end - begin, np.int64)
    depth, total, looked, p = 0, 0, 0, end - 1
    while True:
        if p < begin or total + price[p] >= spent:
            if depth == 0:
                break
            depth -= 1
            p = stack[depth]
            take(1, mask[p], need[kind[p]], ask[kind[p]], amounts, devices, pool)
            chosen[p - begin] = False
            total -= price[p]
            p -= 1
            continue
        is_better_left = out[p]
        for q in range(p + 1, end):
            if (
                not is_better_left
                and not out[q]
                and not chosen[q - begin]
                and _is_alike(p, q, kind, mask, ask, m_ask[3])
            ):
                is_better_left = True  # a cheaper one that is like it was left
        if is_better_left:
            p -= 1
            continue
        if looked == steps:
            break
        looked += 1
        take(-1, mask[p], need[kind[p]], ask[kind[p]], amounts, devices, pool)
        chosen[p - begin] = True
        stack[depth] = p
        depth += 1
        total += price[p]
        fit, _ = copies_on(m_need, m_ask, amounts, devices, islands, pool)
        if fit >= copies:
            spent = total
            for q in range(begin, end):
                gone[q] = chosen[q - begin]
        p -= 1
    return spent


@compiled
def most_copies(m_need, m_ask, nodes, first, kind, mask, out, need, ask, free, device_free, island, pool, copies):  # type: ignore[no-untyped-def]
    """Copies of a class that each node takes when all of its pods have left. Writes copies (K,)."""
    for i in range(nodes.shape[0]):
        n = nodes[i]
        amounts, devices = free[n].copy(), device_free[n].copy()
        for p in range(first[i], first[i + 1]):
            if not out[p]:
                take(-1, mask[p], need[kind[p]], ask[kind[p]], amounts, devices, pool[n])
        fit, _ = copies_on(m_need, m_ask, amounts, devices, island[n], pool[n])
        copies[i] = fit


@compiled
def cost_of_copies(m_need, m_ask, steps, which, nodes, first, kind, mask, price, out, need, ask,  # type: ignore[no-untyped-def]
                   free, device_free, island, pool, cost, gone):  # fmt: skip
    """What it costs that c copies of a class fit on each node, for the nodes at `which`. Writes cost (K, C + 1)."""
    most = cost.shape[1] - 1
    for w in range(which.shape[0]):
        i = which[w]
        n = nodes[i]
        idle, _ = copies_on(m_need, m_ask, free[n], device_free[n], island[n], pool[n])
        for c in range(most + 1):
            if c <= idle:
                cost[i, c] = 0
            elif c > 0 and cost[i, c - 1] == NEVER:
                cost[i, c] = NEVER
            else:
                cost[i, c] = release_least(
                    m_need, m_ask, c, steps, first[i], first[i + 1], kind, mask, price, out, need, ask,
                    free[n], device_free[n], island[n], pool[n], gone,
                )  # fmt: skip


@compiled
def deal(cost, need, counts):  # type: ignore[no-untyped-def]
    """Spread `need` copies over nodes where they cost least in all; returns that, NEVER where they do not fit.

    Exact; among equals the first nodes take most. Writes counts (K,).
    """
    size, most = cost.shape[0], cost.shape[1] - 1
    best = np.full(need + 1, NEVER, np.int64)
    best[0] = 0
    choice = np.zeros((size, need + 1), np.int32)
    for i in range(size):
        for j in range(need, 0, -1):
            least, taken = best[j], 0
            for c in range(1, min(most, j) + 1):
                if cost[i, c] == NEVER:
                    break
                if best[j - c] < NEVER and best[j - c] + cost[i, c] < least:
                    least, taken = best[j - c] + cost[i, c], c
            best[j], choice[i, j] = least, taken
    j = need
    for i in range(size - 1, -1, -1):
        counts[i] = 0 if best[need] == NEVER else choice[i, j]
        j -= counts[i]
    return best[need]


@compiled
def steps_of(cost, node, size, extra, slope):  # type: ignore[no-untyped-def]
    """The steps in which the cost of each node rises, as a convex curve below it. Returns how many there are.

    Writes node, size (copies), extra (cost) and slope (cost of a copy) of each step, (K × C,).
    """
    count, most = 0, cost.shape[1] - 1
    for i in range(cost.shape[0]):
        at = 0
        while at < most and cost[i, at + 1] < NEVER:
            to, least = at + 1, float(cost[i, at + 1] - cost[i, at])
            for c in range(at + 2, most + 1):
                if cost[i, c] == NEVER:
                    break
                mean = (cost[i, c] - cost[i, at]) / (c - at)
                if mean < least:
                    to, least = c, mean
            node[count], size[count] = i, to - at
            extra[count], slope[count] = cost[i, to] - cost[i, at], least
            count += 1
            at = to
    return count


@compiled
def deal_by_steps(cost, need, order, node, size, counts):  # type: ignore[no-untyped-def]
    """As `deal`, by the cheapest steps first: exact where each node's cost is convex, good where it is not."""
    counts[:] = 0
    rest = need
    for s in order:
        if rest == 0:
            break
        if size[s] <= rest and counts[node[s]] + size[s] < cost.shape[1]:
            counts[node[s]] += size[s]
            rest -= size[s]
    while rest > 0:
        # A step was larger than what is left: the cheapest single copy more.
        best, least = -1, NEVER
        for i in range(cost.shape[0]):
            c = counts[i]
            if c + 1 < cost.shape[1] and cost[i, c + 1] < NEVER and cost[i, c + 1] - cost[i, c] < least:
                best, least = i, cost[i, c + 1] - cost[i, c]
        if best < 0:
            return NEVER
        counts[best] += 1
        rest -= 1
    total = 0
    for i in range(cost.shape[0]):
        total += cost[i, counts[i]]
    return total


@compiled
def cost_by_domain(need, order, domain, size, extra, cost):  # type: ignore[no-untyped-def]
    """What `need` copies cost in each domain at least, by steps; NEVER where they do not fit. Writes cost (D,)."""
    got = np.zeros(cost.shape[0], np.int64)
    cost[:] = 0
    for s in order:
        d = domain[s]
        if d < 0 or got[d] >= need:
            continue
        rest = need - got[d]
        if size[s] <= rest:
            cost[d] += extra[s]
        else:
            cost[d] += extra[s] * rest // size[s]
        got[d] += size[s]
    for d in range(cost.shape[0]):
        if got[d] < need:
            cost[d] = NEVER


for _kernel in (release_least, most_copies, cost_of_copies):
    forget_stale(_kernel, kernels)
