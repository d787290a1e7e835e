"""Resources that dynamic allocation gives under the names of a device plugin: which nodes, and what is told."""

from __future__ import annotations

import json

import msgspec
import pytest
from storage_objects import node, pod

from berth.kube import wire, wire_devices
from berth.model.reasons import Reason
from berth.scheduling.cycle import cycle
from berth.sources.assemble import read_snapshot
from berth.sources.live.world import World

GPU = "nvidia.com/gpu"


def device_class(name="gpu.nvidia.com", resource=GPU, expression='device.driver == "gpu.nvidia.com"'):
    spec = {"selectors": [{"cel": {"expression": expression}}]} if expression else {}
    if resource:
        spec["extendedResourceName"] = resource
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def resource_slice(on, driver="gpu.nvidia.com", devices=("gpu-0",), name=""):
    spec = {"driver": driver, "nodeName": on, "pool": {"name": on, "generation": 1},
            "devices": [{"name": d, "attributes": {"type": {"string": "gpu"}}} for d in devices]}  # fmt: skip
    meta = {"name": name or f"{on}-{driver}"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": meta, "spec": spec}


@pytest.fixture
def dump(tmp_path):
    def read(*things):
        file = tmp_path / "dump.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(things)}))
        return read_snapshot(str(file), now_s=1.0)

    return read


def dynamic(snapshot):
    """By node, the resources that are asked for and dynamic allocation alone gives."""
    return {n.name: tuple(r for r in n.dynamic_resources if not r.startswith("deviceclass.")) for n in snapshot.nodes}


DRA, PLUGIN = node("dra", gpus=0), node("plugin", gpus=8)


@pytest.mark.parametrize(
    "things, on_dra",
    [
        ((device_class(), resource_slice("dra")), (GPU,)),
        ((resource_slice("dra"),), ()),
        ((device_class(),), ()),
        ((device_class(resource=""), resource_slice("dra")), ()),
        ((device_class(), resource_slice("dra", devices=())), ()),
        ((device_class(), resource_slice("dra", driver="nic.example.com")), ()),
        ((device_class(expression=""), resource_slice("dra", driver="nic.example.com")), (GPU,)),
        ((device_class(expression="device.driver == 'nic.example.com' && true"),
          resource_slice("dra", driver="nic.example.com")), (GPU,)),
    ],
)  # fmt: skip
def test_nodes_that_give_it_by_dynamic_allocation(dump, things, on_dra):
    assert dynamic(dump(DRA, PLUGIN, *things, resource_slice("plugin"))) == {"dra": on_dra, "plugin": ()}


def test_a_class_is_a_resource_by_its_own_name_too(dump):
    asks = pod("p", gpus=0)
    asks["spec"]["containers"][0]["resources"]["limits"] = {"deviceclass.resource.kubernetes.io/mine": "1"}
    snapshot = dump(DRA, device_class("mine", resource=""), resource_slice("dra"), asks)
    (verdict,) = cycle(snapshot).verdicts.values()
    assert verdict.reason is Reason.Unsupported and "gives deviceclass.resource.kubernetes.io/mine" in verdict.message


def test_a_pod_is_told_what_it_is_and_goes_to_a_node_with_a_plugin(dump):
    things = (device_class(), resource_slice("dra"), pod("p"))
    (verdict,) = cycle(dump(DRA, *things)).verdicts.values()
    assert verdict.message == (
        "Unsupported: 1 node that has it gives nvidia.com/gpu by dynamic resource allocation alone, which Berth does "
        "not place"
    )
    plan = cycle(dump(DRA, PLUGIN, *things))
    assert not plan.verdicts and [plan.nodes[n].name for n in plan.node.tolist()] == ["plugin"]


def test_the_live_world_says_the_same_whatever_comes_first():
    def put(world, thing):
        kind = thing["kind"]
        types = {"Node": (wire.Node, world.put_node), "Pod": (wire.Pod, world.put_pod),
                 "DeviceClass": (wire_devices.DeviceClass, world.put_device_class),
                 "ResourceSlice": (wire_devices.ResourceSlice, world.put_slice)}  # fmt: skip
        type_, tell = types[kind]
        tell(msgspec.convert(thing, type_))

    things = [DRA, device_class(), resource_slice("dra"), resource_slice("dra", name="second")]
    for order in (things, things[::-1]):
        woken = []
        world = World({"berth"}, on_change=lambda woken=woken: woken.append(True))
        for thing in order:
            put(world, thing)
        assert dynamic(world.snapshot(1.0)) == {"dra": (GPU,)}
        world.drop_slice("dra-gpu.nvidia.com")
        assert dynamic(world.snapshot(1.0)) == {"dra": (GPU,)}  # there is another slice
        woken.clear()
        world.drop_slice("second")
        assert woken and dynamic(world.snapshot(1.0)) == {"dra": ()}
        put(world, resource_slice("dra"))
        world.drop_device_class("gpu.nvidia.com")
        assert dynamic(world.snapshot(1.0)) == {"dra": ()}
        put(world, device_class())
        put(world, node("dra", gpus=4))
        assert dynamic(world.snapshot(1.0)) == {"dra": ()}  # a device plugin is there
