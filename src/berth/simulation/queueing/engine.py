"""Jobs over time through Berth's own cycle: sources and actions are replaced by the books here, and nothing else.

At each event, a submission or an end, what has come by then waits, what has ended has given back what it held, and one
cycle decides, or several where somebody is set aside for who starts in the next. All binds are booked apart from the
scheduler (occupancy.py): a plan that over-commits ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from itertools import chain
from time import perf_counter

import msgspec
import numpy as np

from berth.model.booking import stood
from berth.model.history import History
from berth.model.jobs import Jobs
from berth.model.queue import Queue
from berth.model.snapshot import Left, Snapshot
from berth.model.workload import Workload
from berth.scheduling.plan import Plan, Rule
from berth.scheduling.usage import decayed
from berth.simulation.queueing.carrying_out import (
    end,
    give_back,
    grow,
    keep_back,
    next_end,
    set_aside,
    shrink,
    start,
    wait,
)
from berth.simulation.queueing.schedule import Events, Overhead, Schedule
from berth.simulation.queueing.state import Happened, Outside, State, What, gpus_of

Decide = Callable[[Snapshot], Plan]
Progress = Callable[[float, float], None]  # jobs ended, jobs in all
MOST_WINDOWS = 64  # of reservations that open and close in a row while nobody can start
MOST_CYCLES = 8  # at one event: who was set aside makes room for who starts in the next


def run(
    policy: str,
    jobs: Jobs,
    cluster: Snapshot,
    overhead: Overhead,
    decide: Decide,
    progress: Progress | None = None,
    *,
    knows: bool = False,
    remembers: bool = False,
) -> Schedule:
    """The schedule that the cycle gives. `knows`: it is told how long each job still takes. `remembers`: what those
    that have come by then have computed.

    Raises Overcommitted where a plan cannot be.
    """
    going = steps(jobs, cluster, overhead, decide, knows=knows, remembers=remembers)
    for state in going:
        if progress:
            progress(float(state.ended), float(len(jobs)))
    return schedule_of(policy, state)


def steps(
    jobs: Jobs,
    cluster: Snapshot,
    overhead: Overhead,
    decide: Decide,
    *,
    knows: bool = False,
    remembers: bool = False,
    workloads: tuple[Workload, ...] | None = None,
) -> Generator[State, None, None]:
    """The state after each moment at which something happened and was decided upon; the same object each time, to be
    looked at and not changed. `workloads` are what the cycle is shown of each job where that is more than its columns
    say: fractions, GPU classes, topology."""
    cluster = msgspec.structs.replace(cluster, queues=cluster.queues or tuple(Queue(name) for name in jobs.queues))
    state = State.of(jobs, cluster, overhead, workloads)
    rows = {workload.identity: job for job, workload in enumerate(state.workloads)} if remembers else None
    while _goes_on(state):
        outside_s = state.outside[0].at_s if state.outside else np.inf
        now = min(next_end(state), _next_submission(state), outside_s, state.look_s)
        if not state.next_job:
            now = _next_submission(state)  # what happened before anybody came is over: time counts from the first
        state.happened.clear()
        if overhead is Overhead.EachEvent:
            keep_back(state, now)
        _count_usage(state, now)
        state.now_s = now
        state.ended += end(state, now)
        while _next_submission(state) <= now:
            wait(state, state.next_job)
            state.happened.append(Happened(What.Came, state.next_job))
            state.next_job += 1
        while state.outside and state.outside[0].at_s <= now:
            _happens(state, state.outside.pop(0), now)
        began, state.look_s = perf_counter(), np.inf
        for _ in range(MOST_CYCLES if state.waiting or state.growing or cluster.bookings else 0):
            if not _decide(state, decide, now, knows, rows):
                break
        state.decide_s += perf_counter() - began
        state.fruitless = 0 if state.happened or state.running else state.fruitless + 1
        state.table.append((now, state.row.copy()))
        state.up.append(state.gpus_up)
        yield state


def _goes_on(state: State) -> bool:
    """Something may still happen: windows of reservations that open for ever, and nobody starts in, are no reason."""
    if state.running or state.next_job < len(state.jobs):
        return True
    return bool(state.waiting) and (bool(state.outside) or (state.look_s < np.inf and state.fruitless < MOST_WINDOWS))


def schedule_of(policy: str, state: State) -> Schedule:
    """What has become of all jobs by now."""
    table = np.array([row for _, row in state.table])
    at = np.array([at for at, _ in state.table])
    events = Events(at, table[:, 0], table[:, 1], table[:, 2], np.array(state.up, np.float64))
    gpus = sum(gpus_of(node) for node in state.cluster.nodes)
    return Schedule(
        state.jobs, policy, gpus, state.start_s, state.end_s, state.stops, state.lost_s, events, state.decide_s
    )  # fmt: skip


def _next_submission(state: State) -> float:
    return float(state.jobs.submit_s[state.next_job]) if state.next_job < len(state.jobs) else np.inf


def _happens(state: State, event: Outside, now: float) -> None:
    if event.job >= 0:
        _give_up(state, event.job)
        return
    nodes = list(state.cluster.nodes)
    was_up = nodes[event.node].ready
    nodes[event.node] = msgspec.structs.replace(nodes[event.node], ready=event.is_up)
    state.cluster = msgspec.structs.replace(state.cluster, nodes=tuple(nodes))
    state.gpus_up += gpus_of(nodes[event.node]) * (int(event.is_up) - int(was_up))
    state.happened.append(Happened(What.Back if event.is_up else What.Failed, node=event.node))
    for job in [job for job, one in state.running.items() if event.node in one.nodes and not event.is_up]:
        one = state.running[job]
        stay = [i for i, node in enumerate(one.nodes) if node != event.node]
        if not shrink(state, job, stay, now):
            set_aside(state, job, now, is_lost=True)


def _give_up(state: State, job: int) -> None:
    """Its owner has it no more, wherever it was."""
    if job in state.running or job in state.waiting:
        state.happened.append(Happened(What.GivenUp, job))
    if job in state.running:
        give_back(state, job)
        state.row[1, state.jobs.queue[job]] -= state.jobs.width[job]
    elif job in state.waiting:
        del state.waiting[job]
        state.row[1:, state.jobs.queue[job]] -= (state.jobs.width[job], 1)
    state.holds.pop(state.workloads[job].identity, None)


def _decide(state: State, decide: Decide, now: float, knows: bool, rows: Mapping[str, int] | None) -> bool:
    """One cycle, carried out at once. Whether somebody was set aside, so that another may start now."""
    indexes, waiting = [*state.waiting, *state.growing], len(state.waiting)
    if state.pods is None:
        state.pods = tuple(chain.from_iterable([one.allocations for one in state.running.values()]))
    snapshot = msgspec.structs.replace(
        state.cluster,
        allocations=state.pods,
        workloads=(*state.waiting.values(), *state.growing.values()),
        now_s=now,
        holds=tuple(state.holds.values()),
        left=_left(state, now) if knows else {},
        history=_history(state, now, rows) if rows is not None else None,
        usage=state.usage,
    )
    plan = decide(snapshot)
    pods: dict[int, list[tuple[int, int, int]]] = {}
    columns = (plan.workload, plan.pod_set, plan.node, plan.devices)
    for w, pod_set, node, devices in zip(*(column.tolist() for column in columns), strict=True):
        pods.setdefault(indexes[w], []).append((pod_set, node, devices))
    for job, placed in pods.items():
        (grow if job in state.running else start)(state, job, placed, now)
    state.holds |= {hold.workload: hold for hold in plan.holds}
    state.said = {indexes[w]: verdict for w, verdict in plan.verdicts.items() if w < waiting}
    state.starts_by = {indexes[w]: at for w, at in plan.starts_by.items()}
    state.look_s = plan.look_s
    told = {one.allocation.workload_identity: (-1, Rule.Reserved) for one in plan.vacating}
    told |= {one.allocation.workload_identity: (indexes[one.beneficiary], one.rule) for one in plan.evictions}
    leaving = {one.allocation.key for one in plan.evictions} | {one.allocation.key for one in plan.vacating}
    if plan.bookings:
        state.cluster = msgspec.structs.replace(state.cluster, bookings=stood(snapshot.bookings, plan.bookings))
    for job in [job for job in state.running if state.workloads[job].identity in told] if told else ():
        stay = [i for i, one in enumerate(state.running[job].allocations) if one.key not in leaving]
        if not shrink(state, job, stay, now):
            set_aside(state, job, now)
            other, rule = told[state.workloads[job].identity]
            state.happened.append(Happened(What.SetAside, job, other=other, rule=rule))
    return bool(told)


def _count_usage(state: State, now: float) -> None:
    """What queues have held since the last step. One queue shares with nobody."""
    if len(state.jobs.queues) > 1 and now > state.now_s and state.table:
        held = dict(zip(state.jobs.queues, state.row[0].tolist(), strict=True))
        state.usage = decayed(state.usage, held, now - state.now_s)


def _left(state: State, now: float) -> dict[str, Left]:
    left = [(job, one.ends_s - now) for job, one in state.running.items()]
    left += [(job, float(state.left_s[job])) for job in state.waiting]
    return {state.workloads[job].identity: Left(much, float(state.jobs.submit_s[job])) for job, much in left}


def _history(state: State, now: float, rows: Mapping[str, int]) -> History:
    """What the jobs that have come by now have computed."""
    jobs, count = state.jobs, state.next_job
    attained = jobs.service_s[:count] - state.left_s[:count]
    for job, one in state.running.items():
        attained[job] = jobs.service_s[job] - (one.ends_s - max(now, one.computes_s)) * one.part
    return History(
        jobs.submit_s[:count], attained, np.isfinite(state.end_s[:count]), jobs.width[:count], jobs.queue[:count],
        jobs.owner[:count], rows,
    )  # fmt: skip
