"""Why a workload waits: the dominant cause with its numbers, and what would unlock it.

The counts per node are those that the tables wrote when they found no room (`block`); this module adds them
up, and tells *never* from *not yet* by asking the same questions of the cluster as it would be empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.base.units import counted, from_milli, gib
from berth.model.reasons import BLOCK_WORDS, HELD_BACK, Answer, Block, Cause, Reason, Verdict
from berth.model.resources import CPU, MEMORY, STORAGE, is_accelerator, is_extended
from berth.model.workload import WHOLE, PodSet, TopologyWish, Workload
from berth.scheduling import kernels
from berth.scheduling.draft import Draft
from berth.scheduling.placement import level_of, whole_level
from berth.scheduling.quota import gpu_milli
from berth.scheduling.topology import room_by_domain

I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]

NEAREST = 3
_STATIC_ORDER = (
    Block.TooSmall,
    Block.Taint,
    Block.GpuClass,
    Block.NoResource,
    Block.Selector,
    Block.NodeName,
)


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


def verdict_of(workload: Workload, rows: Sequence[int], draft: Draft, allowed: Mask, proven: bool = True) -> Verdict:
    """The verdict on a workload that found no place in the draft."""
    causes = causes_of(workload, rows, draft, allowed, proven)
    answer = Answer.Never if any(c.reason.answer is Answer.Never for c in causes) else Answer.NotYet
    causes.sort(key=lambda c: c.reason.answer is not Answer.Never)
    return Verdict(workload.key, answer, tuple(causes))


def causes_of(workload: Workload, rows: Sequence[int], draft: Draft, allowed: Mask, proven: bool = True) -> list[Cause]:
    """A cause for each pod set that cannot be placed on its own; where all could, the cause is their sum."""
    if not draft.columns.size:
        return [Cause(Reason.NoNodes, "the cluster has no nodes", need=workload.pod_count, unit="pods")]
    found: list[Cause] = []
    questions = [
        _question(workload, pod_set, rows[s], draft, allowed)
        for s, pod_set in enumerate(workload.pod_sets)
        if pod_set.count
    ]
    for question in questions:
        cause = (
            _unsupported(question)
            or _unknown_resource(question)
            or _nowhere_by_itself(question)
            or _unknown_level(question)
            or _larger_than_cluster(question)
            or _topology_too_small(question)
            or _held_back(question)
            or _used_up(question)
            or _topology_fragmented(question)
        )
        if cause:
            found.append(_with_nodes(cause, question))
    if not found:
        found.append(_with_nodes(_together(questions, proven), questions[0]))
    return found


def _question(workload: Workload, pod_set: PodSet, row: int, draft: Draft, allowed: Mask) -> Question:
    columns, tables = draft.columns, draft.tables
    static = tables.static[row]
    kept = np.isin(static, np.array([int(b) for b in HELD_BACK], np.uint8))
    open_static = np.where(kept, 0, static).astype(np.uint8)[None, :]
    all_devices = np.where(columns.device_free >= 0, WHOLE, columns.device_free).astype(np.int32)
    mended = _count(row, open_static, draft, draft.free, draft.device_free)
    empty = _count(row, open_static, draft, columns.empty, all_devices)
    copies = np.where(allowed, draft.copies[row], 0)
    per_pod = gpu_milli(pod_set.pod_class.requests, pod_set.pod_class.gpu_milli)
    return Question(workload, pod_set, row, draft, copies, empty, np.where(allowed, mended, 0), per_pod)


def _count(row: int, static: NDArray[np.uint8], draft: Draft, free: NDArray[np.int64], devices: I32) -> I32:
    tables, columns = draft.tables, draft.columns
    copies, block = np.zeros((1, columns.size), np.int32), np.zeros((1, columns.size), np.uint8)
    kernels.refresh_nodes(
        np.arange(columns.size), np.array([0]), tables.need[row : row + 1], tables.ask[row : row + 1], static,
        free, devices, columns.island, columns.pool, copies, block,
    )  # fmt: skip
    counted_copies: I32 = copies[0]
    return counted_copies


# --- never ---------------------------------------------------------------------------------------------------


def _unsupported(q: Question) -> Cause | None:
    refused = q.pod_set.pod_class.unsupported
    if not refused:
        return None
    return Cause(Reason.Unsupported, f"the pod asks for {refused[0]}, which Berth does not place", where=refused[0])


def _unknown_resource(q: Question) -> Cause | None:
    """A resource that no node advertises."""
    columns = q.draft.columns
    for name, amount in q.pod_set.pod_class.requests:
        if name in (CPU, MEMORY, STORAGE):
            continue
        column = columns.column(name)
        if column >= 0 and any(name == n for node in columns.nodes for n, _ in node.allocatable):
            continue
        advertised = sorted({n for node in columns.nodes for n, _ in node.allocatable if is_extended(n)})
        close = get_close_matches(name, advertised, 1, 0.75)
        if close:
            return Cause(
                Reason.MisspeltResource, f"no node advertises {name}; {close[0]} is advertised",
                need=amount, unit=name, where=name, unlock=(f"ask for {close[0]}",),
            )  # fmt: skip
        having = f"; advertised are {', '.join(advertised[:5])}" if advertised else ""
        return Cause(
            Reason.UnknownResource, f"no node advertises {name}{having}", need=amount, unit=name, where=name,
            unlock=(f"a node whose device plugin advertises {name}",),
        )  # fmt: skip
    return None


def _nowhere_by_itself(q: Question) -> Cause | None:
    """No node would do, whatever ran: the check that the nodes which came furthest failed."""
    static = q.draft.tables.static[q.row]
    if (static == Block.Nothing).any() or np.isin(static, HELD_BACK).any():
        return None
    counts = np.bincount(static, minlength=len(Block))
    furthest = next(b for b in _STATIC_ORDER if counts[b])
    nodes = counted(int(counts[furthest]), "node")
    pod_class = q.pod_set.pod_class
    if furthest == Block.TooSmall:
        return _too_small(q, static)
    if furthest == Block.Taint:
        keys = _taints_met(q, static)
        return Cause(
            Reason.NotTolerated, f"{nodes} would do but for a taint: {', '.join(keys[:3])}",
            need=q.need, unit="pods", where=keys[0] if keys else "",
            unlock=tuple(f"a toleration for {key}" for key in keys[:2]),
        )  # fmt: skip
    if furthest in (Block.GpuClass, Block.NoResource):
        asked = _capability(q)
        classes = sorted({c.name for c in q.draft.columns.gpu_classes})
        having = f"the cluster has {', '.join(classes[:6])}" if classes else "no node tells its GPU class"
        return Cause(
            Reason.ClassUnavailable, f"no node that would do has {asked}; {having}",
            need=q.need, unit="pods", where=asked, unlock=(f"nodes with {asked}",),
        )  # fmt: skip
    wish = _selector(q)
    return Cause(
        Reason.NoNodeMatches, f"none of {counted(q.draft.columns.size, 'node')} matches {wish}",
        need=q.need, unit="pods", where=wish, unlock=(f"a node with {wish}",) if pod_class.node_selector else (),
    )  # fmt: skip


def _too_small(q: Question, static: NDArray[np.uint8]) -> Cause:
    columns = q.draft.columns
    nodes = np.flatnonzero(static == Block.TooSmall)
    worst: tuple[float, str, int, int] | None = None
    for name, amount in q.pod_set.pod_class.requests:
        column = columns.column(name)
        largest = int(columns.empty[nodes, column].max()) if column >= 0 else 0
        if amount > largest and (worst is None or amount / max(largest, 1) > worst[0]):
            worst = (amount / max(largest, 1), name, amount, largest)
    if worst is None:
        return Cause(
            Reason.LargerThanNode, "no single node has all that one pod asks for, though each amount exists somewhere",
            need=1, unit="pods",
        )  # fmt: skip
    _, name, amount, largest = worst
    return Cause(
        Reason.LargerThanNode,
        f"one pod asks for {spell(name, amount)} and the largest node has {spell(name, largest)}",
        need=amount, have=largest, unit=unit_of(name), where=name,
        unlock=(f"pods of at most {spell(name, largest)}, or larger nodes",),
    )  # fmt: skip


def _unknown_level(q: Question) -> Cause | None:
    for wish in (*q.workload.topology, *q.pod_set.topology):
        if not wish.required:
            continue
        level = level_of(wish, q.draft)
        levels = q.draft.columns.topology.levels
        if level == -1:
            known = ", ".join(f"{lv.name} ({lv.label})" for lv in levels) or "none"
            return Cause(
                Reason.UnknownTopologyLevel, f"no node carries the level {wish.level}; levels known: {known}",
                need=q.need, unit="pods", where=wish.level, unlock=(f"label nodes with {wish.level}",),
            )  # fmt: skip
    return None


def _larger_than_cluster(q: Question) -> Cause | None:
    have = int(q.empty.sum())
    if have >= q.need:
        return None
    return Cause(
        Reason.LargerThanCluster,
        f"{counted(q.need, 'pod')} of {_each(q)} are asked for; the nodes that would do hold {have:,}, even empty",
        need=q.need, have=have, unit="pods", unlock=(f"at most {counted(have, 'pod')}, or more nodes",),
    )  # fmt: skip


def _topology_too_small(q: Question) -> Cause | None:
    narrow = _narrowest(q)
    if narrow is None:
        return None
    wish, level = narrow
    largest, where = _largest(q.empty, level, q, wish.slice_size)
    need = q.need if not wish.slice_size else wish.slice_size
    if (not wish.slice_size and largest >= q.need) or (wish.slice_size and _slice_room(q.empty, level, q) >= q.need):
        return None
    return Cause(
        Reason.TopologyTooSmall,
        f"{_gpus(q, need)} are asked for in one {_level_name(level, q)}; the largest, {where}, "
        f"has room for {_gpus(q, largest)} even empty",
        need=_units(q, need), have=_units(q, largest), unit=_unit(q), where=where,
        unlock=(f"at most {counted(largest, 'pod')}, or a wider level",),
    )  # fmt: skip


# --- not yet -------------------------------------------------------------------------------------------------


def _held_back(q: Question) -> Cause | None:
    """It would fit if nodes that are held back were in service."""
    if _fits(q.copies, q) or not _fits(q.mended, q):
        return None
    static = q.draft.tables.static[q.row]
    helpful = np.flatnonzero((q.mended > q.copies) & np.isin(static, HELD_BACK))
    names = [q.draft.columns.nodes[n].name for n in helpful[:3].tolist()]
    kinds = ", ".join(
        f"{int((static[helpful] == b).sum())} {BLOCK_WORDS[b]}" for b in HELD_BACK if (static[helpful] == b).any()
    )
    return Cause(
        Reason.NodesHeldBack,
        f"{_needed(q)}; {_gpus(q, int(q.copies.sum()))} could start, and {counted(len(helpful), 'node')} "
        f"with room held back ({kinds})",
        need=_units(q, q.need), have=_units(q, int(q.copies.sum())), unit=_unit(q), where=", ".join(names),
        unlock=(f"{', '.join(names)} back in service",),
    )  # fmt: skip


def _used_up(q: Question) -> Cause | None:
    have = int(q.copies.sum())
    if have >= q.need:
        return None
    pod_class, columns, draft = q.pod_set.pod_class, q.draft.columns, q.draft
    static = draft.tables.static[q.row]
    would_do = static == Block.Nothing
    if q.per_pod == 0:
        return _short_of(q, have, would_do)
    by_gpus = _copies_by_gpus(q, would_do)
    if by_gpus >= q.need:
        return _short_of(q, have, would_do)
    idle = _idle_milli(q, would_do)
    need_milli = q.need * q.per_pod
    if idle >= need_milli and by_gpus < q.need:
        nearest = _nearest_to_whole(q, would_do)
        name = next(n for n, _ in pod_class.requests if is_accelerator(n))
        each = f"{_each(q)} on one node" if pod_class.gpu_milli == WHOLE else f"{_each(q)} on one GPU"
        moves = tuple(
            f"moving {from_milli(q.per_pod - milli)} GPUs frees {columns.nodes[n].name}" for n, milli in nearest[:1]
        )
        nodes = int((_node_idle(q) > 0)[would_do].sum())
        return Cause(
            Reason.Fragmented,
            f"{counted(q.need, 'pod')} need {each}; {from_milli(idle)} GPUs are free, scattered over "
            f"{counted(nodes, 'node')}, which hold {counted(by_gpus, 'such pod')}",
            need=_units(q, q.need), have=_units(q, by_gpus), unit=_unit(q), where=name, unlock=moves,
        )  # fmt: skip
    return Cause(
        Reason.NotEnoughGpus,
        f"{_needed(q)}; {from_milli(idle)} of {from_milli(_all_milli(q, would_do))} GPUs that would do are free",
        need=need_milli // 1000 or 1, have=idle // 1000, unit="GPUs",
        unlock=(f"{from_milli(need_milli - idle)} more GPUs released",),
    )  # fmt: skip


def _short_of(q: Question, have: int, would_do: Mask) -> Cause:
    """GPUs would do, something beside them is used up."""
    block = q.draft.block[q.row][would_do & (q.copies == 0)]
    counts = np.bincount(block, minlength=len(Block))
    counts[Block.Nothing] = 0
    if counts.max(initial=0) == 0:
        return Cause(
            Reason.NotEnoughResources, f"{_needed(q)}; {counted(have, 'pod')} could start",
            need=q.need, have=have, unit="pods",
        )  # fmt: skip
    worst = Block(int(counts.argmax()))
    what = {Block.Cpu: "CPU", Block.Memory: "memory", Block.Pods: "room for pods"}.get(worst, "another resource")
    gpus = f"{from_milli(_idle_milli(q, would_do))} GPUs are free, but " if q.per_pod else ""
    name = {Block.Cpu: CPU, Block.Memory: MEMORY}.get(worst, "")
    ask = next((a for n, a in q.pod_set.pod_class.requests if n == name), 0)
    most = int(q.draft.free[would_do, q.draft.columns.column(name)].max(initial=0)) if name else 0
    numbers = (
        f" (each pod asks for {spell(name, ask)}; most left on one is {spell(name, max(most, 0))})" if name else ""
    )
    return Cause(
        Reason.NotEnoughResources,
        f"{_needed(q)}; {gpus}{counted(int(counts[worst]), 'node')} of those that would do "
        f"lack {what}{numbers}; {counted(have, 'pod')} could start",
        need=q.need, have=have, unit="pods", where=what,
        unlock=(f"less {what} asked by each pod, or {what} released next to free GPUs",) if q.per_pod else (),
    )  # fmt: skip


def _topology_fragmented(q: Question) -> Cause | None:
    narrow = _narrowest(q)
    if narrow is None or _fits(q.copies, q):
        return None
    wish, level = narrow
    largest, where = _largest(q.copies, level, q, wish.slice_size)
    need = wish.slice_size or q.need
    held = int(np.isin(q.draft.tables.static[q.row], HELD_BACK).sum())
    unlock = [f"largest free block in one {_level_name(level, q)} is {_gpus(q, largest)}"]
    if held:
        unlock.append(f"{counted(held, 'node')} held back")
    return Cause(
        Reason.TopologyFragmented,
        f"{_gpus(q, need)} are asked for in one {_level_name(level, q)}; {_gpus(q, int(q.copies.sum()))} are free "
        f"in all, at most {_gpus(q, largest)} in one ({where})",
        need=_units(q, need), have=_units(q, largest), unit=_unit(q), where=where, unlock=tuple(unlock),
    )  # fmt: skip


def _together(questions: Sequence[Question], proven: bool) -> Cause:
    """Each set would fit on its own, but not with the others."""
    need = sum(q.need * q.per_pod for q in questions) // 1000
    workload = questions[0].workload
    sets = " + ".join(f"{q.need} × {_each(q)}" for q in questions)
    level = whole_level(workload, questions[0].draft)
    where = f" in one {_level_name(level, questions[0])}" if level is not None and level >= 0 else ""
    reason = Reason.TopologyFragmented if where else Reason.Fragmented
    doubt = "" if proven else "; the search ended at its bound, so a placement may exist"
    return Cause(
        reason, f"{sets} fit one by one, but not together{where}{doubt}", need=need,
        have=max(int(q.copies.sum()) * q.per_pod for q in questions) // 1000, proven=proven,
    )  # fmt: skip


# --- numbers -------------------------------------------------------------------------------------------------


def _with_nodes(cause: Cause, q: Question) -> Cause:
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
    idle = _node_idle(q)
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


def _fits(copies: I32, q: Question) -> bool:
    if int(copies.sum()) < q.need:
        return False
    narrow = _narrowest(q)
    if narrow is None:
        return True
    wish, level = narrow
    if wish.slice_size:
        return _slice_room(copies, level, q) >= q.need
    return _largest(copies, level, q)[0] >= q.need


def _narrowest(q: Question) -> tuple[TopologyWish, int] | None:
    """The narrowest required level that all pods of the set share, or whose slices do."""
    wishes = [w for w in (*q.workload.topology, *q.pod_set.topology) if w.required]
    levels = [(level_of(w, q.draft), w) for w in wishes]
    if not levels:
        return None
    level, wish = max(levels, key=lambda pair: pair[0])
    return (wish, level) if level >= 0 else None


def _largest(copies: I32, level: int, q: Question, slice_size: int = 0) -> tuple[int, str]:
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


def _slice_room(copies: I32, level: int, q: Question) -> int:
    size = next(w.slice_size for w in (*q.workload.topology, *q.pod_set.topology) if w.slice_size)
    if level == len(q.draft.columns.topology.levels):
        return int((copies // size * size).sum())
    return int(room_by_domain(copies, level, q.draft.columns, None, size).sum())


def _level_name(level: int, q: Question) -> str:
    levels = q.draft.columns.topology.levels
    return levels[level].name if level < len(levels) else "node"


def _copies_by_gpus(q: Question, would_do: Mask) -> int:
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


def _node_idle(q: Question) -> NDArray[np.int64]:
    """(N,) free GPU milli of the kind that the pod asks for."""
    draft, columns = q.draft, q.draft.columns
    name = next((n for n, _ in q.pod_set.pod_class.requests if is_accelerator(n)), "")
    column = columns.column(name)
    if column < 0:
        return np.zeros(columns.size, np.int64)
    devices = np.where(draft.device_free > 0, draft.device_free, 0).sum(axis=1)
    if q.pod_set.pod_class.gpu_milli == WHOLE:
        # A pod that asks for whole GPUs can use nothing of one that is shared.
        devices = (draft.device_free == WHOLE).sum(axis=1) * WHOLE
    idle: NDArray[np.int64] = np.where(columns.pool == column, devices, np.maximum(draft.free[:, column], 0) * WHOLE)
    return idle


def _idle_milli(q: Question, would_do: Mask) -> int:
    return int(_node_idle(q)[would_do].sum())


def _all_milli(q: Question, would_do: Mask) -> int:
    columns = q.draft.columns
    name = next((n for n, _ in q.pod_set.pod_class.requests if is_accelerator(n)), "")
    column = columns.column(name)
    return int(np.maximum(columns.empty[would_do, column], 0).sum()) * WHOLE if column >= 0 else 0


def _nearest_to_whole(q: Question, would_do: Mask) -> list[tuple[int, int]]:
    """Nodes with their free milli, the one that lacks least for one pod first."""
    idle = _node_idle(q)
    large = np.flatnonzero(would_do & (q.empty > 0))
    order = large[np.argsort(-idle[large], kind="stable")]
    return [(int(n), int(idle[n])) for n in order[:NEAREST] if idle[n] < q.per_pod]


def _taints_met(q: Question, static: NDArray[np.uint8]) -> list[str]:
    counts: dict[str, int] = {}
    tolerated = {t.key for t in q.pod_set.pod_class.tolerations}
    for n in np.flatnonzero(static == Block.Taint).tolist():
        for taint in q.draft.columns.nodes[n].taints:
            if taint.effect in ("NoSchedule", "NoExecute") and taint.key not in tolerated:
                text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
                counts[text] = counts.get(text, 0) + 1
    return sorted(counts, key=lambda k: (-counts[k], k))


def _capability(q: Question) -> str:
    least = q.pod_set.pod_class.least
    words = []
    if least.products:
        words.append(" or ".join(least.products))
    if least.memory_bytes:
        words.append(f"at least {gib(least.memory_bytes)} a GPU")
    if least.compute != (0, 0):
        words.append(f"compute capability {least.compute[0]}.{least.compute[1]}")
    if least.precision:
        words.append(least.precision)
    if least.link:
        words.append(least.link)
    if least.rdma:
        words.append("RDMA")
    if not words:
        words = [n for n, _ in q.pod_set.pod_class.requests if is_accelerator(n)] or ["the resources"]
    return ", ".join(words)


def _selector(q: Question) -> str:
    pod_class = q.pod_set.pod_class
    if pod_class.node_name:
        return f"the node name {pod_class.node_name}"
    if pod_class.node_selector:
        return "the selector " + ", ".join(f"{k}={v}" for k, v in pod_class.node_selector)
    terms = [
        f"{e.key} {e.operator} {', '.join(e.values)}".strip() for t in pod_class.node_affinity for e in t.expressions
    ]
    return "the affinity " + "; ".join(terms[:3])


def _needed(q: Question) -> str:
    return f"{counted(q.need, 'pod')} of {_each(q)} asked for" if q.need > 1 else f"{_each(q)} asked for"


def _each(q: Question) -> str:
    """What one pod asks for, in a few words."""
    if not q.per_pod:
        return ", ".join(spell(n, a) for n, a in q.pod_set.pod_class.requests if n in (CPU, MEMORY)) or "no resources"
    name, amount = next((n, a) for n, a in q.pod_set.pod_class.requests if is_accelerator(n))
    if q.pod_set.pod_class.gpu_milli < WHOLE:
        return f"{from_milli(q.per_pod)} GPU"
    return spell(name, amount)


def _gpus(q: Question, pods: int) -> str:
    """So many pods, in GPUs where they ask for GPUs."""
    return f"{from_milli(pods * q.per_pod)} GPUs" if q.per_pod else counted(pods, "pod")


def _units(q: Question, pods: int) -> int:
    return pods * q.per_pod // 1000 if q.per_pod >= WHOLE else pods


def _unit(q: Question) -> str:
    return "GPUs" if q.per_pod >= WHOLE else "pods"


def unit_of(resource: str) -> str:
    """The unit in which an amount of a resource is counted."""
    if resource == CPU:
        return "milli-cores"
    return "bytes" if resource in (MEMORY, STORAGE) else resource


def spell(resource: str, amount: int) -> str:
    """`8 GPUs`, `64 CPUs`, `512 GiB memory`, `3 nvidia.com/mig-1g.10gb`."""
    if resource == CPU:
        return f"{from_milli(amount)} CPUs"
    if resource == MEMORY:
        return f"{gib(amount)} memory"
    if resource == STORAGE:
        return f"{gib(amount)} ephemeral storage"
    if resource.endswith("/gpu"):
        return counted(amount, "GPU")
    return f"{amount} {resource}"
