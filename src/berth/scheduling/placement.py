"""Where a gang goes: all of its minimum, or nothing.

1 scopes   the domains that may hold the whole workload: those of the required level, tightest first; without
           a required level the narrowest domains that hold it (from the preferred level outwards), then anywhere
2 sets     within a scope the pod sets, the hardest to place first, each into a domain of its own where it asks
3 search   where the sets got in each other's way, a bounded exact search
4 grow     above the minimum, as far as the same scope allows
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from berth.model.topology import HOST_LABEL
from berth.model.workload import PodSet, TopologyWish, Workload
from berth.scheduling.draft import Draft
from berth.scheduling.exact import Part, search
from berth.scheduling.neighbours import Who
from berth.scheduling.quota import gpu_milli
from berth.scheduling.topology import deal_slices, nodes_of, room_by_domain, smallest_first, spread_over

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

MOST_PERMUTED = 4  # sets
MOST_SCOPES = 64  # domains tried for a gang of several pod sets before the answer is "not proven"


@dataclass(frozen=True)
class Bound:
    """How far the exact search may go before it says that it does not know."""

    steps: int = 20_000


@dataclass
class Tried:
    """What came of placing a gang. `proven` is False where a search ended at its bound."""

    placed: bool
    proven: bool = True
    scope: str = ""  # the domain that it went to, "" where it is not in one
    set_of_put: list[int] = field(default_factory=list)  # pod set of each of the draft's puts


def place_gang(
    workload: Workload,
    rows: Sequence[int],
    draft: Draft,
    allowed: Mask,
    rank: Rank,
    room: GrowthRoom | None = None,
    bounds_minimum: bool = False,
) -> Tried:
    """Put a workload's pods into the draft, or leave the draft as it was.

    `rows` are the class rows of its pod sets, `allowed` (N,) the nodes that its queue may use for its minimum,
    `room` bounds what it may take above the minimum, and with `bounds_minimum` the minimum too.
    """
    hardest_first = sorted(
        (s for s, pod_set in enumerate(workload.pod_sets) if pod_set.count),
        key=lambda s: (-_weight(workload.pod_sets[s]), s),
    )
    proven = True
    orders = _orders(workload, hardest_first)
    for scope, name in _scopes(workload, rows, draft, allowed):
        room_here = room.fork() if room is not None else None
        bound = room_here if bounds_minimum else None
        set_of_put = _place_sets(workload, rows, hardest_first, draft, scope, rank, bound)
        if set_of_put is None and not bounds_minimum and (len(hardest_first) > 1 or draft.neighbours is not None):
            for order in orders:
                found, set_of_put = _search(workload, rows, order, draft, scope)
                proven = proven and found
                if set_of_put is not None:
                    break
        if set_of_put is not None:
            _grow(workload, rows, hardest_first, draft, scope, rank, set_of_put, room_here)
            if whole_level(workload, draft) is None:
                _grow(workload, rows, hardest_first, draft, allowed, rank, set_of_put, room_here)
            if draft.puts:
                return Tried(True, True, name, set_of_put)
    return Tried(False, proven)


def _orders(workload: Workload, hardest_first: Sequence[int]) -> list[Sequence[int]]:
    """The orders of sets that the exact search tries: all (few) of them where pods want to be near other sets'."""
    if not any(s.pod_class.near for s in workload.pod_sets) or len(hardest_first) > MOST_PERMUTED:
        return [hardest_first]
    return [hardest_first, *(o for o in permutations(hardest_first) if list(o) != list(hardest_first))]


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
    """The order in which nodes are filled: lowest loss first (berth.scheduling.scoring)."""

    def of_row(self, row: int, draft: Draft) -> I64:
        """(N,) for a class row; the lower the earlier."""
        ...


class AsListed:
    """Nodes in the order in which they are listed; for questions on whether something fits at all."""

    def of_row(self, row: int, draft: Draft) -> I64:
        return np.zeros(draft.columns.size, np.int64)


def whole_level(workload: Workload, draft: Draft) -> int | None:
    """Index of the narrowest level that the whole workload is required to share; None where there is none.

    -1 stands for a level that the cluster does not know. A single pod set's own wish for all of its pods is the
    same as the workload's.
    """
    levels = [level_of(w, draft) for w in _whole_wishes(workload) if w.required]
    if not levels:
        return None
    return -1 if -1 in levels else max(levels)


