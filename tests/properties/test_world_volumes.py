"""Storage kept up by changes is storage read from scratch: what pods are allowed, charged and told, in any order."""

from __future__ import annotations

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_world import comparable

from berth.kube import wire, wire_volumes
from berth.model.snapshot import Snapshot
from berth.sources.assemble import snapshot_of
from berth.sources.dump import Found
from berth.sources.inventory import Inventory
from berth.sources.live.world import World

NODES, PODS, CLAIMS, VOLUMES, CLASSES = ("n0", "n1"), ("p0", "p1", "p2"), ("c0", "c1"), ("v0", "v1", "v2"), ("k0", "k1")
DRIVER = "disk.example.com"
TYPES = {
    "Node": wire.Node, "Pod": wire.Pod, "PersistentVolumeClaim": wire_volumes.PersistentVolumeClaim,
    "PersistentVolume": wire_volumes.PersistentVolume, "StorageClass": wire_volumes.StorageClass,
    "CSINode": wire_volumes.CsiNode, "CSIDriver": wire_volumes.CsiDriver,
    "CSIStorageCapacity": wire_volumes.CsiStorageCapacity,
}  # fmt: skip
def node(name, zone):
    has = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels},
            "status": {"capacity": has, "allocatable": has}}  # fmt: skip


def pod(name, claims, on, phase, uid):
    mounted = [{"name": f"d{i}", "persistentVolumeClaim": {"claimName": c}} for i, c in enumerate(claims)]
    spec = {"schedulerName": "berth", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}],
            "volumes": [*mounted, {"name": "own", "ephemeral": {}}] if uid else mounted}  # fmt: skip
    if on:
        spec["nodeName"] = on
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "a", "uid": f"{name}-{uid}",
            "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec, "status": {"phase": phase}}  # fmt: skip


def claim(name, storage_class, volume, mode, size, selected):
    meta = {"name": name, "namespace": "a", "uid": name}
    if selected:
        meta["annotations"] = {"volume.kubernetes.io/selected-node": selected}
    spec = {"storageClassName": storage_class, "accessModes": [mode],
            "resources": {"requests": {"storage": size}}}  # fmt: skip
    if volume:
        spec["volumeName"] = volume
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec,
            "status": {"phase": "Bound" if volume else "Pending"}}  # fmt: skip


def volume(name, storage_class, on, size, of, driver):
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}
    spec = {"storageClassName": storage_class, "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"]}  # fmt: skip
    if on:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    if of:
        spec["claimRef"] = {"namespace": "a", "name": of, "uid": of}
    if driver:
        spec["csi"] = {"driver": DRIVER, "volumeHandle": name}
    return {"kind": "PersistentVolume", "metadata": {"name": name, "resourceVersion": "1"}, "spec": spec,
            "status": {"phase": "Bound" if of else "Available"}}  # fmt: skip


def storage_class(name, provisioner, waits, zone):
    made = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate"}  # fmt: skip
    if zone:
        expressions = [{"key": "topology.kubernetes.io/zone", "values": [zone]}]
        made["allowedTopologies"] = [{"matchLabelExpressions": expressions}]
    return made


def limits(name, count):
    driver = {"name": DRIVER, "nodeID": name}
    if count is not None:
        driver["allocatable"] = {"count": count}
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": [driver]}}


def driver(tracks, needed):
    spec = {"storageCapacity": tracks, "preventPodSchedulingIfMissing": needed}
    return {"kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": spec}


def capacity(name, of, size, zone):
    made = {"kind": "CSIStorageCapacity", "metadata": {"name": name, "namespace": "a"}, "storageClassName": of,
            "capacity": size}  # fmt: skip
    if zone is not None:
        made["nodeTopology"] = {"matchLabels": {"topology.kubernetes.io/zone": zone}} if zone else {}
    return made


maybe = st.sampled_from
SIZES = ("1Gi", "2Gi")
THINGS = st.one_of(
    st.builds(node, maybe(NODES), maybe(("z0", "z1"))),
    st.builds(pod, maybe(PODS), st.lists(maybe(CLAIMS), max_size=2, unique=True), maybe((None, *NODES)),
              maybe(("Pending", "Running", "Succeeded")), st.integers(0, 1)),
    st.builds(claim, maybe((*CLAIMS, "p0-own")), maybe(CLASSES), maybe((None, None, *VOLUMES)),
              maybe(("ReadWriteOnce", "ReadWriteOncePod")), maybe(SIZES), maybe((None, None, *NODES))),
    st.builds(volume, maybe(VOLUMES), maybe(CLASSES), maybe((None, *NODES)), maybe(SIZES), maybe((None, None, *CLAIMS)),
              st.booleans()),
    st.builds(storage_class, maybe(CLASSES), maybe(("kubernetes.io/no-provisioner", DRIVER)), st.booleans(),
              maybe((None, "z0"))),
    st.builds(limits, maybe(NODES), maybe((None, 0, 1, 2))),
    st.builds(driver, st.booleans(), st.booleans()),
    st.builds(capacity, maybe(("s0", "s1")), maybe(CLASSES), maybe(SIZES), maybe((None, "", "z0"))),
)  # fmt: skip
STEPS = st.lists(st.tuples(maybe(("put", "put", "put", "drop")), THINGS, st.booleans()), max_size=15)


