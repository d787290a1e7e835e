"""Nodes with whole, cut, shared and named GPUs; what keeps pods away; what DRA says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from berth.kube import wire, wire_devices
from berth.model.cluster import NO_ISLAND, Health
from berth.sources.nodes import read_node
from berth.sources.slices import devices_by_node, held_devices, pci_address

H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.replicas": "1",
    "nvidia.com/gpu.sharing-strategy": "none",
}


def node(labels: dict, allocatable: dict, capacity: dict | None = None, spec: dict | None = None, **status):
    thing = {
        "metadata": {"name": "n", "labels": labels},
        "spec": spec or {},
        "status": {"allocatable": allocatable, "capacity": capacity or allocatable, **status},
    }
    return read_node(msgspec.convert(thing, wire.Node))


def test_whole_gpus():
    found = node(H100, {"cpu": "1", "nvidia.com/gpu": "8"}).node
    assert found.device_resource == "nvidia.com/gpu" and found.gpu_class == "H100-80GB"
    assert [d.index for d in found.devices] == list(range(8))
    assert {d.island for d in found.devices} == {0}  # joined by NVLink
    assert not found.named_devices and found.ready and not found.cordoned and not found.rdma


def test_pcie_cards_are_no_island():
    found = node({"nvidia.com/gpu.product": "NVIDIA-L4"}, {"nvidia.com/gpu": "4"}).node
    assert {d.island for d in found.devices} == {NO_ISLAND}


def test_unhealthy_gpus_are_the_difference_between_capacity_and_allocatable():
    found = node(H100, {"nvidia.com/gpu": "6"}, {"nvidia.com/gpu": "8"}).node
    assert [d.health for d in found.devices] == [Health.Fit] * 6 + [Health.Unfit] * 2


def test_all_unhealthy_gpus_are_still_there():
    found = node(H100, {"nvidia.com/gpu": "0"}, {"nvidia.com/gpu": "8"}).node
    assert len(found.devices) == 8 and {d.health for d in found.devices} == {Health.Unfit}


def test_mig_mixed_beside_whole_gpus():
    labels = {**H100, "nvidia.com/mig-1g.10gb.count": "14", "nvidia.com/mig-1g.10gb.memory": "9984"}
    reading = node(labels, {"nvidia.com/gpu": "6", "nvidia.com/mig-1g.10gb": "14"})
    found = reading.node
    assert found.device_resource == "nvidia.com/gpu"
    assert [len(d.partitions) for d in found.devices] == [0] * 6 + [7, 7]
    assert {(p.profile, p.resource) for p in found.devices[7].partitions} == {("1g.10gb", "nvidia.com/mig-1g.10gb")}
    assert [c.name for c in reading.gpu_classes] == ["H100-80GB", "H100-MIG-1g.10gb"]


def test_mig_mixed_on_every_gpu():
    found = node({**H100, "nvidia.com/gpu.count": "1"}, {"nvidia.com/gpu": "0", "nvidia.com/mig-3g.40gb": "2"}).node
    assert found.device_resource == ""  # no unit of a resource is a whole device
    assert [len(d.partitions) for d in found.devices] == [2]


def test_mig_single_counts_partitions_as_gpus():
    labels = {
        **H100,
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
        "nvidia.com/gpu.memory": "9984",
        "nvidia.com/gpu.count": "56",
        "nvidia.com/mig.strategy": "single",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
    }
    found = node(labels, {"nvidia.com/gpu": "56"}).node
    assert found.gpu_class == "H100-MIG-1g.10gb" and found.device_resource == ""
    assert [len(d.partitions) for d in found.devices] == [7] * 8
    assert found.devices[0].partitions[0].resource == "nvidia.com/gpu"


@pytest.mark.parametrize("resource", ["nvidia.com/gpu.shared", "nvidia.com/gpu"])
def test_time_slices_are_replicas_of_physical_gpus(resource):
    labels = {
        **H100,
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED",
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.replicas": "4",
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
    }
    found = node(labels, {resource: "8"}).node
    assert found.device_resource == "" and [d.replicas for d in found.devices] == [4, 4]
    assert dict(found.allocatable)[resource] == 8


def test_other_vendors():
    found = node({}, {"amd.com/gpu": "8"}).node
    assert found.device_resource == "amd.com/gpu" and len(found.devices) == 8


def test_a_node_without_gpus():
    found = node({"kubernetes.io/hostname": "n"}, {"cpu": "4"}).node
    assert (found.gpu_class, found.device_resource, found.devices) == ("", "", ())


def test_what_keeps_pods_away():
    found = node(
        {},
        {"cpu": "1"},
        spec={
            "unschedulable": True,
            "taints": [
                {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
                {"key": "gpu", "value": "yes", "effect": "NoExecute"},
            ],
        },
        conditions=[
            {"type": "Ready", "status": "Unknown"},
            {"type": "AcceleratedHardwareReady", "status": "False"},
        ],
    ).node
    assert found.cordoned and not found.ready and found.health == Health.Unfit
    assert [(t.key, t.value, t.effect) for t in found.taints] == [("gpu", "yes", "NoExecute")]


@pytest.mark.parametrize("resource", ["rdma/hca_shared", "nvidia.com/hostdev", "vpc.amazonaws.com/efa"])
def test_rdma_by_resource(resource):
    assert node({}, {resource: "1"}).node.rdma
    assert not node({}, {resource: "0"}).node.rdma


# ---- named devices


def gpu(name: str, pci: str, uuid: str, **more) -> dict:
    attributes = {
        "type": {"string": "gpu"},
        "uuid": {"string": uuid},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "resource.kubernetes.io/pciBusID": {"string": pci},
        "index": {"int": 0},
    }
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": "81559Mi"}}, **more}


def resource_slice(devices: list, generation: int = 1, driver: str = "gpu.nvidia.com", node_name: str = "n"):
    spec = {
        "driver": driver, "nodeName": node_name, "devices": devices,
        "pool": {"name": node_name, "generation": generation},
    }  # fmt: skip
    return msgspec.convert({"metadata": {"name": "s"}, "spec": spec}, wire_devices.ResourceSlice)


GPUS = [
    gpu("gpu-1", "0000:75:00.0", "GPU-b"),
    gpu("gpu-0", "0000:64:00.0", "GPU-a"),
    gpu("gpu-2", "0001:01:00.0", "GPU-c", taints=[{"key": "broken", "effect": "NoExecute"}]),
]


def test_devices_that_only_a_driver_names():
    named = devices_by_node([resource_slice(GPUS), resource_slice([{"name": "channel-0"}], driver="compute-domain")])
    bare = msgspec.convert({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}, wire.Node)
    found = read_node(bare, named["n"]).node
    assert found.named_devices and found.gpu_class == "H100-80GB" and found.device_resource == ""
    assert [(d.uuid, d.pci) for d in found.devices] == [
        ("GPU-a", (0, 0x64, 0)),
        ("GPU-b", (0, 0x75, 0)),
        ("GPU-c", (1, 1, 0)),
    ]
    assert [d.health for d in found.devices] == [Health.Fit, Health.Fit, Health.Unfit]


def test_the_newest_generation_of_a_pool_counts():
    named = devices_by_node([resource_slice(GPUS, 1), resource_slice(GPUS[:1], 2)])
    assert [d.uuid for d in named["n"]] == ["GPU-b"]


def test_names_for_counted_devices():
    named = devices_by_node([resource_slice(GPUS[:2])])
    thing = {"metadata": {"name": "n", "labels": H100}, "status": {"allocatable": {"nvidia.com/gpu": "2"}}}
    found = read_node(msgspec.convert(thing, wire.Node), named["n"]).node
    assert not found.named_devices and found.device_resource == "nvidia.com/gpu"
    assert [d.uuid for d in found.devices] == ["GPU-a", "GPU-b"]


def test_the_first_version_of_slices_wraps_devices():
    wrapped = {"name": "gpu-0", "basic": {k: v for k, v in GPUS[1].items() if k != "name"}}
    assert devices_by_node([resource_slice([wrapped])])["n"][0].uuid == "GPU-a"


def test_partitions_that_a_driver_names():
    cut = {"type": {"string": "mig"}, "parentUUID": {"string": "GPU-a"}, "profile": {"string": "1g.10gb"}}
    named = devices_by_node([resource_slice([GPUS[1], {"name": "gpu-0-mig-1", "attributes": cut}])])
    assert [p.profile for p in named["n"][0].partitions] == ["1g.10gb"]


def test_who_holds_a_named_device():
    named = devices_by_node([resource_slice(GPUS)])
    results = [
        {"driver": "gpu.nvidia.com", "pool": "n", "device": "gpu-1"},
        {"driver": "gpu.nvidia.com", "pool": "n", "device": "gpu-0", "adminAccess": True},
        {"driver": "other", "pool": "n", "device": "gpu-2"},
    ]
    claim = {
        "metadata": {"name": "c", "namespace": "ml"},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": "p"}, {"resource": "others", "name": "q"}],
        },
    }
    assert held_devices([msgspec.convert(claim, wire_devices.ResourceClaim)], named) == {("ml", "p"): (1,)}


@pytest.mark.parametrize(
    "text, address", [("0000:64:00.0", (0, 100, 0)), ("00000000:0A:1f.0", (0, 10, 31)), ("x", (-1, -1, -1))]
)
def test_pci_addresses(text, address):
    assert pci_address(text) == address


@pytest.fixture
def samples() -> Path:
    data = os.environ.get("BERTH_DATA")
    if not data:
        pytest.skip("BERTH_DATA is not set: no captured labels to read")
    return Path(data) / "samples" / "node-json"


def test_captured_labels_with_mig_mixed(samples):
    labels = json.loads((samples / "mig-mixed-node-labels.json").read_text())
    allocatable = {f"nvidia.com/mig-{p}": str(n) for p, n in (("1g.10gb", 2), ("2g.20gb", 1), ("3g.40gb", 1))}
    found = node(labels, {"nvidia.com/gpu": "0", **allocatable})
    assert found.problems == () and found.node.gpu_class == "H100-80GB"
    assert sorted(p.profile for p in found.node.devices[0].partitions) == ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]
    assert all(p.memory_bytes for p in found.node.devices[0].partitions)


def test_more_devices_than_can_be_told_apart_are_counted():
    """A node of 64 GPUs beside one of 8: pods go to both, as many as there are GPUs, and the reading says so."""
    from berth.model.resources import resources
    from berth.model.snapshot import Snapshot
    from berth.model.workload import PodClass, PodSet, Workload
    from berth.scheduling.cycle import cycle

    most, large, small = (node({}, {"nvidia.com/gpu": n, "cpu": "64", "pods": "110"}) for n in ("63", "64", "8"))
    assert len(most.node.devices) == 63 and not most.problems
    assert large.node.devices == () and "up to 63 devices" in large.problems[0]
    asks = (PodSet("main", PodClass(resources({"nvidia.com/gpu": 8}))),)
    offered = tuple(Workload(f"w{i}", asks) for i in range(12))
    named = tuple(msgspec.structs.replace(one.node, name=f"n{i}") for i, one in enumerate((large, small)))
    plan = cycle(Snapshot(nodes=named, workloads=offered))
    assert sorted(plan.node.tolist()) == [0] * 8 + [1] and len(plan.verdicts) == 3
