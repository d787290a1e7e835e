"""`berth queue`: who waits where, in which order, and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from berth.app.cli.compiled import plain_unless_kept
from berth.app.cli.completing import queues
from berth.app.cli.options import Where, all_namespaces, in_namespace, named, now_s, of_cluster, output, watch
from berth.base.errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console

    from berth.app.cli.frames import Frame
    from berth.app.cli.live import Connection
    from berth.model.booking import Booking
    from berth.model.queue import Queue
    from berth.model.snapshot import Snapshot
    from berth.model.told import Told
    from berth.scheduling.lines import QueueLine
    from berth.sources.told import Answers
    from berth.views.queues import Waiting


@click.command()
@click.argument("name", required=False, callback=named, shell_complete=queues)
@of_cluster
@in_namespace
@all_namespaces
@watch
@click.option(
    "--preset",
    type=click.Choice(("interactive", "serving", "batch")),
    help="Print a GPUQueue to begin with, called NAME or as the preset is. Nothing is looked at.",
)
@output("table", "wide", "json", "yaml", "name", "csv")
def queue(
    name: str | None,
    where: Where,
    namespace: str | None,
    everywhere: bool,
    watch: bool,
    preset: str | None,
    output: str,
) -> None:
    """Queues with what they use, and the workloads that wait, in the order in which they are decided.

    NAME is a queue: its policy, the queues below it, and all that waits in them, whatever the namespace. A verdict is
    the scheduler's own where it has written one, else worked out here by the same rules.
    """
    if preset is not None:
        from berth.app.cli import presets

        if output not in ("table", "yaml"):
            raise click.UsageError(f"--preset prints a manifest, which is YAML: -o {output} is for what is looked at.")
        click.echo(presets.preset(preset, name or preset), nl=False)
        return
    plain_unless_kept()
    from berth.app.cli.frames import again, emit

    if everywhere and namespace:
        raise click.UsageError("-A is all namespaces, -n one of them. Leave one of them out.")
    if where.dump is not None:
        if watch:
            raise click.UsageError("--watch is of a live cluster, --from of a dump. Leave one of them out.")
        from berth.app.cli.seeing import look_with_words

        snapshot, words = look_with_words(where)
        stated = snapshot.queues, snapshot.bookings, snapshot.now_s
        frame = _frame(name, namespace, _seen(snapshot, words), snapshot.notes, where.dump, stated)
        emit(frame, output)
        return
    from berth.app.cli.live import ask

    async def work(connection: Connection) -> None:
        chosen = None if everywhere or name else namespace or connection.access.namespace
        look = partial(_live, connection, where, name, chosen)
        if watch:
            await again(look, output)
        else:
            emit(await look(), output)

    ask(where, work)


async def _live(connection: Connection, where: Where, name: str | None, namespace: str | None) -> Frame:
    """The whole cluster where it may be seen, else what the scheduler has said in one namespace."""
    from berth.app.cli.seeing import absent, blind, read_all, snapshot
    from berth.sources.cluster import NODES, PODS, lacking
    from berth.sources.leading import leading
    from berth.sources.told import by_identity, verdicts

    client, served = connection.client, connection.served
    who = await leading(client, now_s())
    answers = await verdicts(client, served)
    reading = await read_all(connection)
    server = connection.access.server
    if unseen := reading.lacks(NODES, PODS):
        own = namespace or connection.access.namespace
        told = answers if answers.missing is None and answers.is_served else await verdicts(client, served, own)
        if told.missing is not None:
            raise blind((*unseen, told.missing))
        if not told.is_served:
            raise blind(unseen, "Where the scheduler wrote verdicts (the kinds of berth.dev), those of your namespace "
                        "would do.")  # fmt: skip
        seen = await _told(connection, told)
        notes: tuple[str, ...] = (f"{lacking(unseen)}. What follows is what the scheduler has written",)
        if namespace is None and answers.missing is not None:
            notes += (f"only namespace {own}: {answers.missing.sentence}",)
        if seen[1] and (lack := who.lack()):
            notes += (lack,)
        return _frame(name, namespace, seen[:2], notes, server, (seen[2], (), now_s()))
    made = snapshot(reading, where)
    notes = made.notes
    if namespace is not None and not any(w.namespace == namespace for w in made.workloads):
        notes = (*await absent(connection, (namespace,)), *notes)
    if answers.missing is not None:
        notes = (*notes, f"{answers.missing.sentence}; every verdict is worked out here")
    if lack := who.lack({w.scheduler for w in made.workloads}):
        notes = (*notes, lack)
    stated = made.queues, made.bookings, made.now_s
    return _frame(name, namespace, _seen(made, by_identity(answers.found)), notes, server, stated)


def _seen(snapshot: Snapshot, told: dict[str, Told]) -> tuple[Sequence[QueueLine], list[Waiting]]:
    """Queues and those that wait, in order, of a cluster that was seen whole."""
    from berth.scheduling.cycle import cycle
    from berth.scheduling.lines import lines_of
    from berth.scheduling.policy import Policy
    from berth.scheduling.starts_watch import Watch
    from berth.views.queues import ahead_by_owner, computed, said

    queues, inline = lines_of(snapshot)
    words = [told.get(line.workload.identity) for line in inline]
    plan = starts = None
    if any(word is None or not word.starts_s[1] for word in words):
        plan = cycle(snapshot, Policy(evicts=False))
        starts = Watch(Policy(evicts=False)).look(snapshot, plan)
    waiting = []
    for line, word, ahead_of in zip(inline, words, ahead_by_owner(inline), strict=True):
        start = starts.get(line.index) if starts is not None else None
        is_it = word is not None and (not word.uid or not line.workload.uid or word.uid == line.workload.uid)
        if word is not None and is_it:
            waiting.append(said(word, line, start, ahead_of))
        else:
            verdict = plan.verdicts.get(line.index) if plan is not None else None
            waiting.append(computed(line, verdict, snapshot.now_s, start, ahead_of))
    # By the places that are shown: among equals the scheduler goes by the order in which it came to know them, which
    # nobody else can see.
    waiting.sort(key=lambda w: sys.maxsize if w.ahead is None else w.ahead)
    return queues, waiting


async def _told(
    connection: Connection, answers: Answers
) -> tuple[Sequence[QueueLine], list[Waiting], tuple[Queue, ...]]:
    """The same by what the scheduler has written alone."""
    from berth.sources.told import by_identity
    from berth.sources.told_queues import queues
    from berth.views.queues import said

    known, stated = await queues(connection.client, connection.served)
    waiting = [said(one) for one in by_identity(answers.found).values()]
    waiting.sort(key=lambda w: (w.queue, w.position or sys.maxsize, w.ahead or 0, w.key))
    return known, waiting, stated


def _frame(
    name: str | None,
    namespace: str | None,
    seen: tuple[Sequence[QueueLine], list[Waiting]],
    notes: tuple[str, ...],
    where: str,
    stated: tuple[Sequence[Queue], Sequence[Booking], float],
) -> Frame:
    """`stated` are the queues and reservations that are objects, and the moment of which they are told."""
    from berth.app.cli.frames import Frame
    from berth.views import queue_policy
    from berth.views import queues as view

    queues, waiting = seen
    if name is not None:
        queues = _below(queues, name)
        wanted = {q.name for q in queues} | {name}
        waiting = [w for w in waiting if w.queue in wanted]
        if not queues and not waiting:
            raise _unknown(name, seen, where)
    if namespace is not None:
        waiting = [w for w in waiting if w.key.partition("/")[0] == namespace]
        if not waiting:
            notes = (*notes, f"nothing waits in namespace {namespace}")
    elif not waiting:
        notes = (*notes, "nothing waits")
    moment = now_s()
    record = view.record(queues, waiting, notes)
    policy = None
    if name is not None:
        policy = queue_policy.policy_of(name, stated[0], queues, waiting, stated[1], stated[2])
        record["policy"] = queue_policy.record(policy, stated[2])
        csv = view.waiting_csv(waiting)
        names = "".join(f"{w.key}\n" for w in waiting)
    else:
        csv = view.queues_csv(queues)
        names = "".join(f"gpuqueue.berth.dev/{q.name}\n" for q in queues if q.is_object)
    still = [{**view.waiting_record(w), "at": None} for w in waiting]

    def draw(screen: Console, wide: bool) -> None:
        if policy is not None:
            queue_policy.show(policy, screen, stated[2])
            screen.print()
        view.show(queues, waiting, screen, moment, wide)

    return Frame(
        record, draw, notes,
        csv=csv, names=names, key=(record["queues"], still),
    )  # fmt: skip


def _below(queues: Sequence[QueueLine], name: str) -> list[QueueLine]:
    """The queue of that name and all below it."""
    found: list[QueueLine] = []
    inside: set[str] = set()
    for q in queues:  # parents come before their children
        if q.name == name or q.parent in inside:
            inside.add(q.name)
            found.append(q)
    return found


def _unknown(name: str, seen: tuple[Sequence[QueueLine], list[Waiting]], where: str) -> BadInput:
    from difflib import get_close_matches

    names = [*(q.name for q in seen[0]), *(w.queue for w in seen[1])]
    close = get_close_matches(name, dict.fromkeys(names), 3, 0.6)
    remedy = f"Close to it: {', '.join(close)}." if close else f"Queues: {', '.join(dict.fromkeys(names)) or 'none'}."
    return BadInput(where, f"no queue {name!r}.", remedy)
