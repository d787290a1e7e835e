"""Binds: order within a gang, what an answer that never came means, and who may still write."""

from __future__ import annotations

import asyncio

import pytest

from berth.actions.binding import LOST_S, TOGETHER, Binder, Order, Outcome, Result
from berth.actions.window import SLOW_S
from berth.kube import wire
from berth.kube.errors import ApiError, Unreachable


def order(name, node="n0"):
    return Order(("a", name), f"uid-{name}", node)


class Server:
    """Pods by name: the node that each has. `answers` are errors to raise, by pod, first to last."""

    def __init__(self, *names):
        self.pods = dict.fromkeys(names, "")
        self.uids = {name: f"uid-{name}" for name in names}
        self.answers = {}
        self.arrives_unheard = set()
        self.sent = []
        self.annotations = {}
        self.under_way = 0
        self.most_under_way = 0

    async def bind(self, namespace, pod, uid, version, node, annotations=None, *, timeout_s=0):
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        self.sent.append(pod)
        if annotations:
            self.annotations[pod] = annotations
        if pod in self.arrives_unheard:
            self.arrives_unheard.discard(pod)
            self.pods[pod] = node
            raise Unreachable("no answer in time", verb="POST", path="")
        if self.answers.get(pod):
            raise self.answers[pod].pop(0)
        if pod not in self.pods:
            raise ApiError(404, "NotFound", "not found", verb="POST", path="")
        if self.pods[pod] or self.uids[pod] != uid:
            raise ApiError(409, "Conflict", "pod is already assigned", verb="POST", path="")
        self.pods[pod] = node

    async def get(self, path, type):
        name = path.rpartition("/")[2]
        if name not in self.pods:
            raise ApiError(404, "NotFound", "not found", verb="GET", path=path)
        return wire.Pod(
            metadata=wire.ObjectMeta(name=name, namespace="a", uid=self.uids[name]),
            spec=wire.PodSpec(node_name=self.pods[name] or None),
        )


def run(server, *workloads, may_write=lambda: True, decision=None, **options):
    """Submit each workload's orders and wait; the outcomes in order."""
    heard: list[Outcome] = []

    async def nap(_):
        await asyncio.sleep(0)

    async def work():
        binder = Binder(server, heard.append, may_write=may_write, sleep=nap, **options)
        for orders in workloads:
            binder.submit(orders, decision)
        await asyncio.wait_for(binder.idle(), 5)
        await binder.close()

    asyncio.run(work())
    return heard


def results(heard):
    return {outcome.order.key[1]: outcome.result for outcome in heard}


def test_a_gang_begins_with_its_decision_and_goes_out_before_what_comes_later():
    names = [f"g{i}" for i in range(5)]
    server = Server(*names, "late-0", "late-1")
    gang = [order(n) for n in names]
    heard = run(server, gang, [order("late-0"), order("late-1")], decision={"k": "v"}, in_flight=1)
    assert set(results(heard).values()) == {Result.Bound}
    assert server.annotations == {key: {"k": "v"} for key in [*names, "late-0", "late-1"]}, "whoever dies, it is found"
    assert server.sent == [*names, "late-0", "late-1"]


def test_of_a_large_gang_the_first_carries_the_decision_and_is_waited_for():
    names = [f"g{i:02d}" for i in range(TOGETHER + 1)]
    server = Server(*names, "alone")
    heard = run(server, [order(n) for n in names], [order("alone")], decision={"k": "v"}, in_flight=64)
    assert set(results(heard).values()) == {Result.Bound}
    assert server.annotations == {"g00": {"k": "v"}}
    assert server.sent[:2] == ["g00", "alone"]


