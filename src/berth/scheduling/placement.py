"""Where a gang goes: all of its minimum, or nothing.

1 scopes   the domains that may hold the whole workload: those of the required level, tightest first; without
           a required level the narrowest domains that hold it (from the preferred level outwards), then anywhere.
           All of it without suspect nodes; with them only what is no new gang, and last
2 sets     within a scope the pod sets, the hardest to place first, each into a domain of its own where it asks
3 search   where the sets got in each other's way, a bounded exact search
4 grow     above the minimum, as far as the same scope allows
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import Workload
from berth.scheduling.draft import Draft
from berth.scheduling.exact import Part, search
from berth.scheduling.feasibility import starts_a_gang
from berth.scheduling.growth import grow
from berth.scheduling.neighbours import Who
from berth.scheduling.policy import Policy
from berth.scheduling.scopes import scopes
from berth.scheduling.sets import GrowthRoom, Rank, place_sets
from berth.scheduling.wishes import gpu_milli_of, labelled, level_of, set_wishes, whole_level

Mask = NDArray[np.bool_]

MOST_PERMUTED = 4  # sets
SEARCH_STEPS = Policy().search_steps


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
    steps: int = SEARCH_STEPS,
) -> Tried:
    """Put a workload's pods into the draft, or leave the draft as it was.

    `rows` are the class rows of its pod sets, `allowed` (N,) the nodes that its queue may use for its minimum,
    `steps` bound the exact search. `room` bounds what it may take above the minimum, and with `bounds_minimum` the
    minimum too.
    """
    hardest_first = sorted(
        (s for s, pod_set in enumerate(workload.pod_sets) if pod_set.count),
        key=lambda s: (-gpu_milli_of(workload.pod_sets[s]), s),
    )
    if len(workload.pod_sets) == 1 and int(draft.copies[rows[0]].sum()) < workload.pod_sets[0].min_count:
        return Tried(False)  # as most that wait: no domain need be looked at
    proven = True
    orders = _orders(workload, hardest_first)
    for nodes, scope, name in _tries(workload, rows, draft, allowed):
        room_here = room.fork() if room is not None else None
        bound = room_here if bounds_minimum else None
        set_of_put = place_sets(workload, rows, hardest_first, draft, scope, rank, bound)
        if set_of_put is None and not bounds_minimum and (len(hardest_first) > 1 or draft.neighbours is not None):
            for order in orders:
                found, set_of_put = _search(workload, rows, order, draft, scope, steps)
                proven = proven and found
                if set_of_put is not None:
                    break
        if set_of_put is not None:
            grow(workload, rows, hardest_first, draft, scope, rank, set_of_put, room_here)
            if whole_level(workload, draft) is None:
                grow(workload, rows, hardest_first, draft, nodes, rank, set_of_put, room_here)
            if draft.puts:
                return Tried(True, True, name, set_of_put)
    return Tried(False, proven)


def _tries(workload: Workload, rows: Sequence[int], draft: Draft, allowed: Mask) -> Iterator[tuple[Mask, Mask, str]]:
    """(nodes that may be used, scope, its name): without suspect nodes first, with them where that may be."""
    suspect = draft.columns.suspect & allowed
    if not suspect.any():
        turns = [allowed]
    elif starts_a_gang(workload):
        turns = [allowed & ~suspect]
    else:
        turns = [allowed & ~suspect, allowed]
    for nodes in turns:
        for scope, name in scopes(workload, rows, draft, nodes):
            yield nodes, scope, name


def _orders(workload: Workload, hardest_first: Sequence[int]) -> list[Sequence[int]]:
    """The orders of sets that the exact search tries: all (few) of them where pods look at other sets'."""
    if not any(s.pod_class.near or s.pod_class.spread for s in workload.pod_sets) or len(hardest_first) > MOST_PERMUTED:
        return [hardest_first]
    return [hardest_first, *(o for o in permutations(hardest_first) if list(o) != list(hardest_first))]


def _search(
    workload: Workload, rows: Sequence[int], order: Sequence[int], draft: Draft, scope: Mask, steps: int
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
                s, rows[s], pod_set.min_count, labelled(scope, levels, draft), max(whole, default=-1),
                slice_level, slice_size, Who(workload.namespace, pod_set.labels, pod_set.pod_class),
            )
        )  # fmt: skip
    found = search(parts, draft, scope, steps)
    return found.proven, found.set_of_put
