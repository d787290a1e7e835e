"""Which stops pay: who of those that run and should not leaves now, and for whom.

A stop costs what the stopped one computes again or pays for its next start; not stopping costs the time for which those
who should run wait, and nobody knows how long that would be: somebody else may end in a moment. So nobody is stopped
before those who would start have waited as long in all, `cost_s` for each that leaves (ski rental: Karlin et al. 1988;
then what is paid is at most twice what would have been best).

Shapes: T who wait and should run, the first to start first; V who run and should not, the first to leave first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.kernels import compiled

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

ROUNDING_S = 1e-6
LEAST_S = 1.0  # nobody asks again sooner


@dataclass(frozen=True)
class Stops:
    """`starts` (T,) are those that find room, `leaves` (V,) those that are stopped for them. `again_s` is how long it
    takes until another stop pays, if nothing happens before."""

    starts: Mask
    leaves: Mask
    again_s: float


def stops_that_pay(gpus: I64, waited_s: F64, held: I64, free: int, node_gpus: int, cost_s: float) -> Stops:
    """What may happen now. `gpus` (T,) is asked for by those who have waited for `waited_s` (T,), `held` (V,) is what
    those have that may leave, `free` what nobody has. One leaves alone, or the first few together, or the first few of
    those that hold a node or more; of those that pay the one that is overdue by most, then the next."""
    starts, leaves = np.zeros(len(gpus), bool), np.zeros(len(held), bool)
    again = _pay(gpus, waited_s, held, free, node_gpus, cost_s, starts, leaves)
    return Stops(starts, leaves, max(float(again), LEAST_S))


@compiled
def _pay(
    gpus: I64, waited: F64, held: I64, free: int, node_gpus: int, cost: float, starts: Mask, leaves: Mask
) -> float:
    """Marks who starts and who leaves; seconds until another stop pays."""
    for t in range(len(gpus)):
        if gpus[t] <= free:
            starts[t] = True
            free -= gpus[t]
    again, count = np.inf, len(held)
    group, best = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    while True:
        most, again = 0.0, np.inf
        for kind in range(3 * count):
            many = _group(kind, held, leaves, node_gpus, group)
            if not many:
                continue
            room, waiting, begins = free, 0.0, 0
            for v in range(count):
                room += held[v] if group[v] else 0
            for t in range(len(gpus)):
                if not starts[t] and gpus[t] <= room:
                    room -= gpus[t]
                    waiting += waited[t]
                    begins += 1
            if not begins:
                continue
            if waiting < cost * many - ROUNDING_S:
                again = min(again, (cost * many - waiting) / begins)
            elif (waiting + 1) / (cost * many + 1) > most:
                most, best[:] = (waiting + 1) / (cost * many + 1), group
        if not most:
            return float(again)
        for v in range(count):
            if best[v]:
                leaves[v] = True
                free += held[v]
        for t in range(len(gpus)):
            if not starts[t] and gpus[t] <= free:
                starts[t] = True
                free -= gpus[t]


@compiled
def _group(kind: int, held: I64, leaves: Mask, node_gpus: int, group: Mask) -> int:
    """Fills (V,): one, the first few that are there, the first few that hold a node or more; how many, 0 where it is
    one of the other kinds."""
    count = len(held)
    group[:] = False
    if kind < count:
        group[kind] = not leaves[kind]
        return int(group[kind])
    many, wanted = 0, kind % count + 1
    for v in range(count):
        if many < wanted and not leaves[v] and (kind < 2 * count or held[v] >= node_gpus):
            group[v] = True
            many += 1
    return many if many == wanted and many > 1 else 0
