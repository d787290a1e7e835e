"""What people keep for others is entered by nobody else, at no time; what is left is used as if it were all."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.model.booking import Booking, Share
from berth.model.cluster import Allocation, Device, Node
from berth.model.gpus import gpu_class_of
from berth.model.queue import Queue
from berth.model.resources import NVIDIA_GPU, PODS, resources
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan, devices_of
from berth.scheduling.tables import Tables

GPUS = 4
STEP_S = 600.0
H100 = gpu_class_of({"nvidia.com/gpu.product": "H100-80GB"})
assert H100 is not None


def a_node(number: int) -> Node:
    amounts = resources({"cpu": 64_000, "memory": 2**40, PODS: 110, NVIDIA_GPU: GPUS})
    return Node(
        f"node-{number}", {"rack": f"r{number % 2}"}, allocatable=amounts, capacity=amounts, gpu_class="H100-80GB",
        device_resource=NVIDIA_GPU, devices=tuple(Device(g) for g in range(GPUS)),
    )  # fmt: skip


def a_workload(name: str, queue: str, gpus: int, pods: int, limit_s: float, preemptible: bool | None) -> Workload:
    pod_class = PodClass(resources({NVIDIA_GPU: gpus, "cpu": 4_000}))
    return Workload(
        name, (PodSet("main", pod_class, pods, pods),), queue=queue, kind="Job", time_limit_s=limit_s,
        preemptible=preemptible,
    )  # fmt: skip


workloads = st.tuples(
    st.sampled_from(["mine", "below", "theirs", "others"]),
    st.integers(1, GPUS),
    st.sampled_from([1, 1, 1, 2, 3]),
    st.sampled_from([0.0, 500.0, 1200.0, 4000.0]),
    st.sampled_from([None, None, True, False]),
)


def bookings_of(nodes: int) -> st.SearchStrategy[list[Booking]]:
    starts = st.sampled_from([0.0, 0.0, 900.0, 2400.0])
    long = st.sampled_from([1000.0, 3000.0, float("inf")])
    who = st.sampled_from(["mine", "theirs"])
    counted = st.builds(
        lambda q, g, s, d: Booking("", queue=q, gpus=g, from_s=s, until_s=s + d),
        who, st.integers(1, GPUS * nodes // 2), starts, long,
    )  # fmt: skip
    named = st.builds(
        lambda q, n, s, d: Booking("", queue=q, nodes=(f"node-{n}",), from_s=s, until_s=s + d), who,
        st.integers(0, nodes - 1), starts, long,
    )  # fmt: skip
    return st.lists(counted | named, min_size=1, max_size=2).map(
        lambda found: [replace(one, name=f"b{i}") for i, one in enumerate(found)]
    )


@dataclass
class Cluster:
    """Carries plans out: limits are kept, who is asked to leave is gone before the next cycle."""

    nodes: tuple[Node, ...]
    bookings: tuple[Booking, ...]
    now_s: float = 0.0
    running: list[Allocation] = field(default_factory=list)
    waiting: list[Workload] = field(default_factory=list)

    def snapshot(self) -> Snapshot:
        queues = (Queue("mine"), Queue("below", "mine"), Queue("theirs"), Queue("others"))
        return Snapshot(
            self.nodes, tuple(self.running), tuple(self.waiting), (H100,), queues, now_s=self.now_s,
            bookings=self.bookings,
        )  # fmt: skip

    def carry_out(self, plan: Plan) -> None:
        number = count()
        for bind in plan.binds():
            w = bind.workload
            self.running.append(Allocation(
                bind.node.name, w.namespace, f"{w.name}-{next(number)}", w.pod_sets[0].pod_class, workload=w.key,
                workload_kind=w.kind, queue=w.queue, devices=bind.devices, started_s=self.now_s,
                time_limit_s=w.time_limit_s, preemptible=w.preemptible, is_controlled=True,
            ))  # fmt: skip
        placed = {plan.workloads[w].identity for w in plan.placed.tolist()}
        self.waiting = [w for w in self.waiting if w.identity not in placed]
        goes = {(one.allocation.workload, one.allocation.name) for one in [*plan.vacating, *plan.evictions]}
        self.running = [a for a in self.running if (a.workload, a.name) not in goes]
        stood = {one.name: one.shares for one in plan.bookings}
        self.bookings = tuple(replace(b, shares=stood.get(b.name, ())) for b in self.bookings)

    def pass_time(self) -> None:
        self.now_s += STEP_S
        self.running = [a for a in self.running if not a.time_limit_s or a.started_s + a.time_limit_s > self.now_s]


def is_member(queue: str, booking: Booking) -> bool:
    return queue == booking.queue or (queue, booking.queue) == ("below", "mine")


def room_left(n: Node, cluster: Cluster, shares: dict[str, tuple[Share, ...]], queue: str, ends_s: float,
              may_go: bool) -> int:  # fmt: skip
    """The definition: GPUs of a node that are free and that nobody keeps from such a workload."""
    on = [a for a in cluster.running if a.node == n.name]
    free = GPUS - sum(len(a.devices) for a in on)
    gpus: list[int] = []
    blocking = []
    for b in cluster.bookings:
        window = b.window(cluster.now_s)
        share = next((s for s in shares.get(b.name, ()) if s.node == n.name), None)
        if window is None or share is None or is_member(queue, b):
            continue
        is_open = window.opens_s <= cluster.now_s
        if not is_open and (may_go or ends_s <= window.opens_s):
            continue
        blocking.append((b, window, is_open))
        gpus.append(share.gpus or GPUS)
    if not blocking:
        return free
    # A pod of the members of several counts once: to the first that has GPUs left for it.
    members = [0] * len(gpus)
    for a in on:
        theirs = [i for i, (b, _, _) in enumerate(blocking) if is_member(a.queue, b)]
        if theirs:
            members[next((i for i in theirs if members[i] < gpus[i]), theirs[0])] += len(a.devices)
    kept = sum(max(has, used) for has, used in zip(gpus, members, strict=True))
    stay = 0
    for a in on:
        if any(is_member(a.queue, b) for b, _, _ in blocking):
            continue
        a_ends = a.started_s + a.time_limit_s if a.time_limit_s else float("inf")
        if any(is_open or (a_ends > w.opens_s and a.preemptible is not True) for _, w, is_open in blocking):
            stay += len(a.devices)
    return max(0, min(free, GPUS - kept - stay))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_nobody_enters_what_is_kept_for_others(data: st.DataObject) -> None:
    nodes = data.draw(st.integers(1, 4))
    cluster = Cluster(tuple(a_node(n) for n in range(nodes)), tuple(data.draw(bookings_of(nodes))))
    names, tables = count(), Tables()
    for _ in range(data.draw(st.integers(2, 7))):
        for drawn in data.draw(st.lists(workloads, max_size=5)):
            cluster.waiting.append(a_workload(f"w{next(names)}", *drawn))
        before = list(cluster.running)
        snapshot = cluster.snapshot()
        plan = cycle(snapshot, cache=tables)
        fresh = cycle(snapshot)
        assert list(fresh.binds()) == list(plan.binds()) and fresh.bookings == plan.bookings, "whatever the tables hold"
        assert fresh.verdicts == plan.verdicts
        shares = {one.name: one.shares for one in plan.bookings}
        # Bind by bind, in the order of the decision: each into what nobody keeps from it.
        for w, _, n, mask in zip(*(c.tolist() for c in (plan.workload, plan.pod_set, plan.node, plan.devices)),
                                 strict=True):  # fmt: skip
            workload, node = plan.workloads[w], plan.nodes[n]
            ends_s = cluster.now_s + workload.time_limit_s if workload.time_limit_s else float("inf")
            room = room_left(node, cluster, shares, workload.queue, ends_s, workload.preemptible is True)
            assert mask.bit_count() <= room, (workload, node.name, cluster.now_s, plan.bookings)
            cluster.running.append(Allocation(
                node.name, workload.namespace, f"new-{len(cluster.running)}", workload.pod_sets[0].pod_class,
                workload=workload.key, workload_kind=workload.kind, queue=workload.queue, devices=devices_of(mask),
                started_s=cluster.now_s, time_limit_s=workload.time_limit_s, preemptible=workload.preemptible,
            ))  # fmt: skip
        # Work conservation: of single pods nothing waits that finds room which nobody keeps from it.
        for w in plan.verdicts:
            workload = plan.workloads[w]
            ends_s = cluster.now_s + workload.time_limit_s if workload.time_limit_s else float("inf")
            if workload.pod_count > 1 or w in plan.starts_by or plan.starts_by or plan.evictions:
                continue
            ask = dict(workload.pod_sets[0].pod_class.requests)[NVIDIA_GPU]
            most = max(
                room_left(n, cluster, shares, workload.queue, ends_s, workload.preemptible is True)
                for n in cluster.nodes
            )
            assert most < ask, (workload, most, plan.bookings, plan.verdicts[w])
        cluster.running = before
        cluster.carry_out(plan)
        cluster.pass_time()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_was_booked_in_time_is_there_when_its_window_opens(data: st.DataObject) -> None:
    """Booked on an empty cluster: whatever comes, the members find all of it, but for who is on the way out."""
    nodes = data.draw(st.integers(1, 4))
    booking = data.draw(bookings_of(nodes))[0]
    cluster = Cluster(tuple(a_node(n) for n in range(nodes)), (booking,))
    names = count()
    for _ in range(data.draw(st.integers(2, 8))):
        for drawn in data.draw(st.lists(workloads, max_size=6)):
            cluster.waiting.append(a_workload(f"w{next(names)}", *drawn))
        cluster.carry_out(cycle(cluster.snapshot()))
        for standing in cycle(cluster.snapshot()).bookings:
            assert not standing.is_open or standing.held == standing.gpus, standing
        cluster.pass_time()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_booking_whose_window_is_over_changes_nothing(data: st.DataObject) -> None:
    nodes = data.draw(st.integers(1, 4))
    drawn = data.draw(st.lists(workloads, min_size=1, max_size=8))
    waiting = [a_workload(f"w{i}", *one) for i, one in enumerate(drawn)]
    past = tuple(replace(b, from_s=-2000.0, until_s=-1000.0) for b in data.draw(bookings_of(nodes)))
    with_them = Cluster(tuple(a_node(n) for n in range(nodes)), past, waiting=waiting).snapshot()
    plain, beside = cycle(replace(with_them, bookings=())), cycle(with_them)
    assert list(plain.binds()) == list(beside.binds())
    assert plain.verdicts == beside.verdicts
