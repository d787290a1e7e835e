"""`berth verify`: does the same look find it again? A case is closed by that, not by silence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from berth.app.cli.options import Where, evidence_from, of_evidence, output
from berth.base.errors import UNREADABLE, BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from berth.app.cli.checked import Checked
    from berth.diagnosis.work_record import Compared, Entry, WorkRecord
    from berth.evidence.facts import Facts

    Checks = Mapping[Entry, tuple[Checked, ...]]

MARGIN = " " * 12
MOST_LINES = 6  # of one check's output


@click.command()
@click.argument("record", type=click.Path(allow_dash=False), metavar="RECORD")
@of_evidence
@evidence_from
@click.option(
    "--run/--no-run", "runs", default=None,
    help="Run the checks of the record that only look (nvidia-smi -q, lsmod, kubectl get …). Default: yes, unless "
    "files or texts are given in place of what is here.",
)  # fmt: skip
@output("table", "json", "yaml")
def verify(record: str, where: Where, evidence: tuple[str, ...], runs: bool | None, output: str) -> None:
    """Look again, as RECORD says, and compare by the same rules.

    RECORD is a file that `berth doctor --record` wrote. Its checks are run where they can be run from here, their
    output and the cluster are read as evidence, and each entry is open (found again, or a check shows something else),
    closed (looked at, and not found) or unconfirmed (nobody looked this time). What might change something is never
    run: it is printed with what it must show.

    Exit code: 0 every entry is closed, 1 one is open or unconfirmed, 2 not a record, 3 nothing could be read.
    """
    from berth.app.cli.checked import checked
    from berth.app.cli.frames import Frame, emit
    from berth.diagnosis.diagnose import diagnose
    from berth.diagnosis.work_record import compared

    kept = _read(record)
    notes: list[str] = []
    from_here = where.dump is None and not evidence
    checks = checked(kept, where, is_asked=bool(runs)) if (from_here if runs is None else runs) else {}
    facts = _facts(kept, where, evidence, checks, notes)
    shown = {entry: [(one.check.words, one.shown) for one in done] for entry, done in checks.items()}
    found = compared(kept, diagnose(facts), facts, shown)
    frame = Frame(
        record=_record(kept, found, checks, notes),
        draw=lambda screen, _: _show(kept, found, checks, screen),
        notes=tuple(notes),
        code=0 if all(one.verdict == "closed" for one in found) else 1,
    )
    emit(frame, output)
    sys.exit(frame.code)


def _facts(kept: WorkRecord, where: Where, evidence: tuple[str, ...], checks: Checks, notes: list[str]) -> Facts:
    """What the checks printed, and what else can be seen. Evidence that holds nothing is a note, and a silent cluster
    where a check answered."""
    from berth.app.cli.evidence import NothingRead, facts_of
    from berth.evidence.facts import Facts
    from berth.evidence.read import read

    pieces = [one.piece for done in checks.values() for one in done]
    printed = {piece.source: piece for piece in pieces if piece is not None}
    try:
        facts = facts_of(where, evidence, notes, kept.target)
    except BadInput as problem:
        if not printed and not isinstance(problem, NothingRead):
            if where.dump is not None or evidence:
                raise
            remedy = f"{problem.remedy} Or give what was collected after the repair: --evidence FILE, or --from PATH."
            raise BadInput(problem.where, problem.problem, remedy.strip(), problem.exit_code) from None
        notes.append(problem.sentence)
        facts = Facts()
    return read(printed.values(), facts)


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


def _record(kept: WorkRecord, found: Sequence[Compared], checks: Checks, notes: Sequence[str]) -> dict[str, Any]:
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
                "checks": [done.record() for done in checks.get(one.entry, ())],
            }
            for one in found
        ],
        "closed": all(one.verdict == "closed" for one in found),
        "notes": list(notes),
    }


def _show(kept: WorkRecord, found: Sequence[Compared], checks: Checks, screen: Console) -> None:
    from rich.text import Text

    from berth.diagnosis.checks import checks_of
    from berth.views.diagnosis import safe

    styles = {"open": "bold red", "closed": "bold green", "unconfirmed": "bold yellow"}
    _print(screen, f"record {kept.run_id} of {kept.time}, {kept.standing}, from {kept.source}")
    if not found:
        screen.print("it holds no finding")
    for one in found:
        line = Text(f"{one.verdict:<12}", style=styles[one.verdict])
        line.append(safe(f"{one.entry.code}  {one.entry.target}"), style="default")
        screen.print(line)
        _print(screen, f"{MARGIN}{one.sentence}")
        done = checks.get(one.entry, ())
        for check in done:
            _show_check(check, screen)
        ran = {check.check for check in done if not check.problem}
        for step in one.entry.verify if one.verdict != "closed" else ():
            if not ran.issuperset(checks_of((step,))) or not checks_of((step,)):
                _print(screen, f"{MARGIN}to be run: {step}", "dim")


def _show_check(one: Checked, screen: Console) -> None:
    words = {"yes": "as it must be", "no": "not as it must be", "read it": "read it", None: "not run"}[one.shown]
    _print(screen, f"{MARGIN}{one.check.words}: {words}")
    if one.problem:
        _print(screen, f"{MARGIN}  {one.problem}", "dim")
        return
    lines = one.output.splitlines() or ["(no output)"]
    for line in lines[:MOST_LINES]:
        _print(screen, f"{MARGIN}  {line}", "dim")
    if len(lines) > MOST_LINES:
        screen.print(f"{MARGIN}  … {len(lines) - MOST_LINES} more lines", style="dim")
    if one.shown != "yes" and one.check.expected:
        _print(screen, f"{MARGIN}  it must show: {one.check.expected}")


def _print(screen: Console, words: str, style: str = "") -> None:
    """As it is: what a record or a program says is no markup, and its control characters do not reach the terminal."""
    from rich.text import Text

    from berth.views.diagnosis import safe

    screen.print(Text(safe(words), style=style), soft_wrap=True)
