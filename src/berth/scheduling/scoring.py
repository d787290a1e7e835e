"""What a placement costs the others: the loss of supply, weighted by how scarce each supply is.

With S_n(m) the GPU milli of node n that class m could use, U_m = sum over n of S_n(m), and D_m the class's share
of demand, a pod on node n costs  sum over m of D_m / U_m · (S_n(m) before − after):  the gradient of
sum over m of D_m · log U_m. Derivation and figures: docs/internals/placement.md.

Everything is computed in integers, so that sums do not depend on their order and a plan not on the machine:
supply is kept twice (half usable milli, half whole copies, without the half), weights have 20 binary digits.

Shapes: N nodes, M class rows, J rows with demand, G devices, 1001 levels of a device (milli left).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.draft import Draft
from berth.scheduling.kernels import WHOLE, choose_devices, compiled, copies_on, inlined, take
from berth.scheduling.policy import Policy

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

NO_ROOM = 2**30
LEVELS = WHOLE + 1
WEIGHT_ONE = 2**20
# Twice the milli below which a supply counts as this much, so that a class without any does not rule all.
LEAST_SUPPLY = 40
# What stands for the pods that a resource allows which a class does not need.
ANY_NUMBER = 2.0**62


@compiled
def measure(nodes, rows, columns, needs, spare, many, unit, mix, usable_at, units_at, ask,  # type: ignore[no-untyped-def]
            static, free, device_free, pool, usable, units, supply):  # fmt: skip
    """Work out usable (N, J), units (N, J) and supply (N, J) of some nodes from what is free on them."""
    size = rows.shape[0]
    cap = np.empty(size)
    for i in range(nodes.shape[0]):
        n = nodes[i]
        for j in range(size):
            cap[j] = 2.0**62
        for c in range(columns.shape[0]):
            left = float(free[n, columns[c]])
            for j in range(size):
                most = left / needs[c, j] + spare[c, j]
                if most < cap[j]:
                    cap[j] = most
        for j in range(size):
            m = rows[j]
            usable[n, j] = 0
            units[n, j] = 0
            supply[n, j] = 0
            if static[m, n] != 0 or ask[m, 1] == 0:
                continue
            if pool[n] == ask[m, 0]:
                for g in range(device_free.shape[1]):
                    if device_free[n, g] > 0:
                        usable[n, j] += usable_at[device_free[n, g], j]
                        units[n, j] += units_at[device_free[n, g], j]
            else:
                usable[n, j] = free[n, ask[m, 0]] * WHOLE
                units[n, j] = free[n, ask[m, 0]]
            copies = min(np.floor(cap[j]), np.floor(units[n, j] / many[j]))
            if copies >= 1.0:
                supply[n, j] = mix[0, j] * usable[n, j] + mix[1, j] * np.int64(copies) * unit[j]


@inlined
def worth_after(n, m, level, cap, columns, needs, spare, many, unit, mix, weight, usable_at, units_at,  # type: ignore[no-untyped-def]
                need, ask, free, pool, usable, units, supply):  # fmt: skip
    """Weighted supply of node n once a pod of class m is on it, a share of a device taken at `level`."""
    size = unit.shape[0]
    for j in range(size):
        cap[j] = 2.0**62
    for c in range(columns.shape[0]):
        left = float(free[n, columns[c]] - need[m, columns[c]])
        for j in range(size):
            most = left / needs[c, j] + spare[c, j]
            cap[j] = most if most < cap[j] else cap[j]
    times, after = 0, level
    if ask[m, 1] > 0 and pool[n] == ask[m, 0]:
        times, after = ask[m, 1], level - ask[m, 2]
    counted = 0
    if times == 0 and ask[m, 1] > 0:
        counted = ask[m, 1]
    total = np.int64(0)
    for j in range(size):
        left = usable[n, j] - times * (usable_at[level, j] - usable_at[after, j]) - counted * WHOLE
        pieces = units[n, j] - times * (units_at[level, j] - units_at[after, j]) - counted
        copies = np.floor(pieces / many[j])
        whole = np.floor(cap[j])
        copies = copies if copies < whole else whole
        worth = mix[0, j] * left + mix[1, j] * np.int64(copies) * unit[j]
        if copies >= 1.0 and supply[n, j] > 0:
            total += weight[j] * worth
    return total


@compiled
def loss_on(n, m, quantum, cap, columns, needs, spare, many, unit, mix, weight, usable_at, units_at, need, ask, free,  # type: ignore[no-untyped-def]
            device_free, island, pool, usable, units, supply, value):  # fmt: skip
    """Quantised loss of a pod of class m on node n where it fits, and its devices.

    A share is tried at each level at which a device fits it; equal losses go to the lowest device.
    """
    if not (ask[m, 1] > 0 and pool[n] == ask[m, 0]):
        after = worth_after(n, m, 0, cap, columns, needs, spare, many, unit, mix, weight, usable_at, units_at,
                            need, ask, free, pool, usable, units, supply)  # fmt: skip
        return (value[n] - after) // quantum, np.int64(0)
    left = device_free[n]
    if ask[m, 1] == 1 and ask[m, 2] < WHOLE:
        least, chosen = np.int64(NO_ROOM), np.int64(0)
        for g in range(left.shape[0]):
            if left[g] < ask[m, 2]:
                continue
            seen = False
            for h in range(g):
                if left[h] == left[g]:
                    seen = True
            if seen:
                continue
            after = worth_after(n, m, left[g], cap, columns, needs, spare, many, unit, mix, weight, usable_at, units_at,
                                need, ask, free, pool, usable, units, supply)  # fmt: skip
            loss = (value[n] - after) // quantum
            if loss < least:
                least, chosen = loss, np.int64(1) << g
        return least, chosen
    mask = choose_devices(left, island[n], ask[m, 1], ask[m, 2], ask[m, 3])
    level = WHOLE
    for g in range(left.shape[0]):
        if (mask >> g) & 1:
            level = left[g]
    after = worth_after(n, m, level, cap, columns, needs, spare, many, unit, mix, weight, usable_at, units_at,
                        need, ask, free, pool, usable, units, supply)  # fmt: skip
    return (value[n] - after) // quantum, mask


@compiled
def weigh(demand, supply_sum, idle, weight):  # type: ignore[no-untyped-def]
    """Weights D / U in units of the cluster's idle milli, as integers, into weight (J,)."""
    total = 0.0
    for j in range(demand.shape[0]):
        total += demand[j]
    for j in range(demand.shape[0]):
        weight[j] = 0
        if demand[j] > 0.0:
            weight[j] = np.int64(demand[j] / total * 2.0 * idle / max(supply_sum[j], LEAST_SUPPLY) * WEIGHT_ONE)


