"""`berth why`: why does this workload wait, or where does it run?"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from berth.app.cli.compiled import plain_unless_kept
from berth.app.cli.completing import workloads
from berth.app.cli.options import Where, all_namespaces, in_namespace, named, of_cluster, output, watch
from berth.base.errors import BadInput

if TYPE_CHECKING:
    from berth.app.cli.frames import Frame
    from berth.app.cli.live import Connection
    from berth.model.snapshot import Snapshot
    from berth.scheduling.answer import Answered

MOST_OF_AN_OWNER = 3  # workloads that one owner's name is answered with


@click.command()
@click.argument("workload", callback=named, shell_complete=workloads)
@of_cluster
@in_namespace
@all_namespaces
@watch
@click.option("--anew", is_flag=True, help="Work it out here and now, also where the scheduler has said why.")
@output("table", "json", "yaml")
def why(
    workload: str, where: Where, namespace: str | None, everywhere: bool, watch: bool, anew: bool, output: str
) -> None:
    """Why does WORKLOAD wait, or where does it run?

    WORKLOAD is the name of a workload, of a pod, or of what owns pods; `kind/name` and `namespace/name` are
    understood, too. In a live cluster the scheduler's own verdict goes first, and it says how old it is; otherwise it
    is worked out here by the same rules. Pods of every scheduler are answered for, and it says whose rules apply.

    Exit code: 0 it runs or would fit, 1 it does not fit, 2 no such workload, 3 the cluster cannot be seen.
    """
    plain_unless_kept()
    from berth.app.cli.frames import again, emit

    if everywhere and namespace:
        raise click.UsageError("-A is all namespaces, -n one of them. Leave one of them out.")
    if where.dump is None:
        from berth.app.cli.live import ask
        from berth.app.cli.why_live import look

        async def work(connection: Connection) -> int:
            find = partial(look, connection, where, workload, namespace, everywhere, anew)
            if watch:
                return await again(find, output)
            frame = await find()
            emit(frame, output)
            return frame.code

        sys.exit(ask(where, work))
    if watch:
        raise click.UsageError("--watch is of a live cluster, --from of a dump. Leave one of them out.")
    from berth.app.cli.seeing import look as look_at

    snapshot = look_at(where)
    answers, notes = answers_of(snapshot, workload, namespace)
    if not answers:
        raise not_there(snapshot, where.dump, workload, namespace)
    frame = frame_of(answers, notes)
    emit(frame, output)
    sys.exit(frame.code)


def answers_of(snapshot: Snapshot, name: str, namespace: str | None) -> tuple[list[Answered], tuple[str, ...]]:
    """Everything of that name, else the first workloads whose pods something of that name owns; with notes."""
    from berth.scheduling.answer import why

    answers = why(snapshot, name, namespace)
    if answers:
        return answers, snapshot.notes
    keys = _owned(snapshot, name, namespace)
    answers = [answer for key in keys[:MOST_OF_AN_OWNER] for answer in why(snapshot, key, None)]
    notes = snapshot.notes
    if len(keys) > MOST_OF_AN_OWNER:
        notes = (f"{name} owns {len(keys):,} workloads; the first {MOST_OF_AN_OWNER} are answered", *notes)
    return answers, notes


def frame_of(answers: list[Answered], notes: tuple[str, ...]) -> Frame:
    """Answers that were worked out here."""
    from berth.app.cli.frames import Frame
    from berth.model.reasons import Answer
    from berth.views import verdicts

    return Frame(
        {"kind": "Why", "answers": [{**verdicts.record(a), "told": None} for a in answers], "notes": list(notes)},
        lambda screen, wide: verdicts.show(answers, screen),
        notes,
        0 if all(a.verdict.answer is Answer.Fits for a in answers) else 1,
    )


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


def not_there(snapshot: Snapshot, where: str, name: str, namespace: str | None) -> BadInput:
    """Nothing bears that name; what comes close to it."""
    from difflib import get_close_matches

    from berth.base.units import counted
    from berth.scheduling.answer import names_of

    names = [*names_of(snapshot), *(f"{o.namespace}/{o.name}" for o in snapshot.owners)]
    place = f" in namespace {namespace}" if namespace else ""
    problem = f"no workload or pod {name!r}{place}."
    close = get_close_matches(name, dict.fromkeys([n.rpartition("/")[2] for n in names] + names), 3, 0.6)
    if close:
        return BadInput(where, problem, f"Close to it: {', '.join(close)}.")
    return BadInput(where, problem, f"It holds {counted(len(names_of(snapshot)), 'workload')}.")
