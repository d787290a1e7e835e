"""A replica that only looks on is measured as one that decides, and tells nobody."""

from __future__ import annotations

import asyncio

import msgspec
from played_cluster import node, pod

from berth.app.scheduler.configuration import configure
from berth.app.scheduler.run import Beside
from berth.app.scheduler.server import Server
from berth.kube import wire
from berth.kube.access import Access
from berth.kube.client import Client
from berth.kube.discover import Served, ServerVersion
from berth.views.metrics import exposition


def test_what_it_decides_is_measured():
    async def story() -> None:
        access = Access(server="http://127.0.0.1:9")
        async with Client(access) as client:
            beside = Beside(configure(), access, client, Served({}, ServerVersion("1", "37")))
            beside.world.put_node(msgspec.convert(node("n-1"), wire.Node))
            for thing in (pod("fits"), pod("large", gpus=16)):
                beside.world.put_pod(msgspec.convert(thing, wire.Pod))
            await beside.driver._decide()
            assert beside.measures.last_plan is not None
            assert isinstance(beside.server, Server)
            said = exposition(beside.measures, beside.server.moment()).decode().splitlines()
            assert beside.teller.pending == 0
            assert not beside.teller.counts
        assert "berth_cycle_seconds_count 1.0" in said
        assert 'berth_waiting_workloads{reason="LargerThanNode",verdict="Never"} 1.0' in said
        assert any(line.startswith("berth_step_seconds_total{") for line in said)
        assert set(beside.driver.opinions) == {("ml", "fits"), ("ml", "large")}

    asyncio.run(story())
