"""A gang above its minimum: as many pods as exist and fit, within the queue's limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import PodSet, TopologyWish, Workload
from berth.scheduling.columns import I32, Columns
from berth.scheduling.draft import Draft
from berth.scheduling.neighbours import Who
from berth.scheduling.sets import GrowthRoom, Rank, nodes_for_slices, put_all, put_next
from berth.scheduling.topology import nodes_of, room_by_domain, smallest_first, spread_over
from berth.scheduling.wishes import gpu_milli_of, labelled, level_of, set_wishes

Mask = NDArray[np.bool_]


def grow(
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
        inside = labelled(scope, levels, draft)
        inside = inside & _domain_of_set(wishes, s, set_of_put, draft)
        whole = [level for level, w in zip(levels, wishes, strict=True) if not w.slice_size]
        if whole and not placed:  # without a minimum it has no domain yet
            inside = inside & _one_domain(max(whole), extra, draft.copies[row], inside, draft.columns)
        slices = next((w for w in wishes if w.slice_size), None)
        who = Who(workload.namespace, pod_set.labels, pod_set.pod_class)
        if slices is not None:
            _grow_by_slices(slices, pod_set, extra, row, draft, inside, rank, who, room)
        elif room is not None or (draft.neighbours is not None and draft.neighbours.concern(who)):
            while extra and put_next(row, who, draft, inside, rank, room):
                extra -= 1
        elif extra := min(extra, int(draft.copies[row][inside].sum())):
            nodes = spread_over(draft.copies[row], extra, inside, 0, draft.columns, rank.of_row(row, draft))
            put_all(row, nodes, draft, who)
        set_of_put += [s] * (draft.mark() - before)
        created -= sum(p.count for p in draft.puts[before:])


def _grow_by_slices(
    wish: TopologyWish, pod_set: PodSet, extra: int, row: int, draft: Draft, inside: Mask, rank: Rank, who: Who,
    room: GrowthRoom | None,
) -> None:  # fmt: skip
    """Whole slices above the minimum. A minimum that ends in a short slice does not grow: its domain is spoken for."""
    if pod_set.min_count % wish.slice_size:
        return
    milli = gpu_milli_of(pod_set)
    while extra >= wish.slice_size:
        open_ = inside if room is None else inside & room.open_nodes(milli * wish.slice_size)
        nodes = nodes_for_slices(wish, wish.slice_size, row, draft, open_, rank.of_row(row, draft))
        if nodes is None:
            return
        put_all(row, nodes, draft, who)
        if room is not None:
            for node, count in nodes:
                room.take(node, milli * count)
        extra -= wish.slice_size


def _one_domain(level: int, pods: int, copies: I32, inside: Mask, columns: Columns) -> Mask:
    """The tightest domain of a level that takes all of the pods, else the one that takes most."""
    on_host = level == len(columns.topology.levels)
    room = np.where(inside, copies, 0) if on_host else room_by_domain(copies, level, columns, inside)
    if not len(room):
        return inside
    domain = next(smallest_first(room, pods), int(np.argmax(room)))
    mask: Mask = np.arange(columns.size) == domain if on_host else nodes_of(level, domain, columns)
    return mask


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