def test_few_gangs_begin_at_a_time_and_those_that_have_begun_are_whole_in_their_order():
    gangs = [[f"g{g:02d}-{i}" for i in range(8)] for g in range(20)]
    server = Server(*(name for gang in gangs for name in gang))
    heard = run(server, *([order(n) for n in gang] for gang in gangs), in_flight=8)
    assert set(results(heard).values()) == {Result.Bound} and len(heard) == 160
    partial = [sum(0 < len([n for n in server.sent[:at] if n[:3] == gang[0][:3]]) < 8 for gang in gangs)
               for at in range(161)]  # fmt: skip
    assert max(partial) <= 4, "of twenty"
    whole_at = [max(server.sent.index(n) for n in gang) for gang in gangs]
    assert whole_at == sorted(whole_at)


class Held(Server):
    """Answers a bind when `answer` is called for its pod."""

    def __init__(self, *names):
        super().__init__(*names)
        self.held = {}

    @property
    def under(self):
        return set(self.held)

    async def bind(self, namespace, pod, *rest, **more):
        self.held[pod] = asyncio.get_running_loop().create_future()
        await self.held[pod]
        await super().bind(namespace, pod, *rest, **more)

    async def answer(self, *pods, error=None):
        for pod in pods:
            if error:
                self.held.pop(pod).set_exception(error)
            else:
                self.held.pop(pod).set_result(None)
        await settled()


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


def test_of_a_small_gang_nothing_is_sent_until_all_of_it_can_be():
    names = ["a", "b", "c", *(f"g{i}" for i in range(4)), "late"]
    server = Held(*names)

    async def work():
        binder = Binder(server, lambda outcome: None, in_flight=6)
        for pods in (["a"], ["b"], ["c"], names[3:7], ["late"]):
            binder.submit([order(name) for name in pods])
        await settled()
        assert server.under == {"a", "b", "c"}, "there is room for three of its four, and it goes before who came later"
        await server.answer("b")
        assert server.under == {"a", "c", "g0", "g1", "g2", "g3"}
        await server.answer("g1")
        assert "late" in server.under
        await server.answer(*server.under)
        await asyncio.wait_for(binder.idle(), 5)
        await binder.close()

    asyncio.run(work())


def test_a_gang_for_which_there_is_never_room_at_once_goes_when_nothing_else_is_under_way():
    names = ["a", *(f"g{i}" for i in range(4))]
    server = Held(*names)

    async def work():
        binder = Binder(server, lambda outcome: None, in_flight=2)
        binder.submit([order("a")])
        binder.submit([order(name) for name in names[1:]])
        await settled()
        assert server.under == {"a"}
        await server.answer("a")
        assert server.under == {"g0", "g1"}
        await server.answer("g0", "g1")
        assert server.under == {"g2", "g3"}
        await server.answer("g2", "g3")
        await asyncio.wait_for(binder.idle(), 5)
        await binder.close()

    asyncio.run(work())


def test_binds_that_are_tried_again_keep_no_others_back():
    names = ["bad-0", "bad-1", *(f"g{i}" for i in range(4))]
    server = Held(*names)

    async def work():
        forever = asyncio.Event()
        binder = Binder(server, lambda outcome: None, in_flight=5, sleep=lambda seconds: forever.wait())
        for pods in (["bad-0"], ["bad-1"], names[2:]):
            binder.submit([order(name) for name in pods])
        await settled()
        assert server.under == {"bad-0", "bad-1"}
        await server.answer("bad-0", "bad-1", error=Unreachable("no answer in time", verb="POST", path=""))
        assert server.under == {"g0", "g1", "g2"}
        await server.answer("g0", "g1", "g2")
        await server.answer("g3")
        assert binder.pending == 2
        await binder.close()

    asyncio.run(work())


def test_while_an_answer_is_late_no_more_begin_and_who_never_gets_one_is_not_waited_for():
    names = [f"p{i:02d}" for i in range(30)]
    server = Held(*names)

    async def work():
        binder = Binder(server, lambda outcome: None)
        binder.submit([order(names[29])])
        await settled()
        await server.answer(names[29])
        binder.submit([order(name) for name in names[:10]])
        await settled()
        await asyncio.sleep(1.2 * SLOW_S)
        binder.submit([order(name) for name in names[10:20]])
        await settled()
        assert server.under == set(names[:10])
        await asyncio.sleep(0.3)
        await server.answer(*names[1:10])
        assert server.under == {"p00"}, "it is late, and ten are too many beside it"
        await asyncio.sleep(LOST_S)
        assert server.under == {"p00", *names[10:20]}
        await server.answer(*names[10:20])
        assert binder.pending == 1
        await server.answer("p00")
        await asyncio.wait_for(binder.idle(), 5)
        await binder.close()

    asyncio.run(work())


