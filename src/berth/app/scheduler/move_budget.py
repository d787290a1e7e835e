"""How many GPU hours of work moves may cost now: a budget for 24 hours, in windows of time."""

from __future__ import annotations

import math
from collections import deque

from berth.app.scheduler.settings import Defragmentation
from berth.model.booking import Booking, Repeat

DAY_S = 86_400.0
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class MoveBudget:
    """What was spent within the last day counts, whatever the window."""

    def __init__(self, configured: Defragmentation) -> None:
        self._hours = configured.gpu_hours_per_day
        self._times = Booking("defragmentation", repeat=repeat_of(configured))
        self._spent: deque[tuple[float, float]] = deque()  # (when, GPU hours)

    def left(self, now_s: float) -> float:
        """GPU hours; 0.0 outside of the window."""
        if self._hours <= 0:
            return 0.0
        window = self._times.window(now_s)
        if window is None or window.opens_s > now_s:
            return 0.0
        while self._spent and self._spent[0][0] <= now_s - DAY_S:
            self._spent.popleft()
        return max(0.0, self._hours - sum(hours for _, hours in self._spent))

    def next_s(self, now_s: float) -> float:
        """When a window opens; infinite where one is open, or none will."""
        window = self._times.window(now_s) if self._hours > 0 else None
        return window.opens_s if window is not None and window.opens_s > now_s else math.inf

    def spend(self, now_s: float, gpu_hours: float) -> None:
        if gpu_hours > 0:
            self._spent.append((now_s, gpu_hours))


def repeat_of(configured: Defragmentation) -> Repeat:
    """The window as configured; what cannot be read was refused with the configuration."""
    return Repeat(
        tuple(DAYS.index(day) for day in configured.days),
        minute_of(configured.start) or 0,
        minute_of(configured.end) or 24 * 60,
        configured.time_zone,
    )


def minute_of(text: str) -> int | None:
    """`02:30` as minutes since midnight; None where it is none."""
    hours, colon, minutes = text.partition(":")
    if not (colon and len(minutes) == 2 and (hours + minutes).isascii() and (hours + minutes).isdigit()):
        return None
    found = int(hours) * 60 + int(minutes)
    return found if int(minutes) < 60 and found <= 24 * 60 else None
