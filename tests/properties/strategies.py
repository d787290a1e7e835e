"""Small random snapshots: every kind of node, allocation, workload and queue that decides something, few of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from berth.model.cluster import Allocation, Device, GpuClass, Health, Node, Taint
from berth.model.queue import Queue
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.topology import Level, Topology
from berth.model.workload import (
    Capability,
    NodeTerm,
    PodClass,
    PodSet,
    Requirement,
    Toleration,
    TopologyWish,
    Workload,
)

GIB = 2**30
GPU, MIG, NIC = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "example.com/nic"
BIG = GpuClass("H100-80GB", product="NVIDIA-H100-80GB-HBM3", memory_bytes=80 * GIB, compute=(9, 0), link="nvlink")
SMALL = GpuClass("A10-24GB", product="NVIDIA-A10", memory_bytes=24 * GIB, compute=(8, 6), link="pcie")
TOPOLOGY = Topology((Level("block", "block"), Level("rack", "rack")))
HOST = "host"
TAINT = Taint("dedicated", "gpu")


@dataclass(frozen=True)
class Size:
    """How large a drawn snapshot may be, and what may be in it."""

    nodes: int = 6
    devices: int = 4
    allocations: int = 6
    workloads: int = 5
    pods: int = 5  # of one pod set
    pod_sets: int = 3
    queues: bool = True
    gates: bool = True
    priorities: bool = True
    odd_nodes: bool = True  # taints, cordons, not ready, unfit
    node_kinds: tuple[str, ...] = ("gpu", "gpu", "gpu", "counted", "mig", "cpu")
    asks: tuple[str, ...] = ("none", "one", "one", "many", "many", "share", "share", "mig")
    odd_asks: bool = True  # selectors, affinities, tolerations, capabilities, names of nodes


SMALL_CLUSTER = Size()
# Where plain pods and plain nodes meet, what decides is how they fit together.
TIGHT = Size(
    nodes=4, pods=3, queues=False, gates=False, priorities=False, odd_nodes=False, odd_asks=False,
    node_kinds=("gpu", "gpu", "gpu", "gpu", "counted"),
    asks=("none", "one", "one", "many", "many", "share", "share", "shares"),
)  # fmt: skip

# Gangs of plain pods under limits that leave some room.
CROWDED = replace(TIGHT, workloads=4, queues=True, priorities=True)


def mostly(usual, *others):
    """The usual value in about two draws of three."""
    return st.sampled_from([usual] * (2 * len(others)) + list(others))


# --- nodes ---------------------------------------------------------------------------------------------------

islands = st.sampled_from([(-1, -1, -1, -1), (0, 0, 0, 0), (0, 0, 1, 1), (0, 1, 0, 1), (0, 0, 1, -1), (0, 1, 1, 1)])
healths = mostly(Health.Fit, Health.Suspect, Health.Unfit, Health.Unknown)


@st.composite
def nodes(draw, name="n0", size=SMALL_CLUSTER):
    kind = draw(st.sampled_from(size.node_kinds))
    amounts = {
        "cpu": draw(st.sampled_from([2_000, 4_000, 8_000])),
        "memory": draw(st.sampled_from([4, 8, 16])) * GIB,
        "pods": draw(mostly(110, 2, 3)),
    }
    devices, resource, gpu_class = (), "", ""
    number = draw(st.integers(1, size.devices) if size.odd_nodes else st.sampled_from([4, 2, 3, 4, 1]))
    if kind == "gpu":
        joined = draw(islands)
        devices = tuple(
            Device(g, island=joined[g % 4], health=draw(healths) if size.odd_nodes else Health.Fit)
            for g in range(number)
        )
        resource, amounts[GPU] = GPU, draw(mostly(number, max(number - 1, 1), number + 1)) if size.odd_nodes else number
        gpu_class = draw(mostly(BIG.name, SMALL.name, "")) if size.odd_nodes else BIG.name
    elif kind == "counted":
        amounts[GPU], gpu_class = number, draw(st.sampled_from([BIG.name, SMALL.name, ""]))
    elif kind == "mig":
        amounts[MIG], gpu_class = number, BIG.name
    if draw(mostly(False, True)):
        amounts[NIC] = draw(st.integers(1, 2))
    labels = {"disk": draw(st.sampled_from(["ssd", "hdd"]))} if draw(st.booleans()) else {}
    for key, values in (("block", ["b0", "b1"]), ("rack", ["r0", "r1"])):
        value = draw(mostly(values[0], values[1], None))
        if value is not None:
            labels[key] = value
    odd = size.odd_nodes
    return Node(
        name,
        labels=labels,
        taints=draw(mostly((), (TAINT,), (Taint("soft", effect="PreferNoSchedule"),),
                           (Taint("node.kubernetes.io/not-ready"),))) if odd else (),
        cordoned=draw(mostly(False, False, True)) if odd else False,
        ready=draw(mostly(True, True, False)) if odd else True,
        health=draw(mostly(Health.Fit, Health.Suspect, Health.Unfit)) if odd else Health.Fit,
        unsafe=draw(mostly((), (GPU, MIG))) if odd else (),
        code=draw(st.sampled_from(["", "Xid79", "RemapPending"])) if odd else "",
        allocatable=resources(amounts),
        capacity=resources(amounts),
        gpu_class=gpu_class,
        device_resource=resource,
        devices=devices,
        rdma=draw(st.booleans()),
    )  # fmt: skip


# --- what pods ask for ---------------------------------------------------------------------------------------

shares = st.sampled_from([250, 300, 500, 600, 900])
selections = mostly((), (("disk", "ssd"),))
affinities = mostly(
    (),
    (NodeTerm((Requirement("disk", "NotIn", ("hdd",)),)),),
    (NodeTerm((Requirement("rack", "In", ("r0",)),)), NodeTerm((Requirement("disk", "Exists"),))),
    (NodeTerm((), (Requirement("metadata.name", "In", ("n0", "n1")),)),),
)
tolerations = mostly(
    (),
    (Toleration("dedicated", value="gpu"),),
    (Toleration(operator="Exists"),),
    (Toleration("node.kubernetes.io/unschedulable", "Exists"),),
)
capabilities = mostly(
    Capability(),
    Capability(memory_bytes=40 * GIB),
    Capability(products=("A10",)),
    Capability(link="nvlink"),
    Capability(link="nvlink"),
    Capability(rdma=True),
)


@st.composite
def pod_classes(draw, size=SMALL_CLUSTER):
    kind = draw(st.sampled_from(size.asks))
    asked = {
        "cpu": draw(st.sampled_from([0, 500, 1_000, 3_000])),
        "memory": draw(st.sampled_from([0, 1, 5])) * GIB,
    }
    milli = 1000
    if kind == "one":
        asked[GPU] = 1
    elif kind == "many":
        asked[GPU] = draw(mostly(2, 3, 4))
    elif kind == "share":
        asked[GPU], milli = 1, draw(shares)
    elif kind == "shares":
        asked[GPU], milli = 2, draw(shares)
    elif kind == "mig":
        asked[MIG] = draw(st.integers(1, 2))
    if not size.odd_asks:
        joined = Capability(link="nvlink") if kind in ("many", "shares") and draw(st.booleans()) else Capability()
        return PodClass(resources(asked), milli, least=joined)
    if draw(mostly(False, False, False, True)):
        asked[NIC] = 1
    odd = st.sampled_from([0, 0, 0, 1, 2, 3, 4])
    which = draw(odd), draw(odd)
    return PodClass(
        resources(asked),
        milli,
        least=draw(capabilities) if GPU in asked else Capability(),
        node_selector=draw(selections) if 1 in which else (),
        node_affinity=draw(affinities) if 2 in which else (),
        tolerations=draw(tolerations) if 3 in which else (),
        node_name=draw(mostly("", "n0")) if 4 in which else "",
    )


# --- what runs -----------------------------------------------------------------------------------------------


@st.composite
def allocations(draw, cluster, name="a0", classes=None, queues=()):
    """A pod on one of the nodes, or on one that is gone; where devices are named, as many as it asks for."""
    node = draw(st.sampled_from([*cluster, None] if cluster else [None]))
    pod_class = draw(st.sampled_from(classes) if classes else pod_classes(replace(SMALL_CLUSTER, odd_asks=False)))
    asked = dict(pod_class.requests).get(GPU, 0)
    devices: tuple[int, ...] = ()
    if node is not None and len(node.devices) >= asked > 0 and draw(st.booleans()):
        devices = tuple(sorted(draw(st.permutations(range(len(node.devices))))[:asked]))
    return Allocation(
        node.name if node else "gone",
        draw(st.sampled_from(["default", "team-a"])),
        name,
        pod_class,
        devices=devices,
        queue=draw(st.sampled_from(queues)) if queues else "",
        is_daemon=draw(mostly(False, False, True)) and not asked,
    )


# --- what waits ----------------------------------------------------------------------------------------------

levels = st.sampled_from(["block", "rack", HOST])


@st.composite
def wishes(draw, pods, may_slice=True, most=2):
    """Required or preferred levels; at most one wish for slices."""
    found: list[TopologyWish] = []
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, most]))):
        is_slice = may_slice and pods > 1 and not any(w.slice_size for w in found) and draw(mostly(False, True))
        size = draw(st.integers(1, pods)) if is_slice else 0
        found.append(TopologyWish(draw(levels), required=draw(mostly(True, False)), slice_size=size))
    return tuple(found)


@st.composite
def pod_sets(draw, name, size, classes, is_gang, may_slice):
    pods = draw(st.sampled_from([*range(2, size.pods + 1), 1])) if is_gang else 1
    least = draw(mostly(pods, max(pods - 1, 1), 1, 0)) if is_gang else 1
    topology = draw(wishes(pods, may_slice)) if is_gang else ()
    return PodSet(name, draw(st.sampled_from(classes)), pods, least, topology)


@st.composite
def workloads(draw, name="w0", classes=(), size=SMALL_CLUSTER, queues=(), least_sets=1):
    is_gang = least_sets > 1 or draw(st.sampled_from([True, True, False]))
    number = draw(st.integers(least_sets, size.pod_sets)) if is_gang else 1
    topology = draw(wishes(size.pods)) if is_gang else ()
    may_slice = not any(w.slice_size for w in topology)
    sets = tuple(draw(pod_sets(f"s{i}", size, classes, is_gang, may_slice)) for i in range(number))
    if not any(s.min_count for s in sets):
        sets = (PodSet("s0", sets[0].pod_class, sets[0].count, 1, sets[0].topology), *sets[1:])
    pods = sum(s.count for s in sets)
    return Workload(
        name,
        sets,
        namespace=draw(st.sampled_from(["default", "team-a"])),
        queue=draw(st.sampled_from(["", *queues])) if queues else "",
        priority=draw(st.integers(-1, 1)) if size.priorities else 0,
        created_s=float(draw(st.integers(0, 3))) if size.priorities else 0.0,
        topology=topology,
        gates=draw(mostly((), (), ("example.com/quota",))) if size.gates else (),
        missing_pods=draw(st.integers(0, 2)) if size.gates and pods > 2 and draw(mostly(False, True)) else 0,
    )


# --- queues --------------------------------------------------------------------------------------------------


@st.composite
def queue_trees(draw):
    """Up to four queues, each below one before it or at the top; `team-a` is a namespace too."""
    amount = st.tuples(st.sampled_from(["*", BIG.name, SMALL.name]), st.sampled_from([4, 0, 2, 3, 6, 9]))
    amounts = st.lists(amount, max_size=2, unique_by=lambda one: one[0]).map(tuple)
    found: list[Queue] = []
    for name in ["root", "left", "right", "leaf"][: draw(st.integers(0, 4))]:
        found.append(
            Queue(
                name,
                parent=draw(st.sampled_from(["", *[q.name for q in found]])),
                weight=draw(st.integers(1, 3)),
                quota=draw(st.one_of(st.just(()), amounts)),
                limit=draw(st.one_of(st.just(()), amounts)),
                namespaces=("team-a",) if name == "left" and draw(st.booleans()) else (),
            )
        )
    return tuple(found)


# --- the whole -----------------------------------------------------------------------------------------------


@st.composite
def snapshots(draw, size=SMALL_CLUSTER):
    cluster = tuple(draw(nodes(f"n{i}", size)) for i in range(draw(st.integers(1, size.nodes))))
    classes = draw(st.lists(pod_classes(size), min_size=1, max_size=4))
    queues = draw(queue_trees()) if size.queues else ()
    names = tuple(q.name for q in queues)
    running = tuple(
        draw(allocations(cluster, f"a{i}", queues=names)) for i in range(draw(st.integers(0, size.allocations)))
    )
    waiting = tuple(
        draw(workloads(f"w{i}", classes, size, names)) for i in range(draw(st.integers(1, size.workloads)))
    )
    return Snapshot(
        nodes=cluster,
        allocations=running,
        workloads=waiting,
        gpu_classes=(BIG, SMALL),
        queues=queues,
        topology=draw(mostly(TOPOLOGY, Topology(TOPOLOGY.levels[:1]), Topology())),
    )
