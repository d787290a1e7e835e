"""Pods of one set into a scope: in one pass over the table, in slices, or one by one where pods look at others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import PodSet, TopologyWish, Workload
from berth.scheduling.draft import Draft
from berth.scheduling.neighbours import Who
from berth.scheduling.quota import gpu_milli
from berth.scheduling.scopes import domains_with_room
from berth.scheduling.slices import deal_slices, wider_domains
from berth.scheduling.topology import nodes_of, room_by_domain, smallest_first, spread_over
from berth.scheduling.wishes import labelled, level_of, set_wishes

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


class GrowthRoom(Protocol):
    """What a queue may still take, told pod by pod."""

    def fork(self) -> GrowthRoom:
        """The same, to be taken from on its own."""
        ...

    def open_nodes(self, milli: int) -> Mask:
        """(N,) nodes on which the queue may take one more pod of so many GPU milli."""
        ...

    def take(self, node: int, milli: int) -> None:
        """One more pod is on a node."""
        ...


class Rank(Protocol):
    """The order in which nodes are filled: lowest loss first (berth.scheduling.losses)."""

    def of_row(self, row: int, draft: Draft) -> I64:
        """(N,) for a class row; the lower the earlier."""
        ...


class AsListed:
    """Nodes in the order in which they are listed; for questions on whether something fits at all."""

    def of_row(self, row: int, draft: Draft) -> I64:
        return np.zeros(draft.columns.size, np.int64)


def place_sets(
    workload: Workload, rows: Sequence[int], order: Sequence[int], draft: Draft, scope: Mask, rank: Rank,
    room: GrowthRoom | None = None,
) -> list[int] | None:  # fmt: skip
    """Each set's minimum, one after the other; None, and the draft as it was, where one finds no room."""
    mark = draft.mark()
    set_of_put: list[int] = []
    for s in order:
        pod_set = workload.pod_sets[s]
        if not _place_set(workload, pod_set, pod_set.min_count, rows[s], draft, scope, rank, room):
            draft.undo_to(mark)
            return None
        set_of_put += [s] * (draft.mark() - mark - len(set_of_put))
    return set_of_put


def _place_set(
    workload: Workload, pod_set: PodSet, need: int, row: int, draft: Draft, scope: Mask, rank: Rank,
    room: GrowthRoom | None = None,
) -> bool:  # fmt: skip
    """Put `need` pods of a set into the draft, within a scope."""
    who = Who(workload.namespace, pod_set.labels, pod_set.pod_class)
    if room is not None or (draft.neighbours is not None and draft.neighbours.concern(who)):
        return _one_by_one(set_wishes(workload, pod_set), who, need, row, draft, scope, rank, room)
    nodes = _nodes_for(set_wishes(workload, pod_set), need, row, draft, scope, rank)
    if nodes is None:
        return False
    put_all(row, nodes, draft, who)
    return True


def _one_by_one(
    wishes: Sequence[TopologyWish], who: Who, need: int, row: int, draft: Draft, scope: Mask, rank: Rank,
    room: GrowthRoom | None = None,
) -> bool:  # fmt: skip
    """Pods that other pods or the queue keep off nodes: each looks at those before it.

    Domains are tried the tightest first, and within one the slices one after the other.
    """
    slices = next((w for w in wishes if w.slice_size), None)
    mark = draft.mark()
    for inside in _set_domains(wishes, need, row, draft, scope):
        placed = 0
        while placed < need:
            part = min(slices.slice_size, need - placed) if slices else need - placed
            domains = _slice_domains(slices, part, row, draft, inside) if slices else [inside]
            if not _some_domain(domains, part, row, who, draft, rank, room):
                break
            placed += part
        if placed == need:
            return True
        _undo(mark, who, draft, room)
    return False


def _some_domain(
    domains: Iterable[Mask], part: int, row: int, who: Who, draft: Draft, rank: Rank, room: GrowthRoom | None
) -> bool:
    """Put `part` pods, one by one, into the first of these domains that takes all of them."""
    mark = draft.mark()
    for inside in domains:
        placed = 0
        while placed < part and put_next(row, who, draft, inside, rank, room):
            placed += 1
        if placed == part:
            return True
        _undo(mark, who, draft, room)
    return False


def _undo(mark: int, who: Who, draft: Draft, room: GrowthRoom | None) -> None:
    if room is not None:
        milli = gpu_milli(who.pod_class.requests, who.pod_class.gpu_milli)
        for put in draft.puts[mark:]:
            room.take(put.node, -milli * put.count)
    draft.undo_to(mark)


