"""How long a workload still runs, of which nobody says: what those like it took, as a distribution.

Shapes: R rows of the history, K workloads that are asked about, BINS bins of the time computed: equal in its logarithm,
from SHORTEST_S to LONGEST_S.

Who ended counts as an event in the bin of its run time; who did not, running, waiting or gone, as at risk in all bins
below the one that it has attained (Kaplan and Meier 1958: of who still runs it is known that it takes longer). From the
events and those at risk comes a hazard for each bin, the part of those who reach it that end in it, and each level
below corrects the one above as far as it has cases (Beran 1981 for neighbours):

    all           h = (events + 5 h0) / (at risk + 5)        h0 = 1 - exp(-2 · width of a bin): P(X > x) = (s / x)²
    like width    h = (events + 10 h_all) / (at risk + 10)   1, 2, 3 to 4, 5 to 8, 9 to 16 … GPUs
    neighbours    h = (Σ w events + 0.3 h_above) / (Σ w at risk + 0.3)

Neighbours are the 20 submitted before and the 20 after, of like width: of any queue, then of the same queue where there
are several, then of the same owner where there are several, with w = 1 / (places between) · (1 + (seconds between) /
20,000)^-0.7. What is learned of them spreads over four bins to either side (a bell of 0.8 bins).
docs/internals/job-order.md says what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.model.history import History
from berth.scheduling.kernels import compiled

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

BINS = 64
SHORTEST_S, LONGEST_S = 5.0, 8e6
STEP = math.log(LONGEST_S / SHORTEST_S) / BINS
EDGES = np.exp(math.log(SHORTEST_S) + STEP * np.arange(BINS + 1))

PRIOR = 1 - math.exp(-2 * STEP)  # the hazard of a bin where nobody ever ended
OF_ALL, OF_WIDTH, OF_NEIGHBOURS = 5.0, 10.0, 0.3  # cases that what stands above counts for
REACH = 20  # neighbours to either side
FADE_S, FADING = 2e4, 0.7
SPREAD = 4  # bins to either side
BELL = np.exp(-0.5 * (np.arange(-SPREAD, SPREAD + 1) / 0.8) ** 2)
BELL /= BELL.sum()
WIDTHS = 32  # classes of width: bits of the number of GPUs
NOTHING = -1  # the bin of who has shown nothing yet


@dataclass(frozen=True)
class Index:
    """(K,) each. `index_s` is Gittins': the least there is of expected seconds of computing ÷ probability of an end,
    over all times to compute for. `until_s` is what it has computed when that time is over: then it looks worse."""

    index_s: F64
    until_s: F64


def quantiles(rows: I64, history: History, parts: Sequence[float], attained_s: F64 | None = None) -> F64:
    """(K, len(parts)) seconds that each of these rows of the history still computes with at most this probability.

    `rows` (K,) as `History.rows_of` gives them; -1 is of one like all. `attained_s` (K,) is what each has computed
    so far, where it is not what the history says. Many parts (1/128, 3/128, …) are a sample that is spread evenly.
    """
    return Estimator().follow(history).quantiles(rows, parts, attained_s)


def index_of(rows: I64, history: History) -> Index:
    """Who should compute first of those of whom nobody knows what they have left: the least index.

    index = min over s of E[min(X, s) - a | X > a] / P(X <= s | X > a), a what it has computed (Gittins 1979).
    """
    return Estimator().follow(history).index_of(rows)


class Estimator:
    """Counts what is new in one history after another. What it answers is a function of the last one alone."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._history: History | None = None
        self._bins, self._attained, self._has_ended = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool)
        self._events, self._kept = np.zeros((2, WIDTHS, BINS), np.int64)
        self._width = np.zeros(0, np.int64)
        self._chains = (_Chain(), _Chain(), _Chain())  # of like width, in the queue, of the owner
        self._answered: tuple[I64, Index] | None = None

    def follow(self, history: History) -> Estimator:
        """Take in a history: the last one with other attained times and more rows, or any."""
        if self._history is not None and not _goes_on(history, self._history):
            self._begin()
        known, count = len(self._bins), len(history)
        if count > known:
            self._bins = np.append(self._bins, np.full(count - known, NOTHING))
            self._attained = np.append(self._attained, np.zeros(count - known))
            self._has_ended = np.append(self._has_ended, np.zeros(count - known, bool))
            width = widths_of(history.width[known:])
            self._width = np.append(self._width, width)
            for chain, of in zip(self._chains, (None, history.queue, history.owner), strict=True):
                chain.grow(width if of is None else of[known:] * WIDTHS + width, None if of is None else of[known:])
        new = np.flatnonzero((history.attained_s != self._attained) | (history.has_ended != self._has_ended))
        if len(new):
            bins = bins_of(history.attained_s[new])
            bins[(history.attained_s[new] <= SHORTEST_S) & ~history.has_ended[new]] = NOTHING
            _count(new, self._width, self._bins, self._has_ended, -1, self._events, self._kept)
            self._bins[new], self._has_ended[new] = bins, history.has_ended[new]
            _count(new, self._width, self._bins, self._has_ended, 1, self._events, self._kept)
            self._attained[new] = history.attained_s[new]
        if len(new) or count > known:
            self._answered = None
        self._history = history
        return self

    def quantiles(self, rows: I64, parts: Sequence[float], attained_s: F64 | None = None) -> F64:
        """As the function of this name."""
        attained = self._of(rows) if attained_s is None else attained_s
        found: F64 = _quantiles(self.hazards(rows), attained, np.asarray(parts, np.float64), EDGES)
        return found

    def index_of(self, rows: I64, attained_s: F64 | None = None) -> Index:
        """As the function of this name; `attained_s` (K,) where it is not what the history says."""
        if attained_s is not None:
            return Index(*_gittins(self.hazards(rows), attained_s, EDGES))
        if self._answered is not None and np.array_equal(self._answered[0], rows):
            return self._answered[1]
        found = Index(*_gittins(self.hazards(rows), self._of(rows), EDGES))
        self._answered = rows, found
        return found

    def hazards(self, rows: I64) -> F64:
        """(K, BINS) of those who reach a bin, the part that ends in it."""
        assert self._history is not None, "it has been told of a history"
        of_width = np.zeros((WIDTHS, BINS))
        _of_width(self._events, self._kept, BELL, of_width)
        chains = [chain for chain in self._chains if chain is self._chains[0] or chain.parts_them]
        before, after = np.array([one.before for one in chains]), np.array([one.after for one in chains])
        found: F64 = _hazards(
            rows, self._bins, self._has_ended, self._history.submitted_s, self._width, of_width, before, after, BELL
        )
        return found

    def _of(self, rows: I64) -> F64:
        return np.where(rows >= 0, self._attained[rows], 0.0) if len(self._attained) else np.zeros(len(rows))


