"""What the compiled loops compute, said slowly: the definition to read first.

Fit        a node takes t pods of a class when t times the need of each resource is free, and the devices hold
           t pods, each on so many different ones (copies_on).
Worth      of a node: the best fill that it can still take, at prices for classes of pods and for CPU
           (plain_prices.py), in whole 2**30ths of a quantum.
Loss       of a pod on node n: the node's worth before less that after, to the nearest quantum. The node with the
           least loss is taken, a suspect one after all others; among equals the one that the pod prefers most,
           then the one that a share fills up most, then the first.

kernels.py and scoring.py do the same over arrays; tests/properties/test_twins.py holds the two equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from berth.model.reasons import Block

WHOLE = 1000
LEVEL = 10  # milli of a device between two levels of its worth
ONE = 2**30  # a quantum
MOST_LEFT, MOST_PREFERENCE = 2**7 - 1, 2**15 - 1
NO_NODE = -1
OVER_LIMIT = -2

_CPU, _MEMORY, _PODS = 0, 1, 2  # the first columns of every table of resources


@dataclass
class Host:
    """What is left on one node. `devices` holds the milli left of each, -1 where none must be given out."""

    free: list[int]  # by resource
    devices: list[int]
    islands: list[int]  # NVLink island of each device, -1 for none
    pool: int  # the resource whose units are the devices, -1 for none
    is_suspect: bool = False  # it comes after all others


@dataclass(frozen=True)
class Ask:
    """What one pod of a class takes. A share of a device is not in `need`."""

    need: tuple[int, ...]  # by resource
    resource: int = -1  # the device resource, -1 for none
    devices: int = 0
    milli: int = WHOLE  # of each device
    one_island: bool = False

    def is_on_devices_of(self, host: Host) -> bool:
        """The node knows its devices one by one; else they are only counted."""
        return self.devices > 0 and host.pool == self.resource


# --- fit (kernels.py) ----------------------------------------------------------------------------------------


def copies_on(ask: Ask, host: Host) -> tuple[int, Block]:
    """How many pods of a class the node still takes, and what keeps one off where that is none.

    Devices are looked at first, then the resources in their order.
    """
    copies = 2**30
    if ask.is_on_devices_of(host):
        copies = copies_of_devices(ask, host)
        if copies == 0:
            idle = sum(left for left in host.devices if left > 0)
            is_scattered = ask.devices == 1 and ask.milli < WHOLE and idle >= ask.milli
            return 0, Block.GpuShare if is_scattered else Block.Gpus
    for r, need in enumerate(ask.need):
        if need == 0:
            continue
        if host.free[r] < need:
            known = {ask.resource: Block.Gpus, _CPU: Block.Cpu, _MEMORY: Block.Memory, _PODS: Block.Pods}
            return 0, known.get(r, Block.Resource)
        copies = min(copies, host.free[r] // need)
    return copies, Block.Nothing


def copies_of_devices(ask: Ask, host: Host) -> int:
    """How many pods the devices take, each on `devices` different ones, in one island where it asks for one."""
    if not ask.one_island or ask.devices == 1:
        return _copies(ask, host.devices)
    by_island: dict[int, list[int]] = {}
    for left, island in zip(host.devices, host.islands, strict=True):
        if left >= 0 and island >= 0:
            by_island.setdefault(island, []).append(left)
    return sum(_copies(ask, devices) for devices in by_island.values())


def _copies(ask: Ask, devices: Iterable[int]) -> int:
    """The most pods t for which the devices have t · `devices` places, each at most t of them."""
    places = [left // ask.milli for left in devices if left >= ask.milli]
    return next(t for t in count() if sum(min(p, t + 1) for p in places) < (t + 1) * ask.devices)


def choose_devices(ask: Ask, host: Host) -> tuple[int, ...]:
    """The devices for one pod, () where they do not fit. Lowest index first where all else is equal.

    One device: the fullest on which it fits. Several whole ones: the first ones of the island that has fewest and
    still enough of them, or of all where no island has enough. Shares of several: the emptiest, so that as many as
    can be stay open to the next pod. Who must have one island gets that island's, or none.
    """
    able = [g for g, left in enumerate(host.devices) if left >= ask.milli]
    if ask.devices == 1:
        return tuple(sorted(able, key=lambda g: host.devices[g])[:1])
    by_island: dict[int, list[int]] = {}
    for g in able:
        if host.islands[g] >= 0:
            by_island.setdefault(host.islands[g], []).append(g)
    enough = [devices for devices in by_island.values() if len(devices) >= ask.devices]
    if ask.one_island and not enough:
        return ()
    if ask.one_island or (enough and ask.milli == WHOLE):
        able = min(enough, key=len)
    if ask.milli < WHOLE:
        able.sort(key=lambda g: -host.devices[g])
    return tuple(able[: ask.devices]) if len(able) >= ask.devices else ()


def take(ask: Ask, host: Host, devices: Sequence[int], sign: int = 1) -> None:
    """Put one pod on the node and on these devices (sign 1), or take it away again (sign -1)."""
    for r, need in enumerate(ask.need):
        host.free[r] -= sign * need
    if ask.is_on_devices_of(host):
        for g in devices:
            host.devices[g] -= sign * ask.milli
        host.free[host.pool] = host.devices.count(WHOLE)


def put_copies(ask: Ask, host: Host, copies: int) -> list[tuple[int, ...]]:
    """Put so many pods of a class on a node, one after the other; the devices of each."""
    chosen: list[tuple[int, ...]] = []
    for _ in range(copies):
        chosen.append(choose_devices(ask, host) if ask.is_on_devices_of(host) else ())
        take(ask, host, chosen[-1])
    return chosen


def count_again(ask: Ask, host: Host, static: int) -> tuple[int, int]:
    """Copies and block of one class on one node, where `static` is what the node alone has against it."""
    return (0, static) if static else copies_on(ask, host)


# --- worth and loss (headroom.py, scoring.py) ----------------------------------------------------------------


@dataclass(frozen=True)
class Worths:
    """What things are worth on the nodes of one group, in 2**30ths of a quantum, each by lane.

    rate[lane] for a CPU milli, device[level][lane] for a device with so many tens of milli left, whole[f][lane]
    for f wholly free devices. Where they come from: plain_prices.py.
    """

    rate: Sequence[int]
    device: Sequence[Sequence[int]]
    whole: Sequence[Sequence[int]]

    def of(self, host: Host) -> int:
        """A node is worth the best fill that it can still take, at the CPU price that makes that least."""
        return min(self._in_lane(lane, host) for lane in range(len(self.rate)))

    def _in_lane(self, lane: int, host: Host) -> int:
        shared = [left for left in host.devices if 0 < left < WHOLE]
        devices = sum(self.device[left // LEVEL][lane] for left in shared)
        whole = self.whole[host.devices.count(WHOLE)][lane]
        return self.rate[lane] * max(host.free[_CPU], 0) + devices + whole


@dataclass(frozen=True, order=True)
class Rank:
    """The node with the lowest is taken, a suspect one after all others. `loss` in quanta; `dislike` is what the
    preference lacks of the most.

    `left` is what a share finds on its device in tens of milli, how many devices are left where they are only
    counted, and 1 for a pod without devices on a node that has some: the fullest first.
    """

    is_suspect: bool
    loss: int
    dislike: int
    left: int


def choices(ask: Ask, host: Host, worths: Worths, preference: int = 0) -> list[tuple[Rank, tuple[int, ...]]]:
    """The devices that a pod may get on a node where it fits, with the rank of each, the best first."""
    before = worths.of(host)
    found: list[tuple[Rank, tuple[int, ...]]] = []
    for devices in device_choices(ask, host):
        left = int(not ask.devices and host.pool >= 0)
        if ask.devices and not ask.is_on_devices_of(host):
            left = min(host.free[ask.resource], MOST_LEFT)
        elif ask.devices == 1 and ask.milli < WHOLE:
            left = host.devices[devices[0]] // LEVEL
        take(ask, host, devices)
        loss = (before - worths.of(host) + ONE // 2) // ONE
        take(ask, host, devices, sign=-1)
        found.append((Rank(host.is_suspect, loss, MOST_PREFERENCE - preference, left), devices))
    return sorted(found)


def device_choices(ask: Ask, host: Host) -> list[tuple[int, ...]]:
    """The devices that a pod may get on a node where it fits: any one for a share, the usual choice for others."""
    if not ask.is_on_devices_of(host):
        return [()]
    if ask.devices == 1 and ask.milli < WHOLE:
        return [(g,) for g, left in enumerate(host.devices) if left >= ask.milli]
    return [choose_devices(ask, host)]


# --- a run of single pods (scoring.place_run) ----------------------------------------------------------------


@dataclass
class Limits:
    """Limits of a tree of queues, in milli by GPU class; the last class is all of them together."""

    parent: list[int]  # -1 at the top
    limit: list[list[int]]
    used: list[list[int]]

    @property
    def all_classes(self) -> int:
        return len(self.limit[0]) - 1

    def chain(self, queue: int) -> list[int]:
        """The queue and those above it."""
        return [queue, *self.chain(self.parent[queue])] if queue >= 0 else []

    def allow(self, queue: int, gpu_class: int, milli: int) -> bool:
        """The queue, and each above it, may take so much more of the class and of all together."""
        columns = {gpu_class, self.all_classes}
        return all(self.used[q][c] + milli <= self.limit[q][c] for q in self.chain(queue) for c in columns)

    def book(self, queue: int, gpu_class: int, milli: int) -> None:
        """Count it on the queue and on those above it."""
        for q in self.chain(queue):
            for c in {gpu_class, self.all_classes}:
                self.used[q][c] += milli


@dataclass(frozen=True)
class Single:
    """A lone pod: what it asks for, what each node has against it and for it, and who pays how many GPU milli."""

    ask: Ask
    static: Sequence[int]
    preference: Sequence[int]
    queue: int
    milli: int
    kind: int = -1  # the kind whose demand grows by its arrival, -1 for none


@dataclass
class Run:
    """Single pods in their order. `gpu_class` is that of each node, the last class where it is not known.

    `renew` gives the worths of each node's group at what is free by then and has arrived (a count by kind).
    """

    pods: Sequence[Single]
    hosts: Sequence[Host]
    worths: Sequence[Worths]  # by node
    renew: Callable[[Mapping[int, int]], Sequence[Worths]]
    limits: Limits
    gpu_class: Sequence[int]
    refresh: int  # worths are renewed before every so many pods
    is_learning: bool = False

    def place(self) -> list[tuple[int, tuple[int, ...]]]:
        """The node of each pod and its devices, one pod after the other.

        NO_NODE where it fits on none, OVER_LIMIT where its queue may take nothing more of any class.
        """
        placed: list[tuple[int, tuple[int, ...]]] = []
        arrived: Counter[int] = Counter()
        for w, pod in enumerate(self.pods):
            arrived[pod.kind] += 1
            if w % self.refresh == 0 and (w or self.is_learning):
                self.worths = self.renew(arrived)
            node, devices = self.best_node(pod)
            if node >= 0:
                take(pod.ask, self.hosts[node], devices)
                if pod.milli:
                    self.limits.book(pod.queue, self.gpu_class[node], pod.milli)
            placed.append((node, devices))
        return placed

    def best_node(self, pod: Single) -> tuple[int, tuple[int, ...]]:
        """The node with the lowest rank, of those that would do, whose class is open, and on which the pod fits."""
        fits = [n for n, block in enumerate(pod.static) if not block and copies_on(pod.ask, self.hosts[n])[0]]
        if fits and not self._is_open(pod, self.limits.all_classes):
            return OVER_LIMIT, ()
        ranked: list[tuple[Rank, int, tuple[int, ...]]] = []
        for n in fits:
            if self._is_open(pod, self.gpu_class[n]):
                rank, devices = choices(pod.ask, self.hosts[n], self.worths[n], pod.preference[n])[0]
                ranked.append((rank, n, devices))
        if not ranked:
            return NO_NODE, ()
        _, node, devices = min(ranked)
        return node, devices

    def _is_open(self, pod: Single, gpu_class: int) -> bool:
        return pod.milli == 0 or self.limits.allow(pod.queue, gpu_class, pod.milli)
