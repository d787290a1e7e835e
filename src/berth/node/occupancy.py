"""Memory of devices from look to look: the most that each holder had, and when a device will be full at this rate."""

from __future__ import annotations

from collections import defaultdict, deque

from msgspec import Struct

from berth.evidence.formats.boundary_facts import Holder
from berth.node.look import Looked

EVERY_S = 60.0  # between two points of a trend
MOST_POINTS = 120
FEWEST_POINTS = 10
STEADY = 0.7  # part of the variation that a straight line explains; below, there is no trend
FORGETS_S = 3600.0  # a holder that has not been seen for so long

Who = tuple[str, str, int]  # device, namespace/pod/container, process number where there is no pod


class _Held(Struct):
    peak_bytes: int
    last_s: float


class Occupancy:
    """What is remembered of memory. `take` each look in, in their order."""

    def __init__(self) -> None:
        self._held: dict[Who, _Held] = {}
        self._points: dict[str, deque[tuple[float, int]]] = defaultdict(lambda: deque(maxlen=MOST_POINTS))
        self._size: dict[str, int] = {}

    def take(self, looked: Looked) -> None:
        now: dict[Who, int] = defaultdict(int)
        for holder in looked.facts.of(Holder):
            now[who(holder)] += holder.memory_bytes
        for key, held in now.items():
            before = self._held.get(key)
            peak = max(held, before.peak_bytes if before else 0)
            self._held[key] = _Held(peak, looked.at_s)
        self._held = {key: one for key, one in self._held.items() if looked.at_s - one.last_s < FORGETS_S}
        for device in looked.devices:
            if device.uuid and device.memory_total_bytes and device.memory_used_bytes is not None:
                points = self._points[device.uuid]
                if not points or looked.at_s - points[-1][0] >= EVERY_S:
                    points.append((looked.at_s, device.memory_used_bytes))
                self._size[device.uuid] = device.memory_total_bytes

    def peak_bytes(self, holder: Holder) -> int:
        """The most that this holder had of its device, of all its processes together."""
        held = self._held.get(who(holder))
        return held.peak_bytes if held else holder.memory_bytes

    def full_in_s(self, device: str) -> float:
        """Seconds until the device is full if it goes on like this; 0.0 where it does not grow steadily."""
        points = list(self._points.get(device, ()))
        if len(points) < FEWEST_POINTS:
            return 0.0
        began = points[0][0]
        times = [at - began for at, _ in points]
        used = [float(held) for _, held in points]
        slope, explained = line_through(times, used)
        left = self._size[device] - used[-1]
        return left / slope if slope > 0 and explained >= STEADY and left > 0 else 0.0


def who(holder: Holder) -> Who:
    if holder.of_pod:
        return holder.device, f"{holder.of_pod}/{holder.container}", 0
    return holder.device, "", holder.pid


def line_through(times: list[float], values: list[float]) -> tuple[float, float]:
    """Slope of the straight line of least squares, and the part of the variation that it explains (R²)."""
    count = len(times)
    middle, mean = sum(times) / count, sum(values) / count
    spread = sum((at - middle) ** 2 for at in times)
    varies = sum((value - mean) ** 2 for value in values)
    if not spread or not varies:
        return 0.0, 0.0
    together = sum((at - middle) * (value - mean) for at, value in zip(times, values, strict=True))
    return together / spread, together**2 / (spread * varies)
