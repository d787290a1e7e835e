"""Compile the hot loops ahead of their first use: `python -m berth.app.compile`, as `make setup` does.

Numba keeps the result on disk beside the sources; a later process loads it in a fraction of a second. Each kernel
is compiled for the types with which the product calls it, by making small decisions with it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from msgspec.structs import replace

from berth.model.cluster import Allocation, Device, GpuClass, Node
from berth.model.history import History
from berth.model.hold import Hold, Place
from berth.model.jobs import Jobs
from berth.model.queue import Queue
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.topology import Level, Topology
from berth.model.workload import PodClass, PodSet, TopologyWish, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.starts_watch import Watch
from berth.scheduling.tables import Tables


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


def contested(cluster: Snapshot) -> Snapshot:
    """The same nodes full of pods of low priority, some of them a gang, and workloads for which some have to leave."""
    sizes = {g: PodClass(resources({"cpu": 1000, "nvidia.com/gpu": g})) for g in (1, 2)}
    held = tuple(
        Allocation(
            node.name, "low", f"{node.name}-{i}", sizes[gpus], disruption="all" if i < 2 else "single", gang_minimum=2,
            workload=f"low/{node.name}" if i < 2 else "", workload_kind="PodGroup" if i < 2 else "",
        )
        for node in cluster.nodes
        for i, gpus in enumerate((1, 1, 1, 1, 2, 2))
    )  # fmt: skip
    waits = tuple(replace(w, priority=1) for w in cluster.workloads)
    hold = Hold("Pod default/one", (Place("pod", cluster.nodes[0].name),), until_s=1.0)
    return replace(cluster, allocations=held, workloads=waits, holds=(hold,), queues=())


def _expected_starts() -> None:
    """Once without a past, and once with one from which run times are learned."""
    cluster, policy = contested(small_cluster()), Policy(evicts=False)
    came, ones = np.arange(10.0), np.ones(10, np.int64)
    past = History(came, came + 1, np.ones(10, bool), ones, 0 * ones, 0 * ones, {}, 0 * came, 0 * ones, ("default",))
    for snapshot in (cluster, replace(cluster, history=past, now_s=1000.0)):
        Watch(policy).look(snapshot, cycle(snapshot, policy))


def few_jobs() -> Jobs:
    """Two queues, more than two nodes can run at once, of few kinds; all with run-time limits."""
    count = 48
    at = np.arange(count)
    turn = at.astype(np.float64)
    width = np.array([1, 2, 8, 4, 16, 1])[at % 6]
    return Jobs(
        name="few", names=tuple(f"job-{j}" for j in range(count)), submit_s=40.0 * turn,
        service_s=60.0 + 90.0 * (turn % 7), limit_s=120.0 + 200.0 * (turn % 5 + 1), restart_s=np.full(count, 5.0),
        width=width, pod_gpus=np.minimum(width, 8), priority=np.zeros(count, np.int64), queue=at % 2, owner=at % 3,
        gpu_class=np.full(count, -1), queues=("a", "b"), owners=("x", "y", "z"),
    )  # fmt: skip


def _days() -> None:
    """Jobs over time, under each policy there is."""
    from berth.simulation.baselines import schedules
    from berth.simulation.queueing.as_live import AsLive
    from berth.simulation.queueing.cluster import like_nodes
    from berth.simulation.queueing.engine import run
    from berth.simulation.queueing.schedule import Overhead

    jobs, cluster, at_start = few_jobs(), like_nodes(2, 8), Overhead.AtStart
    by_share, sets_aside = (Policy(evicts=False, explains=False), Tables()), (Policy(sets_aside=True), Tables())
    run("live", jobs, cluster, at_start, lambda snapshot: cycle(snapshot, *by_share))
    run("known", jobs, cluster, at_start, lambda snapshot: cycle(snapshot, *sets_aside), knows=True)
    run("blind", jobs, cluster, at_start, lambda snapshot: cycle(snapshot, *sets_aside), remembers=True)
    run("least-left", jobs, cluster, at_start, AsLive(True, Policy()).decide)
    for name in schedules.NAMES:
        schedules.run(name, jobs, 2, 8, at_start)


def warm_up() -> None:
    """Load what a first decision needs: half a second for which the first pods would wait."""
    for snapshot in (small_cluster(), contested(small_cluster())):
        cycle(snapshot)


def main() -> None:
    """Make every decision that needs compiled code once."""
    from berth.simulation import moves
    from berth.simulation.baselines import BASELINES
    from berth.simulation.inflation import offer, prepare
    from berth.simulation.packing import run
    from berth.simulation.tiny import TINY

    cycle(small_cluster())
    cycle(contested(small_cluster()))
    _expected_starts()
    _days()
    offered = offer(prepare(TINY), 1)
    for name, policy in BASELINES.items():
        run(name, policy, TINY.name, offered)
    run("berth+moves", partial(moves.placements, percent=100.0), TINY.name, offered)


if __name__ == "__main__":
    main()
