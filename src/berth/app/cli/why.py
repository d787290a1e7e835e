"""`berth why`: why does this workload wait, or where does it run?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from berth.app.cli.compiled import plain_unless_kept
from berth.app.cli.options import from_dump, gpu_mapping, named, namespace, now_s, output, say_notes, topology
from berth.base.errors import BadInput
from berth.model.topology import Level

if TYPE_CHECKING:
    from berth.model.snapshot import Snapshot

MOST_OF_AN_OWNER = 3  # workloads that one owner's name is answered with


@click.command()
@click.argument("workload", callback=named)
@from_dump
@namespace
@gpu_mapping
@topology
@output("table", "json")
def why(
    workload: str, dump: str, namespace: str | None, gpu_mapping: str | None, topology: tuple[Level, ...], output: str
) -> None:
    """Why does WORKLOAD wait, or where does it run, on the cluster that DUMP shows?

    WORKLOAD is the name of a workload, of a pod, or of what owns pods; `kind/name` and `namespace/name` are
    understood, too. Pods of every scheduler are answered for, and it says whose rules apply. Exit code: 0 it runs
    or would fit, 1 it does not fit, 2 no such workload, 3 an unreadable DUMP.
    """
    plain_unless_kept()
    from berth.model.reasons import Answer
    from berth.scheduling.answer import why
    from berth.sources.assemble import read_snapshot
    from berth.views import records, tables, verdicts

    snapshot = read_snapshot(dump, now_s=now_s(), gpu_mapping=gpu_mapping, levels=topology)
    answers = why(snapshot, workload, namespace)
    notes = list(snapshot.notes)
    if not answers:
        keys = _owned(snapshot, workload, namespace)
        if not keys:
            raise _not_there(snapshot, dump, workload, namespace)
        answers = [answer for key in keys[:MOST_OF_AN_OWNER] for answer in why(snapshot, key, None)]
        if len(keys) > MOST_OF_AN_OWNER:
            notes.insert(0, f"{workload} owns {len(keys):,} workloads; the first {MOST_OF_AN_OWNER} are answered")
    if output == "json":
        record = {"kind": "Why", "answers": [verdicts.record(a) for a in answers], "notes": notes}
        click.echo(records.to_json(record))
    else:
        verdicts.show(answers, tables.console())
        say_notes(tuple(notes))
    sys.exit(0 if all(a.verdict.answer is Answer.Fits for a in answers) else 1)


def _owned(snapshot: Snapshot, name: str, namespace: str | None) -> list[str]:
    """Keys of the workloads whose pods an object of this name owns, those that wait first."""
    first, slash, rest = name.partition("/")
    keys: dict[str, None] = {}
    for owner in snapshot.owners:
        is_meant = name == owner.name or (
            bool(slash)
            and rest == owner.name
            and (first == owner.namespace or first.lower() in (owner.kind.lower(), owner.kind.lower() + "s"))
        )
        if is_meant and namespace in (None, owner.namespace):
            keys.update(dict.fromkeys(owner.workloads))
    return list(keys)


def _not_there(snapshot: Snapshot, dump: str, name: str, namespace: str | None) -> BadInput:
    from difflib import get_close_matches

    from berth.base.units import counted
    from berth.scheduling.answer import names_of

    names = [*names_of(snapshot), *(f"{o.namespace}/{o.name}" for o in snapshot.owners)]
    where = f" in namespace {namespace}" if namespace else ""
    problem = f"no workload or pod {name!r}{where}."
    close = get_close_matches(name, dict.fromkeys([n.rpartition("/")[2] for n in names] + names), 3, 0.6)
    if close:
        return BadInput(dump, problem, f"Close to it: {', '.join(close)}.")
    return BadInput(dump, problem, f"The dump holds {counted(len(names_of(snapshot)), 'workload')}.")
