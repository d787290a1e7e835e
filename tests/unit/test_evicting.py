"""Who leaves is asked once what it is for is written down; who is not let go is left alone for a while."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pytest
from msgspec.structs import replace
from telling_api import Cluster, refused, run, workload
from test_promises import NOW, node, pod, world
from test_telling_others import holding, tell

from berth.actions.binding import Binder
from berth.actions.evicting import Evictor, Leave, Left, Promise
from berth.app.scheduler.driver import Driver
from berth.kube import wire
from berth.kube.errors import ApiError, Unreachable
from berth.model.hold import Hold, Leaving, Place
from berth.scheduling.cycle import cycle
from berth.sources.live.staying import PAUSES_S, STAYS_S
from berth.sources.live.world import World


def error(status, message="no"):
    return ApiError(status, "", message, verb="POST", path="")


class Server:
    """`says` are errors to raise, by pod, first to last; "*" is for every pod that has none."""

    def __init__(self, **says):
        self.says = says
        self.sent = []

    async def answer(self, what, name):
        await asyncio.sleep(0)
        self.sent.append((what, name))
        answers = self.says.get(f"{what}_{name}".replace("-", "_"), [])
        if answers:
            raise answers.pop(0)

    async def evict(self, namespace, name, uid, grace_s=None):
        await self.answer("evict", name)

    async def delete(self, path, *, uid=None):
        await self.answer("delete", path.rpartition("/")[2])

    async def patch(self, path, body, kind="merge"):
        assert kind == "strategic" and path.endswith("/status")
        said = json.loads(body)
        assert said["metadata"]["uid"] and said["status"] == {"nominatedNodeName": "n1"}
        await self.answer("promise", path.split("/")[-2])
        return b""


LEAVES = [Leave(("a", f"low-{i}"), f"uid-low-{i}", "Pod a/high") for i in range(3)]
PROMISES = {"Pod a/high": [Promise(("a", f"high-{i}"), f"uid-high-{i}", "n1") for i in range(2)]}


def play(server, *, may_write=lambda: True, leaves=LEAVES, promises=PROMISES):
    told: list[Left] = []
    promised = []

    async def nap(_):
        await asyncio.sleep(0)

    async def work():
        evictor = Evictor(
            server,
            told.append,
            promised=lambda one, is_written: promised.append((one, is_written)),
            may_write=may_write,
            sleep=nap,
        )
        evictor.submit(leaves, promises)
        evictor.submit(leaves, promises)  # what is under way is not asked again
        async with asyncio.timeout(5):
            while evictor.pending:
                await asyncio.sleep(0)
        await evictor.close()

    asyncio.run(work())
    return {left.leave.key[1]: (left.is_leaving, left.refused) for left in told}, promised


def test_nobody_is_asked_to_leave_before_what_it_is_for_is_written_down():
    server = Server()
    told, promised = play(server)
    assert [what for what, _ in server.sent] == ["promise"] * 2 + ["evict"] * 3
    assert set(told.values()) == {(True, 0)}
    assert promised == [(one, True) for one in PROMISES["Pod a/high"]]


def test_a_promise_that_cannot_be_given_now_is_tried_again_and_then_nobody_is_asked():
    busy = [error(503), Unreachable("no answer", verb="", path="")]
    told, _ = play(server := Server(promise_high_0=list(busy)))
    assert set(told.values()) == {(True, 0)} and server.sent[:4].count(("promise", "high-0")) >= 2
    told, _ = play(server := Server(promise_high_0=busy * 10))
    assert set(told.values()) == {(False, 0)} and "evict" not in dict(server.sent)


@pytest.mark.parametrize("status", [404, 409, 422])
def test_nobody_leaves_for_a_pod_that_is_gone(status):
    told, _ = play(server := Server(promise_high_1=[error(status)]))
    assert set(told.values()) == {(False, 0)} and "evict" not in dict(server.sent)


def test_where_nothing_may_be_written_on_pods_room_is_made_without_a_record():
    told, promised = play(Server(promise_high_1=[error(403, "cannot patch")]))
    assert set(told.values()) == {(True, 0)} and [is_written for _, is_written in promised] == [True, False]


def test_who_leads_no_longer_asks_nobody():
    told, _ = play(server := Server(), may_write=lambda: False)
    assert set(told.values()) == {(False, 0)} and not server.sent


def test_what_a_refusal_was_is_told():
    told, _ = play(Server(evict_low_0=[error(429)], evict_low_1=[error(404)], evict_low_2=[error(403)]))
    assert told == {"low-0": (False, 429), "low-1": (True, 0), "low-2": (False, 403)}


# ---- what follows from it


def busy_pod(name, on, **more):
    return pod(name, on=on, phase="Running", **more)


@pytest.fixture
def here() -> World:
    """Two nodes of eight GPUs, full; one pod of high priority waits."""
    made = world(busy_pod("low-0", "n0"), busy_pod("low-1", "n1"), nodes=2)
    made.put_priority(wire.PriorityClass(metadata=wire.ObjectMeta(name="high"), value=1000))
    made.put_pod(urgent("high"))
    return made


def urgent(name, gpus=8, **more):
    made = pod(name, **more)
    limits = {**made.spec.containers[0].resources.limits, "nvidia.com/gpu": str(gpus)}
    container = replace(made.spec.containers[0], resources=replace(made.spec.containers[0].resources, limits=limits))
    return replace(made, spec=replace(made.spec, priority_class_name="high", containers=(container,)))


HIGH = "Pod a/high"


def decide(world, now_s):

    plan = cycle(world.snapshot(now_s))
    for hold in plan.holds:
        world.keep(hold)
    return [one.allocation.name for one in plan.evictions]


def test_another_pod_is_asked_where_one_is_not_let_go_and_never_in_a_loop(here):
    now_s, asked = NOW, []
    while now_s < NOW + 60:
        for name in decide(here, now_s):
            asked.append((round(now_s - NOW, 2), name))
            here.refuses_to_leave(("a", name), HIGH, f"{name} is needed", now_s, all_alike=True)
        assert here.changes_by_itself_s > now_s
        now_s = min(here.changes_by_itself_s, NOW + 60)
    assert {name for _, name in asked[:2]} == {"low-0", "low-1"}
    assert asked[1][0] <= PAUSES_S[0] + 0.01
    pauses = [b - a for (a, _), (b, _) in pairwise(asked)]
    assert pauses == sorted(pauses) and 6 <= len(asked) <= 12


def test_it_is_told_why_and_a_free_place_is_taken_all_the_same(here):
    decide(here, NOW)
    here.refuses_to_leave(("a", "low-0"), HIGH, "low-0 is needed", NOW)
    (waits,) = here.snapshot(NOW + 0.1).workloads
    assert waits.findings == ("low-0 is needed",) and not waits.preempts
    here.put_node(node("n2"))

    assert cycle(here.snapshot(NOW + 0.1)).node.tolist() == [2]


def test_refusals_at_the_same_moment_count_once(here):
    for _ in range(10):
        here.refuses_to_leave(("a", "low-0"), HIGH, "no", NOW)
    assert not here.snapshot(NOW).workloads[0].preempts
    assert here.snapshot(NOW + PAUSES_S[0]).workloads[0].preempts
    assert here.snapshot(NOW).allocations[0].preemptible is False
    assert here.snapshot(NOW + STAYS_S[0]).allocations[0].preemptible is None


def test_what_is_held_is_the_same_object_while_nothing_changes(here):
    here.refuses_to_leave(("a", "low-0"), HIGH, "no", NOW)
    assert here.snapshot(NOW).allocations[0] is here.snapshot(NOW + 0.5).allocations[0]
    here.drop_pod(("a", "low-0"))
    assert [a.name for a in here.snapshot(NOW + 0.6).allocations] == ["low-1"]


def test_what_others_have_left_is_kept_where_one_of_them_stays():
    hold = Hold(HIGH, (Place("main", "n0"),), leaving=(Leaving("a", "x"), Leaving("a", "y")), until_s=NOW + 60)
    here = world()
    here.keep(hold)
    here.stays(("a", "x"), HIGH)
    assert here.promises.stays(HIGH, ("a", "other")) and not here.promises.stays(HIGH, ("a", "y"))
    assert not here.promises.stays(HIGH, ("a", "y"))


def test_a_gang_of_which_a_part_has_left_already_takes_no_more_than_it_needs():
    """One of two nodes is free by now, and somebody of low priority waits for it: it is not let in."""
    here = world(busy_pod("low-1", "n1"), busy_pod("low-2", "n2"), nodes=3)
    here.put_priority(wire.PriorityClass(metadata=wire.ObjectMeta(name="high"), value=1000))
    for i in range(4):
        here.put_pod(urgent(f"h{i}", 4, gang="g", nominated=f"n{i // 2}"))
    here.put_pod(pod("low-0"))  # made again
    here.adopt(NOW)
    assert decide(here, NOW) == ["low-1"]


def test_driver_tells_the_world_what_it_was(here):
    async def work():
        binder = Binder(None, lambda outcome: None)  # type: ignore[arg-type]
        driver = Driver(here, binder, now=lambda: NOW)
        decide(here, NOW)
        leave = Leave(("a", "low-0"), "uid-low-0", HIGH)
        driver.asked_to_leave(Left(leave, True))
        assert here.snapshot(NOW).workloads[0].preempts
        driver.asked_to_leave(Left(leave, False, "no longer the leader"))
        assert here.snapshot(NOW).workloads[0].preempts
        driver.asked_to_leave(Left(leave, False, "its budget is used up", 429))
        (waits,) = here.snapshot(NOW).workloads
        assert not waits.preempts and "its budget is used up" in waits.findings[0]

    asyncio.run(work())


# ---- the node that was written down is known to whoever tells


@pytest.mark.parametrize("becomes", ["stands", "fails", "ends"])
def test_a_promise_is_not_written_twice_and_is_taken_back_in_the_end(becomes):
    async def story():
        c = Cluster()
        gang = workload("train", 2)
        c.create(gang)
        holding(c, [(gang, refused(gang))])
        await c.settle(1)
        promises = [
            Promise(key, c.world.record(key).uid, "n1") for key in [("team-a", "train-0"), ("team-a", "train-1")]
        ]
        for one in promises:
            c.teller.promising(one)
        hold = Hold(gang.identity, (Place("pods", "n1", 2),), gang.uid, until_s=c.now() + 500)
        tell(c, [(gang, refused(gang))], holds=[hold])
        c.api.log.clear()
        await c.settle(1)
        assert not c.api.log
        if becomes == "ends":  # before the answer to the write comes
            holding(c, [(gang, refused(gang))])
            await c.settle(1)
        for one in promises:
            if becomes != "fails":
                path = f"/api/v1/namespaces/team-a/pods/{one.key[1]}/status"
                body = b'{"metadata":{"uid":"%s"},"status":{"nominatedNodeName":"n1"}}' % one.uid.encode()
                await c.api.request("PATCH", path, body, content_type="application/strategic-merge-patch+json")
            c.teller.promised(one, becomes != "fails")
        await c.settle(1)
        assert [c.nominated(f"train-{i}") for i in range(2)] == (["", ""] if becomes == "ends" else ["n1", "n1"])
        holding(c, [(gang, refused(gang))])
        await c.settle(1)
        assert [c.nominated(f"train-{i}") for i in range(2)] == ["", ""]

    run(story())
