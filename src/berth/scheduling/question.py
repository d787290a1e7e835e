"""What is asked when a pod set waits: the tables that answer, and the numbers read off them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.base.units import from_milli
from berth.model.cluster import Health
from berth.model.health import codes_of, in_words
from berth.model.reasons import BLOCK_WORDS, Block, Cause
from berth.model.resources import is_accelerator
from berth.model.workload import WHOLE, PodSet, TopologyWish, Workload
from berth.scheduling import kernels
from berth.scheduling.draft import Draft
from berth.scheduling.feasibility import Blocks, is_held, is_unfit_for, starts_a_gang, without_suspects
from berth.scheduling.quota import gpu_milli
from berth.scheduling.slices import deal_slices
from berth.scheduling.topology import room_by_domain
from berth.scheduling.wishes import level_of

I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]

T = TypeVar("T")
NEAREST = 3


@dataclass(frozen=True)
class Question:
    """One pod set of a workload that waits, with the tables that answer.

    `copies` (N,) as they are; `empty` (N,) as they would be if only DaemonSets ran, held-back nodes included;
    `mended` (N,) as they are, but with held-back nodes in service. `static` (N,) is what keeps a pod off each node by
    the node alone, suspect ones among them where it is of a new gang.
    """

    workload: Workload
    pod_set: PodSet
    row: int
    draft: Draft
    static: Blocks
    copies: I32
    empty: I32
    mended: I32
    per_pod: int  # GPU milli of one pod
    known: dict[Hashable, Any] = field(default_factory=dict)  # numbers that hold for all who ask with the same answers

    def once(self, what: Hashable, count: Callable[[], T]) -> T:
        """A number that is read off the tables; read once for all questions that share their answers."""
        if what not in self.known:
            self.known[what] = count()
        found: T = self.known[what]
        return found

    @property
    def need(self) -> int:
        return self.pod_set.min_count

    @property
    def block(self) -> Blocks:
        """(N,) what keeps a pod off each node now."""
        block: Blocks = np.where(self.static == Block.Suspect, self.static, self.draft.block[self.row])
        return block

    @property
    def copies_anywhere(self) -> I32:
        """(N,) as they are, whatever nodes the workload may use."""
        copies: I32 = np.where(self.static == Block.Suspect, 0, self.draft.copies[self.row])
        return copies


def question_on(workload: Workload, pod_set: PodSet, row: int, draft: Draft, allowed: Mask) -> Question:
    """The question with its answers from the tables. `allowed` (N,) are the nodes that the workload may use.

    Who asks for pods of one class and keeps to the same levels shares the answers, as long as the draft stays as it is.
    """
    if draft.neighbours is not None:  # what is open depends on who asks
        return _asked_first(workload, pod_set, row, draft, allowed)
    levels = tuple([w.level for w in (*workload.topology, *pod_set.topology) if w.required])
    who = (row, starts_a_gang(workload), levels, allowed.tobytes())
    first = draft.told.get(who)
    if first is None:
        first = draft.told[who] = _asked_first(workload, pod_set, row, draft, allowed)
    return replace(first, workload=workload, pod_set=pod_set)


def _asked_first(workload: Workload, pod_set: PodSet, row: int, draft: Draft, allowed: Mask) -> Question:
    static = without_suspects(workload, draft.tables.static[row], draft.columns)
    copies = np.where(static == Block.Suspect, 0, draft.copies[row])
    held = np.flatnonzero(is_held(static) | (draft.columns.broken & (static == Block.Nothing)))
    mended = copies.copy()
    if len(held):
        mended[held] = draft.count_on(row, held)
    allowed = allowed.copy()
    for wish in (*workload.topology, *pod_set.topology):
        level = level_of(wish, draft)
        if wish.required and 0 <= level < len(draft.columns.topology.levels):
            allowed &= draft.columns.domain[level] >= 0
    per_pod = gpu_milli(pod_set.pod_class.requests, pod_set.pod_class.gpu_milli)
    return Question(
        workload, pod_set, row, draft, static, np.where(allowed, copies, 0),
        np.where(allowed, draft.tables.copies_when_empty(row), 0),
        np.where(allowed, mended, 0), per_pod,
    )  # fmt: skip


def with_nodes(cause: Cause, q: Question) -> Cause:
    """Adds the nodes by what keeps a pod off them, and the nearest candidates."""
    blocks, codes, nearest = q.once("nodes", lambda: (_by_block(q), codes_on(q.block, q), _nearest(q)))
    return msgspec.structs.replace(cause, blocks=blocks, codes=codes, nearest=nearest)


def _by_block(q: Question) -> tuple[tuple[Block, int], ...]:
    counts = np.bincount(q.block, minlength=len(Block))
    return tuple((Block(b), int(counts[b])) for b in np.argsort(-counts, kind="stable").tolist() if counts[b] and b)


def codes_on(block: Blocks, q: Question, some: Iterable[int] | None = None) -> tuple[tuple[str, int], ...]:
    """Nodes that are held back as unfit or suspect, by what was found there, most first. `block` (N,) is what keeps a
    pod off each node; `some` are the nodes that are looked at, all of them where it is None."""
    found: Counter[str] = Counter()
    looked_at = np.flatnonzero((block == Block.Unfit) | (block == Block.Suspect)).tolist() if some is None else some
    for n in looked_at:
        node, state = q.draft.columns.nodes[n], Block(int(block[n]))
        # Who was refused by its kubelet keeps off a node of which the health agent may say something else.
        if node.code and (state == Block.Suspect or is_unfit_for(q.pod_set.pod_class, node)):
            found[node.code] += 1
    return tuple(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def _nearest(q: Question) -> tuple[tuple[str, str], ...]:
    """Nodes that lack least, with what they lack."""
    columns, draft = q.draft.columns, q.draft
    if not q.per_pod:
        return ()
    idle = node_idle(q)
    # A node with nothing free is not near.
    candidates = np.flatnonzero((q.static == Block.Nothing) & (q.copies == 0) & (idle > 0))
    missing = np.maximum(q.per_pod - idle[candidates], 0)
    found: list[tuple[str, str]] = []
    share, link = q.pod_set.pod_class.gpu_milli < WHOLE, q.pod_set.pod_class.least.link.lower() == "nvlink"
    in_island = island_idle(q) if link else idle
    for n in candidates[np.argsort(missing, kind="stable")[:NEAREST]].tolist():
        block = Block(int(draft.block[q.row, n]))
        if block == Block.Resource:
            found.append((columns.nodes[n].name, f"short of {_used_up_on(n, q)}"))
            continue
        text = BLOCK_WORDS.get(block, "outside the domains of the level")
        if share and block in (Block.Gpus, Block.GpuShare):
            most = int(max(draft.device_free[n].max(), 0))
            text = f"at most {from_milli(most)} free on one GPU" if most else "nothing free on any GPU"
        elif link and block == Block.Gpus:
            text = f"at most {from_milli(int(in_island[n]))} free in one NVLink island"
        elif block == Block.Gpus and columns.pool[n] < 0:
            name = next(r for r, _ in q.pod_set.pod_class.requests if is_accelerator(r))
            text = f"{int(idle[n]) // WHOLE} of {q.per_pod // WHOLE} {name} free"
        elif block == Block.Gpus:
            one = "GPU" if q.per_pod == WHOLE else "GPUs"
            text = f"{from_milli(int(idle[n]))} of {from_milli(q.per_pod)} {one} free"
            if sick := codes_of(columns.nodes[n].devices, Health.Unfit):
                text += f", {len(sick)} unfit: {in_words(sick[0])}"
        found.append((columns.nodes[n].name, text))
    return tuple(found)


def in_all(copies: I32, q: Question) -> int:
    """Pods on all nodes together."""
    name = _told_as(copies, q)
    return q.once(("in all", name), lambda: int(copies.sum())) if name else int(copies.sum())


def _told_as(copies: I32, q: Question) -> str:
    """Which of the question's answers it is; "" where it is none."""
    return "copies" if copies is q.copies else "empty" if copies is q.empty else "mended" if copies is q.mended else ""


