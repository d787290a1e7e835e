"""Options that several commands share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from berth.app.cli.streams import say
from berth.base.errors import BadInput
from berth.model.topology import Level

Command = TypeVar("Command", bound=Callable[..., Any])


def named(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """What is left empty, as by a variable that is not set, would otherwise mean the current folder."""
    if text is not None and not text.strip():
        raise click.BadParameter("it is empty. Write a name.")
    return text


from_dump = click.option(
    "--from", "dump", required=True, metavar="DUMP", callback=named,
    help="File, folder or - with the output of `kubectl get nodes,pods -A -o json` (or yaml, gzip or not).",
)  # fmt: skip
gpu_mapping = click.option(
    "--gpu-classes", "gpu_mapping", metavar="FILE", callback=named,
    help="YAML that maps node labels to GPU classes, where nodes do not tell.",
)  # fmt: skip


def _topology(_: click.Context, __: click.Parameter, text: str | None) -> tuple[Level, ...]:
    """`block=example.com/block,rack=example.com/rack`, from wide to narrow; a label alone is its own name."""
    if text is None:
        return ()
    levels = []
    for part in text.split(","):
        name, sign, label = (piece.strip() for piece in part.partition("="))
        if not name or (sign and not label):
            raise click.BadParameter(
                f"{part.strip()!r} is no level. Write name=label, from wide to narrow: block=example.com/block,rack=…"
            )
        levels.append(Level(name, label or name))
    if len({level.name for level in levels}) < len(levels):
        raise click.BadParameter("a level is named twice. Give each its own name.")
    return tuple(levels)


topology = click.option(
    "--topology", metavar="LEVELS", callback=_topology,
    help="Levels as name=label,… from wide to narrow, in place of those that the nodes are known to carry.",
)  # fmt: skip
job = click.option(
    "-f", "--filename", required=True, metavar="JOB", callback=named,
    help="Manifest of the job; - for standard input.",
)  # fmt: skip
namespace = click.option(
    "-n", "--namespace", metavar="NAME", callback=named, help="Namespace; default: the one of the manifest."
)
level = click.option(
    "--by", "level", metavar="LEVEL", callback=named,
    help="A row for each domain of this level (rack, block, … or its label).",
)  # fmt: skip


def output(*formats: str) -> Callable[[Command], Command]:
    """`-o`, the first format being the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="Output format."
    )


def now_s() -> float:
    """Seconds since the epoch: the clock's, or what BERTH_NOW says, so that an answer can be had again."""
    text = os.environ.get("BERTH_NOW", "").strip()
    if not text:
        return time.time()
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise BadInput("BERTH_NOW", f"{text!r} is no time.", "Write it as 2026-01-31T12:00:00Z.") from None


def say_notes(notes: tuple[str, ...], most: int = 10) -> None:
    """What could not be seen, on stderr."""
    for note in notes[:most]:
        say(f"note: {note}")
    if len(notes) > most:
        say(f"note: and {len(notes) - most} more (all in -o json)")
