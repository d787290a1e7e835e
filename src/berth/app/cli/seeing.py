"""The snapshot that a command answers from: of a dump, or of the live cluster as far as it may be seen."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from berth.app.cli.options import Where, now_s
from berth.base.errors import UNREADABLE, BadInput

if TYPE_CHECKING:
    from berth.app.cli.live import Connection
    from berth.model.snapshot import Snapshot
    from berth.model.told import Told
    from berth.sources.cluster import Missing, Reading
    from berth.sources.inventory import Inventory


def look(where: Where, asked: Callable[[Inventory], None] = lambda inventory: None) -> Snapshot:
    """`asked` gets what was read before the snapshot is made of it: who asks for something says there what it is.

    Raises BadInput, with exit code 3 where the truth cannot be seen: nodes and pods of the whole cluster.
    """
    if where.dump is not None:
        from berth.sources.assemble import read_snapshot

        return read_snapshot(
            where.dump, now_s=now_s(), gpu_mapping=where.gpu_mapping, levels=where.levels, asked=asked
        )
    from berth.app.cli.live import ask
    from berth.sources.cluster import NODES, PODS

    reading = ask(where, read_all)
    if unseen := reading.lacks(NODES, PODS):
        raise blind(unseen)
    return snapshot(reading, where, asked)


def look_with_words(where: Where) -> tuple[Snapshot, dict[str, Told]]:
    """The snapshot of a dump, and what the scheduler that gave it, if one did, said of those that wait."""
    from berth.sources.told_state import told_in

    words: dict[str, Told] = {}
    return look(where, lambda inventory: words.update(told_in(inventory.state))), words


async def read_all(connection: Connection, namespace: str = "") -> Reading:
    """Every kind that decides. The garbage collector rests: what is read stays until the command ends."""
    from berth.sources.cluster import read

    gc.disable()
    return await read(connection.client, connection.served, namespace)


def snapshot(
    reading: Reading, where: Where, asked: Callable[[Inventory], None] = lambda inventory: None
) -> Snapshot:
    """What was read as the core takes it, with notes on what could not be seen."""
    from berth.sources.assemble import mapping_in, snapshot_of

    made = snapshot_of(
        reading.inventory,
        now_s=now_s(),
        mapping=mapping_in(where.gpu_mapping),
        notes=reading.notes,
        levels=where.levels,
        asked=asked,
    )
    gc.freeze()
    return made


def blind(unseen: Sequence[Missing], instead: str = "") -> BadInput:
    """Without these every answer would be wrong. `instead` is what can be had without them."""
    from berth.sources.cluster import lacking

    remedy = f"{f'{instead} ' if instead else ''}Check with: {unseen[0].check}"
    return BadInput("", f"{lacking(unseen)}.", remedy, UNREADABLE)
