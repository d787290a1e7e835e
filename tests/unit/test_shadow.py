"""What a shadow reports: the pods that another scheduler placed otherwise, and all of it together."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from played_cluster import node, pod

from berth.app.scheduler import run
from berth.app.scheduler.configuration import configure
from berth.app.scheduler.run import Beside
from berth.kube import wire
from berth.kube.access import Access
from berth.kube.client import Client
from berth.kube.discover import Served, ServerVersion
from berth.sources.live.kinds import NEEDED, PLAIN


def shadow(story: Any) -> None:
    async def work() -> None:
        access = Access(server="http://127.0.0.1:9")
        async with Client(access) as client:
            beside = Beside(configure(), access, client, Served({}, ServerVersion("1", "37")))
            beside.world.put_node(msgspec.convert(node("n-1"), wire.Node))
            beside.world.put_node(msgspec.convert(node("n-2"), wire.Node))
            await story(beside)

    asyncio.run(work())


def put(beside: Beside, *things: dict[str, Any]) -> None:
    for thing in things:
        beside.world.put_pod(msgspec.convert(thing, wire.Pod))


def test_what_another_decided_otherwise_is_a_line_and_an_example(caplog, capsys):
    async def story(beside: Beside) -> None:
        put(beside, pod("same"), pod("other"), pod("large", gpus=16))
        await beside.driver._decide()
        nodes = {key[1]: one.node for key, one in beside.shadow.opinions.items()}
        elsewhere = "n-1" if nodes["other"] == "n-2" else "n-2"
        put(beside, pod("same", on=nodes["same"]), pod("other", on=elsewhere), pod("large", gpus=16, on="n-1"))
        told = {r.pod: (r.bound, r.berth) for r in caplog.records if r.message == "decided otherwise"}
        assert told["ml/other"] == (elsewhere, f"would have placed it on {nodes['other']}")
        assert told["ml/large"][1].startswith("would have had it wait: LargerThanNode: ")
        assert set(told) == {"ml/other", "ml/large"}
        await beside.close()
        said = capsys.readouterr().out
        assert f"ml/other is on {elsewhere}; Berth would have placed it on {nodes['other']}" in said
        assert "1  placed by both on different nodes" in said

    with caplog.at_level("INFO", "berth.decisions"):
        shadow(story)


@pytest.mark.parametrize(("hidden", "said"), [
    (NEEDED[:2], "Nothing could be seen: nodes, pods may not be read. "
     "A shadow needs get, list and watch on nodes, pods."),
    (PLAIN[:1], f"What these say does not count, since they may not be read: {PLAIN[0].called}."),
])  # fmt: skip
def test_what_may_not_be_read_is_told(capsys, hidden, said):
    async def story(beside: Beside) -> None:
        beside.follower.reflectors.clear()
        beside.follower.reflectors.update({kind: SimpleNamespace(is_forbidden=True) for kind in hidden})  # type: ignore[misc]
        await beside.close()

    shadow(story)
    told = capsys.readouterr().out.splitlines()
    assert said in told and any("0 pods" in line for line in told) == said.startswith("What")


def test_the_comparison_is_printed_while_it_runs_and_only_when_it_has_changed(capsys, monkeypatch):
    monkeypatch.setattr(run, "REPORT_S", 0.01)

    async def story(beside: Beside) -> None:
        reports = asyncio.create_task(beside._report_now_and_then())
        await asyncio.sleep(0.1)
        put(beside, pod("fits"))
        await beside.driver._decide()
        await asyncio.sleep(0.1)
        reports.cancel()

    shadow(story)
    heads = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Shadow of")]
    assert [head.split(" that")[0] for head in heads] == ["Shadow of 0 pods", "Shadow of 1 pod"]
