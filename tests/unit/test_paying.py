"""Which queue pays, and what is said where it is not the one that a workload names."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube import wire, wire_queues
from berth.model.paying import Payers
from berth.sources.live.world import World

PAYERS = Payers({"team-a": ["team-a"], "prod": ["team-b", "team-a"], "shared": [], "team-c": []})


@pytest.mark.parametrize(
    ("queue", "namespace", "pays"),
    [
        ("", "team-a", "team-a"),  # of two that list it the last by name
        ("prod", "team-a", "prod"),
        ("nope", "team-a", "team-a"),
        ("shared", "team-b", "prod"),
        ("team-a", "team-b", "prod"),
        ("", "team-c", "team-c"),
        ("shared", "team-c", "team-c"),  # at home by its name
        ("", "elsewhere", "elsewhere"),
        ("shared", "elsewhere", "shared"),
        ("prod", "elsewhere", "elsewhere"),
        ("nope", "elsewhere", "nope"),
    ],
)
def test_who_pays(queue: str, namespace: str, pays: str) -> None:
    assert PAYERS.of(queue, namespace) == pays
    assert bool(PAYERS.doubt(queue, namespace)) is (queue not in ("", pays))


def test_what_is_said_of_a_name_that_does_not_pay() -> None:
    assert PAYERS.doubt("team-aa", "team-a") == (
        "There is no GPUQueue team-aa (close to it: team-a). Queue team-a pays, where namespace team-a is at home."
    )
    assert PAYERS.doubt("prod", "elsewhere").startswith("Queue prod may not be named from namespace elsewhere: its")
    assert not PAYERS.doubt("default", "team-a"), "that is written by controllers where nobody has named a queue"


def pod(name: str, queue: str) -> wire.Pod:
    spec = {"schedulerName": "berth", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]}
    meta = {"name": name, "namespace": "team-a", "uid": name, "labels": {"berth.dev/queue": queue}}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}, wire.Pod)


def gpu_queue(name: str, **spec: Any) -> wire_queues.GPUQueue:
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, wire_queues.GPUQueue)


def test_a_world_follows_queues_that_come_change_and_go() -> None:
    world = World({"berth"})
    world.put_pod(pod("p", "team-b"))

    def said() -> tuple[str, int]:
        (workload,) = world.snapshot(1.0).workloads
        return workload.queue, len(workload.findings)

    assert said() == ("team-b", 0)
    world.put_queue(gpu_queue("team-a", namespaces=["team-a"]))
    assert said() == ("team-a", 1)
    world.put_queue(gpu_queue("team-b", namespaces=["team-a", "team-b"]))
    assert said() == ("team-b", 0)
    world.put_queue(gpu_queue("team-b", namespaces=["team-b"]))
    assert said() == ("team-a", 1)
    world.drop_queue("team-a")
    assert said()[1] == 1, "it is another team's"
    world.drop_queue("team-b")
    assert said() == ("team-b", 0)
