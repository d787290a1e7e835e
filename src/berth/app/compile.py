"""Compile the hot loops ahead of their first use: `python -m berth.app.compile`, as `make setup` does.

Numba keeps the result on disk beside the sources; a later process loads it in a fraction of a second. Each kernel
is compiled for the types with which the product calls it, by making small decisions with it.
"""

from __future__ import annotations

from functools import partial

from berth.model.cluster import Device, GpuClass, Node
from berth.model.queue import Queue
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.topology import Level, Topology
from berth.model.workload import PodClass, PodSet, TopologyWish, Workload
from berth.scheduling.cycle import cycle


def small_cluster() -> Snapshot:
    """Two nodes, and a workload of each sort: a single pod, a share, a gang, one that cannot fit."""
    amounts = resources({"cpu": 64_000, "memory": 2**38, "pods": 110, "nvidia.com/gpu": 8})
    nodes = tuple(
        Node(
            f"node-{n}",
            {"rack": "r"},
            allocatable=amounts,
            gpu_class="GPU",
            device_resource="nvidia.com/gpu",
            devices=tuple(Device(g, island=0) for g in range(8)),
        )
        for n in range(2)
    )
    one = PodClass(resources({"cpu": 1000, "nvidia.com/gpu": 1}))
    share = PodClass(resources({"cpu": 1000, "nvidia.com/gpu": 1}), gpu_milli=500)
    full = PodClass(resources({"cpu": 1000, "nvidia.com/gpu": 8}))
    workloads = (
        Workload("one", (PodSet("pod", one),)),
        Workload("share", (PodSet("pod", share),)),
        Workload("gang", (PodSet("pod", one, 4, 2),), topology=(TopologyWish("rack"),)),
        Workload("large", (PodSet("pod", full, 3, 3),)),
    )
    return Snapshot(
        nodes=nodes, workloads=workloads, gpu_classes=(GpuClass("GPU"),), topology=Topology((Level("rack", "rack"),)),
        queues=(Queue("default", limit=(("*", 100),)),),
    )  # fmt: skip


def main() -> None:
    """Make every decision that needs compiled code once."""
    from berth.simulation import moves
    from berth.simulation.baselines import BASELINES
    from berth.simulation.inflation import offer, prepare
    from berth.simulation.packing import run
    from berth.simulation.tiny import TINY

    cycle(small_cluster())
    offered = offer(prepare(TINY), 1)
    for name, policy in BASELINES.items():
        run(name, policy, TINY.name, offered)
    run("berth+moves", partial(moves.placements, percent=100.0), TINY.name, offered)


if __name__ == "__main__":
    main()
