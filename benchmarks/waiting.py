"""What a cycle costs while thousands wait: a full cluster, single pods and gangs of many queues, most without a place.

    python benchmarks/waiting.py [--waiting 10000] [--nodes 5000] [--rounds 20] [--limits] [--profile]

CPU milliseconds of a whole cycle, verdicts included: cold, and over warm cycles (median and worst). Between two cycles
a few pods end, what the plan has placed runs, and as many workloads come as have left. `--limits` gives everybody a
run-time limit, so that the first that finds no room gets a place in time.
"""

from __future__ import annotations

import argparse
import cProfile
import hashlib
import pstats
import random
import statistics
import time
from collections import Counter

from msgspec.structs import replace

from berth.model.cluster import Allocation
from berth.model.queue import Queue
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, TopologyWish, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from core import cluster

NOW_S = 1_000_000.0
QUEUES = 40
ENDED = 10  # pods, from one cycle to the next


def gpu_class(gpus: int, cores: int = 4) -> PodClass:
    return PodClass(resources({"cpu": 1000 * cores * gpus, "memory": 2**35 * gpus, "nvidia.com/gpu": gpus}))


SIZES = [gpu_class(g, cores) for g in (1, 2, 4, 8) for cores in (4, 6)]
SINGLES = [(PodSet("pod", one),) for one in SIZES]
GANGS = [
    (PodSet("worker", gpu_class(gpus), pods, pods if pods % 3 else pods // 2),)
    for gpus in (1, 4, 8)
    for pods in (2, 3, 4, 8, 16, 32, 64)
]
WISHES = [(), (), (TopologyWish("rack"),), (TopologyWish("block"), TopologyWish("rack", required=False))]


def workload(number: int, draw: random.Random, limits: bool) -> Workload:
    """Seven of ten are single pods; gangs, some of which want to be near each other, are the rest."""
    queue = f"team-{number % QUEUES}"
    common = {
        "namespace": queue, "queue": queue, "priority": draw.choice((0, 0, 0, 10)),
        "created_s": NOW_S - draw.random() * 1e5,
        "time_limit_s": draw.choice((600.0, 3_600.0, 86_400.0)) if limits else 0.0,
    }  # fmt: skip
    if draw.random() < 0.7:
        return Workload(f"w-{number}", draw.choice(SINGLES), **common)
    return Workload(f"w-{number}", draw.choice(GANGS), kind="PodGroup", topology=draw.choice(WISHES), **common)


def full(nodes: int, waiting: int, limits: bool) -> Snapshot:
    """Nodes full but for one in fifty, on which one GPU is free."""
    base, draw = cluster(nodes), random.Random(7)
    held = []
    for n in range(nodes):
        free = 8
        while free > (n % 50 == 0):
            size = draw.choice([g for g in (1, 2, 4, 8) if g <= free])
            free -= size
            queue = f"team-{draw.randrange(QUEUES)}"
            held.append(Allocation(
                f"node-{n}", queue, f"pod-{n}-{free}", SIZES[2 * (size.bit_length() - 1)], queue=queue, priority=20,
                started_s=NOW_S - draw.random() * 1e5, time_limit_s=2e5 if limits else 0.0, is_controlled=True,
                preemptible=False,
            ))  # fmt: skip
    queues = tuple(
        Queue(f"team-{q}", weight=1 + q % 3, limit=(("*", 20 * nodes // QUEUES),) if q % 8 == 0 else ())
        for q in range(QUEUES)
    )
    waits = tuple(workload(number, draw, limits) for number in range(waiting))
    return replace(base, allocations=tuple(held), workloads=waits, queues=queues, now_s=NOW_S)


def later(snapshot: Snapshot, plan: Plan, draw: random.Random, step: int, limits: bool) -> Snapshot:
    """What was placed runs, some pods have ended, and as many have come as went."""
    gone = set(draw.sample(range(len(snapshot.allocations)), ENDED))
    held = [a for p, a in enumerate(snapshot.allocations) if p not in gone]
    for i, bind in enumerate(plan.binds()):
        w = bind.workload
        held.append(Allocation(
            bind.node.name, w.namespace, f"{w.name}-{step}-{i}", w.pod_sets[bind.pod_set].pod_class, workload=w.key,
            workload_kind=w.kind, queue=w.queue, devices=bind.devices, priority=20, started_s=snapshot.now_s,
            time_limit_s=w.time_limit_s, is_controlled=True, preemptible=False,
        ))  # fmt: skip
    placed = set(plan.placed.tolist())
    waits = [w for i, w in enumerate(snapshot.workloads) if i not in placed]
    missing = len(snapshot.workloads) - len(waits)
    waits += [workload(1_000_000 * step + i, draw, limits) for i in range(missing)]
    return replace(snapshot, allocations=tuple(held), workloads=tuple(waits), now_s=snapshot.now_s + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--limits", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    snapshot, tables, policy = full(options.nodes, options.waiting, options.limits), Tables(), Policy()
    draw, cpu, steps, placed, digest = random.Random(11), [], [], [], hashlib.md5()
    cycle(full(20, 50, options.limits), policy)  # compiled code is there from now on
    profile = cProfile.Profile()
    for step in range(options.rounds + 1):
        if options.profile and step:
            profile.enable()
        began = time.process_time()
        plan = cycle(snapshot, policy, tables)
        cpu.append(1000 * (time.process_time() - began))
        profile.disable()
        steps.append(plan.seconds)
        placed.append(len(plan.placed))
        for column in (plan.workload, plan.node, plan.devices):
            digest.update(column.tobytes())
        digest.update(repr(sorted(plan.verdicts.items())).encode())
        if step == 0:
            causes = Counter(v.causes[0].reason.name for v in plan.verdicts.values())
            said = ", ".join(f"{count:,} {name}" for name, count in causes.most_common())
            print(f"{options.waiting:,} wait on {options.nodes:,} nodes; {placed[0]:,} placed, of the others: {said}")
        snapshot = later(snapshot, plan, draw, step + 1, options.limits)
    warm = cpu[1:]
    parts = ", ".join(f"{part} {1000 * statistics.median(s[part] for s in steps[1:]):.1f}" for part in steps[0])
    print(
        f"cold {cpu[0]:.0f} ms; warm median {statistics.median(warm):.1f} ms, worst {max(warm):.1f}; "
        f"{sum(placed[1:]):,} placed in {len(warm)} cycles ({parts})  {digest.hexdigest()[:12]}"
    )
    if options.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()
