"""Where a booking stands: its nodes, and who runs there.

GPUs of a class stay where they were as far as they are there for the booking; the others are looked for anew in every
cycle, where most is free of others, so that what comes free anywhere is taken before anybody else gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.model.booking import Booking, Share, Standing
from berth.model.cluster import Allocation, Health
from berth.model.queue import ANY_CLASS
from berth.model.resources import PODS, is_accelerator
from berth.model.workload import WHOLE, PodClass
from berth.scheduling.columns import Columns

if TYPE_CHECKING:
    from berth.scheduling.booked import Booked
    from berth.scheduling.round import Round

I64 = NDArray[np.int64]

WHOLE_NODE = -1  # in place of a number of GPUs
MOST_LOOKED = 256  # nodes on which GPUs that are lacking are looked for in a cycle


@dataclass(frozen=True, eq=False)
class Stander:
    """A pod on a booked node, DaemonSets' left out: what it takes, whose member it is, when it goes.

    ends_s   when it has to have ended; infinite where nobody says, or it is past that
    goes_s   from when on it may be asked to leave; infinite where it may not
    units    GPUs, partitions and replicas; mask the devices, where there are such
    """

    need: I64
    mask: int
    units: int
    member_of: frozenset[int]
    ends_s: float
    goes_s: float
    priority: int = 0
    started_s: float = 0.0
    allocation: Allocation | None = None  # None for one that this cycle has bound

    def stays(self, booked: Booked) -> bool:
        """Whether it is there while the window is open."""
        return booked.is_open or min(self.ends_s, self.goes_s) > booked.window.opens_s


def standers_on(n: int, booked: Sequence[Booked], now: Round) -> list[Stander]:
    """The pods of a node as the snapshot has them."""
    columns, now_s = now.draft.columns, now.snapshot.now_s
    needs: dict[int, I64] = {}
    found = []
    for a, mask in zip(now.draft.tables.held_on(n), columns.masks[n], strict=True):
        if a.is_daemon:
            continue
        need = needs.get(id(a.pod_class))
        if need is None:
            need = needs[id(a.pod_class)] = _amounts(a.pod_class, columns)
        ends_s = a.started_s + a.time_limit_s if a.time_limit_s else np.inf
        found.append(Stander(
            need, mask, units_of(need, columns),
            frozenset(b for b, one in enumerate(booked) if _belongs(a, one, now)),
            ends_s if ends_s > now_s else np.inf,
            a.started_s + a.min_runtime_s if a.preemptible is True and not a.is_ending else np.inf,
            a.priority, a.started_s, a,
        ))  # fmt: skip
    return found


def _amounts(pod_class: PodClass, columns: Columns) -> I64:
    """(R,) what a pod asks for; of devices the mask tells."""
    need = np.zeros(len(columns.resources), np.int64)
    for name, amount in pod_class.requests:
        if (column := columns.column(name)) >= 0:
            need[column] = amount
    need[columns.column(PODS)] = 1
    return need


def _belongs(a: Allocation, one: Booked, now: Round) -> bool:
    booking = one.booking
    if booking.workload:
        workload, kind = (a.workload, a.workload_kind) if a.workload else (a.key, "Pod")
        return booking.workload == workload and booking.workload_kind in ("", kind)
    return now.ledger.queue_of(a.queue, a.namespace) in one.queues


def units_of(need: I64, columns: Columns) -> int:
    """GPUs, partitions and replicas of a pod."""
    return int(sum(need[r] for r, name in enumerate(columns.resources) if is_accelerator(name)))


def touched(standers: Sequence[Stander], columns: Columns, n: int) -> int:
    """GPUs of the node that some pods have, a part of one counting as one."""
    if columns.pool[n] < 0:
        return sum(one.units for one in standers)
    mask = 0
    for one in standers:
        mask |= one.mask
    return mask.bit_count()


def gpus_of(n: int, columns: Columns) -> int:
    """GPUs of the node that may be given out; partitions and replicas where it has these instead."""
    if columns.pool[n] >= 0:
        return int((columns.device_free[n] >= 0).sum())
    return units_of(columns.empty[n], columns)


def shares_on(b: int, booked: Sequence[Booked], now: Round) -> dict[int, int]:
    """By node, the GPUs that a booking has there; those before it in the list have theirs."""
    booking, columns = booked[b].booking, now.draft.columns
    within = _domain(booking, columns)
    if not booking.gpus:
        named = [columns.index[name] for name in booking.nodes if name in columns.index]
        return dict.fromkeys(named or ([] if within is None else within), WHOLE_NODE)
    places = _Places(b, booked, now)
    found: dict[int, int] = {}
    left = booking.gpus
    there = [(columns.index[share.node], share.gpus) for share in booking.shares if share.node in columns.index]
    for n, gpus in there:
        if _would_do(n, booking, columns) and (within is None or n in within):
            kept = min(gpus, places.free_of_others(n), left)
            if kept > 0:
                found[n] = kept
                left -= kept
    if not left:
        return found
    candidates = _candidates(booking, within, columns, found)
    free = {n: places.free_of_others(n) - found.get(n, 0) for n in candidates}
    # Where members are, they are counted; then whole nodes before parts, and the tightest part for what is left over.
    line = sorted((n for n in candidates if free[n] > 0), key=lambda n: (-places.members(n), -free[n], n))
    for i, n in enumerate(line):
        best = n if free[n] <= left else min(line[i:], key=lambda n: (-places.members(n), free[n] < left, free[n], n))
        gpus = min(free[best], left)
        if gpus:
            found[best] = found.get(best, 0) + gpus
            free[best] -= gpus
            left -= gpus
        if not left:
            break
    had = {n for n, _ in there}
    for n in sorted(candidates, key=lambda n: n not in had):
        # What others have: the booking has it once they are gone.
        gpus = min(places.all_of(n) - found.get(n, 0), left)
        if gpus > 0:
            found[n] = found.get(n, 0) + gpus
            left -= gpus
    return found


def _candidates(
    booking: Booking, within: Sequence[int] | None, columns: Columns, found: Mapping[int, int]
) -> list[int]:
    """Nodes on which GPUs are looked for: those that have some, and of the others those with most idle GPUs, no more
    than can matter; by their index."""
    most = max(MOST_LOOKED, 2 * booking.gpus)
    idle = np.where(columns.pool >= 0, (columns.device_free == WHOLE).sum(axis=1), 0)
    others = [r for r, name in enumerate(columns.resources) if is_accelerator(name)]
    idle = np.where(columns.pool >= 0, idle, np.maximum(columns.free[:, others], 0).sum(axis=1))
    every = np.arange(columns.size) if within is None else np.array(within, np.int64)
    some = [n for n in found if n < columns.size]
    for n in every[np.argsort(-idle[every], kind="stable")].tolist():
        if len(some) >= most:
            break
        if n not in found and _would_do(n, booking, columns):
            some.append(n)
    return sorted(some)


class _Places:
    """What nodes have for a booking beside those before it."""

    def __init__(self, b: int, booked: Sequence[Booked], now: Round) -> None:
        self._b, self._booked, self._now = b, booked, now
        self._known: dict[int, tuple[int, int, int]] = {}

    def all_of(self, n: int) -> int:
        return self._of(n)[0]

    def free_of_others(self, n: int) -> int:
        """GPUs that others will have left, or may be made to leave, when the window opens."""
        return self._of(n)[1]

    def members(self, n: int) -> int:
        return self._of(n)[2]

    def _of(self, n: int) -> tuple[int, int, int]:
        known = self._known.get(n)
        if known is None:
            columns, me, now_s = self._now.draft.columns, self._booked[self._b], self._now.snapshot.now_s
            total = gpus_of(n, columns)
            before = sum(
                total if one.gpus.get(n, 0) == WHOLE_NODE else one.gpus.get(n, 0)
                for i, one in enumerate(self._booked)
                if i != self._b
            )
            there = standers_on(n, self._booked, self._now)
            others = [one for one in there if self._b not in one.member_of]
            stay = [one for one in others if one.stays(me) and one.goes_s > max(me.window.opens_s, now_s)]
            mine = touched([one for one in there if self._b in one.member_of], columns, n)
            all_of = max(total - before, 0)
            known = self._known[n] = (
                all_of, max(min(total - touched(stay, columns, n), all_of), 0), min(mine, all_of)
            )  # fmt: skip
        return known


def _would_do(n: int, booking: Booking, columns: Columns) -> bool:
    node = columns.nodes[n]
    if not node.ready or node.cordoned or node.health == Health.Unfit:
        return False
    return booking.gpu_class in (ANY_CLASS, node.gpu_class) and gpus_of(n, columns) > 0


def _domain(booking: Booking, columns: Columns) -> list[int] | None:
    """The nodes of the domain, by its whole name or the label's value; None where it names none."""
    if not booking.level:
        return None
    levels = columns.topology.levels
    level = next((i for i, one in enumerate(levels) if booking.level in (one.name, one.label)), -1)
    if level < 0:
        return []
    names, label = columns.domain_names[level], levels[level].label
    return [
        n
        for n, node in enumerate(columns.nodes)
        if booking.domain == node.labels.get(label)
        or (columns.domain[level, n] >= 0 and booking.domain == names[columns.domain[level, n]])
    ]


def standing_of(b: int, booked: Sequence[Booked], there: Callable[[int], list[Stander]], now: Round) -> Standing:
    """How a booking stands, by the pods on its nodes."""
    one, columns = booked[b], now.draft.columns
    shares: list[Share] = []
    gpus = held = used = 0
    for n, part in sorted(one.gpus.items()):
        total = gpus_of(n, columns)
        mine = total if part == WHOLE_NODE else part
        members = [s for s in there(n) if b in s.member_of]
        others = [s for s in there(n) if b not in s.member_of and s.stays(one)]
        shares.append(Share(columns.nodes[n].name, max(part, 0)))
        gpus += mine
        held += min(mine, max(total - touched(others, columns, n), 0))
        used += min(mine, touched(members, columns, n))
    return Standing(
        one.booking.name, tuple(shares), one.window.opens_s, one.window.closes_s, one.is_open,
        max(gpus, one.booking.gpus), held, used,
    )  # fmt: skip
