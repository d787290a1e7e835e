"""What the prices are, said slowly: the definition of headroom.py.

The headroom of a cluster is the largest T such that T times the expected mix can be packed. Its dual gives a price
to one more pod of each class and to CPU. The worth of a node is the price of the best fill that it can take:

gain       of a pod: its price − CPU price · its CPU
channel    classes of one size on one device, or of one number of whole devices, compete: their common gain is
           τc · log Σ share · exp(gain / τc)
device     v(r) = τ · log(1 + Σ over sizes s ≤ r of exp((gain(s) + v(r − s)) / τ))
whole      W(f) = τ · log(exp((v(whole) + W(f − 1)) / τ) + Σ over numbers k ≤ f of exp((gain(k) + W(f − k)) / τ))
node       the least over several CPU prices λ (lanes) of  λ · free CPU + Σ v(shared devices) + W(whole ones)

Each exponential is also how likely a fill goes on that way, so the same recursion says how many pods of each class
the cluster would take. A class that gets more than its share of the whole becomes cheaper, one that gets less
dearer. tests/properties/test_twins.py holds this and the compiled form equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log

Pods = defaultdict[int, float]  # expected pods by kind

WHOLE_LEVEL = 100  # a whole device, in tens of milli
LANE_RATES = (0.0, 0.004, 0.0082, 0.0169, 0.0346, 0.0711, 0.146, 0.3)
LEAST_CPU_PRICE = 1e-5
MOST_FALL = 6.5  # bound on the gain of a way to use a device, in tau for each ten milli
LEAST_PRICE, MOST_PRICE = 0.02, 3.0  # for each milli that a class asks for


@dataclass(frozen=True)
class Kind:
    """A class that is expected. Without devices it only uses CPU."""

    share: float  # of arrivals
    cpu: float
    devices: int = 0
    milli: int = 1000  # of each device

    @property
    def asked(self) -> int:
        """GPU milli of one pod."""
        return self.devices * self.milli

    @property
    def is_one_by_one(self) -> bool:
        """It is put on devices one at a time, not on several whole ones at once."""
        return self.devices == 1 or self.milli < 1000

    @property
    def size(self) -> int:
        """Tens of milli on each device, the last one begun counting whole."""
        return -(-self.milli // 10)

    @property
    def parts(self) -> int:
        return self.devices if self.is_one_by_one else 1


@dataclass(frozen=True, eq=False)
class Fill:
    """The best fill of nodes that certain kinds may use, under one CPU price."""

    kinds: Sequence[Kind]
    prices: Sequence[float]
    cpu_price: float
    tau: float
    tau_classes: float

    def gain(self, j: int) -> float:
        kind = self.kinds[j]
        return (self.prices[j] - self.cpu_price * kind.cpu) / kind.parts

    @lru_cache  # noqa: B019
    def ways(self, one_by_one: bool) -> dict[int, float]:
        """The common gain of each size on one device, or of each number of whole devices."""
        found: dict[int, list[int]] = {}
        for j, kind in enumerate(self.kinds):
            if kind.devices and kind.share and kind.is_one_by_one == one_by_one:
                found.setdefault(kind.size if one_by_one else kind.devices, []).append(j)
        gains = {
            size: soft(self.tau_classes, [self.gain(j) + self.tau_classes * log(self._weight(j)) for j in some])
            for size, some in found.items()
        }
        return {s: min(g, MOST_FALL * self.tau * s) if one_by_one else g for s, g in gains.items()}

    def _weight(self, j: int) -> float:
        return self.kinds[j].share * self.kinds[j].parts

    @lru_cache  # noqa: B019
    def device(self, level: int) -> float:
        """v: what a device with so much left is worth."""
        return soft(self.tau, [0.0] + [g + self.device(level - s) for s, g in self.ways(True).items() if s <= level])

    @lru_cache  # noqa: B019
    def whole(self, free: int) -> float:
        """W: what so many wholly free devices are worth."""
        if free == 0:
            return 0.0
        shared = self.device(WHOLE_LEVEL) + self.whole(free - 1)
        return soft(self.tau, [shared] + [g + self.whole(free - k) for k, g in self.ways(False).items() if k <= free])

    @lru_cache  # noqa: B019
    def on_device(self, level: int) -> Pods:
        """Expected pods by kind on a device with so much left."""
        pods = Pods(float)
        for size, gain in self.ways(True).items():
            if size <= level:
                likely = exp((gain + self.device(level - size) - self.device(level)) / self.tau)
                _add(pods, likely, self._split(size, True), self.on_device(level - size))
        return pods

    @lru_cache  # noqa: B019
    def on_whole(self, free: int) -> Pods:
        """Expected pods by kind on so many wholly free devices."""
        pods = Pods(float)
        if free == 0:
            return pods
        likely = exp((self.device(WHOLE_LEVEL) + self.whole(free - 1) - self.whole(free)) / self.tau)
        _add(pods, likely, self.on_device(WHOLE_LEVEL), self.on_whole(free - 1))
        for devices, gain in self.ways(False).items():
            if devices <= free:
                likely = exp((gain + self.whole(free - devices) - self.whole(free)) / self.tau)
                _add(pods, likely, self._split(devices, False), self.on_whole(free - devices))
        return pods

    def _split(self, size: int, one_by_one: bool) -> Pods:
        """One turn of a channel, by kind: a pod that needs several turns counts by its parts."""
        pods = Pods(float)
        for j, kind in enumerate(self.kinds):
            way = kind.size if one_by_one else kind.devices
            if kind.devices and kind.share and kind.is_one_by_one == one_by_one and way == size:
                pods[j] = exp(self.gain(j) / self.tau_classes) * self._weight(j)
        together = sum(pods.values())
        return Pods(float, {j: weight / together / self.kinds[j].parts for j, weight in pods.items()})


def soft(tau: float, gains: Sequence[float]) -> float:
    """The largest, softly: tau · log of the sum of exp(gain / tau)."""
    most = max(gains)
    return most + tau * log(sum(exp((gain - most) / tau) for gain in gains))


def _add(pods: Pods, times: float, *others: Pods) -> None:
    for other in others:
        for j, count in other.items():
            pods[j] += times * count


def normalised(prices: Sequence[float], cpu_price: float, kinds: Sequence[Kind]) -> tuple[list[float], float]:
    """Prices at which an average pod is worth the GPU milli that it asks for on average."""
    asked = sum(k.share * k.asked for k in kinds)
    priced = sum(k.share * (p if k.devices else cpu_price * k.cpu) for k, p in zip(kinds, prices, strict=True))
    if asked <= 0 or priced <= 0:
        return list(prices), cpu_price
    return [p * asked / priced for p in prices], cpu_price * asked / priced


def moved(
    kinds: Sequence[Kind], prices: Sequence[float], cpu_price: float, pods: Pods, idle_cpu: float, eta: float
) -> tuple[list[float], float]:
    """Prices after one step. `pods` by kind and `idle_cpu` are what the cluster would take at the old ones."""
    cpu_share = sum(k.share * k.cpu for k in kinds if not k.devices)
    with_devices = [j for j, k in enumerate(kinds) if k.devices]
    taken = cpu_price * idle_cpu + sum(prices[j] * pods[j] for j in with_devices)
    asked = cpu_price * cpu_share + sum(prices[j] * kinds[j].share for j in with_devices)
    if taken <= 0 or asked <= 0:
        return list(prices), cpu_price
    headroom = taken / asked

    def move(ratio: float) -> float:
        return exp(-eta * min(max(log(max(ratio, 1e-3)), -1.0), 1.0))

    new = list(prices)
    for j in with_devices:
        kind = kinds[j]
        if kind.share:
            price = prices[j] * move(pods[j] / (kind.share * headroom))
            new[j] = min(max(price, LEAST_PRICE * kind.asked), MOST_PRICE * kind.asked)
    if cpu_share:
        cpu_price = max(cpu_price * move(idle_cpu / (cpu_share * headroom)), LEAST_CPU_PRICE)
    return new, cpu_price


def lanes(cpu_price: float) -> list[float]:
    """The CPU prices under which a node is looked at."""
    return [cpu_price + rate for rate in LANE_RATES]
