"""Berth's own policy in the packing experiment: the scheduling cycle itself, one cycle for all arrivals.

The offer becomes a snapshot (nodes in tie-break order, a workload a pod in arrival order) and the plan's binds
become placements. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from berth.model.cluster import Device, GpuClass, Node
from berth.model.demand import Demand
from berth.model.resources import CPU, MEMORY, NVIDIA_GPU, PODS, resources
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, Capability, PodClass, PodSet, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.simulation.offer import PODS_PER_NODE, Offer, Placements

MIB = 2**20


def placements(offer: Offer, policy: Policy | None = None) -> Placements:
    """Where the cycle puts the offered pods. Demand is the trace's typical pods, or what has arrived so far."""
    policy = policy or Policy()
    plan = cycle(snapshot_of(offer, known_demand=not policy.learn_arrivals), policy)
    count = len(offer.class_of)
    node, gpus = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    node[plan.workload] = plan.node
    gpus[plan.workload] = plan.devices
    return Placements(node, gpus)


def learned(offer: Offer) -> Placements:
    """As `placements`, but knowing nothing of what is to come."""
    return placements(offer, Policy(learn_arrivals=True))


def snapshot_of(offer: Offer, known_demand: bool = True) -> Snapshot:
    """The empty cluster, and every offered pod waiting, the first to arrive the oldest."""
    models = tuple(GpuClass(name, product=name) for name in offer.models)
    shapes: dict[tuple[int, ...], Node] = {}
    nodes: list[Node] = []
    for n, row in enumerate(zip(*(column.tolist() for column in offer.nodes), strict=True)):
        shape = shapes.get(row) or shapes.setdefault(row, _node(row, models))
        nodes.append(_named(shape, f"node-{int(offer.origin[n])}"))
    classes = offer.classes
    pod_classes = [
        _pod_class(cpu, memory, gpus, milli, _products(allowed, offer.models))
        for cpu, memory, gpus, milli, allowed in zip(*(column.tolist() for column in classes), strict=True)
    ]
    sets = [(PodSet("pod", c),) for c in pod_classes]
    workloads = tuple(Workload(f"pod-{p}", sets[c], created_s=float(p)) for p, c in enumerate(offer.class_of.tolist()))
    return Snapshot(
        nodes=tuple(nodes),
        workloads=workloads,
        gpu_classes=models,
        demand=_demand(offer) if known_demand else Demand(),
    )


def _node(row: Sequence[int], models: Sequence[GpuClass]) -> Node:
    cpu, memory, gpus, model = row
    return Node(
        "",
        allocatable=resources({CPU: cpu, MEMORY: memory * MIB, PODS: PODS_PER_NODE, NVIDIA_GPU: gpus}),
        gpu_class=models[model].name if model >= 0 else "",
        device_resource=NVIDIA_GPU if gpus else "",
        devices=tuple(Device(g) for g in range(gpus)),
    )


def _named(shape: Node, name: str) -> Node:
    return Node(
        name, allocatable=shape.allocatable, gpu_class=shape.gpu_class,
        device_resource=shape.device_resource, devices=shape.devices,
    )  # fmt: skip


def _pod_class(cpu: int, memory_mib: int, gpus: int, milli: int, products: tuple[str, ...]) -> PodClass:
    return PodClass(
        resources({CPU: cpu, MEMORY: memory_mib * MIB, NVIDIA_GPU: gpus}),
        gpu_milli=milli if gpus else WHOLE,
        # A model binds pods with GPUs only.
        least=Capability(products=products if gpus else ()),
    )


def _products(allowed: int, models: Sequence[str]) -> tuple[str, ...]:
    return () if allowed < 0 else tuple(name for t, name in enumerate(models) if allowed >> t & 1) or ("none",)


def _demand(offer: Offer) -> Demand:
    """Typical pods by popularity; memory is left out of them, as in the published definition."""
    typical = offer.typical
    rows = zip(
        typical.cpu_milli.tolist(), typical.num_gpu.tolist(), typical.gpu_milli.tolist(), typical.specs,
        typical.count.tolist(), strict=True,
    )  # fmt: skip
    shares: dict[PodClass, float] = {}
    for cpu, gpus, milli, spec, count in rows:
        pod_class = _pod_class(cpu, 0, gpus, milli, tuple(sorted(set(spec))))
        shares[pod_class] = shares.get(pod_class, 0.0) + count / typical.weight
    return Demand(tuple(shares), tuple(shares.values()))
