"""What the agent writes of its node, and when; what a refusal costs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from made_up_machine import MadeUpMachine, MadeUpNvml, nvml_device
from stand_in import Answer, Seen, StandIn, refused

from berth.evidence.formats import node_ledger as wire
from berth.kube.access import Access
from berth.kube.few import FewRequests
from berth.node import node_object
from berth.node.keeper import Keeper, Report
from berth.node.look import Looking, Machine
from berth.node.node_object import CORDONED, TAINT, NodeObject, condition_change, read_node, spec_change
from berth.node.writer import Writer, Writes, body_of

LEDGER = "/apis/berth.dev/v1alpha1/nodeledgers/n1"
ALL = "/apis/berth.dev/v1alpha1/nodeledgers"
NODE = "/api/v1/nodes/n1"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
THE_NODE = {
    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u-1", "resourceVersion": "7"},
    "spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]},
    "status": {"capacity": {"nvidia.com/gpu": "2"}, "allocatable": {"nvidia.com/gpu": "2"},
               "conditions": [{"type": "Ready", "status": "True"}]},
}  # fmt: skip
UNFIT = wire.Status(
    state="Unfit", code="GpuFellOffBus", message="GPU has fallen off the bus", gpus="1/2",
    devices=(wire.DeviceSaid("0000:11:00", "Unfit", index=1, code="GpuFellOffBus"),),
)  # fmt: skip
FIT = wire.Status(state="Fit", gpus="2/2")
UNKNOWN = wire.Status(state="Unknown", code="NotSeen")


@pytest.fixture
def report(tmp_path: Path) -> Report:
    machine = MadeUpMachine(tmp_path)
    nvml = MadeUpNvml([nvml_device(0), nvml_device(1)])
    return Keeper(Machine(machine.places, "n1", Looking(socket_s=0.1), nvml)).step()


def live(story: Callable[[StandIn, FewRequests], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(20), StandIn() as server, FewRequests(Access(server=server.url)) as client:
            await story(server, client)

    asyncio.run(run())


def played(server: StandIn) -> None:
    """An API server that has the node and no ledger yet."""
    made: list[bool] = []

    def patch(seen: Seen) -> Answer:
        return Answer({}) if made else refused(404, "NotFound")

    def create(seen: Seen) -> Answer:
        made.append(True)
        return Answer({}, 201)

    server.on(f"{LEDGER}/status", patch)
    server.on(ALL, create)
    server.on(NODE, Answer(THE_NODE))
    server.on(f"{NODE}/status", Answer(THE_NODE))
    server.on(EVENTS, Answer({}, 201))


def bodies(server: StandIn, path: str, verb: str) -> list[dict[str, Any]]:
    return [json.loads(one.body) for one in server.asked(path) if one.verb == verb]


def test_the_ledger_is_made_once_and_then_written_when_it_says_something_new(report: Report) -> None:
    async def story(server: StandIn, client: FewRequests) -> None:
        played(server)
        writer = Writer(client, "n1", Writes(heartbeat_s=60))
        assert await writer.restored() is None and writer.knows
        await writer.node_facts(report.looked.at_s, True)
        await writer.write(report)
        (made,) = bodies(server, ALL, "POST")
        assert made["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u-1"}]
        assert len(bodies(server, f"{LEDGER}/status", "PATCH")) == 2, "refused, and again once it was there"
        await writer.write(report)
        assert len(bodies(server, f"{LEDGER}/status", "PATCH")) == 2, "nothing new"
        writer._said_s -= 60
        await writer.write(report)
        assert len(bodies(server, f"{LEDGER}/status", "PATCH")) == 3, "a heartbeat"
        last = bodies(server, f"{LEDGER}/status", "PATCH")[-1]["status"]
        assert last["state"] == "Fit" and last["faults"] is None, "what is not said is taken out"
        (condition,) = bodies(server, f"{NODE}/status", "PATCH")[0]["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == ("GPUHealthy", "True", "Fit")
        assert not server.asked(EVENTS)

    live(story)


def test_a_refusal_costs_what_it_is_for_and_nothing_else(report: Report) -> None:
    async def story(server: StandIn, client: FewRequests) -> None:
        server.on(NODE, Answer(THE_NODE))
        server.on(f"{NODE}/status", refused(403, "Forbidden", "no"))
        server.on(f"{LEDGER}/status", Answer({}))
        server.on(LEDGER, refused(403, "Forbidden"))
        writer = Writer(client, "n1", Writes())
        await writer.restored()
        await writer.node_facts(report.looked.at_s, True)
        await writer.write(report)
        assert writer.counts["nodeledgers patch", "done"] == 1
        assert writer.counts["nodes/status patch", "Forbidden"] == 1

    live(story)


def test_a_ledger_that_could_not_be_read_is_not_written_over(report: Report) -> None:
    async def story(server: StandIn, client: FewRequests) -> None:
        played(server)
        server.on(LEDGER, refused(500, "InternalError"), Answer({"status": {"state": "Unfit", "bootId": "b"}}))
        writer = Writer(client, "n1", Writes(condition=False, events=False))
        assert await writer.restored() is None and not writer.knows
        await writer.write(report)
        assert not server.asked(f"{LEDGER}/status")
        said = await writer.restored()
        assert said is not None and said.state == "Unfit" and writer.knows
        await writer.write(report)
        assert server.asked(f"{LEDGER}/status")

    live(story)


def test_a_node_without_gpus_has_no_ledger(tmp_path: Path) -> None:
    nothing = Keeper(Machine(MadeUpMachine(tmp_path, gpus=0).places, "n1", Looking(socket_s=0.1))).step()
    assert not nothing.has_gpus

    async def story(server: StandIn, client: FewRequests) -> None:
        played(server)
        writer = Writer(client, "n1", Writes())
        await writer.node_facts(nothing.looked.at_s, True)
        await writer.write(nothing)
        assert [one.verb for one in server.seen] == ["GET"]

    live(story)


def test_what_the_configuration_forbids_is_not_written(report: Report) -> None:
    async def story(server: StandIn, client: FewRequests) -> None:
        played(server)
        writer = Writer(client, "n1", Writes(ledger=False, condition=False, events=False))
        await writer.node_facts(report.looked.at_s, True)
        await writer.write(report)
        assert [one.verb for one in server.seen] == ["GET"]

    live(story)


def test_the_queue_of_a_pod_is_asked_for_once() -> None:
    async def story(server: StandIn, client: FewRequests) -> None:
        pods = "/api/v1/namespaces/ml/pods"
        server.on(f"{pods}/a", Answer({"metadata": {"labels": {"berth.dev/queue": "research"}}}))
        server.on(f"{pods}/b", refused(403, "Forbidden"))
        server.on(f"{pods}/c", Answer({"metadata": {}}))
        writer = Writer(client, "n1", Writes())
        wanted = {"ml/a": "research", "ml/b": "ml", "ml/c": "ml"}
        assert await writer.queues_of(set(wanted)) == wanted
        assert await writer.queues_of({"ml/a"}) == {"ml/a": "research"}
        assert len(server.asked(f"{pods}/a")) == 1
        quiet = Writer(client, "n1", Writes(queues=False))
        assert await quiet.queues_of({"ml/a"}) == {"ml/a": "ml"}
        assert len(server.asked(f"{pods}/a")) == 1

    live(story)


# ---- the node's own object


def node(**more: Any) -> NodeObject:
    return read_node(json.dumps({**THE_NODE, **more}).encode())


def test_the_condition_is_false_as_soon_as_one_device_is_unfit() -> None:
    change = condition_change(node(), UNFIT, "2026-01-01T00:00:00Z")
    assert change is not None
    (said,) = json.loads(change)["status"]["conditions"]
    assert (said["status"], said["reason"]) == ("False", "GpuFellOffBus")
    assert said["message"].startswith("GPU 1: GpuFellOffBus")
    there = node(status={"conditions": [{**said, "lastTransitionTime": "2025-01-01T00:00:00Z"}]})
    assert condition_change(there, UNFIT, "2026-01-02T00:00:00Z") is None
    again = condition_change(there, wire.Status(state="Unfit", code="Other", message="m"), "2026-01-02T00:00:00Z")
    assert again is not None
    assert json.loads(again)["status"]["conditions"][0]["lastTransitionTime"] == "2025-01-01T00:00:00Z"
    assert node_object.condition_of(UNKNOWN)[:2] == ("Unknown", "NotSeen")
    assert node_object.condition_of(wire.Status(state="Suspect", code="Slow", message="m"))[:2] == ("True", "Slow")


def test_taint_and_cordon_leave_those_of_others_alone() -> None:
    at = "2026-01-01T00:00:00Z"
    assert spec_change(node(), UNFIT, at, taints=False, cordons=False) is None
    change = json.loads(spec_change(node(), UNFIT, at, taints=True, cordons=True) or b"{}")
    assert change["metadata"]["resourceVersion"] == "7", "others write taints, too"
    assert [one["key"] for one in change["spec"]["taints"]] == ["theirs", TAINT]
    assert change["spec"]["unschedulable"] is True and change["metadata"]["annotations"] == {CORDONED: "GpuFellOffBus"}
    ours = node(
        metadata={"name": "n1", "resourceVersion": "8", "annotations": {CORDONED: "x"}},
        spec={"unschedulable": True, "taints": change["spec"]["taints"]},
    )
    assert spec_change(ours, UNFIT, at, taints=True, cordons=True) is None
    assert spec_change(ours, UNKNOWN, at, taints=True, cordons=True) is None, "not known is not mended"
    back = json.loads(spec_change(ours, FIT, at, taints=True, cordons=True) or b"{}")
    assert [one["key"] for one in back["spec"]["taints"]] == ["theirs"]
    assert back["spec"]["unschedulable"] is None and back["metadata"]["annotations"] == {CORDONED: None}
    theirs = node(spec={"unschedulable": True})
    assert spec_change(theirs, FIT, at, taints=True, cordons=True) is None, "somebody else has cordoned it"
    both = spec_change(theirs, UNFIT, at, taints=False, cordons=True)
    assert both is None, "it is cordoned already, and not by us"


def test_a_status_is_sent_whole() -> None:
    sent = json.loads(body_of(FIT))["status"]
    assert set(sent) == {field.encode_name for field in wire.msgspec.structs.fields(wire.Status)}
    assert sent["driver"] == {"version": None, "cuda": None, "nvml": None}
    assert sent["devices"] is None and sent["state"] == "Fit"
