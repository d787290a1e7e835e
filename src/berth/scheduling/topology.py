"""Which domain a gang goes to: the smallest that is large enough, so that the largest stay whole for others.

All answers come from one row of the class table summed by domain; no node is tried on its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.columns import Columns

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]


def room_by_domain(copies: I32 | I64, level: int, columns: Columns, within: Mask | None = None) -> I64:
    """(D,) pods of a class that each domain of a level takes.

    `copies` is one row of the class table; `within` leaves out nodes.
    """
    domain = columns.domain[level]
    known = domain >= 0 if within is None else within & (domain >= 0)
    sums = np.bincount(domain[known], weights=copies[known], minlength=len(columns.domain_names[level]))
    room: I64 = sums.astype(np.int64)
    return room


def nodes_of(level: int, domain: int, columns: Columns) -> Mask:
    """(N,) the nodes of a domain."""
    mask: Mask = columns.domain[level] == domain
    return mask


def smallest_first(room: I64, need: int) -> Iterator[int]:
    """Domains with room for `need`, the tightest first; ties by the order in which nodes name them."""
    enough = np.flatnonzero(room >= need)
    yield from enough[np.argsort(room[enough], kind="stable")].tolist()


def spread_over(copies: I32, need: int, within: Mask, level: int, columns: Columns, rank: I64) -> list[tuple[int, int]]:
    """Nodes for `need` pods out of those in `within`, with how many each takes, over as few domains as can be.

    Goes down from `level` (an index into the levels; the host comes after the last). Where one domain is large
    enough the tightest is taken; else whole domains, largest first, and the tightest for what is left. Hosts of
    a domain come in the order of `rank` (lowest first), those that are outside all domains last.
    """
    if level >= len(columns.topology.levels):
        return _hosts(copies, need, within, rank)
    room = room_by_domain(copies, level, columns, within)
    for domain in smallest_first(room, need):
        inside = within & nodes_of(level, domain, columns)
        return spread_over(copies, need, inside, level + 1, columns, rank)
    chosen: list[tuple[int, int]] = []
    open_ = room.copy()
    while need > 0 and open_.any():
        tightest = next(smallest_first(open_, need), None)
        domain = int(np.argmax(open_)) if tightest is None else tightest
        part = min(need, int(open_[domain]))
        inside = within & nodes_of(level, domain, columns)
        chosen += spread_over(copies, part, inside, level + 1, columns, rank)
        need -= part
        open_[domain] = 0
    if need > 0:
        chosen += _hosts(copies, need, within & (columns.domain[level] < 0), rank)
    return chosen


def _hosts(copies: I32, need: int, within: Mask, rank: I64) -> list[tuple[int, int]]:
    """Hosts in the order of rank, each filled; the last one is the lowest in rank that holds what is left."""
    nodes = np.flatnonzero(within & (copies > 0))
    nodes = nodes[np.argsort(rank[nodes], kind="stable")]
    capacity = copies[nodes].astype(np.int64)
    filled = np.cumsum(capacity)
    last = int(np.searchsorted(filled, need))
    if last >= len(nodes):
        return list(zip(nodes.tolist(), capacity.tolist(), strict=True))
    taken = [(int(n), int(c)) for n, c in zip(nodes[:last], capacity[:last], strict=True)]
    rest = need - (int(filled[last - 1]) if last else 0)
    taken.append((int(nodes[last]), rest))
    return taken
