"""`berth why` in a live cluster: the scheduler's own word first, else worked out from what may be seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from berth.app.cli.frames import Frame
from berth.app.cli.options import Where, now_s
from berth.app.cli.seeing import blind, read_all, snapshot
from berth.app.cli.words import mixed, said
from berth.app.cli.worked_out import answers_of, not_there
from berth.base.errors import BadInput
from berth.model.told import Told
from berth.sources.cluster import NODES, PODS, Missing, Reading, lacking
from berth.sources.leading import Leading, leading
from berth.sources.told import Answers, by_identity, verdicts

if TYPE_CHECKING:
    from berth.app.cli.live import Connection
    from berth.model.snapshot import Snapshot
    from berth.scheduling.answer import Answered

READERS = (
    "What the scheduler has said would be enough: the ClusterRole berth-view, made by the chart and by "
    "kubectl apply -k deploy/people, gives everybody with `view` the right to read it."
)


async def look(
    connection: Connection, where: Where, name: str, namespace: str | None, everywhere: bool, anew: bool
) -> Frame:
    """What is to be said of `name` in a namespace: the one named, else those that may be meant."""
    places = _places(connection, name, namespace, everywhere)
    told: dict[str, Answers] = {}
    if not anew:
        for place in places:
            told[place] = await verdicts(connection.client, connection.served, place)
            if found := told[place].called(name):
                return said(list(by_identity(found).values()), _lack(await _leading(connection)))
    reading = await read_all(connection)
    if unseen := reading.lacks(NODES, PODS):
        return await _in_part(connection, where, name, [p for p in places if p], told, unseen)
    made = snapshot(reading, where)
    # First where one stands, then wherever it is: a name is enough where there is but one of it.
    for place in (*places, *(() if namespace or everywhere else ("",))):
        answers, notes = answers_of(made, name, place or None)
        if answers:
            words = await _words(connection, answers, told, anew)
            waiting = [a for a in answers if not a.is_running]
            idle: tuple[str, ...] = ()
            if waiting:
                unread = [one.sentence for one in _unread(told)]
                notes = (*(f"{refused}; what follows is worked out here" for refused in unread[:1]), *notes)
                idle = _lack(await _leading(connection), {a.workload.scheduler for a in waiting})
            return mixed([_of_live(a, is_idle=bool(idle)) for a in answers], notes, words, idle)
    raise not_there(made, connection.access.server, name, namespace)


def _places(connection: Connection, name: str, namespace: str | None, everywhere: bool) -> tuple[str, ...]:
    """Namespaces in which `name` may be, the likeliest first; "" is all of them."""
    if everywhere:
        return ("",)
    if namespace:
        return (namespace,)
    first, slash, _ = name.partition("/")
    own = connection.access.namespace or "default"
    # `team-a/train` names a namespace, `job/train` a kind: both are looked for.
    return tuple(dict.fromkeys((own, first))) if slash else (own,)


async def _words(
    connection: Connection, answers: Sequence[Answered], told: dict[str, Answers], anew: bool
) -> dict[str, Told]:
    """The scheduler's word on workloads that were found by other names: a pod's, an owner's."""
    if anew:
        return {}
    for place in dict.fromkeys(a.workload.namespace for a in answers if not a.is_running):
        if place not in told and "" not in told:
            told[place] = await verdicts(connection.client, connection.served, place)
    return by_identity(one for every in told.values() for one in every.found)


def _unread(told: dict[str, Answers]) -> list[Missing]:
    """Rights that are lacking to see what the scheduler has said: that is another thing than its silence."""
    return [one.missing for one in told.values() if one.missing is not None]


async def _in_part(
    connection: Connection,
    where: Where,
    name: str,
    places: Sequence[str],
    told: dict[str, Answers],
    unseen: Sequence[Missing],
) -> Frame:
    """For whoever sees one namespace: what the scheduler has said there, and where pods run."""
    rights = list(unseen)
    seen: list[tuple[Reading, Snapshot]] = []
    for place in places:
        reading = await read_all(connection, place)
        if refused := reading.lacks(PODS):
            rights += [one for one in refused if one not in rights]
            continue
        made = snapshot(reading, where)
        seen.append((reading, made))
        # Without the nodes nothing can be worked out; what runs is on the pods themselves.
        running = [_of_live(a, blindly=True) for a in answers_of(changed(made, workloads=()), name, place)[0]]
        called, _ = answers_of(made, name, place)
        waiting = [a for a in called if not a.is_running]
        words = await _words(connection, waiting, told, anew=False)
        found = [words[a.workload.identity] for a in waiting if a.workload.identity in words]
        silent = [a.workload.key for a in waiting if a.workload.identity not in words]
        if silent and not found and not running:
            if refused := _unread(told):
                raise blind([*rights, *refused], READERS)
            raise blind(rights, f"The scheduler has said nothing of {silent[0]} yet; what it says is enough.")
        if found or running:
            note: tuple[str, ...] = ()
            if found:
                note = (f"{lacking(unseen)}. What is told here is what the scheduler has written",)
            if waiting:
                note += _lack(await _leading(connection), {a.workload.scheduler for a in waiting})
            if silent and (refused := _unread(told)):
                note += (f"what the scheduler has said of {', '.join(silent)} may not be read: {refused[0].sentence}",)
            else:
                note += tuple(f"the scheduler has said nothing of {key} yet" for key in silent)
            frame = mixed([*(a for a in waiting if a.workload.identity in words), *running], (), words)
            return Frame(frame.record, frame.draw, (*note, *frame.notes), frame.code, key=frame.key)
    if not seen:
        raise blind([*rights, *_unread(told)], "Name a namespace that you may see with -n.")
    place = " or ".join(places)
    raise BadInput(
        connection.access.server,
        f"no workload or pod {name!r} in namespace {place}, and no other may be seen.",
        "Name its namespace with -n.",
    )


async def _leading(connection: Connection) -> Leading:
    return await leading(connection.client, now_s())


def _lack(found: Leading, schedulers: Iterable[str] = ("",)) -> tuple[str, ...]:
    """A note where nobody leads who would place the pods of these schedulers; none where somebody does."""
    lack = found.lack(schedulers)
    return (lack,) if lack else ()


def _of_live(answer: Answered, blindly: bool = False, is_idle: bool = False) -> Answered:
    """Remarks in words for a live cluster. `blindly`: without those on nodes, which could not be seen. `is_idle`:
    nobody leads, so the scheduler knows nothing of it."""
    from dataclasses import replace

    remarks = tuple(r.replace("the dump", "the cluster") for r in answer.remarks if not (blindly and "dump" in r))
    if is_idle:
        remarks = tuple(r.partition(" If it stays pending, ")[0] for r in remarks)
    return replace(answer, remarks=remarks)