def beginning():
    """Something of every kind, each tied to others; kinds of which nothing is there are taken to be unseen."""
    return [
        node("n0", "z0"), node("n1", "z1"),
        storage_class("k0", "kubernetes.io/no-provisioner", True, None), storage_class("k1", DRIVER, True, "z0"),
        claim("c0", "k0", None, "ReadWriteOncePod", "1Gi", None), claim("c1", "k1", None, "ReadWriteOnce", "2Gi", None),
        volume("v0", "k0", "n0", "2Gi", None, False), volume("v1", "k0", "n1", "1Gi", None, True),
        limits("n0", 1), limits("n1", 2), driver(True, False), capacity("s0", "k1", "2Gi", "z0"),
        pod("p0", ["c0", "c1"], None, "Pending", 0), pod("p1", ["c1"], "n0", "Running", 0),
        pod("p2", ["c1"], "n0", "Running", 0), storage_class("other", "", False, None),
        volume("other", "other", None, "1Gi", None, False), claim("other", "other", None, "ReadWriteOnce", "1Gi", None),
        limits("other", None),
    ]  # fmt: skip


def key_of(thing):
    return thing["kind"], thing["metadata"]["name"]


def tell(world, verb, thing):
    kind, name, stock = *key_of(thing), world.stock
    value = msgspec.convert(thing, TYPES[kind])
    put, drop = {
        "Node": (world.put_node, lambda: world.drop_node(name)),
        "Pod": (world.put_pod, lambda: world.drop_pod(("a", name))),
        "PersistentVolumeClaim": (stock.put_claim, lambda: stock.drop_claim(("a", name))),
        "PersistentVolume": (stock.put_volume, lambda: stock.drop_volume(name)),
        "StorageClass": (stock.put_class, lambda: stock.drop_class(name)),
        "CSINode": (stock.put_limits, lambda: stock.drop_limits(name)),
        "CSIDriver": (stock.put_driver, lambda: stock.drop_driver(name)),
        "CSIStorageCapacity": (stock.put_capacity, lambda: stock.drop_capacity(("a", name))),
    }[kind]
    if verb == "put":
        put(value)
    else:
        drop()


def from_scratch(things) -> Snapshot:
    inventory = Inventory()
    for number, thing in enumerate(things):
        inventory.add(Found("", thing["kind"], msgspec.convert(thing, TYPES[thing["kind"]]), "here", number))
    return snapshot_of(inventory, now_s=0.0)


TWO_NAME_ONE_VOLUME = [
    ("put", claim("c1", "k0", "v0", "ReadWriteOnce", "1Gi", None), False),
    ("put", claim("c0", "k0", "v0", "ReadWriteOnce", "1Gi", None), False),
    ("put", volume("v0", "k0", None, "1Gi", None, True), False),
]


@settings(max_examples=400, deadline=None)
@given(STEPS)
@example(TWO_NAME_ONE_VOLUME)
def test_storage_kept_up_by_changes_is_storage_read_from_scratch(steps):
    world, things = World({"berth"}), {}
    for thing in beginning():
        things[key_of(thing)] = thing
        tell(world, "put", thing)
    for verb, thing, looks in (("put", limits("x", 1), True), *steps, ("put", limits("x", 2), True)):
        if verb == "put":
            things[key_of(thing)] = thing
        elif thing["metadata"]["name"] != "other":
            things.pop(key_of(thing), None)
        tell(world, verb, thing)
        if looks:
            assert comparable(world.snapshot(0.0)) == comparable(from_scratch(things.values()))


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_what_has_not_changed_is_the_same_object(steps):
    """Tables are kept by identity: a second look at the same world makes nothing new."""
    world = World({"berth"})
    for verb, thing, _ in (*[("put", thing, False) for thing in beginning()], *steps):
        tell(world, verb, thing)
    one, other = world.snapshot(0.0), world.snapshot(0.0)
    assert all(a is b for a, b in zip(one.nodes, other.nodes, strict=True))
    assert all(a is b for a, b in zip(one.allocations, other.allocations, strict=True))
    assert all(a is b for a, b in zip(one.workloads, other.workloads, strict=True))
