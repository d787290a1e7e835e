"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

from_dump = click.option(
    "--from", "dump", required=True, metavar="DUMP",
    help="File, folder or - with the output of `kubectl get nodes,pods -A -o json` (or yaml, gzip or not).",
)  # fmt: skip
gpu_mapping = click.option(
    "--gpu-classes", "gpu_mapping", metavar="FILE",
    help="YAML that maps node labels to GPU classes, where nodes do not tell.",
)  # fmt: skip
namespace = click.option("-n", "--namespace", metavar="NAME", help="Namespace; default: the one of the manifest.")


def output(*formats: str) -> Callable[[Command], Command]:
    """`-o`, the first format being the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="Output format."
    )


def say_notes(notes: tuple[str, ...], most: int = 10) -> None:
    """What could not be seen, on stderr."""
    for note in notes[:most]:
        click.echo(f"note: {note}", err=True)
    if len(notes) > most:
        click.echo(f"note: and {len(notes) - most} more (all in -o json)", err=True)
