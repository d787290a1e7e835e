"""`berth nodes` and `berth free`: capacity as people need it."""

from __future__ import annotations

import click

from berth.app.cli.options import from_dump, gpu_mapping, level, now_s, output, say_notes, topology
from berth.model.topology import Level


@click.command()
@from_dump
@gpu_mapping
@topology
@click.option("--all", "everything", is_flag=True, help="Nodes without GPUs too.")
@output("table", "wide", "json", "csv")
def nodes(dump: str, gpu_mapping: str | None, topology: tuple[Level, ...], everything: bool, output: str) -> None:
    """GPUs by node: class, state, total, healthy, allocated, free."""
    from berth.scheduling.room import Room
    from berth.sources.assemble import read_snapshot
    from berth.views import records, room, tables

    snapshot = read_snapshot(dump, now_s=now_s(), gpu_mapping=gpu_mapping, levels=topology)
    found = Room(snapshot)
    rows = [n for n in found.nodes() if everything or n.gpus or n.counted]
    if output == "json":
        click.echo(records.to_json({"kind": "NodeList", "nodes": [room.node_record(n) for n in rows],
                                    "notes": snapshot.notes}))  # fmt: skip
    elif output == "csv":
        click.echo(room.nodes_csv(rows), nl=False)
    else:
        room.show_nodes(rows, tables.console(), wide=output == "wide")
        say_notes(snapshot.notes)


@click.command()
@from_dump
@gpu_mapping
@topology
@level
@output("table", "json", "csv")
def free(dump: str, gpu_mapping: str | None, topology: tuple[Level, ...], level: str | None, output: str) -> None:
    """What is free by GPU class, and the largest gang of 1, 2, 4 and 8-GPU pods that fits now in one domain."""
    from berth.base.errors import BadInput
    from berth.scheduling.room import Room
    from berth.sources.assemble import read_snapshot
    from berth.views import records, room, tables

    snapshot = read_snapshot(dump, now_s=now_s(), gpu_mapping=gpu_mapping, levels=topology)
    found = Room(snapshot)
    rows = found.classes()
    if level:
        index = snapshot.topology.find(level)
        if index < 0:
            known = ", ".join(f"{lv.name} ({lv.label})" for lv in snapshot.topology.levels) or "none"
            raise BadInput("--by", f"no node carries the level {level!r}.", f"Levels of this cluster: {known}.")
        rows = found.domains(index)
    counted, fragmentation = found.counted(), found.fragmentation()
    if output == "json":
        click.echo(records.to_json(room.free_record(rows, counted, fragmentation, snapshot.notes)))
    elif output == "csv":
        click.echo(room.free_csv(rows), nl=False)
    else:
        room.show_free(rows, counted, fragmentation, tables.console(), level)
        say_notes(snapshot.notes)