def _whole_wishes(workload: Workload) -> list[TopologyWish]:
    """Wishes of all pods for one domain: the workload's, and those of a set that is the only one."""
    own = workload.pod_sets[0].topology if len(workload.pod_sets) == 1 else ()
    return [w for w in (*workload.topology, *own) if not w.slice_size]


def set_wishes(workload: Workload, pod_set: PodSet) -> tuple[TopologyWish, ...]:
    """Required wishes of one set: its own, and slices that the whole workload asks for, which every set is cut into."""
    sliced = [w for w in workload.topology if w.slice_size]
    return tuple(w for w in (*pod_set.topology, *sliced) if w.required)


def level_of(wish: TopologyWish, draft: Draft) -> int:
    """Index of the wished level; the number of levels stands for the host; -1 for one that is not known."""
    topology = draft.columns.topology
    if wish.level in (HOST_LABEL, "host", "hostname"):
        return len(topology.levels)
    return topology.find(wish.level)


def _scopes(workload: Workload, rows: Sequence[int], draft: Draft, allowed: Mask) -> Iterator[tuple[Mask, str]]:
    levels = len(draft.columns.topology.levels)
    required = whole_level(workload, draft)
    if required == -1:
        return
    sets = [(rows[s], pod_set.min_count) for s, pod_set in enumerate(workload.pod_sets) if pod_set.min_count]
    if not sets:
        sets = [(rows[s], 1) for s, p in enumerate(workload.pod_sets) if p.count][:1]
    if required is not None:
        # A node that lacks the label of any required level is in no domain of it.
        for wish in _whole_wishes(workload):
            if wish.required and (level := level_of(wish, draft)) < levels:
                allowed = allowed & (draft.columns.domain[level] >= 0)
        for of_class in (*_by_class(sets, draft, allowed), allowed):
            yield from _domains(sets, required, draft, of_class)
        return
    near = [level_of(w, draft) for w in _whole_wishes(workload) if not w.required]
    asks_gpus = any(_weight(s) for s in workload.pod_sets)
    if workload.is_gang and (asks_gpus or near):
        everyone = [(rows[s], pod_set.count) for s, pod_set in enumerate(workload.pod_sets) if pod_set.count]
        # First where all pods have room together, then where the least of them do.
        for needs in [everyone, sets] if everyone != sets else [sets]:
            for of_class in (*_by_class(needs, draft, allowed), allowed):
                for level in range(levels, -1, -1):
                    yield from _domains(needs, level, draft, of_class, most=1)
                if of_class is not allowed and _have_room(needs, draft, of_class):
                    yield of_class, ""
            if _have_room(needs, draft, allowed):
                yield allowed, ""
    yield allowed, ""


def _have_room(sets: Sequence[tuple[int, int]], draft: Draft, mask: Mask) -> bool:
    return all(int(draft.copies[row][mask].sum()) >= need for row, need in sets)


def _by_class(sets: Sequence[tuple[int, int]], draft: Draft, allowed: Mask) -> list[Mask]:
    """The nodes of each GPU class that has room for all sets, the tightest first.

    A gang runs as fast as its slowest GPU. Sets without GPUs may run anywhere. Empty where there is one class only.
    """
    columns = draft.columns
    with_gpus = [(row, need) for row, need in sets if draft.tables.ask[row, 1] > 0]
    classes = np.unique(columns.gpu_class[allowed])
    if not with_gpus or len(classes) < 2:
        return []
    found: list[tuple[int, int]] = []
    for c in classes.tolist():
        rooms = [int(draft.copies[row][allowed & (columns.gpu_class == c)].sum()) for row, _ in with_gpus]
        if all(room >= need for room, (_, need) in zip(rooms, with_gpus, strict=True)):
            found.append((sum(rooms), c))
    no_gpus = len(with_gpus) < len(sets)
    none = (columns.gpu_class < 0) if no_gpus else np.zeros(columns.size, bool)
    return [allowed & ((columns.gpu_class == c) | none) for _, c in sorted(found)]