class _Chain:
    """`before` and `after` (R,) lead from a row to the last and the next one of its kind, -1 at either end."""

    def __init__(self) -> None:
        self.before, self.after, self._last = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._least, self._most = 0, -1

    @property
    def parts_them(self) -> bool:
        """There are several queues, or owners."""
        return self._most > self._least

    def grow(self, kind: I64, of: I64 | None) -> None:
        """Rows are added, of such a kind each, and of such a queue or owner."""
        known, most = len(self.before), int(kind.max()) + 1
        self.before = np.append(self.before, np.full(len(kind), -1))
        self.after = np.append(self.after, np.full(len(kind), -1))
        if most > len(self._last):
            self._last = np.append(self._last, np.full(2 * most - len(self._last), -1))
        _link(kind, known, self._last, self.before, self.after)
        if of is not None:
            self._least = int(of.min()) if self._most < 0 else min(self._least, int(of.min()))
            self._most = max(self._most, int(of.max()))


def _goes_on(history: History, last: History) -> bool:
    """The rows of the last history are the first ones of this, whatever they have computed since."""
    count = len(last)
    columns = ((history.submitted_s, last.submitted_s), (history.width, last.width), (history.queue, last.queue),
               (history.owner, last.owner))  # fmt: skip
    return len(history) >= count and all(
        _address(new) == _address(old) or np.array_equal(new[:count], old) for new, old in columns
    )


def _address(column: NDArray[np.generic]) -> int:
    return int(column.__array_interface__["data"][0]) if column.base is not None else id(column)


def bins_of(seconds: F64) -> I64:
    """The bin of each; what is shorter or longer than all of them is in the first or last."""
    at = (np.log(np.maximum(seconds, SHORTEST_S)) - math.log(SHORTEST_S)) / STEP
    return np.clip(at.astype(np.int64), 0, BINS - 1)


def widths_of(gpus: I64) -> I64:
    """0, 1, 2, 3 to 4, 5 to 8, 9 to 16 … GPUs, as 0, 1, 2, 3, 4, 5 …"""
    return np.where(gpus > 0, np.ceil(np.log2(np.maximum(gpus, 1))).astype(np.int64) + 1, 0)


@compiled
def _link(kind: I64, known: int, last: I64, before: I64, after: I64) -> None:
    """Rows from `known` on are put at the end of the chains of their kinds."""
    for i in range(len(kind)):
        row = known + i
        before[row] = last[kind[i]]
        if before[row] >= 0:
            after[before[row]] = row
        last[kind[i]] = row


@compiled
def _count(rows: I64, width: I64, bins: I64, has_ended: Mask, sign: int, events: I64, kept: I64) -> None:
    """Add or take away rows: (WIDTHS, BINS) who ended in a bin, and who has reached it and not ended."""
    for row in rows:
        if bins[row] >= 0:
            if has_ended[row]:
                events[width[row], bins[row]] += sign
            else:
                kept[width[row], bins[row]] += sign


@compiled
def _spread(bell: F64, at: int, weight: float, events: F64) -> None:
    """Add a case to the bins around it."""
    reach = len(bell) // 2
    for d in range(-reach, reach + 1):
        events[min(max(at + d, 0), len(events) - 1)] += weight * bell[d + reach]


