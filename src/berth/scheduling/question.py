"""What is asked when a pod set waits: the tables that answer, and the numbers read off them."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.base.units import from_milli
from berth.model.reasons import BLOCK_WORDS, Block, Cause
from berth.model.resources import is_accelerator
from berth.model.workload import WHOLE, PodSet, TopologyWish, Workload
from berth.scheduling import kernels
from berth.scheduling.draft import Draft
from berth.scheduling.feasibility import is_held
from berth.scheduling.placement import level_of
from berth.scheduling.quota import gpu_milli
from berth.scheduling.topology import room_by_domain

I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]

NEAREST = 3


@dataclass(frozen=True)
class Question:
    """One pod set of a workload that waits, with the tables that answer.

    `copies` (N,) as they are; `empty` (N,) as they would be if only DaemonSets ran, held-back nodes included;
    `mended` (N,) as they are, but with held-back nodes in service.
    """

    workload: Workload
    pod_set: PodSet
    row: int
    draft: Draft
    copies: I32
    empty: I32
    mended: I32
    per_pod: int  # GPU milli of one pod

    @property
    def need(self) -> int:
        return self.pod_set.min_count


def question_on(workload: Workload, pod_set: PodSet, row: int, draft: Draft, allowed: Mask) -> Question:
    """The question with its answers from the tables. `allowed` (N,) are the nodes that the workload may use."""
    copies = draft.copies[row]
    held = np.flatnonzero(is_held(draft.tables.static[row]))
    mended = copies.copy()
    if len(held):
        mended[held] = draft.count_on(row, held)
    per_pod = gpu_milli(pod_set.pod_class.requests, pod_set.pod_class.gpu_milli)
    return Question(
        workload, pod_set, row, draft, np.where(allowed, copies, 0), draft.tables.copies_when_empty(row),
        np.where(allowed, mended, 0), per_pod,
    )  # fmt: skip


def with_nodes(cause: Cause, q: Question) -> Cause:
    """Adds the nodes by what keeps a pod off them, and the nearest candidates."""
    block = q.draft.block[q.row]
    counts = np.bincount(block, minlength=len(Block))
    blocks = [(Block(b), int(counts[b])) for b in np.argsort(-counts, kind="stable").tolist() if counts[b] and b]
    return msgspec.structs.replace(cause, blocks=tuple(blocks), nearest=_nearest(q))


def _nearest(q: Question) -> tuple[tuple[str, str], ...]:
    """Nodes that lack least, with what they lack."""
    columns, draft = q.draft.columns, q.draft
    static = draft.tables.static[q.row]
    if not q.per_pod:
        return ()
    idle = node_idle(q)
    candidates = np.flatnonzero((static == Block.Nothing) & (q.copies == 0))
    missing = np.maximum(q.per_pod - idle[candidates], 0)
    found: list[tuple[str, str]] = []
    for n in candidates[np.argsort(missing, kind="stable")[:NEAREST]].tolist():
        block = Block(int(draft.block[q.row, n]))
        if block in (Block.Gpus, Block.GpuShare):
            found.append((columns.nodes[n].name, f"{from_milli(int(idle[n]))} of {from_milli(q.per_pod)} GPUs free"))
        else:
            found.append((columns.nodes[n].name, BLOCK_WORDS[block]))
    return tuple(found)


def fits(copies: I32, q: Question) -> bool:
    if int(copies.sum()) < q.need:
        return False
    narrow = narrowest_level(q)
    if narrow is None:
        return True
    wish, level = narrow
    if wish.slice_size:
        return slice_room(copies, level, q) >= q.need
    return largest_domain(copies, level, q)[0] >= q.need


def narrowest_level(q: Question) -> tuple[TopologyWish, int] | None:
    """The narrowest required level that all pods of the set share, or whose slices do."""
    wishes = [w for w in (*q.workload.topology, *q.pod_set.topology) if w.required]
    levels = [(level_of(w, q.draft), w) for w in wishes]
    if not levels:
        return None
    level, wish = max(levels, key=lambda pair: pair[0])
    return (wish, level) if level >= 0 else None


def largest_domain(copies: I32, level: int, q: Question, slice_size: int = 0) -> tuple[int, str]:
    """Most pods in one domain of a level, and the domain's name."""
    columns = q.draft.columns
    if level == len(columns.topology.levels):
        n = int(np.argmax(copies))
        return int(copies[n]), f"node {columns.nodes[n].name}"
    room = room_by_domain(copies, level, columns)
    if not len(room):
        return 0, f"no {columns.topology.levels[level].name}"
    domain = int(np.argmax(room))
    return int(room[domain]), f"{columns.topology.levels[level].name} {columns.domain_names[level][domain]}"


def slice_room(copies: I32, level: int, q: Question) -> int:
    size = next(w.slice_size for w in (*q.workload.topology, *q.pod_set.topology) if w.slice_size)
    if level == len(q.draft.columns.topology.levels):
        return int((copies // size * size).sum())
    return int(room_by_domain(copies, level, q.draft.columns, None, size).sum())


def copies_by_gpus(q: Question, would_do: Mask) -> int:
    """Pods that the free GPUs would hold if nothing else mattered."""
    draft, columns, tables = q.draft, q.draft.columns, q.draft.tables
    need = np.zeros_like(tables.need[q.row : q.row + 1])
    for name, amount in q.pod_set.pod_class.requests:
        if is_accelerator(name) and q.pod_set.pod_class.gpu_milli == WHOLE:
            need[0, columns.column(name)] = amount
    static = np.where(would_do, 0, 255).astype(np.uint8)[None, :]
    copies, block = np.zeros((1, columns.size), np.int32), np.zeros((1, columns.size), np.uint8)
    kernels.refresh_nodes(
        np.arange(columns.size), np.array([0]), need, tables.ask[q.row : q.row + 1], static,
        draft.free, draft.device_free, columns.island, columns.pool, copies, block,
    )  # fmt: skip
    return int(copies.sum())


def node_idle(q: Question) -> NDArray[np.int64]:
    """(N,) free GPU milli of the kind that the pod asks for; of whole GPUs only, where it asks for whole ones."""
    name = next((n for n, _ in q.pod_set.pod_class.requests if is_accelerator(n)), "")
    return q.draft.idle(q.draft.columns.column(name), q.pod_set.pod_class.gpu_milli == WHOLE)


def idle_milli(q: Question, would_do: Mask) -> int:
    return int(node_idle(q)[would_do].sum())


def all_milli(q: Question, would_do: Mask) -> int:
    columns = q.draft.columns
    name = next((n for n, _ in q.pod_set.pod_class.requests if is_accelerator(n)), "")
    column = columns.column(name)
    return int(np.maximum(columns.empty[would_do, column], 0).sum()) * WHOLE if column >= 0 else 0


def nearest_to_whole(q: Question, would_do: Mask) -> list[tuple[int, int]]:
    """Nodes with their free milli, the one that lacks least for one pod first."""
    idle = node_idle(q)
    large = np.flatnonzero(would_do & (q.empty > 0))
    order = large[np.argsort(-idle[large], kind="stable")]
    return [(int(n), int(idle[n])) for n in order[:NEAREST] if idle[n] < q.per_pod]
