"""Causes that stay until the request or the cluster changes: each check is a cause, or None where it holds."""

from __future__ import annotations

from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from berth.base.units import counted
from berth.model.reasons import Block, Cause, Reason
from berth.model.resources import CPU, MEMORY, STORAGE, is_extended
from berth.scheduling.feasibility import is_held
from berth.scheduling.placement import level_of
from berth.scheduling.question import Question, largest_domain, narrowest_level, slice_room
from berth.scheduling.wording import (
    capability_words,
    each_pod,
    in_gpus,
    in_units,
    level_name,
    selector_words,
    spell,
    unit_in,
    unit_of,
)

_STATIC_ORDER = (
    Block.TooSmall,
    Block.Taint,
    Block.GpuClass,
    Block.NoResource,
    Block.Selector,
    Block.NodeName,
)


def unsupported(q: Question) -> Cause | None:
    refused = q.pod_set.pod_class.unsupported
    if not refused:
        return None
    return Cause(Reason.Unsupported, f"the pod asks for {refused[0]}, which Berth does not place", where=refused[0])


def unknown_resource(q: Question) -> Cause | None:
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


def nowhere_by_itself(q: Question) -> Cause | None:
    """No node would do, whatever ran: the check that the nodes which came furthest failed."""
    static = q.draft.tables.static[q.row]
    if (static == Block.Nothing).any() or is_held(static).any():
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
        asked = capability_words(q)
        classes = sorted({c.name for c in q.draft.columns.gpu_classes})
        having = f"the cluster has {', '.join(classes[:6])}" if classes else "no node tells its GPU class"
        return Cause(
            Reason.ClassUnavailable, f"no node that would do has {asked}; {having}",
            need=q.need, unit="pods", where=asked, unlock=(f"nodes with {asked}",),
        )  # fmt: skip
    wish = selector_words(q)
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


def unknown_level(q: Question) -> Cause | None:
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


def larger_than_cluster(q: Question) -> Cause | None:
    have = int(q.empty.sum())
    if have >= q.need:
        return None
    return Cause(
        Reason.LargerThanCluster,
        f"{counted(q.need, 'pod')} of {each_pod(q)} are asked for; the nodes that would do hold {have:,}, even empty",
        need=q.need, have=have, unit="pods", unlock=(f"at most {counted(have, 'pod')}, or more nodes",),
    )  # fmt: skip


def topology_too_small(q: Question) -> Cause | None:
    narrow = narrowest_level(q)
    if narrow is None:
        return None
    wish, level = narrow
    largest, where = largest_domain(q.empty, level, q, wish.slice_size)
    need = q.need if not wish.slice_size else wish.slice_size
    if (not wish.slice_size and largest >= q.need) or (wish.slice_size and slice_room(q.empty, level, q) >= q.need):
        return None
    return Cause(
        Reason.TopologyTooSmall,
        f"{in_gpus(q, need)} are asked for in one {level_name(level, q)}; the largest, {where}, "
        f"has room for {in_gpus(q, largest)} even empty",
        need=in_units(q, need), have=in_units(q, largest), unit=unit_in(q), where=where,
        unlock=(f"at most {counted(largest, 'pod')}, or a wider level",),
    )  # fmt: skip


def _taints_met(q: Question, static: NDArray[np.uint8]) -> list[str]:
    counts: dict[str, int] = {}
    tolerated = {t.key for t in q.pod_set.pod_class.tolerations}
    for n in np.flatnonzero(static == Block.Taint).tolist():
        for taint in q.draft.columns.nodes[n].taints:
            if taint.effect in ("NoSchedule", "NoExecute") and taint.key not in tolerated:
                text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
                counts[text] = counts.get(text, 0) + 1
    return sorted(counts, key=lambda k: (-counts[k], k))
