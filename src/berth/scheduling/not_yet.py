"""Causes that pass when something is released or mended: each check is a cause, or None where it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from msgspec.structs import replace as but
from numpy.typing import NDArray

from berth.base.units import counted, from_milli
from berth.model.cluster import Health
from berth.model.health import codes_of, in_words
from berth.model.reasons import BLOCK_WORDS, HELD_BACK, Block, Cause, Reason
from berth.model.resources import CPU, MEMORY
from berth.model.volumes import ROOM, is_offered
from berth.model.workload import WHOLE
from berth.scheduling.feasibility import is_held
from berth.scheduling.moves import moves_that_free
from berth.scheduling.neighbours import Who
from berth.scheduling.question import (
    Question,
    all_milli,
    codes_on,
    copies_by_gpus,
    fits,
    idle_milli,
    island_idle,
    largest_domain,
    narrowest_level,
    node_idle,
    slices_held,
)
from berth.scheduling.release import on_one_node, releasable, released
from berth.scheduling.topology import room_by_domain
from berth.scheduling.wording import (
    amount,
    could_start,
    each_pod,
    gpus,
    in_amount,
    in_one,
    in_units,
    is_or_are,
    is_share,
    needed,
    number,
    resource_of,
    spell,
    unit_in,
)

Mask = NDArray[np.bool_]


def held_back(q: Question) -> Cause | None:
    """It would fit if nodes that are held back were in service, or broken GPUs mended."""
    if fits(q.copies, q) or not fits(q.mended, q):
        return None
    static = q.static
    helpful = _enough_of(np.flatnonzero(q.mended > q.copies), q)
    held = is_held(static)[helpful]
    names = [q.draft.columns.nodes[n].name for n in helpful[held].tolist()]
    sick = [q.draft.columns.nodes[n].name for n in helpful[~held].tolist()]
    kinds = kinds_of(helpful[held], q)
    broken = sum(int((q.draft.device_free[n] < 0).sum()) for n in helpful[~held].tolist())
    parts = []
    if names:
        parts.append(
            f"{counted(len(names), 'node')} with room {'is' if len(names) == 1 else 'are'} held back "
            f"({', '.join(kinds)})"
        )
    if broken:
        parts.append(
            f"{counted(broken, 'unfit GPU')} on {_some(sick)} {'is' if broken == 1 else 'are'} held back"
            f"{_found_on(helpful[~held], q)}"
        )
    narrow = narrowest_level(q)
    where, have = "", int(q.copies.sum())
    if narrow is not None and not narrow[0].slice_size:
        have, where = largest_domain(q.copies, narrow[1], q)
        where = f" {in_one(narrow[1], q)} ({where})"
    have = min(have, q.need - 1)
    start = f"; at most {have:,} could start{where}" if have and q.need > 1 else could_start(q, 0)
    unlock = [f"{_some(names)} back in service"] if names else []
    unlock += [f"the unfit GPU{'s' if broken > 1 else ''} on {_some(sick)} mended"] if broken else []
    have_units = in_units(q, have)
    if q.need == 1 and q.per_pod >= WHOLE:
        have_units = number(q, int(node_idle(q)[static == Block.Nothing].max(initial=0)))
        have_units = min(have_units, in_units(q, 1) - 1)
    return Cause(
        Reason.NodesHeldBack, f"{needed(q)}{start}, and {'; '.join(parts)}",
        need=in_units(q, q.need), have=have_units, unit=unit_in(q), where=_some([*names, *sick]),
        unlock=(" and ".join(unlock),),
    )  # fmt: skip


def kinds_of(nodes: NDArray[np.int64], q: Question) -> list[str]:
    """`1 cordoned`, `Xid 79 on 2`, `1 unfit`, `3 suspect: remap pending on 2, Xid 63 on 1`: held-back nodes by kind,
    those of which a health agent says what it has found by that."""
    block, kinds = q.static, []
    for state in HELD_BACK:
        of_state = nodes[block[nodes] == state].tolist()
        found = codes_on(block, q, of_state) if state in (Block.Unfit, Block.Suspect) else ()
        codes = [f"{in_words(code)} on {count:,}" for code, count in found]
        told = sum(count for _, count in found)
        if state == Block.Suspect:
            kinds += [f"{len(of_state):,} suspect{': ' if codes else ''}{', '.join(codes)}"] if of_state else []
            continue
        kinds += codes
        if len(of_state) > told:
            kinds.append(f"{len(of_state) - told:,} {BLOCK_WORDS[state]}")
    return kinds


def _found_on(nodes: NDArray[np.int64], q: Question) -> str:
    """` (Xid 79 on 2, remap pending on 1)`: what was found of the unfit GPUs of some nodes, by GPU."""
    every = q.draft.columns.nodes
    found = Counter(code for n in nodes.tolist() for code in codes_of(every[n].devices, Health.Unfit))
    codes = [f"{in_words(code)} on {count:,}" for code, count in sorted(found.items(), key=lambda f: (-f[1], f[0]))]
    return f" ({', '.join(codes)})" if codes else ""


def _enough_of(helpful: NDArray[np.int64], q: Question) -> NDArray[np.int64]:
    """The nodes that would suffice: of one domain where there must be one, those with most room first."""
    narrow = narrowest_level(q)
    levels = q.draft.columns.topology.levels
    if narrow is not None and not narrow[0].slice_size and narrow[1] < len(levels):
        domain = q.draft.columns.domain[narrow[1]]
        best = int(np.argmax(room_by_domain(q.mended, narrow[1], q.draft.columns)))
        helpful = helpful[domain[helpful] == best]
        have = int(q.copies[domain == best].sum())
    elif narrow is not None and narrow[1] == len(levels):
        return helpful[[int(np.argmax(q.mended[helpful]))]]
    elif narrow is not None:
        return helpful
    else:
        have = int(q.copies.sum())
    gain = (q.mended - q.copies)[helpful].astype(np.int64)
    order = np.argsort(-gain, kind="stable")
    enough = int(np.searchsorted(np.cumsum(gain[order]), q.need - have)) + 1
    return np.sort(helpful[order[:enough]])


def _some(names: Sequence[str]) -> str:
    """Three names, and how many more."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def used_up(q: Question) -> Cause | None:
    """Too little is free, or not together with the rest that a pod needs, or scattered."""
    have = q.once("anywhere", lambda: int(q.copies_anywhere.sum()))
    if have >= q.need:
        return None
    would_do = q.static == Block.Nothing
    if q.per_pod == 0:
        return _short_of(q, have, would_do)
    by_gpus = copies_by_gpus(q, would_do)
    if by_gpus >= q.need:
        return _short_of(q, have, would_do)
    idle = idle_milli(q, would_do)
    need_milli = q.need * q.per_pod
    if idle >= need_milli:
        return _scattered(q, would_do, by_gpus, idle)
    every = all_milli(q, would_do)
    if unit_in(q) in ("GPUs", "milli-GPUs"):
        of_all = f"{from_milli(idle)} of {gpus(every)} that would do {is_or_are(every)} free"
    else:
        of_all = f"{idle // WHOLE:,} of {amount(q, every)} {is_or_are(every)} free"
    return Cause(
        Reason.NotEnoughGpus, f"{needed(q)}; {of_all}",
        need=number(q, need_milli), have=number(q, idle), unit=unit_in(q), where=resource_of(q),
        unlock=_would_be_released(q, would_do),
    )  # fmt: skip


