"""Small snapshots on which a rule was once broken, each held against every rule."""

from __future__ import annotations

import pytest
import test_exhaustive
import test_neighbours
from strategies import BIG, GPU, SMALL, TOPOLOGY

import test_invariants
from berth.model.cluster import Allocation, Device, Health, Node
from berth.model.queue import ANY_CLASS, Queue
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.topology import HOST_LABEL, Topology
from berth.model.workload import Capability, LabelSelector, PodClass, PodSet, PodTerm, Spread, TopologyWish, Workload
from berth.scheduling.cycle import cycle

RULES = [
    test_invariants.test_every_pod_fits_where_it_goes_on_top_of_those_before_it,
    test_invariants.test_no_device_is_given_beyond_its_milli,
    test_invariants.test_gangs_are_placed_whole_or_not_at_all,
    test_invariants.test_required_topology_is_kept,
    test_invariants.test_no_limit_of_any_queue_of_the_tree_is_broken,
    test_invariants.test_who_waits_has_one_verdict_and_who_is_placed_has_none,
    test_invariants.test_the_same_snapshot_gives_the_same_plan,
    test_neighbours.test_every_placed_workload_can_join_those_before_it,
]
APP = (("app", "a"),)
NEAR = (PodTerm(LabelSelector(APP), HOST_LABEL),)
SPREAD = (Spread(LabelSelector(APP), HOST_LABEL, max_skew=1, min_domains=2),)
RACKS = TopologyWish("rack", slice_size=2)
NVLINK = Capability(link="nvlink")


def node(name, gpus=4, islands=(-1,) * 8, health=Health.Fit, cordoned=False, **labels):
    """`health` is that of the last device."""
    devices = tuple(Device(g, island=islands[g], health=health if g == gpus - 1 else Health.Fit) for g in range(gpus))
    amounts = resources({"cpu": 8_000, "memory": 2**33, "pods": 110, GPU: gpus})
    return Node(name, labels={HOST_LABEL: name, **labels}, cordoned=cordoned, allocatable=amounts, capacity=amounts,
                gpu_class=BIG.name, device_resource=GPU, devices=devices)  # fmt: skip


def gpus(count=1, milli=1000, **more):
    return PodClass(((GPU, count),), milli, **more)


def held(pod_class, *devices, **more):
    return Allocation("n0", "default", f"held-{devices}", pod_class, devices=devices, **more)


def gang(*sets, name="w", **more):
    return Workload(name, sets, **more)


def each(pod_class, count, least=None, *topology, **more):
    return PodSet(f"{count}", pod_class, count, count if least is None else least, topology, **more)


def snapshot(cluster, *waiting, running=(), queues=(), topology=TOPOLOGY):
    return Snapshot(tuple(cluster), tuple(running), waiting, (BIG, SMALL), tuple(queues), topology)


two_racks = [node("n0", 3, rack="r0"), node("n1", 3, rack="r1")]
scattered = [node(f"n{i}", 1, rack=f"r{i}") for i in range(3)]
one_class = Queue("q", limit=((BIG.name, 2),))

