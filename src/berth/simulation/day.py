"""The replay of a day: every simulated minute departures, arrivals, then one scheduling cycle.

Sources and actions are replaced by this loop, and nothing else: what decides is the same cycle as on a
cluster. All binds are booked apart from the scheduler (`occupancy.py`), so that a plan that over-commits
ends the replay.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter
from typing import NamedTuple, Protocol

import msgspec
import numpy as np

from berth.model.cluster import Allocation
from berth.model.reasons import Verdict
from berth.model.resources import NVIDIA_GPU, get
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload
from berth.scheduling.plan import devices_of
from berth.simulation.idle import open_nodes, room_by_shape, stranded_pct, typical_of
from berth.simulation.occupancy import GIVEN_OUT, Occupancy
from berth.simulation.outcome import KINDS, ClassUse, LeftWaiting, Outcome, Waits
from berth.simulation.workday import Day

TICK_S = 60.0
SAMPLE_EVERY = 10  # ticks between two measurements of what is stranded


class Plan(Protocol):
    """What a cycle answers; berth.scheduling.plan.Plan is one.

    `workload`, `pod_set`, `node` and `devices` (a bit mask) are (B,) columns of binds; the first two and
    `node` index the snapshot. `verdicts` is by index of the workload in the snapshot.
    """

    @property
    def workload(self) -> np.ndarray: ...
    @property
    def pod_set(self) -> np.ndarray: ...
    @property
    def node(self) -> np.ndarray: ...
    @property
    def devices(self) -> np.ndarray: ...
    @property
    def verdicts(self) -> Mapping[int, Verdict]: ...


Decide = Callable[[Snapshot], Plan]
Progress = Callable[[float, float], None]  # seconds of the day done, seconds of the day


class Pod(NamedTuple):
    """A pod of a workload that was placed: indexes of its set, its node and its devices."""

    pod_set: int
    node: int
    devices: tuple[int, ...]


@dataclass
class Running:
    """A workload that runs: what it holds, for the snapshot and for the books."""

    allocations: tuple[Allocation, ...]
    nodes: tuple[int, ...]


@dataclass
class Replay:
    """The state between two ticks. `waiting` and `running` are by index into the day's workloads."""

    day: Day
    now: Occupancy
    waiting: dict[int, Workload] = field(default_factory=dict)
    running: dict[int, Running] = field(default_factory=dict)
    departures: list[tuple[float, int]] = field(default_factory=list)  # heap of (when, workload)
    started_s: dict[int, float] = field(default_factory=dict)
    next_arrival: int = 0
    finished: int = 0
    said: dict[int, Verdict] = field(default_factory=dict)
    cycle_seconds: list[float] = field(default_factory=list)
    decisions: int = 0
    binds: int = 0


