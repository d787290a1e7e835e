"""Reclaim: nobody takes what is not due, nobody loses what is, guarantees hold, and it comes to rest.

The rules are written down a second time here, over whole GPUs of one class and a tree of two levels.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.model.cluster import Allocation, Device, Node
from berth.model.queue import ANY_CLASS, Queue
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.lines import lines_of
from berth.scheduling.plan import Rule
from berth.scheduling.policy import Policy

GPU = "nvidia.com/gpu"
NODE_GPUS = 4
often = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def pod_class(gpus: int) -> PodClass:
    return PodClass(resources({GPU: gpus, "cpu": 100}))


def node(n: int) -> Node:
    devices = tuple(Device(g) for g in range(NODE_GPUS))
    amounts = resources({GPU: NODE_GPUS, "cpu": 10**6, "pods": 1000})
    return Node(f"n{n}", allocatable=amounts, capacity=amounts, device_resource=GPU, devices=devices)


@dataclass
class Play:
    """A cluster that carries plans out at once: who is evicted is gone and waits again, who is bound runs."""

    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    usage: dict[str, float] = field(default_factory=dict)
    running: dict[str, Allocation] = field(default_factory=dict)
    waiting: dict[str, Workload] = field(default_factory=dict)
    holds: dict[str, object] = field(default_factory=dict)
    now_s: float = 1000.0

    def snapshot(self) -> Snapshot:
        return Snapshot(
            self.nodes, tuple(self.running.values()), tuple(self.waiting.values()), queues=self.queues,
            now_s=self.now_s, usage=self.usage, holds=tuple(self.holds.values()),
        )  # fmt: skip

    def step(self, policy: Policy | None = None):
        snapshot = self.snapshot()
        plan = cycle(snapshot, policy or Policy(explains=False))
        for bind in plan.binds():
            w = bind.workload
            self.waiting.pop(w.name)
            self.holds.pop(w.identity, None)
            self.running[w.name] = Allocation(
                bind.node.name, w.namespace, w.name, w.pod_sets[0].pod_class, queue=w.queue, devices=bind.devices,
                priority=w.priority, started_s=self.now_s, is_controlled=True, preemptible=w.preemptible,
            )  # fmt: skip
        self.holds |= {hold.workload: hold for hold in plan.holds}
        for eviction in plan.evictions:
            gone = self.running.pop(eviction.allocation.name)
            self.waiting[gone.name] = Workload(
                gone.name, (PodSet("s", gone.pod_class),), queue=gone.queue, priority=gone.priority,
                created_s=self.now_s, preemptible=gone.preemptible,
            )  # fmt: skip
        self.now_s += 10.0
        return snapshot, plan

    def held(self, name: str) -> int:
        below = {q.name for q in self.queues if q.name == name or q.parent == name}
        return sum(dict(a.pod_class.requests)[GPU] for a in self.running.values() if a.queue in below)


@st.composite
def plays(draw: st.DrawFn) -> Play:
    """Two teams under a department, and two departments beside it; who came first took what there was."""
    weights = [draw(st.integers(0, 3)) for _ in range(5)]
    quotas = [draw(st.sampled_from([None, None, 0, 2, 4])) for _ in range(5)]
    names = [("dept", ""), ("a", "dept"), ("b", "dept"), ("c", ""), ("d", "")]
    queues = tuple(
        Queue(
            name, parent, weight, quota=() if quota is None else ((ANY_CLASS, quota),),
            reclaim=draw(st.sampled_from(["Any", "Any", "LowerPriority", "Never"])),
        )
        for (name, parent), weight, quota in zip(names, weights, quotas, strict=True)
    )  # fmt: skip
    play = Play(tuple(node(n) for n in range(draw(st.integers(1, 3)))), queues)
    leaves = [q.name for q in queues if q.name != "dept"]
    for i in range(draw(st.integers(1, 14))):
        w = Workload(
            f"w{i}", (PodSet("s", pod_class(draw(st.sampled_from([1, 1, 1, 2, 4])))),),
            queue=draw(st.sampled_from(leaves)), priority=draw(st.sampled_from([0, 0, 0, 5])), created_s=float(i),
            preemptible=draw(st.sampled_from([None, None, None, False])),
        )  # fmt: skip
        play.waiting[w.name] = w
        if draw(st.booleans()):
            play.step()
    if draw(st.booleans()):
        play.usage = {name: float(draw(st.integers(0, 20))) for name in leaves}
    return play


def due_of(snapshot: Snapshot) -> dict[str, float]:
    return {line.name: line.due_milli / 1000 for line in lines_of(snapshot)[0]}


def chain(name: str, queues: tuple[Queue, ...]) -> list[str]:
    parent = next(q.parent for q in queues if q.name == name)
    return [name, parent] if parent else [name]


@often
@given(play=plays())
def test_only_what_is_due_is_taken_and_only_from_what_is_not(play: Play) -> None:
    for _ in range(4):
        before = {q.name: play.held(q.name) for q in play.queues}
        snapshot, plan = play.step()
        due = due_of(snapshot)
        for eviction in plan.evictions:
            if eviction.rule is not Rule.Reclaimed:
                assert eviction.allocation.priority < snapshot.workloads[eviction.beneficiary].priority
                continue
            who, whose = snapshot.workloads[eviction.beneficiary], eviction.allocation
            assert whose.preemptible is not False
            queue = next(q for q in play.queues if q.name == who.queue)
            assert queue.reclaim == "Any" or (queue.reclaim == "LowerPriority" and whose.priority < who.priority)
            mine, theirs = chain(who.queue, play.queues), chain(whose.queue, play.queues)
            need = dict(who.pod_sets[0].pod_class.requests)[GPU]
            for name in mine:
                if name not in theirs:
                    assert before[name] + need <= due[name] + 1e-3, (name, before, due)
            for name in theirs:
                if name not in mine:
                    assert before[name] > due[name] - 1e-3, (name, before, due)


@often
@given(play=plays())
def test_guarantees_are_nobody_elses(play: Play) -> None:
    """Who is within its queue's quota stays for everybody outside of that queue."""
    for _ in range(4):
        running = dict(play.running)
        _, plan = play.step()
        for queue in play.queues:
            if not queue.quota:
                continue
            inside = {q.name for q in play.queues if queue.name in chain(q.name, play.queues)}
            mine = sorted(
                (a for a in running.values() if a.queue in inside), key=lambda a: (-a.priority, a.started_s)
            )  # fmt: skip
            left, guarded = queue.quota[0][1], set()
            for a in mine:
                left -= dict(a.pod_class.requests)[GPU]
                if left < 0:
                    break
                guarded.add(a.name)
            # Reclaim may take the job that stands across the line; what is whole within it stays.
            for eviction in plan.evictions:
                outsider = plan.workloads[eviction.beneficiary].queue not in inside
                if outsider and eviction.rule is not Rule.Reclaimed:
                    assert eviction.allocation.name not in guarded


