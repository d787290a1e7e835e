"""A waiting pod that goes is a change: what was said of its workload may not be true any more."""

from __future__ import annotations

import msgspec
import pytest

from berth.kube import wire
from berth.sources.live.world import World


def pod(scheduler: str = "berth", node: str = "", **more: object) -> wire.Pod:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"schedulerName": scheduler, "containers": [container], **({"nodeName": node} if node else {})}
    return msgspec.convert(
        {"metadata": {"name": "p", "namespace": "a", "uid": "u", **more}, "spec": spec, "status": {}}, wire.Pod
    )


def changes(world: World) -> list[int]:
    count = [0]

    def changed() -> None:
        count[0] += 1

    world.on_change = changed
    return count


@pytest.mark.parametrize("scheduler", ["berth", "somebody"])
def test_a_waiting_pod_that_is_deleted_is_a_change_if_it_was_ours(scheduler: str) -> None:
    world = World(["berth"])
    world.put_pod(pod(scheduler))
    count = changes(world)
    world.drop_pod(("a", "p"))
    assert count == [int(scheduler == "berth")]


def test_a_waiting_pod_that_is_about_to_go_is_a_change() -> None:
    world = World(["berth"])
    world.put_pod(pod())
    count = changes(world)
    world.put_pod(pod(deletionTimestamp="2026-11-29T22:00:00Z"))
    assert count == [1]


def test_a_bind_of_ours_is_none() -> None:
    world = World(["berth"])
    world.put_pod(pod())
    count = changes(world)
    world.assume(("a", "p"), "n1")
    world.put_pod(pod(node="n1"))
    assert count == [0]
