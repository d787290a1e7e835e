"""Five boundaries side by side: equal, or the first at which they part."""

from __future__ import annotations

from typing import Any

import pytest

from berth.diagnosis.ledger import accounts
from berth.evidence.fact import Fact, Origin
from berth.evidence.facts import Facts
from berth.evidence.formats.boundary_facts import (
    Given,
    Holder,
    KubeletOffers,
    Offered,
    Parted,
    PluginAnswer,
    Visible,
)
from berth.evidence.formats.cluster_facts import Advertised, Limit, NodeSeen, ObjectSeen, PodSeen
from berth.evidence.formats.smi_facts import DeviceSeen, MigDevice
from berth.model.ledger import Account, Boundary

GPU = "nvidia.com/gpu"
HERE = Origin(node="n1")


def uuid(number: int) -> str:
    return f"GPU-{number:08}"


def hardware(count: int, **of_each: Any) -> list[Fact]:
    return [
        DeviceSeen(origin=HERE, form="nvml", index=i, uuid=uuid(i), pci=(0, i, 0), name="H100", **of_each)
        for i in range(count)
    ]


def plugin(count: int, *, unhealthy: int = 0, answered: bool = True, per_device: int = 1) -> PluginAnswer:
    ids = [uuid(i) if per_device == 1 else f"{uuid(i)}::{r}" for i in range(count) for r in range(per_device)]
    offered = tuple(Offered(id, n >= unhealthy) for n, id in enumerate(ids))
    if not answered:
        return PluginAnswer(origin=HERE, resource=GPU, answered=False, problem="no answer within 3 s")
    return PluginAnswer(origin=HERE, resource=GPU, devices=offered)


def node(capacity: int, allocatable: int, resource: str = GPU, **labels: str) -> list[Fact]:
    return [
        NodeSeen(origin=HERE, name="n1", labels={name.replace("__", "/"): value for name, value in labels.items()}),
        Advertised(origin=HERE, name="n1", resource=resource, capacity=capacity, allocatable=allocatable),
    ]


def pod(name: str, count: int, resource: str = GPU, **fields: Any) -> PodSeen:
    limits = fields.pop("limits", (Limit("main", devices={resource: count} if count else {}),))
    return PodSeen(origin=HERE, namespace="x", name=name, on="n1", phase="Running", limits=limits, **fields)


def account(*facts: Fact | list[Fact], resource: str = GPU) -> Account:
    flat = [one for each in facts for one in (each if isinstance(each, list) else [each])]
    return next(one for one in accounts(Facts(flat)) if one.resource == resource)


def test_all_agree() -> None:
    given = Given(origin=HERE, resource=GPU, of_pod="x/a", container="main", ids=(uuid(0), uuid(1)))
    seen = Visible(origin=HERE, of_pod="x/a", container="main", ids=(uuid(0), uuid(1)))
    one = account(hardware(8), plugin(8), node(8, 8), pod("a", 2), given, seen)
    assert one.is_equal and one.sentence == ""
    assert (one.host, one.plugin, one.capacity, one.allocatable, one.requested, one.visible) == (8, 8, 8, 8, 2, 2)
    assert [line.request for line in one.devices] == ["x/a", "x/a", *[""] * 6]


def test_what_nobody_looked_at_is_no_zero() -> None:
    one = account(node(8, 8))
    assert (one.host, one.plugin, one.requested, one.visible, one.is_equal) == (None, None, None, None, True)


@pytest.mark.parametrize(
    ("facts", "at", "words"),
    [
        # The opening incident: the stream is dead, and the kubelet keeps the last list.
        ([hardware(8), plugin(8, answered=False), node(8, 8)], Boundary.Plugin, "gives no list (no answer within 3 s)"),
        # Its other form: the plugin has ended.
        ([hardware(8), node(8, 0)], Boundary.Node, "the hardware has 8, the node 0"),
        ([hardware(8), plugin(7), node(8, 8)], Boundary.Plugin, "the hardware has 8, the plugin offers 7"),
        ([hardware(8), plugin(8, unhealthy=1), node(8, 7)], Boundary.Plugin, "offers 7 as healthy: GPU-00000000"),
        ([hardware(8), plugin(8), node(8, 7)], Boundary.Node, "the plugin offers 8, the node 7"),
        ([node(8, 7)], Boundary.Node, "allocatable 7 of capacity 8"),
        ([hardware(2), plugin(2), plugin(2), node(2, 2)], Boundary.Plugin, "2 plugins serve nvidia.com/gpu"),
        ([node(2, 2), pod("a", 2), pod("b", 1)], Boundary.Request, "pods hold 3, the node gives 2"),
    ],
)  # fmt: skip
def test_the_first_boundary_at_which_they_part(facts: list[Any], at: Boundary, words: str) -> None:
    one = account(*facts)
    assert one.parts_at is at
    assert words in one.sentence


def test_a_container_that_reaches_another_device_than_it_was_given() -> None:
    given = Given(origin=HERE, resource=GPU, of_pod="x/a", container="main", ids=(uuid(0),))
    seen = Visible(origin=HERE, of_pod="x/b", container="main", ids=(uuid(0),))
    other = Given(origin=HERE, resource=GPU, of_pod="x/b", container="main", ids=(uuid(1),))
    one = account(hardware(2), plugin(2), node(2, 2), given, other, seen, pod("a", 1), pod("b", 1))
    assert one.parts_at is Boundary.Visible
    assert one.devices[0].parts_at is Boundary.Visible