def _scattered(q: Question, would_do: Mask, by_gpus: int, idle: int) -> Cause:
    """Enough is free in all, but not next to each other: `by_gpus` pods would find room."""
    per_node, name = node_idle(q), resource_of(q)
    count = int((per_node > 0)[would_do].sum())
    on_nodes = f"scattered over {counted(count, 'node')}" if count > 1 else "on 1 node"
    # Of one pod a move is told where it is all that lacks. A gang may need the very place that the moved pods take.
    moves = moves_that_free(q, would_do) if q.need == 1 and narrowest_level(q) is None else ()
    moves += _would_be_released(q, would_do)
    joined = q.pod_set.pod_class.least.link.lower() == "nvlink" and q.per_pod > WHOLE
    together = "on one GPU" if is_share(q) else "joined by NVLink" if joined else "on one node"
    if by_gpus:
        return Cause(
            Reason.Fragmented,
            f"{counted(q.need, 'pod')} of {each_pod(q)} {together} asked for; {gpus(idle)} {is_or_are(idle)} free, "
            f"{on_nodes}, with room for {counted(by_gpus, 'such pod')}",
            need=in_units(q, q.need), have=in_units(q, by_gpus), unit=unit_in(q), where=name, unlock=moves,
        )  # fmt: skip
    if is_share(q):
        left = q.draft.device_free[would_do]
        most, at = int(left[left < q.per_pod].max(initial=0)), "on one GPU"
    elif joined:
        most, at = int(island_idle(q)[would_do].max(initial=0)), "in one NVLink island"
    else:
        most, at = int(per_node[would_do].max(initial=0)), "on one node"
    return Cause(
        Reason.Fragmented,
        f"one pod needs {each_pod(q)} {together}; {gpus(idle)} {is_or_are(idle)} free, {on_nodes}, "
        f"at most {from_milli(most)} {at}",
        need=number(q, q.per_pod), have=number(q, most), unit=unit_in(q), where=name, unlock=moves,
    )  # fmt: skip


