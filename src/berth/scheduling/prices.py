"""Prices at which the cluster would take each class of pods in its share of arrivals.

At the present prices every node has a best fill (headroom.py), and so the cluster takes so many pods of each class:
a class that would get more than its share becomes cheaper, one that would get less dearer, by small steps. What is
used is a running average, which the last steps do not sway.

Prices are floats, out of operations that give the same bits on every machine (portable.py).
Shapes are those of headroom.py.
"""

from __future__ import annotations

import numpy as np

from berth.base.staleness import forget_stale
from berth.scheduling import headroom, kernels, portable
from berth.scheduling.headroom import F64, LANES, LEVEL, LEVELS, Mix, appraise, appraise_all, tabulate
from berth.scheduling.kernels import WHOLE, compiled, inlined
from berth.scheduling.portable import exp, log

FIRST_CPU, LEAST_CPU = 0.001, 1e-5
LEAST, MOST = 0.02, 3.0  # of a class, for each milli that it asks for
FAST = 10.0  # how much larger the first steps of a warm-up are


def first_prices(mix: Mix) -> F64:
    """(J + 1,) to start from: a class is worth what it asks for; the last one is CPU's."""
    return np.append(mix.milli, FIRST_CPU)


@compiled
def step(eta, price, mix, knobs, nodes, worth, book, scratch):  # type: ignore[no-untyped-def]
    """One step of all prices towards those at which the cluster takes each class in its share of arrivals."""
    tabulate(price, mix, knobs, worth, scratch)
    at_level, at_count, cpu = scratch.at_level, scratch.at_count, scratch.cpu
    at_level[:] = 0.0
    at_count[:] = 0.0
    cpu[:] = 0.0
    for n in range(nodes.free.shape[0]):
        k = nodes.group[n]
        appraise(n, nodes.free[n, 0], nodes.left[n], k, worth, book)
        cheapest = 0
        for lane in range(1, LANES):
            if book.by_lane[n, lane] < book.by_lane[n, cheapest]:
                cheapest = lane
        for g in range(nodes.left.shape[1]):
            if LEVEL <= nodes.left[n, g] < WHOLE:
                at_level[k, nodes.left[n, g] // LEVEL, cheapest] += nodes.times[n]
        at_count[k, book.wholes[n], cheapest] += nodes.times[n]
        cpu[k, cheapest] += nodes.times[n] * max(nodes.free[n, 0], 0)
    idle_cpu = _taken(mix, scratch)
    _follow(eta, price, mix, idle_cpu, scratch)


@compiled
def _taken(mix, scratch):  # type: ignore[no-untyped-def]
    """Pods of each class that the nodes would take, into `wanted` (J,); returns CPU milli left in the first lane."""
    sizes, counts = mix.sizes.shape[0], mix.counts.shape[0]
    wanted, flow = scratch.wanted, scratch.flow
    wanted[:] = 0.0
    idle_cpu = 0.0
    for k in range(mix.allowed.shape[0]):
        flow[:] = 0.0
        level, count = scratch.at_level[k], scratch.at_count[k]
        likely = scratch.likely[k]
        for f in range(count.shape[0] - 1, 0, -1):
            for lane in range(LANES):
                if count[f, lane] > 0.0:
                    one = count[f, lane] * likely[f, 0, lane]
                    level[LEVELS - 1, lane] += one
                    count[f - 1, lane] += one
                    for q in range(counts):
                        if mix.counts[q] <= f:
                            some = count[f, lane] * likely[f, q + 1, lane]
                            flow[sizes + q, lane] += some
                            count[f - mix.counts[q], lane] += some
        power, pull = scratch.device[k], scratch.pull[k]
        smallest = mix.sizes[0] if sizes else LEVELS  # nobody takes less
        for r in range(LEVELS - 1, smallest - 1, -1):
            for lane in range(LANES):
                if level[r, lane] > 0.0:
                    level[r, lane] /= power[r, lane]
                    for s in range(sizes):
                        if mix.sizes[s] > r:
                            break
                        some = level[r, lane] * pull[s, lane] * power[r - mix.sizes[s], lane]
                        flow[s, lane] += some
                        level[r - mix.sizes[s], lane] += some
        used = 0.0
        for j in range(wanted.shape[0]):
            c = mix.channel[j]
            if c >= 0 and mix.allowed[k, j]:
                for lane in range(LANES):
                    if scratch.weight[j, lane] > 0.0:
                        pods = flow[c, lane] * scratch.weight[j, lane] / (scratch.total[k, c, lane] * mix.parts[j])
                        wanted[j] += pods
                        if lane == 0:
                            used += pods * mix.cpu[j]
        idle_cpu += scratch.cpu[k, 0] - used
    return max(0.0, idle_cpu)


@compiled
def _follow(eta, price, mix, idle_cpu, scratch):  # type: ignore[no-untyped-def]
    """Move each price by how far its class is from its share of the headroom."""
    last = mix.share.shape[0]
    cpu_share = 0.0
    taken, asked = price[last] * idle_cpu, 0.0
    for j in range(last):
        if mix.milli[j] > 0.0:
            taken += price[j] * scratch.wanted[j]
            asked += price[j] * mix.share[j]
        else:
            cpu_share += mix.share[j] * mix.cpu[j]
    asked += price[last] * cpu_share
    if taken <= 0.0 or asked <= 0.0:
        return
    headroom = taken / asked
    for j in range(last):
        if mix.milli[j] > 0.0 and mix.share[j] > 0.0:
            moved = price[j] * _move(scratch.wanted[j] / (mix.share[j] * headroom), eta)
            price[j] = min(max(moved, LEAST * mix.milli[j]), MOST * mix.milli[j])
    if cpu_share > 0.0:
        price[last] = max(price[last] * _move(idle_cpu / (cpu_share * headroom), eta), LEAST_CPU)


@inlined
def _move(ratio, eta):  # type: ignore[no-untyped-def]
    return exp(-eta * min(max(log(max(ratio, 1e-3)), -1.0), 1.0))


@compiled
def settle(steps, eta, price, smooth, mix, knobs, nodes, worth, book, scratch):  # type: ignore[no-untyped-def]
    """So many steps of the prices, and of their running average."""
    for _ in range(steps):
        step(eta, price, mix, knobs, nodes, worth, book, scratch)
        for j in range(price.shape[0]):
            smooth[j] += knobs.average * (price[j] - smooth[j])


@compiled
def warm_up(steps, price, smooth, mix, knobs, nodes, worth, book, scratch):  # type: ignore[no-untyped-def]
    """As `settle`, from far off: the first half in large steps, of which no average is kept."""
    for _ in range(steps // 2):
        step(FAST * knobs.eta, price, mix, knobs, nodes, worth, book, scratch)
    smooth[:] = price
    settle(steps - steps // 2, knobs.eta, price, smooth, mix, knobs, nodes, worth, book, scratch)


@compiled
def set_worth(smooth, mix, knobs, nodes, worth, book, scratch):  # type: ignore[no-untyped-def]
    """The worth of everything at the averaged prices."""
    tabulate(smooth.copy(), mix, knobs, worth, scratch)
    appraise_all(nodes, worth, book)


for _kernel in (step, settle, warm_up, set_worth):
    forget_stale(_kernel, headroom, kernels, portable)