@compiled
def loss_row(m, nodes, quantum, columns, needs, spare, many, unit, mix, weight, usable_at, units_at, need, ask, free,  # type: ignore[no-untyped-def]
             device_free, island, pool, usable, units, supply, value, losses):  # fmt: skip
    """Losses of a pod of class m on some nodes on which it fits, into `losses` (N,)."""
    cap = np.empty(unit.shape[0])
    for i in range(nodes.shape[0]):
        n = nodes[i]
        losses[n], _ = loss_on(n, m, quantum, cap, columns, needs, spare, many, unit, mix, weight, usable_at, units_at,
                               need, ask, free, device_free, island, pool, usable, units, supply, value)  # fmt: skip


@compiled
def revalue(weight, supply, value):  # type: ignore[no-untyped-def]
    """value (N,) = weighted supply of every node."""
    for n in range(supply.shape[0]):
        total = np.int64(0)
        for j in range(weight.shape[0]):
            total += weight[j] * supply[n, j]
        value[n] = total


@compiled
def place_run(run, learn, refresh, quantum, alike, rows, demand, columns, needs, spare, many, unit, mix, weight,  # type: ignore[no-untyped-def]
              usable_at, units_at, usable, units, supply, value, supply_sum,
              need, ask, static, free, device_free, island, pool,
              queue, has_limits, parent, limit, used, gpu_class, milli, node, devices):  # fmt: skip
    """Place a run of single pods one after the other, each on the node where it costs the others least.

    run     (W,) class rows in order
    learn   (M,) position in `rows` whose demand grows with each arrival of the class, -1 for none
    alike   (N,) number of a group of nodes that are equal in everything: they share their losses until touched
    queue   (W,) who pays; parent (Q,), limit and used (Q, C + 1) milli as in quota.Ledger
    Ties go to the first node. Writes node (W,): its index, -1 no node, -2 over a limit; devices (W,) bit masks.
    What is used up in a run stays used up, so a node that has no room for a class is not asked again.
    """
    size, classes, groups = free.shape[0], need.shape[0], 0
    for n in range(size):
        groups = max(groups, alike[n] + 1)
    touched = np.zeros(size, np.int32)  # how often a node was changed in this run
    looked = np.full((classes, size), -1, np.int32)  # `touched` when the fit was last checked
    known = np.full((classes, size), -1, np.int64)  # epoch and `touched` of the loss
    losses = np.empty((classes, size), np.int32)
    masks = np.zeros((classes, size), np.int64)
    group_known = np.full((classes, groups), -1, np.int64)
    group_loss = np.empty((classes, groups), np.int32)
    group_mask = np.zeros((classes, groups), np.int64)
    candidates = np.empty((classes, size), np.int32)
    count = np.full(classes, -1, np.int32)
    cap = np.empty(unit.shape[0])
    here = np.empty(1, np.int64)
    open_ = np.ones(limit.shape[1], np.bool_)
    epoch = np.int64(0)
    idle = np.int64(0)
    for n in range(size):
        for g in range(device_free.shape[1]):
            if device_free[n, g] > 0:
                idle += device_free[n, g]
    for w in range(run.shape[0]):
        m = run[w]
        if learn[m] >= 0:
            demand[learn[m]] += 1.0
        if w % refresh == 0:
            weigh(demand, supply_sum, idle, weight)
            revalue(weight, supply, value)
            epoch += 1
        node[w] = -1
        if count[m] < 0:
            count[m] = 0
            for n in range(size):
                if static[m, n] == 0:
                    candidates[m, count[m]] = n
                    count[m] += 1
        if count[m] == 0:
            continue
        if has_limits and milli[m] > 0 and not _open_classes(queue[w], milli[m], parent, limit, used, open_):
            node[w] = -2
            continue
        best, least, kept, chosen = -1, NO_ROOM, 0, np.int64(0)
        for i in range(count[m]):
            n = candidates[m, i]
            if looked[m, n] != touched[n]:
                looked[m, n] = touched[n]
                copies, _ = copies_on(need[m], ask[m], free[n], device_free[n], island[n], pool[n])
                if copies == 0:
                    continue
            candidates[m, kept] = n
            kept += 1
            if touched[n] == 0:
                k = alike[n]
                if group_known[m, k] != epoch:
                    group_known[m, k] = epoch
                    group_loss[m, k], group_mask[m, k] = loss_on(
                        n, m, quantum, cap, columns, needs, spare, many, unit, mix, weight, usable_at, units_at,
                        need, ask, free, device_free, island, pool, usable, units, supply, value)  # fmt: skip
                loss, mask = group_loss[m, k], group_mask[m, k]
            else:
                stamp = epoch << 32 | touched[n]
                if known[m, n] != stamp:
                    known[m, n] = stamp
                    losses[m, n], masks[m, n] = loss_on(
                        n, m, quantum, cap, columns, needs, spare, many, unit, mix, weight, usable_at, units_at,
                        need, ask, free, device_free, island, pool, usable, units, supply, value)  # fmt: skip
                loss, mask = losses[m, n], masks[m, n]
            if loss < least and (not has_limits or milli[m] == 0 or open_[gpu_class[n]]):
                best, least, chosen = n, loss, mask
        count[m] = kept
        if best < 0:
            continue
        node[w], devices[w] = best, chosen
        take(1, chosen, need[m], ask[m], free[best], device_free[best], pool[best])
        if pool[best] == ask[m, 0]:
            idle -= ask[m, 1] * ask[m, 2]
        touched[best] += 1
        for j in range(rows.shape[0]):
            supply_sum[j] -= supply[best, j]
        here[0] = best
        measure(here, rows, columns, needs, spare, many, unit, mix, usable_at, units_at, ask, static, free, device_free,
                pool, usable, units, supply)  # fmt: skip
        total = np.int64(0)
        for j in range(rows.shape[0]):
            supply_sum[j] += supply[best, j]
            total += weight[j] * supply[best, j]
        value[best] = total
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


