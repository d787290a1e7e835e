"""How long workloads still run, as samples: by their run-time limits where they have some, else by those like them.

A limit L is an upper bound. Which parts r of their limits others took is learned from those that ended, on top of five
cases that nobody has seen: limits of 1, 1.5, 2, 5 and 10 times the run time. How likely each is of one workload depends
on what those like it took, too (estimates.py: of the same owner, queue and width, submitted before and after): with f
the density of the logarithm of their run times, r counts in proportion to f(log(r L)). Without that the longest limits,
which are mostly the most exaggerated ones, would be believed. Where next to nobody has ended yet, run times are taken
to be as in public traces of GPU clusters (Philly 2017, ITP 2020): log-normal, by whether one GPU or more are asked for.

Shapes: K workloads, S samples, R rows of the history, A parts of limits.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.model.history import History
from berth.scheduling.estimates import BINS, Estimator, bins_of, quantiles

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

PRIOR = (1 / 10, 1 / 5, 1 / 2, 1 / 1.5, 1.0)  # parts of a limit that are used
RECENT = 4096  # ended ones that are learned from
PARTS = 64  # of them, evenly over their order, where there are more
OVERRUN_S, OVERRUN = 60.0, 0.1  # who is past all that is known ends so much later, or after that part of its run
FEWEST = 8  # that have ended, before anything is learned from them
STEPS = [(i + 0.5) / 256 for i in range(256)]
# Seconds at even steps: a median of 1 h for one GPU and of 6 h for more, standard deviation of the logarithm 2.
LIKE_OTHERS = {
    is_wide: np.array([median * math.exp(2.0 * NormalDist().inv_cdf(step)) for step in STEPS])
    for is_wide, median in ((False, 3_600.0), (True, 21_600.0))
}
ALIKE = 0.25  # the correlation of a run time with what is common to all of its sample
GRID = np.linspace(0, 1, 2049)[1:-1]  # of probabilities, with the normal score of each
SCORE = np.array([NormalDist().inv_cdf(p) for p in GRID.tolist()])
LEAST = 0.01  # of an even density: what nobody like it took is not ruled out


class Lasting(NamedTuple):
    """(K,) each: GPUs, row of the history or -1, seconds run so far, the limit (infinite without one)."""

    gpus: I64
    row: I64
    attained_s: F64
    limit_s: F64


def parts_used(history: History | None) -> F64:
    """(A,) ascending: parts of their limits that those took that ended, the last so many, and what is assumed."""
    if history is None or not len(history.limit_s):
        return np.array(PRIOR)
    ended = np.flatnonzero(history.has_ended & (history.limit_s > 0) & np.isfinite(history.limit_s))[-RECENT:]
    parts: F64 = np.sort(np.concatenate([history.attained_s[ended] / history.limit_s[ended], PRIOR]))
    if len(parts) > PARTS:
        parts = parts[((np.arange(PARTS) + 0.5) / PARTS * len(parts)).astype(np.int64)]
    return np.maximum(parts, 1e-6)


def lasting_s(asked: Lasting, history: History | None, levels: F64) -> F64:
    """(S, K) seconds that each still runs, where `levels` (S, K) says how long among its likes, in 0 to 1."""
    found = np.empty(levels.shape)
    has_limit = np.isfinite(asked.limit_s)
    if has_limit.any():
        some = Lasting(
            asked.gpus[has_limit], asked.row[has_limit], asked.attained_s[has_limit], asked.limit_s[has_limit]
        )
        found[:, has_limit] = by_limit(some, parts_used(history), density_of(some.row, history), levels[:, has_limit])
    if not has_limit.all():
        others = ~has_limit
        some = Lasting(asked.gpus[others], asked.row[others], asked.attained_s[others], asked.limit_s[others])
        found[:, others] = by_likes(some, history, levels[:, others])
    return np.maximum(found, 1.0)


def density_of(row: I64, history: History | None) -> F64:
    """(K, BINS) how likely those like each run so long: of the logarithm of the run time."""
    if not is_telling(history):
        return np.full((len(row), BINS), 1 / BINS)
    assert history is not None
    hazard = Estimator().follow(history).hazards(row)
    there = np.cumprod(np.hstack([np.ones((len(row), 1)), 1 - hazard[:, :-1]]), axis=1)
    density: F64 = there * hazard + LEAST / BINS
    return density


def by_limit(asked: Lasting, parts: F64, density: F64, levels: F64) -> F64:
    """(S, K) seconds from now, at each level of what is left of the parts once those that are over are ruled out."""
    count = len(asked.limit_s)
    takes = asked.limit_s[:, None] * parts  # (K, A)
    weight = np.take_along_axis(density, bins_of(takes.ravel()).reshape(takes.shape), axis=1)
    weight[takes <= asked.attained_s[:, None]] = 0.0
    total = np.cumsum(weight, axis=1)
    overrun = np.maximum(OVERRUN_S, OVERRUN * asked.attained_s)
    found = np.empty(levels.shape)
    for k in range(count):
        if total[k, -1] <= 0:
            found[:, k] = overrun[k]
        else:
            at = np.searchsorted(total[k], levels[:, k] * total[k, -1], side="right")
            found[:, k] = takes[k, np.minimum(at, len(parts) - 1)] - asked.attained_s[k]
    return found


def by_likes(asked: Lasting, history: History | None, levels: F64) -> F64:
    """(S, K) seconds from now, by what those like each took."""
    samples = len(levels)
    if is_telling(history):
        assert history is not None
        steps = (np.arange(samples) + 0.5) / samples
        table = quantiles(asked.row, history, steps.tolist(), asked.attained_s)
        at = np.minimum((levels * samples).astype(np.int64), samples - 1)
        return np.take_along_axis(table.T, at, axis=0)
    found = np.empty(levels.shape)
    for is_wide, lasts in LIKE_OTHERS.items():
        some = (asked.gpus > 1) == is_wide
        attained = asked.attained_s[some]
        beyond = np.searchsorted(lasts, attained, side="right")
        left = len(lasts) - beyond
        which = np.minimum(beyond + (levels[:, some] * left).astype(np.int64), len(lasts) - 1)
        found[:, some] = np.where(left > 0, lasts[which] - attained, np.maximum(OVERRUN_S, OVERRUN * attained))
    return found


def is_telling(history: History | None) -> bool:
    """Enough of it has ended to learn from."""
    return history is not None and int(history.has_ended.sum()) >= FEWEST


def spread(samples: int, count: int, rng: np.random.Generator, common: F64 | None = None) -> F64:
    """(S, K) levels: each column has one in each S-th part of 0 to 1, in an order of its own. With `common` (S,) they
    are drawn together: what the run times of one sample are, mostly long or mostly short, all of them lean to (a
    Gaussian copula). Otherwise what is not known of each would even out over a long queue, and it does not: a cluster
    has weeks of longer jobs."""
    steps = np.tile(np.arange(samples, dtype=np.float64)[:, None], (1, count))
    levels: F64 = (rng.permuted(steps, axis=0) + rng.random((samples, count))) / samples
    if common is None:
        return levels
    own = np.interp(levels, GRID, SCORE)
    together: F64 = np.interp(ALIKE * common[:, None] + math.sqrt(1 - ALIKE**2) * own, SCORE, GRID)
    return together


def common_of(samples: int, rng: np.random.Generator) -> F64:
    """(S,) how long the run times of each sample are in all, as normal scores: one in each S-th part."""
    scores: F64 = np.interp((rng.permutation(samples) + 0.5) / samples, GRID, SCORE)
    return scores