def test_a_few_late_answers_of_many_keep_nobody_back():
    names = [f"p{i:02d}" for i in range(60)]
    server = Held(*names)

    async def work():
        binder = Binder(server, lambda outcome: None)
        for name in names[:40]:
            binder.submit([order(name)])
        await settled()
        await server.answer(*names[6:40])
        for name in names[40:50]:
            binder.submit([order(name)])
        await asyncio.sleep(1.2 * SLOW_S)
        await server.answer(*names[40:50])
        assert server.under == set(names[:6])
        for name in names[50:60]:
            binder.submit([order(name)])
            await settled()
        assert server.under == {*names[:6], *names[50:60]}
        await server.answer(*server.under)
        await asyncio.wait_for(binder.idle(), 5)
        await binder.close()

    asyncio.run(work())


def test_the_slower_the_answers_the_fewer_binds_are_under_way():
    class Busy(Server):
        """Answers after so many seconds."""

        takes_s = 0.3

        async def bind(self, *order, **more):
            self.under_way += 1
            await asyncio.sleep(self.takes_s)
            self.under_way -= 1
            self.most_under_way = max(self.most_under_way, self.under_way + 1)
            await super().bind(*order, **more)

    async def most(server, binder, pods):
        server.most_under_way = 0
        for name in pods:
            binder.submit([order(name)])
        await asyncio.wait_for(binder.idle(), 20)
        return server.most_under_way

    async def work():
        names = [f"p{i:03d}" for i in range(240)]
        server = Busy(*names)
        binder = Binder(server, lambda outcome: None)
        assert await most(server, binder, names[:64]) == 64
        assert 8 <= await most(server, binder, names[64:80]) < 24
        server.takes_s = 0.0
        await most(server, binder, names[80:160])
        assert await most(server, binder, names[160:]) == 64
        await binder.close()

    asyncio.run(work())


def test_nothing_of_a_large_gang_is_sent_when_its_first_bind_is_refused():
    names = [f"g{i:02d}" for i in range(TOGETHER + 1)]
    server = Server(*names)
    server.answers["g00"] = [ApiError(403, "Forbidden", "a policy says no", verb="POST", path="")]
    heard = run(server, [order(n) for n in names])
    assert results(heard) == dict.fromkeys(names[1:], Result.Withdrawn) | {"g00": Result.Refused}
    assert server.sent == ["g00"]
    assert heard[0].message == "a policy says no"


def test_how_long_a_bind_took_is_told_from_its_decision_on():
    class Slow(Server):
        async def bind(self, *order, **more):
            await asyncio.sleep(0.02)
            await super().bind(*order, **more)

    server = Slow("g0", "g1", "g2", "gone")
    del server.pods["gone"]
    gang = [order(f"g{i}") for i in range(3)]
    heard = run(server, gang, [order("gone")], in_flight=1)
    took = {outcome.order.key[1]: outcome.seconds for outcome in heard}
    assert all(took[f"g{i}"] >= 0.02 * (i + 1) for i in range(3)), "a later bind of a gang has waited for the others"
    assert took["gone"] >= 0.08
    unsent = run(Server("p"), [order("p")], may_write=lambda: False)
    assert [outcome.seconds for outcome in unsent] == [None]


def test_a_bind_that_arrived_without_an_answer_is_bound_and_not_sent_twice():
    server = Server("p")
    server.arrives_unheard.add("p")
    assert results(run(server, [order("p")])) == {"p": Result.Bound}
    assert server.sent == ["p"]