def fits(copies: I32, q: Question) -> bool:
    """Whether the set's minimum fits by these counts, its levels and slices kept."""
    if in_all(copies, q) < q.need:
        return False
    narrow = narrowest_level(q)
    if narrow is None:
        return True
    wish, level = narrow
    if wish.slice_size:
        columns = q.draft.columns
        on_host = level == len(columns.topology.levels)
        room = copies.astype(np.int64) if on_host else room_by_domain(copies, level, columns)
        return deal_slices(room, q.need, wish.slice_size) is not None
    return largest_domain(copies, level, q)[0] >= q.need


def required_levels(q: Question) -> list[tuple[int, TopologyWish]]:
    """The levels that the set must keep to, with the wishes that say so."""
    wishes = {w: None for w in (*q.workload.topology, *q.pod_set.topology) if w.required}
    return [(level_of(w, q.draft), w) for w in wishes]


def narrowest_level(q: Question) -> tuple[TopologyWish, int] | None:
    """The narrowest required level that all pods of the set share, or whose slices do."""
    levels = required_levels(q)
    if not levels:
        return None
    level, wish = max(levels, key=lambda pair: pair[0])
    return (wish, level) if level >= 0 else None


def largest_domain(copies: I32, level: int, q: Question) -> tuple[int, str]:
    """Most pods in one domain of a level, and the domain's name."""
    name = _told_as(copies, q)
    return q.once(("largest", name, level), lambda: _largest(copies, level, q)) if name else _largest(copies, level, q)


