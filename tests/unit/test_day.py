"""The replay: nothing is placed twice, departures free what arrivals took, and the record adds up."""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from first_fit import first_fit

from berth.base.units import GIB
from berth.model.cluster import Device, GpuClass, Health, Node
from berth.model.resources import CPU, MEMORY, NVIDIA_GPU, PODS, resources
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.day import replay
from berth.simulation.jobs import Arrival
from berth.simulation.occupancy import Occupancy, Overcommitted
from berth.simulation.workday import Day, builtin_day, popularity

HOUR = 3600.0


def node(name: str, gpus: int = 4, **changes) -> Node:
    amounts = resources({CPU: 32_000, MEMORY: 128 * GIB, PODS: 20, NVIDIA_GPU: gpus})
    given = {"allocatable": amounts, "gpu_class": "T4-16GB", "device_resource": NVIDIA_GPU} | changes
    return Node(name, devices=tuple(Device(g) for g in range(gpus)), **given)


def asks(gpus: int, milli: int = 1000, cpu: int = 1000) -> PodClass:
    return PodClass(resources({CPU: cpu, MEMORY: GIB, NVIDIA_GPU: gpus}), gpu_milli=milli)


def job(name: str, at: float, pod_class: PodClass, pods: int = 1) -> Workload:
    return Workload(name, (PodSet("main", pod_class, pods, pods),), created_s=at)


def small_day(nodes, arrivals, length_s: float = 4 * HOUR) -> Day:
    """`arrivals` are (workload, seconds that it runs)."""
    ordered = sorted(arrivals, key=lambda a: a[0].created_s)
    workloads = tuple(w for w, _ in ordered)
    demand = popularity([Arrival(w, r) for w, r in ordered])
    cluster = Snapshot(nodes=tuple(nodes), gpu_classes=(GpuClass("T4-16GB"),), demand=demand)
    return Day("small", 0, cluster, workloads, tuple(r for _, r in ordered), length_s)


def berth():
    policy, cache = Policy(evicts=False), Tables()
    return lambda snapshot: cycle(snapshot, policy, cache)


@pytest.fixture(params=["first fit", "berth"])
def decide(request):
    return first_fit if request.param == "first fit" else berth()


def test_a_departure_frees_what_the_next_needs(decide):
    day = small_day([node("a")], [(job("one", 0, asks(4)), HOUR), (job("two", 60, asks(4)), HOUR)])
    outcome = replay(day, decide)
    assert (outcome.started, outcome.finished, outcome.waiting) == (2, 2, 0)
    waits = {w.kind: w for w in outcome.waits}["2 to 8 GPUs"]
    assert waits.longest_s == HOUR - 60
    assert outcome.end_pct == 0
    assert outcome.peak_pct == 100


def test_half_used_for_half_of_the_day(decide):
    day = small_day([node("a"), node("b")], [(job("one", 0, asks(4)), 2 * HOUR)])
    outcome = replay(day, decide)
    assert outcome.mean_pct == pytest.approx(25, abs=0.3)
    assert outcome.hourly_pct == pytest.approx((50, 50, 0, 0), abs=0.1)
    assert outcome.classes[0].room == (8, 4, 2, 0)


def test_a_gang_waits_whole_and_keeps_its_verdict(decide):
    day = small_day(
        [node("a"), node("b")],
        [(job("long", 0, asks(2)), 9 * HOUR), (job("gang", 60, asks(4), 2), HOUR)],
    )
    outcome = replay(day, decide)
    assert (outcome.gangs_arrived, outcome.gangs_started) == (1, 0)
    (left,) = outcome.left
    assert (left.workload, left.pods, left.gpus) == ("default/gang", 2, 8)
    assert left.verdict is not None and left.verdict.causes
    assert left.waited_s == 4 * HOUR - 60


def test_shares_of_a_gpu_add_up_on_one_device(decide):
    day = small_day([node("a", 1)], [(job(f"share-{i}", 0, asks(1, 300)), HOUR) for i in range(4)])
    outcome = replay(day, decide)
    assert outcome.started == 4
    assert outcome.peak_pct == pytest.approx(90)
    assert {w.kind: w for w in outcome.waits}["share of a GPU"].longest_s == HOUR


