"""What room is worth, given a price for each class of pods and for CPU.

The headroom of a cluster is the largest T such that T times the expected mix of arrivals can still be packed. By
duality of linear programs each class j then has a price z_j, what one more pod of it is worth, and CPU a price λ;
a node is worth the best fill that it can still take. A pod goes where it lowers that worth least. Formulas,
parameters and figures: docs/internals/placement.md.

CPU is not worth the same everywhere: a node is looked at under several CPU prices, its *lanes*, and is worth the
least of them. The best fill is soft (a log of a sum of exponentials), so that prices move the worth smoothly; the
sums are carried as powers, scaled by the best rate of a device, and need one exponential a class, not one a step.

Worth is whole numbers, in 2**30ths of a quantum: it adds up the same in any order. Where the prices come from is
in prices.py.

Shapes: K groups of nodes that the same classes may use, J kinds of demand, C channels (S sizes of pods on one
device, then Q numbers of whole devices), L lanes, 101 levels of a device, F devices of the largest node.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.base.staleness import forget_stale
from berth.scheduling import kernels, portable
from berth.scheduling.kernels import WHOLE, compiled, inlined
from berth.scheduling.portable import exp, log

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEVEL = 10  # milli of a device between two levels
LEVELS = WHOLE // LEVEL + 1
# CPU prices of the lanes above the first, beside its price, in GPU milli for a CPU milli.
LANE_RATES = np.array([0.0, 0.004, 0.0082, 0.0169, 0.0346, 0.0711, 0.146, 0.3])
LANES = len(LANE_RATES)
ONE = 2.0**30  # of a quantum
MOST_FALL = 6.5  # of the logarithm of a power from level to level, so that 100 levels stay within a float
_NONE = -1e18  # the gain of a channel that no class uses


class Mix(NamedTuple):
    """What is expected.

    share (J,) of arrivals; cpu, milli (J,) of one pod, 0 milli for one that is on no known device
    channel (J,), -1 for none; parts (J,) devices over which a pod's gain is spread
    allowed (K, J); sizes (S,) levels, counts (Q,) whole devices of the channels
    """

    share: F64
    cpu: F64
    milli: F64
    channel: I64
    parts: F64
    allowed: Mask
    sizes: I64
    counts: I64


class Knobs(NamedTuple):
    """berth.scheduling.policy.Policy, in milli; `average` is the weight of the newest price."""

    quantum: float
    tau: float
    tau_classes: float
    eta: float
    average: float


class Nodes(NamedTuple):
    """group (N,), times (N,) nodes that a line stands for, free (N, R), CPU first, left (N, G) milli of devices."""

    group: I64
    times: I64
    free: I64
    left: I32


class Worth(NamedTuple):
    """What things are worth by lane: rate (L,) a CPU milli, device (K, 101, L), whole (K, F + 1, L) free devices."""

    rate: I64
    device: I64
    whole: I64


class Book(NamedTuple):
    """by_lane (N, L) and value (N,) of the nodes; wholes (N,) how many of their devices are wholly free."""

    by_lane: I64
    value: I64
    wholes: I64


class Scratch(NamedTuple):
    """What `tabulate` leaves for `step`, and the masses that a step moves.

    rate (L,), peak (C, L), weight (J, L), total (K, C, L): classes against each other in their channel
    device (K, 101, L), pull (K, S, L): scaled powers of one device; likely (K, F + 1, Q + 1, L) of several
    at_level (K, 101, L), at_count (K, F + 1, L), cpu (K, L), flow (C, L), wanted (J,): devices, CPU and pods
    """

    rate: F64
    peak: F64
    weight: F64
    total: F64
    device: F64
    pull: F64
    likely: F64
    at_level: F64
    at_count: F64
    cpu: F64
    flow: F64
    wanted: F64


def worth_for(mix: Mix, devices: int) -> Worth:
    groups = len(mix.allowed)
    return Worth(
        np.zeros(LANES, np.int64),
        np.zeros((groups, LEVELS, LANES), np.int64),
        np.zeros((groups, devices + 1, LANES), np.int64),
    )


def book_for(size: int) -> Book:
    return Book(np.zeros((size, LANES), np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64))


def scratch_for(mix: Mix, devices: int) -> Scratch:
    groups, kinds = mix.allowed.shape
    sizes, counts = len(mix.sizes), len(mix.counts)
    channels = sizes + counts
    return Scratch(
        rate=np.zeros(LANES),
        peak=np.zeros((channels, LANES)),
        weight=np.zeros((kinds, LANES)),
        total=np.zeros((groups, channels, LANES)),
        device=np.zeros((groups, LEVELS, LANES)),
        pull=np.zeros((groups, sizes, LANES)),
        likely=np.zeros((groups, devices + 1, counts + 1, LANES)),
        at_level=np.zeros((groups, LEVELS, LANES)),
        at_count=np.zeros((groups, devices + 1, LANES)),
        cpu=np.zeros((groups, LANES)),
        flow=np.zeros((channels, LANES)),
        wanted=np.zeros(kinds),
    )


@compiled
def normalise(price, mix):  # type: ignore[no-untyped-def]
    """Scale prices so that an average pod is worth the GPU milli that an average pod asks for."""
    last = mix.share.shape[0]
    asked, priced, cpu = 0.0, 0.0, 0.0
    for j in range(last):
        if mix.milli[j] > 0.0:
            asked += mix.share[j] * mix.milli[j]
            priced += mix.share[j] * price[j]
        else:
            cpu += mix.share[j] * mix.cpu[j]
    priced += price[last] * cpu
    if asked > 0.0 and priced > 0.0:
        for j in range(last + 1):
            price[j] *= asked / priced


@compiled
def tabulate(price, mix, knobs, worth, scratch):  # type: ignore[no-untyped-def]
    """Work out from the prices what devices and CPU are worth in each group and lane. Normalises the prices."""
    normalise(price, mix)
    kinds, groups = mix.share.shape[0], mix.allowed.shape[0]
    unit = ONE / knobs.quantum
    rate, peak, weight, total = scratch.rate, scratch.peak, scratch.weight, scratch.total
    for lane in range(LANES):
        rate[lane] = price[kinds] + LANE_RATES[lane]
        worth.rate[lane] = np.int64(floor(rate[lane] * unit + 0.5))
    # Gain of a pod: its price less its CPU. Within a channel classes compete softly.
    peak[:] = _NONE
    for j in range(kinds):
        c = mix.channel[j]
        if c >= 0 and mix.share[j] > 0.0:
            for lane in range(LANES):
                gain = (price[j] - rate[lane] * mix.cpu[j]) / mix.parts[j]
                if gain > peak[c, lane]:
                    peak[c, lane] = gain
    for j in range(kinds):
        c = mix.channel[j]
        for lane in range(LANES):
            weight[j, lane] = 0.0
            if c >= 0 and mix.share[j] > 0.0:
                gain = (price[j] - rate[lane] * mix.cpu[j]) / mix.parts[j]
                weight[j, lane] = mix.share[j] * mix.parts[j] * exp((gain - peak[c, lane]) / knobs.tau_classes)
    total[:] = 0.0
    for k in range(groups):
        for j in range(kinds):
            if mix.allowed[k, j] and mix.channel[j] >= 0:
                c = mix.channel[j]
                for lane in range(LANES):
                    total[k, c, lane] += weight[j, lane]
    for k in range(groups):
        _devices(k, mix, knobs, unit, worth, scratch)
        _whole_devices(k, mix, knobs, unit, worth, scratch)


@compiled
def _devices(k, mix, knobs, unit, worth, scratch):  # type: ignore[no-untyped-def]
    """The best fill of one device of group k, at each level. Powers are scaled by exp(−best · level / τ)."""
    sizes, tau = mix.sizes.shape[0], knobs.tau
    best, fall, gains = np.zeros(LANES), np.empty(LANES), np.empty((sizes, LANES))
    power, pull = scratch.device[k], scratch.pull[k]
    for s in range(sizes):
        for lane in range(LANES):
            gains[s, lane] = _NONE
            if scratch.total[k, s, lane] > 0.0:
                gain = scratch.peak[s, lane] + knobs.tau_classes * log(scratch.total[k, s, lane])
                gains[s, lane] = min(gain, MOST_FALL * tau * mix.sizes[s])
                best[lane] = max(best[lane], gains[s, lane] / mix.sizes[s])
    for s in range(sizes):
        for lane in range(LANES):
            pull[s, lane] = 0.0
            if gains[s, lane] > _NONE:
                pull[s, lane] = exp((gains[s, lane] - best[lane] * mix.sizes[s]) / tau)
    for lane in range(LANES):
        fall[lane] = exp(-best[lane] / tau)
        power[0, lane] = 1.0
        worth.device[k, 0, lane] = 0
    smallest = mix.sizes[0] if sizes else LEVELS
    nothing = np.ones(LANES)  # left as it is: a fill too
    for r in range(1, LEVELS):
        now = power[r]
        for lane in range(LANES):
            nothing[lane] *= fall[lane]
            now[lane] = nothing[lane]
        if r < smallest:  # nobody takes so little: it is worth nothing
            continue
        for s in range(sizes):
            if mix.sizes[s] > r:
                break
            below = power[r - mix.sizes[s]]
            for lane in range(LANES):
                now[lane] += pull[s, lane] * below[lane]
        for lane in range(LANES):
            worth.device[k, r, lane] = np.int64(floor((best[lane] * r + tau * log(now[lane])) * unit + 0.5))


@compiled
def _whole_devices(k, mix, knobs, unit, worth, scratch):  # type: ignore[no-untyped-def]
    """The best fill of several wholly free devices of group k: one by one, or pods that take several.

    likely[f, 0] is how likely the next one is used by itself, likely[f, q + 1] that it goes to a pod of counts[q].
    """
    sizes, counts, tau = mix.sizes.shape[0], mix.counts.shape[0], knobs.tau
    likely = scratch.likely[k]
    gains, filled = np.empty(counts + 1), np.zeros(likely.shape[0])
    for lane in range(LANES):
        gains[0] = worth.device[k, LEVELS - 1, lane] / unit
        for q in range(counts):
            gains[q + 1] = _NONE
            if scratch.total[k, sizes + q, lane] > 0.0:
                gain = knobs.tau_classes * log(scratch.total[k, sizes + q, lane])
                gains[q + 1] = scratch.peak[sizes + q, lane] + gain
        worth.whole[k, 0, lane] = 0
        for f in range(1, likely.shape[0]):
            best = gains[0] + filled[f - 1]
            for q in range(counts):
                if mix.counts[q] <= f:
                    best = max(best, gains[q + 1] + filled[f - mix.counts[q]])
            likely[f, 0, lane] = exp((gains[0] + filled[f - 1] - best) / tau)
            total = likely[f, 0, lane]
            for q in range(counts):
                likely[f, q + 1, lane] = 0.0
                if mix.counts[q] <= f and gains[q + 1] > _NONE:
                    likely[f, q + 1, lane] = exp((gains[q + 1] + filled[f - mix.counts[q]] - best) / tau)
                total += likely[f, q + 1, lane]
            for q in range(counts + 1):
                likely[f, q, lane] /= total
            filled[f] = best + tau * log(total)
            worth.whole[k, f, lane] = np.int64(floor(filled[f] * unit + 0.5))


@inlined
def appraise(n, cpu, left, k, worth, book):  # type: ignore[no-untyped-def]
    """Work out what node n of group k is worth, by lane and in all."""
    whole = 0
    for lane in range(LANES):
        book.by_lane[n, lane] = worth.rate[lane] * max(cpu, 0)
    for g in range(left.shape[0]):
        if left[g] == WHOLE:
            whole += 1
        elif left[g] >= LEVEL:
            for lane in range(LANES):
                book.by_lane[n, lane] += worth.device[k, left[g] // LEVEL, lane]
    least = book.by_lane[n, 0] + worth.whole[k, whole, 0]
    for lane in range(LANES):
        book.by_lane[n, lane] += worth.whole[k, whole, lane]
        least = min(least, book.by_lane[n, lane])
    book.value[n] = least
    book.wholes[n] = whole


@compiled
def appraise_all(nodes, worth, book):  # type: ignore[no-untyped-def]
    """Work out what every node is worth."""
    for n in range(nodes.free.shape[0]):
        appraise(n, nodes.free[n, 0], nodes.left[n], nodes.group[n], worth, book)


for _kernel in (tabulate, appraise_all):
    forget_stale(_kernel, kernels, portable)
