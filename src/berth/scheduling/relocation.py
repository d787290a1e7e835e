"""Room for a pod that fits nowhere: the cheapest pods to move, each with its new place. Nothing is executed.

The rules of a move:
- all pods that move stand on the one node that the waiting pod then gets;
- each goes to room that is free before any has left, so it can run in its new place before it stops in the old;
- the cost is the GPU milli that they hold; fewer pods win where it is equal, then the first node;
- pods that must not move (standing.Standing.may_move) stay.

1 list     the cheapest sets of pods on each node without which the waiting pod fits there (compiled, bounded)
2 prove    the cheapest first: every pod of the set is put in its new place in the draft, depth first over the
           places, then the set is lifted and the waiting pod put; a set that cannot be settled is undone whole

Within its bounds the answer is the cheapest there is by these rules, except that a pod of several devices
takes those that kernels.choose_devices gives it. Sets over several nodes, and chains in which a pod makes room
for a pod that makes room, are not looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from berth.model.reasons import Block
from berth.scheduling import kernels
from berth.scheduling.draft import Draft
from berth.scheduling.kernels import compiled, copies_on, take
from berth.scheduling.neighbours import Who
from berth.scheduling.sets import Rank
from berth.scheduling.standing import Standing

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

NO_SET = 2**62


@dataclass(frozen=True)
class Bounds:
    """How far the search may go: what it does not find within them it does not deny."""

    pods: int = 4  # moved for one waiting pod
    sets_per_node: int = 16
    steps_per_node: int = 20_000  # sets looked at
    sets_tried: int = 64  # in the draft
    places_tried: int = 64  # for each set


@dataclass(frozen=True)
class Move:
    """A pod (its index in Standing) goes to a node and to these devices (a bit mask)."""

    pod: int
    node: int
    devices: int


@dataclass(frozen=True)
class Relocation:
    """Moves in the order in which they can be carried out; then the waiting pods' nodes and devices.

    `milli` is the GPU milli that move; `proven`: nothing cheaper exists by the rules above, for the first pod
    that did not fit, and for each further one given those before it.
    """

    moves: tuple[Move, ...]
    node: tuple[int, ...]
    devices: tuple[int, ...]
    milli: int
    proven: bool


def make_room(
    rows: Sequence[int],
    standing: Standing,
    draft: Draft,
    rank: Rank,
    budget: int,
    where: Mask | None = None,
    bounds: Bounds | None = None,
    who: Who | None = None,
    accepts: Callable[[], bool] | None = None,
) -> Relocation | None:
    """Place waiting pods in the draft, by moves of at most `budget` GPU milli; or leave it as it was.

    `rows` are their class rows, all of them or none: one after the other, each where it costs least after those
    before it. On success the transaction is open (commit or drop it); the draft's puts are the new places of
    all pods, its lifts the old ones. `where` (N,) are the nodes that the waiting pods may use. `accepts` is asked
    when a pod and what moves for it are in place; where it says no the next set is tried. Limits of queues are the
    caller's.
    """
    assert not draft.puts and not draft.lifts, "a transaction of its own"
    if who is not None and draft.neighbours is not None and draft.neighbours.concern(who):
        return None
    search = _Search(draft, _copy(standing), rank, where, bounds or Bounds(), who, accepts)
    for row in rows:
        if not search.place(row, budget - search.milli):
            draft.drop()
            return None
    return Relocation(tuple(search.moves), tuple(search.node), tuple(search.devices), search.milli, search.proven)


def _copy(standing: Standing) -> Standing:
    """What is moved once must not move again: the search notes it in a copy."""
    return replace(standing, may_move=standing.may_move.copy())


@dataclass
class _Search:
    draft: Draft
    standing: Standing
    rank: Rank
    where: Mask | None
    bounds: Bounds
    who: Who | None
    accepts: Callable[[], bool] | None = None
    moves: list[Move] = field(default_factory=list)
    node: list[int] = field(default_factory=list)
    devices: list[int] = field(default_factory=list)
    milli: int = 0
    proven: bool = True
    steps: int = 0
    refused: bool = False  # the set at hand, by `accepts`
    _order: dict[int, list[int]] = field(default_factory=dict)

    def place(self, row: int, budget: int) -> bool:
        """One waiting pod: where it fits as things are, else with the cheapest moves."""
        self._order.clear()
        for n in self._nodes_for(row):
            if self.where is None or self.where[n]:
                self._seat(row, n)
                return True
        return any(self._settle(row, n, pods) for n, pods in self._sets(row, budget))

    def _seat(self, row: int, n: int) -> None:
        self.draft.put(row, n, who=self.who)
        self.draft.recount(np.array([n], np.int64))
        self.node.append(n)
        self.devices.append(self.draft.puts[-1].devices[0])

    def _sets(self, row: int, budget: int) -> Iterator[tuple[int, list[int]]]:
        """Sets to try, the cheapest first."""
        draft, standing, bounds = self.draft, self.standing, self.bounds
        open_ = np.asarray(draft.tables.static[row] == Block.Nothing)
        if self.where is not None:
            open_ = open_ & self.where
        able = standing.may_move & (standing.milli <= budget)
        somewhere = np.asarray(draft.copies.max(axis=1) > 0)  # a pod that fits nowhere cannot leave
        pods = np.flatnonzero(able)
        pods = pods[somewhere[standing.row[pods]] & open_[standing.node[pods]]]
        if not len(pods):
            return
        cpu = draft.tables.need[standing.row[pods], 0]
        keys = (pods, standing.devices[pods], standing.row[pods], -cpu, standing.milli[pods], standing.node[pods])
        pods = pods[np.lexsort(keys)]
        nodes, begin = np.unique(standing.node[pods], return_index=True)
        shape = (len(nodes), bounds.sets_per_node)
        cost, size = np.full(shape, NO_SET, np.int64), np.zeros(shape, np.int64)
        members = np.full((*shape, bounds.pods), -1, np.int64)
        cut = np.zeros(len(nodes), bool)
        cheapest_sets(
            row, budget, bounds.steps_per_node, nodes, np.append(begin, len(pods)),
            standing.row[pods], standing.devices[pods], standing.milli[pods],
            draft.tables.need, draft.tables.ask, draft.free, draft.device_free, draft.columns.island,
            draft.columns.pool, cost, size, members, cut,
        )  # fmt: skip
        self.proven &= not cut.any()
        there = np.argwhere(cost < NO_SET)
        at = (there[:, 0], there[:, 1])
        for tried, best in enumerate(np.lexsort((there[:, 1], there[:, 0], size[at], cost[at])).tolist()):
            if tried == bounds.sets_tried:
                self.proven = False
                return
            i, s = there[best].tolist()
            yield int(nodes[i]), pods[members[i, s, : size[i, s]]].tolist()
            if s == bounds.sets_per_node - 1:
                self.proven = False  # it failed, and the node may have had more

    def _settle(self, row: int, n: int, pods: list[int]) -> bool:
        """Put the pods elsewhere and the waiting one in; or leave the draft as it was."""
        self.steps, self.refused = self.bounds.places_tried, False
        standing = self.standing
        largest_first = sorted(pods, key=lambda p: (-int(standing.milli[p]), p))
        to: list[Move] = []
        if self._move(row, n, largest_first, to):
            self.moves += to
            self.milli += int(standing.milli[pods].sum())
            standing.may_move[pods] = False
            return True
        self.proven &= self.steps > 0
        return False

    def _move(self, row: int, n: int, pods: list[int], to: list[Move]) -> bool:
        draft, standing = self.draft, self.standing
        if len(to) == len(pods):
            return self._swap(row, n, pods)
        p = pods[len(to)]
        own, mask = int(standing.row[p]), int(standing.devices[p])
        for target in self._nodes_for(own):
            if draft.copies[own, target] <= 0:
                continue
            for devices in self._devices(own, target, mask if target == n else 0):
                if self.steps <= 0:
                    return False
                self.steps -= 1
                mark = draft.mark()
                draft.put_on(own, target, devices, standing.who[p])
                draft.recount(np.array([target], np.int64))
                to.append(Move(p, target, devices))
                if self._move(row, n, pods, to):
                    return True
                to.pop()
                draft.undo_to(mark)
                if self.refused:
                    return False  # other places are worse by the rank
        return False

    def _swap(self, row: int, n: int, pods: list[int]) -> bool:
        """All have a new place: they leave, and the waiting pod comes if there is room now."""
        draft, standing = self.draft, self.standing
        mark = len(draft.lifts)
        for p in pods:
            draft.lift(int(standing.row[p]), n, int(standing.devices[p]), standing.who[p])
        draft.recount(np.array([n], np.int64))
        if draft.copies[row, n] > 0:
            put = draft.mark()
            self._seat(row, n)
            if self.accepts is None or self.accepts():
                return True
            self.refused = True
            draft.undo_to(put)
            self.node.pop()
            self.devices.pop()
        draft.set_down(mark)
        return False

    def _nodes_for(self, row: int) -> list[int]:
        """Nodes on which a class fits as things are before the waiting pod's turn, lowest loss first."""
        if row not in self._order:
            fits = np.flatnonzero(self.draft.copies[row] > 0)
            if len(fits):
                fits = fits[np.argsort(self.rank.of_row(row, self.draft)[fits], kind="stable")]
            self._order[row] = fits.tolist()
        return self._order[row]

    def _devices(self, row: int, n: int, own: int) -> Iterator[int]:
        """Devices that a pod of a class could take: each level of one device, else the kernel's choice."""
        draft = self.draft
        resource, count, milli, joined = draft.tables.ask[row].tolist()
        if not count or draft.columns.pool[n] != resource:
            yield 0
            return
        left = draft.device_free[n]
        if count > 1:
            yield int(kernels.choose_devices(left, draft.columns.island[n], count, milli, joined))
            return
        seen: set[int] = set()
        for g in np.argsort(left, kind="stable").tolist():
            if left[g] >= milli and int(left[g]) not in seen and not own >> g & 1:
                seen.add(int(left[g]))
                yield 1 << g


