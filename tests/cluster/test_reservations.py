"""GPUReservations and queues' rules on a real control plane."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from gangs import bound
from stage import SetStage, Stage

QUEUE = "berth.dev/queue"


def in_seconds(seconds: float) -> str:
    return datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def held(stage: Stage, path: str) -> dict[str, Any]:
    """The status of a reservation, its conditions by type."""
    status = stage.admin.get(path).get("status") or {}
    return {**status, **{c["type"]: c["status"] for c in status.get("conditions", ())}}


def test_what_is_reserved_is_there_for_its_queue_alone(set_stage: SetStage, berth_object: Callable[..., str]) -> None:
    stage = set_stage(4)
    for name in ("research", "vision"):
        berth_object("GPUQueue", name)
    path = berth_object("GPUReservation", "sprint", queue="research", gpus=16, until=in_seconds(3600))
    scheduler = stage.run()
    stage.until(lambda: held(stage, path).get("held") == 16, 15, "16 GPUs are held")
    nodes = {one["name"] for one in held(stage, path)["nodes"]}
    assert len(nodes) == 2 and held(stage, path)["Open"] == held(stage, path)["Held"] == "True"

    theirs = stage.gang("keyed", "theirs", 3, 8, labels={QUEUE: "vision"})
    alone = stage.single("alone", 8, labels={QUEUE: "vision"})
    stage.create(theirs)
    stage.wait_verdict("theirs", "Reserved")
    stage.create(alone)
    stage.wait_whole(alone)
    assert not nodes & set(stage.nodes_of("alone"))

    # Whoever decides next goes on with the same nodes.
    scheduler.stop()
    scheduler.start().wait_decides(60)
    ours = stage.gang("keyed", "ours", 2, 8, labels={QUEUE: "research"})
    stage.create(ours)
    stage.wait_whole(ours, timeout_s=40)
    assert set(stage.nodes_of("ours")) == nodes
    stage.until(lambda: held(stage, path).get("used") == 16, 40, "the status says that it is used")
    assert {one["name"] for one in held(stage, path)["nodes"]} == nodes
    assert not bound(stage.pods("theirs"))

    stage.admin.delete(path)
    other = stage.gang("keyed", "other", 1, 8, labels={QUEUE: "vision"})
    stage.create(other)
    stage.wait_whole(other)


def test_who_may_leave_leaves_when_the_window_opens(set_stage: SetStage, berth_object: Callable[..., str]) -> None:
    stage = set_stage(1)
    for name in ("research", "vision"):
        berth_object("GPUQueue", name)
    stage.run()
    yields = stage.single(
        "yields", 4, labels={QUEUE: "vision"}, annotations={"berth.dev/preemptible": "true"}, grace_s=1
    )
    endless = stage.single("endless", 4, labels={QUEUE: "vision"})
    stage.create(yields)
    stage.wait_whole(yields)
    path = berth_object(
        "GPUReservation", "soon", queue="research", nodes=stage.nodes, **{"from": in_seconds(15)}
    )  # fmt: skip
    stage.until(lambda: held(stage, path).get("Open") == "False", 10, "it is kept from then on")
    stage.create(endless)
    stage.wait_verdict("endless", "Reserved", timeout_s=10)
    assert stage.pods("yields"), "until then it stays"

    stage.until(lambda: not stage.pods("yields"), 30, "it has been asked to leave")
    assert held(stage, path)["Open"] == "True"
    team = stage.single("team", 8, labels={QUEUE: "research"})
    stage.create(team)
    stage.wait_whole(team)
    assert not bound(stage.pods("endless"))


def test_a_queue_holds_its_workloads_to_its_rules(set_stage: SetStage, berth_object: Callable[..., str]) -> None:
    stage = set_stage(1)
    berth_object(
        "GPUQueue", "notebooks", maxTimeLimit="8h", allowedClasses=["H100-80GB"], checkpointRequired=True,
        defaults={"checkpoint-every": "10m"},
    )  # fmt: skip
    berth_object("GPUQueue", "old", allowedClasses=["T4-16GB"])
    berth_object("GPUQueue", "parts", sharing=["mig", "time-slice"])
    stage.run()
    weeks = stage.single("weeks", 1, labels={QUEUE: "notebooks"}, annotations={"berth.dev/time-limit": "2d"})
    fine = stage.single("fine", 1, labels={QUEUE: "notebooks"})
    wrong = stage.single("wrong", 1, labels={QUEUE: "old"})
    whole = stage.single("whole", 1, labels={QUEUE: "parts"})
    stage.create(weeks, fine, wrong, whole)
    stage.wait_whole(fine)
    said = stage.wait_verdict("weeks", "TimeLimitTooLong")
    assert said["verdict"] == "Never" and "8 h at most" in said["sentence"]
    stage.wait_verdict("wrong", "ClassNotAllowed")
    said = stage.wait_verdict("whole", "SharingNotAllowed")
    assert "queue parts allows partitions and time-slices" in said["sentence"]
