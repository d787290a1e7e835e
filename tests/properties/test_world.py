"""A world kept up by changes is the world read from scratch, whatever came in whatever order."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube import wire, wire_ledger
from berth.model.snapshot import Snapshot
from berth.sources.assemble import snapshot_of
from berth.sources.dump import Found
from berth.sources.inventory import Inventory
from berth.sources.live.world import World

TYPES = {"Pod": wire.Pod, "Node": wire.Node, "NodeLedger": wire_ledger.NodeLedger}
NAMES = ("p0", "p1", "p2", "p3", "p4")
NODES = ("n0", "n1")


def pod(name, owner, group, node, phase, gpus, uid):
    labels = {"app": "x"}
    if group:
        labels["scheduling.x-k8s.io/pod-group"] = group
    meta = {"name": name, "namespace": "a", "uid": f"{name}-{uid}", "labels": labels,
            "creationTimestamp": "2026-01-01T00:00:00Z"}  # fmt: skip
    if owner:
        meta["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner, "controller": True}
        ]
    spec = {"schedulerName": "berth", "containers": [{"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}


def job(name, parallelism, minimum, queue):
    meta = {"name": name, "namespace": "a", "annotations": {}}
    if minimum:
        meta["annotations"]["berth.dev/min-count"] = str(min(minimum, parallelism))
    if queue:
        meta["labels"] = {"berth.dev/queue": queue}
    spec = {"parallelism": parallelism, "completions": parallelism, "template": {"spec": {"containers": [{}]}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def pod_group(name, least):
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "a"}, "spec": {"minMember": least}}  # fmt: skip


def node(name, cordoned, gpus, block):
    has = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
              "cloud.provider.com/topology-block": block}  # fmt: skip
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "spec": {"unschedulable": cordoned}, "status": {"capacity": has, "allocatable": has}}  # fmt: skip


def ledger(node, state, unfit, suspect, beat):
    states = {**dict.fromkeys(suspect, "Suspect"), **dict.fromkeys(unfit, "Unfit")}
    devices = [{"index": g, "state": states.get(g, "Fit"), "code": "Xid79" if g in states else ""} for g in range(8)]
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "NodeLedger", "metadata": {"name": node},
            "status": {"state": state, "heartbeat": f"2026-01-01T00:00:{beat:02}Z", "devices": devices}}  # fmt: skip


maybe = st.sampled_from
THINGS = st.one_of(
    st.builds(pod, maybe(NAMES), maybe((None, "j0", "j1")), maybe((None, "g0", "g1")), maybe((None, *NODES)),
              maybe(("Pending", "Running", "Succeeded")), st.integers(0, 2), st.integers(0, 1)),
    st.builds(job, maybe(("j0", "j1")), st.integers(1, 4), st.integers(0, 3), maybe((None, "red"))),
    st.builds(pod_group, maybe(("g0", "g1")), st.integers(1, 4)),
    st.builds(node, maybe(NODES), st.booleans(), st.integers(0, 8), maybe(("b0", "b1"))),
    st.builds(ledger, maybe(NODES), maybe(("Fit", "Suspect", "Unfit", "")), maybe(((), (3,), (0, 7))),
              maybe(((), (1,))), st.integers(0, 59)),
)  # fmt: skip
STEPS = st.lists(st.tuples(maybe(("put", "put", "put", "drop", "look")), THINGS), max_size=25)


def key_of(thing):
    return thing["kind"], thing["metadata"]["name"]


def tell(world, verb, thing):
    name = thing["metadata"]["name"]
    group = thing["apiVersion"].rpartition("/")[0]
    match thing["kind"], verb:
        case "Pod", "put":
            world.put_pod(msgspec.convert(thing, wire.Pod))
        case "Pod", _:
            world.drop_pod(("a", name))
        case "Node", "put":
            world.put_node(msgspec.convert(thing, wire.Node))
        case "Node", _:
            world.drop_node(name)
        case "NodeLedger", "put":
            world.put_ledger(msgspec.convert(thing, wire_ledger.NodeLedger))
        case "NodeLedger", _:
            world.drop_ledger(name)
        case _, "put":
            world.put_object(msgspec.json.decode(msgspec.json.encode(thing)))
        case kind, _:
            world.drop_object((group, kind, "a", name))


def from_scratch(things) -> Snapshot:
    inventory = Inventory()
    for number, thing in enumerate(things):
        value = thing
        if thing["kind"] in TYPES:
            value = msgspec.convert(thing, TYPES[thing["kind"]])
        inventory.add(Found(thing["apiVersion"], thing["kind"], value, "here", number))
    return snapshot_of(inventory, now_s=0.0)


def comparable(snapshot: Snapshot):
    def of(workload):
        sets = sorted((s.name, s.pod_class, s.count, s.min_count, s.topology) for s in workload.pod_sets)
        pods = sorted(name for names in workload.pods for name in names)
        rest = (workload.queue, workload.priority, workload.gates, workload.missing_pods, workload.provenance)
        return (workload.kind, workload.namespace, workload.name, repr(sets), pods, repr(rest))

    return (
        sorted(map(repr, snapshot.nodes)),
        sorted(map(repr, snapshot.allocations)),
        sorted(of(w) for w in snapshot.workloads),
        snapshot.topology,
        snapshot.gpu_classes,
    )


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_the_world_is_what_a_reading_from_scratch_says(steps):
    world, things = World({"berth"}), {}
    for thing in (pod_group("known", 1),):  # where no group is there at all, a dump is taken to lack them
        things[key_of(thing)] = thing
        tell(world, "put", thing)
    for verb, thing in steps:
        if verb == "look":
            assert comparable(world.snapshot(0.0)) == comparable(from_scratch(things.values()))
            continue
        if verb == "put":
            things[key_of(thing)] = thing
        else:
            things.pop(key_of(thing), None)
        tell(world, verb, thing)
    assert comparable(world.snapshot(0.0)) == comparable(from_scratch(things.values()))
