"""Which GPUs, released, let a pod set start: told by arithmetic alone, and only where it is true.

The shape of the pods decides. Six GPUs free on one node and five on another are not one pod of eight with any
three more: GPUs released where they complete no pod help nobody. So an amount without a place is told only where
no choice of GPUs could be wrong, and else the one node that lacks least, where it alone would be enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from berth.base.units import counted
from berth.model.resources import is_accelerator
from berth.model.workload import WHOLE
from berth.scheduling.neighbours import Who
from berth.scheduling.question import Question, node_idle
from berth.scheduling.wording import amount, is_share, resource_of

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Releasable:
    """Whole GPUs (or partitions, or replicas) by node, (N,): `free`, `held` by pods that may end, and `beside`: pods
    that all other resources hold. Nodes that would not do, or whose account is in doubt, have nothing."""

    free: I64
    held: I64
    beside: I64
    each: int  # GPUs of one pod

    @cached_property
    def complete(self) -> int:
        """Pods that what is free holds, beside what else they need."""
        return int(np.minimum(self.free // self.each, self.beside).sum())

    @cached_property
    def at_most(self) -> int:
        """Pods that all of it would hold."""
        return int(((self.free + self.held) // self.each).sum())

    @cached_property
    def idle(self) -> int:
        return int(self.free.sum())

    @cached_property
    def in_use(self) -> int:
        return int(self.held.sum())

    @cached_property
    def completing_none(self) -> I64:
        """(N,) GPUs that may come free without completing a pod."""
        none: I64 = np.minimum(self.held, self.each - 1 - self.free % self.each)
        return none

    @cached_property
    def in_vain(self) -> int:
        return int(self.completing_none.sum())

    @cached_property
    def is_doubtful(self) -> bool:
        """A GPU may come free where something else lacks."""
        return bool((self.beside < (self.free + self.held) // self.each).any())


def released(q: Question, nodes: Mask, where: str = "") -> tuple[str, ...]:
    """`2 more GPUs released`, where that is enough whatever GPUs of `nodes` they are; else the node that lacks least,
    where one more pod is all that is missing; () where neither holds. `where` names the nodes: ` in rack r1`."""
    if is_share(q):
        return _whole_ones(q, nodes, where)
    there = releasable(q, nodes)
    if there is None:
        return ()
    more = _whatever(q.need, there)
    if more:
        return (f"{amount(q, more * WHOLE, 'more')} released{where or _among(q, nodes)}",)
    if q.need - there.complete != 1:
        return ()
    return on_one_node(q, there, np.minimum(there.free // there.each, there.beside) + 1)


def on_one_node(q: Question, there: Releasable, pods: I64 | int) -> tuple[str, ...]:
    """`3 more GPUs released on n2`: the node that lacks least for so many pods, (N,) or the same for all."""
    lack = np.asarray(pods, np.int64) * there.each - there.free
    able = np.flatnonzero((lack > 0) & (lack <= there.held) & (there.beside >= pods))
    if not len(able):
        return ()
    n = int(able[np.argmin(lack[able])])
    return (f"{amount(q, int(lack[n]) * WHOLE, 'more')} released on {q.draft.columns.nodes[n].name}",)


def releasable(q: Question, nodes: Mask) -> Releasable | None:
    """What could be released on some nodes; None where it matters which GPUs of a node they are, or who else is there.

    Only GPUs are taken to be released, nothing of what their pods hold beside them.
    """
    return q.once(("releasable", nodes.tobytes()), lambda: _releasable(q, nodes))


def _releasable(q: Question, nodes: Mask) -> Releasable | None:
    pod_class, draft, columns = q.pod_set.pod_class, q.draft, q.draft.columns
    column = columns.column(resource_of(q))
    if column < 0 or not q.per_pod or q.per_pod % WHOLE or (q.per_pod > WHOLE and pod_class.least.link):
        return None
    if sum(is_accelerator(name) for name, _ in pod_class.requests) > 1 or _is_looked_at(q):
        return None
    sure = nodes & ~columns.broken & (draft.free[:, column] >= 0)
    free = np.where(sure, node_idle(q) // WHOLE, 0)
    held = np.where(sure, np.maximum(columns.empty[:, column] - free, 0), 0)
    return Releasable(free, held, np.where(sure, _beside(q, column), 0), q.per_pod // WHOLE)


def _whatever(need: int, there: Releasable) -> int:
    """GPUs of which any so many, released, let `need` pods start; 0 where it depends on which they are.

    Whoever releases them worst completes as few pods as can be: first all that completes none, then those that
    complete one pod each and as many as possible beside it.
    """
    missing, more = need - there.complete, need * there.each - there.idle
    if missing <= 0 or more <= 0 or more > there.in_use or there.is_doubtful:
        return 0
    if more == there.in_use:  # all of them
        return more if there.at_most >= need else 0
    if there.in_vain >= more:
        return 0
    rest = there.held - there.completing_none
    full, part = int((rest // there.each).sum()), np.sort(rest % there.each)[::-1]
    vain = there.in_vain + min(missing - 1, full) * there.each + int(part[: max(missing - 1 - full, 0)].sum())
    return more if vain < more else 0


def _whole_ones(q: Question, nodes: Mask, where: str) -> tuple[str, ...]:
    """Of shares: GPUs that nobody has a share of then. `0.1 more` could be freed on a GPU where it is not enough."""
    draft, columns, share = q.draft, q.draft.columns, q.per_pod
    column = columns.column(resource_of(q))
    on_pool = columns.pool[nodes] == column
    if column < 0 or not on_pool.all() or share != q.pod_set.pod_class.gpu_milli or _is_looked_at(q):
        return ()
    left = draft.device_free
    taken = nodes[:, None] & (left >= 0) & (left < WHOLE)
    missing = q.need - int(q.copies[nodes].sum())
    # A GPU that has room for some of these pods already has room for fewer more.
    gain = WHOLE // share - int(left[taken].max(initial=0)) // share
    if missing <= 0 or gain <= 0 or (nodes & columns.broken).any():
        return ()
    # Of one pod what lacks on the GPU that lacks most is enough on any.
    lack = share - int((left[taken] % share).min(initial=0))
    if missing == 1 and (left[taken] + lack <= WHOLE).all() and (_beside(q, column)[taken.any(axis=1)] > 0).all():
        return (f"{amount(q, lack, 'more')} released on one GPU{where or _among(q, nodes)}",)
    gpus = -(-missing // gain)
    if gpus > int(taken.sum()) or (_beside(q, column)[taken.any(axis=1)] < q.need).any():
        return ()
    return (f"{counted(gpus, 'whole GPU')} released{where or _among(q, nodes)}",)


def _beside(q: Question, column: int) -> I64:
    """(N,) pods that all resources but one hold."""
    need = q.draft.tables.need[q.row].copy()
    need[column] = 0
    asked = np.flatnonzero(need)
    if not len(asked):
        return np.full(q.draft.columns.size, np.iinfo(np.int64).max)
    found: I64 = (np.maximum(q.draft.free[:, asked], 0) // need[asked]).min(axis=1)
    return found


def _is_looked_at(q: Question) -> bool:
    """Other pods have a say in where these go."""
    neighbours = q.draft.neighbours
    who = Who(q.workload.namespace, q.pod_set.labels, q.pod_set.pod_class)
    return neighbours is not None and neighbours.concern(who)


def _among(q: Question, nodes: Mask) -> str:
    """Said where GPUs of the kind are held on nodes that would not do, too."""
    columns = q.draft.columns
    others = (columns.empty[:, columns.column(resource_of(q))] > 0) & ~nodes
    return " on nodes that would do" if others.any() else ""
