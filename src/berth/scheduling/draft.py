"""A plan in the making: its own copy of what is free, tried, committed or dropped whole."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import dataclass, field
from dataclasses import replace as but
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import WHOLE
from berth.scheduling import kernels
from berth.scheduling.columns import Columns
from berth.scheduling.feasibility import is_held
from berth.scheduling.neighbours import Neighbours, Who
from berth.scheduling.tables import Tables

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Put:
    """`count` pods of one class put on one node; `devices` holds a bit mask for each of them."""

    row: int
    node: int
    devices: tuple[int, ...]
    who: Who | None = None  # told where other pods are looked at

    @property
    def count(self) -> int:
        return len(self.devices)


@dataclass
class Draft:
    """Amounts as they would be once the plan is carried out.

    free (N, R), device_free (N, G), copies (M, N), block (M, N) as in Columns and Tables. `puts` are the pods
    of the transaction that is open, `lifts` the running pods that it takes off their nodes.
    """

    columns: Columns
    tables: Tables
    free: I64
    device_free: I32
    copies: I32
    block: NDArray[np.uint8]
    alike: I32
    neighbours: Neighbours | None = None
    puts: list[Put] = field(default_factory=list)
    lifts: list[Put] = field(default_factory=list)
    told: dict[Hashable, Any] = field(default_factory=dict)  # what was asked of it, as long as it stays as it is
    _idle: dict[tuple[int, bool], I64] = field(default_factory=dict)
    _before: dict[int, tuple[I64, I32, I32, NDArray[np.uint8]]] = field(default_factory=dict)
    on_change: list[Callable[[I64], None]] = field(default_factory=list)

    @classmethod
    def of(cls, tables: Tables, neighbours: Neighbours | None = None) -> Draft:
        columns = tables.columns
        assert columns is not None, "the tables are brought up to a snapshot first"
        return cls(
            columns, tables,
            columns.free.copy(), columns.device_free.copy(), tables.copies.copy(), tables.block.copy(),
            tables.alike.copy(), neighbours,
        )  # fmt: skip

    def copy(self) -> Draft:
        """The same with nothing open, to be changed on its own. Nobody is told of what changes on it."""
        neighbours = self.neighbours.copy() if self.neighbours is not None else None
        return Draft(
            self.columns, self.tables, self.free.copy(), self.device_free.copy(), self.copies.copy(),
            self.block.copy(), self.alike.copy(), neighbours,
        )  # fmt: skip

    def imagined(self, empty: bool) -> Draft:
        """The same cluster with held-back nodes in service; and, if `empty`, with nothing but DaemonSets on it."""
        columns = but(self.columns, suspect=np.zeros(self.columns.size, bool))
        tables = copy(self.tables)
        tables.layouts = {}
        held = is_held(tables.static)
        tables.static = np.where(held, 0, tables.static).astype(np.uint8)
        mended = columns.mended_devices(self.device_free)
        whole = np.where(mended >= 0, WHOLE, mended).astype(np.int32)
        other = Draft(
            columns, tables,
            (columns.empty if empty else self.free).copy(), whole if empty else mended,
            np.zeros_like(self.copies), np.zeros_like(self.block), self.alike,
            None if empty else self.neighbours,
        )  # fmt: skip
        pooled = columns.pool >= 0
        other.free[pooled, columns.pool[pooled]] = (other.device_free[pooled] == WHOLE).sum(axis=1)
        other.recount(np.arange(columns.size))
        return other

    def count_on(self, row: int, nodes: I64) -> I32:
        """(K,) pods of a class that would fit on some nodes, were they in service and their devices fit."""
        tables, columns = self.tables, self.columns
        left, free, pool = self.device_free[nodes], self.free[nodes], columns.pool[nodes]
        left = np.where(columns.there[nodes] & (left < 0), WHOLE, left).astype(np.int32)
        pooled = np.flatnonzero(pool >= 0)
        free[pooled, pool[pooled]] = (left[pooled] == WHOLE).sum(axis=1)
        copies, block = np.zeros((1, len(nodes)), np.int32), np.zeros((1, len(nodes)), np.uint8)
        kernels.refresh_nodes(
            np.arange(len(nodes)), np.zeros(1, np.int64), tables.need[row : row + 1], tables.ask[row : row + 1],
            np.zeros((1, len(nodes)), np.uint8), free, left, columns.island[nodes], pool, copies, block,
        )  # fmt: skip
        found: I32 = copies[0]
        return found

    def idle(self, resource: int, whole: bool) -> I64:
        """(N,) free milli of a device resource (-1: none); with `whole` of devices that nobody shares only."""
        known = self._idle.get((resource, whole))
        if known is None:
            columns = self.columns
            if resource < 0:
                known = np.zeros(columns.size, np.int64)
            else:
                left = self.device_free
                devices = (left == WHOLE).sum(axis=1) * WHOLE if whole else np.where(left > 0, left, 0).sum(axis=1)
                counted = np.maximum(self.free[:, resource], 0) * WHOLE
                known = np.where(columns.pool == resource, devices, counted)
            self._idle[resource, whole] = known
        return known

    def put(self, row: int, node: int, count: int = 1, who: Who | None = None) -> None:
        """Put pods on a node that has room for them, choosing their devices."""
        self._remember(node)
        masks = np.zeros(count, np.int64)
        kernels.put_copies(
            row, node, masks, self.tables.need, self.tables.ask,
            self.free, self.device_free, self.columns.island, self.columns.pool,
        )  # fmt: skip
        self._note(Put(row, node, tuple(masks.tolist()), who))

    def put_on(self, row: int, node: int, devices: int, who: Who | None = None) -> None:
        """Put one pod on a node and on these devices (a bit mask)."""
        self._remember(node)
        self._take(1, row, node, devices)
        self._note(Put(row, node, (devices,), who))

    def lift(self, row: int, node: int, devices: int, who: Who | None = None) -> None:
        """Take one pod that stands there off its node; the transaction, when dropped, puts it back."""
        self._remember(node)
        self._take(-1, row, node, devices)
        lifted = Put(row, node, (devices,), who)
        self.lifts.append(lifted)
        self._forget([lifted])

    def vacate(self, node: int, free: Sequence[int] | I64, left: Sequence[int] | I32, gone: Sequence[Who]) -> None:
        """Pods leave a node, on which so much is left then; the transaction, when dropped, brings them back."""
        self._remember(node)
        self.free[node], self.device_free[node] = free, left
        lifted = [Put(-1, node, (0,), who) for who in gone]
        self.lifts += lifted
        self._forget(lifted)

    def bring_back(self, node: int, free: I64, left: I32, back: Sequence[Who]) -> None:
        """Pods that left a node in this transaction stay after all; so much is left then."""
        self.free[node], self.device_free[node] = free, left
        for who in back:
            one = next(i for i, lifted in enumerate(self.lifts) if lifted.node == node and lifted.who == who)
            self._return([self.lifts.pop(one)])

    def _remember(self, node: int) -> None:
        if node not in self._before:
            self._before[node] = (
                self.free[node].copy(), self.device_free[node].copy(),
                self.copies[:, node].copy(), self.block[:, node].copy(),
            )  # fmt: skip

    def _note(self, put: Put) -> None:
        self.puts.append(put)
        if self.neighbours is not None and put.who is not None:
            self.neighbours.add(put.node, put.who, put.count)

    def _forget(self, puts: list[Put]) -> None:
        if self.neighbours is not None:
            for put in puts:
                if put.who is not None:
                    self.neighbours.add(put.node, put.who, -put.count)

    def _return(self, lifts: list[Put]) -> None:
        if self.neighbours is not None:
            for lifted in lifts:
                if lifted.who is not None:
                    self.neighbours.add(lifted.node, lifted.who, lifted.count)

    def _take(self, sign: int, row: int, node: int, devices: int) -> None:
        kernels.take(
            sign, devices, self.tables.need[row], self.tables.ask[row],
            self.free[node], self.device_free[node], self.columns.pool[node],
        )  # fmt: skip

    def recount(self, nodes: I64) -> None:
        """Count again what fits on these nodes."""
        self._idle.clear()
        self.told.clear()
        self.alike[nodes] = self.columns.size + nodes  # like no other from now on
        tables, columns = self.tables, self.columns
        kernels.refresh_nodes(
            nodes, np.arange(len(tables.rows)), tables.need, tables.ask, tables.static,
            self.free, self.device_free, columns.island, columns.pool, self.copies, self.block,
        )  # fmt: skip
        for changed in self.on_change:
            changed(nodes)

    def mark(self) -> int:
        """A point to go back to within the transaction."""
        return len(self.puts)

    def undo_to(self, mark: int) -> None:
        """Take away what was put after the mark."""
        touched: set[int] = set()
        for put in self.puts[mark:]:
            touched.add(put.node)
            for devices in put.devices:
                self._take(-1, put.row, put.node, devices)
        self._forget(self.puts[mark:])
        del self.puts[mark:]
        if touched:
            self.recount(np.array(sorted(touched), np.int64))

    def set_down(self, mark: int) -> None:
        """Put the pods that were lifted after the first `mark` of them back where they stood."""
        back = self.lifts[mark:]
        del self.lifts[mark:]
        for one in back:
            for devices in one.devices:
                self._take(1, one.row, one.node, devices)
        self._return(back)
        if back:
            self.recount(np.unique([one.node for one in back]).astype(np.int64))

    def commit(self) -> list[Put]:
        """Keep what was put and lifted; returns what was put and opens the next transaction."""
        puts, self.puts = self.puts, []
        self.lifts.clear()
        self._before.clear()
        return puts

    def drop(self) -> None:
        """Take away all that the transaction put."""
        touched = np.array(sorted(self._before), np.int64)
        for node, (free, device_free, copies, block) in self._before.items():
            self.free[node], self.device_free[node] = free, device_free
            self.copies[:, node], self.block[:, node] = copies, block
        self._forget(self.puts)
        self._return(self.lifts)
        self.puts.clear()
        self.lifts.clear()
        self._before.clear()
        if len(touched):
            self._idle.clear()
            self.told.clear()
            for changed in self.on_change:
                changed(touched)
