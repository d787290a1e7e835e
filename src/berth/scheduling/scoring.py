"""What a placement costs the others: the loss of supply, weighted by how scarce each supply is.

With S_n(m) the GPU milli of node n that class m could use, U_m = sum over n of S_n(m), and D_m the class's share of
demand, a pod on node n costs  sum over m of D_m / U_m · (S_n(m) before − after),  the gradient of
sum over m of D_m · log U_m. Derivation and figures: docs/internals/placement.md.

Shapes: N nodes, M class rows, J rows with demand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.draft import Draft
from berth.scheduling.kernels import WHOLE, choose_devices, compiled, copies_on, take
from berth.scheduling.policy import Policy

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

NO_ROOM = 2**30
LEAST_SUPPLY = 20.0  # milli: below it a supply counts as this much, so that a class without any does not rule all


@compiled
def supply_on(share, need, ask, free, left, islands, pool):  # type: ignore[no-untyped-def]
    """S_n(m): GPU milli of one node that a class could use.

    A mixture of all usable milli (share 0) and of whole copies, which CPU and memory limit (share 1).
    """
    devices, milli = ask[1], ask[2]
    if devices == 0:
        return 0.0
    copies, _ = copies_on(need, ask, free, left, islands, pool)
    if copies == 0:
        return 0.0
    usable = 0
    if pool == ask[0]:
        for g in range(left.shape[0]):
            if left[g] >= milli:
                usable += left[g]
    else:
        usable = free[ask[0]] * WHOLE
    return (1.0 - share) * usable + share * (copies * devices * milli)


@compiled
def worth(n, rows, weight, share, need, ask, static, free, left, islands, pool):  # type: ignore[no-untyped-def]
    """Weighted supply of one node, over the rows with demand; amounts as in `free` and `left`."""
    total = 0.0
    for i in range(rows.shape[0]):
        j = rows[i]
        if weight[i] > 0.0 and static[j, n] == 0:
            total += weight[i] * supply_on(share[i], need[j], ask[j], free, left, islands, pool)
    return total


@compiled
def scarcity(rows, demand, share, need, ask, static, free, device_free, island, pool, weight):  # type: ignore[no-untyped-def]
    """Weights D_m / U_m in units of the cluster's free GPU milli, into `weight` (J,)."""
    idle = 0
    total = 0.0
    for i in range(rows.shape[0]):
        total += demand[i]
    for n in range(free.shape[0]):
        for g in range(device_free.shape[1]):
            if device_free[n, g] > 0:
                idle += device_free[n, g]
    for i in range(rows.shape[0]):
        j = rows[i]
        supply = 0.0
        if demand[i] > 0.0:
            for n in range(free.shape[0]):
                if static[j, n] == 0:
                    supply += supply_on(share[i], need[j], ask[j], free[n], device_free[n], island[n], pool[n])
            weight[i] = demand[i] / total * idle / max(supply, LEAST_SUPPLY)
        else:
            weight[i] = 0.0


@compiled
def loss_on(  # type: ignore[no-untyped-def]
    m,
    n,
    before,
    quantum,
    rows,
    weight,
    share,
    need,
    ask,
    static,
    free,
    left,
    islands,
    pool,
    spare_free,
    spare_left,
):
    """Quantised loss of a pod of class m on node n, and its devices; NO_ROOM where it does not fit.

    `before` is the node's worth as it is; `spare_free` (R,) and `spare_left` (G,) are scratch.
    """
    if static[m, n] != 0:
        return NO_ROOM, np.int64(0)
    copies, _ = copies_on(need[m], ask[m], free, left, islands, pool)
    if copies == 0:
        return NO_ROOM, np.int64(0)
    least, chosen = NO_ROOM, np.int64(0)
    on_devices = ask[m, 1] > 0 and pool == ask[m, 0]
    if on_devices and ask[m, 1] == 1 and ask[m, 2] < WHOLE:
        # A share is tried on each device that differs from those before it.
        for g in range(left.shape[0]):
            if left[g] < ask[m, 2]:
                continue
            seen = False
            for h in range(g):
                if left[h] == left[g]:
                    seen = True
            if seen:
                continue
            mask = np.int64(1) << g
            spare_free[:], spare_left[:] = free, left
            take(1, mask, need[m], ask[m], spare_free, spare_left, pool)
            after = worth(n, rows, weight, share, need, ask, static, spare_free, spare_left, islands, pool)
            loss = int(np.floor((before - after) / quantum))
            if loss < least:
                least, chosen = loss, mask
        return least, chosen
    if on_devices:
        chosen = choose_devices(left, islands, ask[m, 1], ask[m, 2], ask[m, 3])
    spare_free[:], spare_left[:] = free, left
    take(1, chosen, need[m], ask[m], spare_free, spare_left, pool)
    after = worth(n, rows, weight, share, need, ask, static, spare_free, spare_left, islands, pool)
    return int(np.floor((before - after) / quantum)), chosen


@compiled
def loss_row(m, quantum, rows, weight, share, need, ask, static, free, device_free, island, pool, losses):  # type: ignore[no-untyped-def]
    """Losses of a pod of class m on every node, into `losses` (N,)."""
    spare_free, spare_left = free[0].copy(), device_free[0].copy()
    for n in range(free.shape[0]):
        before = worth(n, rows, weight, share, need, ask, static, free[n], device_free[n], island[n], pool[n])
        losses[n], _ = loss_on(
            m, n, before, quantum, rows, weight, share, need, ask, static,
            free[n], device_free[n], island[n], pool[n], spare_free, spare_left,
        )  # fmt: skip