def _slice_domains(wish: TopologyWish, part: int, row: int, draft: Draft, inside: Mask) -> Iterator[Mask]:
    """The domains with room for one slice, the tightest first."""
    level = level_of(wish, draft)
    if level != -1:
        for mask, _ in domains_with_room([(row, part)], level, draft, inside):
            yield mask


def put_next(row: int, who: Who, draft: Draft, inside: Mask, rank: Rank, room: GrowthRoom | None = None) -> bool:
    """One more pod on the best node that other pods and the queue leave open; False where there is none."""
    milli = gpu_milli(who.pod_class.requests, who.pod_class.gpu_milli)
    open_ = inside & (draft.copies[row] > 0)
    if draft.neighbours is not None:
        open_ = open_ & draft.neighbours.leave_open(who)
    if room is not None:
        open_ = open_ & room.open_nodes(milli)
    nodes = np.flatnonzero(open_)
    if not len(nodes):
        return False
    node = int(nodes[np.argmin(rank.of_row(row, draft)[nodes])])
    draft.put(row, node, 1, who)
    draft.recount(np.array([node], np.int64))
    if room is not None:
        room.take(node, milli)
    return True


def _set_domains(wishes: Sequence[TopologyWish], need: int, row: int, draft: Draft, scope: Mask) -> Iterator[Mask]:
    """The domains of the level that all pods of the set must share, or the scope itself."""
    levels = [level_of(w, draft) for w in wishes if not w.slice_size]
    every = [level_of(w, draft) for w in wishes]
    if -1 in every:
        return
    scope = labelled(scope, every, draft)
    if not levels:
        yield scope
        return
    for mask, _ in domains_with_room([(row, need)], max(levels), draft, scope):
        yield mask


def _nodes_for(
    wishes: Sequence[TopologyWish], need: int, row: int, draft: Draft, scope: Mask, rank: Rank
) -> list[tuple[int, int]] | None:
    """Nodes and pods on each for `need` pods of a set within a scope; None where they do not fit."""
    if need == 0:
        return []
    copies, columns = draft.copies[row], draft.columns
    order = rank.of_row(row, draft)
    slices = next((w for w in wishes if w.slice_size), None)
    whole = [level_of(w, draft) for w in wishes if not w.slice_size]
    every = [level_of(w, draft) for w in wishes]
    if -1 in every:
        return None
    scope = labelled(scope, every, draft)
    if whole:
        level = max(whole)
        if level == len(columns.topology.levels):
            nodes = np.flatnonzero(scope & (copies >= need))
            return [(int(nodes[np.argmin(copies[nodes])]), need)] if len(nodes) else None
        room = room_by_domain(copies, level, columns, scope)
        domains = list(smallest_first(room, need))
        if slices is None and domains:
            return spread_over(copies, need, scope & nodes_of(level, domains[0], columns), 0, columns, order)
        for domain in domains:
            inside = scope & nodes_of(level, domain, columns)
            if slices and (found := nodes_for_slices(slices, need, row, draft, inside, order)) is not None:
                return found
        return None
    if slices is not None:
        return nodes_for_slices(slices, need, row, draft, scope, order)
    if int(copies[scope].sum()) < need:
        return None
    return spread_over(copies, need, scope, 0, columns, order)


def nodes_for_slices(
    wish: TopologyWish, need: int, row: int, draft: Draft, scope: Mask, order: I64
) -> list[tuple[int, int]] | None:
    """Whole slices, each within one domain: the narrowest and tightest domain that takes all, else the largest first.

    Where the slices do not divide the pods, the last one is short, and goes where no whole slice would.
    """
    level, columns = level_of(wish, draft), draft.columns
    copies = draft.copies[row]
    if level == -1:
        return None
    if level == len(columns.topology.levels):
        room = np.where(scope, copies, 0).astype(np.int64)
    else:
        room = room_by_domain(copies, level, columns, scope)
    taken = deal_slices(room, need, wish.slice_size, wider_domains(level, columns))
    if taken is None:
        return None
    chosen: list[tuple[int, int]] = []
    for domain in np.flatnonzero(taken).tolist():
        if level == len(columns.topology.levels):
            chosen.append((domain, int(taken[domain])))
        else:
            inside = scope & nodes_of(level, domain, columns)
            chosen += spread_over(copies, int(taken[domain]), inside, level + 1, columns, order)
    return chosen


def put_all(row: int, nodes: Sequence[tuple[int, int]], draft: Draft, who: Who) -> None:
    for node, count in nodes:
        draft.put(row, node, count, who)
    draft.recount(np.array([node for node, _ in nodes], np.int64))