def replay(
    day: Day, decide: Decide, progress: Progress | None = None, timer: Callable[[], float] = perf_counter
) -> Outcome:
    """Run the day through a scheduler. Raises Overcommitted where a plan cannot be.

    A gang that starts with fewer pods than it wants, but with its minimum, stays as it started.
    """
    began = timer()
    state = Replay(day, Occupancy(day.cluster))
    typical, is_open = typical_of(day.cluster), open_nodes(day.cluster)
    allocated: list[np.ndarray] = []
    stranded: list[float] = []
    ticks = int(day.length_s // TICK_S)
    for tick in range(ticks + 1):
        at = tick * TICK_S
        changed = _depart(state, at) + _arrive(state, at)
        if changed and state.waiting:
            _decide(state, decide, at, timer)
        allocated.append(state.now.allocated.copy())
        if tick % SAMPLE_EVERY == 0:
            stranded.append(stranded_pct(typical, state.now))
        if progress:
            progress(at, day.length_s)
    stranded.append(stranded_pct(typical, state.now))
    return _outcome(state, np.array(allocated), stranded, is_open, timer() - began)


def _depart(state: Replay, at: float) -> int:
    """What has run long enough gives back what it holds. Number of departures."""
    before = state.finished
    while state.departures and state.departures[0][0] <= at:
        _, i = heapq.heappop(state.departures)
        gone = state.running.pop(i)
        for node, allocation in zip(gone.nodes, gone.allocations, strict=True):
            state.now.release(node, allocation.pod_class, allocation.devices)
        state.finished += 1
    return state.finished - before


def _arrive(state: Replay, at: float) -> int:
    """What has come by now waits. Number of arrivals."""
    workloads, first = state.day.workloads, state.next_arrival
    while state.next_arrival < len(workloads) and workloads[state.next_arrival].created_s <= at:
        state.waiting[state.next_arrival] = workloads[state.next_arrival]
        state.next_arrival += 1
    return state.next_arrival - first


def _decide(state: Replay, decide: Decide, at: float, timer: Callable[[], float]) -> None:
    """One cycle: what it binds runs from now on, what it leaves keeps waiting with a verdict."""
    indexes = list(state.waiting)
    snapshot = msgspec.structs.replace(
        state.day.cluster,
        allocations=tuple(chain.from_iterable(r.allocations for r in state.running.values())),
        workloads=tuple(state.waiting.values()),
        now_s=at,
    )
    before = timer()
    plan = decide(snapshot)
    state.cycle_seconds.append(timer() - before)
    state.decisions += len(indexes)
    state.said = {indexes[w]: verdict for w, verdict in plan.verdicts.items()}
    pods: dict[int, list[Pod]] = {}
    columns = (plan.workload, plan.pod_set, plan.node, plan.devices)
    for w, pod_set, node, devices in zip(*(c.tolist() for c in columns), strict=True):
        pods.setdefault(indexes[w], []).append(Pod(pod_set, node, devices_of(devices)))
    for i, placed in pods.items():
        _start(state, i, placed, at)


def _start(state: Replay, i: int, placed: Sequence[Pod], at: float) -> None:
    """Book the pods of a workload; it runs from now on."""
    workload = state.waiting.pop(i)
    allocations = []
    for k, pod in enumerate(placed):
        pod_set = workload.pod_sets[pod.pod_set]
        state.now.take(pod.node, pod_set.pod_class, pod.devices)
        allocations.append(
            Allocation(
                node=state.now.nodes[pod.node].name,
                namespace=workload.namespace,
                name=f"{workload.name}-{k}",
                pod_class=pod_set.pod_class,
                labels=pod_set.labels,
                workload=workload.key,
                queue=workload.queue,
                devices=pod.devices,
                priority=workload.priority,
                started_s=at,
            )
        )
    state.running[i] = Running(tuple(allocations), tuple(pod.node for pod in placed))
    state.started_s[i] = at
    state.binds += len(placed)
    heapq.heappush(state.departures, (at + state.day.runs_s[i], i))


# The record


def kind_of(workload: Workload) -> str:
    """One of KINDS."""
    gpus = gpus_of(workload)
    if workload.kind == "Deployment":
        return KINDS[5]
    if workload.is_gang:
        return KINDS[4]
    if gpus == 0:
        return KINDS[0]
    if gpus < 1:
        return KINDS[1]
    return KINDS[2] if gpus == 1 else KINDS[3]


def gpus_of(workload: Workload) -> float:
    """GPUs that all pods of a workload ask for together."""
    return sum(
        s.count * get(s.pod_class.requests, NVIDIA_GPU) * s.pod_class.gpu_milli / 1000 for s in workload.pod_sets
    )


def _outcome(
    state: Replay, allocated: np.ndarray, stranded: Sequence[float], is_open: np.ndarray, wall_s: float
) -> Outcome:
    """`allocated` is (ticks, C) milli."""
    day = state.day
    fresh = [i for i, w in enumerate(day.workloads) if w.created_s >= 0]
    gangs = [i for i in fresh if kind_of(day.workloads[i]) == "gang"]
    classes = _classes(state, allocated, is_open)
    whole = 100 * allocated.sum(axis=1) / (1000 * sum(c.gpus for c in classes) or 1)
    cycles = np.array(state.cycle_seconds) if state.cycle_seconds else np.zeros(1)
    return Outcome(
        name=day.name,
        seed=day.seed,
        nodes=len(day.cluster.nodes),
        gpus=sum(c.gpus for c in classes),
        arrived=len(fresh),
        carried_over=len(day.workloads) - len(fresh),
        started=len(state.started_s),
        finished=state.finished,
        waiting=len(state.waiting),
        gangs_arrived=len(gangs),
        gangs_started=sum(i in state.started_s for i in gangs),
        mean_pct=float(whole.mean()),
        end_pct=float(whole[-1]),
        peak_pct=float(whole.max()),
        hourly_pct=_hourly(whole),
        stranded_mean_pct=float(np.mean(stranded[:-1])),
        stranded_end_pct=float(stranded[-1]),
        classes=classes,
        waits=tuple(_waits(state, fresh, kind) for kind in KINDS),
        left=tuple(_left(state, i) for i in state.waiting),
        cycles=len(state.cycle_seconds),
        decisions=state.decisions,
        binds=state.binds,
        cycle_s=float(cycles.sum()),
        cycle_p50_ms=1000 * float(np.percentile(cycles, 50)),
        cycle_p99_ms=1000 * float(np.percentile(cycles, 99)),
        slowest_cycle_ms=1000 * float(cycles.max()),
        wall_s=wall_s,
    )


def _classes(state: Replay, allocated: np.ndarray, is_open: np.ndarray) -> tuple[ClassUse, ...]:
    now, room = state.now, room_by_shape(state.now, is_open)
    devices = np.array([len(n.devices) for n in now.nodes])
    lost = np.array([sum(d.health not in GIVEN_OUT for d in n.devices) for n in now.nodes])
    held_back = np.where(is_open, lost, devices)
    found = []
    for c, gpu_class in enumerate(state.day.cluster.gpu_classes):
        mine = now.gpu_class == c
        gpus = int(devices[mine].sum())
        used = 100 * allocated[:, c] / (1000 * gpus or 1)
        found.append(
            ClassUse(
                name=gpu_class.name,
                gpus=gpus,
                held_back=int(held_back[mine].sum()),
                mean_pct=float(used.mean()),
                end_pct=float(used[-1]),
                hourly_pct=_hourly(used),
                room=tuple(room[c].tolist()),
            )
        )
    return tuple(found)


def _hourly(by_tick: np.ndarray) -> tuple[float, ...]:
    """Means of the hours; a last tick on the hour belongs to the hour before."""
    hours = max(1, round((len(by_tick) - 1) * TICK_S / 3600))
    return tuple(float(part.mean()) for part in np.array_split(by_tick[:-1] if hours > 1 else by_tick, hours))


def _waits(state: Replay, fresh: Sequence[int], kind: str) -> Waits:
    mine = [i for i in fresh if kind_of(state.day.workloads[i]) == kind]
    waited = [state.started_s[i] - state.day.workloads[i].created_s for i in mine if i in state.started_s]
    times = np.array(waited) if waited else np.zeros(1)
    return Waits(
        kind=kind,
        arrived=len(mine),
        started=len(waited),
        p50_s=float(np.percentile(times, 50)),
        p90_s=float(np.percentile(times, 90)),
        longest_s=float(times.max()),
        waiting=sum(i in state.waiting for i in mine),
    )


def _left(state: Replay, i: int) -> LeftWaiting:
    workload = state.waiting[i]
    return LeftWaiting(
        workload=workload.key,
        kind=workload.kind,
        queue=workload.queue,
        pods=workload.pod_count,
        gpus=gpus_of(workload),
        waited_s=state.day.length_s - workload.created_s,
        verdict=state.said.get(i),
    )