def _domains(
    sets: Sequence[tuple[int, int]], level: int, draft: Draft, allowed: Mask, most: int = MOST_SCOPES
) -> Iterator[tuple[Mask, str]]:
    """Domains of a level in which each set on its own has room, the tightest for the largest set first."""
    columns = draft.columns
    if level == len(columns.topology.levels):
        fits = allowed.copy()
        for row, need in sets:
            fits &= draft.copies[row] >= need
        main = max(sets, key=lambda s: s[1])[0]
        nodes = np.flatnonzero(fits)
        for n in nodes[np.argsort(draft.copies[main][nodes], kind="stable")][:most].tolist():
            mask = np.zeros(columns.size, bool)
            mask[n] = True
            yield mask, columns.nodes[n].name
        return
    rooms = [room_by_domain(draft.copies[row], level, columns, allowed) for row, _ in sets]
    fits = np.ones(len(columns.domain_names[level]), bool)
    for room, (_, need) in zip(rooms, sets, strict=True):
        fits &= room >= need
    main = max(range(len(sets)), key=lambda s: sets[s][1])
    tightness = np.where(fits, rooms[main], -1)
    for tried, domain in enumerate(smallest_first(tightness, 0)):
        if tried == most:
            return
        name = f"{columns.topology.levels[level].name} {columns.domain_names[level][domain]}"
        yield allowed & nodes_of(level, domain, columns), name


