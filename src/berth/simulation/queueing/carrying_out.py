"""What is decided is carried out at once, in the books: jobs start, grow, shrink, are set aside and end."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import msgspec
import numpy as np

from berth.model.cluster import Allocation
from berth.model.workload import Workload
from berth.scheduling.plan import devices_of
from berth.simulation.queueing.schedule import Overhead
from berth.simulation.queueing.shown import is_elastic, least_of, may_run_with, still_wanted
from berth.simulation.queueing.state import Happened, Running, State, What


def wait(state: State, job: int) -> None:
    state.waiting[job] = state.workloads[job]
    state.row[1:, state.jobs.queue[job]] += (state.jobs.width[job], 1)


def start(state: State, job: int, placed: list[tuple[int, int, int]], now: float) -> None:
    workload = state.waiting.pop(job)
    pods = _put(state, workload, state.workloads[job], placed, 0, now)
    state.start_s[job] = min(state.start_s[job], now)
    state.row[2, state.jobs.queue[job]] -= 1
    state.holds.pop(workload.identity, None)
    _run_with(state, job, pods, tuple(node for _, node, _ in placed), now)
    state.happened.append(Happened(What.Started, job))


def grow(state: State, job: int, placed: list[tuple[int, int, int]], now: float) -> None:
    """A gang that runs with a part of its pods gets more of them."""
    one, more = state.running[job], state.growing[job]
    pods = _put(state, more, state.workloads[job], placed, one.next_pod, one.allocations[0].started_s)
    state.holds.pop(more.identity, None)
    _settle(state, job, now)
    _leave(state, job)
    _run_with(state, job, (*one.allocations, *pods), (*one.nodes, *(node for _, node, _ in placed)), now, one.next_pod)
    state.happened.append(Happened(What.Grew, job))


def shrink(state: State, job: int, stay: Sequence[int], now: float) -> bool:
    """It runs on with these of its pods, if they are enough."""
    one = state.running[job]
    if not may_run_with(state.workloads[job], [one.allocations[i] for i in stay]):
        return False
    staying = set(stay)
    _release(state, [i for i in range(len(one.nodes)) if i not in staying], one)
    _settle(state, job, now)
    _leave(state, job)
    pods, nodes = tuple(one.allocations[i] for i in stay), tuple(one.nodes[i] for i in stay)
    _run_with(state, job, pods, nodes, now, one.next_pod)
    state.happened.append(Happened(What.Shrank, job))
    return True


def _put(
    state: State, asked: Workload, workload: Workload, placed: list[tuple[int, int, int]], first: int, started_s: float
) -> tuple[Allocation, ...]:
    """Pods of a workload, `asked` or what else it wants, booked where they were placed."""
    pods, elastic = [], is_elastic(workload)
    for number, (pod_set, node, mask) in enumerate(placed, first):
        of, devices = asked.pod_sets[pod_set], devices_of(mask)
        state.books.take(node, of.pod_class, devices)
        pods.append(
            Allocation(
                node=state.cluster.nodes[node].name, namespace=workload.namespace, name=f"{workload.name}-{number}",
                pod_class=of.pod_class, workload=workload.key, workload_kind=workload.kind, queue=workload.queue,
                devices=devices, priority=workload.priority, started_s=started_s, time_limit_s=workload.time_limit_s,
                disruption="single" if elastic else "all", gang_minimum=least_of(workload) if elastic else 0,
                is_controlled=True, pod_set=of.name, preemptible=workload.preemptible,
                min_runtime_s=workload.min_runtime_s, checkpoint_every_s=workload.checkpoint_every_s,
            )
        )  # fmt: skip
    return tuple(pods)


def _run_with(
    state: State, job: int, pods: tuple[Allocation, ...], nodes: tuple[int, ...], now: float, next_pod: int = 0
) -> None:
    """It runs with these pods from now on, once its start is paid: a change of its pods is a start."""
    workload, queue = state.workloads[job], state.jobs.queue[job]
    restart = float(state.jobs.restart_s[job]) if state.overhead is Overhead.AtStart else 0.0
    part, gpus = len(pods) / workload.pod_count, float(state.jobs.width[job]) * len(pods) / workload.pod_count
    ends = now + restart + float(state.left_s[job]) / part
    numbered = max(next_pod, int(pods[-1].name.rpartition("-")[2]) + 1)
    state.running[job] = Running(pods, nodes, now, now + restart, ends, part=part, gpus=gpus, next_pod=numbered)
    state.pods = None
    state.row[0, queue] += gpus
    if (more := still_wanted(workload, pods)) is not None:
        state.growing[job] = more
    heapq.heappush(state.ends, (ends, job))


def _settle(state: State, job: int, now: float, *, is_lost: bool = False) -> None:
    """What it has computed counts, but what it has since its start, or its last checkpoint, where that is lost; so does
    what it paid."""
    one = state.running[job]
    paid_s, ran_s = min(now, one.computes_s) - one.started_s, max(now - one.computes_s, 0.0)
    if is_lost:
        every_s, computed_s = state.workloads[job].checkpoint_every_s, ran_s - one.kept_s  # what kept it is counted
        safe_s = computed_s // every_s * every_s if every_s else 0.0
        state.left_s[job] -= safe_s * one.part
        state.lost_s[job] += (paid_s + computed_s - safe_s) * one.part
    else:
        state.left_s[job] = (one.ends_s - max(now, one.computes_s)) * one.part
        state.lost_s[job] += paid_s * one.part


def _leave(state: State, job: int) -> None:
    """It runs no more as it did."""
    state.row[0, state.jobs.queue[job]] -= state.running.pop(job).gpus
    state.pods = None
    state.growing.pop(job, None)


def keep_back(state: State, now: float) -> None:
    """Who runs on at this event has computed for its restart less of the time since the last one."""
    for job, one in state.running.items():
        if one.ends_s > now:
            lost = min(float(state.jobs.restart_s[job]), now - state.now_s)
            state.lost_s[job] += lost * one.part
            one.ends_s += lost
            one.kept_s += lost
    state.ends = [(one.ends_s, job) for job, one in state.running.items()]
    heapq.heapify(state.ends)


def next_end(state: State) -> float:
    while state.ends:
        ends, job = state.ends[0]
        if job in state.running and state.running[job].ends_s == ends:
            return ends
        heapq.heappop(state.ends)
    return np.inf


def end(state: State, now: float) -> int:
    """Who has computed all of it gives back what it holds. How many."""
    ended = 0
    while next_end(state) <= now:
        _, job = heapq.heappop(state.ends)
        one = state.running[job]
        state.end_s[job], state.left_s[job] = now, 0.0
        state.lost_s[job] += (one.computes_s - one.started_s) * one.part
        give_back(state, job)
        state.row[1, state.jobs.queue[job]] -= state.jobs.width[job]
        state.happened.append(Happened(What.Ended, job))
        ended += 1
    return ended


def set_aside(state: State, job: int, now: float, *, is_lost: bool = False) -> None:
    """It waits again. What it has computed counts, but what it has since its start where its node is gone."""
    _settle(state, job, now, is_lost=is_lost)
    if is_lost:
        state.happened.append(Happened(What.Lost, job))
    state.stops[job] += 1
    give_back(state, job)
    wait(state, job)
    state.waiting[job] = msgspec.structs.replace(state.waiting[job], waits_since_s=now)
    state.row[1, state.jobs.queue[job]] -= state.jobs.width[job]  # it was wanted before


def give_back(state: State, job: int) -> None:
    gone = state.running[job]
    _leave(state, job)
    _release(state, range(len(gone.nodes)), gone)


def _release(state: State, pods: Sequence[int], of: Running) -> None:
    for i in pods:
        allocation = of.allocations[i]
        state.books.release(of.nodes[i], allocation.pod_class, allocation.devices)
