"""What a NodeLedger makes of a node: what is read of it, who may go there, and when an agent counts as silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from berth.kube import wire
from berth.kube.wire_ledger import NodeLedger
from berth.model.cluster import Device, Health, Node
from berth.model.health import in_words
from berth.model.resources import NVIDIA_GPU, NVIDIA_SHARED, resources
from berth.sources.assemble import read_snapshot
from berth.sources.health import Finding, Report, heed, report_of
from berth.sources.live.world import World

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
MIG = "nvidia.com/mig-1g.5gb"


def ledger(node: str = "n0", **status: Any) -> NodeLedger:
    return msgspec.convert({"metadata": {"name": node}, "status": status}, NodeLedger)


def counted(capacity: int = 8, allocatable: int | None = None) -> Node:
    """A node as it is read without an agent: what the kubelet does not admit counts as unfit, the last first."""
    fit = capacity if allocatable is None else allocatable
    devices = tuple(Device(g, health=Health.Fit if g < fit else Health.Unfit) for g in range(capacity))
    return Node("n0", allocatable=resources({NVIDIA_GPU: fit}), capacity=resources({NVIDIA_GPU: capacity}),
                device_resource=NVIDIA_GPU, devices=devices)  # fmt: skip


def seen(number: int = 8, unfit: dict[int, str] | None = None, **more: Any) -> Report:
    unfit = unfit or {}
    return Report(devices=tuple(
        Finding(index=g, health=Health.Unfit if g in unfit else Health.Fit, code=unfit.get(g, ""))
        for g in range(number)
    ), **more)  # fmt: skip


def unfit_of(node: Node) -> list[int]:
    return [d.index for d in node.devices if d.health == Health.Unfit]


@pytest.mark.parametrize(("code", "words"), [
    ("Xid79", "Xid 79"), ("SXid12028", "SXid 12028"), ("xid_48", "Xid 48"), ("RemapPending", "remap pending"),
    ("GpuFellOffBus", "GPU fell off bus"), ("NvLinkErrors", "NVLink errors"), ("DriverAbsent", "driver absent"),
    ("PCIeLinkSlow", "PCIe link slow"), ("", ""), ("…", "…"),
])  # fmt: skip
def test_codes_as_people_say_them(code: str, words: str) -> None:
    assert in_words(code) == words


def test_every_field_of_a_ledger_may_be_missing() -> None:
    assert report_of(NodeLedger()) == Report(Health.Unknown)
    assert report_of(ledger(devices=[{}])) == Report(Health.Unknown, "", (Finding(health=Health.Unknown),))
    assert report_of(ledger(state="Better", devices=[{"state": "Worse", "other": 1}])).health == Health.Unknown
    assert heed(counted(), report_of(ledger(devices=[{}] * 8))) == replace(counted(), agent="heard")


def test_devices_are_read_in_their_order_and_those_without_a_place_last() -> None:
    report = report_of(ledger(devices=[
        {"pci": "0000:64:00", "state": "Unfit", "code": "DeviceMissing"}, {"index": 1, "uuid": "b"},
        {"index": 0, "uuid": "a", "pci": "1b:00.0"},
    ]))  # fmt: skip
    assert [(d.index, d.uuid, d.pci) for d in report.devices] == [
        (0, "a", (0, 0x1B, 0)), (1, "b", (-1, -1, -1)), (-1, "", (0, 0x64, 0))
    ]  # fmt: skip


@pytest.mark.parametrize(("node", "report", "unfit", "unsafe"), [
    (counted(8), seen(8), [], ()),
    (counted(8), seen(8, {3: "Xid79"}), [3], (NVIDIA_GPU,)),
    (counted(8, 7), seen(8, {3: "Xid79"}), [3], ()),
    # the plugin has withdrawn more than the agent found, and less
    (counted(8, 6), seen(8, {3: "Xid79"}), [3, 7], ()),
    (counted(8, 7), seen(8, {3: "Xid79", 4: "Xid79"}), [3, 4], (NVIDIA_GPU,)),
    # a plugin that was started again without it advertises one less: nothing unfit is offered
    (counted(7), seen(8, {3: "Xid79"}), [], ()),
    (counted(7), seen(8, {3: "Xid79", 5: "Xid48"}), [6], (NVIDIA_GPU,)),
    # the agent sees fewer than are advertised: which are which is not known
    (counted(8), seen(4, {3: "Xid79"}), [7], (NVIDIA_GPU,)),
    (counted(0), seen(8, {3: "Xid79"}), [], ()),
])  # fmt: skip
def test_counted_devices(node: Node, report: Report, unfit: list[int], unsafe: tuple[str, ...]) -> None:
    told = heed(node, report)
    assert (unfit_of(told), told.unsafe) == (unfit, unsafe)
    assert told.health == Health.Fit


def test_a_device_that_the_plugin_offers_is_not_withdrawn_whatever_the_numbers_say() -> None:
    devices = [{"index": g, "uuid": f"GPU-{g}", "state": "Unfit" if g == 3 else "Fit", "code": "Xid79"}
               for g in range(8)]  # fmt: skip
    healthy = {"resource": NVIDIA_GPU, "devices": [{"id": "GPU-3"}, {"id": "GPU-4", "healthy": False}]}
    assert heed(counted(8, 7), report_of(ledger(devices=devices, plugins=[healthy]))).unsafe == (NVIDIA_GPU,)
    ill = {"resource": NVIDIA_GPU, "devices": [{"id": "GPU-3", "healthy": False}, {"id": "GPU-4"}]}
    assert heed(counted(8, 7), report_of(ledger(devices=devices, plugins=[ill]))).unsafe == ()
    replica = {"resource": NVIDIA_SHARED, "devices": [{"id": "GPU-3::2"}]}
    report = report_of(ledger(devices=devices, plugins=[replica]))
    assert [d.offered for d in report.devices if d.offered] == [(NVIDIA_SHARED,)]


def test_partitions_and_replicas() -> None:
    shared = Node("n0", allocatable=((NVIDIA_SHARED, 40),), capacity=((NVIDIA_SHARED, 40),),
                  devices=tuple(Device(g, replicas=10) for g in range(4)))  # fmt: skip
    report = seen(4, {0: "Xid79"})
    assert heed(shared, report).unsafe == (NVIDIA_SHARED,)
    assert heed(replace(shared, allocatable=((NVIDIA_SHARED, 31),)), report).unsafe == (NVIDIA_SHARED,)
    assert heed(replace(shared, allocatable=((NVIDIA_SHARED, 30),)), report).unsafe == ()
    cut = Node("n0", allocatable=((MIG, 14), (NVIDIA_GPU, 1)), capacity=((MIG, 14), (NVIDIA_GPU, 1)))
    assert heed(cut, report).unsafe == (MIG, NVIDIA_GPU)
    assert heed(replace(cut, allocatable=((MIG, 7), (NVIDIA_GPU, 1))), report).unsafe == ()


def test_named_devices_are_known_by_uuid_then_by_address_then_by_place() -> None:
    devices = (Device(0, "GPU-a", (0, 1, 0)), Device(1, "GPU-b", (0, 2, 0)), Device(2))
    node = replace(counted(3), devices=devices, named_devices=True)
    report = Report(devices=(
        Finding("GPU-b", (0, 1, 0), 0, Health.Unfit, "Xid79"), Finding(pci=(0, 1, 0), health=Health.Suspect, code="X"),
        Finding(index=2, health=Health.Unfit, code="Xid48"),
    ))  # fmt: skip
    told = heed(node, report)
    assert [(d.health, d.code) for d in told.devices] == [
        (Health.Suspect, "X"), (Health.Unfit, "Xid79"), (Health.Unfit, "Xid48")
    ]  # fmt: skip
    assert told.unsafe == () and told.is_suspect


@pytest.mark.parametrize(("state", "code", "unfit", "health", "said"), [
    ("Fit", "", {}, Health.Fit, ""),
    ("Unknown", "NotSeen", {}, Health.Fit, ""),
    ("Suspect", "LedgerParts", {}, Health.Suspect, "LedgerParts"),
    ("Unfit", "DriverAbsent", {}, Health.Unfit, "DriverAbsent"),
    # derived from a device, it says no more of the node
    ("Suspect", "Xid79", {3: "Xid79"}, Health.Fit, "Xid79"),
    ("Unfit", "Xid79", {3: "Xid79"}, Health.Fit, "Xid79"),
    ("Suspect", "LedgerParts", {3: "Xid79"}, Health.Suspect, "LedgerParts"),
    ("Unfit", "FabricDown", {3: "Xid79"}, Health.Unfit, "FabricDown"),
    ("Unfit", "Xid79", dict.fromkeys(range(8), "Xid79"), Health.Unfit, "Xid79"),
])  # fmt: skip
def test_the_node_as_a_whole(state: str, code: str, unfit: dict[int, str], health: Health, said: str) -> None:
    node = counted(8, 8 - len(unfit)) if len(unfit) < 8 else counted(8, 0)
    told = heed(node, seen(8, unfit, health=Health[state], code=code))
    assert (told.health, told.code) == (health, said)


def test_another_agent_that_calls_a_node_unfit_is_heard_too() -> None:
    assert heed(replace(counted(), health=Health.Unfit), seen(8)).health == Health.Unfit


def test_a_silent_agent_is_as_none_but_for_what_is_unfit() -> None:
    ill = Report(Health.Suspect, "LedgerParts", (Finding(index=0, health=Health.Suspect, code="RemapPending"),))
    assert heed(counted(1), ill, silent=True) == replace(counted(1), agent="silent")
    told = heed(counted(8), seen(8, {3: "Xid79"}), silent=True)
    assert (unfit_of(told), told.unsafe, told.code) == ([3], (NVIDIA_GPU,), "Xid79")
    assert heed(counted(), Report(Health.Unfit, "DriverAbsent"), silent=True).health == Health.Unfit


# ---- live


class Live:
    def __init__(self, nodes: int = 3) -> None:
        self.now_s, self.changes = NOW, 0
        self.world = World({"berth"}, now=lambda: self.now_s, silent_s=300.0)
        has = {"cpu": "64", "memory": "256Gi", "pods": "110", NVIDIA_GPU: "8"}
        for n in range(nodes):
            node = {"metadata": {"name": f"n{n}"}, "status": {"capacity": has, "allocatable": has}}
            self.world.put_node(msgspec.convert(node, wire.Node))
        self.world.on_change = self._changed

    def _changed(self) -> None:
        self.changes += 1

    def say(self, node: str, beat: str = "2027-01-15T08:00:00Z", **status: Any) -> None:
        self.world.put_ledger(ledger(node, heartbeat=beat, **status))

    def nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.world.snapshot(self.now_s).nodes}


SUSPECT = {"state": "Suspect", "code": "LedgerParts"}


def test_a_change_costs_one_node_and_a_heartbeat_none() -> None:
    live = Live()
    before = live.nodes()
    live.say("n1", **SUSPECT)
    after = live.nodes()
    assert live.changes == 1 and after["n1"].health == Health.Suspect
    assert all(after[name] is before[name] for name in ("n0", "n2"))
    live.say("n1", "2027-01-15T08:00:30Z", **SUSPECT)
    assert live.changes == 1 and live.nodes()["n1"] is after["n1"]
    live.world.drop_ledger("n1")
    assert live.changes == 2 and live.nodes()["n1"] == before["n1"]


def test_a_ledger_that_comes_before_its_node_is_kept() -> None:
    live = Live(0)
    live.say("n9", **SUSPECT)
    live.world.put_node(msgspec.convert({"metadata": {"name": "n9"}}, wire.Node))
    assert live.nodes()["n9"].health == Health.Suspect


def test_an_agent_falls_silent_by_our_own_clock_and_speaks_again() -> None:
    live = Live()
    live.say("n1", **SUSPECT)
    live.now_s += 200
    live.say("n1", "1999-01-01T00:00:00Z", **SUSPECT)  # its clock is not ours: what counts is that it changes
    live.now_s += 200
    assert live.nodes()["n1"].agent == "heard"
    assert live.world.changes_by_itself_s == NOW + 500
    live.now_s = NOW + 500
    silent = live.nodes()["n1"]
    assert (silent.agent, silent.health) == ("silent", Health.Fit)
    assert live.world.changes_by_itself_s == float("inf")
    changes = live.changes
    live.say("n1", "1999-01-01T00:00:00Z", **SUSPECT)  # listed anew: nobody has spoken
    assert live.changes == changes and live.nodes()["n1"] is silent
    live.say("n1", "1999-01-01T00:00:30Z", **SUSPECT)
    assert live.changes == changes + 1
    assert (live.nodes()["n1"].agent, live.nodes()["n1"].health) == ("heard", Health.Suspect)


def test_an_agent_that_was_silent_before_we_came_is() -> None:
    live = Live()
    live.say("n1", "2027-01-15T07:54:59Z", **SUSPECT)
    assert live.nodes()["n1"].agent == "silent"


def test_a_node_that_has_turned_suspect_is_not_as_it_was_when_it_was_chosen() -> None:
    live = Live()
    before = live.world.standing("n1")
    live.say("n1", state="Fit")
    assert live.world.standing("n1") == before
    for status in (SUSPECT, {"devices": [{"index": 0, "state": "Unfit", "code": "Xid79"}] + [{"state": "Fit"}] * 7}):
        live.say("n1", **status)
        assert live.world.standing("n1") != before


# ---- dumps


def dump(path: Path, *ledgers: dict[str, Any]) -> str:
    has = {"cpu": "64", "pods": "110", NVIDIA_GPU: "8"}
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{n}"},
              "status": {"capacity": has, "allocatable": has}} for n in range(2)]  # fmt: skip
    items = [*nodes, *({"apiVersion": "berth.dev/v1alpha1", "kind": "NodeLedger", **one} for one in ledgers)]
    file = path / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def test_heartbeats_of_an_old_dump_are_compared_with_each_other(tmp_path: Path) -> None:
    read = read_snapshot(
        dump(
            tmp_path,
            {"metadata": {"name": "n0"}, "status": {"heartbeat": "2026-01-01T00:00:00Z", **SUSPECT}},
            {"metadata": {"name": "n1"}, "status": {"heartbeat": "2026-01-01T00:05:00Z", **SUSPECT}},
        ),
        now_s=NOW,
    )
    assert [(n.agent, n.health) for n in read.nodes] == [("silent", Health.Fit), ("heard", Health.Suspect)]
    (note,) = [note for note in read.notes if "agent" in note]
    assert note.startswith("1 agent has said nothing for more than 5 min (n0)")
