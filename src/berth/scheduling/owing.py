"""What queues are owed in a cycle, and what their workloads ask for, by value (docs/internals/fair-share.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.shares import Shares, amounts, shares_of, worths

if TYPE_CHECKING:
    from berth.scheduling.columns import Columns
    from berth.scheduling.draft import Draft
    from berth.scheduling.round import Round

F64 = NDArray[np.float64]


def shares_now(now: Round) -> Shares | None:
    """None where there is one queue."""
    ledger, columns = now.ledger, now.draft.columns
    if len(ledger.names) < 2:
        return None
    worth = worths(columns.gpu_classes)
    value, mean = now.value
    asked = np.bincount(now.queue, weights=now.asked, minlength=len(ledger.names)).astype(np.float64)
    # What pods hold whose queues nobody asks about is not there to deal.
    others = float(amounts(ledger.elsewhere[None], worth)[0])
    return shares_of(ledger, asked, value - others, worth, mean, now.snapshot.usage, now.policy.usage_weight)


def worth_of_rows(draft: Draft, mean: float) -> F64:
    """(M,) value of a milli of each class row: the mean over the nodes on which it may run, 0.0 where it may on none:
    what can never start is no demand. `mean` is that of all."""
    columns, tables = draft.columns, draft.tables
    worth = worths(columns.gpu_classes)
    if not columns.size or (worth == worth[0]).all():
        somewhere: F64 = np.where((tables.static == 0).any(axis=1), mean, 0.0)
        return somewhere
    milli = columns.gpu_milli()
    usable = (tables.static == 0).astype(np.float64)
    there = usable @ milli
    found: F64 = np.where(there > 0, (usable @ (milli * worth[columns.gpu_class])) / np.maximum(there, 1), 0.0)
    return found


def value_of(columns: Columns) -> tuple[float, float]:
    """Value milli of all GPUs that may be given out, and of one milli in the mean."""
    milli, worth = columns.gpu_milli(), worths(columns.gpu_classes)
    value = milli * worth[columns.gpu_class]
    return float(value.sum()), float(value.sum() / milli.sum()) if milli.any() else 1.0
