"""`berth doctor`: what is broken, at which layer, how we know, and what to do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from berth.app.cli.options import Where, evidence_from, in_namespace, named, of_evidence, output
from berth.base.errors import BadInput

if TYPE_CHECKING:
    from berth.diagnosis.diagnose import Diagnosis
    from berth.evidence.facts import Facts


@click.command()
@click.argument("target", required=False, callback=named)
@of_evidence
@evidence_from
@in_namespace
@click.option(
    "--explain", metavar="CODE", callback=named,
    help="What a finding of this code means, or an Xid by its number; nothing is read.",
)  # fmt: skip
@click.option(
    "--preserve", metavar="DIR", callback=named,
    help="Keep all that is read in this folder, as a repair would erase it; --from DIR reads it again.",
)  # fmt: skip
@click.option(
    "--record", metavar="FILE", callback=named, help="Write a work record, for `berth verify` after the repair."
)
@click.option(
    "--report", metavar="FILE.html", callback=named, help="Write the report as a page, to attach to a ticket."
)
@output("table", "wide", "json", "yaml")
def doctor(
    target: str | None,
    where: Where,
    evidence: tuple[str, ...],
    namespace: str | None,
    explain: str | None,
    preserve: str | None,
    record: str | None,
    report: str | None,
    output: str,
) -> None:
    """What is wrong with TARGET, a pod, a node or a job; without it, with all that can be seen.

    A live cluster is asked, with the rights that you have, unless --from or --evidence names files. Evidence first:
    each finding carries the words that it rests on, what would disprove it, how it is mended and how the mending is
    proven. What nobody collected is listed as not confirmed, never guessed.

    Exit code: 0 nothing found, 1 a finding or a boundary that breaks, 2 usage, 3 nothing could be read.
    """
    if explain:
        from berth.app.cli.explain import tell

        tell(explain, output)
        return
    from berth.app.cli.evidence import facts_for, see_all
    from berth.app.cli.frames import Frame, emit
    from berth.app.cli.preserve import kept_in
    from berth.app.cli.written import page, work_record, write
    from berth.diagnosis.diagnose import diagnose
    from berth.diagnosis.focus import Step, focused, parted, stopped
    from berth.diagnosis.probe import offered
    from berth.views import diagnosis as view

    notes: list[str] = []
    facts, code = facts_for(output, where, evidence, notes, target or "", preserve, namespace or "")
    found = diagnose(facts)
    if not code and not facts.kinds and not len(facts):
        notes.append("nothing that was read says anything about a GPU")
    steps: tuple[Step, ...] = ()
    if namespace and not code:
        found = _within(found, facts, namespace, is_live=where.dump is None and not evidence)
    if target and not code:
        asked = focused(found, facts, target, namespace or "")
        if asked is None:
            raise BadInput("", f"{target!r} is no pod, node or job in what was read.", see_all(facts))
        found, steps = asked
    walked = steps if target else parted(facts)
    found = stopped(found, walked)
    probe = offered(found, facts) if target else None
    written = [kept_in(preserve)] if preserve else []
    if record:
        write(record, work_record(found, facts, where, evidence, target or ""))
        written.append(f"written: the work record {record}")
    if report:
        write(report, page(found, notes, steps, probe, where, target or ""))
        written.append(f"written: the page {report}")
    notes += written
    frame = Frame(
        record=view.record(found, notes, steps, probe),
        draw=lambda screen, wide: view.show(
            found, screen, wide, steps, probe, is_kept=preserve is not None, is_recorded=record is not None
        ),
        notes=tuple(notes),
        code=code or int(bool(found.findings) or any(one.holds is False for one in walked)),
    )
    emit(frame, output)
    sys.exit(frame.code)


def _within(found: Diagnosis, facts: Facts, namespace: str, *, is_live: bool) -> Diagnosis:
    """Of one namespace. Raises BadInput where files hold others and not this one: a live one may be empty."""
    from berth.app.cli.evidence import see_all
    from berth.diagnosis.namespace import namespaces, within

    known = namespaces(facts)
    if known and namespace not in known and not is_live:
        problem = f"nothing of namespace {namespace!r} is in what was read, only of {', '.join(sorted(known))}."
        raise BadInput("--namespace", problem, see_all(facts))
    return within(found, facts, namespace)