@dataclass
class Losses:
    """Supply of every node for every class with demand, kept in step with the draft; losses by class row.

    rows (J,) class rows with demand; demand (J,) their shares; weight (J,) their scarcity
    columns (C,) resources that some of them need beside devices; needs (C, J) how much, spare (C, J) where nothing
    many, unit (J,) devices of a pod and its milli; mix (2, J) parts of usable milli and of whole copies, 2 in all
    usable_at, units_at (1001, J) what a device at a level is worth: milli that the class can use, pods or devices
    usable, units, supply (N, J), value (N,), supply_sum (J,)
    """

    policy: Policy
    rows: I64
    demand: F64
    columns: I64
    needs: F64
    spare: F64
    many: F64
    unit: I64
    mix: I64
    usable_at: I64
    units_at: I64
    usable: I64
    units: I64
    supply: I64
    value: I64
    supply_sum: I64
    weight: I64

    @classmethod
    def of(cls, rows: I64, demand: F64, policy: Policy, draft: Draft) -> Losses:
        tables, cluster = draft.tables, draft.columns
        need, ask = tables.need[rows], tables.ask[rows].astype(np.int64)
        pools = set(cluster.pool.tolist())
        counted = {int(a) for a in ask[:, 0] if a >= 0 and (cluster.empty[cluster.pool != a, a] > 0).any()}
        columns = [
            c
            for c in range(need.shape[1])
            if need[:, c].any() and (c not in pools or c in counted) and cluster.resources[c] != "pods"
        ]
        devices, milli = np.maximum(ask[:, 1], 1), ask[:, 2]
        level = np.arange(LEVELS)[:, None]
        fits = level >= milli[None, :]
        share = np.where(ask[:, 1] > 1, policy.whole_copies_many, policy.whole_copies)
        parts = np.rint(2 * share).astype(np.int64)
        shape = (cluster.size, len(rows))
        losses = cls(
            policy=policy,
            rows=rows,
            demand=demand,
            columns=np.array(columns, np.int64),
            needs=np.where(need[:, columns] > 0, need[:, columns], 1).T.astype(np.float64).copy(),
            spare=np.where(need[:, columns] > 0, 0.0, ANY_NUMBER).T.copy(),
            many=devices.astype(np.float64),
            unit=devices * milli,
            mix=np.stack([2 - parts, parts]),
            usable_at=np.where(fits, level, 0).astype(np.int64),
            units_at=np.where(fits, level // milli[None, :], 0).astype(np.int64),
            usable=np.zeros(shape, np.int64),
            units=np.zeros(shape, np.int64),
            supply=np.zeros(shape, np.int64),
            value=np.zeros(cluster.size, np.int64),
            supply_sum=np.zeros(len(rows), np.int64),
            weight=np.zeros(len(rows), np.int64),
        )
        losses.follow(np.arange(cluster.size), draft)
        losses.weigh(draft)
        return losses

    @property
    def quantum(self) -> int:
        """The policy's quantum in units of `value`."""
        return self.policy.quantum * 2 * WEIGHT_ONE

    def follow(self, nodes: I64, draft: Draft) -> None:
        """Nodes have changed: work out their supply again."""
        tables, cluster = draft.tables, draft.columns
        self.supply_sum -= self.supply[nodes].sum(axis=0)
        measure(
            nodes, self.rows, self.columns, self.needs, self.spare, self.many, self.unit, self.mix,
            self.usable_at, self.units_at,
            tables.ask, tables.static, draft.free, draft.device_free, cluster.pool,
            self.usable, self.units, self.supply,
        )  # fmt: skip
        self.supply_sum += self.supply[nodes].sum(axis=0)
        self.value[nodes] = self.supply[nodes] @ self.weight

    def weigh(self, draft: Draft) -> None:
        """Work out how scarce each supply is, anew."""
        idle = int(draft.device_free[draft.device_free > 0].sum())
        weigh(self.demand, self.supply_sum, idle, self.weight)
        revalue(self.weight, self.supply, self.value)

    def of_row(self, row: int, draft: Draft) -> I64:
        """(N,) losses of one pod of a class, NO_ROOM where it does not fit: the order in which nodes are filled."""
        tables, cluster = draft.tables, draft.columns
        losses = np.full(cluster.size, NO_ROOM, np.int64)
        loss_row(
            row, np.flatnonzero(draft.copies[row] > 0), self.quantum, self.columns, self.needs, self.spare, self.many,
            self.unit, self.mix, self.weight, self.usable_at, self.units_at, tables.need, tables.ask,
            draft.free, draft.device_free, cluster.island, cluster.pool,
            self.usable, self.units, self.supply, self.value, losses,
        )  # fmt: skip
        return losses
