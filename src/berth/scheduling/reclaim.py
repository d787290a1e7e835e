"""Who is owed room by its queue's share, and whose work may leave for it: docs/internals/fair-share.md.

Amounts are value milli, as in shares.py. Shapes: Q queues of the ledger, P pods of the roster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import Workload

if TYPE_CHECKING:
    from berth.scheduling.future import Future
    from berth.scheduling.quota import Ledger
    from berth.scheduling.roster import Roster
    from berth.scheduling.round import Round
    from berth.scheduling.shares import Shares

Float = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

ROUNDING = 0.5  # value milli: less than the smallest part of a device
MOST_ACROSS = 16  # jobs that stand across a queue's line and are looked at one by one


@dataclass
class Owed:
    """What queues hold against what they are due, for one cycle.

    queue  (P,) the queue that pays for each pod, -1 where it is not known
    value  (P,) what each pod holds
    unit   (P,) code of what leaves together: a gang that leaves whole, or the pod alone
    """

    ledger: Ledger
    shares: Shares
    future: Future
    queue: I64
    value: Float
    unit: I64
    now_s: float
    _chains: dict[int, list[int]] = field(default_factory=dict)
    _guarded: dict[int, Mask | None] = field(default_factory=dict)

    @classmethod
    def of(cls, now: Round, shares: Shares, future: Future) -> Owed:
        roster, ledger = future.roster, now.ledger
        crowd, columns = now.draft.tables.crowd, now.draft.columns
        payers = ledger.payers
        of_payer = np.array([ledger.index.get(payers.of(*payer), -1) for payer in crowd.payers] or [-1], np.int64)
        gpu_class = np.append(columns.gpu_class, -1)[roster.node]
        count = len(roster.node)
        alone = np.arange(count) + len(roster.least)
        return cls(
            ledger, shares, future, of_payer[crowd.payer] if count else crowd.payer,
            roster.milli * shares.worth[gpu_class], np.where(roster.gang >= 0, roster.gang, alone), now.snapshot.now_s,
        )  # fmt: skip

    @property
    def roster(self) -> Roster:
        return self.future.roster

    def held(self) -> Float:
        """(Q,) what queues hold without the pods that are on their way out."""
        held = self.shares.held_now(self.ledger)
        gone = np.flatnonzero(self.future.gone & (self.queue >= 0))
        for q in np.unique(self.queue[gone]).tolist():
            held[self._chain(q)] -= self.value[gone[self.queue[gone] == q]].sum()
        return held

    def _chain(self, q: int) -> list[int]:
        if q not in self._chains:
            self._chains[q] = self.ledger.chain(q)
        return self._chains[q]

    def entitled(self, q: int, need: float, held: Float) -> list[int]:
        """The queues from `q` upwards that hold no more than they are due with so much more, up to the first that
        would."""
        found = []
        for above in self._chain(q):
            if held[above] + need > self.shares.due[above] + ROUNDING:
                break
            found.append(above)
        return found

    @cached_property
    def _holders(self) -> list[int]:
        """Queues whose work runs."""
        return np.unique(self.queue[self.queue >= 0]).tolist()  # type: ignore[no-any-return]

    def lenders(self, entitled: Sequence[int], q: int, held: Float) -> dict[int, list[int]]:
        """Queues of which work may leave for one in `q`, each with the queues of its chain that have to stay above
        what they are due."""
        mine = self._chain(q)
        over = held > self.shares.due + ROUNDING
        found = {}
        for other in self._holders:
            if other == q or not over[other] or not self.ledger.queues[other].is_stated:
                continue
            theirs = [x for x in self._chain(other) if x not in mine]
            needed = [x for x in mine if x not in self._chain(other)]
            if theirs and needed and all(over[x] for x in theirs) and needed == list(entitled)[: len(needed)]:
                found[other] = theirs
        return found

    # ---- whose work leaves

    def candidates(self, workload: Workload, lenders: dict[int, list[int]], is_any: bool) -> Mask:
        """(P,) pods of these queues that may be asked to leave."""
        roster = self.roster
        mask = roster.may_leave & ~self.future.gone & np.isin(self.queue, list(lenders))
        mask &= self.now_s - roster.started_s >= roster.min_runtime_s
        if not is_any:
            mask &= roster.priority < workload.priority
        found: Mask = mask & (self.value > 0)
        return found

    def keeps_due(self, pods: I64, lenders: dict[int, list[int]], held: Float) -> bool:
        """No queue falls below what it is due without these pods."""
        left = held.copy()
        for q in np.unique(self.queue[pods]).tolist():
            theirs = lenders.get(q)
            if theirs is None:
                return False
            left[theirs] -= self.value[pods[self.queue[pods] == q]].sum()
        touched = sorted({x for q in np.unique(self.queue[pods]).tolist() for x in lenders[q]})
        return bool((left[touched] >= self.shares.due[touched] - ROUNDING).all())

    def beyond(self, mask: Mask, lenders: dict[int, list[int]], held: Float) -> Iterator[Mask]:
        """(P,) each, pods that may leave all together, the gentlest first: of each queue those of lowest priority, then
        those who started last, down to what it is due; then with the smallest of each queue that stands across that
        line; then with one other such at a time."""
        roster, due = self.roster, self.shares.due
        left = held.copy()
        found = np.zeros(len(mask), bool)
        units = self._units(mask)
        order = sorted(units, key=lambda u: (int(roster.priority[units[u][0]]), -float(roster.started_s[units[u][0]])))
        across: list[tuple[float, int, int]] = []  # value, place in the order, unit
        for unit in order:
            pods = units[unit]
            q = int(self.queue[pods[0]])
            value = float(self.value[pods].sum())
            theirs = lenders[q]
            if (left[theirs] - value >= due[theirs] - ROUNDING).all():
                left[theirs] -= value
                found[pods] = True
            else:
                across.append((value, len(across), unit))
        if found.any():
            yield found
        smallest, others = found.copy(), []
        for value, _, unit in sorted(across):
            pods = units[unit]
            theirs = lenders[int(self.queue[pods[0]])]
            if (left[theirs] > due[theirs] + ROUNDING).all():
                left[theirs] -= value
                smallest[pods] = True
            else:
                others.append(pods)
        if (smallest != found).any():
            yield smallest
        for pods in others[:MOST_ACROSS]:
            one = found.copy()
            one[pods] = True
            if self._still_beyond(one, lenders, held, pods):
                yield one

    def _still_beyond(self, one: Mask, lenders: dict[int, list[int]], held: Float, across: I64) -> bool:
        """Without the pods of `one` but those across the line a queue holds more than it is due."""
        q = int(self.queue[across[0]])
        mine = one & (self.queue == q)
        mine[across] = False
        left = held[lenders[q]] - float(self.value[mine].sum())
        return bool((left > self.shares.due[lenders[q]] + ROUNDING).all())

    def _units(self, mask: Mask) -> dict[int, I64]:
        """Pods by what leaves together; whether all of a gang may is asked by the search (allowance.py)."""
        some = np.flatnonzero(mask)
        by_unit = some[np.argsort(self.unit[some], kind="stable")]
        codes, first = np.unique(self.unit[by_unit], return_index=True)
        return dict(zip(codes.tolist(), np.split(by_unit, first[1:]), strict=True)) if len(codes) else {}

    # ---- whose does not

    @cached_property
    def guarantees(self) -> list[tuple[int, Mask]]:
        """Queues that state a quota, and (P,) the pods within it: of highest priority first, then those who started
        first."""
        found = []
        roster = self.roster
        for q, queue in enumerate(self.ledger.queues):
            if not queue.quota or self.shares.base[q] <= 0:
                continue
            below = np.array([q in self._chain(int(x)) for x in range(len(self.ledger.queues))])
            mine = np.flatnonzero((self.queue >= 0) & below[self.queue] & (self.value > 0) & ~roster.ending)
            order = mine[np.lexsort((roster.started_s[mine], -roster.priority[mine]))]
            within = np.zeros(len(self.queue), bool)
            within[order[np.cumsum(self.value[order]) <= self.shares.base[q] + ROUNDING]] = True
            found.append((q, within))
        return found

    def guarded(self, q: int) -> Mask | None:
        """(P,) pods that leave for no priority of this queue's: those of other queues that somebody wrote, as far as
        it is one itself, and those within the guarantee of another. The same object for the same queue."""
        if q not in self._guarded:
            self._guarded[q] = self._guarded_from(q)
        return self._guarded[q]

    def _guarded_from(self, q: int) -> Mask | None:
        masks = [within for other, within in self.guarantees if other not in self._chain(q)]
        if self.ledger.queues[q].is_stated:
            stated = np.array([*(queue.is_stated for queue in self.ledger.queues), False])
            masks.append(stated[self.queue] & (self.queue != q))
        return np.logical_or.reduce(masks) if masks else None
