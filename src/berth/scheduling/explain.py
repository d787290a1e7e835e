"""Why a workload waits: the dominant cause with its numbers, and what would unlock it.

The counts per node are those that the tables wrote when they found no room (`block`); this module adds them
up, and tells *never* from *not yet* by asking the same questions of the cluster as it would be empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.base.units import counted, from_milli
from berth.model.reasons import Answer, Block, Cause, Reason, Verdict
from berth.model.workload import WHOLE, Workload
from berth.scheduling.draft import Draft
from berth.scheduling.feasibility import is_held
from berth.scheduling.never import (
    larger_than_cluster,
    nowhere_by_itself,
    topology_too_small,
    unknown_level,
    unknown_resource,
)
from berth.scheduling.not_yet import (
    gpus_in_all,
    held_back,
    kinds_of,
    pods_in_the_way,
    released_together,
    topology_fragmented,
    used_up,
)
from berth.scheduling.placement import Tried, place_gang
from berth.scheduling.question import Question, codes_on, idle_milli, question_on, with_nodes
from berth.scheduling.sets import AsListed
from berth.scheduling.topology import room_by_domain
from berth.scheduling.wishes import whole_level
from berth.scheduling.wording import each_pod, gpus, in_one, is_or_are

I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]

FOR_GPUS = (Reason.NotEnoughGpus, Reason.Fragmented, Reason.TopologyFragmented)  # GPUs are what it waits for


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
    # Only sets with a minimum can keep a gang; where there is none, one pod of any set would start it.
    has_minimum = any(s.min_count for s in workload.pod_sets)
    questions = [
        question_on(workload, pod_set, rows[s], draft, allowed)
        for s, pod_set in enumerate(workload.pod_sets)
        if (pod_set.min_count if has_minimum else pod_set.count)
    ]
    for question in questions:
        cause = (
            question.once("unknown resource", partial(unknown_resource, question))
            or nowhere_by_itself(question)
            or unknown_level(question)
            or larger_than_cluster(question)
            or topology_too_small(question)
            or held_back(question)
            or used_up(question)
            or topology_fragmented(question)
            or pods_in_the_way(question, _placed_alone(question))
        )
        # What is wrong with the workload, and not with the set, is said once.
        if cause and not any((c.reason, c.sentence) == (cause.reason, cause.sentence) for c in found):
            found.append(with_nodes(cause, question))
    joint = None
    if len(questions) > 1 and not any(c.reason.answer is Answer.Never for c in found):
        joint = (
            _never_together(questions, rows) or _held_back_together(questions, rows, found) or gpus_in_all(questions)
        )
        if joint:
            found = [c for c in found if c.reason not in (joint.reason, Reason.NotEnoughGpus)]
            found.insert(0, with_nodes(joint, max(questions, key=lambda q: q.need * q.per_pod)))
    about_all = joint is not None or not found
    if not found:
        found.append(with_nodes(_not_together(questions, proven), questions[0]))
    if len(questions) > 1:
        # What lets one set start may be what another needs: of one set alone no GPUs are told that would do.
        found = [c if not i and about_all else without_release(c) for i, c in enumerate(found)]
    return found


def without_release(cause: Cause) -> Cause:
    """The same without GPUs or moves that would let it start."""
    return replace(cause, unlock=()) if cause.reason in FOR_GPUS else cause


def _placed_alone(q: Question) -> int:
    """How many pods of a set could start, each looking at those before it."""
    if q.draft.neighbours is None:
        return q.need
    most = 0
    for pods in range(q.need, 0, -1):
        one_set = replace(q.pod_set, count=pods, min_count=pods)
        tried = place_gang(
            replace(q.workload, pod_sets=(one_set,)), [q.row], q.draft, q.static != Block.Suspect, AsListed()
        )
        q.draft.drop()
        if tried.placed:
            most = pods
            break
    return most


def _never_together(questions: Sequence[Question], rows: Sequence[int]) -> Cause | None:
    """The sets do not fit together even on the empty cluster."""
    # Whether they do depends on the cluster as it is built, so it is worked out once.
    key = tuple((r, s.min_count, s.topology) for r, s in zip(rows, questions[0].workload.pod_sets, strict=True))
    known = questions[0].draft.tables.fits_empty
    shape = (key, questions[0].workload.topology)
    if shape not in known:
        tried = _imagine(questions, rows, empty=True)
        known[shape] = tried.placed or not tried.proven
    if known[shape]:
        return None
    need = _gpus_needed(questions)
    workload, draft = questions[0].workload, questions[0].draft
    level = whole_level(workload, draft)
    if level is not None and level >= 0:
        have, where = _largest_together(questions, level, [q.empty for q in questions])
        if have >= need:
            pods = sum(q.need for q in questions)
            return Cause(
                Reason.TopologyTooSmall,
                f"{counted(pods, 'pod')} asked for {in_one(level, questions[0])} ({_sets(questions)}); none holds all "
                "of them, even empty",
                need=pods, unit="pods", where=where, unlock=("a smaller gang, or a wider level",),
            )  # fmt: skip
        return Cause(
            Reason.TopologyTooSmall,
            f"{gpus(need)} ({_sets(questions)}) asked for {in_one(level, questions[0])}; the largest, {where}, has "
            f"{from_milli(have)}, even empty",
            need=-(-need // WHOLE), have=have // WHOLE, where=where,
            unlock=("a smaller gang, or a wider level",),
        )  # fmt: skip
    have = _milli_together(questions, [q.empty for q in questions], np.ones(draft.columns.size, bool))
    if have >= need:
        pods = sum(q.need for q in questions)
        return Cause(
            Reason.LargerThanCluster,
            f"{counted(pods, 'pod')} asked for ({_sets(questions)}); the nodes that would do cannot hold all of them, "
            "even empty",
            need=pods, unit="pods", unlock=("a smaller gang, or more nodes",),
        )  # fmt: skip
    return Cause(
        Reason.LargerThanCluster,
        f"{gpus(need)} asked for ({_sets(questions)}); the nodes that would do have {from_milli(have)}, even empty",
        need=-(-need // WHOLE), have=have // WHOLE, unlock=("a smaller gang, or more nodes",),
    )  # fmt: skip


def _held_back_together(questions: Sequence[Question], rows: Sequence[int], alone: Sequence[Cause]) -> Cause | None:
    """The sets would fit together if held-back nodes were in service."""
    if any(c.reason is Reason.NodesHeldBack for c in alone):
        return None
    static = np.stack([q.static for q in questions])
    held = is_held(static).any(axis=0)
    if not held.any() or not _imagine(questions, rows, empty=False).placed:
        return None
    names = [questions[0].draft.columns.nodes[n].name for n in np.flatnonzero(held)[:3].tolist()]
    main = max(questions, key=lambda q: int(is_held(q.static).sum()))
    nodes = np.flatnonzero(is_held(main.static))
    found = f" ({', '.join(kinds_of(nodes, main))})" if codes_on(main.block, main, nodes.tolist()) else ""
    level = whole_level(questions[0].workload, questions[0].draft)
    where = f" {in_one(level, questions[0])}" if level is not None and level >= 0 else ""
    return Cause(
        Reason.NodesHeldBack,
        f"{counted(sum(q.need for q in questions), 'pod')} asked for ({_sets(questions)}){where}; they would fit with "
        f"{counted(int(held.sum()), 'node')} that {'is' if held.sum() == 1 else 'are'} held back{found}",
        need=_gpus_needed(questions) // WHOLE, where=", ".join(names), unlock=(f"{', '.join(names)} back in service",),
    )  # fmt: skip


def _imagine(questions: Sequence[Question], rows: Sequence[int], empty: bool) -> Tried:
    draft = questions[0].draft.imagined(empty)
    everywhere = np.ones(draft.columns.size, bool)
    tried = place_gang(questions[0].workload, rows, draft, everywhere, AsListed())
    draft.drop()
    return tried


def _not_together(questions: Sequence[Question], proven: bool) -> Cause:
    """Each set would fit on its own, but not with the others."""
    level = whole_level(questions[0].workload, questions[0].draft)
    need = _gpus_needed(questions)
    doubt = "" if proven else "; the search ended at its bound, so a placement may exist"
    if level is not None and level >= 0:
        have, where = _largest_together(questions, level, [q.copies for q in questions])
        told = have // WHOLE if have < need else 0
        return Cause(
            Reason.TopologyFragmented,
            f"{gpus(need)} ({_sets(questions)}) asked for {in_one(level, questions[0])}; at most {gpus(have)} "
            f"{is_or_are(have)} free {in_one(level, questions[0])} ({where}){doubt}",
            need=-(-need // WHOLE), have=told, where=where, proven=proven, unlock=released_together(questions),
        )  # fmt: skip
    pods = sum(q.need for q in questions)
    idle = max(idle_milli(q, q.static == Block.Nothing) for q in questions)
    free = f"; {gpus(idle)} {is_or_are(idle)} free" if need else ""
    return Cause(
        Reason.Fragmented,
        f"{counted(pods, 'pod')} asked for ({_sets(questions)}){free}, but the sets fit only one by one, not "
        f"together{doubt}",
        need=need // WHOLE or pods, unit="GPUs" if need >= WHOLE else "pods", proven=proven,
    )  # fmt: skip


def _milli_together(questions: Sequence[Question], copies: Sequence[I32], mask: Mask) -> int:
    """GPU milli that the sets could use on some nodes, each node by the set that uses most of it."""
    per_node = np.stack([c.astype(np.int64) * q.per_pod for q, c in zip(questions, copies, strict=True)]).max(axis=0)
    return int(per_node[mask].sum())


def _largest_together(questions: Sequence[Question], level: int, copies: Sequence[I32]) -> tuple[int, str]:
    """The same for the best domain of a level, with its name."""
    per_node = np.stack([c.astype(np.int64) * q.per_pod for q, c in zip(questions, copies, strict=True)]).max(axis=0)
    columns = questions[0].draft.columns
    if level == len(columns.topology.levels):
        n = int(np.argmax(per_node))
        return int(per_node[n]), columns.nodes[n].name
    room = room_by_domain(per_node, level, columns)
    if not len(room):
        return 0, f"no {columns.topology.levels[level].name}"
    best = int(np.argmax(room))
    return int(room[best]), f"{columns.topology.levels[level].name} {columns.domain_names[level][best]}"


def _sets(questions: Sequence[Question]) -> str:
    """`1 × 4 CPUs + 3 × 8 GPUs`; sets whose pods are alike are told as one."""
    counts: dict[str, int] = {}
    for q in questions:
        counts[each_pod(q)] = counts.get(each_pod(q), 0) + q.need
    return " + ".join(f"{count} × {each}" for each, count in counts.items())


def _gpus_needed(questions: Sequence[Question]) -> int:
    """GPU milli of all sets' minimum."""
    return sum(q.need * q.per_pod for q in questions)
