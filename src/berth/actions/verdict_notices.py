"""The Verdict objects: written where they say something else than the latest plan, removed where nobody waits."""

from __future__ import annotations

from collections.abc import Callable

from berth.actions import verdicts
from berth.actions.notice import Notice, Said
from berth.actions.preempting import Departure
from berth.actions.subjects import SubjectKey, object_of, stamp
from berth.actions.verdicts import Place
from berth.actions.writing import Writing
from berth.kube import wire_verdict as wire
from berth.model.workload import Workload

_EVICTIONS = 4096  # remembered, for the Verdicts of workloads that wait again
_UNKNOWN = Place("", 0, -1)  # numbers that differ from all others


class VerdictNotices:
    """`clock` is the event loop's; `now` is seconds since the epoch."""

    def __init__(self, writing: Writing, clock: Callable[[], float], now: Callable[[], float]) -> None:
        self._writing = writing
        self._clock = clock
        self._now = now
        self._evicted: dict[SubjectKey, wire.Eviction] = {}

    def remember(self, departure: Departure) -> None:
        """Pods were asked to leave: the Verdict of their workload says so once it waits again."""
        self._evicted.pop(departure.victim, None)
        self._evicted[departure.victim] = departure.as_eviction(stamp(self._now()))
        if len(self._evicted) > _EVICTIONS:
            del self._evicted[next(iter(self._evicted))]

    async def write(self, notice: Notice) -> None:
        """Make it say what the latest plan says. Raises ApiError, Withdrawn."""
        said, workload = notice.now, notice.workload
        if said is None or workload is None or said == notice.told:
            return
        # Without the kind the rest is told all the same.
        if self._writing.has_verdicts:
            said = await self._say(notice, workload, said)
        notice.told, notice.written_s = said, self._clock()

    async def remove(self, notice: Notice) -> None:
        """Its workload waits no more. Raises ApiError, Withdrawn."""
        if notice.has_object:
            await self._writing.remove_verdict(notice.key[1], verdicts.name_of(notice.key))
        notice.has_object, notice.there, notice.told = False, None, None

    async def _say(self, notice: Notice, workload: Workload, said: Said) -> Said:
        """One write; what the Verdict says then. Where an earlier leader said nearly the same, it can wait."""
        there = notice.there
        evicted = self._evicted.get(notice.key) or (there.last_eviction if there is not None else None)
        if there is not None and there.reason == said.code:
            notice.event_code = said.code
            notice.since_s = verdicts.moment(there.since) or notice.since_s
        body = verdicts.said_of(workload, said.verdict, said.place, notice.since_s, self._now(), evicted)
        if evicted is not None:
            self._evicted.setdefault(notice.key, evicted)
        notice.there = None
        if there is None or verdicts.news(body, there):
            # Before the answer: until it has come, and where none comes, it may be there and say this or that.
            before, notice.has_object, notice.told = notice.has_object, True, None
            await self._writing.write_verdict(notice.key, body, object_of(workload), before)
        elif verdicts.differs(body, there):
            said = Said.of(workload, said.verdict, _UNKNOWN)
        return said
