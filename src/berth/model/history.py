"""What workloads are known to have run, of the past and of those there now, as columns.

Shapes: R rows in order of submission; of one instant in the order in which they were told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Ended(Struct, frozen=True, gc=False):
    """A workload that did all that it had to, as the cluster still tells of it: what it held, from when to when."""

    identity: str
    namespace: str
    queue: str = ""  # the one that it named
    milli: int = 0
    priority: int = 0
    time_limit_s: float = 0.0
    created_s: float = 0.0
    started_s: float = 0.0
    ended_s: float = 0.0


@dataclass(frozen=True, eq=False)
class History:
    """Run times as far as they are known at the moment of the snapshot, never more.

    submitted_s  (R,) ascending
    attained_s   (R,) seconds that each has computed so far, over all its starts; waiting and starting are not in it
    has_ended    (R,) it computed all that it had to; False for who waits, runs, was given up or failed
    width        (R,) whole GPUs of all its pods
    queue, owner (R,) numbers that tell queues and owners apart; all 0 where there is one, or none is known
    rows         identity of a workload → its row; of those who wait or run at least. A number that is no row yet is
                 of one that has not been submitted.
    limit_s      (R,) run-time limits, 0.0 where there is none; (0,) where nobody told
    priority     (R,) of each; (0,) where nobody told
    queues       names of the queues by their numbers; () where nobody told
    """

    submitted_s: Float
    attained_s: Float
    has_ended: Mask
    width: Int
    queue: Int
    owner: Int
    rows: Mapping[str, int] = field(default_factory=dict)
    limit_s: Float = field(default_factory=lambda: np.zeros(0))
    priority: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    queues: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.submitted_s)

    def rows_of(self, identities: Sequence[str]) -> Int:
        """(K,) the row of each, -1 of those that are not here."""
        count = len(self)
        found = (self.rows.get(one, -1) for one in identities)
        return np.fromiter((row if row < count else -1 for row in found), np.int64, len(identities))