@compiled
def _of_cases(events: F64, kept: F64, above: F64, worth: float, hazard: F64) -> None:
    """Events over those at risk, corrected by what stands above, which counts for so many cases. `kept` are those who
    have reached a bin and not ended."""
    at_risk = 0.0
    for b in range(len(events) - 1, -1, -1):
        at_risk += events[b]
        hazard[b] = (events[b] + worth * above[b]) / (at_risk + worth)
        at_risk += kept[b]


@compiled
def _of_width(events: I64, kept: I64, bell: F64, hazard: F64) -> None:
    """Fills (WIDTHS, BINS). The first row is of all: nobody asks for what takes no GPU in a history of GPUs."""
    widths, count = hazard.shape
    prior, of_all, spread = np.full(count, PRIOR), np.zeros(count), np.zeros(count)
    for b in range(count):
        _spread(bell, b, float(events[:, b].sum()), spread)
    _of_cases(spread, kept.sum(axis=0).astype(np.float64), prior, OF_ALL, of_all)
    for w in range(widths):
        spread[:] = 0.0
        for b in range(count):
            if events[w, b]:
                _spread(bell, b, float(events[w, b]), spread)
        _of_cases(spread, kept[w].astype(np.float64), of_all, OF_WIDTH, hazard[w])


@compiled
def _hazards(
    rows: I64, bins: I64, has_ended: Mask, submitted: F64, width: I64, of_width: F64, before: I64, after: I64, bell: F64
) -> F64:
    """(K, BINS), level after level of neighbours: `before` and `after` (L, R) lead from one to the next of each."""
    levels, count = len(before), of_width.shape[1]
    found = np.empty((len(rows), count))
    events, kept, above = np.zeros(count), np.zeros(count), np.zeros(count)
    for k in range(len(rows)):
        row = rows[k]
        if row < 0:
            found[k] = of_width[0]
            continue
        found[k] = of_width[width[row]]
        for level in range(levels):
            events[:], kept[:], above[:] = 0.0, 0.0, found[k]
            for side in range(2):
                other, places = row, 0
                while places < REACH:
                    other = before[level, other] if side == 0 else after[level, other]
                    if other < 0:
                        break
                    places += 1
                    if bins[other] < 0:
                        continue
                    weight = (1 + abs(submitted[other] - submitted[row]) / FADE_S) ** -FADING / places
                    if has_ended[other]:
                        _spread(bell, bins[other], weight, events)
                    else:
                        kept[bins[other]] += weight
            _of_cases(events, kept, above, OF_NEIGHBOURS, found[k])
    return found


@compiled
def _from(hazard: F64, attained: float, edges: F64) -> tuple[int, float]:
    """The bin of what has been attained, and the hazard of what is left of it."""
    b = 0
    while b < len(hazard) - 1 and attained >= edges[b + 1]:
        b += 1
    part = 1.0
    if attained > edges[0] and b < len(hazard) - 1:
        part = min(max(math.log(edges[b + 1] / attained) / math.log(edges[b + 1] / edges[b]), 0.02), 1.0)
    return b, hazard[b] * part


@compiled
def _gittins(hazard: F64, attained: F64, edges: F64) -> tuple[F64, F64]:
    """(K,) index, and what has been computed at the s that gives it. In the last bin everybody ends."""
    count = hazard.shape[1]
    index, until = np.full(len(hazard), np.inf), np.full(len(hazard), np.inf)
    for k in range(len(hazard)):
        a = attained[k]
        first, of_first = _from(hazard[k], a, edges)
        there, ended, spent = 1.0, 0.0, 0.0
        for b in range(first, count):
            h = 1.0 if b == count - 1 else of_first if b == first else hazard[k, b]
            begins, ends = max(edges[b], a), max(edges[b + 1], a * 1.1)
            mass = there * h
            ended += mass
            spent += mass * (math.sqrt(begins * ends) - a)
            there -= mass
            value = (spent + there * (ends - a)) / max(ended, 1e-300)
            if value < index[k]:
                index[k], until[k] = value, ends
    return index, until


@compiled
def _quantiles(hazard: F64, attained: F64, parts: F64, edges: F64) -> F64:
    """(K, Q) seconds until as many have ended; within a bin evenly in the logarithm."""
    count = hazard.shape[1]
    found = np.zeros((len(hazard), len(parts)))
    for k in range(len(hazard)):
        a = attained[k]
        first, of_first = _from(hazard[k], a, edges)
        for q in range(len(parts)):
            there = 1.0
            for b in range(first, count):
                h = 1.0 if b == count - 1 else of_first if b == first else hazard[k, b]
                begins, ends = max(edges[b], a), max(edges[b + 1], a * 1.1)
                if there * (1 - h) <= 1 - parts[q] or b == count - 1:
                    part = (there - (1 - parts[q])) / (there * h) if h > 0 else 0.0
                    found[k, q] = begins * (ends / begins) ** min(max(part, 0.0), 1.0) - a
                    break
                there *= 1 - h
    return found