def test_a_bind_that_did_not_arrive_is_sent_until_it_does():
    server = Server("p")
    server.answers["p"] = [Unreachable("refused", verb="POST", path="") for _ in range(12)]
    assert results(run(server, [order("p")])) == {"p": Result.Bound}
    assert len(server.sent) == 13


@pytest.mark.parametrize(
    ("pods", "uids", "expected"),
    [
        ({"p": "elsewhere"}, {"p": "uid-p"}, Result.Taken),
        ({"p": "n0"}, {"p": "uid-p"}, Result.Bound),
        ({"p": ""}, {"p": "another"}, Result.Gone),
        ({}, {}, Result.Gone),
    ],
)
def test_what_a_refusal_means_is_read_off_the_pod(pods, uids, expected):
    server = Server()
    server.pods, server.uids = dict(pods), dict(uids)
    assert results(run(server, [order("p")])) == {"p": expected}


def test_who_leads_no_longer_sends_nothing():
    server = Server("p", "g0", "g1")
    heard = run(server, [order("p")], [order("g0"), order("g1")], may_write=lambda: False)
    assert set(results(heard).values()) == {Result.Withdrawn}
    assert not server.sent


@pytest.mark.parametrize(("arrived", "becomes"), [(True, Result.Bound), (False, Result.Withdrawn)])
def test_a_bind_without_an_answer_stays_unknown_while_nothing_may_be_written(arrived, becomes):
    """Its room is nobody else's until the pod shows what became of it, or a new tenure knows it by its lists."""
    server, heard, leads = Server("p"), [], [True]
    server.answers["p"] = [Unreachable("no answer", verb="POST", path="") for _ in range(99)]

    async def nap(_):
        leads[0] = False
        await asyncio.sleep(0)

    async def work():
        binder = Binder(server, heard.append, may_write=lambda: leads[0], sleep=nap)
        binder.submit([order("p")])
        for _ in range(50):
            await asyncio.sleep(0)
        assert not heard and binder.pending == 1
        if arrived:
            server.pods["p"] = "n0"
        else:
            binder.begin()
        await asyncio.wait_for(binder.idle(), 5)
        await binder.close()

    asyncio.run(work())
    assert results(heard) == {"p": becomes}
    assert server.sent == ["p"]


def test_a_bind_without_an_answer_is_sent_again_once_it_may_be():
    server, calls = Server("p"), [0]
    server.answers["p"] = [Unreachable("no answer", verb="POST", path="")]

    def may_write():
        calls[0] += 1
        return calls[0] < 3 or calls[0] > 8  # asked twice before the first is sent

    assert results(run(server, [order("p")], may_write=may_write)) == {"p": Result.Bound}
    assert server.sent == ["p", "p"]


def test_who_listens_badly_stops_nobody():
    server, heard = Server("p", "q"), []

    def told(outcome):
        heard.append(outcome)
        if outcome.order.key[1] == "p":
            raise RuntimeError("a mistake elsewhere")

    async def work():
        binder = Binder(server, told, in_flight=1)
        binder.submit([order("p")])
        binder.submit([order("q")])
        await asyncio.wait_for(binder.idle(), 5)
        await binder.close()

    asyncio.run(work())
    assert results(heard) == {"p": Result.Bound, "q": Result.Bound}


def test_no_more_than_so_many_are_under_way():
    names = [f"p{i}" for i in range(40)]
    server = Server(*names)
    assert len(run(server, *([order(n)] for n in names), in_flight=8)) == 40
    assert server.most_under_way == 8


def test_a_bind_whose_node_has_gone_while_it_waited_is_not_sent():
    server = Server("p", "g0", "g1", "q")
    gone = [order("p", "dead")], [order("g0", "dead"), order("g1")], [order("q")]
    heard = run(server, *gone, still=lambda one: one.node != "dead")
    assert results(heard) == {
        "p": Result.Withdrawn, "g0": Result.Withdrawn, "g1": Result.Withdrawn, "q": Result.Bound,
    }  # fmt: skip
    assert server.sent == ["q"]
