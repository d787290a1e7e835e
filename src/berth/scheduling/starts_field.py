"""A snapshot and what was decided upon it, as the arrays with which its queue is played forward (starts_run.py).

GPUs are counted by node, in units: whole ones where everybody asks for whole ones, else tenths. CPU, memory, domains
and who must not be beside whom are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.model.resources import is_accelerator
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, PodSet, Workload
from berth.scheduling.columns import MOST, NO_DEVICE, Columns
from berth.scheduling.lines import ledger_in, shares_in
from berth.scheduling.plan import Plan
from berth.scheduling.quota import NO_BOUND, Ledger, gpu_milli, milli_of
from berth.scheduling.shares import Shares
from berth.scheduling.starts_columns import Asked, Ground, Tree
from berth.scheduling.tables import Tables, classes_of

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

TENTH = WHOLE // 10
LEAST_WEIGHT = 1e-9  # a queue of weight 0 comes after all others
MOST_POOLS = 62  # bits of a mask
GONE_S = 30.0  # who is asked to leave takes so long where nobody says


@dataclass(frozen=True)
class Field:
    """What plays. R workloads run, W wait; rows of `asked` are those that run, then those that wait.

    waiting (W,) index in the snapshot of each that waits and whose turn can come, the oldest first; identities and
    attained_s (R + W,): how long each has run; leaves_s (R,) when it has to be gone, from now, infinite where it need
    not.
    """

    ground: Ground
    tree: Tree
    asked: Asked
    leaf_of: Mapping[str, int]  # the node of the tree in whose line workloads of a queue stand, by its name
    unit: int
    waiting: I64
    identities: tuple[str, ...]
    attained_s: F64
    leaves_s: F64

    @property
    def runs(self) -> int:
        return len(self.ground.first) - 1

    @property
    def everywhere(self) -> int:
        """All pools."""
        return (1 << self.ground.pools) - 1


@dataclass
class _Group:
    """A workload that runs: its pods as (node, milli)."""

    identity: str
    queue: int
    started_s: float
    limit_s: float
    leaves_s: float
    pods: list[tuple[int, int]]


def field_of(snapshot: Snapshot, plan: Plan, able: Sequence[int], tables: Tables) -> Field:
    """As it is once the plan is carried out. `able` are the workloads (indexes) that wait for nothing but room."""
    workloads = snapshot.workloads
    tables.sync(snapshot, classes_of((w.pod_sets for w in workloads), snapshot.demand.classes))
    ledger = ledger_in(snapshot)
    groups = _running(snapshot, plan, ledger, tables)
    waits = sorted(able, key=lambda w: (workloads[w].created_s, w))
    unit = WHOLE if _is_whole(groups, [workloads[w] for w in waits]) else TENTH
    ground_of, masks = _ground(groups, waits, snapshot, tables, unit)
    came = snapshot.history.queues if snapshot.history is not None else ()
    tree, leaf, leaf_of = tree_of(ledger, came, _shares(snapshot, ledger))
    for group in groups:
        _book(tree, int(leaf[group.queue]), sum(milli for _, milli in group.pods))
    shapes = [shape_of(workloads[w].pod_sets, unit) for w in waits]
    asked = Asked(
        leaf=_ints([*(leaf[g.queue] for g in groups), *(leaf[_queue(workloads[w], ledger)] for w in waits)]),
        milli=_ints([*(sum(m for _, m in g.pods) for g in groups), *(milli_of(workloads[w]) for w in waits)]),
        priority=_ints([*(0 for _ in groups), *(workloads[w].priority for w in waits)]),
        pods_a=_ints([*(0 for _ in groups), *(s[0] for s in shapes)]),
        units_a=_ints([*(1 for _ in groups), *(s[1] for s in shapes)]),
        pods_b=_ints([*(0 for _ in groups), *(s[2] for s in shapes)]),
        units_b=_ints([*(1 for _ in groups), *(s[3] for s in shapes)]),
        pools=_ints([*(0 for _ in groups), *masks]),
        limit_s=np.array([
            *(_due(g, snapshot.now_s) for g in groups),
            *(workloads[w].time_limit_s or np.inf for w in waits),
        ], np.float64),
        rank=np.zeros(len(groups) + len(waits)),
    )  # fmt: skip
    return Field(
        ground=ground_of,
        tree=tree,
        asked=asked,
        leaf_of=leaf_of,
        unit=unit,
        waiting=_ints(waits),
        identities=(*(g.identity for g in groups), *(workloads[w].identity for w in waits)),
        attained_s=np.array([*(snapshot.now_s - g.started_s for g in groups), *(0.0 for _ in waits)], np.float64),
        leaves_s=np.array([g.leaves_s for g in groups], np.float64),
    )


def shape_of(pod_sets: Sequence[PodSet], unit: int) -> tuple[int, int, int, int]:
    """(pods, units of each) twice, the larger first, of what has to start together. Sets of a third size and smaller
    ones count as so many pods of the second as hold them."""
    sizes: dict[int, int] = {}
    for pod_set in pod_sets:
        milli = gpu_milli(pod_set.pod_class.requests, pod_set.pod_class.gpu_milli)
        if milli and pod_set.min_count:
            units = -(-milli // unit)
            sizes[units] = sizes.get(units, 0) + pod_set.min_count
    if not sizes:
        return 0, 1, 0, 1
    first, *others = sorted(sizes, reverse=True)
    if not others:
        return sizes[first], first, 0, 1
    rest = sum(units * sizes[units] for units in others)
    return sizes[first], first, -(-rest // others[0]), others[0]


def tree_of(ledger: Ledger, others: Sequence[str], shares: Shares) -> tuple[Tree, I64, dict[str, int]]:
    """The queues below one root, parents first, nothing held; and the node in whose line workloads of each queue stand,
    (Q,) and by name: its own, or one below it where it has children, too. `others` are queues that only the past
    knows: at the top, of weight 1."""
    children: dict[int, list[int]] = {}
    for q, parent in enumerate(ledger.parent.tolist()):
        children.setdefault(parent, []).append(q)
    queue_of, parents, node_of = [-1], [-1], {-1: 0}
    leaf = np.zeros(len(ledger.names), np.int64)
    todo = [-1]
    while todo:
        q = todo.pop(0)
        for c in children.get(q, ()):
            node_of[c] = len(queue_of)
            leaf[c] = node_of[c]
            queue_of.append(c)
            parents.append(node_of[q])
            todo.append(c)
        if q >= 0 and q in children:
            leaf[q] = len(queue_of)
            queue_of.append(-1)
            parents.append(node_of[q])
    leaf_of = {name: int(leaf[q]) for q, name in enumerate(ledger.names)}
    for name in others:
        if name not in leaf_of:
            leaf_of[name] = len(queue_of)
            queue_of.append(-1)
            parents.append(0)
    below: list[list[int]] = [[] for _ in queue_of]
    for node, above in enumerate(parents):
        if above >= 0:
            below[above].append(node)
    worth = shares.mean_worth or 1.0
    tree = Tree(
        parent=_ints(parents),
        first_child=np.cumsum([0, *(len(some) for some in below)]).astype(np.int64),
        child=_ints([node for some in below for node in some]),
        weight=np.array([max(float(shares.weight[q]), LEAST_WEIGHT) if q >= 0 else 1.0 for q in queue_of]),
        base=np.array([float(shares.base[q]) / worth if q >= 0 else 0.0 for q in queue_of]),
        held=np.zeros(len(queue_of), np.int64),
        limit=_ints([int(ledger.limit[q, -1]) if q >= 0 else NO_BOUND for q in queue_of]),
    )
    return tree, leaf, leaf_of


def _shares(snapshot: Snapshot, ledger: Ledger) -> Shares:
    count = len(snapshot.workloads)
    queue = np.fromiter((_queue(w, ledger) for w in snapshot.workloads), np.int32, count)
    milli = np.fromiter((milli_of(w) for w in snapshot.workloads), np.int64, count)
    return shares_in(snapshot, ledger, queue, milli)


def _queue(workload: Workload, ledger: Ledger) -> int:
    return ledger.queue_of(workload.queue, workload.namespace)


def _running(snapshot: Snapshot, plan: Plan, ledger: Ledger, tables: Tables) -> list[_Group]:
    """Workloads that hold GPUs, those among them that the plan starts."""
    groups: dict[str, _Group] = {}
    crowd, now_s = tables.crowd, snapshot.now_s
    milli_of_pod = crowd.milli[crowd.kind].tolist() if len(crowd.kind) else []
    told_to_go = {(e.allocation.namespace, e.allocation.name) for e in plan.evictions}
    for a, node, milli in zip(snapshot.allocations, crowd.node.tolist(), milli_of_pod, strict=True):
        if not milli or node < 0:
            continue
        identity = a.workload_identity
        group = groups.get(identity)
        if group is None:
            group = groups[identity] = _Group(
                identity, ledger.queue_of(a.queue, a.namespace), a.started_s or now_s, a.time_limit_s, np.inf, []
            )
        group.pods.append((node, milli))
        if a.is_ending:
            group.leaves_s = min(group.leaves_s, max(a.ends_s - now_s, 0.0) if a.ends_s else GONE_S)
        elif told_to_go and (a.namespace, a.name) in told_to_go:
            group.leaves_s = min(group.leaves_s, a.grace_s)
    for w, pod_set, node in zip(plan.workload.tolist(), plan.pod_set.tolist(), plan.node.tolist(), strict=True):
        workload = plan.workloads[w]
        pod_class = workload.pod_sets[pod_set].pod_class
        milli = gpu_milli(pod_class.requests, pod_class.gpu_milli)
        if not milli:
            continue
        group = groups.get(workload.identity)
        if group is None:
            group = groups[workload.identity] = _Group(
                workload.identity, _queue(workload, ledger), now_s, workload.time_limit_s, np.inf, []
            )
        group.pods.append((node, milli))
    return list(groups.values())


def _is_whole(groups: Sequence[_Group], waiting: Sequence[Workload]) -> bool:
    sets = {id(w.pod_sets): w.pod_sets for w in waiting}
    asks = all(
        gpu_milli(s.pod_class.requests, s.pod_class.gpu_milli) % WHOLE == 0 for some in sets.values() for s in some
    )
    return asks and all(milli % WHOLE == 0 for group in groups for _, milli in group.pods)


def _ground(
    groups: Sequence[_Group], waits: Sequence[int], snapshot: Snapshot, tables: Tables, unit: int
) -> tuple[Ground, list[int]]:
    """The nodes with what runs on them, and for each that waits the pools that it may use."""
    columns = tables.columns
    assert columns is not None
    rows_of: dict[int, tuple[int, ...]] = {}
    for w in waits:
        sets = snapshot.workloads[w].pod_sets
        if id(sets) not in rows_of:
            rows_of[id(sets)] = tuple(sorted({
                tables.row(s.pod_class) for s in sets if gpu_milli(s.pod_class.requests, s.pod_class.gpu_milli)
            }))  # fmt: skip
    rows = sorted({row for some in rows_of.values() for row in some})
    usable = tables.static[rows] == 0 if rows else np.zeros((0, columns.size), bool)
    kinds, pool = np.unique(usable, axis=1, return_inverse=True) if rows else (usable[:, :1], np.zeros(columns.size))
    pool = pool.reshape(-1).astype(np.int64)
    if kinds.shape[1] > MOST_POOLS:
        # Too many sorts of nodes: by GPU class, and whoever may use some nodes of one may use all of them.
        _, pool = np.unique(columns.gpu_class, return_inverse=True)
        pool = np.minimum(pool.reshape(-1), MOST_POOLS - 1).astype(np.int64)
        kinds = np.array([usable[:, pool == p].any(axis=1) for p in range(int(pool.max()) + 1)]).T
    place = {row: i for i, row in enumerate(rows)}
    masks = []
    for w in waits:
        own = [place[row] for row in rows_of[id(snapshot.workloads[w].pod_sets)]]
        open_to = kinds[own].all(axis=0) if own else np.zeros(kinds.shape[1], bool)
        if own and not open_to.any():
            open_to = kinds[own].any(axis=0)
        masks.append(int(sum(1 << p for p in np.flatnonzero(open_to).tolist())))
    held = np.zeros(columns.size, np.int64)
    for group in groups:
        for node, milli in group.pods:
            held[node] += milli
    size = _sizes(columns)
    free = np.maximum(size - held, 0) // unit
    pods = [(node, -(-milli // unit)) for group in groups for node, milli in group.pods]
    on_node = np.zeros(columns.size, np.int64)
    for node, units in pods:
        on_node[node] += units
    return (
        Ground(
            free=free,
            pool=pool,
            levels=int((free + on_node).max(initial=1)),
            pools=max(kinds.shape[1], 1),
            first=np.cumsum([0, *(len(g.pods) for g in groups)]).astype(np.int64),
            node=_ints([node for node, _ in pods]),
            units=_ints([units for _, units in pods]),
            ran_s=np.array([max(snapshot.now_s - g.started_s, 0.0) for g in groups], np.float64),
        ),
        masks,
    )


def _sizes(columns: Columns) -> I64:
    """(N,) GPU milli of each node: its fit devices, and what it offers of partitions."""
    found: I64 = ((columns.device_free > NO_DEVICE).sum(axis=1) * WHOLE).astype(np.int64)
    for r, name in enumerate(columns.resources):
        if is_accelerator(name):
            offered = np.clip(columns.empty[:, r], 0, MOST)
            found += np.where(columns.pool == r, 0, offered) * WHOLE
    return found


def _due(group: _Group, now_s: float) -> float:
    """When it has to have ended, from now."""
    by_limit = group.started_s + group.limit_s - now_s if group.limit_s else np.inf
    return min(by_limit, group.leaves_s)


def _book(tree: Tree, q: int, milli: int) -> None:
    while q >= 0:
        tree.held[q] += milli
        q = int(tree.parent[q])


def _ints(values: Sequence[int]) -> I64:
    return np.array(values, np.int64)