def _place_sets(
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
    _put_all(row, nodes, draft, who)
    return True


def _one_by_one(
    wishes: Sequence[TopologyWish], who: Who, need: int, row: int, draft: Draft, scope: Mask, rank: Rank,
    room: GrowthRoom | None = None,
) -> bool:  # fmt: skip
    """Pods that other pods keep off nodes: each looks at those before it. Domains are tried the tightest first."""
    mark = draft.mark()
    for inside in _set_domains(wishes, need, row, draft, scope):
        placed = 0
        while placed < need and _put_next(row, who, draft, inside, rank, room):
            placed += 1
        if placed == need:
            return True
        if room is not None:
            for put in draft.puts[mark:]:
                room.take(put.node, -gpu_milli(who.pod_class.requests, who.pod_class.gpu_milli))
        draft.undo_to(mark)
    return False


def _put_next(row: int, who: Who, draft: Draft, inside: Mask, rank: Rank, room: GrowthRoom | None = None) -> bool:
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
    if -1 in levels:
        return
    scope = _labelled(scope, levels, draft)
    if not levels:
        yield scope
        return
    for mask, _ in _domains([(row, need)], max(levels), draft, scope):
        yield mask


def _labelled(scope: Mask, levels: Sequence[int], draft: Draft) -> Mask:
    """The nodes of a scope that are in some domain of each of these levels."""
    for level in levels:
        if level < len(draft.columns.topology.levels):
            scope = scope & (draft.columns.domain[level] >= 0)
    return scope


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
    if -1 in whole:
        return None
    scope = _labelled(scope, whole, draft)
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
            found = (
                _slices(slices, need, row, draft, scope & nodes_of(level, domain, columns), order) if slices else None
            )
            if found is not None:
                return found
        return None
    if slices is not None:
        return _slices(slices, need, row, draft, scope, order)
    if int(copies[scope].sum()) < need:
        return None
    return spread_over(copies, need, scope, 0, columns, order)


def _slices(
    wish: TopologyWish, need: int, row: int, draft: Draft, scope: Mask, order: I64
) -> list[tuple[int, int]] | None:
    """Whole slices, each within one domain: the tightest domain that takes all, else the largest first.

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
    taken = deal_slices(room, need, wish.slice_size)
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


def _put_all(row: int, nodes: Sequence[tuple[int, int]], draft: Draft, who: Who) -> None:
    for node, count in nodes:
        draft.put(row, node, count, who)
    draft.recount(np.array([node for node, _ in nodes], np.int64))


def _search(
    workload: Workload, rows: Sequence[int], order: Sequence[int], draft: Draft, scope: Mask
) -> tuple[bool, list[int] | None]:
    """Exact search for the minimum counts. (whether the answer is proven, pod set of each put or None)."""
    parts = []
    for s in order:
        pod_set = workload.pod_sets[s]
        required = set_wishes(workload, pod_set)
        levels = [level_of(w, draft) for w in required]
        if -1 in levels:
            return True, None
        whole = [level for level, w in zip(levels, required, strict=True) if not w.slice_size]
        cut = [(level, w.slice_size) for level, w in zip(levels, required, strict=True) if w.slice_size]
        slice_level, slice_size = cut[0] if cut else (-1, 0)
        parts.append(
            Part(
                s, rows[s], pod_set.min_count, _labelled(scope, levels, draft), max(whole, default=-1),
                slice_level, slice_size, Who(workload.namespace, pod_set.labels, pod_set.pod_class),
            )
        )  # fmt: skip
    found = search(parts, draft, scope, Bound().steps)
    return found.proven, found.set_of_put


def _grow(
    workload: Workload, rows: Sequence[int], order: Sequence[int], draft: Draft, scope: Mask, rank: Rank,
    set_of_put: list[int], room: GrowthRoom | None,
) -> None:  # fmt: skip
    """Pods above the minimum, as many as exist and fit in the scope, within the queue's limit.

    A set that must share a domain grows inside it, one that is cut into slices by whole slices.
    """
    created = workload.pod_count - workload.missing_pods - sum(p.count for p in draft.puts)
    for s in order:
        pod_set, row = workload.pod_sets[s], rows[s]
        placed = sum(p.count for p, of in zip(draft.puts, set_of_put, strict=True) if of == s)
        extra = min(pod_set.count - placed, created)
        if extra <= 0:
            continue
        before = draft.mark()
        wishes = set_wishes(workload, pod_set)
        levels = [level_of(w, draft) for w in wishes]
        if -1 in levels:
            continue
        inside = _labelled(scope, levels, draft)
        inside = inside & _domain_of_set(wishes, s, set_of_put, draft)
        slices = next((w for w in wishes if w.slice_size), None)
        who = Who(workload.namespace, pod_set.labels, pod_set.pod_class)
        if slices is not None:
            _grow_by_slices(slices, pod_set, extra, row, draft, inside, rank, who, room)
        elif room is not None or (draft.neighbours is not None and draft.neighbours.concern(who)):
            while extra and _put_next(row, who, draft, inside, rank, room):
                extra -= 1
        elif extra := min(extra, int(draft.copies[row][inside].sum())):
            nodes = spread_over(draft.copies[row], extra, inside, 0, draft.columns, rank.of_row(row, draft))
            _put_all(row, nodes, draft, who)
        set_of_put += [s] * (draft.mark() - before)
        created -= sum(p.count for p in draft.puts[before:])


def _grow_by_slices(
    wish: TopologyWish, pod_set: PodSet, extra: int, row: int, draft: Draft, inside: Mask, rank: Rank, who: Who,
    room: GrowthRoom | None,
) -> None:  # fmt: skip
    """Whole slices above the minimum. A minimum that ends in a short slice does not grow: its domain is spoken for."""
    if pod_set.min_count % wish.slice_size:
        return
    milli = _weight(pod_set)
    while extra >= wish.slice_size:
        open_ = inside if room is None else inside & room.open_nodes(milli * wish.slice_size)
        nodes = _slices(wish, wish.slice_size, row, draft, open_, rank.of_row(row, draft))
        if nodes is None:
            return
        _put_all(row, nodes, draft, who)
        if room is not None:
            for node, count in nodes:
                room.take(node, milli * count)
        extra -= wish.slice_size


def _domain_of_set(wishes: Sequence[TopologyWish], s: int, set_of_put: Sequence[int], draft: Draft) -> Mask:
    columns = draft.columns
    inside = np.ones(columns.size, bool)
    first = next((p.node for p, of in zip(draft.puts, set_of_put, strict=True) if of == s), None)
    for wish in wishes:
        if not wish.slice_size and first is not None:
            level = level_of(wish, draft)
            if level == len(columns.topology.levels):
                inside &= np.arange(columns.size) == first
            else:
                inside &= columns.domain[level] == columns.domain[level][first]
    return inside


def _weight(pod_set: PodSet) -> int:
    """How hard one pod is to place: its GPU milli."""
    return gpu_milli(pod_set.pod_class.requests, pod_set.pod_class.gpu_milli)
