"""What the cycle asks of the objective: in which order nodes are filled, and where single pods go."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import WHOLE
from berth.scheduling import expected, headroom, kernels, prices, singles
from berth.scheduling.draft import Draft
from berth.scheduling.headroom import Book, Knobs, Mix, Nodes, Scratch, Worth
from berth.scheduling.policy import Policy
from berth.scheduling.scoring import LATE, NO_ROOM, Classes, Cluster, rank_row
from berth.scheduling.singles import Following, Learning, Queues
from berth.scheduling.tables import Tables

T = TypeVar("T")
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
LAYOUTS_KEPT = 256


@dataclass
class Losses:
    """Prices and the worth of every node, kept in step with the draft.

    rows (J,) class rows with demand, demand (J,) their shares. Nothing is worked out before it is asked for: a
    cycle that places nothing pays nothing.
    """

    rows: I64
    demand: F64
    policy: Policy
    is_stated: bool
    _market: Market | None = None

    @classmethod
    def of(cls, rows: I64, demand: F64, policy: Policy, is_stated: bool) -> Losses:
        return cls(rows, demand, policy, is_stated)

    def market(self, draft: Draft) -> Market:
        """Prices for what is free now."""
        if self._market is None:
            imagined = 0.0 if self.is_stated or self.policy.learn_arrivals else self.policy.imagined
            self._market = Market.of(self.rows, self.demand, imagined, self.policy, draft)
        return self._market

    def follow(self, nodes: I64, draft: Draft) -> None:
        """Nodes have changed: work out their worth again."""
        if self._market is not None:
            self._market.follow(nodes, draft)

    def of_row(self, row: int, draft: Draft) -> I64:
        """(N,) rank of each node for one pod of a class, lower first, NO_ROOM where it does not fit."""
        ranks = np.full(draft.columns.size, NO_ROOM, np.int64)
        nodes = np.flatnonzero(draft.copies[row] > 0)
        if len(nodes) < 2 and self._market is None and not self.policy.learn_arrivals:  # there is nothing to choose
            ranks[nodes] = 0
            return ranks
        market = self.market(draft)
        rank_row(row, nodes, _classes(draft), market.cluster(draft), market.worth, market.book, ranks)
        return ranks

    def place_run(self, run: I64, draft: Draft, queues: Queues, stops: bool = False) -> tuple[I32, I64, int]:
        """Node (W,) and devices (W,) of a run of single pods, class rows; takes what they use from the draft. And how
        many were looked at: with `stops` those before the first that found no room."""
        node, devices = np.full(len(run), -1, np.int32), np.zeros(len(run), np.int64)
        if not queues.limited and (only := self._only_node(run, draft)) >= 0:
            tables, columns = draft.tables, draft.columns
            looked_at = kernels.fill_node(
                run, stops, only, tables.need, tables.ask, tables.static, draft.free, draft.device_free, columns.island,
                columns.pool, node, devices,
            )  # fmt: skip
            return node, devices, int(looked_at)
        market = self.market(draft)
        looked_at = singles.place_run(
            run, _classes(draft), market.cluster(draft), queues, market.mix, market.knobs, market.following,
            market.learning, market.worth, market.book, market.scratch, stops, node, devices,
        )  # fmt: skip
        return node, devices, int(looked_at)


    def _only_node(self, run: I64, draft: Draft) -> int:
        """The one node that takes any of a run, of pods of whole devices: then no price decides; -1 where some may."""
        if self._market is not None or self.policy.learn_arrivals:
            return -1
        rows = list(set(run.tolist()))
        nodes = np.flatnonzero((draft.copies[rows] > 0).any(axis=0))
        return int(nodes[0]) if len(nodes) == 1 and (draft.tables.ask[rows, 2] == WHOLE).all() else -1


@dataclass
class Market:
    """The state of the prices within one cycle; group (N,) is that of each node."""

    mix: Mix
    knobs: Knobs
    group: I64
    following: Following
    learning: Learning
    worth: Worth
    book: Book
    scratch: Scratch

    @classmethod
    def of(cls, rows: I64, demand: F64, imagined: float, policy: Policy, draft: Draft) -> Market:
        """Prices of the empty cluster, remembered while it and the demand stay the same; then steps to what is free.

        A function of the snapshot alone, so that a plan does not depend on what was decided before.
        """
        tables, columns = draft.tables, draft.columns
        kind, mix, group, shapes = _kept(
            tables, ("mix", rows.tobytes(), demand.tobytes(), imagined), lambda: _mix(rows, demand, imagined, tables)
        )
        knobs = Knobs(policy.quantum, policy.tau, policy.tau_classes, policy.eta, policy.average)
        most = draft.device_free.shape[1]
        worth, scratch = headroom.worth_for(mix, most), headroom.scratch_for(mix, most)
        shape_book = headroom.book_for(len(shapes.group))
        kind_of_row = np.full(len(tables.need), -1, np.int64)
        if policy.learn_arrivals:
            kind_of_row[rows] = kind
        now = prices.first_prices(mix)
        smooth = now.copy()
        if not policy.learn_arrivals:
            made = _kept(tables, ("key", id(mix), *knobs, policy.warm_steps), lambda: _key(mix, shapes, knobs, policy))
            known = tables.warm_prices.get(made.key)
            if known is None:
                prices.warm_up(policy.warm_steps, now, smooth, mix, knobs, shapes, worth, shape_book, scratch)
                tables.remember_prices(made.key, (now.copy(), smooth.copy()))
            else:
                now, smooth = (array.copy() for array in known)
        market = cls(
            mix, knobs, group,
            Following(now, smooth, policy.steps, policy.warm_steps, policy.refresh, shapes, shape_book),
            Learning(policy.learn_arrivals, kind_of_row, np.zeros(len(mix.share)), np.zeros(1, np.int64)),
            worth, headroom.book_for(columns.size), scratch,
        )  # fmt: skip
        nodes = Nodes(group, np.ones(columns.size, np.int64), draft.free, draft.device_free)
        if not policy.learn_arrivals:
            prices.settle(policy.first_steps, policy.eta, now, smooth, mix, knobs, nodes, worth, market.book, scratch)
        prices.set_worth(smooth, mix, knobs, nodes, worth, market.book, scratch)
        return market

    def cluster(self, draft: Draft) -> Cluster:
        columns = draft.columns
        late = columns.suspect * np.int64(LATE)
        return Cluster(draft.free, draft.device_free, columns.island, columns.pool, draft.alike, self.group, late)

    def follow(self, nodes: I64, draft: Draft) -> None:
        """Nodes have changed: appraise them again at the present prices."""
        some = Nodes(self.group[nodes], np.ones(len(nodes), np.int64), draft.free[nodes], draft.device_free[nodes])
        book = headroom.book_for(len(nodes))
        headroom.appraise_all(some, self.worth, book)
        for all_nodes, part in zip(self.book, book, strict=True):
            all_nodes[nodes] = part


def _mix(rows: I64, demand: F64, imagined: float, tables: Tables) -> tuple[I64, Mix, I64, Nodes]:
    """Kinds of rows, what is expected of them, the group of each node and the shapes of the empty cluster."""
    columns = tables.columns
    assert columns is not None
    kind, first = expected.kinds_of(rows, tables)
    shares = expected.shares_of(kind, demand, len(first))
    part = expected.part_imagined(shares, expected.on_devices(first, tables), imagined)
    layout = _kept(
        tables, ("layout", first.tobytes(), part > 0), lambda: expected.layout_of(first, part > 0, tables, columns)
    )
    return kind, expected.mix_of(layout, shares, part), layout.group, layout.shapes


class _Key(NamedTuple):
    """What a warm-up depends on; the mix is kept, so that its identity stays its own."""

    key: Hashable
    mix: Mix


def _key(mix: Mix, shapes: Nodes, knobs: Knobs, policy: Policy) -> _Key:
    return _Key(expected.key_of(mix, shapes, *knobs, policy.warm_steps), mix)


def _kept(tables: Tables, key: Hashable, make: Callable[[], T]) -> T:
    """What depends on the nodes and the rows alone is made once."""
    found: T | None = tables.layouts.get(key)
    if found is None:
        if len(tables.layouts) >= LAYOUTS_KEPT:
            tables.layouts.clear()
        found = tables.layouts[key] = make()
    return found


def _classes(draft: Draft) -> Classes:
    return Classes(draft.tables.need, draft.tables.ask, draft.copies, draft.tables.preference)
