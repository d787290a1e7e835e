"""What earlier answers were worth: how far off they were corrects the new ones.

The model leaves out what it does not know (domains, CPU, who is given up, that run times of one owner are alike), so
its intervals are too narrow and may be off to one side. With y the seconds until the start, p10 to p90 what was said,
and

    z = (log(y + 60) - log(p50 + 60)) / s        s = (log(p90 + 60) - log(p10 + 60)) / 2.563, 0.1 at least

the new p10 and p90 are where the 10 and 90 % quantiles of z say, of the answers that are known to have been right or
wrong, and p50 goes half of the way to their median: of those with as many GPUs and about as long a wait more than of
others, and on top of 20 cases of a model whose intervals are a fourth too narrow. Who still waits counts as waiting
longer than so far (Kaplan and Meier 1958). This is conformal prediction with normalised, local scores (Papadopoulos
2002; Tibshirani 2019). What delays one delays all, so that many answers are worth few cases, and the coverage is
measured, not proven.

Shapes: H earlier answers, the oldest first; W new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

AROUND_S = 60.0  # differences below that hardly matter
LEAST_SPREAD = 0.1
WIDTH_OF_80 = 2.563  # standard deviations from the 10 to the 90 % quantile
PRIOR = np.array([NormalDist(0, 1.3).inv_cdf((i + 0.5) / 20) for i in range(20)])
CASES = 40.0  # that all answers together count for at most
MIDDLE = 0.5  # of the way that p50 goes
LEVELS = (0.1, 0.5, 0.9)
SIZES = (1, 4, 8, 16)  # GPUs: classes of size end there
OTHER_SIZE = 0.15  # what an answer about another size counts for
LIKE_WAIT = 1.0  # in the logarithm: how alike waits have to be
KEPT = 2000  # answers remembered
APART = 1.5  # a workload is asked about again for the record once it has waited so many times as long
BEYOND = 0.5  # past the longest wait that is known


@dataclass(frozen=True)
class Hindsight:
    """gpus (H,); said_s (H, 3) p10, p50, p90 from then on; waited_s (H,) from then to the start, or so far where
    has_started (H,) is False."""

    gpus: I64
    said_s: F64
    waited_s: F64
    has_started: Mask


NO_HINDSIGHT = Hindsight(np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros(0), np.zeros(0, bool))


def corrected(said_s: F64, gpus: I64, known: Hindsight) -> F64:
    """(W, 3) what is to be said, of what the model says."""
    if not len(said_s):
        return said_s
    middle, spread = _scale(said_s)
    size, wait = _sizes(gpus), np.round(middle / LIKE_WAIT)
    found = said_s.copy()
    past = _Past.of(known)
    for kind in {(int(s), float(w)) for s, w in zip(size, wait, strict=True) if np.isfinite(w)}:
        some = np.flatnonzero((size == kind[0]) & (wait == kind[1]))
        shift = past.quantiles(kind[0], kind[1] * LIKE_WAIT)
        found[some] = np.exp(middle[some, None] + spread[some, None] * shift) - AROUND_S
    return np.maximum(found, 0.0)


@dataclass(frozen=True)
class _Past:
    z: F64
    has_started: Mask
    size: I64
    middle: F64

    @classmethod
    def of(cls, known: Hindsight) -> _Past:
        middle, spread = _scale(known.said_s)
        z = (np.log(known.waited_s + AROUND_S) - middle) / spread
        usable = np.isfinite(z)
        order = np.argsort(z[usable], kind="stable")
        size = _sizes(known.gpus)
        return cls(z[usable][order], known.has_started[usable][order], size[usable][order], middle[usable][order])

    def quantiles(self, size: int, wait: float) -> F64:
        """(3,) of z, where those of the same size and like waits count most."""
        weight = np.where(self.size == size, 1.0, OTHER_SIZE) * np.exp(-0.5 * ((self.middle - wait) / LIKE_WAIT) ** 2)
        weight *= min(1.0, CASES / max(float(weight.sum()), 1e-12))
        z = np.concatenate([self.z, PRIOR])
        weight = np.concatenate([weight, np.ones(len(PRIOR))])
        has_started = np.concatenate([self.has_started, np.ones(len(PRIOR), bool)])
        order = np.argsort(z, kind="stable")
        z, weight, has_started = z[order], weight[order], has_started[order]
        at_risk = np.cumsum(weight[::-1])[::-1]
        waits_on = np.cumprod(np.where(has_started, 1 - weight / np.maximum(at_risk, 1e-12), 1.0))
        before = np.concatenate([[1.0], waits_on[:-1]])
        middle_of = (1 - (before + waits_on) / 2)[has_started]  # half of a case lies before it
        found = np.interp(LEVELS, middle_of, z[has_started])
        low, middle, high = np.where(np.array(LEVELS) > 1 - waits_on[-1], z[-1] + BEYOND, found)
        middle = MIDDLE * middle
        return np.array([min(low, middle), middle, max(high, middle)])


def _scale(said_s: F64) -> tuple[F64, F64]:
    """Middle and spread of the logarithm; of an end that no sample saw the first half is taken twice."""
    low, middle, high = np.log(said_s + AROUND_S).T if len(said_s) else np.zeros((3, 0))
    with np.errstate(invalid="ignore"):
        high = np.where(np.isfinite(high), high, middle + np.maximum(middle - low, 1.0))
        return middle, np.maximum((high - low) / WIDTH_OF_80, LEAST_SPREAD)


def _sizes(gpus: I64) -> I64:
    return np.searchsorted(SIZES, gpus).astype(np.int64)


@dataclass
class _Said:
    gpus: int
    at_s: float
    said_s: tuple[float, ...]
    started_s: float | None = None


class Record:
    """What was said of whom, and what became of it. Of each workload only answers that lie well apart are kept."""

    def __init__(self) -> None:
        self._open: dict[str, list[_Said]] = {}
        self._closed: list[_Said] = []

    def note(self, identity: str, gpus: int, at_s: float, said_s: tuple[float, ...]) -> None:
        """The model said this of a workload that waits."""
        some = self._open.setdefault(identity, [])
        first = some[0].at_s if some else at_s
        if not some or at_s - some[-1].at_s > max(AROUND_S, (APART - 1) * (some[-1].at_s - first)):
            some.append(_Said(gpus, at_s, said_s))

    def settle(self, waiting: Mapping[str, object], started_s: Mapping[str, float]) -> None:
        """Who is not among those that wait has started (`started_s` says when), or is gone: of these nothing is
        learned."""
        for identity in [one for one in self._open if one not in waiting]:
            some = self._open.pop(identity)
            if (at := started_s.get(identity)) is not None:
                for said in some:
                    said.started_s = max(at, said.at_s)
                self._closed += some
        self._closed = self._closed[-KEPT:]

    def hindsight(self, now_s: float) -> Hindsight:
        """All that is known at that moment; of those that wait still the latest, as many as there is room for."""
        still = [said for some in self._open.values() for said in some]
        still = sorted(still, key=lambda said: said.at_s)[-KEPT:]
        every = [*self._closed, *still]
        if not every:
            return NO_HINDSIGHT
        return Hindsight(
            np.array([said.gpus for said in every], np.int64),
            np.array([said.said_s for said in every], np.float64).reshape(len(every), 3),
            np.array([(now_s if s.started_s is None else s.started_s) - s.at_s for s in every], np.float64),
            np.array([said.started_s is not None for said in every]),
        )