def gpus_in_all(questions: Sequence[Question]) -> Cause | None:
    """The sets together ask for more GPUs than are free on all nodes that would do for any of them."""
    idle = np.zeros(questions[0].draft.columns.size, np.int64)
    for q in questions:
        if q.per_pod:
            here = q.static == Block.Nothing
            idle = np.maximum(idle, np.where(here, node_idle(q), 0))
    need, have = sum(q.need * q.per_pod for q in questions), int(idle.sum())
    if need <= have:
        return None
    pods = sum(q.need for q in questions)
    shares = any(is_share(q) for q in questions)
    per = 1 if shares else WHOLE
    return Cause(
        Reason.NotEnoughGpus,
        f"{counted(pods, 'pod')} with {gpus(need)} in all asked for; {from_milli(have)} that would do "
        f"{is_or_are(have)} free",
        need=need // per, have=have // per, unit="milli-GPUs" if shares else "GPUs",
        unlock=released_together(questions),
    )  # fmt: skip


def _would_be_released(q: Question, would_do: Mask) -> tuple[str, ...]:
    """The GPUs that would do, released: anywhere, or in the domain that has room for most where there must be one."""
    narrow = narrowest_level(q)
    if narrow is None:
        return released(q, would_do)
    wish, level = narrow
    return () if wish.slice_size else _released_in_one(q, level, would_do)


def _released_in_one(q: Question, level: int, would_do: Mask) -> tuple[str, ...]:
    """The same on one node, or in the domain with most room."""
    columns = q.draft.columns
    if level == len(columns.topology.levels):
        there = releasable(q, would_do)
        return on_one_node(q, there, q.need) if there is not None else ()
    room = room_by_domain(q.copies, level, columns)
    if not len(room):
        return ()
    best = int(np.argmax(room))
    inside = columns.domain[level] == best
    mine = inside & would_do
    where = f" in {columns.topology.levels[level].name} {columns.domain_names[level][best]}"
    name = columns.column(resource_of(q))
    if name < 0 or (inside & ~mine & (columns.empty[:, name] > 0)).any():
        where = f" on nodes that would do{where}"
    return released(q, mine, where)


def released_together(questions: Sequence[Question]) -> tuple[str, ...]:
    """What would let all sets start, told where their pods are alike; of others a placement alone can tell."""
    first = questions[0]
    if any(q.row != first.row or q.pod_set.topology for q in questions) or first.draft.neighbours is not None:
        return ()
    need = sum(q.need for q in questions)
    every = replace(first, pod_set=but(first.pod_set, count=need, min_count=need))
    return _would_be_released(every, every.static == Block.Nothing)


def _short_of(q: Question, have: int, would_do: Mask) -> Cause:
    """GPUs would do, something beside them is used up."""
    block = q.draft.block[q.row][would_do & (q.copies == 0)]
    counts = np.bincount(block, minlength=len(Block))
    counts[[Block.Nothing, Block.Gpus, Block.GpuShare]] = 0  # of GPUs there are enough
    if counts.max(initial=0) == 0:
        return _too_little_in_all(q, have, would_do)
    worst = Block(int(counts.argmax()))
    name = {Block.Cpu: CPU, Block.Memory: MEMORY, Block.Pods: "pods"}.get(worst) or _used_resource(q, would_do)
    what = {CPU: "CPU", "pods": "room for pods"}.get(name, name)
    idle = idle_milli(q, would_do) if q.per_pod else 0
    free = f"{amount(q, idle)} {is_or_are(idle)} free, but " if idle else ""
    nodes = int(counts[worst])
    numbers = ""
    if name != "pods" and not name.startswith(ROOM):
        ask = next((a for n, a in q.pod_set.pod_class.requests if n == name), 0)
        lacking = would_do & (q.draft.block[q.row] == int(worst))
        most = int(q.draft.free[lacking, q.draft.columns.column(name)].max(initial=0))
        numbers = f" (each pod asks for {spell(name, ask)}; most left on one is {spell(name, max(most, 0))})"
    beside = " next to free GPUs" if idle else ""
    less = f"less {what} asked by each pod, or " if name in (CPU, MEMORY) else ""
    released = "free" if is_offered(name) else "released"
    return Cause(
        Reason.NotEnoughResources,
        f"{needed(q)}; {free}{counted(nodes, 'node')} of those that would do {'lacks' if nodes == 1 else 'lack'} "
        f"{what}{numbers}{could_start(q, have)}",
        need=q.need, have=have, unit="pods", where=name, unlock=(f"{less}{what} {released}{beside}",),
    )  # fmt: skip


