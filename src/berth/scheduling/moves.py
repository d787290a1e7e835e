"""Which moves would make room: said only where the pods that would move fit elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Allocation
from berth.model.reasons import Block
from berth.model.resources import PODS, get
from berth.model.workload import WHOLE, Capability, PodClass
from berth.scheduling.feasibility import untolerated
from berth.scheduling.neighbours import Who
from berth.scheduling.question import Question, node_idle
from berth.scheduling.quota import gpu_milli
from berth.scheduling.wording import gpus, is_share, resource_of

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

NODES_TRIED = 8


@dataclass(frozen=True)
class Freed:
    """A node on which one more pod fits once these pods have left it, and what they hold."""

    milli: int
    node: int
    pods: Sequence[Allocation]


def moves_that_free(q: Question, would_do: Mask) -> tuple[str, ...]:
    """`moving 1 GPU frees node-0`: the cheapest that is possible among the nodes that lack least; () for none."""
    return tuple(told(freed, q) for freed in nodes_to_free(q, would_do)[:1])


def told(freed: Freed, q: Question) -> str:
    return f"moving {gpus(freed.milli)} frees {q.draft.columns.nodes[freed.node].name}"


def nodes_to_free(q: Question, would_do: Mask) -> list[Freed]:
    """Of the nodes that lack least for one pod those that moves could free, the cheapest first."""
    neighbours = q.draft.neighbours
    who = Who(q.workload.namespace, q.pod_set.labels, q.pod_set.pod_class)
    link = q.pod_set.pod_class.least.link
    if is_share(q) or (link and q.per_pod > WHOLE) or (neighbours is not None and neighbours.concern(who)):
        return []
    idle, columns = node_idle(q), q.draft.columns
    large = np.flatnonzero(would_do & ~columns.broken & (q.empty > 0) & (idle < q.per_pod))
    found = []
    for n in large[np.argsort(-idle[large], kind="stable")][:NODES_TRIED].tolist():
        pods = _cheapest_move(q, n, q.per_pod - int(idle[n]))
        if pods:
            found.append(Freed(sum(gpu_milli(a.pod_class.requests, a.pod_class.gpu_milli) for a in pods), n, pods))
    return sorted(found, key=lambda freed: freed.milli)


def _cheapest_move(q: Question, node: int, missing: int) -> list[Allocation]:
    """Pods to move off a node so that `missing` GPU milli more become free; none where they fit nowhere else."""
    holders = [
        (gpu_milli(a.pod_class.requests, a.pod_class.gpu_milli), a)
        for a in q.draft.tables.held_on(node)
        if not a.is_daemon and a.pod_class.gpu_milli == WHOLE
    ]
    movable = sorted(((milli, a) for milli, a in holders if milli), key=lambda pair: pair[0])
    # One pod that frees enough, the smallest; else the smallest ones together.
    alone = [[pair] for pair in movable if pair[0] >= missing]
    together: list[tuple[int, Allocation]] = []
    for pair in movable:
        if sum(milli for milli, _ in together) >= missing:
            break
        together.append(pair)
    for group in sorted([*alone, together], key=lambda g: sum(milli for milli, _ in g)):
        moved = sum(milli for milli, _ in group)
        pods = [a for _, a in group]
        if moved >= missing and _has_room_without(q, node, pods) and _fit_elsewhere(q, node, pods):
            return pods
    return []


def _has_room_without(q: Question, node: int, pods: list[Allocation]) -> bool:
    """Whether the waiting pod's other resources are there too once pods have left the node."""
    draft, columns = q.draft, q.draft.columns
    need, left = draft.tables.need[q.row].copy(), draft.free[node].copy()
    need[columns.column(resource_of(q))] = 0  # has been counted, by whole GPUs
    for pod in pods:
        left[columns.column(PODS)] += 1
        for name, amount in pod.pod_class.requests:
            if columns.column(name) >= 0:
                left[columns.column(name)] += amount
    return bool((left >= need).all())


def _fit_elsewhere(q: Question, node: int, pods: list[Allocation]) -> bool:
    """Whether pods find room on other nodes by their amounts; the largest first."""
    draft, columns = q.draft, q.draft.columns
    free = draft.free.copy()
    open_ = q.static == Block.Nothing
    open_[node] = False
    for pod in sorted(pods, key=lambda a: -gpu_milli(a.pod_class.requests, a.pod_class.gpu_milli)):
        if not _goes_anywhere(pod.pod_class):
            return False
        fits = open_ & (free[:, columns.column(PODS)] >= 1)
        for name, amount in pod.pod_class.requests:
            fits &= free[:, columns.column(name)] >= amount if columns.column(name) >= 0 else False
        nodes = np.flatnonzero(fits)
        if not len(nodes):
            return False
        # The fullest that fits, so that others keep their room.
        device = columns.column(columns.nodes[node].device_resource)
        fullest_first = nodes[np.argsort(free[nodes, device], kind="stable")] if device >= 0 else nodes
        tolerated = (n for n in fullest_first.tolist() if not untolerated(columns.nodes[n], pod.pod_class.tolerations))
        target = next(tolerated, -1)
        if target < 0:
            return False
        free[target, columns.column(PODS)] -= 1
        for name, _ in pod.pod_class.requests:
            free[target, columns.column(name)] -= get(pod.pod_class.requests, name)
    return True


def _goes_anywhere(pod_class: PodClass) -> bool:
    """It asks nothing of a node but amounts, so it may go where the waiting pod may, but for taints."""
    if pod_class.node_selector or pod_class.node_affinity or pod_class.node_name or pod_class.depends_on_pods:
        return False
    return pod_class.least == Capability() and not (pod_class.unbound or pod_class.unsupported or pod_class.ways)
