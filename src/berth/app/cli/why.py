"""`berth why`: why does this workload wait, or where does it run?"""

from __future__ import annotations

import sys

import click

from berth.app.cli.options import from_dump, gpu_mapping, named, namespace, now_s, output, say_notes


@click.command()
@click.argument("workload", callback=named)
@from_dump
@namespace
@gpu_mapping
@output("table", "json")
def why(workload: str, dump: str, namespace: str | None, gpu_mapping: str | None, output: str) -> None:
    """Why does WORKLOAD wait, or where does it run, on the cluster that DUMP shows?

    WORKLOAD is the name of a workload or a pod, `kind/name` or `namespace/name`. Pods of every scheduler are
    answered for, and it says whose rules apply. Exit code: 0 it runs or would fit, 1 it does not fit,
    2 no such workload, 3 an unreadable DUMP.
    """
    from difflib import get_close_matches

    from berth.base.errors import BadInput
    from berth.base.units import counted
    from berth.model.reasons import Answer
    from berth.scheduling.answer import names_of, why
    from berth.sources.assemble import read_snapshot
    from berth.views import records, tables, verdicts

    snapshot = read_snapshot(dump, now_s=now_s(), gpu_mapping=gpu_mapping)
    answers = why(snapshot, workload, namespace)
    if not answers:
        names = names_of(snapshot)
        close = get_close_matches(workload, [n.rpartition("/")[2] for n in names] + names, 3, 0.6)
        hint = f"Close to it: {', '.join(close)}." if close else f"The dump holds {counted(len(names), 'workload')}."
        where = f" in namespace {namespace}" if namespace else ""
        raise BadInput(dump, f"no workload or pod {workload!r}{where}.", hint)
    if output == "json":
        record = {"kind": "Why", "answers": [verdicts.record(a) for a in answers], "notes": snapshot.notes}
        click.echo(records.to_json(record))
    else:
        verdicts.show(answers, tables.console())
        say_notes(snapshot.notes)
    sys.exit(0 if all(a.verdict.answer is Answer.Fits for a in answers) else 1)
