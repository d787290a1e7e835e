"""What a cycle costs in a large cluster where little has changed since the last one.

    python benchmarks/warm_cycle.py [--rounds 30] [--nodes 5000] [--pods 30000] [--profile "one pod"]

CPU milliseconds, medians and worst. Between two cycles ten nodes change: on each a pod ends or begins, as a source of
events has it: the allocations that stay are the same objects. The steps of the cycle are told by wall clock.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import statistics
import time
from collections.abc import Callable

from msgspec.structs import replace

from berth.model.cluster import Allocation
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.workload import LabelSelector, PodClass, PodSet, PodTerm, TopologyWish, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from core import cluster

NOW_S = 1_000_000.0
CHANGED = 10
ONE = PodClass(resources({"cpu": 4_000, "memory": 32 * 2**30, "nvidia.com/gpu": 1}))
EIGHT = PodClass(resources({"cpu": 64_000, "memory": 512 * 2**30, "nvidia.com/gpu": 8}))


def classes_that_run(with_rules: bool) -> list[PodClass]:
    gpus = [
        PodClass(resources({"cpu": 2_000 * c, "memory": 2**33 * c, "nvidia.com/gpu": 1 + c % 2})) for c in range(1, 25)
    ]
    plain = [PodClass(resources({"cpu": 100 * c, "memory": 2**28 * c})) for c in range(1, 17)]
    if with_rules:
        plain[0] = replace(plain[0], host_ports=(("0.0.0.0", "TCP", 9100),))
        term = PodTerm(LabelSelector((("app", "app-3"),)), "kubernetes.io/hostname")
        plain[1] = replace(plain[1], apart=(term,))
    return gpus + plain


def busy(nodes: int, pods: int, with_rules: bool) -> Snapshot:
    """Half of the nodes' GPUs in use or more, differently on each node."""
    base, draw = cluster(nodes), random.Random(7)
    known = classes_that_run(with_rules)
    free = [8] * nodes
    held = []
    for p in range(pods):
        n = p % nodes
        pod_class = draw.choice(known)
        asked = dict(pod_class.requests).get("nvidia.com/gpu", 0)
        if asked > free[n]:
            pod_class, asked = known[24 + p % 16], 0
        free[n] -= asked
        held.append(
            Allocation(
                f"node-{n}", f"team-{p % 50}", f"pod-{p}", pod_class, labels=(("app", f"app-{p % 500}"),),
                workload=f"team-{p % 50}/job-{p // 8}", workload_kind="Job", priority=100, started_s=NOW_S - p,
            )
        )  # fmt: skip
    return replace(base, allocations=tuple(held), now_s=NOW_S)


def later(snapshot: Snapshot, draw: random.Random, step: int) -> Snapshot:
    """Ten nodes have changed: five pods have ended, five have begun."""
    gone = set(draw.sample(range(len(snapshot.allocations)), CHANGED // 2))
    stay = [a for p, a in enumerate(snapshot.allocations) if p not in gone]
    for i in range(CHANGED // 2):
        like = snapshot.allocations[draw.randrange(len(snapshot.allocations))]
        stay.append(replace(like, name=f"new-{step}-{i}", node=f"node-{draw.randrange(len(snapshot.nodes))}"))
    return replace(snapshot, allocations=tuple(stay))


def cordoned(snapshot: Snapshot, step: int) -> Snapshot:
    """One node is cordoned, or put back into service."""
    nodes = list(snapshot.nodes)
    nodes[step // 2] = replace(nodes[step // 2], cordoned=step % 2 == 0)
    return replace(snapshot, nodes=tuple(nodes))


def of_a_new_class(snapshot: Snapshot, step: int) -> Snapshot:
    """The pod that waits asks for something that nobody has asked for before."""
    new = PodClass(resources({"cpu": 4_001 + step, "memory": 32 * 2**30, "nvidia.com/gpu": 1}))
    return replace(snapshot, workloads=(Workload("one", (PodSet("pod", new),), namespace="new"),))


Change = Callable[[Snapshot, int], Snapshot]


def case(name: str, start: Snapshot, options: argparse.Namespace, policy: Policy, also: Change | None = None) -> None:
    tables, draw = Tables(), random.Random(11)
    snapshot, cpu, steps = start, [], []
    cycle(snapshot, policy, tables)
    profile = cProfile.Profile() if options.profile == name else None
    for round_ in range(options.rounds + 3):
        snapshot = later(snapshot, draw, round_)
        snapshot = also(snapshot, round_) if also else snapshot
        if profile and round_ >= 3:
            profile.enable()
        started = time.process_time()
        plan = cycle(snapshot, policy, tables)
        spent = 1000 * (time.process_time() - started)
        if profile:
            profile.disable()
        if round_ >= 3:
            cpu.append(spent)
            steps.append(plan.seconds)
    told = ", ".join(f"{step} {1000 * statistics.median(s[step] for s in steps):.1f}" for step in steps[0])
    print(f"{name:<86} {statistics.median(cpu):>7.1f} ms, worst {max(cpu):>7.1f}   ({told})")
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(28)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=30_000)
    parser.add_argument("--profile", default="")
    options = parser.parse_args()
    one = (Workload("one", (PodSet("pod", ONE),), namespace="new"),)
    huge = (Workload("huge", (PodSet("worker", EIGHT, 1_001, 1_001),), topology=(TopologyWish("block"),)),)
    never = (Workload("huge", (PodSet("worker", EIGHT, 6_001, 6_001),)),)
    crowd = tuple(
        Workload(f"w{i}", (PodSet("pod", EIGHT),), namespace=f"team-{i % 50}", created_s=NOW_S - i) for i in range(200)
    )
    cases: list[tuple[str, tuple[Workload, ...], Change | None]] = [
        ("nothing waits", (), None),
        ("one pod", one, None),
        ("one pod of a class that is new", one, of_a_new_class),
        ("one pod, and a node cordoned or put back", one, cordoned),
        ("a gang of 1,001 that does not fit in a block", huge, None),
        ("a gang of 6,001 that never fits", never, None),
        ("one pod and 200 that wait", (*crowd, *one), None),
    ]
    for with_rules in (False, True):
        start = busy(options.nodes, options.pods, with_rules)
        rules = "; pods with ports and anti-affinity" if with_rules else ""
        for name, waits, also in cases:
            case(name + rules, replace(start, workloads=waits), options, Policy(), also)


if __name__ == "__main__":
    main()
