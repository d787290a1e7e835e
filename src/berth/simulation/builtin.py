"""The built-in cluster: 616 nodes of eight GPU models in racks and blocks, as its labels would tell it.

Shapes (GPUs, CPU, memory of a node) are those of common cloud and server types; labels are those that GPU
Feature Discovery writes. A few nodes are cordoned, not ready or unfit, and one block is kept for one team by
a taint, as in any cluster on any day.
"""

from __future__ import annotations

from typing import NamedTuple

from berth.base.units import GIB
from berth.model.cluster import NO_ISLAND, Device, GpuClass, Health, Node, Taint
from berth.model.gpus import gpu_class_of
from berth.model.queue import ANY_CLASS, Queue
from berth.model.resources import CPU, MEMORY, NVIDIA_GPU, PODS, Resources, resources
from berth.model.snapshot import Snapshot
from berth.model.topology import HOST_LABEL, Level, Topology

ZONE_LABEL = "topology.kubernetes.io/zone"
BLOCK_LABEL = "topology.kubernetes.io/block"
RACK_LABEL = "topology.kubernetes.io/rack"
TOPOLOGY = Topology((Level("zone", ZONE_LABEL), Level("block", BLOCK_LABEL), Level("rack", RACK_LABEL)))

# The block that one team paid for; its pods tolerate the taint.
DEDICATED = Taint("dedicated", "frontier")

# Left for the kubelet and the system on every node.
RESERVED_CPU = 1000
RESERVED_BYTES = 6 * GIB
PODS_PER_NODE = 110


class Card(NamedTuple):
    """A GPU as GPU Feature Discovery labels it; the rest follows from the catalogue of products."""

    product: str
    memory_mib: int
    family: str
    compute: tuple[int, int]
    mig: bool


CARDS: tuple[Card, ...] = (
    Card("NVIDIA-H200", 143771, "hopper", (9, 0), True),
    Card("NVIDIA-H100-80GB-HBM3", 81559, "hopper", (9, 0), True),
    Card("NVIDIA-A100-SXM4-80GB", 81920, "ampere", (8, 0), True),
    Card("NVIDIA-A100-SXM4-40GB", 40960, "ampere", (8, 0), True),
    Card("NVIDIA-L40S", 46068, "ada-lovelace", (8, 9), False),
    Card("Tesla-V100-SXM2-32GB", 32768, "volta", (7, 0), False),
    Card("NVIDIA-A10", 23028, "ampere", (8, 6), False),
    Card("Tesla-T4", 15360, "turing", (7, 5), False),
)


def _gpu_classes() -> dict[str, tuple[Card, GpuClass]]:
    known = {}
    for card in CARDS:
        found = gpu_class_of(_feature_labels(card, 1))
        assert found is not None
        known[found.name] = (card, found)
    return known


class Pool(NamedTuple):
    """Nodes of one shape. They fill racks in order, and racks fill blocks; a block is of one pool."""

    name: str  # prefix of the nodes' names
    gpu_class: str  # "" for nodes without GPUs
    nodes: int
    gpus: int  # of one node
    cores: int
    memory_gib: int
    zone: str
    nodes_per_rack: int
    racks_per_block: int


POOLS: tuple[Pool, ...] = (
    Pool("h200", "H200-141GB", 40, 8, 192, 2048, "zone-1", 4, 5),
    Pool("h100", "H100-80GB", 96, 8, 192, 2048, "zone-1", 4, 8),
    Pool("a100", "A100-80GB", 80, 8, 96, 1152, "zone-1", 8, 5),
    Pool("a100s", "A100-40GB", 72, 4, 48, 340, "zone-2", 12, 6),
    Pool("l40s", "L40S-48GB", 56, 8, 192, 1536, "zone-2", 7, 4),
    Pool("v100", "V100-32GB", 48, 4, 64, 488, "zone-2", 12, 4),
    Pool("a10", "A10-24GB", 80, 4, 48, 192, "zone-2", 20, 4),
    Pool("t4x4", "T4-16GB", 40, 4, 48, 192, "zone-2", 20, 2),
    Pool("t4x2", "T4-16GB", 32, 2, 32, 128, "zone-2", 32, 1),
    Pool("t4x1", "T4-16GB", 40, 1, 16, 64, "zone-2", 40, 1),
    Pool("cpu", "", 32, 0, 128, 512, "zone-2", 16, 2),
)

# What keeps new pods off: a rack whose driver is being upgraded, nodes that do not answer, failing nodes.
CORDONED = frozenset(["h200-036", "h200-037", "h200-038", "h200-039", "a100s-030", "a100s-031", "t4x4-007", "l40s-048"])
NOT_READY = frozenset(["a10-017", "a10-052", "v100-040", "t4x1-023"])
UNFIT = frozenset(["a100s-044", "a10-061"])
# (node, device) that a health agent took out of service; the rest of the node works.
LOST_DEVICES = frozenset([("h100-033", 5), ("a100-007", 0), ("l40s-021", 6), ("v100-009", 3)])
# What it found there, by node.
FOUND = {
    "a100s-044": "FabricDown", "a10-061": "DriverAbsent", "h100-033": "Xid79", "a100-007": "RemapFailed",
    "l40s-021": "Xid79", "v100-009": "Xid48",
}  # fmt: skip
DEDICATED_NODES = frozenset(f"h200-{i:03d}" for i in range(20, 40))

