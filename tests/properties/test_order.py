"""Who is next: within the quota first, then the weighted share of each queue, then priority and age."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.model.cluster import Allocation, Device, Node
from berth.model.queue import ANY_CLASS, Queue
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, Workload
from berth.scheduling.cycle import cycle

GPU = "nvidia.com/gpu"
NAMES = ("a", "b", "c")
often = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def pod_class(gpus):
    return PodClass(resources({GPU: gpus, "cpu": 100}))


def cluster(gpus):
    """One node with so many GPUs, so that nothing but their number decides."""
    devices = tuple(Device(g) for g in range(gpus))
    amounts = resources({GPU: gpus, "cpu": 10**6, "pods": 1000})
    return Node("n", allocatable=amounts, gpu_class="", device_resource=GPU, devices=devices)


def waiting(i, queue="", gpus=1, priority=0, created_s=0.0):
    sets = (PodSet("s", pod_class(gpus)),)
    return Workload(f"w{i}", sets, queue=queue, priority=priority, created_s=created_s)


def placed_by_queue(plan, snapshot):
    """Pods placed and pods that wait, by queue."""
    placed = set(plan.placed.tolist())
    counts = {name: [0, 0] for name in NAMES}
    for w, workload in enumerate(snapshot.workloads):
        counts[workload.queue][0 if w in placed else 1] += 1
    return counts


ranks = st.tuples(st.integers(-2, 2), st.integers(0, 3))


@often
@given(drawn=st.lists(ranks, min_size=1, max_size=12), gpus=st.integers(1, 12))
def test_without_queues_priority_goes_first_then_age_then_the_list(drawn, gpus):
    workloads = tuple(waiting(i, priority=p, created_s=float(c)) for i, (p, c) in enumerate(drawn))
    plan = cycle(Snapshot((cluster(gpus),), workloads=workloads))
    expected = sorted(range(len(drawn)), key=lambda i: (-drawn[i][0], drawn[i][1], i))[:gpus]
    assert plan.placed.tolist() == sorted(expected)
    assert plan.workload.tolist() == expected


@st.composite
def crowds(draw, with_quotas=False):
    """Up to three queues, pods of one GPU that run and that wait in each, and some GPUs that are free."""
    running, pods, queues = [], [], []
    for name in NAMES:
        quota = ((ANY_CLASS, draw(st.integers(0, 6))),) if with_quotas and draw(st.booleans()) else ()
        queues.append(Queue(name, weight=draw(st.integers(1, 4)), quota=quota))
        held = draw(st.integers(0, 3))
        running += [Allocation("n", name, f"{name}{i}", pod_class(1), queue=name) for i in range(held)]
        pods += [(name, *draw(ranks)) for _ in range(draw(st.integers(0, 8)))]
    pods = draw(st.permutations(pods))
    workloads = tuple(waiting(i, q, priority=p, created_s=float(c)) for i, (q, p, c) in enumerate(pods))
    free = draw(st.integers(0, len(pods) + 1))
    return Snapshot((cluster(len(running) + free),), tuple(running), workloads, queues=tuple(queues))


@often
@given(snapshot=crowds())
def test_free_gpus_are_shared_by_weight_within_one_pod(snapshot):
    """Nobody got its last pod while another that waits would have had less per weight with one more."""
    plan = cycle(snapshot)
    weight = {q.name: q.weight for q in snapshot.queues}
    held = {name: sum(a.queue == name for a in snapshot.allocations) for name in NAMES}
    counts = placed_by_queue(plan, snapshot)
    for name, (placed, _) in counts.items():
        for other, (others, left) in counts.items():
            if placed and left:
                last = Fraction(held[name] + placed, weight[name])
                assert last <= Fraction(held[other] + others + 1, weight[other])


@often
@given(snapshot=crowds(with_quotas=True))
def test_inside_a_queue_priority_goes_first_then_age(snapshot):
    placed = set(cycle(snapshot).placed.tolist())
    for name in NAMES:
        mine = [w for w, workload in enumerate(snapshot.workloads) if workload.queue == name]
        mine.sort(key=lambda w: (-snapshot.workloads[w].priority, snapshot.workloads[w].created_s, w))
        inside = [w in placed for w in mine]
        assert inside == sorted(inside, reverse=True)


@often
@given(snapshot=crowds(with_quotas=True))
def test_nobody_borrows_while_another_waits_within_its_quota(snapshot):
    quota = {q.name: dict(q.quota).get(ANY_CLASS, 10**6) for q in snapshot.queues}
    held = {name: sum(a.queue == name for a in snapshot.allocations) for name in NAMES}
    counts = placed_by_queue(cycle(snapshot), snapshot)
    borrows = [n for n, (placed, _) in counts.items() if placed and held[n] + placed > quota[n]]
    within = [n for n, (placed, left) in counts.items() if left and held[n] + placed < quota[n]]
    assert not (borrows and within), counts


@often
@given(snapshot=crowds(with_quotas=True))
def test_no_gpu_is_left_over_while_somebody_could_use_it(snapshot):
    """Quotas without limits keep nothing idle where everybody asks for the same."""
    free = len(snapshot.nodes[0].devices) - len(snapshot.allocations)
    assert len(cycle(snapshot).placed) == min(free, len(snapshot.workloads))


@often
@given(
    sizes=st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 3), ranks), min_size=1, max_size=12),
    weights=st.tuples(*[st.integers(1, 4)] * 3),
    quotas=st.tuples(*[st.one_of(st.none(), st.integers(0, 6))] * 3),
)
def test_the_order_is_that_of_the_definition(sizes, weights, quotas):
    """Each pod's virtual time is what its queue would hold beyond its guarantee once it ran, over its weight."""
    queues = tuple(
        Queue(name, weight=w, quota=() if q is None else ((ANY_CLASS, q),))
        for name, w, q in zip(NAMES, weights, quotas, strict=True)
    )
    workloads = tuple(
        waiting(i, q, gpus, priority=p, created_s=float(c)) for i, (q, gpus, (p, c)) in enumerate(sizes)
    )
    plan = cycle(Snapshot((cluster(60),), workloads=workloads, queues=queues))
    wanted = {name: sum(gpus for q, gpus, _ in sizes if q == name) for name in NAMES}
    base = {name: min(q or 0, wanted[name]) for name, q in zip(NAMES, quotas, strict=True)}
    held, keys = dict.fromkeys(NAMES, 0), {}
    for i in sorted(range(len(sizes)), key=lambda i: (-sizes[i][2][0], sizes[i][2][1], i)):
        name, gpus, _ = sizes[i]
        held[name] += gpus
        q = NAMES.index(name)
        above = quotas[q] is not None and held[name] > quotas[q]
        keys[i] = (above, Fraction(max(held[name] - base[name], 0), weights[q]), len(keys))
    assert plan.workload.tolist() == sorted(keys, key=lambda i: keys[i])
