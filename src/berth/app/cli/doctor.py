"""`berth doctor`: what is broken, at which layer, how we know, and what to do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from berth.app.cli.options import named, output
from berth.base.errors import UNREADABLE, BadInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berth.evidence.piece import Piece


@click.command()
@click.argument("target", required=False, callback=named)
@click.option(
    "--from", "source", type=click.Path(allow_dash=True), metavar="PATH", callback=named,
    help="Files in place of a live cluster: a kubectl dump, a must-gather, an nvidia-bug-report, a folder of command "
    "outputs, an archive of them; gzip or not.",
)  # fmt: skip
@click.option(
    "--evidence", multiple=True, type=click.Path(allow_dash=True), metavar="PATH",
    help='A text, or JSON lines {"kind": "dmesg", "text": "…"}; - for standard input. May be given several times.',
)  # fmt: skip
@click.option("--explain", metavar="CODE", callback=named, help="What a finding of this code means; nothing is read.")
@output("table", "wide", "json", "yaml")
def doctor(
    target: str | None, source: str | None, evidence: tuple[str, ...], explain: str | None, output: str
) -> None:
    """What is wrong with TARGET, a pod, a node or a job; without it, with all that can be seen.

    Evidence first: each finding carries the words that it rests on, what would disprove it, how it is mended and how
    the mending is proven. What nobody collected is listed as not confirmed, never guessed.

    Exit code: 0 nothing found, 1 a finding, 2 usage, 3 nothing could be read.
    """
    if explain:
        _explain(explain)
        return
    if source is None and not evidence:
        raise click.UsageError("Name what to read: --from PATH, or --evidence PATH.")
    from berth.app.cli.frames import Frame, emit
    from berth.diagnosis.diagnose import diagnose
    from berth.evidence.read import read
    from berth.views import diagnosis as view

    notes: list[str] = []
    facts = read(_pieces(source, evidence, notes))
    found = diagnose(facts)
    if not facts.kinds and not len(facts):
        notes.append("nothing that was read says anything about a GPU")
    frame = Frame(
        record=view.record(found, notes),
        draw=lambda screen, wide: view.show(found, screen, wide),
        notes=tuple(notes),
        code=1 if found.findings else 0,
    )
    emit(frame, output)
    sys.exit(frame.code)


def _pieces(source: str | None, evidence: tuple[str, ...], notes: list[str]) -> Iterator[Piece]:
    from pathlib import Path

    from berth.sources.evidence_files import STDIN, evidence_of, pieces_of

    if source is not None:
        yield from pieces_of(source, notes)
    for path in evidence:
        if path == STDIN:
            yield from evidence_of(sys.stdin.buffer.read(), "standard input")
            continue
        try:
            raw = Path(path).read_bytes()
        except OSError as error:
            problem = f"it cannot be read: {error.strerror}."
            raise BadInput(path, problem, "Name a file with evidence.", UNREADABLE) from None
        yield from evidence_of(raw, path)


def _explain(code: str) -> None:
    from difflib import get_close_matches

    from berth.diagnosis.rules import RULES
    from berth.views import diagnosis, tables

    if diagnosis.explain(code, RULES, tables.console()):
        return
    known = [one.name for rule in RULES for one in rule.codes]
    near = get_close_matches(code, known, 3, 0.5)
    remedy = f"Did you mean {' or '.join(near)}?" if near else "See docs/findings."
    raise BadInput("--explain", f"there is no finding {code!r}.", remedy)
