"""The packing experiment with moves: a pod that found no place may be given one by moving others, within a budget.

Arrivals are decided in slices, as a live scheduler's cycles would: the slice is placed, then each pod of it that
found no place may cause moves (berth.scheduling.relocation). All slices share one round of the core, so without
moves the placements are those of one cycle over all arrivals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from berth.scheduling.headroom import ONE
from berth.scheduling.placing import place_run
from berth.scheduling.policy import Policy
from berth.scheduling.relocation import make_room
from berth.scheduling.round import Round
from berth.scheduling.standing import Standing
from berth.scheduling.tables import Tables
from berth.simulation.offer import Changes, Offer, Placements
from berth.simulation.own import snapshot_of

SLICE = 100  # arrivals between two looks at those that found no place


def placements(offer: Offer, percent: float = 1.0, policy: Policy | None = None, arrivals: int = SLICE) -> Placements:
    """Where the core puts the offered pods, and its moves.

    At most `percent` % of the GPU milli placed so far are moved, and for a pod no more than it asks for. Nobody
    is tried again after its slice: the experiment has no queue.
    """
    policy = policy or Policy()
    now = Round.of(snapshot_of(offer, known_demand=not policy.learn_arrivals), policy, Tables())
    count = len(offer.class_of)
    moving = _Moving(now, offer, percent)
    first = Placements(np.full(count, -1, np.int64), np.zeros(count, np.int64))
    order = np.arange(count)
    for begin in range(0, count, arrivals):
        run = order[begin : begin + arrivals]
        binds, waiting = len(now.binds), len(now.waiting)
        place_run(run, now)
        for pods, _, nodes, devices in now.binds[binds:]:
            first.node[pods], first.gpus[pods] = nodes, devices
            moving.bound(pods, nodes, devices)
        if percent > 0:
            for p in now.waiting[waiting:]:
                moving.make_room_for(p, before=int(run[-1]) + 1)
    columns = np.array(moving.changes, np.int64).reshape(-1, 4).T
    return Placements(first.node, first.gpus, Changes(*(np.ascontiguousarray(c) for c in columns)))


class _Moving:
    """The pods that run, and what was moved so far."""

    def __init__(self, now: Round, offer: Offer, percent: float) -> None:
        count = len(offer.class_of)
        self.now, self.percent = now, percent
        self.standing = Standing(
            row=now.first_row.copy(),
            node=np.full(count, -1, np.int64),
            devices=np.zeros(count, np.int64),
            milli=now.milli,
            may_move=np.zeros(count, bool),
            who=[None] * count,
        )
        self.placed = self.moved = 0
        self.changes: list[tuple[int, int, int, int]] = []
        self._version = 0
        self._failed: dict[int, int] = {}  # class row -> version of the cluster in which nothing could be moved for it

    def bound(self, pods, nodes, devices) -> None:
        """Pods run from now on."""
        self.standing.node[pods], self.standing.devices[pods] = nodes, devices
        self.standing.may_move[pods] = True
        self.placed += int(self.standing.milli[pods].sum())
        self._version += 1

    def make_room_for(self, p: int, before: int) -> None:
        """Move what is cheapest so that a pod fits, if the budget allows it."""
        standing, draft = self.standing, self.now.draft
        row, milli = int(standing.row[p]), int(standing.milli[p])
        budget = min(milli, int(self.placed * self.percent / 100) - self.moved)
        if not milli or budget < 0 or self._failed.get(row) == self._version:
            return
        found = make_room([row], standing, draft, self.now.losses, budget, accepts=self._worth_it(milli))
        if found is None:
            self._failed[row] = self._version
            return
        draft.commit()
        for move in found.moves:
            standing.node[move.pod], standing.devices[move.pod] = move.node, move.devices
            self.changes.append((before, move.pod, move.node, move.devices))
        self.changes.append((before, p, found.node[0], found.devices[0]))
        self.moved += found.milli
        self.bound(np.array([p]), found.node[0], found.devices[0])

    def _worth_it(self, milli: int) -> Callable[[], bool]:
        """Whether what is placed outweighs what the room that it takes, and the moves, cost the others."""
        market = self.now.losses.market(self.now.draft)
        quantum = self.now.policy.quantum
        before = int(market.book.value.sum())
        return lambda: (before - int(market.book.value.sum())) * quantum / ONE <= milli
