"""One answer in whichever form is asked for, and the same answer again and again with --watch."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from berth.app.cli.options import say_notes
from berth.app.cli.streams import say

if TYPE_CHECKING:
    from rich.console import Console

SHORTEST_PAUSE_S = 2.0
REST = 10  # a watch rests for so many times as long as a reading takes: it costs the cluster a tenth at the most


@dataclass(frozen=True)
class Frame:
    """What was found: for programs, for people, and the exit code."""

    record: dict[str, Any]
    draw: Callable[[Console, bool], None]  # the second says whether it is to be wide
    notes: tuple[str, ...] = ()
    code: int = 0
    csv: str = ""
    names: str = ""
    key: Any = None  # what has to change for the answer to be another one; None: the record


def emit(frame: Frame, form: str, *, in_a_row: bool = False) -> None:
    """Write it once. `in_a_row`: others follow, so that JSON takes one line."""
    from berth.views import records, tables

    if form == "json":
        click.echo(records.to_json_line(frame.record) if in_a_row else records.to_json(frame.record))
    elif form == "yaml":
        click.echo(("---\n" if in_a_row else "") + records.to_yaml(frame.record), nl=False)
    elif form in ("csv", "name"):
        click.echo(frame.csv if form == "csv" else frame.names, nl=False)
    else:
        frame.draw(tables.console(), form == "wide")
        say_notes(frame.notes)
    sys.stdout.flush()


async def again(look: Callable[[], Awaitable[Frame]], form: str) -> int:
    """Look until interrupted, and write what has changed. On a terminal the screen is drawn anew."""
    from berth.views import tables

    last: Any = None
    is_first = True
    while True:
        began = time.monotonic()
        frame = await _or_wait(look, is_first)
        took = time.monotonic() - began
        if frame is not None:
            key = frame.record if frame.key is None else frame.key
            if is_first or key != last:
                screen = tables.console()
                if form in ("table", "wide") and screen.is_terminal:
                    screen.clear()
                elif form in ("table", "wide") and not is_first:
                    click.echo()
                emit(frame, form, in_a_row=True)
            last, is_first = key, False
        await asyncio.sleep(max(SHORTEST_PAUSE_S, REST * took))


async def _or_wait(look: Callable[[], Awaitable[Frame]], is_first: bool) -> Frame | None:
    """None where the cluster does not answer now but has before."""
    from berth.kube.errors import ApiError

    try:
        return await look()
    except ApiError as error:
        if is_first or not error.is_retriable:
            raise
        say(f"note: {error.sentence}; trying again")
        return None
