"""What found no room in this cycle, so that nobody who asks the same is tried in vain.

While a cycle decides, room only goes: what is placed takes of it. A gang that found none says so for all that are like
it and come behind; a single pod whose class no node takes any more says so for its class. Where room may have come back
(a hold is given up, somebody passed into a place in time) all of it is forgotten. Where placing is a search, it holds
only as long as nothing has been placed since.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from berth.scheduling.round import Round

Mask = NDArray[np.bool_]
Passing = tuple[int, ...]  # workloads whose places in time are free for who asks


class Vain:
    """Of one cycle."""

    def __init__(self) -> None:
        self._gangs: dict[Hashable, bool] = {}
        self._rows: dict[Passing, Mask] = {}  # (M,) by the places in time that are free
        self._known: tuple[Sequence[Passing], Mask] | None = None

    def forget(self) -> None:
        """Room may have come back."""
        self._gangs.clear()
        self._rows.clear()
        self._known = None

    def gang(self, w: int, closed: bytes, passing: Passing, now: Round) -> Hashable:
        """All that it depends on whether a gang finds room, beside the room; None where that is not told here: where it
        has a place of its own, or pods look at each other."""
        if w in now.holds or now.booked.booked or now.draft.neighbours is not None:
            return None
        workload = now.workloads[w]
        since = len(now.binds) if len(workload.pod_sets) > 1 else -1
        room = now.ledger.room(int(now.queue[w])).tobytes() if now.is_bounded(w) else b""
        weaker = tuple(kept.workload for kept in now.weaker(w)) if now.holds else ()
        return (now.number(w), workload.topology, workload.has_begun, room, closed, passing, weaker, since)

    def add_gang(self, what: Hashable, proven: bool) -> None:
        """It found no room; not `proven` where its search ended at its bound."""
        if what is not None:
            self._gangs[what] = proven

    def knows_gang(self, what: Hashable) -> bool | None:
        """Whether it is proven that such a gang finds no room; None where that is not known."""
        return self._gangs.get(what) if what is not None else None

    def has_row(self, row: int, passing: Passing, now: Round) -> bool:
        """No node takes a pod of the class, where these places in time are free for it."""
        found = self._found_none(passing, now)
        if not found[row] and not np.count_nonzero(now.draft.copies[row]) and not self._may_open(row, passing, now):
            found[row] = True
            self._known = None
        return bool(found[row])

    def has_gang(self, w: int, passing: Passing, now: Round) -> bool:
        """Some pod that a gang starts with finds no node, where these places in time are free for it."""
        starts = (row for row, s in zip(now.rows[w], now.workloads[w].pod_sets, strict=True) if s.min_count)
        return not now.holds and any(self.has_row(row, passing, now) for row in starts)

    def _may_open(self, row: int, passing: Passing, now: Round) -> bool:
        """Nodes may take the class where these places are free: what has been placed since takes room only."""
        if len(passing) > 1:
            return True  # together they may open what none does alone
        return any(bool(now.reserved[other].opens[row]) for other in passing)

    def known(self, kinds: Sequence[Passing], now: Round) -> Mask:
        """(K, M) the classes that no node takes for whom these are the passages, as far as is known."""
        if self._known is None or self._known[0] is not kinds:
            self._known = kinds, np.array([self._found_none(passing, now) for passing in kinds])
        return self._known[1]

    def add_rows(self, passing: Passing, now: Round) -> None:
        """The classes that no node takes where these places are free, as they are at the moment."""
        found = self._found_none(passing, now)
        found |= ~now.draft.copies.any(axis=1)
        self._known = None

    def _found_none(self, passing: Passing, now: Round) -> Mask:
        found = self._rows.get(passing)
        if found is None:
            found = self._rows[passing] = np.zeros(len(now.draft.copies), bool)
        return found
