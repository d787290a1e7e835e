"""Reflectors for all that decides, each telling the world what came and went."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from berth.kube.client import Client
from berth.kube.discover import Served
from berth.kube.reflect import Change, Reflector
from berth.sources.live.kinds import FOLLOWED, NEEDED, Kind
from berth.sources.live.world import World

_BOOKED = ("Node", "Pod")  # what another leader's last writes may have changed

Sink = Callable[[list[Change[Any]]], None]


class Follower:
    """Keeps a world up to date until it is cancelled. Kinds that the cluster does not serve are no error."""

    def __init__(self, client: Client, world: World, served: Served, kinds: Sequence[Kind] = FOLLOWED) -> None:
        self.absent: list[Kind] = []
        self.reflectors: dict[Kind, Reflector[Any]] = {}
        for kind in kinds:
            version = served.version(kind.group, kind.resource)
            if version is None and kind not in NEEDED:
                self.absent.append(kind)
                continue
            version = version or "v1"
            api_version = f"{kind.group}/{version}" if kind.group else version
            prefix = f"/apis/{api_version}" if kind.group else f"/api/{version}"
            self.reflectors[kind] = Reflector(
                client, f"{prefix}/{kind.resource}", kind.type or dict, _sink(world, kind, api_version)
            )
        self.began_s = float("inf")  # on the monotonic clock, when the first list was asked for
        self._again = {kind: asyncio.Event() for kind in self.reflectors}

    async def run(self) -> None:
        """Until cancelled, or until a reflector fails for good."""
        self.began_s = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for kind in self.reflectors:
                tasks.create_task(self._keep(kind))

    async def _keep(self, kind: Kind) -> None:
        """One reflector, begun anew whenever a refresh is asked for."""
        again = self._again[kind]
        while True:
            work = asyncio.create_task(self.reflectors[kind].run())
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

    async def refresh(self) -> None:
        """List pods and nodes anew, and return once they are known. For whoever takes over from another."""
        for kind, reflector in self.reflectors.items():
            if kind.kind in _BOOKED:
                reflector.synced.clear()
                reflector.resource_version = ""
                self._again[kind].set()
        await self.synced()

    async def synced(self) -> None:
        """Return once every kind has been listed."""
        await asyncio.gather(*(reflector.synced.wait() for reflector in self.reflectors.values()))


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

    match kind.kind:
        case "Node":
            return world.put_node, named(world.drop_node)
        case "Pod":
            return world.put_pod, world.drop_pod
        case "PriorityClass":
            return world.put_priority, named(world.drop_priority)
        case "PersistentVolumeClaim":
            return world.put_claim, world.drop_claim
        case "PersistentVolume":
            return world.put_volume, named(world.drop_volume)
        case "PodDisruptionBudget":
            return world.put_budget, world.drop_budget
        case "GPUQueue":
            return world.put_queue, named(world.drop_queue)
        case "GPUTopology" | "Topology":
            group = kind.group
            return (lambda thing: world.put_topology(group, thing)), (lambda key: world.drop_topology(group, key[1]))
    raise ValueError(f"no place in the world for {kind.kind}")
