"""Shares, places in time, and leaving in time, on the real API server: what the simulator decides happens there."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from devcluster.fake_kubelet import RUN_FOR
from gangs import JOB, KEYED, UPSTREAM, bound
from stage import SetStage, Stage

QUEUE = "berth.dev/queue"


def of(queue: str) -> dict[str, dict[str, str]]:
    """A pod's label that says who pays."""
    return {"labels": {QUEUE: queue}}


def limited(text: str) -> dict[str, dict[str, str]]:
    return {"annotations": {"berth.dev/time-limit": text}}


def names(stage: Stage, prefix: str) -> set[str]:
    return {pod["metadata"]["name"] for pod in bound(stage.pods()) if pod["metadata"]["name"].startswith(prefix)}


# ---- shares


def test_a_queue_takes_back_what_it_is_due_and_no_more(set_stage: SetStage, berth_object: Callable[..., str]) -> None:
    """Two queues of equal weight, one has filled all 32 GPUs: the other's gang of 16 gets its half, and the rest of its
    work waits; nobody takes turns."""
    stage = set_stage(4)
    for name in ("ours", "theirs"):
        berth_object("GPUQueue", f"{stage.namespace}-{name}")
    ours, theirs = (f"{stage.namespace}-{name}" for name in ("ours", "theirs"))
    stage.run()
    batch = stage.replicas("batch", 32, 1, **of(theirs))
    stage.create(batch)
    stage.wait_whole(batch)
    gang = stage.gang(UPSTREAM, "train", 2, 8, **of(ours))
    more = stage.gang(UPSTREAM, "more", 2, 8, **of(ours))
    stage.create(gang)
    stage.wait_whole(gang, timeout_s=15)
    stage.create(more)
    stage.wait_verdict("more", "NotEnoughGpus")
    stage.until(lambda: len(stage.pods("batch")) == 32, 10, "who left is made again and waits")
    there = {pod["metadata"]["uid"] for pod in bound(stage.pods())}
    stage.stays(
        lambda: {pod["metadata"]["uid"] for pod in bound(stage.pods())} == there, 4, "the shares are as they are due"
    )
    assert len(names(stage, "batch")) == 16 and len(names(stage, "train")) == 2


def test_a_guarantee_is_taken_back_whole_and_is_nobody_elses(
    set_stage: SetStage, berth_object: Callable[..., str], high: str
) -> None:
    """A queue with a quota of 8 lent it; it gets it back at once. Then a higher priority of another queue waits."""
    stage = set_stage(2)
    owner, other = f"{stage.namespace}-owner", f"{stage.namespace}-other"
    berth_object("GPUQueue", owner, quota={"*": 8})
    berth_object("GPUQueue", other)
    stage.run()
    batch = stage.replicas("batch", 16, 1, **of(other))
    stage.create(batch)
    stage.wait_whole(batch)
    mine = stage.gang(JOB, "mine", 8, 1, **of(owner))
    stage.create(mine)
    stage.wait_whole(mine, timeout_s=15)
    stage.create(stage.single("urgent", 8, priority_class=high, **of(other)))
    stage.until(lambda: names(stage, "urgent"), 15, "within its own queue its priority counts")
    assert len(names(stage, "mine")) == 8 and not names(stage, "batch")


def test_beyond_the_quota_runs_only_what_may_leave(set_stage: SetStage, berth_object: Callable[..., str]) -> None:
    stage = set_stage(2)
    queue = f"{stage.namespace}-small"
    berth_object("GPUQueue", queue, quota={"*": 4})
    stage.run()
    firm = {"labels": {QUEUE: queue}, "annotations": {"berth.dev/preemptible": "false"}}
    within, beyond, lent = (
        stage.single("within", 4, **firm), stage.single("beyond", 4, **firm), stage.single("lent", 4, **of(queue)),
    )  # fmt: skip
    stage.create(within)
    stage.wait_whole(within)
    stage.create(beyond, lent)
    stage.wait_whole(lent)
    stage.wait_verdict("beyond", "QuotaExceeded")


# ---- places in time


def test_small_work_starts_before_a_blocked_gang_only_where_it_delays_it_by_nothing(set_stage: SetStage) -> None:
    stage = set_stage(2)
    stage.run()
    runs = stage.single("runs", 8, **limited("30m"))
    stage.create(runs)
    stage.wait_whole(runs)
    stage.create(stage.gang(UPSTREAM, "wide", 2, 8, **limited("1h")))
    stage.wait_verdict("wide", "NotEnoughGpus")
    stage.create(stage.single("long", 4, **limited("4h")))
    said = stage.wait_verdict("long", "BehindReservation")
    assert "wide" in str(said["causes"])
    short = stage.single("short", 4, **limited("10m"))
    stage.create(short)
    stage.wait_whole(short, timeout_s=5)
    stage.delete(next(iter(names(stage, "runs"))))
    stage.delete(next(iter(names(stage, "short"))))
    stage.until(lambda: len(names(stage, "wide")) == 2, 10, "the gang gets its place")