FOUND = {
    "a running pod asks for what nobody advertises": snapshot(
        [node("n0")], gang(each(gpus(), 1)), running=[held(PodClass((("example.com/nic", 1),)))]
    ),
    "a pod that asks for what is not placed": snapshot([node("n0")], gang(each(gpus(unsupported=("a volume",)), 1))),
    "growth stops at the limit of all GPUs": snapshot(
        [node("n0")], gang(each(gpus(), 4, 1), queue="q"), queues=[Queue("q", limit=((ANY_CLASS, 2),))]
    ),
    "growth stops at the limit of a class": snapshot(
        [node("n0")], gang(each(gpus(), 4, 1), queue="q"), queues=[one_class]
    ),
    "pods that nobody created are not bound": snapshot([node("n0")], gang(each(gpus(), 4, 2), missing_pods=2)),
    "growth goes by slices": snapshot(two_racks, gang(each(gpus(), 4, 2, RACKS))),
    "a plain pod leaves the island to who needs it": snapshot(
        [node("n0", 4, (0, 0, 1, -1))], gang(each(gpus(2), 1), each(gpus(2, least=NVLINK), 1))
    ),
    "slices of the whole workload": snapshot(two_racks, gang(each(gpus(), 4), topology=(RACKS,))),
    "shares on two devices each": snapshot(
        [node("n0", 3)], gang(each(gpus(2, 500), 2)), running=[held(gpus(1, 500), 0), held(gpus(1, 500), 1)]
    ),
    "shares on two devices of one island": snapshot(
        [node("n0", 2, (0, 0))], gang(each(gpus(2, 500, least=NVLINK), 2))
    ),
    "too few slices": snapshot([*two_racks[:1], *scattered[1:]], gang(each(gpus(), 4, None, RACKS))),
    "shares that are nearly enough": snapshot(
        [node("n0", 2)], gang(each(gpus(1, 500), 3)), running=[held(gpus(1, 900), 0)]
    ),
    "a block and a rack, where nobody has a block": snapshot(
        two_racks, gang(each(gpus(), 2, None, TopologyWish("block"), TopologyWish("rack")))
    ),
    "the last slice is short": snapshot(
        [node("n0", 2, rack="r0"), node("n1", 1, rack="r1")], gang(each(gpus(), 3, None, RACKS))
    ),
    "a rack that is held back": snapshot(
        [*scattered, node("n9", 2, rack="r9", cordoned=True)], gang(each(gpus(), 2, None, TopologyWish("rack")))
    ),
    "no minimum at all, and no room": snapshot([node("n0", 1)], gang(each(gpus(4), 4, 0))),
    "an optional set that fits nowhere": snapshot(
        [node("n0")], gang(each(PodClass(node_selector=(("disk", "ssd"),)), 2, 0), each(gpus(), 3)),
        running=[held(gpus(2))],
    ),
    "an optional set with a level that nobody has": snapshot(
        [node("n0")], gang(each(PodClass(), 1), each(PodClass(), 1, 0, TopologyWish("block"))), topology=Topology()
    ),
    "mixed sets with slices": snapshot(
        [node("n0", block="b0"), node("n1", block="b0")],
        gang(each(PodClass((("cpu", 5_000),)), 1),
             each(PodClass((("cpu", 5_000),)), 2, None, TopologyWish("block", slice_size=1))),
    ),
    "slices of a set that is whole on a host without their label": snapshot(
        [node("n0")], gang(each(gpus(), 3, None, TopologyWish("host")), topology=(TopologyWish("rack", slice_size=1),))
    ),
    "slices under a limit": snapshot(
        scattered, gang(each(gpus(), 2, None, RACKS), queue="q"), queues=[one_class]
    ),
    "slices under a limit, of a level that nobody knows": snapshot(
        [node("n0")], gang(each(gpus(), 2, None, RACKS), queue="q"), queues=[one_class], topology=Topology()
    ),
    "slices of pods that keep apart": snapshot(
        [node("n0", rack="r0"), node("n1", rack="r1")], gang(each(gpus(apart=NEAR), 2, None, RACKS, labels=APP))
    ),
    "a DaemonSet larger than its node": snapshot(
        [node("n0")], gang(each(PodClass((("memory", 2**30),)), 1)),
        running=[held(PodClass((("memory", 2**34),)), is_daemon=True)],
    ),
    "a broken device": snapshot([node("n0", 4, health=Health.Unfit)], gang(each(gpus(4), 1))),
    "a set near the next one": snapshot(
        [node("n0"), node("n1")], gang(each(gpus(near=NEAR), 2), each(gpus(near=NEAR), 2, labels=APP))
    ),
    "a set that spreads goes first": snapshot(
        [node("n0")],
        gang(each(gpus(), 2, labels=APP), each(gpus(spread=SPREAD), 1, labels=APP)),
    ),
    "a second look stays within the limit": snapshot(
        [node("n0")],
        gang(each(gpus(near=NEAR), 1), name="reader", queue="q", priority=1),
        gang(each(gpus(), 1, labels=APP), name="cache", queue="q"),
        queues=[Queue("q", limit=((ANY_CLASS, 1),))],
    ),
    "borrowing while others wait": snapshot(
        [node("n0", 1)], *(gang(each(gpus(), 1), name=f"w{i}", queue="q") for i in range(3)),
        queues=[Queue("q", quota=((ANY_CLASS, 2),))], running=[held(gpus())],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__.removeprefix("test_"))
def test_every_rule_holds(name, rule):
    rule.hypothesis.inner_test(FOUND[name])


def is_alone(found):
    """One workload, with nothing about it that trying every placement does not know."""
    workload = found.workloads[0]
    return len(found.workloads) == 1 and not (found.queues or workload.missing_pods)


def looks_at_others(found):
    return any(s.pod_class.depends_on_pods for s in found.workloads[0].pod_sets)


@pytest.mark.parametrize("name", [n for n, s in FOUND.items() if is_alone(s) and not looks_at_others(s)])
def test_it_is_placed_exactly_where_it_fits(name):
    test_exhaustive.assert_placed_exactly_where_it_fits(FOUND[name])
    test_exhaustive.assert_never_exactly_where_too_small(FOUND[name])


@pytest.mark.parametrize("name", ["a set near the next one", "a set that spreads goes first"])
def test_it_is_placed_exactly_where_its_pods_can_join(name):
    test_neighbours.assert_placed_exactly_where_pods_can_join(FOUND[name])


def test_queues_that_are_each_others_parents_end():
    queues = (Queue("a", parent="b", limit=((ANY_CLASS, 2),)), Queue("b", parent="a"), Queue("c", parent="c"))
    for queue in queues:
        cycle(snapshot([node("n0")], gang(each(gpus(), 1), queue=queue.name), queues=queues))
