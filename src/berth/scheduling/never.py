"""Causes that stay until the request or the cluster changes: each check is a cause, or None where it holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from berth.base.units import counted
from berth.model.reasons import Block, Cause, Reason
from berth.model.resources import CPU, MEMORY, STORAGE, get, is_accelerator, is_extended
from berth.model.sharing import KINDS, SHARING_KEY, WORDS, sharing_of
from berth.model.workload import Capability
from berth.scheduling.feasibility import is_held, untolerated
from berth.scheduling.question import Question, fits, in_all, largest_domain, narrowest_level, slices_held
from berth.scheduling.wishes import level_of
from berth.scheduling.wording import (
    capability_words,
    each_pod,
    in_amount,
    in_one,
    in_units,
    is_share,
    needed,
    selector_words,
    spell,
    unit_in,
    unit_of,
)

_PROFILE = re.compile(r"nvidia\.com/mig-(\d+c\.)?\d+g\.\d+gb[\w.-]*")

# The checks of a node, the last first: nodes that came furthest tell most.
_STATIC_ORDER = (
    Block.QueueSharing, Block.QueueClass, Block.TooSmall, Block.Dynamic, Block.Taint, Block.Rdma, Block.GpuClass,
    Block.NoResource, Block.Selector, Block.NodeName,
)  # fmt: skip


def unknown_resource(q: Question) -> Cause | None:
    """A resource that no node advertises. Another MIG profile is another thing, not a slip of the pen."""
    columns = q.draft.columns
    for name, amount in q.pod_set.pod_class.requests:
        if name in (CPU, MEMORY, STORAGE):
            continue
        column = columns.column(name)
        if column >= 0 and any(name == n for node in columns.nodes for n, _ in node.allocatable):
            continue
        if columns.is_dynamic(name).any():
            return _dynamic_alone(q, name)
        advertised = sorted({n for node in columns.nodes for n, _ in node.allocatable if is_extended(n)})
        close = get_close_matches(name, advertised, 1, 0.75)
        if close and not (_PROFILE.fullmatch(name) and _PROFILE.fullmatch(close[0])):
            return Cause(
                Reason.MisspeltResource, f"no node advertises {name}; {close[0]} is advertised",
                need=amount, unit=name, where=name, unlock=(f"ask for {close[0]}",),
            )  # fmt: skip
        if not is_extended(name):
            return Cause(
                Reason.UnknownResource, f"no node has {name}", need=amount, unit=name, where=name,
                unlock=(f"a node with {name}",),
            )  # fmt: skip
        family = name.rpartition("-")[0] or name.rpartition("/")[0]
        advertised.sort(key=lambda other: not other.startswith(family))
        more = f" and {len(advertised) - 5} more" if len(advertised) > 5 else ""
        having = f"; advertised are {', '.join(advertised[:5])}{more}" if advertised else ""
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
    match furthest:
        case Block.TooSmall:
            return _too_small(q, static)
        case Block.Dynamic:
            dynamic = (name for name, _ in q.pod_set.pod_class.requests if q.draft.columns.is_dynamic(name).any())
            return _dynamic_alone(q, next(dynamic))
        case Block.Taint:
            return _tainted(q, static)
        case Block.Rdma:
            return Cause(
                Reason.ClassUnavailable, f"{counted(int(counts[furthest]), 'node')} would do but for RDMA",
                need=q.need, unit="pods", where="RDMA", unlock=("nodes with RDMA",),
            )  # fmt: skip
        case Block.QueueSharing:
            return sharing_not_allowed(q, static)
        case Block.QueueClass:
            return class_not_allowed(q, static)
        case Block.NoResource if q.pod_set.pod_class.least == Capability():
            extended = [name for name, _ in q.pod_set.pod_class.requests if is_extended(name)]
            if len(extended) == 1:
                return _given_otherwise(q, static, extended[0])
            asked = " and ".join(spell(n, a) for n, a in q.pod_set.pod_class.requests if is_extended(n))
            return Cause(
                Reason.LargerThanNode,
                f"one pod asks for {asked}; there are nodes with each, but none that would do has all",
                need=1, unit="pods", unlock=("pods that ask for one of them each",),
            )  # fmt: skip
        case Block.GpuClass | Block.NoResource:
            asked = capability_words(q)
            classes = sorted({c.name for c in q.draft.columns.gpu_classes})
            having = f"the cluster has {', '.join(classes[:6])}" if classes else "no node tells its GPU class"
            return Cause(
                Reason.ClassUnavailable, f"no node that would do has {asked}; {having}",
                need=q.need, unit="pods", where=asked, unlock=(f"nodes with {asked}",),
            )  # fmt: skip
    name = q.pod_set.pod_class.node_name
    if furthest == Block.NodeName:
        return Cause(
            Reason.NoNodeMatches, f"no node is called {name}", need=q.need, unit="pods", where=name,
            unlock=("a node of that name, or no name asked for",),
        )  # fmt: skip
    wish = selector_words(q)
    size = q.draft.columns.size
    return Cause(
        Reason.NoNodeMatches,
        f"of {size:,} nodes none has {wish}" if size > 1 else f"the only node does not have {wish}",
        need=q.need, unit="pods", where=wish, unlock=(f"a node with {wish}",),
    )  # fmt: skip


def _given_otherwise(q: Question, static: NDArray[np.uint8], name: str) -> Cause:
    """What is asked for is advertised elsewhere; where the pods may go it is not, or goes by another name."""
    nodes = [q.draft.columns.nodes[n] for n in np.flatnonzero(static == Block.NoResource).tolist()]
    amount = get(q.pod_set.pod_class.requests, name)
    given = Counter(n for node in nodes for n, has in node.allocatable if is_accelerator(n) and has)
    others = [n for n, _ in given.most_common()]
    said = f"{counted(len(nodes), 'node')} would do but for {name}"
    if others:
        said += f"; {'it advertises' if len(nodes) == 1 else 'advertised there are'} {', '.join(others[:3])}"
    enough = [n for n in others if any(get(node.allocatable, n) >= amount for node in nodes)]
    unlock = f"ask for {enough[0]}" if enough else f"a node that would do whose device plugin advertises {name}"
    return Cause(Reason.UnknownResource, said, need=amount, unit=name, where=name, unlock=(unlock,))


def class_not_allowed(q: Question, static: NDArray[np.uint8]) -> Cause:
    """Nodes would do, all of GPU classes that the queue does not allow."""
    allowed = ", ".join(q.pod_set.pod_class.queue_classes or ()) or "no class"
    columns = q.draft.columns
    would_do = np.flatnonzero(static == Block.QueueClass)
    classes = sorted({columns.nodes[n].gpu_class or "a class that is not known" for n in would_do.tolist()})
    queue = q.workload.queue or q.workload.namespace
    return Cause(
        Reason.ClassNotAllowed,
        f"{counted(len(would_do), 'node')} with {', '.join(classes[:3])} would do, and queue {queue} allows {allowed} "
        "alone",
        need=q.need, unit="pods", where=queue,
        unlock=(f"{classes[0]} among allowedClasses of queue {queue}", f"nodes with {allowed}"),
    )  # fmt: skip


def sharing_not_allowed(q: Question, static: NDArray[np.uint8]) -> Cause:
    """Nodes would do, all of which give GPUs in a way that the pods do not want, or the queue does not allow."""
    pod_class, columns = q.pod_set.pod_class, q.draft.columns
    by_queue = KINDS if pod_class.queue_sharing is None else pod_class.queue_sharing
    may = pod_class.ways or ()
    would_do = [columns.nodes[n] for n in np.flatnonzero(static == Block.QueueSharing).tolist()]
    profiles = {c.name: bool(c.profile) for c in columns.gpu_classes}
    kinds = {
        kind
        for node in would_do
        for name, _ in pod_class.requests
        if is_accelerator(name)
        for kind in sharing_of(name, pod_class.gpu_milli, node, profiles.get(node.gpu_class, False))
        if kind not in may
    }
    given = [kind for kind in KINDS if kind in kinds]
    queue = q.workload.queue or q.workload.namespace
    give = "gives" if len(would_do) == 1 else "give"
    said = f"{counted(len(would_do), 'node')} would do and {give} {' and '.join(WORDS[kind] for kind in given)}"
    allowed = _ways(by_queue) or "no GPU at all"
    if pod_class.sharing:
        said += f"; the pods ask for {_ways(pod_class.sharing)} alone"
        unlock = [f"{SHARING_KEY} any, or {'|'.join((*pod_class.sharing, given[0]))}"]
        if not may:
            said += f", and queue {queue} allows {allowed}"
        elif set(given) <= set(by_queue):
            queue = SHARING_KEY  # the queue would not mind
        return Cause(Reason.SharingNotAllowed, said, need=q.need, unit="pods", where=queue, unlock=tuple(unlock))
    return Cause(
        Reason.SharingNotAllowed,
        f"{said}; queue {queue} allows {allowed}",
        need=q.need, unit="pods", where=queue,
        unlock=(f"{given[0]} in sharing of queue {queue}", f"a request for {allowed}") if may else
        (f"{given[0]} in sharing of queue {queue}",),
    )  # fmt: skip


def _ways(kinds: Sequence[str]) -> str:
    return " and ".join(WORDS[kind] for kind in KINDS if kind in kinds)


def _dynamic_alone(q: Question, name: str) -> Cause:
    """What a device plugin would advertise is there, and is given out in a way that Berth does not know yet."""
    nodes = int(q.draft.columns.is_dynamic(name).sum())
    serve = "1 node that has it gives" if nodes == 1 else f"{nodes:,} nodes that have it give"
    return Cause(
        Reason.Unsupported,
        f"{serve} {name} by dynamic resource allocation alone, which Berth does not place",
        need=q.need, unit="pods", where=name,
        unlock=(f"a node whose device plugin advertises {name}, or another scheduler for the pod",),
    )  # fmt: skip


def _tainted(q: Question, static: NDArray[np.uint8]) -> Cause:
    taints: dict[str, int] = {}
    for n in np.flatnonzero(static == Block.Taint).tolist():
        for taint in untolerated(q.draft.columns.nodes[n], q.pod_set.pod_class.tolerations):
            text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
            taints[text] = taints.get(text, 0) + 1
    met = sorted(taints, key=lambda k: (-taints[k], k))
    nodes = counted(int((static == Block.Taint).sum()), "node")
    return Cause(
        Reason.NotTolerated, f"{nodes} would do but for a taint: {', '.join(met[:3])}",
        need=q.need, unit="pods", where=met[0], unlock=tuple(f"a toleration for {key}" for key in met[:2]),
    )  # fmt: skip


def _too_small(q: Question, static: NDArray[np.uint8]) -> Cause:
    columns, requests = q.draft.columns, q.pod_set.pod_class.requests
    nodes = np.flatnonzero(static == Block.TooSmall)
    worst: tuple[float, str, int, int] | None = None
    for name, amount in requests:
        column = columns.column(name)
        largest = max(int(columns.empty[nodes, column].max()), 0) if column >= 0 else 0
        if amount > largest and (worst is None or amount / max(largest, 1) > worst[0]):
            worst = (amount / max(largest, 1), name, amount, largest)
    if worst is None:
        asked = " and ".join(spell(n, a) for n, a in requests if (columns.empty[nodes, columns.column(n)] < a).any())
        return Cause(
            Reason.LargerThanNode,
            f"one pod asks for {asked}; there are nodes with each, but none that would do has all",
            need=1, unit="pods", unlock=("a smaller pod, or larger nodes",),
        )  # fmt: skip
    _, name, amount, largest = worst
    return Cause(
        Reason.LargerThanNode,
        f"one pod asks for {spell(name, amount)} and the largest node that would do has {spell(name, largest)}",
        need=amount, have=largest, unit=unit_of(name), where=name,
        unlock=(f"pods of at most {spell(name, largest)}, or larger nodes",),
    )  # fmt: skip


def unknown_level(q: Question) -> Cause | None:
    """A required level that the cluster does not have."""
    levels, names = q.draft.columns.topology.levels, q.draft.columns.domain_names
    for wish in (*q.workload.topology, *q.pod_set.topology):
        level = level_of(wish, q.draft)
        if wish.required and (level == -1 or (level < len(levels) and not names[level])):
            known = ", ".join(f"{lv.name} ({lv.label})" for lv, d in zip(levels, names, strict=True) if d) or "none"
            label = levels[level].label if level >= 0 else wish.level
            if label != wish.level:  # it is a name that somebody has given to a label
                said = f"no node carries the label {label} of the level {wish.level}"
            else:
                said = f"no node carries the level {wish.level}"
            names_it = f"a GPUTopology, or --topology, that names the label of {wish.level}"
            if "/" in label:  # a label itself
                names_it = f"nodes with the label {label}, or a level whose label they carry"
            return Cause(
                Reason.UnknownTopologyLevel, f"{said}; levels known: {known}",
                need=q.need, unit="pods", where=wish.level, unlock=(names_it,),
            )  # fmt: skip
    return None


def larger_than_cluster(q: Question) -> Cause | None:
    """More pods than all nodes that would do hold, even empty."""
    have = in_all(q.empty, q)
    if have >= q.need:
        return None
    return Cause(
        Reason.LargerThanCluster,
        f"{needed(q)}; the nodes that would do hold {have:,}, even empty",
        need=q.need, have=have, unit="pods", unlock=(f"at most {counted(have, 'pod')}, or more nodes",),
    )  # fmt: skip


def topology_too_small(q: Question) -> Cause | None:
    """No domain of the required level is large enough, or too few for all slices, even empty."""
    narrow = narrowest_level(q)
    if narrow is None or fits(q.empty, q):
        return None
    wish, level = narrow
    largest, where = largest_domain(q.empty, level, q)
    if wish.slice_size:
        have, need = slices_held(q.empty, level, wish.slice_size, q), -(-q.need // wish.slice_size)
        return Cause(
            Reason.TopologyTooSmall,
            f"{counted(need, 'slice')} of {counted(wish.slice_size, 'pod')} of {each_pod(q)} asked for, each "
            f"{in_one(level, q)}; {have} would fit, even empty",
            need=need, have=have, unit="slices", where=where,
            unlock=(f"at most {counted(have, 'slice')}, or smaller ones",),
        )  # fmt: skip
    if is_share(q) or not q.per_pod:
        need_text, have_text = counted(q.need, "pod"), counted(largest, "pod")
    else:
        need_text, have_text = in_amount(q, q.need), in_amount(q, largest)
    return Cause(
        Reason.TopologyTooSmall,
        f"{need_text} asked for {in_one(level, q)}; the largest, {where}, has room for {have_text}, even empty",
        need=in_units(q, q.need), have=in_units(q, largest), unit=unit_in(q), where=where,
        unlock=(f"at most {counted(largest, 'pod')}, or a wider level",),
    )  # fmt: skip
