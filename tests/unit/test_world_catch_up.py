"""Taking in what has changed piece by piece: others have their turn in between, and the snapshot is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from storage_objects import NONE, claim, local, node, pod, storage_class

from berth.kube import wire, wire_volumes
from berth.sources.live import world as worlds
from berth.sources.live.world import World

TYPES = {
    "Node": (wire.Node, "put_node"), "Pod": (wire.Pod, "put_pod"),
}  # fmt: skip
OF_STORAGE = {
    "StorageClass": (wire_volumes.StorageClass, "put_class"),
    "PersistentVolume": (wire_volumes.PersistentVolume, "put_volume"),
    "PersistentVolumeClaim": (wire_volumes.PersistentVolumeClaim, "put_claim"),
}
PODS = 40


def put(world: World, *things: dict) -> None:
    for thing in things:
        kind = thing["kind"]
        type, method = TYPES.get(kind) or OF_STORAGE[kind]
        getattr(world if kind in TYPES else world.stock, method)(msgspec.convert(thing, type))


def with_local_claims() -> World:
    world = World(["berth"])
    put(world, storage_class("local", NONE))
    for i in range(PODS):
        put(world, node(f"n{i}"), local(f"v{i}", f"n{i}"), claim(f"c{i}", "local"), pod(f"p{i}", f"c{i}"))
    return world


def bind_claims(world: World) -> None:
    for i in range(PODS):
        put(world, claim(f"c{i}", "local", volume=f"v{i}"))


async def turns_during(work: Callable, *arguments: float) -> int:
    """How often somebody else had a turn."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await asyncio.sleep(0)
    turns = 0
    await work(*arguments)
    task.cancel()
    return turns


@pytest.fixture(autouse=True)
def _one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "PIECE_S", 0.0)


def test_others_have_their_turn_while_many_claims_are_bound():
    async def story() -> None:
        world, other = with_local_claims(), with_local_claims()
        assert await turns_during(world.catch_up, 1.0) >= PODS
        assert world.snapshot(1.0) == other.snapshot(1.0)
        bind_claims(world)
        bind_claims(other)
        assert await turns_during(world.catch_up, 2.0) >= PODS
        assert world._roster.changed_count == 0
        assert world.snapshot(2.0) == other.snapshot(2.0)
        assert await turns_during(world.catch_up, 3.0) == 0, "there is nothing to do"

    asyncio.run(story())


def test_a_piece_is_as_long_as_it_may_be(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worlds, "PIECE_S", 60.0)

    async def story() -> None:
        assert await turns_during(with_local_claims().catch_up, 1.0) <= 2

    asyncio.run(story())


def test_what_changes_meanwhile_is_in_the_snapshot_and_ends():
    async def story() -> None:
        world, other = with_local_claims(), with_local_claims()
        catching_up = asyncio.create_task(world.catch_up(1.0))
        await asyncio.sleep(0)
        bind_claims(world)
        put(world, node("late"), pod("late"))
        await asyncio.sleep(0)
        world.snapshot(1.0)  # as somebody who looks at the figures does
        put(world, pod("later"))
        await catching_up
        bind_claims(other)
        put(other, node("late"), pod("late"), pod("later"))
        assert world.snapshot(1.0) == other.snapshot(1.0)

    asyncio.run(story())


def test_a_stream_of_changes_is_not_followed_for_ever():
    async def story() -> None:
        world = with_local_claims()

        async def stream() -> None:
            number = 0
            while True:
                number += 1
                put(world, pod(f"s{number}"), pod(f"t{number}"))
                await asyncio.sleep(0)

        streaming = asyncio.create_task(stream())
        async with asyncio.timeout(5):
            await world.catch_up(1.0)
        streaming.cancel()
        assert world._roster.changed_count > 0

    asyncio.run(story())
