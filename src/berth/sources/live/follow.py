"""Reflectors for all that decides, each telling the world what came and went."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from berth.kube.client import Client
from berth.kube.discover import Served, served
from berth.kube.errors import ApiError
from berth.kube.reflect import Change, Reflector
from berth.sources.live.kinds import FOLLOWED, NEEDED, Kind, makes_gangs
from berth.sources.live.unheard import BEHIND_S, FOR_EVER, PATIENCE_S
from berth.sources.live.world import World

log = logging.getLogger("berth.follow")

LOOK_S = 15.0  # between two looks at what is served
CONFIRM_S = 1.0  # and at least, where one is asked for; two say the same before a kind that was there counts as gone
GONE_S = 10.0  # or so long, where discovery does not answer, or names what is not there
# What another leader's last writes may have changed.
_BOOKED = ("Node", "Pod", "PersistentVolumeClaim", "PersistentVolume")

Sink = Callable[[list[Change[Any]]], None]


class Follower:
    """Keeps a world up to date until it is cancelled. Kinds that the cluster does not serve are no error.

    Discovery is read again every `look_s`, and at once where a kind that was there answers 404, or pods name an owner
    of a kind that was not there (then once a second, for as long as such an owner is waited for): a kind that is
    installed later is followed from then on, and one whose version went is followed in the version that is served now,
    its objects being there all the time. `changed` is told what is served when that differs.
    """

    def __init__(
        self,
        client: Client,
        world: World,
        served: Served,
        kinds: Sequence[Kind] = FOLLOWED,
        *,
        look_s: float = LOOK_S,
        changed: Callable[[Served], None] = lambda served: None,
    ) -> None:
        self.absent: list[Kind] = []
        self.on_served: Callable[[Served], None] = lambda served: None  # at each look
        self.reflectors: dict[Kind, Reflector[Any]] = {}
        self._client = client
        self._world = world
        self._kinds = kinds
        self._look_s = look_s
        self._changed = changed
        self._served = served
        self._versions: dict[Kind, str] = {}
        self._again: dict[Kind, asyncio.Event] = {}  # its list is asked for anew
        self._begun_anew: dict[Kind, asyncio.Event] = {}  # and nothing of the last one is under way any more
        self._work: dict[Kind, asyncio.Task[None]] = {}
        self._refused: set[Kind] = set()
        self._asked = asyncio.Event()  # for a look now
        self._looked = asyncio.Event()  # the next look has been taken
        self._answers = 0  # of discovery
        self._wanted_s = 0.0  # on the monotonic clock: until then a kind is looked for often
        self._looked_s = 0.0  # and when discovery was asked last
        for kind in kinds:
            version = served.version(kind.group, kind.resource)
            if version is not None or kind in NEEDED:
                self._follow(kind, version or "v1")
            else:
                self.absent.append(kind)
        self._plain = {(kind.group, kind.kind): kind for kind in kinds if kind.type is None}
        world.unheard.patience_s = self.patience_s
        world.unheard.needs = self.needs
        world.unheard.named = self._want
        self.began_s = float("inf")  # on the monotonic clock, when the first list was asked for

    async def run(self) -> None:
        """Until cancelled, or until a reflector fails for good."""
        self.began_s = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for kind in self.reflectors:
                self._work[kind] = tasks.create_task(self._keep(kind))
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause_s()):
                        await self._asked.wait()
                self._asked.clear()
                await asyncio.sleep(self._looked_s + min(CONFIRM_S, self._look_s) - time.monotonic())
                self._looked_s = time.monotonic()
                for kind in await self._look():
                    self._work[kind] = tasks.create_task(self._keep(kind))
                looked, self._looked = self._looked, asyncio.Event()
                looked.set()

    async def refresh(self) -> None:
        """List pods, nodes, claims and volumes anew; return once they are known. For whoever takes over."""
        booked = [kind for kind in self.reflectors if kind.kind in _BOOKED]
        for kind in booked:
            self._begun_anew[kind].clear()
            self._again[kind].set()
        for kind in booked:
            await self._begun_anew[kind].wait()
        await self.synced()

    async def synced(self) -> None:
        """Return once every kind has been listed; one that is not needed and may not be seen is not waited for."""
        waits = ((r.synced if kind in NEEDED else r.answered).wait() for kind, r in self.reflectors.items())
        await asyncio.gather(*waits)

    def patience_s(self, group: str, kind: str) -> float:
        """For how long an object of a kind that somebody names is waited for; 0 where we shall not hear of it.

        A kind that is not served may have come a moment ago, since somebody has made an object of it. For one that
        may not be seen it is for ever where its pods may have to start together.
        """
        known = self._plain.get((group, kind))
        if known is None:
            return 0.0
        reflector = self.reflectors.get(known)
        if reflector is None or reflector.is_absent:
            return PATIENCE_S if makes_gangs(group, kind) else 0.0
        if reflector.is_forbidden:
            return FOR_EVER if makes_gangs(group, kind) else 0.0
        return PATIENCE_S if reflector.is_current else BEHIND_S

    def needs(self, group: str, kind: str) -> str:
        """The rights that are missing to see objects of a kind; "" where none is."""
        known = self._plain.get((group, kind))
        reflector = self.reflectors.get(known) if known is not None else None
        if known is None or reflector is None or not reflector.is_forbidden:
            return ""
        return _rights(known)

    def _want(self, group: str, kind: str) -> None:
        """Somebody waits for an object of the kind: where it is not followed it is looked for now, and often."""
        known = self._plain.get((group, kind))
        reflector = self.reflectors.get(known) if known is not None else None
        if known is not None and (reflector is None or reflector.is_absent):
            self._wanted_s = time.monotonic() + PATIENCE_S
            self._asked.set()

    def _pause_s(self) -> float:
        """Until discovery is read again by itself."""
        return min(CONFIRM_S, self._look_s) if time.monotonic() < self._wanted_s else self._look_s

    def _follow(self, kind: Kind, version: str) -> None:
        api_version = f"{kind.group}/{version}" if kind.group else version
        prefix = f"/apis/{api_version}" if kind.group else f"/api/{version}"
        self._versions[kind] = version
        self._again.setdefault(kind, asyncio.Event())  # kept where the version changes: somebody may wait
        self._begun_anew.setdefault(kind, asyncio.Event())
        self.reflectors[kind] = Reflector(
            self._client, f"{prefix}/{kind.resource}", kind.type or dict, _sink(self._world, kind, api_version),
            failures=lambda error: self._heard(kind, error), after=self.reflectors.get(kind),
            has_gone=lambda missing_s: self._has_gone(kind, missing_s),
        )  # fmt: skip

    async def _keep(self, kind: Kind) -> None:
        """One reflector, begun anew whenever a refresh is asked for."""
        again, reflector = self._again[kind], self.reflectors[kind]
        while True:
            work = asyncio.create_task(reflector.run())
            asked = asyncio.create_task(again.wait())
            try:
                await asyncio.wait((work, asked), return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    work.result()
            finally:
                for task in (work, asked):
                    task.cancel()
                await asyncio.gather(work, asked, return_exceptions=True)
            again.clear()
            reflector.begin_anew()
            self._begun_anew[kind].set()

    async def _has_gone(self, kind: Kind, missing_s: float) -> bool:
        """Whether a kind that has been there is served no more; False where it is worth another try.

        Whoever asks is cancelled meanwhile where the kind is served in another version. Versions come and go in
        discovery one by one, so one look that lacks the kind is not enough.
        """
        ends_s = time.monotonic() + GONE_S - missing_s
        lacking = 0
        while True:
            answers, looked = self._answers, self._looked
            self._asked.set()
            try:
                async with asyncio.timeout(max(0.0, ends_s - time.monotonic())):
                    await looked.wait()
            except TimeoutError:
                return True
            if self._served.has(kind.group, kind.resource):
                return False
            if self._answers != answers and not self._served.is_unknown(kind.group, kind.resource):
                lacking += 1
                if lacking > 1:
                    return True
            await asyncio.sleep(min(CONFIRM_S, self._look_s))

    async def _look(self) -> list[Kind]:
        """Kinds that are to be followed from now on. What cannot be asked now is asked at the next look."""
        try:
            found = await served(self._client)
        except ApiError as error:
            log.info("what is served cannot be read now", extra={"error": str(error)})
            return []
        self._answers += 1
        self.on_served(found)
        before, self._served = self._served, found
        if found.resources != before.resources:
            self._changed(found)
        begun: list[Kind] = []
        for kind in self._kinds:
            there = found.resources.get((kind.group, kind.resource), ())
            if not there:
                continue
            now, reflector = self._versions.get(kind), self.reflectors.get(kind)
            if any(each.version == now for each in there):
                if reflector is not None and reflector.is_absent:
                    reflector.look_again()
                continue
            if kind in self._work:
                self._work.pop(kind).cancel()
            log.info("follows a kind" if now is None else "follows a kind in another version",
                     extra={"kind": kind.called, "version": there[0].version})  # fmt: skip
            self._follow(kind, there[0].version)
            begun.append(kind)
        self.absent = [kind for kind in self._kinds if kind not in self.reflectors]
        return begun

    def _heard(self, kind: Kind, error: ApiError) -> None:
        """A right that is missing is told once."""
        if error.is_forbidden and kind not in self._refused:
            self._refused.add(kind)
            log.warning("a kind may not be seen", extra={"needs": _rights(kind)})


def _rights(kind: Kind) -> str:
    return f"get, list, watch on {kind.called}"


def _sink(world: World, kind: Kind, api_version: str) -> Sink:
    if kind.type is None:
        return _plain(world, kind, api_version)
    put, drop = _typed(world, kind)

    def sink(changes: list[Change[Any]]) -> None:
        for change in changes:
            if change.object is None:
                drop(change.key)
            else:
                put(change.object)

    return sink


def _plain(world: World, kind: Kind, api_version: str) -> Sink:
    def sink(changes: list[Change[Any]]) -> None:
        for change in changes:
            if change.object is None:
                world.drop_object((kind.group, kind.kind, *change.key))
            else:
                # Items of a list do not say what they are.
                world.put_object({"apiVersion": api_version, "kind": kind.kind, **change.object})

    return sink


def _typed(world: World, kind: Kind) -> tuple[Callable[[Any], None], Callable[[tuple[str, str]], None]]:
    def named(drop: Callable[[str], None]) -> Callable[[tuple[str, str]], None]:
        return lambda key: drop(key[1])

    stock = world.stock
    match kind.kind:
        case "Node":
            return world.put_node, named(world.drop_node)
        case "Pod":
            return world.put_pod, world.drop_pod
        case "PriorityClass":
            return world.put_priority, named(world.drop_priority)
        case "PersistentVolumeClaim":
            return stock.put_claim, stock.drop_claim
        case "PersistentVolume":
            return stock.put_volume, named(stock.drop_volume)
        case "StorageClass":
            return stock.put_class, named(stock.drop_class)
        case "CSINode":
            return stock.put_limits, named(stock.drop_limits)
        case "CSIDriver":
            return stock.put_driver, named(stock.drop_driver)
        case "CSIStorageCapacity":
            return stock.put_capacity, stock.drop_capacity
        case "ResourceSlice":
            return world.put_slice, named(world.drop_slice)
        case "DeviceClass":
            return world.put_device_class, named(world.drop_device_class)
        case "PodDisruptionBudget":
            return world.put_budget, world.drop_budget
        case "GPUQueue":
            return world.put_queue, named(world.drop_queue)
        case "GPUReservation":
            return world.put_reservation, named(world.drop_reservation)
        case "GPUClass":
            return world.put_gpu_class, named(world.drop_gpu_class)
        case "NodeLedger":
            return world.put_ledger, named(world.drop_ledger)
        case "GPUTopology" | "Topology":
            group = kind.group
            return (lambda thing: world.put_topology(group, thing)), (lambda key: world.drop_topology(group, key[1]))
    raise ValueError(f"no place in the world for {kind.kind}")
