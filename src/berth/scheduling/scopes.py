"""Which parts of the cluster may hold a gang: domains and GPU classes, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import Workload
from berth.scheduling.draft import Draft
from berth.scheduling.topology import nodes_of, room_by_domain, smallest_first
from berth.scheduling.wishes import gpu_milli_of, level_of, whole_level, whole_wishes

Mask = NDArray[np.bool_]

MOST_SCOPES = 64  # domains tried for a gang of several pod sets before the answer is "not proven"


def scopes(workload: Workload, rows: Sequence[int], draft: Draft, allowed: Mask) -> Iterator[tuple[Mask, str]]:
    levels = len(draft.columns.topology.levels)
    required = whole_level(workload, draft)
    if required == -1:
        return
    sets = [(rows[s], pod_set.min_count) for s, pod_set in enumerate(workload.pod_sets) if pod_set.min_count]
    if not sets:
        sets = [(rows[s], 1) for s, p in enumerate(workload.pod_sets) if p.count][:1]
    if required is not None:
        # A node that lacks the label of any required level is in no domain of it.
        for wish in whole_wishes(workload):
            if wish.required and (level := level_of(wish, draft)) < levels:
                allowed = allowed & (draft.columns.domain[level] >= 0)
        for of_class in (*_by_class(sets, draft, allowed), allowed):
            yield from domains_with_room(sets, required, draft, of_class)
        return
    near = [level_of(w, draft) for w in whole_wishes(workload) if not w.required]
    asks_gpus = any(gpu_milli_of(s) for s in workload.pod_sets)
    if workload.is_gang and (asks_gpus or near):
        everyone = [(rows[s], pod_set.count) for s, pod_set in enumerate(workload.pod_sets) if pod_set.count]
        # First where all pods have room together, then where the least of them do.
        for needs in [everyone, sets] if everyone != sets else [sets]:
            for of_class in (*_by_class(needs, draft, allowed), allowed):
                for level in range(levels, -1, -1):
                    yield from domains_with_room(needs, level, draft, of_class, most=1)
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
    classes = np.flatnonzero(np.bincount(columns.gpu_class[allowed] + 1)) - 1
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


def domains_with_room(
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
