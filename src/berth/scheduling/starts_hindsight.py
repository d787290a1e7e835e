"""What earlier answers were worth: how far off they were corrects the new ones.

The model leaves out what it does not know (domains, CPU, who is given up, how this week differs from the last), so its
intervals are too narrow and may be off to one side. With y the seconds until the start and p10 to p90 what the model
says, in l(x) = log(x + 60),

    z = (l(y) - l(p50)) / s      s² = ((l(p90) - l(p50)) / 1.2816)² + 0.17², below p50 with p10 likewise

The new p50 is half of the way to the median m of z, over the first answers about workloads of which it is known by now
whether they were right, and the new p10 and p90 are as far from it as four of five z were, times a factor f. Of answers
the later ones count more, those about as many GPUs and about as long a wait too, on top of 40 cases of a model that is
right. Who still waits counts as waiting longer than so far (Kaplan and Meier 1958). This is conformal prediction with
normalised, local, fading scores (Papadopoulos 2002; Tibshirani 2019; Barber 2023).

What delays one delays all, and the next weeks are not like the last ones: no such score is exchangeable. So f is
steered by the outcome (Gibbs and Candès 2021): each first answer that turns out wrong makes it wider by 0.02 · 0.8 in
the logarithm, each that turns out right narrower by 0.02 · 0.2. As long as f stays within its bounds, the part of
answers that were right is then 0.8 in the long run, whatever happens.

Shapes: H earlier answers, the oldest first; W new ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

AROUND_S = 60.0  # differences below that hardly matter
LEAST_SPREAD = 0.17  # added, as variances are
TO_90 = 1.2816  # standard deviations from the middle to the 90 % quantile
RIGHT = 0.8  # of answers are to be
CASES = 40.0  # of a model that is right
PRIOR = np.array([NormalDist().inv_cdf((i + 0.5) / 80) for i in range(80)])
MIDDLE = 0.5  # of the way that p50 goes
SIZES = (1, 4, 8, 16)  # GPUs: classes of size end there
OTHER_SIZE = 0.5  # what an answer about another size counts for
LIKE_WAIT = 1.5  # in the logarithm: how alike waits have to be
HALVED = 150  # answers later one counts half
KEPT = 1000  # answers remembered
BEYOND = 0.5  # past the longest wait that is known
STEERED, BOUND = 0.02, 0.5  # of log f: for an answer, and at most


@dataclass(frozen=True)
class Hindsight:
    """gpus (H,); said_s (H, 3) p10, p50, p90 of the model from then on; waited_s (H,) from then to the start, or so far
    where has_started (H,) is False; wider is f."""

    gpus: I64
    said_s: F64
    waited_s: F64
    has_started: Mask
    wider: float = 1.0


NO_HINDSIGHT = Hindsight(np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros(0), np.zeros(0, bool))


def corrected(said_s: F64, gpus: I64, known: Hindsight) -> F64:
    """(W, 3) what is to be said, of what the model says."""
    if not len(said_s):
        return said_s
    middle, below, above = _scale(said_s)
    size, wait = _sizes(gpus), np.round(middle / LIKE_WAIT)
    found = said_s.copy()
    past = _Past.of(known)
    for kind in {(int(s), float(w)) for s, w in zip(size, wait, strict=True) if np.isfinite(w)}:
        some = np.flatnonzero((size == kind[0]) & (wait == kind[1]))
        for level, z in enumerate(past.levels(kind[0], kind[1] * LIKE_WAIT)):
            spread = below[some] if z < 0 else above[some]
            found[some, level] = np.exp(middle[some] + z * spread) - AROUND_S
    return np.maximum(found, 0.0)


@dataclass(frozen=True)
class _Past:
    z: F64
    has_started: Mask
    size: I64
    middle: F64
    fresh: F64  # what each counts for by its age
    wider: float

    @classmethod
    def of(cls, known: Hindsight) -> _Past:
        middle, below, above = _scale(known.said_s)
        off = np.log(known.waited_s + AROUND_S) - middle
        z = np.where(off < 0, off / below, off / above)
        fresh = 0.5 ** (np.arange(len(z), 0, -1) / HALVED)
        ok = np.isfinite(z)
        return cls(z[ok], known.has_started[ok], _sizes(known.gpus)[ok], middle[ok], fresh[ok], known.wider)

    def levels(self, size: int, wait: float) -> tuple[float, float, float]:
        """p10, p50 and p90 in z, where answers about the same size and like waits count most."""
        alike = np.exp(-0.5 * ((self.middle - wait) / LIKE_WAIT) ** 2)
        weight = np.where(self.size == size, 1.0, OTHER_SIZE) * alike * self.fresh
        weight = np.concatenate([weight, np.full(len(PRIOR), CASES / len(PRIOR))])
        z = np.concatenate([self.z, PRIOR])
        has_started = np.concatenate([self.has_started, np.ones(len(PRIOR), bool)])
        middle = MIDDLE * _quantile(z, weight, has_started, 0.5)
        off = z - middle
        known = has_started | (off > 0)  # who still waits and is not late may become early or late
        half = self.wider * _quantile(np.abs(off[known]), weight[known], has_started[known], RIGHT)
        return middle - half, middle, middle + half


def _quantile(values: F64, weight: F64, is_exact: Mask, part: float) -> float:
    """Of weighted values, some of which are only known to be larger (Kaplan and Meier)."""
    order = np.argsort(values, kind="stable")
    values, weight, is_exact = values[order], weight[order], is_exact[order]
    at_risk = np.cumsum(weight[::-1])[::-1]
    beyond = np.cumprod(np.where(is_exact, 1 - weight / np.maximum(at_risk, 1e-12), 1.0))
    if part > 1 - beyond[-1]:
        return float(values[-1]) + BEYOND
    before = np.concatenate([[1.0], beyond[:-1]])
    middle_of = (1 - (before + beyond) / 2)[is_exact]  # half of a case lies before it
    return float(np.interp(part, middle_of, values[is_exact]))


def _scale(said_s: F64) -> tuple[F64, F64, F64]:
    """Middle, and the spread below and above it, of the logarithm; of an end that no sample saw the first half is taken
    twice."""
    low, middle, high = np.log(said_s + AROUND_S).T if len(said_s) else np.zeros((3, 0))
    with np.errstate(invalid="ignore"):
        high = np.where(np.isfinite(high), high, middle + np.maximum(middle - low, 1.0))
        below, above = ((side / TO_90) ** 2 + LEAST_SPREAD**2 for side in (middle - low, high - middle))
        return middle, np.sqrt(below), np.sqrt(above)


def _sizes(gpus: I64) -> I64:
    return np.searchsorted(SIZES, gpus).astype(np.int64)


@dataclass
class _Said:
    gpus: int
    at_s: float
    said_s: tuple[float, ...]  # by the model
    told_s: tuple[float, ...]  # once corrected
    started_s: float | None = None
    is_judged: bool = False


class Record:
    """What was first said of whom, and what became of it. Later answers about who still waits are not kept: they would
    make those count most who wait longest."""

    def __init__(self) -> None:
        self._open: dict[str, _Said] = {}
        self._closed: list[_Said] = []
        self._log_wider = 0.0

    def note(
        self, identity: str, gpus: int, at_s: float, said_s: tuple[float, ...], told_s: tuple[float, ...]
    ) -> None:  # fmt: skip
        """The model said this of a workload that waits, and it was told that."""
        if identity not in self._open:
            self._open[identity] = _Said(gpus, at_s, said_s, told_s)

    def settle(self, waiting: Mapping[str, object], started_s: Mapping[str, float], now_s: float) -> None:
        """Who is not among those that wait has started (`started_s` says when), or is gone: of these nothing is
        learned."""
        outcomes: list[tuple[float, bool]] = []  # when it was known, and whether the answer was right
        for identity, said in list(self._open.items()):
            if identity in waiting:
                late_s = said.at_s + said.told_s[2]
                if now_s > late_s and not said.is_judged:
                    outcomes.append((late_s, False))
                    said.is_judged = True
                continue
            del self._open[identity]
            if (at := started_s.get(identity)) is None:
                continue
            said.started_s = at = max(at, said.at_s)
            if not said.is_judged:
                outcomes.append((at, said.told_s[0] <= at - said.at_s <= said.told_s[2]))
            self._closed.append(said)
        self._closed = self._closed[-KEPT:]
        for _, was_right in sorted(outcomes):
            step = STEERED * (RIGHT - was_right)
            self._log_wider = min(max(self._log_wider + step, -BOUND), BOUND)

    @property
    def wider(self) -> float:
        """f, as steered so far."""
        return math.exp(self._log_wider)

    def resume(self, wider: float) -> None:
        """Go on with the f of a record that is lost; nothing where this one has learned something itself, or `wider`
        is no factor."""
        if not self._closed and not self._log_wider and 0 < wider < math.inf:
            self._log_wider = min(max(math.log(wider), -BOUND), BOUND)

    def is_open(self, identity: str) -> bool:
        """Something was said of it, and it is not known yet what became of that."""
        return identity in self._open

    def hindsight(self, now_s: float) -> Hindsight:
        """All that is known at that moment."""
        every = sorted([*self._closed, *self._open.values()], key=lambda said: said.at_s)[-KEPT:]
        return Hindsight(
            np.array([said.gpus for said in every], np.int64),
            np.array([said.said_s for said in every], np.float64).reshape(len(every), 3),
            np.array([(now_s if s.started_s is None else s.started_s) - s.at_s for s in every], np.float64),
            np.array([said.started_s is not None for said in every], bool),
            self.wider,
        )
