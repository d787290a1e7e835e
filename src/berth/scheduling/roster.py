"""The pods that run, as columns: where each stands, what it holds, what it would lose if it had to leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Allocation
from berth.model.resources import CPU, get
from berth.model.workload import PodClass
from berth.scheduling.columns import Columns, numbers
from berth.scheduling.crowd import Crowd

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Roster:
    """P pods in the order of the snapshot, of J classes and G gangs.

    node      (P,) index of the node, -1 where it is not there
    kind      (P,) index of the class; need (J, R) and ask (J, 4) as in Tables
    mask      (P,) devices that it has for itself, as a bit mask
    milli     (P,) GPU milli held; cpu_milli (P,)
    priority, started_s, safe_s, min_runtime_s, most_lost_s  (P,): `safe_s` is when what it did was last safe
    ends_s    (P,) when it has to end by its run-time limit; infinite where it has none
    may_leave (P,) whatever its priority: no DaemonSet, not ending, nobody says no
    ending    (P,) it leaves already
    gang      (P,) code of its gang, -1 for a pod that leaves alone; team (P,) code of its set within it
    is_kept   (P,) a controller makes it again
    is_named  (P,) its devices are told, not taken to be these
    stay, stay_of_team   (P,) pods that must stay of its gang, of its set; `codes` (2,) how many of each have been met
    first     (N + 1,) where the pods of each node begin in `by_node` (P,), those of one node in their order
    """

    allocations: Sequence[Allocation]
    classes: Sequence[PodClass]
    node: I64
    kind: I64
    need: I64
    ask: I32
    mask: I64
    milli: I64
    cpu_milli: I64
    priority: I64
    started_s: F64
    safe_s: F64
    min_runtime_s: F64
    most_lost_s: F64
    ends_s: F64
    may_leave: Mask
    ending: Mask
    is_kept: Mask
    is_named: Mask
    gang: I64
    team: I64
    stay: I64
    stay_of_team: I64
    codes: tuple[int, int]
    first: I64
    by_node: I64

    @cached_property
    def least(self) -> I64:
        """(G,) pods that must stay of each gang."""
        return _most(self.stay, self.gang, self.codes[0])

    @cached_property
    def least_of_team(self) -> I64:
        """(S,) pods that must stay of each set."""
        return _most(self.stay_of_team, self.team, self.codes[1])

    def on(self, node: int) -> I64:
        """Positions of the pods of a node."""
        found: I64 = self.by_node[self.first[node] : self.first[node + 1]]
        return found

    def lost_s(self, now_s: float) -> F64:
        """(P,) seconds of work that are lost with each pod: since its start or what of it is safe."""
        lost: F64 = np.minimum(np.maximum(now_s - self.safe_s, 0.0), self.most_lost_s)
        return lost


class Roll:
    """Rosters of one snapshot after another: what is known of pods that stay is not asked again."""

    def __init__(self) -> None:
        self._seconds: F64 = np.zeros((5, 0))  # started, saved, saves every, runs at least, limit
        self._whole: I64 = np.zeros((5, 0), np.int64)  # gang, team, the least of each, devices
        self._is: Mask = np.zeros((2, 0), bool)  # made again, named
        self._source: I64 | None = None  # where pods were when the columns were made; None: all are new
        self._gangs: dict[tuple[str, str], int] = {}
        self._teams: dict[tuple[int, str], int] = {}
        self._need: I64 = np.zeros((0, 0), np.int64)
        self._ask: I32 = np.zeros((0, 4), np.int32)
        self._is_whole = True  # all pods were new at the last roster
        self._changed: set[int] = set()  # nodes on which who holds what may differ
        self._roster: Roster | None = None

    def follow(self, crowd: Crowd) -> None:
        """The crowd has changed."""
        if not len(crowd.came) and not len(crowd.gone) and bool((np.diff(crowd.source) > 0).all()):
            return
        self._roster = None
        if self._source is not None and not len(self._source):
            self._source = None
        if self._source is not None:
            self._source = np.where(crowd.source >= 0, self._source[crowd.source], -1)

    def recount(self, nodes: I64) -> None:
        """Pods of these nodes may hold other devices."""
        self._roster = None
        self._changed.update(nodes.tolist())

    def forget(self) -> None:
        """Nodes are numbered anew."""
        self._roster, self._source = None, None
        self._need, self._ask = np.zeros((0, 0), np.int64), np.zeros((0, 4), np.int32)

    def codes(self) -> int:
        """Gangs that have been met, those among them that are no more."""
        return len(self._gangs)

    def roster(self, crowd: Crowd, columns: Columns) -> Roster:
        """The roster of the snapshot of which the crowd is."""
        if self._roster is None:
            self._roster = self._made(crowd, columns)
        return self._roster

    def _made(self, crowd: Crowd, columns: Columns) -> Roster:
        self._carry(crowd)
        started, saved, every, min_runtime, limit = self._seconds
        gang, team, least, least_of_team, mask = self._whole
        is_kept, is_named = self._is
        node = crowd.node
        # Few nodes: then sorting looks at two bytes of each number.
        order = np.argsort(node.astype(np.int16) if columns.size < 2**15 else node, kind="stable")
        first = np.searchsorted(node[order], np.arange(columns.size + 1))
        by_node = order[int(first[0]) :]
        self._masks(mask, crowd, columns)
        classes = crowd.classes
        self._number(classes, columns)
        cpus = np.fromiter((get(c.requests, CPU) for c in classes), np.int64, len(classes))
        return Roster(
            allocations=crowd.allocations,
            classes=classes,
            node=node,
            kind=crowd.kind,
            need=self._need,
            ask=self._ask,
            mask=mask,
            milli=crowd.milli[crowd.kind] if len(classes) else node,
            cpu_milli=cpus[crowd.kind] if len(classes) else node,
            priority=crowd.priority,
            started_s=started,
            safe_s=np.maximum(started, saved),
            min_runtime_s=min_runtime,
            most_lost_s=np.where(every > 0, every, np.inf),
            ends_s=np.where(limit > 0, started + limit, np.inf),
            may_leave=(node >= 0) & crowd.may_leave,
            ending=crowd.ending & (node >= 0),
            is_kept=is_kept,
            is_named=is_named,
            gang=gang,
            team=team,
            stay=least,
            stay_of_team=least_of_team,
            codes=(len(self._gangs), len(self._teams)),
            first=first - first[0],
            by_node=by_node,
        )

    def _carry(self, crowd: Crowd) -> None:
        """The columns of this crowd; asked of new pods alone."""
        count = len(crowd.allocations)
        source = self._source if self._source is not None else np.full(count, -1, np.int64)
        fresh = np.flatnonzero(source < 0)
        new = [crowd.allocations[p] for p in fresh.tolist()] if len(fresh) < count else crowd.allocations
        seconds = [
            (a.started_s, a.last_checkpoint_s, a.checkpoint_every_s, a.min_runtime_s, a.time_limit_s) for a in new
        ]
        gangs = self._gangs_of(new)
        whole = [(g, t, a.gang_minimum, a.set_minimum, 0) for a, (g, t) in zip(new, gangs, strict=True)]
        flags = [(a.is_controlled, bool(a.devices)) for a in new]
        if self._source is None:
            self._changed.clear()
        self._seconds = _with_new(self._seconds, source, fresh, seconds)
        self._whole = _with_new(self._whole, source, fresh, whole)
        self._is = _with_new(self._is, source, fresh, flags)
        self._is_whole = len(fresh) == count
        self._source = np.arange(count)

    def _masks(self, mask: I64, crowd: Crowd, columns: Columns) -> None:
        """Write down devices by pod, of nodes that have changed; of all of them at first."""
        if self._is_whole or len(self._changed) > columns.size // 4:
            there = crowd.node >= 0
            order = np.argsort(crowd.node[there], kind="stable")
            mask[np.flatnonzero(there)[order]] = np.fromiter(
                (m for masks in columns.masks for m in masks), np.int64, int(there.sum())
            )
        else:
            wanted = np.zeros(columns.size + 1, bool)
            wanted[list(self._changed)] = True
            positions = np.flatnonzero(wanted[crowd.node])
            so_far: dict[int, int] = {}
            for p, n in zip(positions.tolist(), crowd.node[positions].tolist(), strict=True):
                at = so_far.get(n, 0)
                mask[p] = columns.masks[n][at]
                so_far[n] = at + 1
        self._changed.clear()

    def _gangs_of(self, pods: Sequence[Allocation]) -> list[tuple[int, int]]:
        """Codes of the gang that a pod leaves with, and of its set there; -1 for one that leaves alone."""
        found = []
        for a in pods:
            if a.disruption == "single" or not a.workload:
                found.append((-1, -1))
                continue
            g = self._gangs.setdefault((a.workload_kind, a.workload), len(self._gangs))
            found.append((g, self._teams.setdefault((g, a.pod_set), len(self._teams))))
        return found

    def _number(self, classes: Sequence[PodClass], columns: Columns) -> None:
        """What pods of the classes that are new take."""
        known = len(self._ask)
        if known == len(classes):
            return
        made = [numbers(c, columns) for c in classes[known:]]
        width = len(columns.resources)
        self._need = np.concatenate([self._need.reshape(known, width), *(need[None] for need, _ in made)])
        self._ask = np.concatenate([self._ask, *(ask[None] for _, ask in made)])


def _with_new(old: NDArray[T], source: I64, fresh: I64, values: Sequence[tuple[float, ...]]) -> NDArray[T]:
    """(K, P) columns of the pods that stay, and of those that are new."""
    stays = old.shape[1] and len(fresh) < len(source)
    made = old.take(source, 1) if stays else np.zeros((old.shape[0], len(source)), old.dtype)
    if values:
        made[:, fresh] = np.array(values, old.dtype).T
    return made


def _most(values: I64, codes: I64, count: int) -> I64:
    """(count,) the largest value of each code; members of a gang agree, if all has been read."""
    most = np.zeros(count, np.int64)
    mine = codes >= 0
    np.maximum.at(most, codes[mine], values[mine])
    return most
