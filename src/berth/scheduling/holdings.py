"""What queues hold when a cycle begins, and what one of them may still take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Health
from berth.model.paying import payers_of
from berth.model.snapshot import Snapshot
from berth.scheduling.quota import Ledger, ledger_of
from berth.scheduling.tables import EmptyLedger, Tables
from berth.scheduling.waiting import Payer

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


def ledger_with(snapshot: Snapshot, tables: Tables, asking: Sequence[Payer]) -> Ledger:
    """The queues with what their allocations hold. `asking` are the payers of those who wait."""
    classes = tuple([c.name for c in snapshot.gpu_classes])
    empty = tables.empty_ledger
    if empty is None or empty.of != (snapshot.queues, classes, asking) or not all(q.lending for q in snapshot.queues):
        payers = payers_of(snapshot.queues)
        named = [payers.of(queue, namespace) for queue, namespace in asking]
        ledger = ledger_of(snapshot.queues, classes, named, lambda: _capacity(tables, len(classes)))
        empty = tables.empty_ledger = EmptyLedger((snapshot.queues, classes, tuple(asking)), ledger)
    ledger = empty.ledger.anew()
    if len(ledger.names) < 2 and not ledger.has_limits and not ledger.has_quotas:
        return ledger
    crowd, columns = tables.crowd, tables.columns
    assert columns is not None
    gpu_class = np.append(columns.gpu_class, -1)[crowd.node]  # of a node that is not there it is not known
    width = len(classes) + 1
    milli = crowd.milli[crowd.kind] if len(crowd.kind) else crowd.kind
    held = np.bincount(crowd.payer * width + gpu_class + 1, weights=milli, minlength=len(crowd.payers) * width)
    for code in np.flatnonzero(held).tolist():
        q = _payer(crowd.payers[code // width], ledger)
        if q >= 0:
            ledger.take(q, code % width - 1, int(held[code]))
        else:
            ledger.take_elsewhere(code % width - 1, int(held[code]))
    return ledger


def _payer(payer: Payer, ledger: Ledger) -> int:
    """The queue that pays; -1 where it is none of the ledger's."""
    key = ("pays", payer)
    found: int | None = ledger.told.get(key)
    if found is None:
        is_there = ledger.payers.of(*payer) in ledger.index
        found = ledger.told[key] = ledger.queue_of(*payer) if is_there else -1
    return found


def _capacity(tables: Tables, classes: int) -> I64:
    """(C + 1,) milli in service of each class, all together last: what is kept for a queue has to be there for it."""
    columns = tables.columns
    assert columns is not None
    serves = [node.ready and not node.cordoned and node.health is not Health.Unfit for node in columns.nodes]
    milli = columns.gpu_milli() * np.array(serves, bool)
    by_class = np.bincount(columns.gpu_class + 1, weights=milli, minlength=classes + 1)[1:].astype(np.int64)
    return np.append(by_class, milli.sum())


@dataclass
class Allotment:
    """What the queue of a workload may still take, (C + 1,) milli by GPU class, told pod by pod."""

    gpu_class: I32
    room: I64
    left: int

    def fork(self) -> Allotment:
        return Allotment(self.gpu_class, self.room.copy(), self.left)

    def open_nodes(self, milli: int) -> Mask:
        mask: Mask = (self.room >= milli)[self.gpu_class] & (self.left >= milli)
        return mask

    def take(self, node: int, milli: int) -> None:
        self.left -= milli
        self.room[self.gpu_class[node]] -= milli
