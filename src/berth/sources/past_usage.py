"""What queues have used in the past: as their status says it, and as it has been counted since."""

from __future__ import annotations

from collections.abc import Mapping

from berth.kube import wire
from berth.kube.wire_queues import GPUQueue, QueueUsage
from berth.scheduling.usage import HALF_LIFE_S, decayed
from berth.sources.inventory import seconds

HELD: Mapping[str, float] = {}  # nothing is held: what is counted says what was


class Usage:
    """By the queue that paid, in decayed value hours as of a moment; of several words the latest counts."""

    def __init__(self, half_life_s: float = HALF_LIFE_S) -> None:
        self.half_life_s = half_life_s  # 0.0: nothing is forgotten
        self._known: dict[str, tuple[float, float]] = {}  # hours, and the moment

    def put(self, queue: GPUQueue) -> None:
        """What its status says."""
        name, status = (queue.metadata or wire.NO_META).name or "", queue.status or QueueUsage()
        at_s = seconds(status.past_usage_at)
        if status.past_usage is not None and at_s:
            self._take(name, max(status.past_usage, 0.0), at_s)

    def drop(self, name: str) -> None:
        self._known.pop(name, None)

    def count(self, used: Mapping[str, float], at_s: float) -> None:
        """What was counted."""
        for name, hours in used.items():
            self._take(name, hours, at_s)

    def now(self, now_s: float) -> dict[str, float]:
        """As of now."""
        return {
            name: decayed({name: hours}, HELD, now_s - at_s, self.half_life_s)[name]
            for name, (hours, at_s) in self._known.items()
            if hours
        }

    def _take(self, name: str, hours: float, at_s: float) -> None:
        known = self._known.get(name)
        if known is None or at_s >= known[1]:
            self._known[name] = (hours, at_s)
