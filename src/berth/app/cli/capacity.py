"""`berth nodes` and `berth free`: capacity as people need it."""

from __future__ import annotations

import click
from msgspec.structs import replace

from berth.app.cli.options import Where, labels, level, of_cluster, output
from berth.app.cli.selector import Selector, fits, written


@click.command()
@of_cluster
@labels
@click.option("--all", "everything", is_flag=True, help="Nodes without GPUs too.")
@output("table", "wide", "json", "yaml", "name", "csv")
def nodes(where: Where, selector: Selector, everything: bool, output: str) -> None:
    """GPUs by node: class, state, total, healthy, allocated, free."""
    from berth.app.cli.frames import Frame, emit
    from berth.app.cli.seeing import look
    from berth.scheduling.room import Room
    from berth.views import room

    snapshot = look(where)
    chosen = {n.name for n in snapshot.nodes if fits(selector, n.labels)}
    rows = [n for n in Room(snapshot).nodes() if n.name in chosen and (everything or n.gpus or n.counted)]
    record = {"kind": "NodeList", "nodes": [room.node_record(n) for n in rows], "notes": snapshot.notes}
    emit(
        Frame(
            record,
            lambda screen, wide: room.show_nodes(rows, screen, wide, written(selector), everything), snapshot.notes,
            csv=room.nodes_csv(rows), names="".join(f"node/{n.name}\n" for n in rows),
        ),
        output,
    )  # fmt: skip


@click.command()
@of_cluster
@labels
@level
@output("table", "json", "yaml", "csv")
def free(where: Where, selector: Selector, level: str | None, output: str) -> None:
    """What is free by GPU class, and the largest gang of 1, 2, 4 and 8-GPU pods that fits now in one domain."""
    from berth.app.cli.frames import Frame, emit
    from berth.app.cli.seeing import look
    from berth.base.errors import BadInput
    from berth.scheduling.room import Room
    from berth.scheduling.room_kept import reserved_in
    from berth.views import room

    snapshot = look(where)
    reserved = reserved_in(snapshot)  # by all nodes: where GPUs are kept that have no name depends on all
    if selector:
        kept = tuple(n for n in snapshot.nodes if fits(selector, n.labels))
        names = {n.name for n in kept}
        snapshot = replace(
            snapshot, nodes=kept, allocations=tuple(a for a in snapshot.allocations if a.node in names),
            bookings=(),
        )  # fmt: skip
    found = Room(snapshot, reserved)
    rows = found.classes()
    if level:
        index = snapshot.topology.find(level)
        if index < 0:
            known = ", ".join(f"{lv.name} ({lv.label})" for lv in snapshot.topology.levels) or "none"
            raise BadInput("--by", f"no node carries the level {level!r}.", f"Levels of this cluster: {known}.")
        rows = found.domains(index)
    counted, fragmentation = found.counted(), found.fragmentation()
    idle = reserved.idle if reserved is not None else ()
    emit(
        Frame(
            room.free_record(rows, counted, fragmentation, snapshot.notes, idle),
            lambda screen, wide: room.show_free(rows, counted, fragmentation, screen, level, written(selector), idle),
            snapshot.notes,
            csv=room.free_csv(rows),
        ),
        output,
    )
