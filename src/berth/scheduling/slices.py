"""Slices: groups of pods that stay whole in one domain, while the set of them may lie in several.

The slices themselves lie as close together as those that are free allow: over as few domains of every wider level
as can be, the tightest that takes all of them first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.columns import Columns

I64 = NDArray[np.int64]


def wider_domains(level: int, columns: Columns) -> list[I64]:
    """For each level wider than `level`, the widest first, (D,) the domain in which each domain of `level` lies.

    A domain that lies in none is in one more than there are, which all such share.
    """
    found = []
    for wider in range(level):
        count, outer = len(columns.domain_names[wider]), columns.domain[wider]
        lies_in = np.where(outer < 0, count, outer).astype(np.int64)
        if level < len(columns.topology.levels):
            domain = columns.domain[level]
            known = np.flatnonzero(domain >= 0)
            by_domain = np.full(len(columns.domain_names[level]), count, np.int64)
            by_domain[domain[known]] = lies_in[known]
            lies_in = by_domain
        found.append(lies_in)
    return found


def deal_slices(room: I64, need: int, size: int, wider: Sequence[I64] = ()) -> I64 | None:
    """(D,) how many of `need` pods each domain takes, in slices of `size` that stay whole; None where they do not fit.

    `wider` is what `wider_domains` tells; without it slices may lie anywhere. The last slice may be short. It goes to
    a domain whose room is no multiple of the size, if one has enough over, near the others.
    """
    taken = np.zeros(len(room), np.int64)
    rest = need % size
    over = np.where(room % size >= rest, room % size, 0) if rest else np.zeros(0, np.int64)
    has_own_place = bool(over.any())
    slices = need // size if has_own_place else -(-need // size)
    whole = room // size
    if int(whole.sum()) < slices:
        return None
    _deal(whole, slices, np.flatnonzero(whole), wider, taken)
    taken *= size
    if has_own_place:
        taken[_near(over, taken, wider)] += rest
    elif rest:
        taken[_last(taken, room)] -= size - rest
    return taken


def _deal(whole: I64, slices: int, among: I64, wider: Sequence[I64], taken: I64) -> None:
    """Add to `taken` how many slices each of the domains `among` takes; they have room for all of them."""
    groups = wider[0][among] if wider else np.arange(len(among))
    room = np.bincount(groups, weights=whole[among]).astype(np.int64)
    while slices > 0:
        fits = np.flatnonzero(room >= slices)
        group = int(fits[np.argmin(room[fits])]) if len(fits) else int(np.argmax(room))
        part = min(slices, int(room[group]))
        if wider:
            _deal(whole, part, among[groups == group], wider[1:], taken)
        else:
            taken[among[group]] += part
        slices -= part
        room[group] = 0


def _near(over: I64, taken: I64, wider: Sequence[I64]) -> int:
    """Where a short slice goes: the narrowest domain that it shares with others, then what is left over least."""
    fit = np.flatnonzero(over)
    for lies_in in reversed(wider):
        shared = fit[np.isin(lies_in[fit], lies_in[taken > 0])]
        if len(shared):
            fit = shared
            break
    return int(fit[np.argmin(over[fit])])


def _last(taken: I64, room: I64) -> int:
    """Whose last slice is the short one: where most is free besides, so that the fullest stay full."""
    used = np.flatnonzero(taken)
    return int(used[np.argmax(room[used] - taken[used])])
