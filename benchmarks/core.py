"""How fast the core decides: placements a second, a 512-pod gang, the verdict when it cannot fit, memory.

    python benchmarks/core.py [--rounds 7] [--trace openb:default]

CPU seconds of one process (other work on the machine disturbs them less than wall time), medians over rounds.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

from berth.model.cluster import Allocation, Device, GpuClass, Node
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.topology import Level, Topology
from berth.model.workload import PodClass, PodSet, TopologyWish, Workload
from berth.scheduling import singles
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation import own
from berth.simulation.inflation import offer, prepare
from berth.sources.traces import read_trace

TOPOLOGY = Topology((Level("block", "block"), Level("rack", "rack")))


def median_of(rounds: int, work: Callable[[], float]) -> float:
    return statistics.median(work() for _ in range(rounds))


def placements(trace: str, rounds: int) -> None:
    """The packing experiment's arrivals on 1,213 nodes, in one cycle."""
    offered = offer(prepare(read_trace(trace)), 42)
    snapshot = own.snapshot_of(offered)
    inside: list[float] = []
    kernel = singles.place_run

    def timed(*arguments: object) -> None:
        started = time.process_time()
        kernel(*arguments)
        inside.append(time.process_time() - started)

    singles.place_run = timed
    placed = len(cycle(snapshot).placed)

    def whole() -> float:
        started = time.process_time()
        cycle(snapshot)
        return time.process_time() - started

    inside.clear()
    seconds = median_of(rounds, whole)
    singles.place_run = kernel
    waiting = len(snapshot.workloads) - placed
    print(f"{trace}: {placed:,} placed, {waiting:,} left with a verdict, {len(snapshot.nodes):,} nodes")
    print(f"  kernel       {placed / statistics.median(inside):>10,.0f} placements/s")
    print(f"  whole cycle  {placed / seconds:>10,.0f} placements/s, verdicts included")


def cluster(nodes: int, used: int = 0) -> Snapshot:
    """`nodes` nodes of 8 GPUs in racks of 16 and blocks of 512; `used` GPUs of each taken."""
    shape = resources({"cpu": 128_000, "memory": 2**40, "pods": 110, "nvidia.com/gpu": 8})
    devices = tuple(Device(g, island=0) for g in range(8))
    one = PodClass(resources({"cpu": 4_000, "memory": 32 * 2**30, "nvidia.com/gpu": 1}))
    made = tuple(
        Node(
            f"node-{n}",
            labels={"block": f"b{n // 512}", "rack": f"r{n // 16}"},
            allocatable=shape,
            gpu_class="H100-80GB",
            device_resource="nvidia.com/gpu",
            devices=devices,
        )
        for n in range(nodes)
    )
    held = tuple(Allocation(f"node-{n}", "team", f"p-{n}-{i}", one) for n in range(nodes) for i in range(used))
    return Snapshot(nodes=made, allocations=held, gpu_classes=(GpuClass("H100-80GB"),), topology=TOPOLOGY)


def gang(nodes: int, rounds: int) -> None:
    """512 pods of 8 GPUs on 5,000 nodes, block required and rack preferred, with the tables warm."""
    each = PodClass(resources({"cpu": 64_000, "memory": 512 * 2**30, "nvidia.com/gpu": 8}))
    wishes = (TopologyWish("block"), TopologyWish("rack", required=False))
    job = Workload("train", (PodSet("worker", each, 512, 512),), topology=wishes)
    for name, used in (("fits", 0), ("cannot fit", 1)):
        base = cluster(nodes, used)
        snapshot = Snapshot(
            nodes=base.nodes, allocations=base.allocations, workloads=(job,), gpu_classes=base.gpu_classes,
            topology=base.topology,
        )  # fmt: skip
        tables = Tables()
        plan = cycle(snapshot, cache=tables)

        def decide(snapshot: Snapshot = snapshot, tables: Tables = tables) -> float:
            started = time.process_time()
            cycle(snapshot, cache=tables)
            return time.process_time() - started

        outcome = f"{len(plan.node)} pods in {plan.scopes.get(0, '-')}" if len(plan.node) else plan.verdicts[0].message
        print(f"gang of 512 x 8 GPUs on {nodes:,} nodes {name}: {1000 * median_of(rounds, decide):.1f} ms  ({outcome})")


def memory(nodes: int, pods: int) -> None:
    """A snapshot of so many pods and its tables, in this process."""
    base = cluster(nodes)
    classes = [
        PodClass(resources({"cpu": 1_000 * c, "memory": 2**30 * c, "nvidia.com/gpu": c % 2})) for c in range(1, 41)
    ]
    held = tuple(
        Allocation(
            f"node-{p % nodes}",
            f"team-{p % 50}",
            f"pod-{p:06d}-{p * 7919 % 99991}",
            classes[p % 40],
            labels=(("app", f"app-{p % 500}"),),
            workload=f"team-{p % 50}/job-{p // 8}",
        )
        for p in range(pods)
    )
    waiting = tuple(Workload(f"w{i}", (PodSet("pod", classes[i % 40]),)) for i in range(1000))
    snapshot = Snapshot(
        nodes=base.nodes, allocations=held, workloads=waiting, gpu_classes=base.gpu_classes, topology=TOPOLOGY
    )
    started = time.process_time()
    tables = Tables()
    cycle(snapshot, cache=tables)
    first = time.process_time() - started
    started = time.process_time()
    cycle(snapshot, cache=tables)
    warm = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{nodes:,} nodes and {pods:,} pods: peak {peak:,.0f} MiB; first cycle {first:.2f} s, warm {1000 * warm:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--trace", default="openb:default")
    parser.add_argument("--only", choices=("placements", "gang", "memory"))
    options = parser.parse_args()
    print(f"policy: {Policy()}")
    if options.only in (None, "memory"):
        memory(5_000, 100_000)
    if options.only in (None, "placements"):
        placements(options.trace, options.rounds)
    if options.only in (None, "gang"):
        gang(5_000, options.rounds)


if __name__ == "__main__":
    main()