@often
@given(play=plays())
def test_it_comes_to_rest(play: Play) -> None:
    """With nothing new, cycles end in one that changes nothing: no two queues take turns."""
    for _ in range(40):
        _, plan = play.step()
        if not len(plan.workload) and not plan.evictions:
            break
    else:
        raise AssertionError("work goes back and forth")
    for _ in range(3):
        _, plan = play.step()
        assert not plan.evictions and not len(plan.workload)


@often
@given(play=plays())
def test_each_reclaim_makes_less_of_what_is_beyond_the_due_shares(play: Play) -> None:
    for _ in range(6):
        snapshot = play.snapshot()
        due = due_of(snapshot)
        before = sum(max(0.0, play.held(name) - amount) for name, amount in due.items())
        _, plan = play.step()
        taken = [e for e in plan.evictions if e.rule is Rule.Reclaimed]
        if taken and len(taken) == len(plan.evictions) and not len(plan.workload):
            others = {plan.workloads[e.beneficiary].name: plan.workloads[e.beneficiary] for e in taken}
            held = {name: float(play.held(name)) for name in due}
            for one in others.values():
                for name in chain(one.queue, play.queues):
                    held[name] += dict(one.pod_sets[0].pod_class.requests)[GPU]
            after = sum(max(0.0, held[name] - amount) for name, amount in due.items())
            assert after < before - 1e-6


@often
@given(play=plays())
def test_beyond_a_quota_runs_only_what_may_be_asked_to_leave(play: Play) -> None:
    for _ in range(4):
        before = {q.name: play.held(q.name) for q in play.queues}
        _, plan = play.step()
        for bind in plan.binds():
            if bind.workload.preemptible is not False:
                continue
            for name in chain(bind.workload.queue, play.queues):
                queue = next(q for q in play.queues if q.name == name)
                if queue.quota:
                    need = dict(bind.workload.pod_sets[0].pod_class.requests)[GPU]
                    assert before[name] + need <= queue.quota[0][1]
