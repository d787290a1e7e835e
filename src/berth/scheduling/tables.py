"""Pod class × node tables: how many pods of each class every node still takes, and what keeps others off.

A cache and nothing else: with or without it a cycle gives the same plan. Rows are added as classes are met; a
change to one node recomputes that node's column.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Allocation
from berth.model.queue import Queue
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, PodClass
from berth.scheduling import kernels
from berth.scheduling.columns import Columns, by_node, columns_of, numbers, refill
from berth.scheduling.crowd import Crowd
from berth.scheduling.estimates import Estimator
from berth.scheduling.feasibility import blocks_of, is_held, preference_of
from berth.scheduling.neighbours import Residents
from berth.scheduling.quota import Ledger
from berth.scheduling.roster import Roll, Roster
from berth.scheduling.waiting import Payer, PodSets, Register

I64 = NDArray[np.int64]

I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
I16 = NDArray[np.int16]
F64 = NDArray[np.float64]

class EmptyLedger(NamedTuple):
    """The queues of the last cycle, and of what they were made: the queues of the snapshot, GPU classes, payers."""

    of: tuple[tuple[Queue, ...], tuple[str, ...], tuple[Payer, ...]]
    ledger: Ledger


PRICES_KEPT = 64
MOST_ROWS = 1024
MOST_CODES = 4_096
FEW = 16  # nodes whose pods are looked for one by one


class Tables:
    """Tables for one cluster, kept from cycle to cycle.

    need    (M, R) int64: what one pod takes of each resource; shares of devices are not in it
    ask     (M, 4) int32: device resource (-1 none), devices, milli of each, 1 where they share an island
    static  (M, N) uint8: blocks that do not depend on what runs
    preference (M, N) int16: weights of the preferred node terms that hold
    copies  (M, N) int32: pods that still fit; block (M, N) uint8: why none does
    """

    def __init__(self) -> None:
        self.columns: Columns | None = None
        self.rows: dict[PodClass, int] = {}
        self._by_identity: dict[int, int] = {}
        self.classes: list[PodClass] = []
        self.crowd = Crowd()
        self.residents: Residents
        self._roll = Roll()
        self._held_on: dict[int, list[Allocation]] = {}
        self._moved = 0
        self.alike: I32 = np.zeros(0, np.int32)
        self._replaced: set[int] = set()  # nodes that are not what they were and have not been counted again
        self.layouts: dict[Hashable, Any] = {}  # what prices look at, as long as the nodes stay what they are
        self.warm_prices: dict[Hashable, tuple[F64, F64]] = {}
        self.estimator = Estimator()  # of how long workloads run
        self.register = Register()  # of who waits
        self.empty_ledger: EmptyLedger | None = None

    def sync(self, snapshot: Snapshot, pod_classes: Sequence[PodClass]) -> Columns:
        """Bring the tables up to the snapshot, with a row for each of `pod_classes`."""
        if self.crowd.is_settled or self.crowd.allocations is not snapshot.allocations:
            self.meet(snapshot)
        unknown = [c for c in pod_classes if id(c) not in self._by_identity]
        named = {name for c in unknown for name, _ in c.requests}
        columns = self.columns
        fresh = (
            columns is None
            or columns.topology != snapshot.topology
            or columns.gpu_classes != snapshot.gpu_classes
            or not named <= set(columns.resources)
            or not self._take_nodes(columns, snapshot)
        )
        if columns is None or fresh:
            columns = self.columns = columns_of(snapshot, pod_classes)
            self._reset()
            self.crowd.settle(columns.index, True)
            self.residents = Residents(columns, self.crowd)
            self._roll.forget()
            unknown = list(pod_classes)
        else:
            self._follow(columns)
        self._add([c for c in dict.fromkeys(unknown) if c not in self.rows])
        for pod_class in unknown:
            self.row(pod_class)
        if (not len(self.alike) and columns.size) or self._moved > columns.size // 2:
            self._group()
        return columns

    def knows(self, pod_classes: Iterable[PodClass]) -> bool:
        """Each of them has a row."""
        return all(id(c) in self._by_identity for c in pod_classes)

    def _take_nodes(self, columns: Columns, snapshot: Snapshot) -> bool:
        """Take in nodes that have changed, if they are few and still what they were in size and place."""
        if columns.nodes is snapshot.nodes or columns.nodes == snapshot.nodes:
            return True
        changed = columns.changed_nodes(snapshot.nodes)
        if changed is None:
            return False
        columns.replace_nodes(snapshot.nodes, changed)
        self._replaced.update(changed.tolist())
        return True

    def meet(self, snapshot: Snapshot) -> Crowd:
        """Take in the pods of a snapshot that the tables are to be brought up to."""
        codes = self.crowd.codes() + self._roll.codes()
        if len(self.rows) > MOST_ROWS or codes > MOST_CODES + len(snapshot.allocations):
            # What nobody has any more is forgotten by beginning anew.
            self.columns, self.crowd, self._roll = None, Crowd(), Roll()
        self.crowd.follow(snapshot.allocations)
        self._roll.follow(self.crowd)
        self._held_on.clear()
        return self.crowd

    def apart(self, nodes: I64) -> None:
        """Nodes have changed: each is like no other until the groups are made anew."""
        if len(self.alike):
            self.alike[nodes] = len(self.alike) + nodes
            self._moved += len(nodes)

    def _tell_apart(self, static: U8, preference: I16) -> None:
        """Nodes that were alike may differ for new classes."""
        if not len(self.alike):
            return
        for blocks, wishes in zip(static, preference, strict=True):
            if (blocks != blocks[0]).any() or (wishes != wishes[0]).any():
                # The leaders of groups are distinct nodes, and so are the groups.
                key = (self.alike.astype(np.int64) << 24) + (blocks.astype(np.int64) << 16) + wishes.astype(np.uint16)
                _, leader, group = np.unique(key, return_index=True, return_inverse=True)
                self.alike = leader[group].astype(np.int32)

    def _group(self) -> None:
        """alike (N,): the same number for nodes that are equal in everything that a decision looks at."""
        columns = self.columns
        assert columns is not None
        of_nodes = (columns.pool[:, None], columns.gpu_class[:, None], columns.suspect[:, None])
        parts = (columns.free, columns.device_free, columns.island, *of_nodes)
        by_class = (self.static.T, self.preference.T)
        bytes_of = np.concatenate([p.astype(np.int64) for p in (*parts, *by_class)], axis=1)
        groups: dict[bytes, int] = {}
        self.alike = np.array([groups.setdefault(row.tobytes(), n) for n, row in enumerate(bytes_of)], np.int32)
        self._moved = 0

    def row(self, pod_class: PodClass) -> int:
        """The row of a class. Looked up by identity first: equal classes are nearly always one object."""
        row = self._by_identity.get(id(pod_class))
        if row is None:
            row = self._by_identity[id(pod_class)] = self.rows[pod_class]
            self.classes.append(pod_class)  # keeps the object alive, and with it its identity
        return row

    def remember_prices(self, key: Hashable, prices: tuple[F64, F64]) -> None:
        """Keep prices under all that they depend on; the oldest go first."""
        self.warm_prices[key] = prices
        while len(self.warm_prices) > PRICES_KEPT:
            del self.warm_prices[next(iter(self.warm_prices))]

    def held_on(self, node: int) -> Sequence[Allocation]:
        """The allocations of a node, as the snapshot had them."""
        assert self.columns is not None
        if node not in self._held_on:
            if len(self._held_on) < FEW:
                self._held_on |= self.crowd.on(np.array([node]), self.columns.size)
            else:
                self._held_on = self.crowd.on(np.arange(self.columns.size), self.columns.size)
        return self._held_on[node]

    def roster(self) -> Roster:
        """The pods that run, with what each would lose. Worked out when it is asked for."""
        assert self.columns is not None
        return self._roll.roster(self.crowd, self.columns)

    def copies_when_empty(self, row: int) -> I32:
        """(N,) pods of a class that fit where only DaemonSets run, held-back nodes included."""
        known = self._when_empty.get(row)
        if known is None:
            columns = self.columns
            assert columns is not None
            static = np.where(is_held(self.static[row]), 0, self.static[row]).astype(np.uint8)
            there = columns.mended_devices(columns.device_free)
            whole = np.where(there >= 0, WHOLE, there).astype(np.int32)
            copies, block = np.zeros((1, columns.size), np.int32), np.zeros((1, columns.size), np.uint8)
            kernels.refresh_nodes(
                np.arange(columns.size), np.zeros(1, np.int64), self.need[row : row + 1], self.ask[row : row + 1],
                static[None, :], columns.empty, whole, columns.island, columns.pool, copies, block,
            )  # fmt: skip
            known = self._when_empty[row] = copies[0]
        return known

    def refresh(self, nodes: I64) -> None:
        """Count again what fits on these nodes."""
        columns = self.columns
        assert columns is not None
        kernels.refresh_nodes(
            nodes, np.arange(len(self.rows)), self.need, self.ask, self.static,
            columns.free, columns.device_free, columns.island, columns.pool, self.copies, self.block,
        )  # fmt: skip

    def _reset(self) -> None:
        assert self.columns is not None
        size, width = self.columns.size, len(self.columns.resources)
        self.rows, self._by_identity, self.classes = {}, {}, []
        self._when_empty: dict[int, I32] = {}
        self.register.forget_rows()
        self.layouts.clear()
        self.fits_empty: dict[object, bool] = {}  # gangs by shape: would it fit, or might it, if all were idle
        self.alike = np.zeros(0, np.int32)
        self.need: I64 = np.zeros((0, width), np.int64)
        self.ask: I32 = np.zeros((0, 4), np.int32)
        self.static: U8 = np.zeros((0, size), np.uint8)
        self.preference: I16 = np.zeros((0, size), np.int16)
        self.copies: I32 = np.zeros((0, size), np.int32)
        self.block: U8 = np.zeros((0, size), np.uint8)

    def _follow(self, columns: Columns) -> None:
        """Refill the nodes whose allocations changed."""
        nodes = self.crowd.settle(columns.index, False)
        if self.crowd.is_restarted:
            self.residents = Residents(columns, self.crowd)
        else:
            self.residents.follow()
        lost = np.flatnonzero(self.crowd.node < 0).tolist()
        if lost or columns.lost:
            _, columns.lost = by_node((self.crowd.allocations[p] for p in lost), columns.index)
        if self._replaced:
            nodes = np.union1d(nodes, list(self._replaced)).astype(np.int64)
        if not len(nodes):
            return
        self._roll.recount(nodes)
        held_on = self.crowd.on(nodes, columns.size)
        refused_again = False
        for n in nodes.tolist():
            before = columns.empty[n].copy()
            refill(columns, n, held_on[n])
            refused_again |= before.tobytes() != columns.empty[n].tobytes() and n not in self._replaced
        if refused_again:
            self._refuse_again(columns)
        if self._replaced:
            self._refuse_on(columns, np.array(sorted(self._replaced), np.int64))
        self._replaced.clear()
        self.refresh(nodes)
        self.apart(nodes)

    def _refuse_again(self, columns: Columns) -> None:
        """A DaemonSet came or went: what is too small even when empty may differ."""
        self._when_empty.clear()
        self.layouts.clear()
        self.fits_empty.clear()
        for pod_class, row in self.rows.items():
            self.static[row] = blocks_of(pod_class, columns)

    def _refuse_on(self, columns: Columns, nodes: I64) -> None:
        """Some nodes are not what they were: what keeps pods off them by itself may differ."""
        self._when_empty.clear()
        self.layouts.clear()
        self.fits_empty.clear()
        part = columns.part(nodes)
        for pod_class, row in self.rows.items():
            self.static[row, nodes] = blocks_of(pod_class, part)
            if pod_class.preferred_nodes:
                self.preference[row, nodes] = preference_of(pod_class, part)

    def _add(self, pod_classes: Sequence[PodClass]) -> None:
        if not pod_classes:
            return
        columns = self.columns
        assert columns is not None
        first, size = len(self.rows), columns.size
        need = np.zeros((len(pod_classes), len(columns.resources)), np.int64)
        ask = np.zeros((len(pod_classes), 4), np.int32)
        static = np.empty((len(pod_classes), size), np.uint8)
        preference = np.zeros((len(pod_classes), size), np.int16)
        for i, pod_class in enumerate(pod_classes):
            self.rows[pod_class] = first + i
            need[i], ask[i] = numbers(pod_class, columns)
            static[i] = blocks_of(pod_class, columns)
            if pod_class.preferred_nodes:
                preference[i] = preference_of(pod_class, columns)
        self.need = np.concatenate([self.need, need])
        self.ask = np.concatenate([self.ask, ask])
        self.static = np.concatenate([self.static, static])
        self.preference = np.concatenate([self.preference, preference])
        self._tell_apart(static, preference)
        grown = (len(pod_classes), size)
        self.copies = np.concatenate([self.copies, np.zeros(grown, np.int32)])
        self.block = np.concatenate([self.block, np.zeros(grown, np.uint8)])
        kernels.refresh_nodes(
            np.arange(size), np.arange(first, len(self.rows)), self.need, self.ask, self.static,
            columns.free, columns.device_free, columns.island, columns.pool, self.copies, self.block,
        )  # fmt: skip


def classes_of(kinds: Iterable[PodSets], expected: Iterable[PodClass] = ()) -> list[PodClass]:
    """Every pod class that waits or is expected, once each, in a fixed order."""
    seen: dict[int, PodClass] = {}
    for sets in kinds:
        for pod_set in sets:
            seen.setdefault(id(pod_set.pod_class), pod_set.pod_class)
    for pod_class in expected:
        seen.setdefault(id(pod_class), pod_class)
    return list(seen.values())