@compiled
def cheapest_sets(m, budget, steps, nodes, first, row, devices, milli, need, ask, free, device_free, island,  # type: ignore[no-untyped-def]
                  pool, cost, size, members, cut):  # fmt: skip
    """The cheapest sets of pods on each node without which a pod of class m fits there.

    nodes (K,); first (K + 1,): the pods of nodes[i] are first[i]:first[i + 1] of row, devices and milli, the
    cheapest first, like ones side by side. A set has at most members.shape[2] pods and `budget` milli.
    Writes cost and size (K, S), NO_SET where there is none, and members (K, S, most), positions; by cost, then
    size, then position. cut (K,) is set where `steps` sets were looked at and some were not.
    """
    keep, most = cost.shape[1], members.shape[2]
    stack = np.empty(most, np.int64)
    for i in range(nodes.shape[0]):
        n = nodes[i]
        begin, end = first[i], first[i + 1]
        amounts, left = free[n].copy(), device_free[n].copy()
        for p in range(begin, end):
            take(-1, devices[p], need[row[p]], ask[row[p]], amounts, left, pool[n])
        copies, _ = copies_on(need[m], ask[m], amounts, left, island[n], pool[n])
        if copies == 0:
            continue  # not even without all of them
        amounts, left = free[n].copy(), device_free[n].copy()
        depth, spent, p, looked = 0, 0, begin, 0
        while True:
            if depth == most or p == end or spent + milli[p] > min(budget, cost[i, keep - 1]):
                if depth == 0:
                    break
                depth -= 1
                p = stack[depth]
                take(1, devices[p], need[row[p]], ask[row[p]], amounts, left, pool[n])
                spent -= milli[p]
                p += 1
                continue
            before = stack[depth - 1] if depth > 0 else begin - 1
            if p - 1 > before and row[p] == row[p - 1] and devices[p] == devices[p - 1]:
                p += 1  # the one before it is like it, and was left out
                continue
            if looked == steps:
                cut[i] = True
                break
            looked += 1
            take(-1, devices[p], need[row[p]], ask[row[p]], amounts, left, pool[n])
            stack[depth] = p
            spent += milli[p]
            depth += 1
            copies, _ = copies_on(need[m], ask[m], amounts, left, island[n], pool[n])
            if copies > 0:
                s = keep
                while s > 0 and (cost[i, s - 1] > spent or (cost[i, s - 1] == spent and size[i, s - 1] > depth)):
                    s -= 1
                if s < keep:
                    for t in range(keep - 1, s, -1):
                        cost[i, t], size[i, t] = cost[i, t - 1], size[i, t - 1]
                        members[i, t] = members[i, t - 1]
                    cost[i, s], size[i, s] = spent, depth
                    for d in range(depth):
                        members[i, s, d] = stack[d]
            p += 1
