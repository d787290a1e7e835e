"""Who should run now, of those who run and those who wait, where it is known how long each still takes.

Shapes: J candidates. `left_s` is what each still has to compute, `gpus` what it holds while it does, `age_s` how long
it has been there, waiting or not.

Each candidate has a key, the least goes first, and a value; the set that fits into all GPUs with the greatest value in
all is to run:

    key   = left_s × gpus^A × (WIDE if gpus > a node's) / (1 + aging × age_s / 10^6)
    value = gpus × key^-B

With A = B = 1 and WIDE = 1 the value is 1 / left_s: as many ends a second as possible (Smith's rule; Smith 1956). As
long as nobody is passed over, walking the line gives that set; where somebody too wide is, the best filling is looked
for (a knapsack over GPUs). docs/internals/job-order.md has what was measured.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from berth.scheduling import kernels

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

A, B, WIDE = 1.03, 0.7, 0.9
SHORTEST_S = 1.0  # who has less left counts as if it had so much: what is over at once needs no order
MOST_CELLS = 20_000_000  # of the table of a filling; larger ones are walked


def keys_of(left_s: F64, gpus: I64, age_s: F64, node_gpus: int, aging: float) -> F64:
    """(J,) the less, the sooner."""
    wide = np.where(gpus > node_gpus, WIDE, 1.0)
    key: F64 = np.maximum(left_s, SHORTEST_S) * np.maximum(gpus, 1) ** A * wide / (1 + aging * age_s / 1e6)
    return key


def chosen(key: F64, gpus: I64, capacity: int) -> Mask:
    """(J,) those who should run on so many GPUs."""
    order = np.argsort(key, kind="stable")
    walked, passed_over = _walked(order, gpus, capacity)
    if not passed_over:
        return walked
    able = _able(order, gpus, capacity)
    if len(able) * (capacity + 1) > MOST_CELLS:
        return walked
    return _filled(able, gpus, gpus * key**-B, capacity)


def _walked(order: I64, gpus: I64, capacity: int) -> tuple[Mask, bool]:
    """In order, who fits; and whether somebody who does not was passed by another."""
    taken = np.zeros(len(order), bool)
    left, blocked, passed_over = capacity, False, False
    for j in order.tolist():
        if gpus[j] <= left:
            taken[j] = True
            left -= int(gpus[j])
            passed_over |= blocked
        else:
            blocked = True
        if not left:
            break
    taken |= gpus == 0  # they take nothing from anybody
    return taken, passed_over or (blocked and left > 0)


def _able(order: I64, gpus: I64, capacity: int) -> I64:
    """Those who can be of a best set: of each width the first so many as fit beside each other."""
    found = []
    for width in np.unique(gpus[gpus <= capacity]).tolist():
        some = order[gpus[order] == width]
        found.append(some[: capacity // width] if width else some)
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _filled(able: I64, gpus: I64, value: F64, capacity: int) -> Mask:
    """The set of greatest value that fits (0/1 knapsack); of equal ones the one that is found first."""
    taken = np.zeros(len(gpus), bool)
    taken[able] = kernels.filling(gpus[able], value[able], capacity)
    return taken
