"""`berth verify`: does the same look find it again? A case is closed by that, not by silence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from berth.app.cli.options import Where, evidence_from, of_evidence, output
from berth.base.errors import UNREADABLE, BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from berth.diagnosis.work_record import Compared, WorkRecord


@click.command()
@click.argument("record", type=click.Path(allow_dash=False), metavar="RECORD")
@of_evidence
@evidence_from
@output("table", "json", "yaml")
def verify(record: str, where: Where, evidence: tuple[str, ...], output: str) -> None:
    """Look again, as RECORD says, and compare by the same rules.

    RECORD is a file that `berth doctor --record` wrote. Each of its entries is open (found again), closed (its evidence
    was looked at, and it is not found) or unconfirmed (nobody looked at such evidence this time). The commands that
    prove a mending are printed with what they must show; none is run that changes anything.

    Exit code: 0 every entry is closed, 1 one is open or unconfirmed, 2 not a record, 3 nothing could be read.
    """
    from berth.app.cli.evidence import facts_of
    from berth.app.cli.frames import Frame, emit
    from berth.diagnosis.diagnose import diagnose
    from berth.diagnosis.work_record import compared

    kept = _read(record)
    notes: list[str] = []
    facts = facts_of(where, evidence, notes, kept.target)
    found = compared(kept, diagnose(facts), facts)
    frame = Frame(
        record=_record(kept, found, notes),
        draw=lambda screen, _: _show(kept, found, screen),
        notes=tuple(notes),
        code=0 if all(one.verdict == "closed" for one in found) else 1,
    )
    emit(frame, output)
    sys.exit(frame.code)


def _read(path: str) -> WorkRecord:
    import msgspec

    from berth.diagnosis.work_record import KIND, VERSION, WorkRecord

    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        problem = f"it cannot be read: {error.strerror}."
        raise BadInput(path, problem, "Name a file that `berth doctor --record` wrote.", UNREADABLE) from None
    try:
        kept = msgspec.json.decode(raw, type=WorkRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadInput(path, f"it is no work record: {error}.", "Write one with: berth doctor --record FILE") from None
    if (kept.api_version, kept.kind) != (VERSION, KIND):
        problem = f"is {kept.kind!r} of {kept.api_version!r}."
        raise BadInput(f"{path}: kind", problem, f"It has to be {KIND} of {VERSION}.")
    return kept


def _record(kept: WorkRecord, found: Sequence[Compared], notes: Sequence[str]) -> dict[str, Any]:
    return {
        "runId": kept.run_id,
        "entries": [
            {
                "code": one.entry.code,
                "target": one.entry.target,
                "verdict": one.verdict,
                "sentence": one.sentence,
                "before": one.entry.output,
                "now": one.output or None,
                "verify": list(one.entry.verify),
            }
            for one in found
        ],
        "closed": all(one.verdict == "closed" for one in found),
        "notes": list(notes),
    }


def _show(kept: WorkRecord, found: Sequence[Compared], screen: Console) -> None:
    from rich.text import Text

    styles = {"open": "bold red", "closed": "bold green", "unconfirmed": "bold yellow"}
    screen.print(f"record {kept.run_id} of {kept.time}, {kept.standing}, from {kept.source}")
    if not found:
        screen.print("it holds no finding")
    for one in found:
        line = Text(f"{one.verdict:<12}", style=styles[one.verdict])
        line.append(f"{one.entry.code}  {one.entry.target}", style="default")
        screen.print(line)
        screen.print(f"            {one.sentence}", soft_wrap=True)
        for step in one.entry.verify if one.verdict != "closed" else ():
            screen.print(f"            {step}", style="dim", soft_wrap=True)
