"""`berth data`: the public data sets that figures are measured with. Nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

import click

from berth.app.cli.options import output


@click.group(invoke_without_command=True)
@output("table", "json")
@click.pass_context
def data(context: click.Context, output: str) -> None:
    """Public data sets: what they hold, where they are from, their licence and hash."""
    if context.invoked_subcommand is not None:
        return
    from berth.sources.datasets import datasets
    from berth.views import datasets as view
    from berth.views import records, tables

    if output == "json":
        click.echo(records.to_json(view.listed(datasets())))
    else:
        view.show(datasets(), tables.console())


@data.command("verify")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@output("table", "json")
def verify(folder: Path | None, output: str) -> None:
    """Compare the copy in FOLDER (default: BERTH_DATA) with the hashes that Berth knows.

    Exit code 0: all verified; 1: a set differs; 3: a set, or the folder, is not there.
    """
    from berth.base.errors import UNREADABLE, BadInput
    from berth.sources.datasets import DIFFERENT, MISSING
    from berth.sources.datasets import verify as compare
    from berth.sources.traces import data_folder
    from berth.views import datasets as view
    from berth.views import records, tables

    root = folder or data_folder()
    if not root.is_dir():
        raise BadInput(str(root), "is not a folder.", "Name the folder that holds traces/.", UNREADABLE)
    checked = compare(root)
    if output == "json":
        click.echo(records.to_json(view.verified(checked)))
    else:
        view.show_checked(checked, tables.console())
    states = {one.state for one in checked}
    if DIFFERENT in states:
        raise click.exceptions.Exit(1)
    if MISSING in states:
        raise click.exceptions.Exit(UNREADABLE)
