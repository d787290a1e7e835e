"""Events, nodes that are kept, what an earlier leader left, and queues."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from telling_api import GPU, START_S, Cluster, FakeApi, refused, run, served, workload

from berth.actions.binding import Order
from berth.actions.events import Event, Events
from berth.actions.evicting import Leave, Left
from berth.actions.fence import Fenced
from berth.actions.queue_status import QueueSaid, counted, status_change
from berth.actions.subjects import Reference
from berth.actions.telling import Teller
from berth.model.as_written import queue_problem
from berth.model.cluster import Allocation, GpuClass, Node
from berth.model.hold import Hold, Place
from berth.model.queue import Queue
from berth.model.reasons import Reason, Verdict
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload
from berth.scheduling.plan import Eviction, Plan, Rule

POD = Reference("v1", "Pod", "team-a", "solo", "uid-of-solo")


# ---- events


def test_an_event_that_is_said_again_counts_up() -> None:
    async def story() -> None:
        api = FakeApi()
        written = Events(Fenced(api, lambda: True), "berth-0")
        event = Event(POD, "NotEnoughGpus", "no", is_warning=True)
        for second in (0, 10, 20):
            await written.write(event, START_S + second)
        assert api.take() == {("POST", "events"): 1, ("PATCH", "events"): 2}
        [said] = api.of("events").values()
        assert said["series"]["count"] == 3
        assert (said["type"], said["metadata"]["namespace"], said["regarding"]["uid"]) == ("Warning", "team-a", POD.uid)
        assert said["reportingController"] == "berth.dev/scheduler"
        await written.write(event, START_S + 1000)
        assert api.take() == {("POST", "events"): 1}, "long after it is another series"
        del api.objects[next(p for p in api.objects if p.endswith(said["metadata"]["name"]))]
        await written.write(Event(POD, "NotEnoughGpus", "no"), START_S + 1001)
        assert api.take() == {("PATCH", "events"): 1}

    run(story())


def test_an_event_whose_series_is_gone_begins_anew() -> None:
    async def story() -> None:
        api = FakeApi()
        written = Events(Fenced(api, lambda: True), "berth-0")
        event = Event(POD, "NotEnoughGpus", "no")
        await written.write(event, START_S)
        api.objects.clear()
        await written.write(event, START_S + 1)
        assert len(api.of("events")) == 1

    run(story())


@pytest.mark.parametrize("note", ["n" * 5000, "€" * 900, "€" * 341 + "a"])
def test_a_note_is_cut_to_what_is_taken(note: str) -> None:
    async def story() -> None:
        api = FakeApi()
        await Events(Fenced(api, lambda: True), "x" * 500).write(Event(POD, "R", note), START_S)
        [said] = api.of("events").values()
        assert len(said["note"].encode()) <= 1024
        assert said["note"][:300] == note[:300]
        assert len(said["reportingInstance"]) <= 128

    run(story())


def test_a_flood_of_events_is_spread_and_then_dropped_the_oldest_first() -> None:
    async def story() -> None:
        c = Cluster()
        pods = [workload(f"p{i}") for i in range(2000)]
        c.create(*pods)
        orders = c.plan(placed=pods)
        c.answer(orders)
        await asyncio.sleep(1)
        at_once = c.api.take()["POST", "events"]
        assert 200 <= at_once <= 255
        await c.settle()
        assert at_once + c.api.take()["POST", "events"] == 2000 - c.teller.counts["event_dropped"]
        assert 900 <= c.teller.counts["event_dropped"] <= 1000
        assert "p1999" in {e["regarding"]["name"] for e in c.events()}

    run(story())


def test_an_event_that_was_overtaken_is_not_written() -> None:
    async def story() -> None:
        c = Cluster()
        lone = workload("solo")
        c.create(lone)
        filler = [workload(f"p{i}") for i in range(300)]
        c.create(*filler)
        c.answer(c.plan(placed=filler))
        await asyncio.sleep(0.2)
        c.plan([(lone, refused(lone))])
        await asyncio.sleep(0.2)
        c.answer(c.plan(placed=[lone]))
        await c.settle()
        of_solo = [e["reason"] for e in c.events() if e["regarding"]["name"] == "solo"]
        assert of_solo == ["Scheduled"]

    run(story())


def test_that_a_workload_can_never_run_is_a_warning() -> None:
    async def story() -> None:
        c = Cluster()
        lone = workload("solo")
        c.create(lone)
        c.plan([(lone, refused(lone, Reason.LargerThanCluster))])
        await c.settle()
        [event] = c.events()
        assert event["type"] == "Warning"

    run(story())


def making_room(c: Cluster, victim: Workload, winner: Workload) -> list[Leave]:
    """A plan by which the pods of a workload that runs leave for another."""
    allocations = [
        Allocation(
            "n1", victim.namespace, name, GPU, workload=victim.key, workload_kind=victim.kind, uid=f"uid-of-{name}"
        )
        for name in victim.pods[0]
    ]
    evictions = [Eviction(a, 0, 1.0, Rule.LowerPriority) for a in allocations]
    tell(c, [(winner, refused(winner, Reason.MakingRoom))], evictions=evictions)
    return [Leave((a.namespace, a.name), a.uid, winner.identity) for a in allocations]


@pytest.mark.parametrize("other", ["team-a", "team-b"])
def test_preemption_is_told_on_both_sides_and_names_nobody_of_another_namespace(other: str) -> None:
    async def story() -> None:
        c = Cluster()
        victim, winner = workload("cheap", 2), workload("urgent", 2, namespace=other)
        c.create(victim, winner)
        leaves = making_room(c, victim, winner)
        for leave in leaves:
            c.teller.asked_to_leave(Left(leave, True))
        await c.settle()
        told = {e["reason"]: e for e in c.events()}
        assert {reason: e["regarding"]["name"] for reason, e in told.items()} == {
            "Preempted": "cheap", "MakingRoom": "urgent",
        }  # fmt: skip
        assert told["Preempted"]["note"].startswith("2 pods asked to leave: it has lower priority")
        assert ("urgent" in told["Preempted"]["note"]) is (other == "team-a")
        assert ("related" in told["Preempted"]) is (other == "team-a")
        c.plan([(victim, refused(victim))])
        await c.settle()
        eviction = (c.verdict("podgroup-cheap") or {})["lastEviction"]
        assert (eviction["reason"], eviction["pods"], eviction["lostGpuSeconds"]) == ("Preempted", 2, 7200)
        assert "urgent" not in eviction["sentence"]

    run(story())


def test_who_was_not_made_to_leave_is_not_told_so() -> None:
    async def story() -> None:
        c = Cluster()
        victim, winner = workload("cheap", 2), workload("urgent", 2)
        c.create(victim, winner)
        for leave in making_room(c, victim, winner):
            c.teller.asked_to_leave(Left(leave, False, "its budget does not allow it"))
        await c.settle()
        assert "Preempted" not in {e["reason"] for e in c.events()}

    run(story())


# ---- nodes that are kept


def tell(c: Cluster, waiting: list[tuple[Workload, Verdict]], **more: Any) -> None:
    """Of a plan without binds."""
    workloads = [w for w, _ in waiting]
    none = np.zeros(0, np.int32)
    said = {i: v for i, (_, v) in enumerate(waiting)}
    known = more.pop("known", ())
    plan = Plan(workloads, (), none, none, none, np.zeros(0, np.int64), said, {}, {}, **more)
    c.teller.tell(plan, Snapshot(workloads=tuple(workloads), now_s=c.now(), holds=known), c.world)


def holding(c: Cluster, waiting: list[tuple[Workload, Verdict]], *holds: Hold) -> None:
    """The holds that stand are in the snapshot."""
    tell(c, waiting, known=holds)


def test_a_node_is_nominated_while_it_is_held_and_no_longer() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        hold = Hold(gang.identity, (Place("pods", "n1", 2), Place("pods", "n2", 1)), gang.uid, until_s=c.now() + 500)
        tell(c, [(gang, refused(gang))], holds=[hold])
        await c.settle()
        assert [c.nominated(f"train-{i}") for i in range(4)] == ["n1", "n1", "n2", ""]
        c.api.take()
        holding(c, [(gang, refused(gang))], hold)
        await c.settle()
        assert c.api.take() == {}
        holding(c, [(gang, refused(gang))])
        await c.settle()
        assert [c.nominated(f"train-{i}") for i in range(4)] == ["", "", "", ""]
        assert c.condition("train-0")["reason"] == "Unschedulable"

    run(story())


def test_a_hold_that_runs_out_is_taken_back_without_a_plan() -> None:
    async def story() -> None:
        c = Cluster()
        lone = workload("solo")
        c.create(lone)
        holding(c, [(lone, refused(lone))], Hold(lone.identity, (Place("pods", "n1"),), until_s=c.now() + 30))
        await c.settle(29)
        assert c.nominated("solo") == "n1"
        await c.settle(2)
        assert c.nominated("solo") == ""

    run(story())


def test_a_hold_for_an_earlier_workload_of_the_name_is_no_hold() -> None:
    async def story() -> None:
        c = Cluster()
        lone = workload("solo")
        c.create(lone)
        holding(c, [(lone, refused(lone))], Hold(lone.identity, (Place("pods", "n1"),), "another"))
        await c.settle()
        assert c.nominated("solo") == ""

    run(story())


# ---- what an earlier leader left


async def successor(c: Cluster) -> None:
    """Another process takes over."""
    loop = asyncio.get_running_loop()
    await c.teller.close()
    c.teller = Teller(c.api, served(), schedulers=["berth"], clock=loop.time, now=c.now, instance="berth-1")
    await c.teller.adopt()
    c.api.take()


def test_a_new_leader_writes_only_what_differs() -> None:
    async def story() -> None:
        c = Cluster()
        same, other, gone = workload("same", 3), workload("other", 3), workload("gone", 3)
        c.create(same, other, gone)
        c.plan([(w, refused(w)) for w in (same, other, gone)])
        await c.settle()
        since = (c.verdict("podgroup-same") or {})["since"]
        c.delete(gone)
        await asyncio.sleep(60)
        await successor(c)
        c.plan([(same, refused(same)), (other, refused(other, Reason.QuotaExceeded))])
        await c.settle()
        assert c.api.take() == {
            ("PATCH", "verdicts"): 1, ("DELETE", "verdicts"): 1, ("PATCH", "podgroups"): 2, ("PATCH", "pods"): 3,
            ("POST", "events"): 1,
        }  # fmt: skip
        assert (c.verdict("podgroup-same") or {})["since"] == since
        assert c.verdict("podgroup-gone") is None
        await c.settle(100)
        assert c.api.take() == {}

    run(story())


def test_a_new_leader_writes_numbers_that_differ_when_their_time_comes() -> None:
    async def story() -> None:
        c = Cluster()
        lone = workload("solo")
        c.create(lone)
        c.plan([(lone, refused(lone))])
        await c.settle()
        await successor(c)
        c.plan([(lone, refused(lone, have=4))])
        await c.settle(1)
        assert c.api.take() == {}
        await c.settle(30)
        assert c.api.take() == {("PATCH", "verdicts"): 1}

    run(story())


def test_a_new_leader_takes_back_nodes_that_nobody_keeps() -> None:
    async def story() -> None:
        c = Cluster()
        kept, lost = workload("kept"), workload("lost")
        c.create(kept, lost)
        holds = [Hold(w.identity, (Place("pods", "n1"),)) for w in (kept, lost)]
        holding(c, [(w, refused(w)) for w in (kept, lost)], *holds)
        await c.settle()
        await successor(c)
        holding(c, [(w, refused(w)) for w in (kept, lost)], holds[0])
        await c.settle()
        assert (c.nominated("kept"), c.nominated("lost")) == ("n1", "")
        assert c.api.take() == {("PATCH", "pods"): 1}

    run(story())


def test_a_gang_that_was_placed_when_the_leader_fell_is_told_by_the_next() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 3)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        c.leads = False
        c.answer(c.plan(placed=[gang]))
        await asyncio.sleep(1)
        await successor(c)
        c.plan()
        await c.settle(10)
        assert c.verdict("podgroup-train") is None
        [said] = c.group("train")["conditions"]
        assert (said["status"], said["message"]) == ("True", "3 pods placed")

    run(story())


def test_plans_that_come_while_a_leader_looks_around_are_told_afterwards() -> None:
    async def story() -> None:
        c = Cluster()
        lone, gang = workload("solo"), workload("train", 2)
        c.create(lone, gang)
        c.plan([(lone, refused(lone)), (gang, refused(gang))])
        await c.settle()
        c.api.take()
        loop = asyncio.get_running_loop()
        await c.teller.close()
        c.teller = Teller(c.api, served(), schedulers=["berth"], clock=loop.time, now=c.now, instance="berth-1")
        c.api.latency_s = 1.0
        adopting = asyncio.create_task(c.teller.adopt())
        await asyncio.sleep(0.5)
        c.plan([(lone, refused(lone, Reason.QuotaExceeded)), (gang, refused(gang))])
        c.plan([(lone, refused(lone))], placed=[gang])
        await asyncio.sleep(0.5)
        assert c.api.take() == {}
        c.answer([Order((gang.namespace, n), f"uid-of-{n}", "node-0") for n in gang.pods[0]])
        await adopting
        await c.settle(10)
        assert c.api.take() == {("DELETE", "verdicts"): 1, ("PATCH", "podgroups"): 1, ("POST", "events"): 1}
        assert c.group("train")["conditions"][0]["status"] == "True"

    run(story())


def test_a_leader_that_may_not_list_tells_all_anew() -> None:
    from telling_api import forbidden

    async def story() -> None:
        c = Cluster()
        lone = workload("solo")
        c.create(lone)
        c.plan([(lone, refused(lone))])
        await c.settle()

        def refuse(verb: str, path: str) -> None:
            if verb == "GET":
                raise forbidden(verb, path)

        c.api.refuse = refuse
        await successor(c)
        c.plan([(lone, refused(lone))])
        await c.settle()
        assert c.verdict("pod-solo") is not None

    run(story())


# ---- queues

QUEUES = (
    Queue("all", limit=(("*", 64),)),
    Queue("team-a", "all", quota=(("H100", 8),), namespaces=("team-a",)),
    Queue("team-b", "all"),
)


def held(name: str, namespace: str, queue: str = "", of: str = "") -> Allocation:
    return Allocation("n1", namespace, name, GPU, workload=of, workload_kind="PodGroup" if of else "", queue=queue)


def snapshot_of_queues() -> Snapshot:
    return Snapshot(
        nodes=(Node("n1", gpu_class="H100"),),
        gpu_classes=(GpuClass("H100"),),
        queues=QUEUES,
        allocations=(
            held("a-0", "team-a", of="team-a/a"), held("a-1", "team-a", of="team-a/a"), held("b", "team-b"),
            held("c", "elsewhere", "team-b"), held("d", "elsewhere"),
        ),
    )  # fmt: skip


def test_a_queue_says_what_it_and_those_below_it_hold() -> None:
    async def story() -> None:
        waiting = [workload("w", 2), workload("x", namespace="elsewhere")]
        count = await counted(snapshot_of_queues(), waiting, {"team-a": 12.345})
        said = count.said
        assert said["team-a"].used == (("*", 16), ("H100", 16))
        assert (said["team-a"].running, said["team-a"].waiting, said["team-a"].waiting_gpus) == (1, 1, 16)
        assert (said["team-b"].running, said["team-b"].used) == (2, (("*", 16), ("H100", 16)))
        assert (said["all"].used[0], said["all"].running, said["all"].waiting) == (("*", 32), 3, 1)
        assert (said["team-a"].due, said["team-b"].due) == (12.3, None)
        # What a queue holds itself is what it will have used, those of no object too.
        assert count.holds == {"team-a": 16.0, "team-b": 16.0, "elsewhere": 8.0}

    run(story())


@pytest.mark.parametrize(
    ("queues", "reason"),
    [
        ([Queue("q")], ""),
        ([Queue("q", "nobody")], "ParentNotFound"),
        ([Queue("q", "r"), Queue("r", "q")], "ParentCycle"),
        ([Queue("q", "r"), Queue("r", "s"), Queue("s", "r")], ""),
        ([Queue("q", namespaces=("n",)), Queue("z", namespaces=("n",))], "NamespaceTaken"),
        ([Queue("q", limit=(("H200", 8),))], "UnknownClass"),
        ([Queue("q", limit=(("*", 8), ("H100", 4)))], ""),
    ],
)
def test_a_queue_that_cannot_be_used_as_written_says_why(queues: list[Queue], reason: str) -> None:
    assert queue_problem(queues[0], queues, {"H100"})[0] == reason


def test_a_queues_status_is_written_when_it_changed_and_once_a_minute_at_most() -> None:
    async def story() -> None:
        c = Cluster()
        lone = workload("solo")
        c.create(lone)
        for queue in QUEUES:
            c.api.put(f"/apis/berth.dev/v1alpha1/gpuqueues/{queue.name}", {"metadata": {"generation": 2}})

        def look(waits: bool, allocations: tuple[Allocation, ...] = ()) -> None:
            c.plan([(lone, refused(lone))] if waits else [], queues=QUEUES, allocations=allocations)

        look(True)
        await c.settle(1)
        assert c.api.take()["PATCH", "gpuqueues"] == 3
        status = c.api.objects["/apis/berth.dev/v1alpha1/gpuqueues/team-a"]["status"]
        assert (status["waiting"], status["observedGeneration"]) == (1, 2)
        assert [x["status"] for x in status["conditions"]] == ["True"]
        for _ in range(20):
            look(True, (held("b", "team-b"),))
            await c.settle(1)
            look(False, (held("b", "team-b"), held("b2", "team-b")))
            await c.settle(1)
        assert ("PATCH", "gpuqueues") not in c.api.take()
        await c.settle(25)
        assert c.api.take()["PATCH", "gpuqueues"] == 3
        status = c.api.objects["/apis/berth.dev/v1alpha1/gpuqueues/team-b"]["status"]
        assert status["used"] == {"*": 16}
        look(False)
        await c.settle(61)
        assert c.api.objects["/apis/berth.dev/v1alpha1/gpuqueues/team-b"]["status"]["used"] == {}
        await c.settle(200)
        assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []

    run(story())


def test_past_usage_is_counted_from_where_it_was_and_told_when_it_has_moved() -> None:
    """Eight GPUs for half an hour are four hours; the next leader begins with what the status says."""

    async def story() -> None:
        c = Cluster()
        c.api.put("/apis/berth.dev/v1alpha1/gpuqueues/team-b", {"metadata": {"generation": 1}})
        queues = tuple(q for q in QUEUES if q.name == "team-b")

        def status() -> dict[str, Any]:
            return c.api.objects["/apis/berth.dev/v1alpha1/gpuqueues/team-b"]["status"]

        c.plan(queues=queues, allocations=(held("b", "team-b"),), usage={"team-b": 100.0})
        await c.settle(1)
        assert status()["pastUsage"] == 100.0
        for _ in range(30):
            await c.settle(60)
            c.plan(queues=queues, allocations=(held("b", "team-b"),), usage={"team-b": 100.0})
        await c.settle(61)
        assert 102.7 < status()["pastUsage"] < 104.1  # what differs by a hundredth is told

    run(story())


def test_past_usage_that_has_hardly_moved_is_not_written() -> None:
    at, blank = "2026-12-01T00:00:00Z", {"metadata": {}}
    there = {**blank, "status": status_change(blank, QueueSaid(past=(100.0, 1e9)), at)}
    assert status_change(there, QueueSaid(past=(100.5, 2e9)), at) is None
    moved = status_change(there, QueueSaid(past=(102.0, 2e9)), at)
    assert moved is not None and moved["pastUsage"] == 102.0
    assert "pastUsage" not in (status_change(blank, QueueSaid(past=(0.0, 1e9)), at) or {})


def test_a_queue_that_is_changed_is_looked_at_at_once() -> None:
    async def story() -> None:
        c = Cluster()
        c.api.put("/apis/berth.dev/v1alpha1/gpuqueues/q", {"metadata": {"generation": 1}})
        c.plan(queues=(Queue("q"),))
        await c.settle(1)
        c.plan(queues=(Queue("q", "nobody"),))
        await c.settle(1)
        [said] = c.api.objects["/apis/berth.dev/v1alpha1/gpuqueues/q"]["status"]["conditions"]
        assert (said["status"], said["reason"]) == ("False", "ParentNotFound")

    run(story())
