"""Bookings: capacity that people keep for a queue or a workload, now or in windows of time.

A hold (hold.py) is made by a decision and ends with it; a booking is made by people, and stands until they end it.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Struct

from berth.model.queue import ANY_CLASS

DAY = timedelta(days=1)
LAST_S = datetime(9999, 1, 1, tzinfo=UTC).timestamp()  # no clock goes on much longer
WEEK = 7
FOR_EVER = float("inf")


class Repeat(Struct, frozen=True, gc=False):
    """The same hours of some days of the week, by the clock on the wall of a time zone."""

    days: tuple[int, ...] = ()  # 0 is Monday; () every day
    start_min: int = 0  # minutes since midnight
    end_min: int = 24 * 60  # where it is not after the start it is of the next day
    zone: str = "UTC"


class Window(Struct, frozen=True, gc=False):
    """From `opens_s` to `closes_s`, seconds since the epoch; without an end it closes at infinity."""

    opens_s: float
    closes_s: float


class Share(Struct, frozen=True, gc=False):
    """So many GPUs of a node, with as much of everything else there as falls to them; 0: the whole node."""

    node: str
    gpus: int = 0


class Booking(Struct, frozen=True, gc=False):
    """Capacity for those who are paid for by `queue` or a queue below it, or for one workload.

    What: nodes by name, or a domain of a level whole, or so many GPUs of a class (within the domain, where both are
    stated). `shares` are where the GPUs were last: they stay there as long as they can.
    """

    name: str
    queue: str = ""
    workload: str = ""  # as people name it, `team-a/train`
    workload_kind: str = ""  # "" for any of that name
    nodes: tuple[str, ...] = ()
    level: str = ""  # a level's name or its label
    domain: str = ""
    gpu_class: str = ANY_CLASS
    gpus: int = 0
    from_s: float = 0.0
    until_s: float = FOR_EVER
    repeat: Repeat | None = None
    shares: tuple[Share, ...] = ()

    def window(self, now_s: float) -> Window | None:
        """The window that is open, else the next; None where none will open any more."""
        if self.repeat is None:
            return Window(self.from_s, self.until_s) if now_s < self.until_s else None
        at_s = max(now_s, self.from_s)
        if at_s >= min(self.until_s, LAST_S):
            return None
        zone = zone_of(self.repeat.zone)
        first = datetime.fromtimestamp(at_s, zone).date() - DAY  # of yesterday's the end may be today
        for days in range(WEEK + 3):
            day = first + days * DAY
            if self.repeat.days and day.weekday() not in self.repeat.days:
                continue
            start, end = self.repeat.start_min, self.repeat.end_min
            opens_s = max(_at(day, start, zone), self.from_s)
            closes_s = min(_at(day, end if end > start else end + 24 * 60, zone), self.until_s)
            if at_s < closes_s and opens_s < closes_s:
                return Window(opens_s, closes_s)
            if opens_s >= self.until_s:
                return None
        return None


class Standing(Struct, frozen=True, gc=False):
    """How a booking stands after a decision, in GPUs: `gpus` booked on `shares`, `held` of them free or with members,
    `used` by members. The moments are those of the window that is open or opens next."""

    name: str
    shares: tuple[Share, ...]
    opens_s: float
    closes_s: float
    is_open: bool
    gpus: int = 0
    held: int = 0
    used: int = 0


def stood(bookings: tuple[Booking, ...], standings: tuple[Standing, ...]) -> tuple[Booking, ...]:
    """The bookings, each where a decision has it."""
    shares = {one.name: one.shares for one in standings}
    return tuple(msgspec.structs.replace(b, shares=shares.get(b.name, b.shares)) for b in bookings)


def next_change_s(bookings: tuple[Booking, ...], now_s: float) -> float:
    """When the first window opens or closes after `now_s`; infinity where none does."""
    windows = [window for one in bookings if (window := one.window(now_s)) is not None]
    return min((w.opens_s if w.opens_s > now_s else w.closes_s for w in windows), default=FOR_EVER)


@lru_cache(maxsize=64)
def zone_of(name: str) -> ZoneInfo:
    """A time zone by its name; UTC where there is none of that name (`has_zone`)."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


@lru_cache(maxsize=64)
def has_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _at(day: date, minute: int, zone: ZoneInfo) -> float:
    """A time of the clock on the wall; one that is skipped when clocks change comes as much later."""
    day, minute = day + minute // (24 * 60) * DAY, minute % (24 * 60)
    return datetime(day.year, day.month, day.day, minute // 60, minute % 60, tzinfo=zone).astimezone(UTC).timestamp()
