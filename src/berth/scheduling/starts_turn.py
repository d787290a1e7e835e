"""Who stands where in its queue while it is played forward, where the order is by what is left to do (queue_turns.py).

The rank of a workload is the key of choice.py, of what is known at the moment at which the play begins: what the
snapshot says is left, else the part of its limit that others used of theirs, else the index of those like it
(estimates.py). Who comes is weighed as one that has computed nothing yet. Keys change by a fiftieth in eleven days, and
are not worked out anew.

Shapes: K workloads, R rows of the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.model.history import History
from berth.model.snapshot import Left
from berth.scheduling.choice import keys_of
from berth.scheduling.estimates import Estimator

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

OF_LIMIT, CASES = 0.5, 8  # the part of a limit that is taken until so many have ended, as in run_times.py
UNKNOWN = -1.0  # goes first, by age


class Standing(NamedTuple):
    """(K,) each: row of the history or -1, GPUs, since when it is there, what it has computed, its limit (infinite
    without one)."""

    row: I64
    gpus: I64
    age_s: F64
    attained_s: F64
    limit_s: F64


def ranks_of(some: Standing, history: History | None, node_gpus: int, aging: float, left_s: F64 | None = None) -> F64:
    """(K,) the least stands first. `left_s` (K,) is what is left of those of whom that is known, NaN of others."""
    left = np.full(len(some.row), np.nan) if left_s is None else left_s.copy()
    has_limit = np.isnan(left) & np.isfinite(some.limit_s)
    left[has_limit] = np.maximum(some.limit_s[has_limit] - some.attained_s[has_limit], 0.0) * _part_used(history)
    like_others = np.flatnonzero(np.isnan(left) & (some.row >= 0))
    if history is not None and len(like_others):
        asked = some.row[like_others]
        left[like_others] = Estimator().follow(history).index_of(asked, some.attained_s[like_others]).index_s
    is_known = ~np.isnan(left)
    key = keys_of(np.where(is_known, left, 1.0), some.gpus, some.age_s, node_gpus, aging)
    return np.where(is_known, key, UNKNOWN)


def left_of(identities: tuple[str, ...], known: Mapping[str, Left] | None) -> F64:
    """(K,) what the snapshot says of each, NaN where it says nothing."""
    if not known:
        return np.full(len(identities), np.nan)
    found = (known.get(identity) for identity in identities)
    return np.array([np.nan if one is None else one.left_s for one in found], np.float64)


def _part_used(history: History | None) -> float:
    if history is None or not len(history.limit_s):
        return OF_LIMIT
    ended = history.has_ended & (history.limit_s > 0) & np.isfinite(history.limit_s)
    used = history.attained_s[ended] / history.limit_s[ended]
    return float(np.median(np.minimum(used, 1.0))) if len(used) >= CASES else OF_LIMIT
