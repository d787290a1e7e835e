"""A bounded exact search for gangs of several pod sets, where placing one set after the other failed.

Depth first over pods, the hardest set first. Three things keep it small: pods of a set go to nodes in rising
order (they are alike), nodes that look alike are tried once, and a branch ends as soon as some set has fewer
places left than pods. What it does not find within its bound it does not deny.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.draft import Draft
from berth.scheduling.neighbours import Who

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """`need` pods of class `row` on nodes of `inside`; all in one domain of `level` where that is not -1.

    Slices of `slice_size` pods each share a domain of `slice_level`; the last may be short. A level that is the
    number of levels is the host.
    """

    pod_set: int
    row: int
    need: int
    inside: Mask
    level: int
    slice_level: int
    slice_size: int
    who: Who


@dataclass
class Found:
    """`set_of_put` is None where nothing was found; `proven` is False where the bound ended the search."""

    set_of_put: list[int] | None
    proven: bool


@dataclass
class _Search:
    parts: Sequence[Part]
    draft: Draft
    scope: Mask
    steps: int

    def run(self, part: int, placed: int) -> bool:
        """Place the rest, from pod `placed` of set `part` on; True with the pods in the draft."""
        if part == len(self.parts):
            return True
        now = self.parts[part]
        if placed == now.need:
            return self.run(part + 1, 0)
        if not self._room_for_rest(part, placed):
            return False
        for node, devices in self._places(now, placed):
            self.steps -= 1
            if self.steps < 0:
                return False
            mark = self.draft.mark()
            self.draft.put_on(now.row, node, devices, now.who)
            self.draft.recount(np.array([node]))
            if self.run(part, placed + 1):
                return True
            self.draft.undo_to(mark)
        return False

    def _room_for_rest(self, part: int, placed: int) -> bool:
        for i in range(part, len(self.parts)):
            rest = self.parts[i]
            need = rest.need - (placed if i == part else 0)
            if int(self.draft.copies[rest.row][self.scope & rest.inside].sum()) < need:
                return False
        return True

    def _places(self, part: Part, placed: int) -> Iterator[tuple[int, int]]:
        draft = self.draft
        open_ = self.scope & part.inside & (draft.copies[part.row] > 0)
        if part.level >= 0 and placed:
            open_ = open_ & self._domain_with(part.level, draft.puts[-placed].node)
        in_slice = placed % part.slice_size if part.slice_size else 0
        if in_slice:
            open_ = open_ & self._domain_with(part.slice_level, draft.puts[-in_slice].node)
        if draft.neighbours is not None:
            open_ = open_ & draft.neighbours.leave_open(part.who)
        seen: set[tuple[object, ...]] = set()
        from_node = self._not_before(part, placed, in_slice)
        for node in (np.flatnonzero(open_[from_node:]) + from_node).tolist():
            likeness = self._likeness(node)
            if likeness in seen:
                continue
            seen.add(likeness)
            for devices in self._device_choices(part.row, node):
                yield node, devices

    def _not_before(self, part: Part, placed: int, in_slice: int) -> int:
        """Pods are alike, and so are slices: a pod does not go before the last one, a slice not before the last."""
        if not placed or self.draft.neighbours is not None:
            return 0  # with neighbours the order matters: a pod may open a node to the next one
        if not part.slice_size or in_slice:
            return self.draft.puts[-1].node
        # The last slice, if it is short, is like no other.
        return self.draft.puts[-part.slice_size].node if part.need - placed >= part.slice_size else 0

    def _domain_with(self, level: int, node: int) -> Mask:
        columns = self.draft.columns
        if level == len(columns.topology.levels):
            on_host: Mask = np.arange(columns.size) == node
            return on_host
        mask: Mask = columns.domain[level] == columns.domain[level][node]
        return mask

    def _likeness(self, node: int) -> tuple[object, ...]:
        """Nodes that are equal in this are interchangeable for the rest of the search."""
        draft = self.draft
        rows = [p.row for p in self.parts]
        domains = tuple(draft.columns.domain[:, node].tolist())
        devices = sorted(zip(draft.device_free[node].tolist(), draft.columns.island[node].tolist(), strict=True))
        # Where pods look at each other, no node is like another.
        alone = node if draft.neighbours is not None else -1
        static = tuple(draft.tables.static[rows, node].tolist())
        return (draft.free[node].tobytes(), tuple(devices), static, domains, int(draft.columns.pool[node]), alone)

    def _device_choices(self, row: int, node: int) -> Iterator[int]:
        """Device masks worth trying: each fill level for a share of one device, the usual choice else."""
        draft = self.draft
        column, devices, milli, one_island = draft.tables.ask[row].tolist()
        left, islands = draft.device_free[node], draft.columns.island[node]
        if devices == 0 or draft.columns.pool[node] != column:
            yield 0
        elif devices == 1:
            tried: set[tuple[int, int]] = set()
            for g in range(len(left)):
                kind = (int(left[g]), int(islands[g]))
                if left[g] >= milli and kind not in tried:
                    tried.add(kind)
                    yield 1 << g
        else:
            yield from _choices(left.tolist(), islands.tolist(), devices, milli, bool(one_island))


def _choices(left: list[int], islands: list[int], devices: int, milli: int, one_island: bool) -> Iterator[int]:
    """Masks of `devices` devices, one for each way to take so many of every kind (milli left, island)."""
    kinds: dict[tuple[int, int], list[int]] = {}
    for g, milli_left in enumerate(left):
        if milli_left >= milli and not (one_island and islands[g] < 0):
            kinds.setdefault((milli_left, islands[g]), []).append(g)
    groups = list(kinds.items())

    def deal(i: int, need: int, mask: int, island: int | None) -> Iterator[int]:
        if need == 0:
            yield mask
            return
        if i == len(groups):
            return
        (_, of), members = groups[i]
        most = 0 if one_island and island is not None and of != island else min(need, len(members))
        for taken in range(most, -1, -1):
            bits = sum(1 << g for g in members[:taken])
            yield from deal(i + 1, need - taken, mask | bits, of if taken and one_island else island)

    yield from deal(0, devices, 0, None)


def search(parts: Sequence[Part], draft: Draft, scope: Mask, steps: int) -> Found:
    """Look for places for all parts within `scope`, in at most `steps` steps; the draft holds what was found."""
    hunt = _Search([p for p in parts if p.need], draft, scope, steps)
    mark = draft.mark()
    if hunt.run(0, 0):
        return Found([p.pod_set for p in hunt.parts for _ in range(p.need)], True)
    draft.undo_to(mark)
    return Found(None, hunt.steps >= 0)
