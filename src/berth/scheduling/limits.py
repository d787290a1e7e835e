"""Verdicts on limits by GPU class: what a queue may never take, and what it may not take now."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.model.reasons import Block, Cause, Reason, Verdict
from berth.model.workload import Workload
from berth.scheduling.admission import larger_than_limit, limit_reached, over_limit
from berth.scheduling.draft import Draft
from berth.scheduling.placement import place_gang
from berth.scheduling.quota import NO_BOUND, Ledger, gpu_milli, milli_of
from berth.scheduling.sets import AsListed

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


def refused_by_limits(
    workload: Workload, rows: Sequence[int], draft: Draft, ledger: Ledger, queue: int
) -> Verdict | None:
    """The limits of a queue keep a workload that would find room without them; or they would even if all were idle."""
    if not (ledger.bound(queue) < NO_BOUND).any():
        return None
    if refusal := over_limit(workload, queue, ledger):
        if refusal.reason is Reason.LimitExceeded and not _finds_room(workload, rows, draft):
            refusal = replace(refusal, unlock=())  # a higher limit alone would not do
        return _verdict(workload, refusal)
    need = milli_of(workload, minimum=True)
    bound = ledger.bound(queue)
    for row, pod_set in zip(rows, workload.pod_sets, strict=True):
        per_pod = gpu_milli(pod_set.pod_class.requests, pod_set.pod_class.gpu_milli)
        if per_pod and _pods_within(draft.tables.copies_when_empty(row), per_pod, bound, draft) < pod_set.min_count:
            c = _tightest(draft.tables.copies_when_empty(row), bound, draft)
            if bound[c] < NO_BOUND:
                where = ledger.tightest(queue, c)
                return _verdict(workload, larger_than_limit(need, int(bound[c]), where, _name(c, ledger)))
    if not _finds_room(workload, rows, draft):
        return None
    room = ledger.room(queue)
    c = _tightest(draft.copies[rows[0]], room, draft)
    where = ledger.tightest(queue, c)
    cause = limit_reached(need, int(room[c]), int(bound[c]), where, _name(c, ledger))
    return _verdict(workload, replace(cause, blocks=_nodes_by_block(rows[0], room, draft)))


def _finds_room(workload: Workload, rows: Sequence[int], draft: Draft) -> bool:
    """It would start if nothing limited its queue. That it would not is known for all who ask for the same."""
    sets = tuple([(row, s.count, s.min_count, s.topology) for row, s in zip(rows, workload.pod_sets, strict=True)])
    who = ("finds no room", sets, workload.topology, workload.has_begun)
    if draft.neighbours is None and who in draft.told:
        return False
    tried = place_gang(workload, rows, draft, np.ones(draft.columns.size, bool), AsListed())
    draft.drop()
    if not tried.placed:
        draft.told[who] = True
    return tried.placed


def _verdict(workload: Workload, cause: Cause) -> Verdict:
    return Verdict(workload.key, cause.reason.answer, (cause,))


def _pods_within(copies: I32, per_pod: int, room: I64, draft: Draft) -> int:
    """Pods that fit into both the nodes and the room by GPU class, (C + 1,) milli."""
    classes = np.where(draft.columns.gpu_class < 0, len(room) - 1, draft.columns.gpu_class)
    by_class = np.bincount(classes, weights=copies, minlength=len(room)).astype(np.int64)
    return int(min(np.minimum(by_class, np.maximum(room, 0) // per_pod).sum(), max(int(room[-1]), 0) // per_pod))


def _tightest(copies: I32, room: I64, draft: Draft) -> int:
    """The GPU class, among those with nodes for the pods, of which the queue may take least."""
    classes = np.where(draft.columns.gpu_class < 0, len(room) - 1, draft.columns.gpu_class)
    there = np.unique(classes[copies > 0])
    return int(there[np.argmin(room[there])]) if len(there) else len(room) - 1


def _name(c: int, ledger: Ledger) -> str:
    """The name of a column of the ledger; "" for all classes together."""
    return ledger.classes[c] if c < len(ledger.classes) else ""


def _nodes_by_block(row: int, room: I64, draft: Draft) -> tuple[tuple[Block, int], ...]:
    """Nodes by what keeps a pod off them, the queue's limit among them; most nodes first."""
    columns, tables = draft.columns, draft.tables
    classes = np.where(columns.gpu_class < 0, len(room) - 1, columns.gpu_class)
    pod = int(tables.ask[row, 1]) * int(tables.ask[row, 2])
    closed = (room[classes] < max(pod, 1)) & (tables.static[row] == Block.Nothing) & (draft.block[row] == Block.Nothing)
    counts = np.bincount(np.where(closed, Block.Queue, draft.block[row]), minlength=len(Block))
    return tuple((Block(b), int(counts[b])) for b in np.argsort(-counts, kind="stable").tolist() if counts[b] and b)
