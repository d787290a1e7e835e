"""What reservations of people leave of each node for somebody who is in none of them, has no run-time limit and may not
be asked to leave (docs/internals/reservations.md): all that `berth free` may call free.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth.base.units import counted
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE
from berth.scheduling.booked_nodes import WHOLE_NODE
from berth.scheduling.columns import Columns
from berth.scheduling.policy import Policy

if TYPE_CHECKING:
    from berth.scheduling.round import Round

I32 = NDArray[np.int32]


@dataclass(frozen=True)
class Reserved:
    """By name of the node: `devices` (D,) milli of each that others may have, `amounts` of each resource. `idle` are
    reservations and the GPUs of each that nobody has now, those that keep none left out."""

    devices: Mapping[str, I32]
    amounts: Mapping[str, Mapping[str, int]]
    idle: tuple[tuple[str, int], ...]

    def on(self, columns: Columns) -> None:
        """Take what is kept off the columns."""
        for n, node in enumerate(columns.nodes):
            if node.name not in self.devices:
                continue
            left = self.devices[node.name][: columns.device_free.shape[1]]
            columns.device_free[n, : len(left)] = np.minimum(columns.device_free[n, : len(left)], left)
            for r, name in enumerate(columns.resources):
                if name in self.amounts[node.name]:
                    columns.free[n, r] = min(int(columns.free[n, r]), self.amounts[node.name][name])


def reserved_in(snapshot: Snapshot) -> Reserved | None:
    """None where nobody reserves anything that is open or will be."""
    if not any(one.window(snapshot.now_s) is not None for one in snapshot.bookings):
        return None
    from berth.scheduling.booked import Bookings
    from berth.scheduling.round import Round
    from berth.scheduling.tables import Tables

    now = Round.of(snapshot, Policy(explains=False), Tables())
    now.booked = Bookings.of(now)
    idle = _idle(now)
    now.booked.hide()
    draft = now.draft
    names = draft.columns.resources
    touched = sorted({n for one in now.booked.booked for n in one.gpus})
    nodes = draft.columns.nodes
    return Reserved(
        {nodes[n].name: draft.device_free[n].copy() for n in touched},
        {nodes[n].name: {name: int(draft.free[n, r]) for r, name in enumerate(names)} for n in touched},
        tuple((one.name, gpus) for one, gpus in zip(now.booked.standings(), idle, strict=True) if gpus),
    )


def _idle(now: Round) -> list[int]:
    """GPUs of each reservation that nobody has, from before they are hidden: those of others who are still there, or
    that were lost with their node, are not idle."""
    free = (now.draft.device_free == WHOLE).sum(axis=1).tolist()
    there = (
        sum(free[n] if count == WHOLE_NODE else min(count, free[n]) for n, count in one.gpus.items())
        for one in now.booked.booked
    )
    return [max(min(one.held - one.used, idle), 0) for one, idle in zip(now.booked.standings(), there, strict=True)]


def kept_from(snapshot: Snapshot, waiting: Collection[int]) -> dict[int, str]:
    """Of workloads of the snapshot by index, which GPUs that would do are idle and kept for others: a sentence for each
    of which there are any. A lack of GPUs is told by what is left, and people see more that is idle."""
    if not waiting or not any(one.window(snapshot.now_s) is not None for one in snapshot.bookings):
        return {}
    from berth.scheduling.booked import Bookings
    from berth.scheduling.round import Round
    from berth.scheduling.tables import Tables

    tables = Tables()
    now = Round.of(snapshot, Policy(explains=False), tables)
    now.booked = Bookings.of(now)
    idle = _idle(now)
    now.booked.hide()
    told = {}
    for w in waiting:
        would_do = {n for row in now.rows[w] for n in np.flatnonzero(tables.copies_when_empty(row) > 0).tolist()}
        keepers = [
            (idle[b], now.booked.booked[b].booking)
            for b in sorted(now.booked.blocked(w))
            if idle[b] and would_do & now.booked.booked[b].gpus.keys()
        ]
        if keepers:
            some = ", ".join(
                f"{counted(gpus, 'GPU')} by GPUReservation {one.name} for "
                f"{f'queue {one.queue}' if one.queue else one.workload}"
                for gpus, one in keepers
            )
            told[w] = f"Idle GPUs that are kept for others do not count as free: {some}."
    return told