# ---- leaving in time


def test_who_has_just_started_is_left_alone_for_its_least_time(set_stage: SetStage, high: str) -> None:
    stage = set_stage(1)
    stage.run()
    low = stage.single("low", 8, annotations={"berth.dev/min-runtime": "8s"})
    stage.create(low)
    stage.wait_whole(low)
    began = time.monotonic()
    urgent = stage.single("urgent", 8, priority_class=high)
    stage.create(urgent)
    stage.stays(lambda: bool(names(stage, "low")), 5, "it is protected")
    stage.wait_whole(urgent, timeout_s=15)
    assert time.monotonic() - began > 6


def test_who_has_saved_its_work_leaves_before_who_would_lose_it(set_stage: SetStage, high: str) -> None:
    """Both have run for a while; one wrote a checkpoint a moment ago."""
    stage = set_stage(2)
    stage.run()
    saved_at = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")  # later than it can lose
    saved = stage.single("saved", 8, annotations={"berth.dev/last-checkpoint": saved_at})
    stage.create(saved)
    stage.wait_whole(saved)
    loses = stage.single("loses", 8)  # of equals the one that came last would leave
    stage.create(loses)
    stage.wait_whole(loses)
    time.sleep(10)
    gang = stage.gang(KEYED, "urgent", 1, 8, priority_class=high)
    stage.create(gang)
    stage.wait_whole(gang, timeout_s=10)
    assert names(stage, "loses") and not names(stage, "saved")


def test_what_is_scattered_is_put_together_by_work_that_saves_itself(set_stage: SetStage) -> None:
    """Ten GPUs are free on two nodes and none has eight: two are moved, which their owner makes again elsewhere."""
    stage = set_stage(2)
    stage.run(values={"defragmentation.gpuHoursPerDay": 10})
    stays, filler = stage.single("stays", 4), stage.single("filler", 4)
    stage.create(stays)
    stage.wait_whole(stays)
    stage.create(filler)
    stage.wait_whole(filler)
    saves = stage.replicas("saves", 1, 2, annotations={"berth.dev/checkpoint-every": "1m"})
    stage.create(saves)
    stage.wait_whole(saves)
    before = stage.nodes_of("saves")
    assert before != stage.nodes_of("stays")
    stage.delete("filler")
    wide = stage.single("wide", 8)
    stage.create(wide)
    stage.wait_whole(wide, saves, timeout_s=15)
    assert stage.nodes_of("wide") == before and stage.nodes_of("saves") == stage.nodes_of("stays")


# ---- by what is left to do


def phases(stage: Stage, prefix: str) -> set[str]:
    """Of the pods whose name begins so."""
    pods = stage.admin.items(stage.pods_path)
    return {pod["status"].get("phase", "") for pod in pods if pod["metadata"]["name"].startswith(prefix)}


def test_short_work_passes_long_work_which_is_set_aside_and_comes_back(set_stage: SetStage) -> None:
    """Pods of one GPU have always taken a second, and nobody says how long these take. What says that it takes hours
    and saves itself leaves the node to them, and has it back before what takes longer still. The scheduler knows it
    from pods that ended before it began."""
    stage = set_stage(1)
    before = stage.run("before")
    for number in range(10):
        stage.create(stage.single(f"old-{number}", annotations={RUN_FOR: "1s"}))
    stage.until(lambda: phases(stage, "old") == {"Succeeded"}, 30, "ten have ended")
    before.stop()
    stage.run("after", values={"order.by": "least-left", "order.setsAside": "true", "order.stopWaitSeconds": 1})
    keys = {"berth.dev/preemptible": "true", "berth.dev/checkpoint-every": "1s", "berth.dev/time-limit": "4h"}
    long = stage.replicas("long", 1, 8, annotations=keys)
    stage.create(long)
    stage.wait_whole(long)
    first = {pod["metadata"]["uid"] for pod in bound(stage.pods("long"))}
    stage.create(stage.single("longer", 8, **limited("12h")))
    stage.wait_verdict("longer", "NotEnoughGpus")
    stage.stays(lambda: bool(bound(stage.pods("long"))), 3, "nobody leaves for who takes longer")
    for number in range(4):
        stage.create(stage.single(f"short-{number}", annotations={RUN_FOR: "4s"}))
    stage.until(lambda: len(names(stage, "short")) == 4, 15, "short work passes")
    assert not bound(stage.pods("long")) and not bound(stage.pods("longer"))
    stage.until(lambda: bound(stage.pods("long")), 30, "it comes back")
    assert phases(stage, "short") == {"Succeeded"} and not bound(stage.pods("longer"))
    assert first.isdisjoint(pod["metadata"]["uid"] for pod in stage.pods("long"))
