"""What no policy can beat in the packing experiment, and why: a linear program over ways to fill a node.

**The program.** Let A_j be the pods of kind j that have arrived, y_j how many of them run, g_j the GPU milli of
one. At any moment each node holds some *pattern*, a multiset of pods that fit on it together. With x_tP the
number of nodes of shape t (of which there are N_t) that hold pattern P,

    sum over j of g_j y_j   where   y_j <= A_j,   y_j <= sum over t, P of P_j x_tP,   sum over P of x_tP <= N_t

holds for whatever a policy has done up to then: place in any order, refuse, move, know all that is to come. So
the largest value of the left side, over fractions too, is a bound.

**The proof needs no solver.** For any prices π >= 0

    sum g_j y_j  =  sum π_j y_j  +  sum (g_j − π_j) y_j
                <=  sum over t of N_t · (max over P of π·P)  +  sum max(g_j − π_j, 0) A_j.

`ceiling` works out the right side, in whole numbers but for the last sum. Good prices come from a solver
(benchmarks/bound.py); bad ones give a worse bound, never a wrong one.

**Means.** The experiment's value at a load is a mean over the pod events that fall on it, then over seeds. The
right side is linear in A, so the bound for the mean is the right side at the mean of A (`mean_arrivals`).

**What is left out** only makes the bound weaker: memory, pods per node, arrivals being whole. CPU is counted in
steps of 100 milli, rounded down for pods and nodes alike: whole numbers of steps that are at most the parts of a
sum add up to at most the sum. The best pattern of a node is found exactly: fills of one GPU by dynamic
programming over milli and CPU, then GPUs one by one or several at once, then pods without GPUs.

**How to read it.** The bound may refuse pods, and towards 130 % arrived it refuses what packs badly: there it is
far below what a policy that takes pods as they come can do. `all_fit` bounds such a policy in another way: the
load up to which everything that arrives could still run, were it as the trace's mix. No policy gets further
without leaving a pod out. (It is no bound on what is unallocated later: small pods still find places.)

Shapes: T node shapes, J kinds of pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd

import numpy as np
from numba import njit
from numpy.typing import NDArray

from berth.model.trace import Int
from berth.simulation.inflation import Prepared
from berth.simulation.offer import Offer
from berth.simulation.replay import load_of

F64 = NDArray[np.float64]

CPU_STEP = 100
PRICE_ONE = 1024  # prices are whole numbers of 1/1024 GPU milli
_NOTHING, _LESS_GPU, _LESS_CPU = -1, -2, -3


@dataclass(frozen=True)
class Problem:
    """A cluster and the kinds of pods that a trace asks for.

    cpu, gpus, model, count  (T,): of a node shape, CPU in steps; how many nodes have it
    need, many, units        (J,): CPU steps, GPUs and units of each of a kind; a GPU has `whole` units
    models                   (J,) bit sets as in offer.Classes
    milli                    (J,) float: GPU milli of one pod, g
    kind_of                  (C,): kind of each class of the trace
    """

    cpu: Int
    gpus: Int
    model: Int
    count: Int
    need: Int
    many: Int
    units: Int
    models: Int
    milli: F64
    kind_of: Int
    whole: int

    @property
    def capacity(self) -> int:
        """GPU milli of all nodes."""
        return int(self.gpus @ self.count) * 1000

    def runs_on(self, j: int, t: int) -> bool:
        """Whether a pod of a kind fits on an empty node of a shape."""
        if self.need[j] > self.cpu[t] or self.many[j] > self.gpus[t]:
            return False
        return bool(self.many[j] == 0 or (self.model[t] >= 0 and self.models[j] >> self.model[t] & 1))

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """(J,) kinds that take nothing that is counted: they always fit, and must be priced at 0."""
        return (self.many == 0) & (self.need == 0)

    @property
    def can_run(self) -> NDArray[np.bool_]:
        """(J,) kinds that fit on some empty node."""
        shapes = range(len(self.cpu))
        return np.array([any(self.runs_on(j, t) for t in shapes) for j in range(len(self.need))], bool)


def problem(prepared: Prepared) -> Problem:
    """The problem of a trace. Requests that differ in memory alone are one kind."""
    cluster, classes = prepared.trace.cluster, prepared.classes
    shapes, count = np.unique(
        np.column_stack((cluster.cpu_milli // CPU_STEP, cluster.gpus, cluster.model)), axis=0, return_counts=True
    )
    unit = gcd(1000, *classes.gpu_milli[classes.num_gpu > 0].tolist())
    models = np.where(classes.num_gpu > 0, classes.models, -1)
    rows = np.column_stack((classes.cpu_milli // CPU_STEP, classes.num_gpu, classes.gpu_milli // unit, models))
    kinds, kind_of = np.unique(rows, axis=0, return_inverse=True)
    need, many, units, models = (np.ascontiguousarray(kinds[:, i]) for i in range(4))
    return Problem(
        cpu=shapes[:, 0].copy(),
        gpus=shapes[:, 1].copy(),
        model=shapes[:, 2].copy(),
        count=count.astype(np.int64),
        need=need,
        many=many,
        units=units,
        models=models,
        milli=(many * units * unit).astype(np.float64),
        kind_of=kind_of.reshape(-1).astype(np.int64),
        whole=1000 // unit,
    )


def mean_arrivals(given: Problem, offers: Iterable[Offer], load: int) -> F64:
    """(J,) pods that have arrived: the mean over the events on a load in percent, then over the offers."""
    sums, seen = np.zeros(len(given.need)), 0
    for offered in offers:
        asked = (offered.classes.num_gpu * offered.classes.gpu_milli)[offered.class_of]
        loads = np.array([load_of(a, offered.capacity_milli) for a in np.cumsum(asked).tolist()])
        events = np.flatnonzero(loads == load)
        if not len(events):
            raise ValueError(f"no pod event of seed {offered.seed} falls on a load of {load} %")
        # A pod counts for the share of these events that come with it or after it.
        share = np.clip((events[-1] + 1 - np.arange(len(asked))) / len(events), 0.0, 1.0)
        sums += np.bincount(given.kind_of[offered.class_of], weights=share, minlength=len(sums))
        seen += 1
    return sums / seen


def mix(given: Problem, prepared: Prepared) -> F64:
    """(J,) pods of the trace, scaled so that they ask for as many GPU milli as the cluster has."""
    counts = np.bincount(given.kind_of[prepared.class_of], minlength=len(given.need)).astype(np.float64)
    scaled: F64 = counts * (given.capacity / float(counts @ given.milli))
    return scaled


def ceiling(given: Problem, price: Int, arrivals: F64) -> float:
    """GPU milli that cannot be exceeded by what runs of these arrivals. `price` (J,) >= 0, in 1/1024 milli."""
    values, _ = best_patterns(given, price)
    return held_at_most(given, price, values, arrivals)


def held_at_most(given: Problem, price: Int, values: Int, arrivals: F64) -> float:
    """`ceiling` where the values of the best patterns are known."""
    nodes = int(values @ given.count) / PRICE_ONE
    return nodes + float(np.maximum(given.milli - price / PRICE_ONE, 0.0) @ arrivals)


def all_fit(given: Problem, price: Int, values: Int, arrivals: F64) -> float:
    """The largest multiple of the arrivals that could all run, at most: kinds that never can are left out.

    If T times the arrivals have places, T · sum π_j A_j <= sum over t of N_t · max over P of π·P.
    """
    worth = float(np.where(given.can_run, price, 0) @ arrivals)
    return int(values @ given.count) / worth if worth > 0 else float("inf")


def best_patterns(given: Problem, price: Int) -> tuple[Int, Int]:
    """The most that a node of each shape can be worth, (T,), and a pattern that is worth it, (T, J)."""
    if (price < 0).any() or price[given.is_free].any():
        raise ValueError("a price is negative, or of a pod that takes nothing: no node has a best pattern")
    values = np.zeros(len(given.cpu), np.int64)
    patterns = np.zeros((len(given.cpu), len(given.need)), np.int64)
    tables: dict[bytes, _Fills] = {}
    for t in range(len(given.cpu)):
        allowed = np.array([given.model[t] >= 0 and m >> given.model[t] & 1 for m in given.models.tolist()], bool)
        key = allowed.tobytes()
        if key not in tables:
            tables[key] = _Fills.of(given, price, allowed)
        values[t] = tables[key].trace(int(given.gpus[t]), int(given.cpu[t]), patterns[t])
    return values, patterns


@dataclass(frozen=True)
class _Fills:
    """The best fills of nodes on which the same kinds may run, for every number of GPUs and every CPU.

    best[f] (C + 1,): with f GPUs; shared[f] CPU left to the first f − 1 GPUs, whole[f] the kind that takes
    several, -1 where the last GPU is filled by itself; one (whole + 1, C + 1) and bare (C + 1,) choices within a
    GPU and of pods without any.
    """

    best: list[Int]
    shared: list[Int]
    several: list[Int]
    one: Int
    bare: Int
    singles: Int
    bares: Int
    given: Problem

    @classmethod
    def of(cls, given: Problem, price: Int, allowed: NDArray[np.bool_]) -> _Fills:
        most_cpu, most_gpus = int(given.cpu.max()), int(given.gpus.max())
        priced = price > 0
        singles = _undominated(np.flatnonzero(allowed & priced & (given.many == 1)), given, price)
        bares = _undominated(np.flatnonzero(priced & (given.many == 0)), given, price)
        value, one = _fill_gpu(given.units[singles], given.need[singles], price[singles], given.whole, most_cpu)
        first, bare = _fill_cpu(given.need[bares], price[bares], most_cpu)
        best, shared, several = [first], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for f in range(1, most_gpus + 1):
            now, left = _join(best[f - 1], value)
            who = np.full(most_cpu + 1, -1, np.int64)
            for j in np.flatnonzero(allowed & priced & (given.many > 1) & (given.many <= f)).tolist():
                cpu = int(given.need[j])
                if cpu <= most_cpu:
                    other = best[f - given.many[j]][: most_cpu + 1 - cpu] + price[j]
                    better = other > now[cpu:]
                    now[cpu:][better], who[cpu:][better] = other[better], j
            best.append(now)
            shared.append(left)
            several.append(who)
        return cls(best, shared, several, one, bare, singles, bares, given)

    def trace(self, gpus: int, cpu: int, pattern: Int) -> int:
        """Write the best pattern of a node; returns its worth."""
        given, c, f = self.given, cpu, gpus
        while f > 0:
            j = int(self.several[f][c])
            if j >= 0:
                pattern[j] += 1
                f, c = f - int(given.many[j]), c - int(given.need[j])
                continue
            rest = int(self.shared[f][c])
            r, used = given.whole, c - rest
            while (choice := int(self.one[r, used])) != _NOTHING:
                if choice == _LESS_GPU:
                    r -= 1
                elif choice == _LESS_CPU:
                    used -= 1
                else:
                    j = int(self.singles[choice])
                    pattern[j] += 1
                    r, used = r - int(given.units[j]), used - int(given.need[j])
            f, c = f - 1, rest
        while (choice := int(self.bare[c])) != _NOTHING:
            if choice == _LESS_CPU:
                c -= 1
            else:
                j = int(self.bares[choice])
                pattern[j] += 1
                c -= int(given.need[j])
        return int(self.best[gpus][cpu])


def _undominated(kinds: Int, given: Problem, price: Int) -> Int:
    """Without kinds for which another takes no more and is worth no less."""
    kept: list[int] = []
    for j in kinds[np.lexsort((kinds, given.need[kinds], given.units[kinds], -price[kinds]))].tolist():
        if not any(given.units[i] <= given.units[j] and given.need[i] <= given.need[j] for i in kept):
            kept.append(j)
    return np.array(kept, np.int64)


@njit(cache=True)
def _fill_gpu(size, cpu, price, whole, most_cpu):
    """Worth (C + 1,) of the best fill of one GPU by CPU, and the choices (whole + 1, C + 1)."""
    best = np.zeros((whole + 1, most_cpu + 1), np.int64)
    choice = np.full((whole + 1, most_cpu + 1), _NOTHING, np.int64)
    for r in range(whole + 1):
        for c in range(most_cpu + 1):
            value, chosen = np.int64(0), _NOTHING
            if r > 0 and best[r - 1, c] > value:
                value, chosen = best[r - 1, c], _LESS_GPU
            if c > 0 and best[r, c - 1] > value:
                value, chosen = best[r, c - 1], _LESS_CPU
            for j in range(size.shape[0]):
                if size[j] <= r and cpu[j] <= c:
                    other = price[j] + best[r - size[j], c - cpu[j]]
                    if other > value:
                        value, chosen = other, j
            best[r, c] = value
            choice[r, c] = chosen
    return best[whole].copy(), choice


@njit(cache=True)
def _fill_cpu(cpu, price, most_cpu):
    """Worth (C + 1,) of the best set of pods without GPUs by CPU, and the choices."""
    best = np.zeros(most_cpu + 1, np.int64)
    choice = np.full(most_cpu + 1, _NOTHING, np.int64)
    for c in range(1, most_cpu + 1):
        if best[c - 1] > 0:
            best[c], choice[c] = best[c - 1], _LESS_CPU
        for j in range(cpu.shape[0]):
            if cpu[j] <= c and price[j] + best[c - cpu[j]] > best[c]:
                best[c], choice[c] = price[j] + best[c - cpu[j]], j
    return best, choice


@njit(cache=True)
def _join(some, other):
    """best[c] = the most of some[i] + other[c − i], and i."""
    best, left = np.zeros_like(some), np.zeros_like(some)
    for c in range(some.shape[0]):
        most = np.int64(-1)
        for i in range(c + 1):
            value = some[i] + other[c - i]
            if value > most:
                most, left[c] = value, i
        best[c] = most
    return best, left
