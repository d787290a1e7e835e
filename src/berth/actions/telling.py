"""What users see: each plan compared with what has been told, and what differs written, the most telling first.

For a workload that waits: its Verdict, then its group's status, then the condition of its pods, then an event. For
one that was placed: its Verdict goes, its group says so, one event. A write says what the latest plan says when
its turn comes; what was overtaken is never written. Nothing runs while there is nothing to tell.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec.structs import replace

from berth.actions import events
from berth.actions.adoption import left_by_others
from berth.actions.binding import Outcome, Result
from berth.actions.events import Event, Events
from berth.actions.evicting import Left, Promise
from berth.actions.fence import Fenced, Sender
from berth.actions.groups import GroupNotices
from berth.actions.notice import Notice
from berth.actions.outbox import IN_FLIGHT, Bucket, Lane, Outbox
from berth.actions.placing import Placing, World, placings
from berth.actions.pods import PodNotices, kept_nodes
from berth.actions.preempting import Departures
from berth.actions.queues import QueueStatuses
from berth.actions.reservation_status import ReservationStatuses
from berth.actions.subjects import PodKey, SubjectKey, group_path, key_of, shown_on
from berth.actions.verdict_notices import VerdictNotices
from berth.actions.verdicts import NOT_KNOWN, Moments, has_moved, places
from berth.actions.writing import Writing
from berth.dialects.conditions import State
from berth.kube.discover import Served
from berth.model.queue import Queue
from berth.model.reasons import Verdict
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload
from berth.scheduling.plan import Plan
from berth.scheduling.usage import HALF_LIFE_S

# The lanes, first to last.
VERDICT, CLEAR, GROUP, POD, REFRESH, QUEUE, EVENT = "verdict", "clear", "group", "pod", "refresh", "queue", "event"
RESERVATION = "reservation"
_PATIENCE_S = 0.2  # so old is a verdict that is written while binds are under way
_BURST_S = 30.0  # what can wait is not written into a burst of binds, unless it lasts that long
_GROUP_S = 5.0  # a Verdict goes after its group has been told, or when that takes longer


class Teller:
    """Tells of plans. `tell` and `heard` are called on the event loop and return at once; writes follow.

    `may_write` is asked before each write. While `busy` (binds are under way) only Verdicts are written that have
    stood for a while. `schedulers` are the names that we serve. `clock` is the event loop's; `now` is seconds
    since the epoch. `counts` has what was written, dropped and refused, for metrics. `used` is told
    what queues have used by now, of which half is forgotten in `half_life_s`.
    """

    def __init__(
        self,
        client: Sender,
        served: Served,
        *,
        may_write: Callable[[], bool] = lambda: True,
        busy: Callable[[], bool] = lambda: False,
        schedulers: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        instance: str = "",
        used: Callable[[Mapping[str, float], float], None] = lambda usage, at_s: None,
        half_life_s: float = HALF_LIFE_S,
        in_flight: int = IN_FLIGHT,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._client = client
        self._schedulers = frozenset(schedulers)
        self._clock = clock
        self._now = now
        fenced = Fenced(client, may_write)
        self._writing = Writing(fenced, served, self.counts)
        self._events = Events(fenced, instance or socket.gethostname())
        self._verdict_notices = VerdictNotices(self._writing, clock, now)
        self._groups = GroupNotices(self._writing, now)
        self._pods = PodNotices(self._writing, add=self._add_pod, clock=clock, now=now)
        self._queue_statuses = QueueStatuses(
            fenced, self.counts, changed=self._add_queue, clock=clock, now=now, used=used, half_life_s=half_life_s
        )
        self._reservation_statuses = ReservationStatuses(
            fenced, self.counts, changed=self._add_reservation, clock=clock, now=now
        )
        self._outbox = Outbox(
            [
                Lane(VERDICT, self._write_verdict, VERDICT, patience_s=_PATIENCE_S),
                Lane(CLEAR, self._clear, VERDICT),
                Lane(GROUP, self._write_group, GROUP),
                Lane(POD, self._pods.write, POD),
                Lane(REFRESH, self._write_verdict, VERDICT, yields_s=_BURST_S, bucket=Bucket(10.0, 50)),
                Lane(QUEUE, self._queue_statuses.write, QUEUE, yields_s=_BURST_S),
                Lane(RESERVATION, self._reservation_statuses.write, RESERVATION, yields_s=_BURST_S),
                Lane(EVENT, self._write_event, EVENT, yields_s=_BURST_S, bucket=Bucket(50.0, 200), most=1000,
                     is_lossy=True),
            ],
            may_write=may_write, busy=busy, clock=clock, counts=self.counts, in_flight=in_flight,
        )  # fmt: skip
        self._world: World | None = None
        self._notices: dict[SubjectKey, Notice] = {}
        self._placings: dict[PodKey, Placing] = {}
        self._departures = Departures()
        # The last plan, as far as it is compared with the next.
        self._is_first = True
        self._has_failed = False
        self._adopts = False
        self._came: tuple[Plan, Snapshot] | None = None
        self._waiting: list[Workload] = []
        self._verdicts: list[Verdict] = []
        self._queues: tuple[Queue, ...] = ()
        self._starts_s: dict[str, Moments] = {}  # by identity: as they were told, until they have moved enough
        self._turn = 0

    # ---- what the driver calls

    async def adopt(self) -> None:
        """Begin anew, with what earlier leaders have left in the cluster. At the beginning of a leadership.

        Plans that come meanwhile are told afterwards. What cannot be listed counts as absent: it is written again,
        which is right if more than need be.
        """
        self._outbox.forget()
        self._queue_statuses.forget()
        self._reservation_statuses.forget()
        self._notices.clear()
        self._placings.clear()
        self._departures.clear()
        self._is_first = self._adopts = True
        self._came = None
        left = await left_by_others(self._client, self._schedulers, self._writing.has_verdicts)
        for notice in left.notices:
            known = self._notices.setdefault(notice.key, notice)
            if known is not notice:  # placed while we looked around
                known.has_object, known.there = True, notice.there
                self._outbox.add(CLEAR, known.key)
        self._pods.adopt(left.pods)
        self._adopts = False
        if self._came is not None:
            self._tell(*self._came)
            self._came = None

    def serve(self, served: Served) -> None:
        """What the API server serves now: of a kind that has come all is told that was told without it."""
        had_verdicts, self._writing.served = self._writing.has_verdicts, served
        if self._writing.has_verdicts and not had_verdicts:
            for notice in self._notices.values():
                notice.told = None
                self._schedule(notice)
            self._outbox.kick()

    def tell(self, plan: Plan, snapshot: Snapshot, world: World) -> None:
        """The plan of a cycle, after its binds were handed over; also one that leaves nobody waiting."""
        self._world = self._pods.world = self._groups.world = world
        for placing in placings(plan, world):
            self._take_placing(placing)
        self._departures.take(plan, world)
        if self._adopts:
            self._came = (plan, snapshot)
        else:
            self._tell(plan, snapshot)

    def expect(self, starts_s: Mapping[str, Moments]) -> None:
        """When those that wait are expected to start (by identity: p10, p50, p90). Told with what else changes, at most
        as often as numbers are."""
        now_s, before = self._now(), self._starts_s
        self._starts_s = {
            identity: moments if has_moved(moments, before.get(identity, NOT_KNOWN), now_s) else before[identity]
            for identity, moments in starts_s.items()
        }
        for notice in self._notices.values():
            if notice.state is State.Waiting and notice.now is not None and notice.workload is not None:
                moments = self._starts_s.get(notice.workload.identity, NOT_KNOWN)
                notice.moved(replace(notice.now.place, starts_s=moments))
                if not notice.is_listed:
                    self._schedule(notice)
        self._outbox.kick()

    def _tell(self, plan: Plan, snapshot: Snapshot) -> None:
        waiting = [plan.workloads[i] for i in plan.verdicts]
        said = list(plan.verdicts.values())
        if self._has_changed(waiting, said, snapshot.queues):
            self._take_waiting(waiting, said, snapshot, self._clock())
            self._waiting, self._verdicts, self._queues = waiting, said, snapshot.queues
        holds = {hold.workload: hold for hold in (*snapshot.holds, *plan.holds)}
        self._pods.keep(kept_nodes(holds.values(), waiting), snapshot.now_s)
        if self._is_first:
            self._pods.confirm()
        self._is_first = self._has_failed = False
        if snapshot.queues and self._writing.served.has("berth.dev", "gpuqueues"):
            self._queue_statuses.take(snapshot, waiting, plan.due)
        if snapshot.bookings and self._writing.served.has("berth.dev", "gpureservations"):
            self._reservation_statuses.take(plan.bookings, snapshot)
        self._outbox.kick()

    def heard(self, outcome: Outcome) -> None:
        """What became of a bind."""
        placing = self._placings.pop(outcome.order.key, None)
        if placing is None:
            return
        placing.left -= 1
        if outcome.result is Result.Bound:
            self._pods.bound(outcome.order.key)
        else:
            placing.has_failed = True
        if not placing.left:
            self._finish(placing)
            self._outbox.kick_soon()

    def promising(self, promise: Promise) -> None:
        """The node that is kept for a pod is being written on it, before others are asked to leave."""
        self._pods.promising(promise.key, promise.uid, promise.node)

    def promised(self, promise: Promise, is_written: bool) -> None:
        """What became of that."""
        self._pods.promised(promise.key, promise.uid, promise.node, is_written)
        self._outbox.kick_soon()

    def asked_to_leave(self, left: Left) -> None:
        """What became of an eviction: an event on the victim, and on its Verdict once it waits again."""
        departure = self._departures.answered(left.leave.key, left.is_leaving)
        if departure is not None:
            self._verdict_notices.remember(departure)
            self._outbox.add(EVENT, departure.event())
            self._outbox.kick()

    @property
    def pending(self) -> int:
        """Writes that could go now, or are under way."""
        return self._outbox.pending

    async def idle(self) -> None:
        """Return once all that could be told has been; what is due later is not waited for."""
        await self._outbox.idle()

    async def run(self) -> None:
        """Until cancelled. Writes are started by what is told: there is nothing to do in between."""
        await asyncio.Event().wait()

    async def close(self, drain_s: float = 0.0) -> None:
        """Write what is pending for `drain_s` seconds at most, then stop."""
        await self._queue_statuses.close()
        self._reservation_statuses.close()
        await self._outbox.close(drain_s)

    # ---- what a plan says

    def _has_changed(self, waiting: list[Workload], said: list[Verdict], queues: tuple[Queue, ...]) -> bool:
        """Not often between two plans: what waits is the same objects, and their verdicts are equal."""
        if self._is_first or self._has_failed:
            return True
        return waiting != self._waiting or said != self._verdicts or queues != self._queues

    def _take_waiting(self, waiting: list[Workload], said: list[Verdict], snapshot: Snapshot, now: float) -> None:
        self._turn += 1
        for workload, verdict, place in zip(
            waiting, said, places(waiting, snapshot.queues, self._starts_s), strict=True
        ):
            key = key_of(workload)
            notice = self._notices.get(key)
            if notice is None:
                notice = self._notices[key] = Notice(key)
            known = notice.workload
            notice.turn = self._turn
            if known is workload and notice.now is not None and notice.now.verdict == verdict:
                notice.moved(place)  # most of them, each time
                if not notice.is_listed:
                    self._schedule(notice)
                continue
            notice.take(workload, verdict, place, now, snapshot.now_s)
            self._schedule(notice)
            if known is not None and known is not workload:
                self._pods.forget(known, workload)
                if not notice.is_news:
                    self._tell_the_rest(notice)
        for notice in list(self._notices.values()):
            if notice.turn != self._turn and not notice.is_binding:
                self._end(notice, State.Gone)

    def _take_placing(self, placing: Placing) -> None:
        for key in placing.pods:
            self._placings[key] = placing
        notice = self._notices.get(placing.key)
        if notice is not None:
            notice.is_binding = True

    def _finish(self, placing: Placing) -> None:
        """All binds of a workload have been answered."""
        notice = self._notices.get(placing.key)
        if notice is not None:
            notice.is_binding = False
        if placing.has_failed:
            self._has_failed = True  # its pods wait again, or are gone: the next plan says
            return
        self._outbox.add(EVENT, events.placed(placing.shown_on, placing.sentence))
        if findings := placing.workload.findings:
            self._outbox.add(EVENT, events.doubtful(placing.shown_on, findings))
        is_grouped = bool(group_path(placing.workload))
        if notice is None:
            if not is_grouped:
                return
            notice = self._notices[placing.key] = Notice(placing.key)
        notice.workload = notice.workload or placing.workload
        if is_grouped:
            notice.placed = self._groups.placed(placing)
            self._outbox.add(GROUP, notice.key)
        if notice.turn != self._turn or notice.now is None:  # else a part of it waits still
            self._end(notice, State.Placed)

    def _end(self, notice: Notice, state: State) -> None:
        """It waits no more. The Verdict goes last: by it the next leader knows what is still to be told."""
        if notice.state is State.Placed and state is State.Gone:
            return
        notice.state, notice.now = state, None
        if notice.workload is None:
            return
        self._pods.forget(notice.workload)
        is_grouped = bool(group_path(notice.workload))
        if is_grouped and notice.there is not None and notice.placed is None:
            notice.placed = self._groups.placed_before(notice)
        if is_grouped and notice.owes_group:
            self._outbox.add(GROUP, notice.key)
            self._outbox.add(CLEAR, notice.key, self._clock() + _GROUP_S)
        else:
            self._outbox.add(CLEAR, notice.key)

    # ---- what follows from it

    def _schedule(self, notice: Notice) -> None:
        """Put a Verdict that differs from what was told into its lane."""
        if notice.state is not State.Waiting or notice.is_told:
            return
        notice.is_listed = True
        if notice.is_news:
            self._outbox.add(VERDICT, notice.key, notice.due_s)
        else:
            self._outbox.add(REFRESH, notice.key, notice.refresh_s)

    def _tell_the_rest(self, notice: Notice) -> None:
        """After the Verdict: the group, the pods, the event."""
        told, workload = notice.told, notice.workload
        if told is None or workload is None or notice.state is not State.Waiting or told.uid != workload.uid:
            return
        if notice.group_told != (State.Waiting, told.verdict.message) and group_path(workload):
            self._outbox.add(GROUP, notice.key)
        self._pods.tell(workload, told.verdict, told.code)
        if notice.event_code != told.code:
            notice.event_code = told.code
            self._outbox.add(EVENT, (notice.key, told.code))

    def _add_pod(self, item: Any, due_s: float) -> None:
        self._outbox.add(POD, item, due_s)

    def _add_queue(self, name: str) -> None:
        self._outbox.add(QUEUE, name)
        self._outbox.kick()

    def _add_reservation(self, name: str) -> None:
        self._outbox.add(RESERVATION, name)
        self._outbox.kick()

    # ---- the lanes

    async def _write_verdict(self, item: Any) -> None:
        notice = self._notices.get(item)
        if notice is None or notice.state is not State.Waiting or notice.now is None or notice.workload is None:
            return
        notice.is_listed = False
        now = self._clock()
        due_s = notice.due_s if notice.is_news else max(notice.due_s, notice.refresh_s)
        if due_s > now:
            self._schedule(notice)
            return
        await self._verdict_notices.write(notice)
        self._tell_the_rest(notice)
        self._schedule(notice)

    async def _clear(self, item: Any) -> None:
        """Take the Verdict of a workload away that waits no more; then nothing is known of it."""
        notice = self._notices.get(item)
        if notice is None or notice.state is State.Waiting:
            return
        await self._verdict_notices.remove(notice)
        if notice.now is not None:  # it has come again meanwhile
            self._schedule(notice)
        self._drop(notice)

    async def _write_group(self, item: Any) -> None:
        notice = self._notices.get(item)
        if notice is None:
            return
        await self._groups.write(notice)
        if notice.state is not State.Waiting:
            if notice.has_object:
                self._outbox.add(CLEAR, item)
            self._drop(notice)

    def _drop(self, notice: Notice) -> None:
        if notice.is_over and self._notices.get(notice.key) is notice:
            del self._notices[notice.key]

    async def _write_event(self, item: Any) -> None:
        event = item if isinstance(item, Event) else self._waiting_event(*item)
        if event is not None:
            await self._events.write(event, self._now())
            self.counts["events_written"] += 1

    def _waiting_event(self, key: SubjectKey, code: str) -> Event | None:
        """The event, if its reason still stands."""
        notice, world = self._notices.get(key), self._world
        if notice is None or notice.now is None or notice.now.code != code:
            return None
        if notice.workload is None or world is None or (on := shown_on(notice.workload, world)) is None:
            return None
        return events.waiting(on, notice.now.verdict)
