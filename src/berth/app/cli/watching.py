"""The watcher's clock: simulated time goes as fast as asked, never ahead of what has been decided."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from math import inf, isfinite
from time import monotonic, sleep
from types import FrameType

from berth.app.cli.ahead import Ahead
from berth.app.cli.screen import Screen
from berth.views.live import Watch
from berth.views.live_frame import Moment, frame
from berth.views.live_map import pools_of
from berth.views.live_paint import Paint
from berth.views.live_plain import Told

FRAME_S = 0.1
DRAWING = 0.25  # at most so much of the time is spent on frames: the rest is for decisions
FASTER = 2.0
SLOWEST, FASTEST = 1.0, 1e6
KEYS = "q quit  space pause  + - speed"
END_S = 1.5  # how long the last frame stays


class How(Enum):
    """How it ended."""

    Over = "over"
    Quit = "quit"
    TimeIsUp = "time is up"
    Interrupted = "interrupted"


@dataclass
class Clock:
    """`speed` simulated seconds a second; inf: as fast as it is decided."""

    speed: float
    now_s: float = 0.0
    is_paused: bool = False
    _last: float = field(default_factory=monotonic)

    def tick(self, front_s: float) -> None:
        """Time goes on, up to what has been decided."""
        at = monotonic()
        passed, self._last = at - self._last, at
        if self.is_paused or not isfinite(front_s):
            return
        self.now_s = front_s if self.speed == inf else min(max(front_s, self.now_s), self.now_s + passed * self.speed)

    def skip(self) -> None:
        """What has passed outside does not count."""
        self._last = monotonic()


class Signals:
    """Ctrl-C, and the like, are told once; a second Ctrl-C ends the process at once."""

    def __init__(self) -> None:
        self.wants_end = False
        self.wants_stop = False  # Ctrl-Z

    def _end(self, number: int, _: FrameType | None) -> None:
        if self.wants_end and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.wants_end = True

    def _stop(self, _: int, __: FrameType | None) -> None:
        self.wants_stop = True

    @contextmanager
    def heeded(self) -> Iterator[Signals]:
        ends = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
        before = {number: signal.signal(number, self._end) for number in ends}
        before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._stop)
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def watch(ahead: Ahead, shown: Watch, clock: Clock, paint: Paint, until: float, signals: Signals) -> How:
    """Frames on the terminal until the day is over, time is up (`until`, monotonic), or somebody has seen enough."""
    pools = pools_of([node.name for node in shown.nodes], [len(node.devices) for node in shown.nodes])
    over_at = inf
    with Screen() as screen:
        while True:
            if (how := _ended(ahead, signals, until)) is not None:
                return how
            seen_s = monotonic()
            _advance(ahead, shown, clock, seen_s)
            moment = Moment(clock.now_s, seen_s, clock.speed, clock.is_paused, KEYS)
            try:
                screen.draw(lambda width, height: frame(shown, pools, moment, width, height, paint))  # noqa: B023
            except OSError:  # the terminal has gone
                return How.Interrupted
            if _is_over(ahead, shown, clock) and over_at == inf:
                over_at = monotonic() + END_S
            if monotonic() > over_at:
                return How.Over
            if _heed(screen.key(_pause_s(seen_s)), clock, ahead):
                return How.Quit
            if signals.wants_stop:
                signals.wants_stop = False
                _step_aside(screen, clock)


def _pause_s(drawn_since: float) -> float:
    took = monotonic() - drawn_since
    return max(FRAME_S - took, took * (1 / DRAWING - 1), 0.005)


def _ended(ahead: Ahead, signals: Signals, until: float) -> How | None:
    if ahead.error is not None:
        raise ahead.error
    if signals.wants_end:
        return How.Interrupted
    return How.TimeIsUp if monotonic() >= until else None


def _advance(ahead: Ahead, shown: Watch, clock: Clock, seen_s: float) -> None:
    end_s = shown.length_s if isfinite(shown.length_s) else ahead.front_s
    clock.tick(end_s if ahead.is_done else ahead.front_s)
    for scene in ahead.until(clock.now_s):
        shown.take(scene, seen_s)


def _is_over(ahead: Ahead, shown: Watch, clock: Clock) -> bool:
    return ahead.is_over and (clock.now_s >= shown.length_s or not isfinite(shown.length_s))


def _heed(key: str, clock: Clock, ahead: Ahead) -> bool:
    """What was pressed. Whether that is the end."""
    if key == " ":
        clock.is_paused = not clock.is_paused
    elif key in ("+", "=", "-", "_") and key and isfinite(clock.speed):
        clock.speed = min(FASTEST, max(SLOWEST, clock.speed * (FASTER if key in "+=" else 1 / FASTER)))
        ahead.spacing_s = spacing_of(clock.speed)
    return key in ("q", "Q")


def spacing_of(speed: float) -> float:
    """Simulated seconds between scenes: there need not be more of them than frames."""
    return speed * FRAME_S / 2 if isfinite(speed) else 0.0


def _step_aside(screen: Screen, clock: Clock) -> None:
    """Ctrl-Z: the shell gets its terminal, and we go on where we were once we are in front again."""
    screen.give_back()
    os.kill(os.getpid(), signal.SIGSTOP)
    screen.take()
    clock.skip()


def write(ahead: Ahead, shown: Watch, clock: Clock, until: float, say: Callable[[str], None], signals: Signals) -> How:
    """The same as lines, where nobody watches: progress from hour to hour, and the stories in between."""
    told = Told(shown)
    while True:
        if (how := _ended(ahead, signals, until)) is not None:
            return how
        seen_s = monotonic()
        _advance(ahead, shown, clock, seen_s)
        for line in told.lines(clock.now_s):
            say(line.words)
        if _is_over(ahead, shown, clock):
            return How.Over
        sleep(FRAME_S)
        if signals.wants_stop:
            signals.wants_stop = False
            os.kill(os.getpid(), signal.SIGSTOP)
            clock.skip()