def test_replicas_are_counted_in_replicas() -> None:
    shared = {"nvidia.com__gpu.replicas": "4"}
    one = account(hardware(2), plugin(2, per_device=4), node(8, 8, **shared), pod("a", 3))
    assert (one.host, one.plugin, one.allocatable, one.is_equal) == (8, 8, 8, True)
    assert [line.kind for line in one.devices] == ["device", *["replica"] * 4] * 2
    assert {line.parent for line in one.devices if line.kind == "replica"} == {uuid(0), uuid(1)}


def test_a_replica_shows_who_has_it() -> None:
    given = Given(origin=HERE, resource=GPU, of_pod="x/a", container="main", ids=(f"{uuid(0)}::1",))
    one = account(hardware(1), plugin(1, per_device=2), node(2, 2, **{"nvidia.com__gpu.replicas": "2"}), given)
    assert [(line.id, line.request) for line in one.devices] == [
        (uuid(0), "x/a"), (f"{uuid(0)}::0", ""), (f"{uuid(0)}::1", "x/a"),
    ]  # fmt: skip


def test_devices_that_are_given_by_name() -> None:
    devices = [
        {"name": f"gpu-{i}", "attributes": {"type": {"string": "gpu"}, "uuid": {"string": uuid(i)}}} for i in range(2)
    ]
    slices = {"spec": {"driver": "gpu.nvidia.com", "nodeName": "n1", "pool": {"name": "n1"}, "devices": devices}}
    claim = {"status": {"reservedFor": [{"resource": "pods", "name": "a"}], "allocation": {"devices": {"results": [
        {"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-1", "request": "r"}]}}}}  # fmt: skip
    published = ObjectSeen(origin=HERE, api_version="v1", kind="ResourceSlice", namespace="", name="s", body=slices)
    claimed = ObjectSeen(origin=HERE, api_version="v1", kind="ResourceClaim", namespace="x", name="c", body=claim)
    one = account(published, claimed, resource="gpu.nvidia.com")
    assert (one.host, one.allocatable, one.requested, one.is_equal) == (None, 2, 1, True)
    assert [line.request for line in one.devices] == ["", "x/a"]
    one = account(published, claimed, hardware(1), resource="gpu.nvidia.com")
    assert one.parts_at is Boundary.Host and uuid(1) in one.sentence


def test_partitions_have_accounts_by_profile() -> None:
    parts = tuple(MigDevice(index=i, uuid=f"MIG-{i}", profile="1g.10gb") for i in range(7))
    cut = DeviceSeen(origin=HERE, form="nvml", index=0, uuid=uuid(0), mig_mode="Enabled", mig=parts)
    whole = DeviceSeen(origin=HERE, form="nvml", index=1, uuid=uuid(1), mig_mode="Disabled")
    resource = "nvidia.com/mig-1g.10gb"
    facts = [cut, whole, *node(7, 7, resource), *node(1, 1)]
    assert account(facts, resource=resource).host == 7
    assert [line.kind for line in account(facts, resource=resource).devices] == ["partition"] * 7
    assert (account(facts).host, account(facts).is_equal) == (1, True)


def test_partitions_as_whole_devices() -> None:
    parts = tuple(MigDevice(index=i, uuid=f"MIG-{i}", profile="3g.40gb") for i in range(2))
    cut = DeviceSeen(origin=HERE, form="nvml", index=0, uuid=uuid(0), mig_mode="Enabled", mig=parts)
    one = account([cut], node(2, 2, **{"nvidia.com__mig.strategy": "single"}))
    assert (one.host, one.is_equal) == (2, True)


def test_devices_that_the_kubelet_withholds() -> None:
    one = account(hardware(2), plugin(2), node(2, 1), KubeletOffers(origin=HERE, resource=GPU, ids=(uuid(0),)))
    assert [line.node for line in one.devices] == ["offered", "withheld"]
    assert one.parts_at is Boundary.Node


def test_who_reaches_devices_without_asking() -> None:
    every = pod("all", 0, limits=(Limit("main", visible_devices="all"),))
    path = pod("path", 0, host_paths=("/dev/nvidia0",))
    operand = PodSeen(
        origin=HERE, namespace="gpu-operator", name="dcgm", on="n1", phase="Running",
        limits=(Limit("main", visible_devices="all"),),
    )  # fmt: skip
    asks = pod("asks", 1)
    assert [bypass.pod for bypass in account(node(8, 8), every, path, operand, asks).bypasses] == ["x/all", "x/path"]


def test_who_holds_the_memory_of_a_device() -> None:
    sizes = {"x/a": 3, "x/b": 5}
    held = [Holder(origin=HERE, device=uuid(0), of_pod=pod, memory_bytes=size) for pod, size in sizes.items()]
    one = account(hardware(1, memory_total_bytes=80, memory_used_bytes=8), node(1, 1), *held)
    assert one.devices[0].holders == (("x/b", 5), ("x/a", 3))
    assert (one.devices[0].memory_bytes, one.devices[0].memory_used_bytes) == (80, 8)


def test_pods_that_have_ended_hold_nothing() -> None:
    ended = PodSeen(
        origin=HERE, namespace="x", name="done", on="n1", phase="Succeeded", limits=(Limit("main", devices={GPU: 8}),)
    )
    assert account(node(8, 8), ended, pod("a", 1)).requested == 1


def test_since_when_it_parts_is_what_the_agent_remembers() -> None:
    parted = Parted(origin=HERE, resource=GPU, at="Node", since="2026-11-30T03:14:00Z")
    assert account(node(8, 7), parted).since == "2026-11-30T03:14:00Z"
    assert account(node(8, 8), parted).since == ""
