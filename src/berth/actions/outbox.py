"""What is still to be written, in lanes: which is next, how many at a time, and when.

Nothing runs while there is nothing to write: work is started by whoever adds to it, by a write that ends, and by
one timer for the earliest moment at which something becomes due.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from berth.actions.fence import Withdrawn
from berth.actions.refused import Refused
from berth.kube.errors import ApiError

log = logging.getLogger("berth.telling")

Item = Any  # hashable
IN_FLIGHT = 32
_LED_S = 1.0  # between two looks whether we lead again
_LOOK_S = 0.02  # between two looks whether the binds are through, while something waits for that
_WHILE_BUSY = 4  # writes at a time while binds are under way
_BUSY_S = (0.5, 10.0)  # pauses, first and longest, after writes that a busy server did not take
_REFUSED_S = (60.0, 900.0)  # and after those that it refused
_FORBIDDEN = 8  # in a row close their lane for a while: a right is missing, not one object's namespace


class Bucket:
    """So many per second, and a burst of so many."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        self._tokens, self._at_s = float(burst), float("-inf")

    def wait_s(self, now: float) -> float:
        """How long until one may go."""
        if now > self._at_s:
            self._tokens = min(self._burst, self._tokens + (now - max(self._at_s, now - 1e6)) * self._rate)
            self._at_s = now
        return max(0.0, (1.0 - self._tokens) / self._rate)

    def take(self) -> None:
        self._tokens -= 1.0


@dataclass
class Lane:
    """Items of one kind. `write` sends one; of a `slot` one item is under way at a time, whatever its lane.

    `patience_s`: while binds are under way an item goes only once it is that old; None: it waits for the binds, but
    for `yields_s` at most, since a cluster that never stops binding is told things, too. `most`: where more wait,
    the oldest is dropped. `is_lossy`: what is refused is not tried again.
    """

    name: str
    write: Callable[[Item], Awaitable[None]]
    slot: str
    patience_s: float | None = None
    yields_s: float = 3.0
    bucket: Bucket | None = None
    most: int = 0
    is_lossy: bool = False
    ready: OrderedDict[Item, float] = field(default_factory=OrderedDict)  # with the moment it was added
    due: dict[Item, float] = field(default_factory=dict)
    closed_until: float = 0.0
    forbidden: int = 0  # in a row


