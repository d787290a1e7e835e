"""Step 4, where it is allowed: who waits because what is free is scattered gets room by moves of a few pods.

Only work is moved that loses little and starts again by itself: pods that a controller makes again, that may be asked
to leave, have run for their least time, and say how often they save their work or when they last did; no part of a gang
that leaves whole. Each moved pod has a place that is free now (relocation.py). What a move costs is the GPU hours of
work that are lost with it, a restart among them, and all moves of a time together cost no more than
`Snapshot.moves_hours`: a source says how much of its budget is left (docs/internals/defragmentation.md).

One workload a cycle: the next snapshot knows what came of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Allocation
from berth.model.hold import Hold, Leaving, Place
from berth.scheduling import holds
from berth.scheduling.allowance import Allowances
from berth.scheduling.making_room import made
from berth.scheduling.plan import Eviction, Rule
from berth.scheduling.quota import milli_of
from berth.scheduling.relocation import Bounds, Relocation
from berth.scheduling.relocation import make_room as relocate
from berth.scheduling.reservation import passing
from berth.scheduling.shapes import shape
from berth.scheduling.standing import Standing, standing_of

if TYPE_CHECKING:
    from berth.scheduling.roster import Roster
    from berth.scheduling.round import Round

I64 = NDArray[np.int64]

MOST_PODS = 64  # of a workload for which others are moved
MOST_MOVED = 8  # pods from one node
UNITS = 3_600_000  # GPU milli seconds in a GPU hour: what moves cost is counted in these


def repack(now: Round) -> None:
    """Writes the moves for the first workload that they help into the round: evictions, and a hold."""
    budget = int(now.snapshot.moves_hours * UNITS)
    if budget <= 0 or now.evictions or not now.policy.evicts:
        return
    with passing(tuple(now.reserved), now):
        _repack(budget, now)


def _repack(budget: int, now: Round) -> None:
    hopefuls = [w for w in now.waiting if _may_be_moved_for(w, now)]
    if not hopefuls:
        return
    roster = now.draft.tables.roster()
    allowances = Allowances(roster, now.snapshot.budgets, roster.ending.copy())
    exhausted = allowances.exhausted()
    cost = _costs(roster, now)
    standing = standing_of(now.snapshot, now.draft, lambda a: not is_movable(a, now.snapshot.now_s))
    standing = replace(standing, milli=cost, may_move=standing.may_move & ~exhausted & (roster.gang < 0))
    hopeless: set[object] = set()
    for w in hopefuls:
        alike = shape(w, now)
        if alike in hopeless or now.over_limit(w) is not None:
            continue
        found = _moves(w, budget, standing, allowances, now)
        if found is not None:
            _record(w, found, cost, now)
            return
        hopeless.add(alike)


def is_movable(a: Allocation, now_s: float) -> bool:
    """It loses little, and a controller starts it again."""
    saves = a.checkpoint_every_s > 0 or a.last_checkpoint_s > 0
    settled = now_s - a.started_s >= a.min_runtime_s
    return a.is_controlled and a.preemptible is not False and not a.is_ending and saves and settled


def _may_be_moved_for(w: int, now: Round) -> bool:
    """As many GPUs as it needs are free, and it found no room all the same; it waits for nothing else."""
    workload = now.workloads[w]
    if w in now.refused or w in now.kept_off or w in now.making or w in now.holds or not now.milli[w]:
        return False
    if any(s.topology for s in workload.pod_sets) or workload.topology or workload.pod_count > MOST_PODS:
        return False
    usable = (now.draft.tables.static[list(now.rows[w])] == 0).all(axis=0)
    free = now.draft.device_free[usable & ~now.draft.columns.suspect]
    return int(free[free > 0].sum()) >= milli_of(workload, minimum=True)


def _costs(roster: Roster, now: Round) -> I64:
    """(P,) GPU milli seconds of work that are lost with each pod."""
    lost_s = roster.lost_s(now.snapshot.now_s) + now.policy.restart_s
    cost: I64 = np.maximum(np.ceil(lost_s * roster.milli), 1).astype(np.int64)
    return cost


def _moves(w: int, budget: int, standing: Standing, allowances: Allowances, now: Round) -> Relocation | None:
    """The cheapest moves by which all of its minimum finds room. The draft is as it was."""
    draft = now.draft
    rows = [now.rows[w][s] for s in _largest_first(w, now)]
    where = now.allowed(w) & ~draft.columns.suspect & ~now.booked.shut(w, draft.columns.size)
    found = relocate(rows, standing, draft, now.losses, budget, where, Bounds(pods=MOST_MOVED))
    draft.drop()
    if found is None or not found.moves:
        return None
    moved = np.array([move.pod for move in found.moves], np.int64)
    return None if allowances.beyond(moved).any() else found


def _largest_first(w: int, now: Round) -> list[int]:
    """The pod set of each pod of its minimum."""
    sets = now.workloads[w].pod_sets
    order = sorted(range(len(sets)), key=lambda s: -int(now.milli_of_rows[now.rows[w][s]]))
    return [s for s in order for _ in range(sets[s].min_count)]


def _record(w: int, found: Relocation, cost: I64, now: Round) -> None:
    workload, roster, index = now.workloads[w], now.draft.tables.roster(), now.draft.columns.nodes
    pods = [move.pod for move in found.moves]
    places: dict[tuple[int, int], int] = {}
    for s, n in zip(_largest_first(w, now), found.node, strict=True):
        places[s, n] = places.get((s, n), 0) + 1
    leaving = [roster.allocations[p] for p in pods]
    until_s = now.snapshot.now_s + now.policy.hold_s + max(a.grace_s for a in leaving)
    now.making[w] = made([int(roster.node[p]) for p in pods], len(pods), until_s, tuple(sorted(set(found.node))))
    hold = Hold(
        workload.identity,
        tuple(Place(workload.pod_sets[s].name, index[n].name, count) for (s, n), count in places.items()),
        workload.uid,
        tuple(Leaving(a.namespace, a.name, a.uid, a.workload_identity) for a in leaving),
        until_s,
    )
    now.new_holds.append(hold)
    now.evictions += [
        Eviction(a, w, float(cost[p]) / UNITS, Rule.Moved) for p, a in zip(pods, leaving, strict=True)
    ]  # fmt: skip
    if kept := holds.kept_of(hold, w, workload, now.draft):
        now.hold(kept)
