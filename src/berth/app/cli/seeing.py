"""The snapshot that a command answers from: of a dump, or of the live cluster as far as it may be seen."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from berth.app.cli.options import Where, now_s
from berth.base.errors import UNREADABLE, BadInput

if TYPE_CHECKING:
    from berth.app.cli.live import Connection
    from berth.model.snapshot import Snapshot
    from berth.model.told import Told
    from berth.sources.cluster import Missing, Reading
    from berth.sources.inventory import Inventory


def look(
    where: Where, asked: Callable[[Inventory], None] = lambda inventory: None, namespaces: Collection[str] = ()
) -> Snapshot:
    """`asked` gets what was read before the snapshot is made of it: who asks for something says there what it is.
    Those of `namespaces` that a live cluster does not have are among the notes.

    Raises BadInput, with exit code 3 where the truth cannot be seen: nodes and pods of the whole cluster.
    """
    if where.dump is not None:
        from berth.sources.assemble import read_snapshot

        return read_snapshot(
            where.dump, now_s=now_s(), gpu_mapping=where.gpu_mapping, levels=where.levels, asked=asked
        )
    from berth.app.cli.live import ask
    from berth.sources.cluster import NODES, PODS

    async def read_it(connection: Connection) -> tuple[Reading, tuple[str, ...]]:
        return await read_all(connection), await absent(connection, namespaces)

    reading, lacking = ask(where, read_it)
    if unseen := reading.lacks(NODES, PODS):
        raise blind(unseen)
    made = snapshot(reading, where, asked)
    return changed(made, notes=(*lacking, *made.notes)) if lacking else made


async def absent(connection: Connection, namespaces: Collection[str]) -> tuple[str, ...]:
    """Notes on those of these namespaces that the cluster does not have; none where that cannot be seen."""
    from urllib.parse import quote

    from berth.kube.errors import ApiError

    notes = []
    for name in namespaces:
        try:
            await connection.client.request("GET", f"/api/v1/namespaces/{quote(name, safe='')}")
        except ApiError as error:
            if error.is_not_found:
                notes.append(f"there is no namespace {name}")
    return tuple(notes)


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
    from berth.sources.assemble import mapping_in, refuse_uncarried, snapshot_of

    refuse_uncarried(where.levels, reading.inventory)
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
