"""Causes that pass when something is released or mended: each check is a cause, or None where it holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from berth.base.units import counted, from_milli
from berth.model.reasons import BLOCK_WORDS, HELD_BACK, Block, Cause, Reason
from berth.model.resources import CPU, MEMORY, is_accelerator
from berth.model.workload import WHOLE
from berth.scheduling.feasibility import is_held
from berth.scheduling.neighbours import Who
from berth.scheduling.question import (
    Question,
    all_milli,
    copies_by_gpus,
    fits,
    idle_milli,
    largest_domain,
    narrowest_level,
    nearest_to_whole,
    node_idle,
)
from berth.scheduling.wording import each_pod, gpus, in_gpus, in_units, level_name, needed, spell, unit_in

Mask = NDArray[np.bool_]


def held_back(q: Question) -> Cause | None:
    """It would fit if nodes that are held back were in service."""
    if fits(q.copies, q) or not fits(q.mended, q):
        return None
    static = q.draft.tables.static[q.row]
    helpful = np.flatnonzero((q.mended > q.copies) & is_held(static))
    names = [q.draft.columns.nodes[n].name for n in helpful[:3].tolist()]
    kinds = ", ".join(
        f"{int((static[helpful] == b).sum())} {BLOCK_WORDS[b]}" for b in HELD_BACK if (static[helpful] == b).any()
    )
    return Cause(
        Reason.NodesHeldBack,
        f"{needed(q)}; {in_gpus(q, int(q.copies.sum()))} could start, and {counted(len(helpful), 'node')} "
        f"with room held back ({kinds})",
        need=in_units(q, q.need), have=in_units(q, int(q.copies.sum())), unit=unit_in(q), where=", ".join(names),
        unlock=(f"{', '.join(names)} back in service",),
    )  # fmt: skip


def used_up(q: Question) -> Cause | None:
    have = int(q.copies.sum())
    if have >= q.need:
        return None
    would_do = q.draft.tables.static[q.row] == Block.Nothing
    if q.per_pod == 0:
        return _short_of(q, have, would_do)
    by_gpus = copies_by_gpus(q, would_do)
    if by_gpus >= q.need:
        return _short_of(q, have, would_do)
    idle = idle_milli(q, would_do)
    need_milli = q.need * q.per_pod
    if idle >= need_milli and by_gpus < q.need:
        return _scattered(q, would_do, by_gpus, idle)
    return Cause(
        Reason.NotEnoughGpus,
        f"{needed(q)}; {from_milli(idle)} of {from_milli(all_milli(q, would_do))} GPUs that would do are free",
        need=need_milli // 1000 or 1, have=idle // 1000, unit="GPUs",
        unlock=(f"{gpus(need_milli - idle, 'more')} released",),
    )  # fmt: skip


def _scattered(q: Question, would_do: Mask, by_gpus: int, idle: int) -> Cause:
    """Enough is free in all, but not next to each other: `by_gpus` pods would find room."""
    pod_class, columns, per_node = q.pod_set.pod_class, q.draft.columns, node_idle(q)
    name = next(n for n, _ in pod_class.requests if is_accelerator(n))
    together = "on one node" if pod_class.gpu_milli == WHOLE else "on one GPU"
    moves = tuple(
        f"moving {gpus(q.per_pod - milli)} frees {columns.nodes[n].name}"
        for n, milli in nearest_to_whole(q, would_do)[:1]
    )
    nodes = counted(int((per_node > 0)[would_do].sum()), "node")
    if by_gpus:
        return Cause(
            Reason.Fragmented,
            f"{counted(q.need, 'pod')} of {each_pod(q)} {together} asked for; {gpus(idle)} are free, scattered over "
            f"{nodes}, with room for {counted(by_gpus, 'such pod')}",
            need=in_units(q, q.need), have=in_units(q, by_gpus), unit=unit_in(q), where=name, unlock=moves,
        )  # fmt: skip
    if pod_class.gpu_milli < WHOLE:
        left = q.draft.device_free[would_do]
        most = int(left[left < pod_class.gpu_milli].max(initial=0))
    else:
        most = int(per_node[would_do].max(initial=0))
    return Cause(
        Reason.Fragmented,
        f"one pod needs {each_pod(q)} {together}; {gpus(idle)} are free, scattered over {nodes}, "
        f"at most {from_milli(most)} {together}",
        need=q.per_pod // WHOLE or 1, have=most // WHOLE, unit="GPUs", where=name, unlock=moves,
    )  # fmt: skip


def gpus_in_all(questions: Sequence[Question]) -> Cause | None:
    """The sets together ask for more GPUs than are free on all nodes that would do for any of them."""
    would_do = np.zeros(questions[0].draft.columns.size, bool)
    idle = np.zeros(questions[0].draft.columns.size, np.int64)
    for q in questions:
        if q.per_pod:
            here = q.draft.tables.static[q.row] == Block.Nothing
            would_do |= here
            idle = np.maximum(idle, np.where(here, node_idle(q), 0))
    need, have = sum(q.need * q.per_pod for q in questions), int(idle.sum())
    if need <= have:
        return None
    pods = sum(q.need for q in questions)
    return Cause(
        Reason.NotEnoughGpus,
        f"{counted(pods, 'pod')} with {from_milli(need)} GPUs in all asked for; "
        f"{from_milli(have)} that would do are free",
        need=need // 1000, have=have // 1000, unlock=(f"{gpus(need - have, 'more')} released",),
    )  # fmt: skip


def _short_of(q: Question, have: int, would_do: Mask) -> Cause:
    """GPUs would do, something beside them is used up."""
    block = q.draft.block[q.row][would_do & (q.copies == 0)]
    counts = np.bincount(block, minlength=len(Block))
    counts[Block.Nothing] = 0
    if counts.max(initial=0) == 0:
        return Cause(
            Reason.NotEnoughResources, f"{needed(q)}; {counted(have, 'pod')} could start",
            need=q.need, have=have, unit="pods",
        )  # fmt: skip
    worst = Block(int(counts.argmax()))
    what = {Block.Cpu: "CPU", Block.Memory: "memory", Block.Pods: "room for pods"}.get(worst, "another resource")
    gpus = f"{from_milli(idle_milli(q, would_do))} GPUs are free, but " if q.per_pod else ""
    name = {Block.Cpu: CPU, Block.Memory: MEMORY}.get(worst, "")
    ask = next((a for n, a in q.pod_set.pod_class.requests if n == name), 0)
    most = int(q.draft.free[would_do, q.draft.columns.column(name)].max(initial=0)) if name else 0
    numbers = (
        f" (each pod asks for {spell(name, ask)}; most left on one is {spell(name, max(most, 0))})" if name else ""
    )
    return Cause(
        Reason.NotEnoughResources,
        f"{needed(q)}; {gpus}{counted(int(counts[worst]), 'node')} of those that would do "
        f"lack {what}{numbers}; {counted(have, 'pod')} could start",
        need=q.need, have=have, unit="pods", where=what,
        unlock=(f"less {what} asked by each pod, or {what} released next to free GPUs",) if q.per_pod else (),
    )  # fmt: skip


def topology_fragmented(q: Question) -> Cause | None:
    narrow = narrowest_level(q)
    if narrow is None or fits(q.copies, q):
        return None
    wish, level = narrow
    largest, where = largest_domain(q.copies, level, q, wish.slice_size)
    need = wish.slice_size or q.need
    held = int(is_held(q.draft.tables.static[q.row]).sum())
    unlock = [f"largest free block in one {level_name(level, q)} is {in_gpus(q, largest)}"]
    if held:
        unlock.append(f"{counted(held, 'node')} held back")
    return Cause(
        Reason.TopologyFragmented,
        f"{in_gpus(q, need)} are asked for in one {level_name(level, q)}; {in_gpus(q, int(q.copies.sum()))} are free "
        f"in all, at most {in_gpus(q, largest)} in one ({where})",
        need=in_units(q, need), have=in_units(q, largest), unit=unit_in(q), where=where, unlock=tuple(unlock),
    )  # fmt: skip


def pods_in_the_way(q: Question) -> Cause | None:
    """Nodes have room, but other pods keep this one off them."""
    neighbours = q.draft.neighbours
    who = Who(q.workload.namespace, q.pod_set.labels, q.pod_set.pod_class)
    if neighbours is None or not neighbours.concern(who):
        return None
    room = q.copies > 0
    open_ = room & neighbours.leave_open(who)
    if int(q.copies[open_].sum()) >= q.need and not _keeps_apart(q):
        return None
    kinds = [
        word
        for word, asked in (
            ("anti-affinity", q.pod_set.pod_class.apart), ("affinity", q.pod_set.pod_class.near),
            ("topology spread", q.pod_set.pod_class.spread), ("host ports", q.pod_set.pod_class.host_ports),
        )
        if asked
    ] or ["the anti-affinity of other pods"]  # fmt: skip
    q.draft.block[q.row][room & ~open_] = int(Block.OtherPods)
    have = int(open_.sum())
    return Cause(
        Reason.PodsInTheWay,
        f"{needed(q)}; of {counted(int(room.sum()), 'node')} with room {' and '.join(kinds)} leaves {have} open",
        need=q.need, have=min(have, q.need - 1), unit="pods", where=kinds[0],
        unlock=(f"fewer pods kept apart, or more nodes than {counted(int(room.sum()), 'node')} with room",),
    )  # fmt: skip


def _keeps_apart(q: Question) -> bool:
    """The pods of the set keep each other away."""
    return q.need > 1 and q.pod_set.pod_class.depends_on_pods
