"""What a scheduler answers over HTTP, against a played API server: probes, figures, a snapshot for who may."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
import pytest
from cli_runs import here
from played_cluster import Played, node, pod
from stand_in import refused

from berth.app.scheduler.configuration import Configured
from berth.app.scheduler.listening import listen
from berth.app.scheduler.server import Server
from berth.app.scheduler.settings import Configuration, LevelOf, TopologyOf
from berth.app.scheduler.settings import Server as Address
from berth.kube import wire, wire_queues
from berth.kube.access import Access
from berth.kube.client import Client
from berth.scheduling.cycle import cycle
from berth.sources.live.kinds import NEEDED
from berth.sources.live.world import World
from berth.views.metrics import Measures

Story = Callable[["Bench"], Awaitable[None]]
QUEUE = {
    "apiVersion": "berth.dev/v1alpha1", "kind": "GPUQueue", "metadata": {"name": "ml"}, "spec": {"limit": {"*": 9}},
}  # fmt: skip
JOB = {
    "apiVersion": "batch/v1", "kind": "Job",
    "metadata": {"name": "train", "namespace": "ml", "uid": "job", "annotations": {"berth.dev/min-count": "3",
                 "kubectl.kubernetes.io/last-applied-configuration": "hunter2"}},
    "spec": {"parallelism": 3, "completions": 3, "completionMode": "Indexed",
             "template": {"spec": {"containers": [{"name": "c", "command": ["hunter2"],
                          "env": [{"name": "A", "value": "hunter2"}]}]}}},
}  # fmt: skip
OF_JOB = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job", "controller": True}]


class Reflecting:
    """A reflector as far as it is looked at."""

    def __init__(self, objects: int, is_synced: bool = True) -> None:
        self.objects, self.relists, self.last_heard_s = objects, 2, 0.0
        self.synced, self.answered = asyncio.Event(), asyncio.Event()
        if is_synced:
            self.synced.set()

    def __len__(self) -> int:
        return self.objects


class Bench:
    """A server with a world that holds what the API server plays."""

    def __init__(self, played: Played, client: Client, configuration: Configuration) -> None:
        self.played = played
        self.world = world = World(("berth",))
        for thing in played.things:
            if thing["kind"] == "Node":
                world.put_node(msgspec.convert(thing, wire.Node))
            elif thing["kind"] == "Pod":
                world.put_pod(msgspec.convert(thing, wire.Pod))
            elif thing["kind"] == "GPUQueue":
                world.put_queue(msgspec.convert(thing, wire_queues.GPUQueue))
            elif thing["kind"] == "Job":
                world.put_object(json.loads(json.dumps(thing)))
        self.measures = Measures()
        self.driver = SimpleNamespace(cycles=0)
        self.binder = SimpleNamespace(pending=3)
        self.teller = SimpleNamespace(counts=Counter({"verdict": 4}))
        self.leadership: Any = SimpleNamespace(is_leader=lambda: True, epoch=7, holder="me")
        self.follower = SimpleNamespace(reflectors={kind: Reflecting(5) for kind in NEEDED})
        sockets = listen(Configured(configuration, ()))
        self.server = Server(configuration, self, client, sockets)  # type: ignore[arg-type]

    def decide(self) -> None:
        self.measures.planned(cycle(self.world.snapshot(1e9)))

    async def get(self, path: str, token: str = "") -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        host, port = self.server.address
        async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}{path}", headers=headers) as a:
            return a.status, await a.read()


def bench(story: Story, *things: dict, configuration: Configuration | None = None) -> Played:
    played = Played(*things)
    configuration = configuration or Configuration()
    configuration = msgspec.structs.replace(configuration, server=Address("127.0.0.1", 0))

    async def run() -> None:
        played._set_up()
        async with asyncio.timeout(30), played.server, Client(Access(server=played.server.url)) as client:
            it = Bench(played, client, configuration)
            serving = asyncio.create_task(it.server.run())
            await it.server.listens.wait()
            try:
                await story(it)
            finally:
                serving.cancel()

    asyncio.run(run())
    return played


# ---- probes


def test_alive_and_ready():
    async def story(it: Bench) -> None:
        assert await it.get("/healthz") == (200, b"ok\n")
        assert await it.get("/readyz") == (200, b"ok\n")
        it.follower.reflectors[NEEDED[1]] = Reflecting(0, is_synced=False)
        assert await it.get("/readyz") == (503, b"not listed yet: pods\n")
        # Who stands by for a leader that it has seen is ready, whatever it has listed.
        it.leadership = SimpleNamespace(is_leader=lambda: False, epoch=7, holder="other")
        assert await it.get("/readyz") == (200, b"ok\n")
        it.follower.reflectors[NEEDED[1]] = Reflecting(0)
        it.leadership = SimpleNamespace(is_leader=lambda: False, epoch=0, holder="")
        assert await it.get("/readyz") == (503, b"no leader has been seen yet\n")
        it.leadership = None
        assert await it.get("/readyz") == (200, b"ok\n")
        assert (await it.get("/debug"))[0] == 404

    bench(story)


def test_an_event_loop_that_stood_still_is_told(monkeypatch):
    async def story(it: Bench) -> None:
        it.server._ticked_s -= 11.0
        monkeypatch.setattr(it.server, "_tick", None)
        status, said = await it.get("/healthz")
        assert status == 503 and said.startswith(b"the event loop stood still for 1")

    bench(story)


# ---- figures


def test_metrics_say_what_is():
    async def story(it: Bench) -> None:
        it.decide()
        it.measures.bound("bound", 0.004)
        it.world.assume(("ml", "fits"), "n-2")
        status, body = await it.get("/metrics")
        assert status == 200
        lines = body.decode().splitlines()
        for line in (
            "berth_leader 1.0", "berth_epoch 7.0", "berth_synced 1.0", "berth_binds_pending 3.0",
            "berth_assumed_pods 1.0", 'berth_told_total{what="verdict"} 4.0', 'berth_binds_total{result="bound"} 1.0',
            'berth_bind_seconds_bucket{le="0.005"} 1.0', "berth_cycle_seconds_count 1.0",
            'berth_waiting_workloads{reason="LargerThanNode",verdict="Never"} 1.0',
            'berth_watch_objects{kind="pods"} 5.0', 'berth_watch_relists_total{kind="pods"} 2.0',
            'berth_gpus{gpu_class="H100-80GB"} 16.0', 'berth_gpus_allocated{gpu_class="H100-80GB"} 9.0',
            'berth_queue_waiting_workloads{queue="ml"} 1.0', 'berth_queue_gpus_limit{gpu_class="*",queue="ml"} 9.0',
            'berth_queue_gpus_used{gpu_class="*",queue="ml"} 9.0', 'berth_build_info{version="0.1.0"} 1.0',
        ):  # fmt: skip
            assert line in lines, line
        assert any(line.startswith('berth_step_seconds_total{step="explain"}') for line in lines)
        assert any(line.startswith("process_resident_memory_bytes") for line in lines)
        assert not any("_created" in line for line in lines)

    bench(story, node("n-1"), node("n-2"), QUEUE, pod("runs", gpus=8, on="n-1"), pod("fits"), pod("large", gpus=16))


def test_metrics_before_anything_is_known():
    async def story(it: Bench) -> None:
        it.follower.reflectors[NEEDED[0]] = Reflecting(0, is_synced=False)
        status, body = await it.get("/metrics")
        assert status == 200 and b"berth_synced 0.0" in body and b"berth_gpus{" not in body

    bench(story, node("n-1"))


# ---- who may have a snapshot


def test_a_snapshot_is_for_who_may():
    async def story(it: Bench) -> None:
        it.played.tokens = {"good": "ann", "other": "bob"}
        asked = []
        it.played.may = lambda user, attributes: asked.append((user, attributes)) or user == "ann"
        status, said = await it.get("/debug/snapshot")
        assert status == 401 and b"A bearer token is needed" in said
        assert (await it.get("/debug/snapshot", "bad"))[0] == 401
        status, said = await it.get("/debug/snapshot", "other")
        assert (status, said) == (403, b"bob may not get /debug/snapshot. The ClusterRole for it ends in -debug.\n")
        assert asked == [("bob", {"verb": "get", "path": "/debug/snapshot"})]
        assert (await it.get("/debug/snapshot", "good"))[0] == 200

    bench(story, node("n-1"))


def test_where_the_api_server_cannot_be_asked_nobody_is_let_in():
    async def story(it: Bench) -> None:
        it.played.tokens = {"good": "ann"}
        it.played.server.answers["/apis/authorization.k8s.io/v1/subjectaccessreviews"] = [refused(500, "InternalError")]
        status, said = await it.get("/debug/snapshot", "good")
        assert (status, said) == (503, b"The API server could not be asked who you are.\n")

    bench(story, node("n-1"))


def test_half_a_snapshot_is_not_taken_for_a_whole_one():
    async def story(it: Bench) -> None:
        it.played.tokens = {"good": "ann"}
        it.played.server.answers["/api/v1/pods"] = [refused(500, "InternalError", "etcd is away")]
        with pytest.raises(aiohttp.ClientError):
            await it.get("/debug/snapshot", "good")

    bench(story, node("n-1"))


# ---- what is in it


GANG = [pod(f"train-{i}", gpus=8, ownerReferences=OF_JOB) for i in range(3)]
THINGS = (node("n-1", zone="a"), node("n-2", zone="b"), QUEUE, JOB, pod("runs", gpus=4, on="n-1"), pod("fits"),
          pod("large", gpus=16), pod("over", gpus=7), *GANG)  # fmt: skip


def test_a_snapshot_holds_what_decides_and_no_secret(tmp_path):
    found: dict[str, Any] = {}

    async def story(it: Bench) -> None:
        it.played.tokens = {"good": "ann"}
        it.world.assume(("ml", "fits"), "n-2")
        it.decide()
        _, body = await it.get("/debug/snapshot", "good")
        assert b"hunter2" not in body and b"registry/private" not in body and b"null" not in body
        found.update(json.loads(body))

    bench(story, *THINGS)
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    state, *items = found["items"]
    assert (state["apiVersion"], state["kind"], state["version"], state["epoch"], state["isLeader"]) == (
        "berth.dev/v1alpha1", "BerthState", "0.1.0", 7, True
    )  # fmt: skip
    assert state["assumed"] == [{"namespace": "ml", "pod": "fits", "node": "n-2"}]
    assert state["known"]["nodes"] == 2 and state["timings"]["cycles"] == 1
    assert {v["workload"]: v["causes"][0]["reason"] for v in state["verdicts"]} == {
        "Pod ml/large": "LargerThanNode", "Pod ml/over": "LimitExceeded", "Job ml/train": "LargerThanLimit"
    }  # fmt: skip
    by_name = {(i["kind"], i["metadata"]["name"]): i for i in items}
    assert len(items) == len(THINGS)
    # A pod whose bind is on its way stands where the scheduler counts it.
    assert by_name["Pod", "fits"]["spec"]["nodeName"] == "n-2"
    job = by_name["Job", "train"]
    assert job["metadata"]["annotations"] == {"berth.dev/min-count": "3"}
    assert job["spec"]["template"]["spec"]["containers"] == [{"name": "c"}]


@pytest.mark.parametrize("workload", ["large", "over", "train"])
def test_why_from_a_snapshot_says_what_the_scheduler_said(tmp_path, workload, monkeypatch):
    monkeypatch.setenv("BERTH_NOW", "2026-11-29T12:00:00Z")
    dump = tmp_path / "snapshot.json"
    said: dict[str, Any] = {}

    async def story(it: Bench) -> None:
        it.played.tokens = {"good": "ann"}
        it.world.assume(("ml", "fits"), "n-2")
        it.decide()
        plan = it.measures.last_plan
        assert plan is not None
        verdicts = {plan.workloads[w].name: v for w, v in plan.verdicts.items()}
        cause = verdicts[workload].causes[0]
        said.update(
            verdict=verdicts[workload].answer.value, reason=cause.reason.name, sentence=cause.sentence, need=cause.need,
            have=cause.have, unit=cause.unit, where=cause.where, unlock=list(cause.unlock),
            nodes={block.name: n for block, n in cause.blocks},
        )  # fmt: skip
        dump.write_bytes((await it.get("/debug/snapshot", "good"))[1])

    bench(story, *THINGS)
    ran = here("why", workload, "--from", str(dump), "-o", "json")
    record = json.loads(ran.out)
    assert {key: record["answers"][0][key] for key in said} == said
    assert any(note.startswith("given by a scheduler at ") for note in record["notes"])
    assert not any("passed over" in note for note in record["notes"])


def test_a_snapshot_brings_the_levels_and_classes_of_its_configuration(tmp_path):
    dump = tmp_path / "snapshot.json"

    async def story(it: Bench) -> None:
        it.played.tokens = {"good": "ann"}
        dump.write_bytes((await it.get("/debug/snapshot", "good"))[1])

    mapping = "classes:\n- class: Big\n  match: {size: big}\n  memory: 80Gi\n"
    configuration = Configuration(topology=TopologyOf((LevelOf("hall", "hall"),)), gpu_classes=mapping)
    bench(story, node("n-1", hall="h", size="big"), configuration=configuration)
    ran = here("nodes", "--from", str(dump), "-o", "json")
    found = json.loads(ran.out)["nodes"][0]
    assert (found["gpu_class"], found["domains"]) == ("Big", {"hall": "h"})
    ran = here("nodes", "--from", str(dump), "-o", "json", "--topology", "floor=size")
    assert json.loads(ran.out)["nodes"][0]["domains"] == {"floor": "big"}


def test_kinds_that_the_scheduler_may_not_see_are_named(tmp_path):
    dump = tmp_path / "snapshot.json"

    async def story(it: Bench) -> None:
        it.played.tokens = {"good": "ann"}
        it.played.hidden = {"jobs"}
        dump.write_bytes((await it.get("/debug/snapshot", "good"))[1])

    bench(story, *THINGS)
    assert "jobs is forbidden" in here("nodes", "--from", str(dump)).err
