"""What the compiled loops compute, said slowly: the definition to read first.

Fit        a node takes t pods of a class when t times the need of each resource is free, and the devices hold
           t pods, each on so many different ones (copies_on).
Supply     S_n(m) = (usable milli + milli of whole copies) / 2: what class m could use of node n. A device is
           usable where one pod of the class fits on it; whole copies are pods that fit with everything they need.
Scarcity   D_m / U_m: the class's share of demand over its supply in the whole cluster, U_m = sum over n of S_n(m).
Loss       of a pod on node n: sum over m of D_m / U_m · (S_n(m) before − after). The node with the least loss is
           taken, the first one where losses are equal.

All amounts are whole numbers: supply is kept twice (no halves), scarcity in 2**20ths of the idle milli.
kernels.py and scoring.py do the same over arrays; tests/properties/test_twins.py holds the two equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from berth.model.reasons import Block

WHOLE = 1000
WEIGHT_ONE = 2**20
LEAST_SUPPLY = 40  # twice the milli below which a supply counts as this much
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


# --- supply and loss (scoring.py) ----------------------------------------------------------------------------


@dataclass
class Kind:
    """A class with demand. `copies_part` is how much of its supply is whole copies, in halves."""

    ask: Ask
    demand: float
    copies_part: int = 1


@dataclass
class Market:
    """All nodes, and the classes for which something should be left.

    `allows[k][n]`: node n would do for kind k by itself. `counts` are the resources that limit a whole copy:
    all but devices, which are in the formula anyhow, and pods. `quantum` is in units of weighted supply.
    """

    hosts: list[Host]
    kinds: list[Kind]
    allows: list[list[bool]]
    counts: Sequence[int]
    quantum: int
    weights: list[int] = field(default_factory=list)

    def supply(self, k: int, n: int) -> int:
        """2 S_n(m): twice the milli of node n that kind k could use."""
        return supply(self.kinds[k], self.hosts[n], self.counts) if self.allows[k][n] else 0

    def value(self, n: int) -> int:
        """The weighted supply of a node."""
        return sum(weight * self.supply(k, n) for k, weight in enumerate(self.weights))

    def weigh(self) -> None:
        """Work out the scarcity of every supply."""
        supplies = [sum(self.supply(k, n) for n in range(len(self.hosts))) for k in range(len(self.kinds))]
        idle = sum(left for host in self.hosts for left in host.devices if left > 0)
        self.weights = weigh([kind.demand for kind in self.kinds], supplies, idle)

    def loss_on(self, ask: Ask, n: int) -> tuple[int, tuple[int, ...]]:
        """What a pod on node n costs the others, in quanta, and its devices."""
        host, before = self.hosts[n], self.value(n)
        losses: list[tuple[int, tuple[int, ...]]] = []
        for devices in device_choices(ask, host):
            take(ask, host, devices)
            losses.append(((before - self.value(n)) // self.quantum, devices))
            take(ask, host, devices, sign=-1)
        return min(losses, key=lambda loss: loss[0])


def supply(kind: Kind, host: Host, counts: Iterable[int]) -> int:
    """2 S_n(m) = usable milli + milli of whole copies, or other parts of the two; 0 where not one pod fits."""
    ask = kind.ask
    if ask.devices == 0:
        return 0
    if ask.is_on_devices_of(host):
        able = [left for left in host.devices if left >= ask.milli]
        usable, places = sum(able), sum(left // ask.milli for left in able)
    else:
        usable, places = host.free[ask.resource] * WHOLE, host.free[ask.resource]
    copies = min([places // ask.devices] + [host.free[r] // ask.need[r] for r in counts if ask.need[r]])
    if copies < 1:
        return 0
    return (2 - kind.copies_part) * usable + kind.copies_part * copies * ask.devices * ask.milli


def weigh(demands: Sequence[float], supplies: Sequence[int], idle: int) -> list[int]:
    """D_m / U_m of each kind, in 2**20ths, as parts of the idle milli of the cluster."""
    total = 0.0
    for demand in demands:
        total += demand
    return [
        int(demand / total * 2.0 * idle / max(twice, LEAST_SUPPLY) * WEIGHT_ONE) if demand > 0 else 0
        for demand, twice in zip(demands, supplies, strict=True)
    ]


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
    """A lone pod: what it asks for, what each node has against it, and who pays how many GPU milli."""

    ask: Ask
    static: Sequence[int]
    queue: int
    milli: int
    kind: int = -1  # the kind whose demand grows by its arrival, -1 for none


@dataclass
class Run:
    """Single pods in their order. `gpu_class` is that of each node, the last class where it is not known."""

    pods: Sequence[Single]
    market: Market
    limits: Limits
    gpu_class: Sequence[int]
    refresh: int  # scarcity is worked out anew before every so many pods

    def place(self) -> list[tuple[int, tuple[int, ...]]]:
        """The node of each pod and its devices, one pod after the other.

        NO_NODE where it fits on none, OVER_LIMIT where its queue may take nothing more of any class.
        """
        placed: list[tuple[int, tuple[int, ...]]] = []
        for w, pod in enumerate(self.pods):
            if pod.kind >= 0:
                self.market.kinds[pod.kind].demand += 1.0
            if w % self.refresh == 0:
                self.market.weigh()
            node, devices = self.best_node(pod)
            if node >= 0:
                take(pod.ask, self.market.hosts[node], devices)
                if pod.milli:
                    self.limits.book(pod.queue, self.gpu_class[node], pod.milli)
            placed.append((node, devices))
        return placed

    def best_node(self, pod: Single) -> tuple[int, tuple[int, ...]]:
        """The node with the least loss, of those that would do, whose class is open, and on which the pod fits."""
        would_do = [n for n, block in enumerate(pod.static) if not block]
        if would_do and not self._is_open(pod, self.limits.all_classes):
            return OVER_LIMIT, ()
        losses: list[tuple[int, int, tuple[int, ...]]] = []
        for n in would_do:
            if self._is_open(pod, self.gpu_class[n]) and copies_on(pod.ask, self.market.hosts[n])[0]:
                loss, devices = self.market.loss_on(pod.ask, n)
                losses.append((loss, n, devices))
        if not losses:
            return NO_NODE, ()
        _, node, devices = min(losses)
        return node, devices

    def _is_open(self, pod: Single, gpu_class: int) -> bool:
        return pod.milli == 0 or self.limits.allow(pod.queue, gpu_class, pod.milli)