# Guaranteed and largest GPUs by queue. The four parents have neither: their children's add up.
QUEUES: tuple[Queue, ...] = (
    Queue("research", weight=4),
    Queue("product", weight=4),
    Queue("platform", weight=1),
    Queue("shared", weight=2),
    Queue(
        "llm",
        parent="research",
        weight=3,
        quota=(("H100-80GB", 448), ("H200-141GB", 160)),
        limit=(("H100-80GB", 704),),
    ),
    Queue("vision", parent="research", weight=2, quota=(("A100-80GB", 256),), limit=(("H100-80GB", 256),)),
    Queue("speech", parent="research", weight=1, quota=(("A100-80GB", 128),), limit=(("H100-80GB", 64),)),
    Queue("frontier", parent="research", weight=2, quota=(("H200-141GB", 160),)),
    Queue("assistant", parent="product", weight=3, quota=(("L40S-48GB", 192), ("A10-24GB", 96))),
    Queue("search", parent="product", weight=2, quota=(("A10-24GB", 128), ("T4-16GB", 128))),
    Queue("ads", parent="product", weight=1, quota=(("T4-16GB", 96), ("V100-32GB", 64))),
    Queue("ci", parent="platform", limit=((ANY_CLASS, 48),)),
    Queue("batch", parent="shared", weight=2),
    Queue("interns", parent="shared", weight=1, limit=((ANY_CLASS, 64),)),
)


def cluster() -> Snapshot:
    """The cluster with nothing on it and nobody waiting."""
    known = _gpu_classes()
    nodes = tuple(_node(pool, i, known.get(pool.gpu_class)) for pool in POOLS for i in range(pool.nodes))
    classes = tuple(found for _, found in known.values())
    return Snapshot(nodes=nodes, gpu_classes=classes, queues=QUEUES, topology=TOPOLOGY)


def _node(pool: Pool, i: int, gpu: tuple[Card, GpuClass] | None) -> Node:
    name = f"{pool.name}-{i:03d}"
    rack, block = i // pool.nodes_per_rack, i // (pool.nodes_per_rack * pool.racks_per_block)
    labels = {
        HOST_LABEL: name,
        ZONE_LABEL: pool.zone,
        BLOCK_LABEL: f"{pool.name}-block-{block + 1}",
        RACK_LABEL: f"rack-{rack % pool.racks_per_block + 1}",
        "node.kubernetes.io/instance-type": f"{pool.name}-{pool.gpus}gpu" if gpu else pool.name,
    }
    devices: tuple[Device, ...] = ()
    if gpu:
        labels |= _feature_labels(gpu[0], pool.gpus)
        devices = _devices(name, pool, gpu[1])
    fit = sum(d.health == Health.Fit for d in devices)
    return Node(
        name=name,
        labels=labels,
        taints=(DEDICATED,) if name in DEDICATED_NODES else (),
        cordoned=name in CORDONED,
        ready=name not in NOT_READY,
        health=Health.Unfit if name in UNFIT else Health.Fit,
        code=FOUND.get(name, ""),
        allocatable=_amounts(pool.cores * 1000 - RESERVED_CPU, pool.memory_gib * GIB - RESERVED_BYTES, fit),
        capacity=_amounts(pool.cores * 1000, pool.memory_gib * GIB, pool.gpus),
        gpu_class=pool.gpu_class,
        device_resource=NVIDIA_GPU if gpu else "",
        devices=devices,
        named_devices=bool(gpu),  # shares of a GPU only make sense where the scheduler names the device
        rdma=pool.name in ("h200", "h100", "a100"),
    )


def _devices(name: str, pool: Pool, gpu: GpuClass) -> tuple[Device, ...]:
    """NVLink joins all GPUs of a node here; half of the GPUs hang on each CPU socket from four up."""
    sockets = 2 if pool.gpus >= 4 else 1
    return tuple(
        Device(
            index=g,
            uuid=f"GPU-{name}-{g}",
            pci=(0, 0x10 * (g + 1), 0),
            island=0 if gpu.link == "nvlink" else NO_ISLAND,
            numa=g * sockets // pool.gpus,
            health=Health.Unfit if (name, g) in LOST_DEVICES else Health.Fit,
            code=FOUND.get(name, "") if (name, g) in LOST_DEVICES else "",
        )
        for g in range(pool.gpus)
    )


def _feature_labels(card: Card, count: int) -> dict[str, str]:
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": card.product,
        "nvidia.com/gpu.family": card.family,
        "nvidia.com/gpu.memory": str(card.memory_mib),
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/gpu.compute.major": str(card.compute[0]),
        "nvidia.com/gpu.compute.minor": str(card.compute[1]),
        "nvidia.com/mig.capable": str(card.mig).lower(),
    }


def _amounts(cpu: int, memory: int, gpus: int) -> Resources:
    return resources({CPU: cpu, MEMORY: memory, PODS: PODS_PER_NODE, NVIDIA_GPU: gpus})