def _largest(copies: I32, level: int, q: Question) -> tuple[int, str]:
    columns = q.draft.columns
    if level == len(columns.topology.levels):
        n = int(np.argmax(copies))
        return int(copies[n]), columns.nodes[n].name
    room = room_by_domain(copies, level, columns)
    if not len(room):
        return 0, f"no {columns.topology.levels[level].name}"
    domain = int(np.argmax(room))
    return int(room[domain]), f"{columns.topology.levels[level].name} {columns.domain_names[level][domain]}"


def slices_held(copies: I32, level: int, size: int, q: Question) -> int:
    """Whole slices that fit, each in one domain of a level."""
    if level == len(q.draft.columns.topology.levels):
        return int((copies // size).sum())
    return int((room_by_domain(copies, level, q.draft.columns) // size).sum())


def copies_by_gpus(q: Question, would_do: Mask) -> int:
    """Pods that the free GPUs would hold if nothing else mattered."""
    return q.once(("by GPUs", would_do.tobytes()), lambda: _by_gpus(q, would_do))


def _by_gpus(q: Question, would_do: Mask) -> int:
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
    return q.once(("idle", would_do.tobytes()), lambda: int(node_idle(q)[would_do].sum()))


def all_milli(q: Question, would_do: Mask) -> int:
    columns = q.draft.columns
    name = next((n for n, _ in q.pod_set.pod_class.requests if is_accelerator(n)), "")
    column = columns.column(name)
    if column < 0:
        return 0
    amount = q.once(("there", would_do.tobytes()), lambda: int(np.maximum(columns.empty[would_do, column], 0).sum()))
    return amount * WHOLE


def island_idle(q: Question) -> NDArray[np.int64]:
    """(N,) milli of the wholly free GPUs in the best NVLink island of each node."""
    columns, left = q.draft.columns, q.draft.device_free
    best = np.zeros(columns.size, np.int64)
    for island in range(int(columns.island.max(initial=-1)) + 1):
        best = np.maximum(best, ((columns.island == island) & (left == WHOLE)).sum(axis=1) * WHOLE)
    return best


def _used_up_on(node: int, q: Question) -> str:
    """The resource of which a node has too little left."""
    columns, free = q.draft.columns, q.draft.free[node]
    return next((n for n, a in q.pod_set.pod_class.requests if free[columns.column(n)] < a), "another resource")