@compiled
def place_run(  # type: ignore[no-untyped-def]
    run,
    learn,
    refresh,
    quantum,
    rows,
    demand,
    share,
    need,
    ask,
    static,
    free,
    device_free,
    island,
    pool,
    queue,
    has_limits,
    parent,
    limit,
    used,
    gpu_class,
    milli,
    node,
    devices,
):
    """Place a run of single pods one after the other, each on the node that it costs the others least.

    run (W,) class rows in order; learn (M,) position in `rows` whose demand an arrival of the class adds to, -1
    for none; queue (W,), parent (Q,), limit and used (Q, C + 1) milli as in quota.Ledger; milli (M,) GPU milli.
    Ties go to the first node. Writes node (W,): index, -1 no node, -2 over a limit; devices (W,) bit masks.
    """
    size, classes = free.shape[0], need.shape[0]
    weight = np.zeros(rows.shape[0])
    values = np.zeros(size)
    version = np.ones(size, np.int32)
    stamp = np.zeros((classes, size), np.int32)
    losses = np.empty((classes, size), np.int32)
    masks = np.zeros((classes, size), np.int64)
    spare_free, spare_left = free[0].copy(), device_free[0].copy()
    open_ = np.ones(limit.shape[1], np.bool_)
    for w in range(run.shape[0]):
        m = run[w]
        if learn[m] >= 0:
            demand[learn[m]] += 1.0
        if w % refresh == 0:
            scarcity(rows, demand, share, need, ask, static, free, device_free, island, pool, weight)
            for n in range(size):
                version[n] += 1
                values[n] = worth(
                    n, rows, weight, share, need, ask, static, free[n], device_free[n], island[n], pool[n]
                )  # fmt: skip
        node[w] = -1
        if has_limits and milli[m] > 0:
            all_open = _open_classes(queue[w], milli[m], parent, limit, used, open_)
            if not all_open:
                node[w] = -2
                continue
        best, least = -1, NO_ROOM
        for n in range(size):
            if stamp[m, n] != version[n]:
                stamp[m, n] = version[n]
                losses[m, n], masks[m, n] = loss_on(
                    m, n, values[n], quantum, rows, weight, share, need, ask, static,
                    free[n], device_free[n], island[n], pool[n], spare_free, spare_left,
                )  # fmt: skip
            if losses[m, n] < least and (not has_limits or open_[gpu_class[n]]):
                best, least = n, losses[m, n]
        if best < 0:
            continue
        node[w], devices[w] = best, masks[m, best]
        take(1, masks[m, best], need[m], ask[m], free[best], device_free[best], pool[best])
        version[best] += 1
        values[best] = worth(
            best, rows, weight, share, need, ask, static, free[best], device_free[best], island[best], pool[best]
        )  # fmt: skip
        if has_limits and milli[m] > 0:
            q = queue[w]
            while q >= 0:
                used[q, gpu_class[best]] += milli[m]
                if gpu_class[best] != used.shape[1] - 1:
                    used[q, used.shape[1] - 1] += milli[m]
                q = parent[q]


@compiled
def _open_classes(q, milli, parent, limit, used, open_):  # type: ignore[no-untyped-def]
    """Which GPU classes the queue may still take `milli` of, into `open_` (C + 1,); False where none."""
    open_[:] = True
    last = open_.shape[0] - 1
    while q >= 0:
        for c in range(open_.shape[0]):
            if used[q, c] + milli > limit[q, c]:
                open_[c] = False
        q = parent[q]
    if not open_[last]:
        open_[:] = False
        return False
    return open_.any()


class Losses:
    """Losses by class row for the draft as it is; a row is worked out when it is asked for.

    rows (J,) rows with demand, demand (J,) their shares, weight (J,) their scarcity, share (J,) of whole copies.
    """

    def __init__(self, rows: I64, demand: F64, policy: Policy, draft: Draft) -> None:
        self.rows, self.demand, self.policy = rows, demand, policy
        devices = draft.tables.ask[rows, 1] if len(rows) else np.zeros(0, np.int32)
        self.share: F64 = np.where(devices > 1, policy.whole_copies_many, policy.whole_copies)
        self.weight: F64 = np.zeros(len(rows))
        self._known: dict[int, I32] = {}
        draft.on_change.append(self._forget)
        self.weigh(draft)

    def weigh(self, draft: Draft) -> None:
        """Work out how scarce each supply is, anew."""
        tables, columns = draft.tables, draft.columns
        scarcity(
            self.rows, self.demand, self.share, tables.need, tables.ask, tables.static,
            draft.free, draft.device_free, columns.island, columns.pool, self.weight,
        )  # fmt: skip
        self._known.clear()

    def of(self, row: int, draft: Draft) -> I64:
        """(N,) losses of one pod of a class, the order in which nodes are filled."""
        if row not in self._known:
            tables, columns = draft.tables, draft.columns
            losses = np.empty(columns.size, np.int32)
            loss_row(
                row, self.policy.quantum, self.rows, self.weight, self.share, tables.need, tables.ask, tables.static,
                draft.free, draft.device_free, columns.island, columns.pool, losses,
            )  # fmt: skip
            self._known[row] = losses
        return self._known[row].astype(np.int64)

    def _forget(self, nodes: I64) -> None:
        self._known.clear()
