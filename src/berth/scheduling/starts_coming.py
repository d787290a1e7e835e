"""Who may come while others wait: submissions as they came before, played once more from another moment.

Each sample takes a stretch of the past as it was, bursts and all: from about the same time of day on one of the last
days, or from anywhere where the past is shorter than that.

Shapes: S samples, C that come in each, R rows of the history.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from berth.model.history import History

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

DAY_S = 86_400.0
DAYS = 14  # that are looked back upon
ABOUT_S = 2 * 3600.0  # about the same time of day
FEWEST = 8  # submissions of which a rate is learned
SHORTEST_S = 600.0  # and how long it has to be


def coming(history: History | None, now_s: float, samples: int, most: int, rng: np.random.Generator) -> tuple[F64, I64]:
    """(S, C) seconds from now at which somebody comes, ascending, infinite past the last; and the row of the history
    that comes again, 0 past the last."""
    if history is None or len(history) < FEWEST or most == 0:
        return np.full((samples, 0), np.inf), np.zeros((samples, 0), np.int64)
    first = max(float(history.submitted_s[0]), now_s - DAYS * DAY_S)
    span = now_s - first
    if span < SHORTEST_S:
        return np.full((samples, 0), np.inf), np.zeros((samples, 0), np.int64)
    begin = int(np.searchsorted(history.submitted_s, first))
    came = history.submitted_s[begin:] - first
    days = int(span // DAY_S)
    if days >= 2:
        began = span - rng.integers(1, days + 1, samples) * DAY_S + rng.uniform(-ABOUT_S, ABOUT_S, samples)
        began = np.clip(began, 0.0, span)
    else:
        began = rng.uniform(0.0, span, samples)
    at, rows = np.full((samples, most), np.inf), np.zeros((samples, most), np.int64)
    for s, start in enumerate(began.tolist()):
        index = int(np.searchsorted(came, start, side="right"))
        which = index + np.arange(most)
        # Past the present the same past begins anew.
        at[s] = came[which % len(came)] + (which // len(came)) * span - start
        rows[s] = begin + which % len(came)
    return at, rows
