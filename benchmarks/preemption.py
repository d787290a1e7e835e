"""How fast room is made: a gang or single pods of high priority on a cluster full of pods of low priority.

    python benchmarks/preemption.py [--rounds 5] [--nodes 500 5000] [--only TEXT]

CPU milliseconds of a whole cycle with warm tables, medians. Each case is checked: so many pods leave so many nodes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from msgspec.structs import replace

from berth.model.cluster import Allocation
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, TopologyWish, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from core import cluster

NOW_S = 1_000_000.0
ONE = PodClass(resources({"cpu": 4_000, "memory": 32 * 2**30, "nvidia.com/gpu": 1}))
EIGHT = PodClass(resources({"cpu": 32_000, "memory": 256 * 2**30, "nvidia.com/gpu": 8}))


def full(nodes: int, gangs_of: int = 0, priority: int = 0) -> Snapshot:
    """Eight pods of one GPU on each node, each older than the one before it; alone, or in gangs over whole nodes."""
    base = cluster(nodes)

    def pod(n: int, g: int) -> Allocation:
        gang = f"batch/gang-{n // gangs_of}" if gangs_of else ""
        return Allocation(
            f"node-{n}", "batch", f"p-{n}-{g}", ONE, workload=gang, workload_kind="PodGroup" if gang else "",
            disruption="all" if gang else "single", priority=priority, is_controlled=True,
            started_s=NOW_S - 3600 - 60 * ((n * 7919) % nodes) - g,
        )  # fmt: skip

    held = tuple(pod(n, g) for n in range(nodes) for g in range(8))
    return replace(base, allocations=held, now_s=NOW_S)


def gang(pods: int, wish: str = "") -> tuple[Workload, ...]:
    topology = (TopologyWish(wish),) if wish else ()
    return (Workload("urgent", (PodSet("worker", EIGHT, pods, pods),), priority=100, topology=topology),)


def singles(count: int) -> tuple[Workload, ...]:
    return tuple(Workload(f"urgent-{i}", (PodSet("pod", ONE),), priority=100) for i in range(count))


def case(name: str, snapshot: Snapshot, leave: int, on: int, rounds: int, say: Callable[[str], None]) -> None:
    tables, policy = Tables(), Policy()
    plan = cycle(snapshot, policy, tables)
    nodes = {e.allocation.node for e in plan.evictions}
    assert (len(plan.evictions), len(nodes)) == (leave, on), (name, len(plan.evictions), len(nodes))
    cpu = []
    for _ in range(rounds):
        started = time.process_time()
        cycle(snapshot, policy, tables)
        cpu.append(1000 * (time.process_time() - started))
    say(f"{name:<68} {statistics.median(cpu):>8.1f} ms   {leave} leave {on} nodes")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 5000])
    parser.add_argument("--only", default="", help="cases whose name holds this")
    options = parser.parse_args()
    print(f"policy: {Policy()}")
    for nodes in options.nodes:
        alone, gangs, equals = full(nodes), full(nodes, gangs_of=4), full(nodes, priority=100)
        cases = [
            ("gang of 32 x 8 GPUs", alone, gang(32), 256, 32),
            ("gang of 32 x 8 GPUs in one block", alone, gang(32, "block"), 256, 32),
            ("gang of 12 x 8 GPUs in one rack", alone, gang(12, "rack"), 96, 12),
            ("gang of 88 x 8 GPUs in one block: 704 leave", alone, gang(88, "block"), 704, 88),
            ("gang of 32 x 8 GPUs, gangs of 4 nodes leave whole", gangs, gang(32), 256, 32),
            ("one pod of 1 GPU", alone, singles(1), 1, 1),
            ("64 pods of 1 GPU, each for itself", alone, singles(64), 64, None),
            ("gang of 32 x 8 GPUs, nobody may leave", equals, gang(32), 0, 0),
        ]
        for name, base, waits, leave, on in (one for one in cases if options.only in one[0]):
            snapshot = replace(base, workloads=waits)
            if on is None:
                on = len({e.allocation.node for e in cycle(snapshot).evictions})
            case(f"{nodes:,} nodes x 8 pods: {name}", snapshot, leave, on, options.rounds, print)


if __name__ == "__main__":
    main()
