"""Whose pods they are: the names that are served now, and of the default scheduler's pods only those with GPUs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import pytest

from berth.kube import wire
from berth.sources.live.world import World

GPU = {"nvidia.com/gpu": "1"}


def pod(name: str, scheduler: str, asks: Mapping[str, str] = GPU, gang: str = "", node: str = "") -> wire.Pod:
    labels = {"berth.dev/gang": gang} if gang else {}
    meta = {"name": name, "namespace": "a", "uid": name, "labels": labels}
    spec: dict[str, Any] = {"schedulerName": scheduler, "containers": [{"resources": {"limits": dict(asks)}}]}
    if node:
        spec["nodeName"] = node
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}, wire.Pod)


def world(names: Collection[str], *pods: wire.Pod) -> World:
    made = World(names)
    for one in pods:
        made.put_pod(one)
    return made


def waiting(of: World) -> dict[str, int]:
    """Pods that are to be placed, by workload."""
    return {w.name: sum(len(names) for names in w.pods) for w in of.snapshot(0.0).workloads}


def test_a_name_that_is_no_longer_served_is_not_ours_at_once() -> None:
    w = world(["berth", "volcano"], pod("ours", "berth"), pod("theirs", "volcano"))
    assert waiting(w) == {"ours": 1, "theirs": 1}
    changes: list[int] = []
    w.on_change = lambda: changes.append(1)
    w.serve(["berth"])
    assert changes and w.schedulers == {"berth"}
    # What was decided while it was ours is not sent any more.
    assert w.assume(("a", "theirs"), "n0") is None
    assert waiting(w) == {"ours": 1}
    w.serve(["berth", "volcano"])
    assert waiting(w) == {"ours": 1, "theirs": 1}


def test_to_serve_the_same_names_is_no_change() -> None:
    w = world(["berth"], pod("ours", "berth"))
    w.on_change = lambda: pytest.fail("nothing has changed")
    w.serve(("berth",))


def test_of_the_default_scheduler_only_pods_that_ask_for_gpus() -> None:
    w = world(["default-scheduler"], pod("gpu", "default-scheduler"), pod("cpu", "default-scheduler", {"cpu": "1"}))
    assert waiting(w) == {"gpu": 1}
    assert w.assume(("a", "cpu"), "n0") is None


def test_a_launcher_without_gpus_goes_with_its_workers() -> None:
    launcher = pod("launcher", "default-scheduler", {"cpu": "1"}, "train")
    w = world(["default-scheduler"], launcher)
    assert waiting(w) == {}
    w.put_pod(pod("worker", "default-scheduler", gang="train"))
    assert waiting(w) == {"train": 2}
    # ... also when they run already and it was made last
    w.put_pod(pod("worker", "default-scheduler", gang="train", node="n0"))
    assert waiting(w) == {"train": 1}
    assert w.assume(("a", "launcher"), "n0") is not None
    assert waiting(w) == {}
    w.drop_pod(("a", "launcher"))
    w.drop_pod(("a", "worker"))
    assert waiting(w) == {}


def test_a_name_that_is_served_later_finds_the_pods_that_wait() -> None:
    w = world(["berth"], pod("early", "volcano"), pod("late", "default-scheduler"))
    assert waiting(w) == {}
    w.serve(["berth", "volcano", "default-scheduler"])
    assert waiting(w) == {"early": 1, "late": 1}
