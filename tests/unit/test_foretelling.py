"""Expected starts on a live cluster: told beside the decisions, never often, and only where they moved."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
from telling_api import Cluster, refused, run, workload

from berth.actions.verdicts import has_moved, places
from berth.app.scheduler.foretelling import Foretelling
from berth.model.reasons import Answer, Cause, Reason, Verdict
from berth.model.snapshot import Snapshot
from berth.model.workload import PodSet, Workload
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.starts import Start

HOUR_S = 3600.0


def test_a_verdict_says_when_its_workload_is_expected_to_start() -> None:
    async def story() -> None:
        c = Cluster()
        lone = workload("lone")
        c.create(lone)
        c.plan([(lone, refused(lone))])
        await c.settle(1)
        assert "expectedStart" not in (c.verdict("pod-lone") or {})
        now_s = c.now()
        c.teller.expect({lone.identity: (now_s + HOUR_S, now_s + 2 * HOUR_S, float("inf"))})
        await c.settle(31)
        said = c.verdict("pod-lone") or {}
        assert set(said["expectedStart"]) == {"p10", "p50"}, "what lies beyond what was looked at is not told"
        assert said["expectedStart"]["p10"] < said["expectedStart"]["p50"]
        c.teller.expect({})
        await c.settle(31)
        assert "expectedStart" not in (c.verdict("pod-lone") or {})

    run(story())


def test_starts_that_hardly_move_are_not_written() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        at = c.now() + 2 * HOUR_S
        c.teller.expect({gang.identity: (at, at, at)})
        await c.settle(40)
        c.api.take()
        for step in range(20):
            c.teller.expect({gang.identity: (at + step, at + 2 * step, at + 3 * step)})
            await c.settle(10)
        assert c.api.take() == {}
        c.teller.expect({gang.identity: (at, at + HOUR_S, at + 2 * HOUR_S)})
        await c.settle(40)
        assert c.api.take() == {("PATCH", "verdicts"): 1}, "the group and the pods are not told of it"

    run(story())


@pytest.mark.parametrize(
    ("new", "told", "moved"),
    [
        ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), False),
        ((10.0, 20.0, 30.0), (0.0, 0.0, 0.0), True),
        ((1000.0, 2000.0, 3000.0), (1050.0, 2050.0, 3050.0), False),
        ((1000.0, 2000.0, 3000.0), (1000.0, 2000.0, 3300.0), True),
        ((1000.0, 2000.0, float("inf")), (1000.0, 2000.0, float("inf")), False),
    ],
)
def test_a_tenth_of_the_wait_is_worth_telling(new, told, moved) -> None:
    assert has_moved(new, told, now_s=0.0) is moved


def test_places_carry_the_starts_of_their_workloads() -> None:
    a, b = Workload("a", (), "x", "Job"), Workload("b", (), "x", "Job")
    found = list(places([a, b], (), {b.identity: (1.0, 2.0, 3.0)}))
    assert [one.starts_s for one in found] == [(0.0, 0.0, 0.0), (1.0, 2.0, 3.0)]


# ---- when it is looked


class FakeWatch:
    def __init__(self) -> None:
        self.looks: list[float] = []
        self.threads: set[int] = set()
        self.fails = False
        self.noticed = 0

    wider = 1.0

    def notice(self, plan: Plan, now_s: float) -> None:
        self.noticed += 1

    def look(self, snapshot: Snapshot, plan: Plan) -> dict[int, Start]:
        self.looks.append(snapshot.now_s)
        self.threads.add(threading.get_ident())
        if self.fails:
            raise ValueError("no")
        return {0: Start(1.0, 2.0, 3.0)}


def offered(count: int = 1) -> tuple[Plan, Snapshot]:
    workloads = tuple(Workload(f"w{i}", (PodSet("main", None),), "x", "Job") for i in range(count))  # type: ignore[arg-type]
    none = np.zeros(0, np.int32)
    said = Verdict("x/w0", Answer.NotYet, (Cause(Reason.NotEnoughGpus, "no room"),))
    plan = Plan(workloads, (), none, none, none, np.zeros(0, np.int64), dict.fromkeys(range(count), said), {}, {})
    return plan, Snapshot(workloads=workloads)


def foretelling(told: list, **options) -> tuple[Foretelling, FakeWatch]:
    made = Foretelling(told.append, Policy(), **options)
    made._watch = watch = FakeWatch()  # type: ignore[assignment]
    return made, watch


async def until(holds) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


def test_a_burst_of_plans_is_looked_at_once() -> None:
    async def story() -> None:
        told: list = []
        made, watch = foretelling(told, every_s=1000.0)
        work = asyncio.create_task(made.run())
        for _ in range(20):
            made.offer(*offered())
            await asyncio.sleep(0.002)
        await until(lambda: told)
        assert len(watch.looks) == 1
        assert watch.noticed == 20, "but who starts by any of them is known"
        assert told == [{"Job x/w0": (1.0, 2.0, 3.0)}]
        assert threading.get_ident() not in watch.threads, "the loop that decides is not held"
        work.cancel()

    asyncio.run(story())


def test_while_somebody_waits_it_is_looked_again_changes_or_not() -> None:
    async def story() -> None:
        made, watch = foretelling([], every_s=0.01, again_s=0.05)
        work = asyncio.create_task(made.run())
        made.offer(*offered())
        await until(lambda: len(watch.looks) == 3)
        work.cancel()

    asyncio.run(story())


def test_a_failure_ends_nothing() -> None:
    async def story() -> None:
        told: list = []
        made, watch = foretelling(told, every_s=0.01, again_s=0.05)
        watch.fails = True
        work = asyncio.create_task(made.run())
        made.offer(*offered())
        await until(lambda: watch.looks)
        watch.fails = False
        await until(lambda: told)
        assert not work.done()
        work.cancel()

    asyncio.run(story())


def test_the_next_leader_goes_on_with_what_was_learned() -> None:
    async def story() -> None:
        leaves: dict[str, str] = {}
        told: list = []
        made, watch = foretelling(told, leaves=leaves)
        watch.wider = 1.25
        work = asyncio.create_task(made.run())
        made.offer(*offered())
        await until(lambda: told)
        work.cancel()
        heir = Foretelling(told.append, Policy())
        heir.inherit({})
        heir.inherit({**leaves, "other": "x"})
        assert heir._watch.wider == pytest.approx(1.25)
        heir.inherit({next(iter(leaves)): "no number"})
        assert heir._watch.wider == pytest.approx(1.25)

    asyncio.run(story())


def test_where_nobody_waits_there_is_nothing_to_look_at() -> None:
    async def story() -> None:
        made, watch = foretelling([], every_s=0.01, again_s=0.01)
        work = asyncio.create_task(made.run())
        made.offer(*offered(0))
        await asyncio.sleep(0.1)
        assert watch.looks == []
        work.cancel()

    asyncio.run(story())
