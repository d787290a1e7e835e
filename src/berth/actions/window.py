"""How many binds are under way at once: fewer while their answers are slow, as TCP does it.

A server that is busy with others answers each bind late, and each of a gang's at another moment, so that who watches
sees the gang in parts. More requests make that worse, and nothing faster: what limits is the server.
"""

from __future__ import annotations

SLOW_S = 0.1  # an answer within this is none that the server was too busy for
TIMES = 3.0  # nor is one within so many times the quickest, where the way to the server is long
LEAST = 8
_NEVER = float("inf")
_FORGETS = 1.01  # the quickest counts for so much longer with each answer, since the way may become longer for good


class Window:
    """`size` is between LEAST and `most`. `heard` is told of each answer. Times are seconds on one monotonic clock."""

    __slots__ = ("_before", "_cut_s", "_least", "_most", "_quickest_s", "_size")

    def __init__(self, most: int) -> None:
        self._most = most
        self._least = min(LEAST, most)
        self._size = float(most)
        self._before = self._size  # the round of requests that was found slow
        self._cut_s = -_NEVER  # when that was
        self._quickest_s = _NEVER

    @property
    def size(self) -> int:
        return int(self._size)

    def room(self, waited_s: float) -> int:
        """How many there may be while several have waited so long: their answers are late whenever they come."""
        return self._least if waited_s > self._slow_s else self.size

    @property
    def _slow_s(self) -> float:
        return SLOW_S if self._quickest_s == _NEVER else max(SLOW_S, TIMES * self._quickest_s)

    def heard(self, sent_s: float, answered_s: float) -> None:
        """Grow by one with each quick answer; after a slow one be smaller by as much as it was slower.

        Requests that were sent before that tell of the same moment: together they count as their slowest.
        """
        took_s = answered_s - sent_s
        self._quickest_s = min(took_s, _FORGETS * self._quickest_s)
        slow_s = self._slow_s
        if took_s > slow_s:
            if sent_s >= self._cut_s:
                self._before, self._cut_s = self._size, answered_s
            self._size = max(self._least, min(self._size, self._before * slow_s / took_s))
        elif sent_s >= self._cut_s:
            self._size = min(self._most, self._size + 1)
