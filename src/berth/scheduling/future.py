"""The cluster as it will be once all that has been asked to leave has left, and all for whom room is held have come.

Room is looked for here and not in the present, so that nobody leaves for what becomes free anyway, and no room is
promised twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from berth.scheduling import kernels
from berth.scheduling.columns import settle
from berth.scheduling.draft import Draft, Put
from berth.scheduling.neighbours import Who
from berth.scheduling.roster import Roster

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass
class Future:
    """`gone` (P,) are the pods of the roster that will have left; `mixed` nodes on which pods have been put.

    mask (P,) are the devices that each pod has for itself once they have.
    """

    draft: Draft
    roster: Roster
    gone: Mask
    mask: I64
    mixed: set[int] = field(default_factory=set)
    _masks: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)  # of nodes counted anew

    @classmethod
    def of(cls, draft: Draft, roster: Roster, leaving: Iterable[int], mixed: Iterable[int]) -> Future:
        """From the present without what holds keep. `leaving` pods go, beside those that are ending.

        `mixed` are the nodes on which pods were put in this cycle.
        """
        future = cls(draft.copy(), roster, np.zeros(len(roster.node), bool), roster.mask.copy(), set(mixed))
        goes = roster.ending.copy()
        goes[list(leaving)] = True
        if goes.any():
            future.vacate(np.flatnonzero(goes))
            future.commit(np.flatnonzero(goes))
        return future

    def vacate(self, pods: I64) -> None:
        """Pods of the roster leave, within the transaction that is open."""
        by_node: dict[int, list[int]] = defaultdict(list)
        for p in pods.tolist():
            by_node[int(self.roster.node[p])].append(p)
        for n, here in by_node.items():
            self._vacate(n, here)
        if by_node:
            self.draft.recount(np.array(sorted(by_node), np.int64))

    def release(self, pods: I64) -> None:
        """Pods of the roster leave for good. Where who holds what is known for sure nothing is counted anew."""
        sure = pods[self._is_sure[self.roster.node[pods]]]
        rest = pods[~self._is_sure[self.roster.node[pods]]]
        if len(sure):
            draft, roster = self.draft, self.roster
            kernels.release(
                sure, roster.node, roster.kind, self.mask, roster.need, roster.ask, draft.free, draft.device_free,
                draft.columns.pool,
            )  # fmt: skip
            draft.recount(roster.node[sure])
            self.gone[sure] = True
        if len(rest):
            self.vacate(rest)
            self.commit(rest)

    @cached_property
    def _is_sure(self) -> Mask:
        """(N,) nodes on which every pod names its devices and has them to itself, and nobody looks at other pods."""
        roster, size = self.roster, self.draft.columns.size
        if self.draft.neighbours is not None:
            return np.zeros(size, bool)
        ask = roster.ask[roster.kind]
        counted = (roster.node >= 0) & (self.draft.columns.pool[roster.node] == ask[:, 0]) & (ask[:, 1] > 0)
        doubtful = counted & ~(roster.is_named & (np.bitwise_count(self.mask) == ask[:, 1]))
        sure: Mask = np.bincount(roster.node[doubtful], minlength=size) == 0
        return sure

    def lift(self, pods: I64) -> None:
        """Pods leave for a trial: their devices are taken to be those that the snapshot tells."""
        draft = self.draft
        for p in pods.tolist():
            n = int(self.roster.node[p])
            free, left = draft.free[n].copy(), draft.device_free[n].copy()
            self._take(-1, p, free, left, n)
            draft.vacate(n, free, left, [self._who(p)] if draft.neighbours is not None else [])

    def _vacate(self, n: int, pods: Sequence[int]) -> None:
        """Counted anew where nobody was put: what the next snapshot will say of devices is then what is said here."""
        draft, roster = self.draft, self.roster
        who = [self._who(p) for p in pods] if draft.neighbours is not None else []
        if n in self.mixed:
            free, left = draft.free[n].copy(), draft.device_free[n].copy()
            for p in pods:
                self._take(-1, p, free, left, n)
            draft.vacate(n, free, left, who)
            return
        going = set(pods)
        stay = [p for p in roster.on(n).tolist() if not self.gone[p] and p not in going]
        settled = settle(draft.columns, n, [roster.allocations[p] for p in stay])
        self._masks[n] = stay, settled.masks
        draft.vacate(n, settled.free, settled.left, who)

    def _take(self, sign: int, p: int, free: I64, left: NDArray[np.int32], n: int) -> None:
        roster = self.roster
        kernels.take(
            sign, self.mask[p], roster.need[roster.kind[p]], roster.ask[roster.kind[p]], free, left,
            self.draft.columns.pool[n],
        )  # fmt: skip

    def _who(self, p: int) -> Who:
        a = self.roster.allocations[p]
        return Who(a.namespace, a.labels, a.pod_class)

    def can_stay(self, pods: Sequence[int]) -> bool:
        """These pods, which have left, fit beside all that is there now: then they stay, and True is told."""
        draft, roster = self.draft, self.roster
        after: dict[int, tuple[I64, NDArray[np.int32]]] = {}
        for p in pods:
            n = int(roster.node[p])
            if n not in after:
                after[n] = draft.free[n].copy(), draft.device_free[n].copy()
            kind = roster.kind[p]
            if draft.neighbours is not None and not draft.neighbours.leave_open(self._who(p))[n]:
                return False
            fits = kernels.put_what_fits(
                1, roster.need[kind], roster.ask[kind], *after[n], draft.columns.island[n], draft.columns.pool[n]
            )
            if not fits:
                return False
        for n, (free, left) in after.items():
            back = [self._who(p) for p in pods if roster.node[p] == n] if draft.neighbours is not None else []
            draft.bring_back(n, free, left, back)
        return True

    def doubtful(self) -> Mask:
        """(P,) pods of nodes on which more devices are asked for than are there: who holds which is not known."""
        roster, pool = self.roster, self.draft.columns.pool
        ask = roster.ask[roster.kind]
        counted = (roster.node >= 0) & ~self.gone & (ask[:, 1] > 0) & (pool[roster.node] == ask[:, 0])
        nodes = np.zeros(len(pool) + 1, bool)
        nodes[roster.node[counted & (np.bitwise_count(self.mask) != ask[:, 1])]] = True
        mask: Mask = nodes[roster.node]
        return mask

    def commit(self, pods: I64) -> list[Put]:
        """Keep what was put, and that these pods have left."""
        self.gone[pods] = True
        for n in np.unique(self.roster.node[pods]).tolist() if len(pods) else ():
            stay, masks = self._masks.get(n, ((), ()))
            self.mask[list(stay)] = masks
        self._masks.clear()
        puts = self.draft.commit()
        self.mixed.update(put.node for put in puts)
        return puts
