"""What had run and ended before a scheduler started is read from the pods that the API server still holds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube import wire
from berth.kube.wire import Pod
from berth.model.history import Ended
from berth.model.paying import payers_of
from berth.model.queue import Queue
from berth.scheduling.run_times import RunTimes
from berth.scheduling.starts_past import KEPT, Past
from berth.sources.live import ended as ended_pods
from berth.sources.live.world import World

GANG = "berth.dev/gang"


def pod(name: str, ended: str = "", *, gpus: int = 1, phase: str = "Succeeded", **meta: Any) -> Pod:
    state = {"terminated": {"finishedAt": ended, "exitCode": 0}} if ended else {"running": {}}
    return msgspec.convert(
        {
            "metadata": {
                "name": name, "namespace": "team", "uid": name, "creationTimestamp": "2026-12-01T00:00:00Z", **meta,
            },
            "spec": {
                "schedulerName": "berth", "nodeName": "node-a", "priority": 5,
                "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}],
            },
            "status": {
                "phase": phase, "startTime": "2026-12-01T00:10:00Z", "containerStatuses": [{"state": state}],
            },
        },
        Pod,
    )  # fmt: skip


def known(*pods: Pod) -> list[Ended]:
    world = World(["berth"])
    for one in pods:
        world.put_pod(one)
    return world.ended()[0]


def test_a_pod_that_ended_says_how_long_it_took() -> None:
    (found,) = known(
        pod("a", "2026-12-01T01:10:00Z", gpus=2, annotations={"berth.dev/time-limit": "2h"},
            labels={"berth.dev/queue": "batch"})
    )  # fmt: skip
    assert found.identity == "Pod team/a" and found.milli == 2000 and found.queue == "batch" and found.priority == 5
    assert found.ended_s - found.started_s == 3600.0 and found.started_s - found.created_s == 600.0
    assert found.time_limit_s == 7200.0


def test_a_gang_ends_with_its_last_pod() -> None:
    labels = {GANG: "train"}
    both = known(
        pod("a", "2026-12-01T01:10:00Z", gpus=8, labels=labels), pod("b", "2026-12-01T02:10:00Z", gpus=8, labels=labels)
    )
    (found,) = both
    assert found.milli == 16_000 and found.ended_s - found.started_s == 7200.0
    assert known(pod("a", "2026-12-01T01:10:00Z", labels=labels), pod("b", phase="Running", labels=labels)) == []


@pytest.mark.parametrize(
    "one",
    [pod("a"), pod("a", "2026-12-01T01:10:00Z", phase="Failed"), pod("a", "2026-12-01T01:10:00Z", gpus=0),
     pod("a", "yesterday")],
    ids=["when is not told", "it failed", "it held no GPU", "no time"],
)  # fmt: skip
def test_what_says_nothing_is_passed_over(one: Pod) -> None:
    assert known(one) == []


def test_what_is_deleted_is_forgotten_and_no_more_is_kept_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(["berth"])
    world.put_pod(pod("a", "2026-12-01T01:10:00Z"))
    world.drop_pod(("team", "a"))
    assert world.ended()[0] == []
    monkeypatch.setattr(ended_pods, "KEPT", 3)
    for i in range(5):
        world.put_pod(pod(f"p{i}", "2026-12-01T01:10:00Z"))
    assert sorted(one.identity for one in world.ended()[0]) == ["Pod team/p2", "Pod team/p3", "Pod team/p4"]


def test_a_status_without_containers_ends_at_no_time() -> None:
    assert ended_pods.ended_at_s(wire.PodStatus()) == 0.0


# ---- what becomes of it


def test_what_ended_before_is_history_from_the_start() -> None:
    times = RunTimes()
    some = [
        Ended(f"Job team/j{i}", "team", "", 1000, 0, 1000.0, 100.0 * i, 100.0 * i, 100.0 * i + 250.0) for i in range(9)
    ]
    times.remember(some, (Queue("gpu", namespaces=("team",)),))
    past = Past()
    past.remember(some, payers_of((Queue("gpu", namespaces=("team",)),)))
    history = past.history()
    assert history.has_ended.all() and set(history.attained_s.tolist()) == {250.0} and history.queues == ("gpu",)
    assert past.used_of_limits() == [0.25] * 9


def test_the_last_ones_are_remembered() -> None:
    past = Past()
    past.remember(
        (Ended(f"Job team/j{i}", "team", "", 1000, created_s=i, started_s=i, ended_s=i + 1.0) for i in range(KEPT)),
        payers_of(()),
    )
    history = past.history()
    assert len(history) == KEPT // 2 and history.submitted_s[0] == KEPT // 2
