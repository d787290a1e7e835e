"""Moves that make room: held against trying every set of pods and every place on small clusters."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations

import numpy as np
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from berth.model.cluster import Allocation, Device, GpuClass, Node
from berth.model.resources import get, resources
from berth.model.snapshot import Snapshot
from berth.model.workload import LabelSelector, PodClass, PodSet, PodTerm, Workload
from berth.scheduling.draft import Draft
from berth.scheduling.neighbours import Neighbours
from berth.scheduling.relocation import Bounds, make_room
from berth.scheduling.sets import AsListed
from berth.scheduling.standing import standing_of
from berth.scheduling.tables import Tables

GPU = "nvidia.com/gpu"
CARD = GpuClass("H100-80GB")
MOST = Bounds().pods

exhaustively = settings(
    max_examples=300, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip


def pod_class(cpu, gpus, milli=1000):
    return PodClass(resources({"cpu": cpu, GPU: gpus}), milli if gpus else 1000)


CLASSES = [
    pod_class(cpu, gpus, milli)
    for cpu in (0, 1000, 3000)
    for gpus, milli in ((0, 1000), (1, 300), (1, 500), (1, 700), (1, 1000), (2, 1000))
]


def machine(i, cpu, gpus):
    return Node(f"n{i}", allocatable=resources({"cpu": cpu, "pods": 20, GPU: gpus}), gpu_class=CARD.name,
                device_resource=GPU, devices=tuple(Device(g) for g in range(gpus)))  # fmt: skip


def room(node, held):
    """Free CPU, pods and milli of each device of a node."""
    cpu, pods = get(node.allocatable, "cpu"), get(node.allocatable, "pods")
    left = [1000] * len(node.devices)
    for c, devices in held:
        cpu, pods = cpu - get(c.requests, "cpu"), pods - 1
        for g in devices:
            left[g] -= c.gpu_milli
    return cpu, pods, left


def choices(node, held, c):
    """Every set of devices on which a pod of a class fits on a node beside what it holds."""
    cpu, pods, left = room(node, held)
    if cpu < get(c.requests, "cpu") or pods < 1:
        return []
    able = [g for g, milli in enumerate(left) if milli >= c.gpu_milli]
    return list(combinations(able, get(c.requests, GPU)))


@st.composite
def clusters(draw):
    """A few nodes, nearly full, some pods of which must not move; and a class that fits on none of them."""
    nodes = [
        machine(i, draw(st.sampled_from([4000, 8000])), draw(st.integers(1, 3))) for i in range(draw(st.integers(2, 3)))
    ]
    held = {node.name: [] for node in nodes}
    running = []
    for i in range(draw(st.integers(4, 9))):
        c = draw(st.sampled_from(CLASSES))
        able = [node for node in nodes if choices(node, held[node.name], c)]
        if able:
            node = draw(st.sampled_from(able))
            devices = draw(st.sampled_from(choices(node, held[node.name], c)))
            held[node.name].append((c, devices))
            kind = draw(st.sampled_from(["pod", "pod", "pod", "pod", "frozen", "pod" if devices else "daemon"]))
            running.append(Allocation(node.name, kind, f"a{i}", c, devices=devices, is_daemon=kind == "daemon"))
    waiting = [c for c in CLASSES if not any(choices(node, held[node.name], c) for node in nodes)]
    assume(waiting)
    last = (Workload("w", (PodSet("w", draw(st.sampled_from(waiting))),)),)
    return Snapshot(tuple(nodes), tuple(running), last, (CARD,))


def is_frozen(allocation):
    return allocation.namespace == "frozen"


def opened(snapshot):
    """A draft with a row for every class, and the pods that stand."""
    tables = Tables()
    tables.sync(snapshot, [*CLASSES, *(a.pod_class for a in snapshot.allocations),
                           *(s.pod_class for w in snapshot.workloads for s in w.pod_sets)])  # fmt: skip
    draft = Draft.of(tables, Neighbours.of(snapshot.workloads, tables.residents))
    return tables, draft, standing_of(snapshot, draft, is_frozen)


def state(draft):
    return [x.copy() for x in (draft.free, draft.device_free, draft.copies, draft.block)]


def cheapest(snapshot, budget):
    """(milli, pods) of the cheapest set by trying them all; None where there is none."""
    waiting = snapshot.workloads[0].pod_sets[0].pod_class
    held = {n.name: [(a.pod_class, a.devices) for a in snapshot.allocations if a.node == n.name]
            for n in snapshot.nodes}  # fmt: skip
    by_name = {n.name: n for n in snapshot.nodes}

    def settle(pods, node, moved):
        if not pods:
            stay = list(held[node])
            for a in moved:
                stay.remove((a.pod_class, a.devices))
            return bool(choices(by_name[node], stay, waiting))
        c = pods[0].pod_class
        for target in held:
            for devices in choices(by_name[target], held[target], c):
                held[target].append((c, devices))
                found = settle(pods[1:], node, moved)
                held[target].pop()
                if found:
                    return True
        return False

    best = None
    for name in by_name:
        movable = [a for a in snapshot.allocations if a.node == name and not a.is_daemon and not is_frozen(a)]
        for size in range(MOST + 1):
            for some in combinations(movable, size):
                cost = sum(get(a.pod_class.requests, GPU) * a.pod_class.gpu_milli for a in some)
                if cost <= budget and (best is None or (cost, size) < best) and settle(some, name, some):
                    best = (cost, size)
    return best


@exhaustively
@given(snapshot=clusters(), budget=st.sampled_from([0, 500, 1000, 2000, 4000]))
def test_the_cheapest_moves_are_found_and_nothing_else_changes(snapshot, budget):
    tables, draft, standing = opened(snapshot)
    before = state(draft)
    waiting = snapshot.workloads[0].pod_sets[0].pod_class
    found = make_room([tables.row(waiting)], standing, draft, AsListed(), budget)
    expected = cheapest(snapshot, budget)
    event("none" if expected is None else f"{expected[1]} pods")
    if expected is None:
        assert found is None
        assert all(np.array_equal(x, y) for x, y in zip(before, state(draft), strict=True))
        return
    assert found is not None and found.proven
    assert (found.milli, len(found.moves)) == expected
    assert found.milli <= budget
    after = carried_out(snapshot, found, waiting)
    fresh = opened(after)[1]
    assert np.array_equal(fresh.free, draft.free)
    assert np.array_equal(fresh.device_free, draft.device_free)
    rows = [tables.row(c) for c in CLASSES]
    assert np.array_equal(fresh.copies[[opened(after)[0].row(c) for c in CLASSES]], draft.copies[rows])
    draft.drop()
    assert all(np.array_equal(x, y) for x, y in zip(before, state(draft), strict=True))


def carried_out(snapshot, found, *waiting):
    """The snapshot after the moves, each new place taken before the old one is left; nothing is overfull."""
    pods = list(snapshot.allocations)
    held = {n.name: [(a.pod_class, a.devices) for a in pods if a.node == n.name] for n in snapshot.nodes}
    by_name = {n.name: n for n in snapshot.nodes}

    def come(name, c, mask):
        devices = tuple(g for g in range(8) if mask >> g & 1)
        assert devices in choices(by_name[name], held[name], c)
        held[name].append((c, devices))
        return devices

    assert len({move.pod for move in found.moves}) == len(found.moves)
    for move in found.moves:
        a, target = pods[move.pod], snapshot.nodes[move.node].name
        assert not a.is_daemon and not is_frozen(a)
        devices = come(target, a.pod_class, move.devices)
        held[a.node].remove((a.pod_class, a.devices))
        pods[move.pod] = Allocation(target, a.namespace, a.name, a.pod_class, devices=devices)
    for i, (c, n, mask) in enumerate(zip(waiting, found.node, found.devices, strict=True)):
        name = snapshot.nodes[n].name
        pods.append(Allocation(name, "default", f"w{i}", c, devices=come(name, c, mask)))
    assert len(pods) == len(snapshot.allocations) + len(waiting)
    return Snapshot(snapshot.nodes, tuple(pods), (), snapshot.gpu_classes)


@exhaustively
@given(snapshot=clusters(), more=st.lists(st.sampled_from(CLASSES), min_size=1, max_size=2))
def test_several_pods_are_placed_together_or_not_at_all(snapshot, more):
    tables, draft, standing = opened(snapshot)
    before = state(draft)
    waiting = [snapshot.workloads[0].pod_sets[0].pod_class, *more]
    found = make_room([tables.row(c) for c in waiting], standing, draft, AsListed(), 3000)
    event("none" if found is None else f"{len(found.moves)} moves")
    if found is None:
        assert not draft.puts and not draft.lifts
        assert all(np.array_equal(x, y) for x, y in zip(before, state(draft), strict=True))
    else:
        assert found.milli <= 3000
        # Pods of one workload need not come in the order of the moves: the last state is what counts.
        assert (draft.free >= 0).all() and (draft.device_free >= 0)[draft.columns.there].all()
        assert found == make_room([tables.row(c) for c in waiting], standing, opened(snapshot)[1], AsListed(), 3000)


def waits(c, **more):
    return (Workload("w", (PodSet("w", c),), **more),)


def two_halves(**of_second):
    """Two nodes of one GPU, half taken by one pod each: moving one makes a whole GPU free."""
    half = pod_class(1000, 1, 500)
    nodes = (machine(0, 8000, 1), machine(1, 8000, 1))
    second = {"pod_class": half, **of_second}
    running = (
        Allocation("n0", "frozen", "a", half, devices=(0,)),
        Allocation("n1", "default", "b", devices=(0,), **second),
    )
    return Snapshot(nodes, running, waits(pod_class(1000, 1)), (CARD,))


def test_the_only_pod_that_may_move_moves():
    snapshot = two_halves()
    tables, draft, standing = opened(snapshot)
    found = make_room([tables.row(pod_class(1000, 1))], standing, draft, AsListed(), 1000)
    assert [(m.pod, m.node, m.devices) for m in found.moves] == [(1, 0, 1)]
    assert (found.node, found.devices, found.milli) == ((1,), (1,), 500)
    assert standing.may_move.tolist() == [False, True], "the caller's columns are left as they were"


def test_what_the_caller_does_not_accept_is_undone():
    snapshot = two_halves()
    tables, draft, standing = opened(snapshot)
    before, asked = state(draft), []

    def refuse():
        asked.append(draft.device_free.copy())
        return False

    assert make_room([tables.row(pod_class(1000, 1))], standing, draft, AsListed(), 1000, accepts=refuse) is None
    assert [x.tolist() for x in asked] == [[[0], [0]]], "asked once, when all was in place"
    assert all(np.array_equal(x, y) for x, y in zip(before, state(draft), strict=True))


def test_a_pod_may_only_go_where_it_is_allowed():
    snapshot = two_halves()
    tables, draft, standing = opened(snapshot)
    row = tables.row(pod_class(1000, 1))
    assert make_room([row], standing, draft, AsListed(), 1000, where=np.array([True, False])) is None
    assert make_room([row], standing, draft, AsListed(), 499) is None
    assert make_room([row], standing, draft, AsListed(), 500, where=np.array([False, True])) is not None


def test_a_pod_that_another_looks_at_stays():
    near = PodTerm(LabelSelector((("app", "db"),)), "kubernetes.io/hostname")
    snapshot = two_halves(labels=(("app", "db"),))
    looks = PodClass(resources({"cpu": 100}), near=(near,))
    snapshot = Snapshot(
        snapshot.nodes, (*snapshot.allocations, Allocation("n1", "default", "c", looks)), snapshot.workloads, (CARD,)
    )
    tables, draft, standing = opened(snapshot)
    assert not standing.may_move.any()
    assert make_room([tables.row(pod_class(1000, 1))], standing, draft, AsListed(), 1000) is None


def test_counts_of_neighbours_follow_a_move_and_its_undoing():
    apart = PodTerm(LabelSelector((("app", "web"),)), "kubernetes.io/hostname")
    lonely = Allocation("n0", "default", "c", PodClass(resources({"cpu": 100}), apart=(apart,)))
    snapshot = two_halves(labels=(("app", "db"),))
    snapshot = Snapshot(snapshot.nodes, (*snapshot.allocations, lonely), snapshot.workloads, (CARD,))
    tables, draft, standing = opened(snapshot)
    assert standing.may_move.tolist() == [False, True, False], "the pod with a term stays, who it ignores may move"
    before = standing_on(draft)
    found = make_room([tables.row(pod_class(1000, 1))], standing, draft, AsListed(), 1000)
    assert len(found.moves) == 1
    assert standing_on(draft, labelled=True) == [0]
    draft.drop()
    assert standing_on(draft) == before
    assert standing_on(draft, labelled=True) == [1]


def standing_on(draft, labelled=False):
    """The nodes of the pods that are counted, one entry a pod."""
    crowd = draft.neighbours.residents.crowd
    nodes = Counter(n for n, a in zip(crowd.node.tolist(), crowd.allocations, strict=True) if a.labels or not labelled)
    for node, who, count in draft.neighbours.pods:
        nodes[node] += count if who.labels or not labelled else 0
    return sorted(nodes.elements())


def test_pods_whose_devices_are_in_doubt_stay():
    half = pod_class(1000, 1, 500)
    nodes = (machine(0, 8000, 1), machine(1, 8000, 1))
    running = tuple(Allocation("n1", "default", str(i), half, devices=(0,)) for i in range(3))  # one too many
    snapshot = Snapshot(nodes, running, waits(pod_class(1000, 1)), (CARD,))
    assert not opened(snapshot)[2].may_move.any()


def test_untold_devices_are_the_predicted_ones():
    half, whole = pod_class(1000, 1, 500), pod_class(1000, 1)
    running = [Allocation("n0", "default", "told", half, devices=(1,)),
               Allocation("n0", "default", "half", half), Allocation("n0", "default", "whole", whole)]  # fmt: skip
    for order in permutations(running):
        snapshot = Snapshot((machine(0, 8000, 3),), tuple(order), waits(whole), (CARD,))
        standing = opened(snapshot)[2]
        assert standing.may_move.all()
        of = dict(zip([a.name for a in order], standing.devices.tolist(), strict=True))
        assert of["told"] == 0b010
        assert of["half"] == 0b010
        assert of["whole"] == 0b001
