"""`berth why`: why does this workload wait, or where does it run?"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from berth.app.cli.compiled import plain_unless_kept
from berth.app.cli.completing import workloads
from berth.app.cli.options import Where, all_namespaces, in_namespace, named, of_cluster, output, watch

if TYPE_CHECKING:
    from berth.app.cli.live import Connection


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
    understood, too. In a live cluster, and in a snapshot that a scheduler gave, its own verdict goes first, and it
    says how old it is; otherwise it is worked out here by the same rules. Pods of every scheduler are answered for,
    and it says whose rules apply.

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
    from berth.app.cli.seeing import look_with_words
    from berth.app.cli.words import mixed
    from berth.app.cli.worked_out import answers_of, not_there

    snapshot, words = look_with_words(where)
    answers, notes = answers_of(snapshot, workload, namespace)
    if not answers:
        raise not_there(snapshot, where.dump, workload, namespace)
    frame = mixed(answers, (), {} if anew else words, notes)
    emit(frame, output)
    sys.exit(frame.code)
