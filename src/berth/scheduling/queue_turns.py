"""Who should run now, queue by queue: what is left to do decides within a queue, shares decide between queues.

As time_sharing.py has it, but that each queue chooses among those of its own who wait, and of what it holds only what
may be set aside: work that says that it may be asked to leave and how often it saves what it does. What else it holds
stays where it is. GPUs that are free are there for every queue; whose they become the order of the queues decides.
docs/internals/job-order.md, On a live cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Allocation
from berth.scheduling.time_sharing import Choice, Turn, Weighed, choice_of, places, weighed, who_leaves

if TYPE_CHECKING:
    from berth.scheduling.round import Round

Mask = NDArray[np.bool_]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class QueueTurn(Turn):
    """Who should run in each queue: `queue` (W,) pays for who waits, `payer` (P,) for pods that run; -1: nobody who
    waits has to do with that queue."""

    queue: I64
    payer: I64

    def may_leave(self, w: int, milli: int) -> Iterator[Mask]:
        """As Turn, those of its own queue alone."""
        mine = self.payer == self.queue[w]
        for mask in super().may_leave(w, milli):
            yield mask & mine


def is_saver(held: Allocation) -> bool:
    """It says that it may be asked to leave, and how often it saves what it does."""
    return held.preemptible is True and held.checkpoint_every_s > 0


def queue_turn_of(now: Round) -> QueueTurn:
    """Who is not known goes first, by age: it asks for no GPU, or has begun."""
    payer = _payers(now)
    among, of_running = _of_savers(weighed(now), payer, now)
    count, waits, queue = len(now.workloads), among.waits, now.queue.astype(np.int64)
    of = np.concatenate([queue[waits], of_running])
    should, starts, moves = (np.zeros(len(of), bool) for _ in range(3))
    leaves, holds_s = np.zeros(len(of), bool), np.inf
    for q in np.unique(of[among.is_waiting]).tolist():
        here = np.flatnonzero(of == q)
        choice = choice_of(here, among, now)
        should[here], starts[here] = choice.should, choice.starts
        leaves[here], moves[here] = choice.leaves, choice.moves
        holds_s = min(holds_s, choice.holds_s)
    should[of < 0] = True  # nobody who waits has to do with that queue
    line = np.argsort(np.argsort(now.waits.created_s, kind="stable"), kind="stable").astype(np.float64) - count
    line[waits] = places(among, should)
    whole = Choice(should, starts, leaves, moves, holds_s)
    return QueueTurn(line, *who_leaves(among, whole), now.snapshot.now_s + holds_s, queue, payer)


def _of_savers(among: Weighed, payer: I64, now: Round) -> tuple[Weighed, I64]:
    """Those who wait, and of those who run the ones that may be set aside; the queue that pays for each of these."""
    held, of_pod = now.draft.tables.roster().allocations, among.of_pod
    waits, count = len(among.waits), len(among.key)
    saves = np.array([now.policy.savers_leave and is_saver(a) for a in held], bool)
    kept = np.ones(count, bool)
    kept[of_pod[(of_pod >= 0) & ~saves]] = False
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    queue, weighed_pods = np.full(count, -1, np.int64), np.flatnonzero(of_pod >= 0)[::-1]
    queue[of_pod[weighed_pods]] = payer[weighed_pods]  # that of its first pod
    return Weighed(
        among.waits, number[of_pod], among.milli[kept], among.key[kept], among.priority[kept], among.holds_s[kept],
        among.soonest_s,
    ), queue[waits:][kept[waits:]]  # fmt: skip


def _payers(now: Round) -> I64:
    """(P,) the queue that pays for each pod, -1 where it is none of those that are known here."""
    crowd, ledger = now.draft.tables.crowd, now.ledger
    of_payer = [ledger.index.get(ledger.payers.of(*payer), -1) for payer in crowd.payers]
    found: I64 = np.array([*of_payer, -1], np.int64)[crowd.payer]
    return found