def test_nodes_held_back_take_nothing(decide):
    day = small_day([node("a", cordoned=True), node("b", ready=False)], [(job("one", 0, asks(1)), HOUR)], HOUR)
    outcome = replay(day, decide)
    assert outcome.started == 0
    assert outcome.classes[0].held_back == 8
    assert outcome.classes[0].room == (0, 0, 0, 0)


def test_unfit_devices_are_held_back():
    spare = msgspec.structs.replace(
        node("a"), devices=(Device(0, health=Health.Unfit), *(Device(g) for g in (1, 2, 3)))
    )
    outcome = replay(small_day([spare], [], HOUR), first_fit)
    assert outcome.classes[0].held_back == 1
    assert outcome.classes[0].room == (3, 1, 0, 0)


def _plan(node_index: int, mask: int):
    one = lambda value: np.array([value])  # noqa: E731
    return SimpleNamespace(workload=one(0), pod_set=one(0), node=one(node_index), devices=one(mask), verdicts={})


@pytest.mark.parametrize("mask", [0b0000, 0b0001, 0b0111, 0b10011])
def test_a_plan_that_gives_wrong_devices_ends_the_replay(mask):
    day = small_day([node("a")], [(job("one", 0, asks(2)), HOUR)])
    with pytest.raises((Overcommitted, IndexError)):
        replay(day, lambda _: _plan(0, mask))


def test_a_plan_that_gives_a_device_twice_ends_the_replay():
    day = small_day([node("a")], [(job("one", 0, asks(1)), HOUR), (job("two", 60, asks(1)), HOUR)])
    with pytest.raises(Overcommitted, match="device 0"):
        replay(day, lambda _: _plan(0, 0b0001))


def test_books_return_to_empty():
    day = builtin_day(7)
    books, empty = Occupancy(day.cluster), Occupancy(day.cluster)
    asked = asks(2, cpu=2000)
    books.take(40, asked, (0, 3))
    assert books.allocated.sum() == 2000
    books.release(40, asked, (0, 3))
    for name in ("cpu", "memory", "pods", "device", "allocated"):
        assert (getattr(books, name) == getattr(empty, name)).all()


@lru_cache
def part_of_the_day(seed: int = 42) -> Day:
    """A fifteenth of the built-in cluster for six hours, with as large a part of its arrivals."""
    day = builtin_day(seed)
    length_s = 6 * HOUR
    kept = [i for i, w in enumerate(day.workloads) if i % 12 == 3 and w.created_s < length_s]
    return Day(
        name=day.name,
        seed=seed,
        cluster=msgspec.structs.replace(day.cluster, nodes=day.cluster.nodes[::15]),
        workloads=tuple(day.workloads[i] for i in kept),
        runs_s=tuple(day.runs_s[i] for i in kept),
        length_s=length_s,
    )


def test_snapshots_never_hold_a_device_twice(decide):
    """What the scheduler is shown is what the books say, in every cycle."""
    day, seen = part_of_the_day(), count()

    def watched(snapshot):
        held: dict[tuple[str, int], int] = {}
        for allocation in snapshot.allocations:
            for g in allocation.devices:
                held[allocation.node, g] = held.get((allocation.node, g), 0) + allocation.pod_class.gpu_milli
        assert max(held.values(), default=0) <= 1000
        keys = [a.workload for a in snapshot.allocations]
        assert not {w.key for w in snapshot.workloads} & set(keys)
        next(seen)
        return decide(snapshot)

    outcome = replay(day, watched)
    assert next(seen) == outcome.cycles > 50
    assert outcome.started + outcome.waiting == len(day.workloads)


def test_the_same_day_twice_gives_the_same_record():
    day, still = part_of_the_day(), (lambda: 0.0)
    assert replay(day, berth(), timer=still) == replay(day, berth(), timer=still)


def test_progress_reaches_the_end():
    told: list[tuple[float, float]] = []
    replay(small_day([node("a")], [], HOUR), first_fit, lambda done, total: told.append((done, total)))
    assert told[0] == (0, HOUR)
    assert told[-1] == (HOUR, HOUR)
    assert len(told) == 61


def test_nothing_arrives_nothing_breaks(decide):
    outcome = replay(small_day([node("a")], [], HOUR), decide)
    assert outcome.cycles == outcome.decisions == 0
    assert outcome.decisions_per_second == 0
    assert outcome.mean_pct == 0