def _too_little_in_all(q: Question, have: int, would_do: Mask) -> Cause:
    """Each node takes some of the pods, and all together too few: by the resource that is enough for the fewest."""
    columns, free = q.draft.columns, q.draft.free[would_do]
    enough = {
        n: int((np.maximum(free[:, columns.column(n)], 0) // a).sum())
        for n, a in q.pod_set.pod_class.requests
        if n != resource_of(q) and a
    }
    name = min(enough, key=lambda n: enough[n], default="")
    if not name or enough[name] >= q.need:
        return Cause(
            Reason.NotEnoughResources, f"{needed(q)}{could_start(q, have)}", need=q.need, have=have, unit="pods"
        )
    what = {CPU: "CPU", MEMORY: "memory"}.get(name, name)
    are = "is" if name in (CPU, MEMORY) or name.startswith(ROOM) else "are"
    released = "free" if is_offered(name) else "released"
    start = could_start(q, have) if have != enough[name] else ""
    return Cause(
        Reason.NotEnoughResources,
        f"{needed(q)}; {what} on the nodes that would do {are} enough for {counted(enough[name], 'pod')}{start}",
        need=q.need, have=have, unit="pods", where=name, unlock=(f"more {what} {released}",),
    )  # fmt: skip


def _used_resource(q: Question, would_do: Mask) -> str:
    """The resource, beside GPUs, CPU and memory, of which most nodes have too little left."""
    columns, free = q.draft.columns, q.draft.free[would_do]
    lacking = {
        n: int((free[:, columns.column(n)] < a).sum())
        for n, a in q.pod_set.pod_class.requests
        if n not in (CPU, MEMORY, resource_of(q))
    }
    return max(lacking, key=lambda n: lacking[n], default="another resource")


def topology_fragmented(q: Question) -> Cause | None:
    """Enough is free, but not in one domain of the required level, or in too few for all slices."""
    narrow = narrowest_level(q)
    if narrow is None or fits(q.copies, q):
        return None
    wish, level = narrow
    largest, where = largest_domain(q.copies, level, q)
    if wish.slice_size:
        have, need = slices_held(q.copies, level, wish.slice_size, q), -(-q.need // wish.slice_size)
        have = min(have, need - 1)
        return Cause(
            Reason.TopologyFragmented,
            f"{counted(need, 'slice')} of {counted(wish.slice_size, 'pod')} of {each_pod(q)} asked for, each "
            f"{in_one(level, q)}; {have} {'fits' if have == 1 else 'fit'}",
            need=need, have=have, unit="slices", where=where,
            unlock=(f"room for {counted(need - have, 'more slice')}",),
        )  # fmt: skip
    on_or_in = "on" if level == len(q.draft.columns.topology.levels) else "in"
    more = f"room for {counted(q.need - largest, 'more such pod')} {on_or_in} {where}"
    unlock = _released_in_one(q, level, q.static == Block.Nothing) or (more,)
    in_all = int(q.copies.sum())
    return Cause(
        Reason.TopologyFragmented,
        f"{in_amount(q, q.need)} asked for {in_one(level, q)}; there is room for {in_amount(q, in_all)} in all, "
        f"for at most {in_amount(q, largest)} {in_one(level, q)} ({where})",
        need=in_units(q, q.need), have=in_units(q, largest), unit=unit_in(q), where=where,
        unlock=unlock,
    )  # fmt: skip


def pods_in_the_way(q: Question, placed_alone: int) -> Cause | None:
    """Nodes have room, but other pods, or the set's own, keep some off them. `placed_alone` could start."""
    neighbours = q.draft.neighbours
    who = Who(q.workload.namespace, q.pod_set.labels, q.pod_set.pod_class)
    if neighbours is None or not neighbours.concern(who) or placed_alone >= q.need:
        return None
    room = q.copies > 0
    kinds = [
        (word, unlock)
        for word, unlock, asked in (
            ("anti-affinity", "another node with room", q.pod_set.pod_class.apart),
            ("affinity", "a pod that it wants to be near, on a node with room", q.pod_set.pod_class.near),
            ("topology spread", "room in the domains that have fewer of these pods", q.pod_set.pod_class.spread),
            ("host ports", "the port free on a node with room", q.pod_set.pod_class.host_ports),
        )
        if asked
    ] or [("the anti-affinity of other pods", "another node with room")]  # fmt: skip
    q.draft.block[q.row][room & ~neighbours.leave_open(who)] = int(Block.OtherPods)
    words = " and ".join(word for word, _ in kinds)
    lets = f"lets {placed_alone:,} start" if placed_alone else "keeps them off" if q.need > 1 else "keeps it off"
    plural = len(kinds) > 1 or kinds[0][0] == "host ports"
    lets = lets.replace("lets", "let").replace("keeps", "keep") if plural else lets
    return Cause(
        Reason.PodsInTheWay,
        f"{needed(q)}; {counted(int(room.sum()), 'node')} {'has' if room.sum() == 1 else 'have'} room, "
        f"but {words} {lets}",
        need=q.need, have=placed_alone, unit="pods", where=kinds[0][0], unlock=tuple(unlock for _, unlock in kinds),
    )  # fmt: skip