class Outbox:
    """Lanes in the order in which they are served."""

    def __init__(
        self,
        lanes: list[Lane],
        *,
        may_write: Callable[[], bool],
        busy: Callable[[], bool],
        clock: Callable[[], float],
        counts: Counter[str],
        in_flight: int = IN_FLIGHT,
    ) -> None:
        self._lanes = lanes
        self._by_name = {lane.name: lane for lane in lanes}
        self._may_write = may_write
        self._busy = busy
        self._clock = clock
        self._in_flight = in_flight
        self._later: list[tuple[float, int, Lane, Item]] = []
        self._order = itertools.count()
        self._flying: set[tuple[str, Item]] = set()
        self._again: dict[tuple[str, Item], list[Lane]] = {}
        self._failures: dict[tuple[str, Item], tuple[int, float]] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = 0.0
        self._blocked_since: float | None = None
        self._has_more = False
        self._soon: asyncio.Handle | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False
        self._refused = Refused(clock)
        self.counts = counts

    # ---- filling it

    def add(self, lane_name: str, item: Item, due_s: float = 0.0) -> None:
        """Write the item once `due_s` (the clock's) has come; a later call says when anew. `kick` starts it."""
        lane = self._by_name[lane_name]
        now = self._clock()
        failed = self._failures.get((lane.slot, item))
        due = max(due_s, failed[1] if failed else 0.0)
        if due > now:
            lane.ready.pop(item, None)
            if lane.due.get(item) != due:
                lane.due[item] = due
                heapq.heappush(self._later, (due, next(self._order), lane, item))
            return
        lane.due.pop(item, None)
        self._idle.clear()
        self._has_more = True
        if item not in lane.ready:
            lane.ready[item] = now
            if lane.most and len(lane.ready) > lane.most:
                lane.ready.popitem(last=False)
                self.counts[f"{lane.name}_dropped"] += 1

    def forget(self) -> None:
        """Drop all that is not under way."""
        for lane in self._lanes:
            lane.ready.clear()
            lane.due.clear()
            lane.closed_until = 0.0
        self._later.clear()
        self._again.clear()
        self._failures.clear()

    @property
    def pending(self) -> int:
        """Items that could go now, or are under way."""
        return len(self._flying) + sum(len(lane.ready) for lane in self._lanes)

    async def idle(self) -> None:
        """Return once nothing is under way and nothing could go."""
        await self._idle.wait()

    async def close(self, drain_s: float = 0.0) -> None:
        self.kick()
        if drain_s and self._may_write():
            with suppress(TimeoutError):
                async with asyncio.timeout(drain_s):
                    await self._idle.wait()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._refused.close()

    # ---- emptying it

    def kick(self) -> None:
        """Start what can go now."""
        if self._closed:
            return
        now = self._clock()
        self._ripen(now)
        self._start(now)
        self._settle(now)
        self._arm(now)

    def kick_soon(self) -> None:
        """The same once all that happens now has happened: for callers that come by the thousand."""
        if self._timer is not None and self._timer_s - self._clock() <= _LOOK_S:
            return
        if self._soon is None and not self._closed:
            self._soon = asyncio.get_running_loop().call_soon(self._kicked_soon)

    def _kicked_soon(self) -> None:
        self._soon = None
        self.kick()

    def _start(self, now: float) -> None:
        self._has_more = False
        while len(self._flying) < self._in_flight and (found := self._next(now)) is not None:
            worker = asyncio.get_running_loop().create_task(self._work(*found))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def _ripen(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            due, _, lane, item = heapq.heappop(self._later)
            if lane.due.get(item) == due:
                del lane.due[item]
                lane.ready.setdefault(item, now)
                self._idle.clear()

    def _next(self, now: float) -> tuple[Lane, Item] | None:
        if not any(lane.ready for lane in self._lanes):
            self._blocked_since = None
            return None
        if not self._may_write():
            return None
        busy_s = self._busy_s(now)
        if busy_s is not None and len(self._flying) >= _WHILE_BUSY:
            return None
        for lane in self._lanes:
            if now < lane.closed_until or (lane.bucket and lane.ready and lane.bucket.wait_s(now) > 0.0):
                continue
            yields = busy_s is not None and busy_s < lane.yields_s
            while lane.ready:
                item, since = next(iter(lane.ready.items()))
                if yields and (lane.patience_s is None or now - since < lane.patience_s):
                    break
                lane.ready.popitem(last=False)
                slot = (lane.slot, item)
                if slot in self._flying:
                    waiting = self._again.setdefault(slot, [])
                    if lane not in waiting:
                        waiting.append(lane)
                    continue
                self._flying.add(slot)
                if lane.bucket:
                    lane.bucket.take()
                return lane, item
        return None

    def _busy_s(self, now: float) -> float | None:
        """How long binds have been waited for; None where none is under way."""
        if not self._busy():
            self._blocked_since = None
            return None
        if self._blocked_since is None:
            self._blocked_since = now
        return now - self._blocked_since

    async def _work(self, lane: Lane, item: Item) -> None:
        """Write one item, then others, as long as there are any."""
        found: tuple[Lane, Item] | None = (lane, item)
        while found is not None:
            lane, item = found
            slot = (lane.slot, item)
            try:
                await lane.write(item)
            except Withdrawn:
                self.counts["withdrawn"] += 1
                self.add(lane.name, item)  # we may lead on in a moment; another leadership begins with `forget`
            except ApiError as error:
                self._failed(lane, item, error)
            except Exception:
                log.exception("a write failed", extra={"lane": lane.name, "item": str(item)})
                self.counts["failed"] += 1
            else:
                self._failures.pop(slot, None)
                lane.forbidden = 0
            finally:
                self._flying.discard(slot)
            for one in self._again.pop(slot, ()):
                self.add(one.name, item)
            now = self._clock()
            self._ripen(now)
            found = self._next(now)
            if self._has_more:  # what was written has led to more than one worker can do
                self._start(now)
        now = self._clock()
        self._settle(now)
        self._arm(now)

    def _failed(self, lane: Lane, item: Item, error: ApiError) -> None:
        """Try again later: soon where the server may just be busy, in a minute where it said no."""
        self.counts["failed"] += 1
        now, slot = self._clock(), (lane.slot, item)
        tries = self._failures.get(slot, (0, 0.0))[0] + 1
        is_passing = error.is_retriable or error.is_conflict
        first, longest = _BUSY_S if is_passing else _REFUSED_S
        pause = max(min(first * 2 ** min(tries - 1, 16), longest), error.retry_after_s or 0.0)
        self._refused.take(lane.name, item, error)
        lane.forbidden = lane.forbidden + 1 if error.is_no_right or error.is_unauthorized else 0
        if lane.forbidden >= _FORBIDDEN:
            log.warning("no right to write", extra={"lane": lane.name, "said": error.message})
            lane.forbidden, lane.closed_until = 0, now + _REFUSED_S[0]
        if lane.is_lossy and not is_passing:
            self.counts[f"{lane.name}_dropped"] += 1
            return
        self._failures[slot] = (tries, now + pause)
        self.add(lane.name, item)

    def _settle(self, now: float) -> None:
        if not self._flying and not any(lane.ready and now >= lane.closed_until for lane in self._lanes):
            self._idle.set()

    def _arm(self, now: float) -> None:
        """One timer for the next moment at which something can go that cannot go now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._closed or len(self._flying) >= self._in_flight:
            return
        if not self._may_write():
            if any(lane.ready for lane in self._lanes):
                self._timer_s = now + _LED_S
                self._timer = asyncio.get_running_loop().call_later(_LED_S, self._kicked)
            return
        moments = []
        while self._later and self._later[0][2].due.get(self._later[0][3]) != self._later[0][0]:
            heapq.heappop(self._later)
        if self._later:
            moments.append(self._later[0][0])
        for lane in self._lanes:
            if lane.ready:
                wait_s = lane.bucket.wait_s(now) if lane.bucket else 0.0
                moments.append(max(now + max(_LOOK_S, wait_s), lane.closed_until))
        if not moments:
            return
        self._timer_s = min(moments)
        self._timer = asyncio.get_running_loop().call_later(max(0.0, self._timer_s - now), self._kicked)

    def _kicked(self) -> None:
        self._timer = None
        self.kick()
