"""The pods that run, as columns: where each stands, what it holds, what it would lose if it had to leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Allocation
from berth.model.resources import CPU, get
from berth.model.workload import PodClass
from berth.scheduling.columns import Columns
from berth.scheduling.quota import gpu_milli
from berth.scheduling.tables import Tables, numbers

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Roster:
    """P pods in the order of the snapshot, of J classes and G gangs.

    node      (P,) index of the node, -1 where it is not there
    kind      (P,) index of the class; need (J, R) and ask (J, 4) as in Tables
    mask      (P,) devices that it has for itself, as a bit mask
    milli     (P,) GPU milli held; cpu_milli (P,)
    priority, started_s, safe_s, min_runtime_s, most_lost_s  (P,): `safe_s` is when what it did was last safe
    may_leave (P,) whatever its priority: no DaemonSet, not ending, nobody says no
    ending    (P,) it leaves already
    gang      (P,) code of its gang, -1 for a pod that leaves alone; team (P,) code of its set within it
    is_kept   (P,) a controller makes it again
    least, least_of_team   pods that must stay of a gang (G,), of a set (S,)
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
    may_leave: Mask
    ending: Mask
    is_kept: Mask
    gang: I64
    team: I64
    least: I64
    least_of_team: I64
    first: I64
    by_node: I64

    def on(self, node: int) -> I64:
        """Positions of the pods of a node."""
        found: I64 = self.by_node[self.first[node] : self.first[node + 1]]
        return found

    def lost_s(self, now_s: float) -> F64:
        """(P,) seconds of work that are lost with each pod: since its start or what of it is safe."""
        lost: F64 = np.minimum(np.maximum(now_s - self.safe_s, 0.0), self.most_lost_s)
        return lost


def roster_of(allocations: Sequence[Allocation], tables: Tables) -> Roster:
    """The roster of the snapshot that the tables were brought up to."""
    columns = tables.columns
    assert columns is not None
    count = len(allocations)
    index = columns.index
    node = np.fromiter([index.get(a.node, -1) for a in allocations], np.int64, count)
    classes, kind, need, ask, gpus, cpus = _kinds(allocations, columns)
    order = np.argsort(node, kind="stable")
    first = np.searchsorted(node[order], np.arange(columns.size + 1))
    by_node = order[first[0] :] if count else order
    mask = np.zeros(count, np.int64)
    mask[by_node] = np.fromiter((m for masks in columns.masks for m in masks), np.int64, len(by_node))
    started = np.fromiter([a.started_s for a in allocations], np.float64, count)
    checkpoint = np.fromiter([a.last_checkpoint_s for a in allocations], np.float64, count)
    every = np.fromiter([a.checkpoint_every_s for a in allocations], np.float64, count)
    # A DaemonSet's pod that ends comes back on the same node.
    ending = np.fromiter([a.is_ending and not a.is_daemon for a in allocations], bool, count)
    stays = np.fromiter([a.is_daemon or a.preemptible is False for a in allocations], bool, count)
    gang, team, least, least_of_team = _gangs(allocations)
    return Roster(
        allocations=allocations,
        classes=classes,
        node=node,
        kind=kind,
        need=need,
        ask=ask,
        mask=mask,
        milli=gpus[kind],
        cpu_milli=cpus[kind],
        priority=np.fromiter([a.priority for a in allocations], np.int64, count),
        started_s=started,
        safe_s=np.maximum(started, checkpoint),
        min_runtime_s=np.fromiter([a.min_runtime_s for a in allocations], np.float64, count),
        most_lost_s=np.where(every > 0, every, np.inf),
        may_leave=(node >= 0) & ~ending & ~stays,
        ending=ending & (node >= 0),
        is_kept=np.fromiter([a.is_controlled for a in allocations], bool, count),
        gang=gang,
        team=team,
        least=least,
        least_of_team=least_of_team,
        first=first - first[0] if count else first,
        by_node=by_node,
    )


def _kinds(
    allocations: Sequence[Allocation], columns: Columns
) -> tuple[list[PodClass], I64, I64, I32, I64, I64]:
    """The classes, their codes by pod, and by class what one pod takes, its GPU milli and its CPU milli."""
    codes: dict[int, int] = {}
    classes = {id(a.pod_class): a.pod_class for a in allocations}
    for code, key in enumerate(classes):
        codes[key] = code
    kind = np.fromiter([codes[id(a.pod_class)] for a in allocations], np.int64, len(allocations))
    need = np.zeros((len(classes), len(columns.resources)), np.int64)
    ask = np.zeros((len(classes), 4), np.int32)
    for code, pod_class in enumerate(classes.values()):
        need[code], ask[code] = numbers(pod_class, columns)
    gpus = np.fromiter((gpu_milli(c.requests, c.gpu_milli) for c in classes.values()), np.int64, len(classes))
    cpus = np.fromiter((get(c.requests, CPU) for c in classes.values()), np.int64, len(classes))
    return list(classes.values()), kind, need, ask, gpus, cpus


def _gangs(allocations: Sequence[Allocation]) -> tuple[I64, I64, I64, I64]:
    """Codes of gangs that leave together, and of the sets within them; how many of each must stay."""
    gang, team = np.full(len(allocations), -1, np.int64), np.full(len(allocations), -1, np.int64)
    gangs: dict[tuple[str, str], int] = {}
    teams: dict[tuple[int, str], int] = {}
    least: list[int] = []
    least_of_team: list[int] = []
    for p, a in enumerate(allocations):
        if a.disruption == "single" or not a.workload:
            continue
        g = gangs.setdefault((a.workload_kind, a.workload), len(gangs))
        if g == len(least):
            least.append(a.gang_minimum)
        t = teams.setdefault((g, a.pod_set), len(teams))
        if t == len(least_of_team):
            least_of_team.append(a.set_minimum)
        gang[p], team[p] = g, t
    return gang, team, np.array(least, np.int64), np.array(least_of_team, np.int64)
