"""Bookings in the draft: what people keep for a queue or a workload is not there for others.

Others start on booked capacity only before a window opens, and only what has to have ended by then, or may be asked to
leave when it does. What a booking keeps of a node is hidden from the draft when a cycle begins, and shown while those
are placed who may enter. The rules: docs/internals/reservations.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.model.booking import Booking, Standing, Window
from berth.model.cluster import Allocation
from berth.model.resources import is_accelerator
from berth.model.workload import WHOLE
from berth.scheduling.booked_nodes import (
    WHOLE_NODE,
    Stander,
    gpus_of,
    shares_on,
    standers_on,
    standing_of,
    touched,
    units_of,
)
from berth.scheduling.plan import Vacating
from berth.scheduling.quota import gpu_milli

if TYPE_CHECKING:
    from berth.scheduling.draft import Draft
    from berth.scheduling.round import Round

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]

EAGER = 256  # single pods of members that are tried on the booked nodes first, one by one


@dataclass
class Booked:
    """A booking whose window is open or will open, and the GPUs that it has of each node (WHOLE_NODE for all of it)."""

    booking: Booking
    window: Window
    is_open: bool
    queues: frozenset[int]
    gpus: dict[int, int] = field(default_factory=dict)


class Bookings:
    """All that are booked, on the draft of one cycle. Nodes, queues and workloads by their index."""

    def __init__(self, booked: Sequence[Booked], now: Round | None) -> None:
        self.booked = tuple(booked)
        if now is not None:
            self._now = now
        self._every = frozenset(range(len(self.booked)))
        self._on: dict[int, list[int]] = {}
        for b, one in enumerate(self.booked):
            for n in one.gpus:
                self._on.setdefault(n, []).append(b)
        self._standers: dict[int, list[Stander]] = {}
        self._taken: dict[int, tuple[I64, I32]] = {}
        self._blocked: dict[int, frozenset[int]] = {}
        self._seen = 0  # parts of the round's binds that are among the standers
        self._inside = False
        self.blocking: frozenset[int] = self._every  # those that keep off whom the draft is shown to now
        self._eager = self._first_members()

    @classmethod
    def of(cls, now: Round) -> Bookings:
        """The bookings of the snapshot, each on its nodes; what they keep is on the draft until `hide`."""
        if not now.snapshot.bookings:
            return NONE
        found: list[Booked] = []
        for booking in now.snapshot.bookings:
            window = booking.window(now.snapshot.now_s)
            if window is None:
                continue
            queues = _queues_of(booking, now)
            found.append(Booked(booking, window, window.opens_s <= now.snapshot.now_s, queues))
        # Nodes that are named, then GPUs that are not: these go where the others are not.
        for b in sorted(range(len(found)), key=lambda b: found[b].booking.gpus > 0):
            found[b].gpus = shares_on(b, found, now)
        return cls(found, now)

    # ---- who may enter

    def blocked(self, w: int) -> frozenset[int]:
        """The bookings that keep a workload off their nodes."""
        if not self.booked:
            return self._every
        found = self._blocked.get(w)
        if found is None:
            found = frozenset(b for b, one in enumerate(self.booked) if not self._may_enter(w, one))
            self._blocked[w] = found
        return found

    def _may_enter(self, w: int, one: Booked) -> bool:
        if self.is_member(w, one):
            return True
        if one.is_open:
            return False
        workload, now_s = self._now.workloads[w], self._now.snapshot.now_s
        if workload.preemptible is True and now_s + workload.min_runtime_s <= one.window.opens_s:
            return True
        return 0 < workload.time_limit_s <= one.window.opens_s - now_s

    def is_member(self, w: int, one: Booked) -> bool:
        workload, booking = self._now.workloads[w], one.booking
        if booking.workload:
            return booking.workload == workload.key and booking.workload_kind in ("", workload.kind)
        return int(self._now.queue[w]) in one.queues

    def shut(self, w: int, size: int) -> Mask:
        """(size,) nodes of which some booking keeps something from the workload."""
        shut = np.zeros(size, bool)
        if self.booked:
            shut[[n for b in self.blocked(w) for n in self.booked[b].gpus]] = True
        return shut

    def own_nodes(self, w: int) -> Mask | None:
        """(N,) nodes that are booked for the workload now; None where none is."""
        mine = [n for one in self.booked if one.is_open and self.is_member(w, one) for n in one.gpus]
        if not mine:
            return None
        nodes = np.zeros(self._now.draft.columns.size, bool)
        nodes[mine] = True
        return nodes

    def eager(self) -> list[int]:
        """Workloads that look at the nodes booked for them before all others."""
        return sorted(self._eager)

    def _first_members(self) -> frozenset[int]:
        eager: list[int] = []
        for one in self.booked:
            if one.is_open:
                mine = [w for w in range(len(self._now.workloads)) if self.is_member(w, one)]
                mine.sort(key=lambda w: (-self._now.workloads[w].priority, self._now.workloads[w].created_s))
                eager += mine[:EAGER]
        return frozenset(eager)

    # ---- the draft

    def hide(self) -> None:
        """From now on what is booked is there only for who enters."""
        if self.booked:
            self._show_only(self._every, self._on)

    def entering(self, w: int) -> AbstractContextManager[None]:
        """What is booked is there for the moment where the workload, or one that is blocked alike, may use it."""
        blocked = self.blocked(w)
        return nullcontext() if blocked == self._every or self._inside else self._opened(blocked)

    @contextmanager
    def _opened(self, blocked: frozenset[int]) -> Iterator[None]:
        nodes = [n for n, on in self._on.items() if not blocked.issuperset(on)]
        self._take_in()
        self._show_only(blocked, nodes)
        self._inside, self.blocking = True, blocked
        try:
            yield
        finally:
            self._inside, self.blocking = False, self._every
            self._take_in()
            self._show_only(self._every, nodes)

    def without(self) -> Draft:
        """The draft as it would be if nothing were booked. Asked for once everything is decided."""
        draft, nodes = self._now.draft, list(self._on)
        self._take_in()
        self._show_only(frozenset(), nodes)
        found = draft.copy()
        self._show_only(self.blocking, nodes)
        return found

    def _show_only(self, blocked: frozenset[int], nodes: Collection[int]) -> None:
        """Hide on some nodes what these bookings keep there, and show the rest."""
        draft = self._now.draft
        for n in nodes:
            if (taken := self._taken.pop(n, None)) is not None:
                draft.free[n] += taken[0]
                draft.device_free[n] += taken[1]
            free, left = draft.free[n].copy(), draft.device_free[n].copy()
            self._hide(n, [b for b in self._on[n] if b in blocked])
            self._taken[n] = (free - draft.free[n], left - draft.device_free[n])
            pool = draft.columns.pool[n]
            if pool >= 0:
                draft.free[n, pool] = (draft.device_free[n] == WHOLE).sum()
                self._taken[n][0][pool] = 0  # counted by the devices, each time
        if nodes:
            draft.recount(np.array(sorted(nodes), np.int64))

    def _hide(self, n: int, blocked: Sequence[int]) -> None:
        """Leave of a node's amounts what others may have of it."""
        if not blocked:
            return
        draft, columns = self._now.draft, self._now.draft.columns
        total = gpus_of(n, columns)
        if any(self.booked[b].gpus[n] == WHOLE_NODE or self.booked[b].gpus[n] >= total for b in blocked):
            draft.free[n] = np.minimum(draft.free[n], 0)
            draft.device_free[n] = np.minimum(draft.device_free[n], 0)
            return
        members, others = self._members(n, blocked), self._others(n, blocked)
        open_ = columns.empty[n].copy()
        plenty = np.isin(columns.resources, columns.offered)  # what does not stand on a node is not kept there
        devices = total - touched(others, columns, n)
        for b, mine in zip(blocked, members, strict=True):
            gpus = self.booked[b].gpus[n]
            part = np.where(plenty, 0, columns.empty[n]) * gpus // max(total, 1)
            for r, name in enumerate(columns.resources):
                if is_accelerator(name) and r != columns.pool[n]:
                    part[r] = -(-int(columns.empty[n, r]) * gpus // max(total, 1))
            open_ -= np.maximum(part, _sum(mine, len(part)))
            devices -= max(gpus, touched(mine, columns, n))
        open_ -= _sum(others, len(open_))
        draft.free[n] = np.minimum(draft.free[n], np.maximum(open_, 0))
        if columns.pool[n] >= 0:
            _hide_devices(draft.device_free[n], devices, others, [one for mine in members for one in mine])

    def _members(self, n: int, blocked: Sequence[int]) -> list[list[Stander]]:
        """Of each of the bookings its members' pods on the node; a pod of several counts to the first that has GPUs
        left for it, else to the first."""
        columns = self._now.draft.columns
        found: list[list[Stander]] = [[] for _ in blocked]
        for one in self._there(n):
            theirs = [i for i, b in enumerate(blocked) if b in one.member_of]
            if theirs:
                roomy = (i for i in theirs if touched(found[i], columns, n) < self.booked[blocked[i]].gpus[n])
                found[next(roomy, theirs[0])].append(one)
        return found

    def _others(self, n: int, blocked: Sequence[int]) -> list[Stander]:
        """Pods of others that are there while the windows are open."""
        return [
            one
            for one in self._there(n)
            if not one.member_of.intersection(blocked) and any(one.stays(self.booked[b]) for b in blocked)
        ]

    def _there(self, n: int) -> list[Stander]:
        found = self._standers.get(n)
        if found is None:
            found = self._standers[n] = standers_on(n, self.booked, self._now)
        return found

    def _take_in(self) -> None:
        """What this cycle has bound since the last look."""
        now, draft = self._now, self._now.draft
        for workloads, sets, nodes, devices in now.binds[self._seen :]:
            for i in np.flatnonzero(np.isin(nodes, list(self._on))).tolist():
                w, n = int(workloads[i]), int(nodes[i])
                workload, row = now.workloads[w], now.rows[w][int(sets[i])]
                self._there(n).append(Stander(
                    need=draft.tables.need[row],
                    mask=int(devices[i]),
                    member_of=frozenset(b for b, one in enumerate(self.booked) if self.is_member(w, one)),
                    ends_s=now.snapshot.now_s + workload.time_limit_s if workload.time_limit_s else np.inf,
                    goes_s=now.snapshot.now_s + workload.min_runtime_s if workload.preemptible is True else np.inf,
                    units=units_of(draft.tables.need[row], draft.columns),
                ))  # fmt: skip
        self._seen = len(now.binds)

    # ---- what comes of it

    def keepers(self, nodes: Collection[int], w: int) -> list[Booked]:
        """The bookings that keep the workload off some of these nodes, those that stand on most of them first."""
        found = [self.booked[b] for b in sorted(self.blocked(w)) if set(nodes) & set(self.booked[b].gpus)]
        return sorted(found, key=lambda one: -len(set(nodes) & set(one.gpus)))

    def standings(self) -> tuple[Standing, ...]:
        """How each stands."""
        if not self.booked:
            return ()
        self._take_in()
        return tuple(standing_of(b, self.booked, self._there, self._now) for b in range(len(self.booked)))

    def leaving(self) -> list[tuple[Stander, str]]:
        """Pods of others that are to leave, since a window is open and they may be asked: all of a node that is booked
        whole; else the newest of the lowest priority, as long as the booking lacks GPUs."""
        self._take_in()
        found: list[tuple[Stander, str]] = []
        columns = self._now.draft.columns
        for n, on in self._on.items():
            open_ = [b for b in on if self.booked[b].is_open]
            if not open_:
                continue
            others = self._others(n, open_)
            may_go = [one for one in others if one.goes_s <= self._now.snapshot.now_s and one.allocation is not None]
            may_go.sort(key=lambda one: (one.priority, -one.started_s))
            if any(self.booked[b].gpus[n] == WHOLE_NODE for b in open_):
                found += [(one, self.booked[open_[0]].booking.name) for one in may_go]
                continue
            kept = sum(
                max(self.booked[b].gpus[n], touched(mine, columns, n))
                for b, mine in zip(open_, self._members(n, open_), strict=True)
            )
            room = gpus_of(n, columns) - kept
            for one in may_go:
                if touched(others, columns, n) <= room:
                    break
                if touched([one], columns, n):
                    others = [other for other in others if other is not one]
                    found.append((one, self.booked[open_[0]].booking.name))
        return found


NONE = Bookings((), None)


def vacate(now: Round) -> None:
    """Ask those to leave that stand where a window is open, with the gangs that cannot stay without them."""
    if not now.booked.booked or not now.policy.evicts:
        return
    leaving = now.booked.leaving()
    if not leaving:
        return
    goes = {(e.allocation.namespace, e.allocation.name) for e in now.evictions}
    first = [(one.allocation, name) for one, name in leaving if one.allocation is not None]
    whole = {a.workload_identity: name for a, name in reversed(first) if a.disruption == "all"}
    beside = [(a, whole[a.workload_identity]) for a in now.snapshot.allocations if a.workload_identity in whole]
    for a, name in [*first, *beside]:
        if a.is_ending or (a.namespace, a.name) in goes:
            continue
        goes.add((a.namespace, a.name))
        now.vacating.append(Vacating(a, name, _lost_hours(a, now.snapshot.now_s)))


def _lost_hours(a: Allocation, now_s: float) -> float:
    """GPU hours of work that are lost with a pod: since its start, or since its last checkpoint."""
    lost_s = max(now_s - max(a.started_s, a.last_checkpoint_s), 0.0)
    if a.checkpoint_every_s:
        lost_s = min(lost_s, a.checkpoint_every_s)
    hours: float = lost_s * gpu_milli(a.pod_class.requests, a.pod_class.gpu_milli) / 1000 / 3600
    return hours


def _queues_of(booking: Booking, now: Round) -> frozenset[int]:
    """The queue and those below it."""
    top = now.ledger.index.get(booking.queue, -1) if booking.queue else -1
    if top < 0:
        return frozenset()
    return frozenset(q for q in range(len(now.ledger.names)) if top in now.ledger.chain(q))


def _sum(standers: Sequence[Stander], width: int) -> I64:
    total = np.zeros(width, np.int64)
    for one in standers:
        total += one.need
    return total


def _hide_devices(left: I32, count: int, others: Sequence[Stander], members: Sequence[Stander]) -> None:
    """Show `count` devices beside those that others have already: idle ones, then those of who will have left."""
    theirs = _devices(others, len(left))
    ours = _devices(members, len(left)) & ~theirs
    left_to_give = (left > 0) & ~theirs & ~ours
    order = [*np.flatnonzero(left_to_give & (left == WHOLE)), *np.flatnonzero(left_to_give & (left < WHOLE))]
    shown = theirs.copy()
    shown[np.array(order[: max(count, 0)], np.int64)] = True
    left[~shown] = np.minimum(left[~shown], 0)


def _devices(standers: Sequence[Stander], width: int) -> Mask:
    mask = 0
    for one in standers:
        mask |= one.mask
    return np.array([bool(mask >> g & 1) for g in range(width)], bool)
