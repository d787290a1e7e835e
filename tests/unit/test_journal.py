"""The log says which workload was placed where and who left for whom, and a burst does not flood it."""

from __future__ import annotations

import asyncio
import logging

import msgspec
from played_cluster import node, pod

from berth.app.scheduler.configuration import configure
from berth.app.scheduler.journal import MOST_LINES, Journal
from berth.app.scheduler.run import Scheduler
from berth.kube import wire
from berth.kube.access import Access
from berth.kube.client import Client
from berth.kube.discover import Served, ServerVersion


def lines(caplog):
    return [(r.message, {k: v for k, v in vars(r).items() if k in ("workload", "pods", "nodes", "pod", "node", "for",
                                                                   "number")}) for r in caplog.records]  # fmt: skip


def test_a_workload_is_a_line_with_its_nodes(caplog):
    journal = Journal(clock=lambda: 0.0)
    with caplog.at_level("INFO", "berth.decisions"):
        journal.placed("PyTorchJob ml/train", ["n-1", "n-2", "n-2"])
        journal.placed("Job ml/wide", [f"n-{i}" for i in range(11)])
        journal.asked_to_leave("ml/low-0", "n-3", "PyTorchJob ml/train")
    first, wide, left = lines(caplog)
    assert first == ("placed", {"workload": "PyTorchJob ml/train", "pods": 3, "nodes": "n-1, n-2 (2)"})
    assert wide[1]["nodes"].endswith("n-7 and 3 more") and wide[1]["pods"] == 11
    assert left == ("asked to leave", {"pod": "ml/low-0", "node": "n-3", "for": "PyTorchJob ml/train"})


def test_a_burst_is_told_in_part_and_counted(caplog):
    clock = [0.0]
    journal = Journal(clock=lambda: clock[0])
    with caplog.at_level("INFO", "berth.decisions"):
        for i in range(MOST_LINES + 30):
            journal.placed(f"Pod ml/p-{i}", ["n-1"])
        journal.asked_to_leave("ml/low", "n-1", "Pod ml/p-0")
        clock[0] = 1.5
        journal.placed("Pod ml/last", ["n-1"])
    told = lines(caplog)
    assert [message for message, _ in told].count("placed") == MOST_LINES + 1
    assert ("placed, more than are told", {"number": 30}) in told
    assert told[-1][1]["workload"] == "Pod ml/last"


def test_nothing_is_made_where_nothing_is_logged(caplog):
    with caplog.at_level(logging.WARNING, "berth.decisions"):
        Journal().placed("Pod ml/p", ["n-1"])
    assert not caplog.records


def test_the_scheduler_tells_what_it_places(caplog):
    async def story() -> None:
        access = Access(server="http://127.0.0.1:9")
        async with Client(access) as client:
            it = Scheduler(configure(), access, client, Served({}, ServerVersion("1", "37")))
            it.world.put_node(msgspec.convert(node("n-1"), wire.Node))
            it.world.put_pod(msgspec.convert(pod("fits"), wire.Pod))
            await it.driver._decide()

    with caplog.at_level("INFO", "berth.decisions"):
        asyncio.run(story())
    assert [(r.workload, r.pods, r.nodes) for r in caplog.records if r.name == "berth.decisions"] == [
        ("Pod ml/fits", 1, "n-1"),
    ]  # fmt: skip
