"""Published policies for jobs over time, in the rules of Muri's simulator (SIGCOMM 2022), and the two that need none.

| name | next is | who runs may be set aside |
|---|---|---|
| fifo | the first that came; nobody passes who fits where it does not | no |
| sjf | the shortest, of those that fit | no |
| srtf | the least remaining time | yes |
| srsf | the least remaining time × GPUs | yes |
| tiresias-l | the queue of least attained GPU time, then who came first (NSDI 2019) | yes |
| srsf-sticky | as srsf, who runs on stays where it is (sticky.py): srsf where a move costs something | yes |

Events are submissions and ends. At each, who may be set aside is placed afresh in order of priority, and who does not
fit is passed over: up to a node's GPUs on the first node that has them free, more on wholly free nodes and one for the
rest. Tiresias-L counts GPUs only. No scheduling of ours is here.
"""

from __future__ import annotations

import math
from functools import cache
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from berth.model.jobs import Float, Int, Jobs
from berth.scheduling.kernels import compiled
from berth.simulation.baselines.sticky import place_sticky
from berth.simulation.queueing.schedule import Events, Overhead, Schedule

NAMES = ("fifo", "sjf", "srtf", "srsf", "tiresias-l", "srsf-sticky")
FIFO, SJF, SRTF, SRSF, TIRESIAS, STICKY = range(len(NAMES))
TIRESIAS_LIMITS = (3250.0, 7200.0)  # attained GPU-seconds at which a job goes one queue down
# Sums of times differ in their last digits from what they should reach.
ROUNDING = 1e-6
AT_START, EACH_EVENT = int(Overhead.AtStart), int(Overhead.EachEvent)


def run(policy: str, jobs: Jobs, nodes: int, node_gpus: int, overhead: Overhead) -> Schedule:
    """The schedule of a published policy on `nodes` like nodes of `node_gpus` each, which hold the widest job."""
    kind = NAMES.index(policy)
    _loaded()
    began = perf_counter()
    start, end, preemptions, lost, at, table = _run(
        kind, jobs.submit_s, jobs.service_s, jobs.restart_s, jobs.width, jobs.queue, len(jobs.queues), nodes,
        node_gpus, int(overhead),
    )  # fmt: skip
    events = Events(at, table[:, 0], table[:, 1], table[:, 2])
    spent = perf_counter() - began
    return Schedule(jobs, policy, nodes * node_gpus, start, end, preemptions, lost, events, spent)


@cache
def _loaded() -> None:
    """Compiled code is loaded by a job that runs alone: what decisions take is told, and loading is none."""
    one, none = np.ones(1), np.zeros(1, np.int64)
    _run(STICKY, one, one, one, np.ones(1, np.int64), none, 1, 1, 1, AT_START)


@compiled
def _run(
    kind: int, submit: Float, service: Float, restart: Float, width: Int, queue: Int, queues: int, nodes: int,
    node_gpus: int, overhead: int,
) -> tuple[Float, Float, Int, Float, Float, NDArray[np.float64]]:  # fmt: skip
    """Start, end, preemptions and lost seconds of the jobs, (J,) each; times of the events, (E,), and GPUs used, GPUs
    wanted and jobs waiting by queue after each, (E, 3, Q)."""
    jobs = len(submit)
    left, debt, attained, lost = service.copy(), np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
    start, end, ends, falls = np.full(jobs, np.inf), np.full(jobs, np.inf), np.full(jobs, np.inf), np.full(jobs, np.inf)
    preemptions, level, runs = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64), np.zeros(jobs, np.bool_)
    spans = int(width.max()) // node_gpus + 1
    node, taken = np.full((jobs, spans), -1, np.int64), np.zeros((jobs, spans), np.int64)
    free, chosen, keeps = np.full(nodes, node_gpus), np.zeros(jobs, np.bool_), np.zeros(jobs, np.bool_)
    active, actives, coming, over, now = np.empty(jobs, np.int64), 0, 0, 0, 0.0
    at, table, events = np.zeros(5 * jobs + 5), np.zeros((5 * jobs + 5, 3, queues)), 0
    while over < jobs:
        then = submit[coming] if coming < jobs else np.inf
        for i in range(actives):
            then = min(then, ends[active[i]], falls[active[i]])
        lasted, now, kept = then - now, then, 0
        for i in range(actives):
            j = active[i]
            if runs[j] and ends[j] <= now:  # pays nothing at its own end, unless it had just begun
                lost[j] += debt[j]
                end[j], ends[j], falls[j], runs[j] = now, np.inf, np.inf, False
                _give_back(free, node[j], taken[j])
                over += 1
                continue
            if runs[j]:
                paid = min(restart[j] if overhead == EACH_EVENT else debt[j], lasted)
                debt[j] = max(debt[j] - paid, 0.0)
                lost[j] += paid
                left[j] -= lasted - paid
                attained[j] += lasted
            active[kept] = j
            kept += 1
        actives = kept
        while coming < jobs and submit[coming] == now:
            active[actives] = coming
            actives, coming = actives + 1, coming + 1
        _order(kind, active[:actives], left, service, attained, width, level)
        if kind >= SRTF:
            free[:] = node_gpus
        room, is_blocked = nodes * node_gpus, False
        if kind == STICKY:
            chosen[:] = False
            for i in range(actives):
                chosen[active[i]] = width[active[i]] <= room
                room -= width[active[i]] if chosen[active[i]] else 0
            some = active[:actives][chosen[active[:actives]]]
            keeps[some] = place_sticky(some, width, runs, node, taken, node_gpus, nodes)
        for i in range(actives):
            j = active[i]
            ran = runs[j]
            if kind < SRTF and ran:
                ends[j] = now + left[j] + debt[j]
                continue
            stays = ran and overhead == AT_START and kind != STICKY and _takes(free, node[j], taken[j])
            if kind == TIRESIAS:
                runs[j] = width[j] <= room
                room -= width[j] if runs[j] else 0
                stays = ran
            elif kind == STICKY:
                runs[j], stays = chosen[j] and node[j, 0] >= 0, ran and chosen[j] and keeps[j]
            elif not stays:
                runs[j] = not is_blocked and _first_fit(free, node_gpus, width[j], node[j], taken[j])
                is_blocked |= kind == FIFO and not runs[j]
            preemptions[j] += ran and not (runs[j] and (stays or overhead != AT_START))
            if runs[j] and not stays and overhead == AT_START:
                debt[j] = restart[j]
            if runs[j] and not ran:
                start[j] = min(start[j], now)
            ends[j] = now + left[j] + debt[j] if runs[j] else np.inf
            falls[j] = now + _until_fall(level[j], width[j], attained[j]) if kind == TIRESIAS and runs[j] else np.inf
        if kind == TIRESIAS:
            _running_first(active[:actives], runs, level)
        at[events] = now
        for i in range(actives):
            j = active[i]
            table[events, 0, queue[j]] += width[j] if runs[j] else 0
            table[events, 1, queue[j]] += width[j]
            table[events, 2, queue[j]] += not runs[j]
        events += 1
    return start, end, preemptions, lost, at[:events], table[:events]


@compiled
def _order(kind: int, active: Int, left: Float, service: Float, attained: Float, width: Int, level: Int) -> None:
    """Sort those who are there; the sort keeps the order of equals."""
    if kind == TIRESIAS:
        _fall(active, attained, width, level)
    if kind in (FIFO, TIRESIAS):
        return
    for i in range(1, len(active)):  # nearly in order already
        j = active[i]
        mine, before = _key(kind, j, left, service, width), i - 1
        while before >= 0 and _key(kind, active[before], left, service, width) > mine:
            active[before + 1] = active[before]
            before -= 1
        active[before + 1] = j


@compiled
def _key(kind: int, j: int, left: Float, service: Float, width: Int) -> float:
    if kind == SJF:
        return float(service[j])
    return float(left[j] * width[j]) if kind in (SRSF, STICKY) else float(left[j])


@compiled
def _fall(active: Int, attained: Float, width: Int, level: Int) -> None:
    """Who has attained a queue's limit goes to the end of the next one down."""
    before, by_age, at = active.copy(), np.sort(active), 0
    for lowest in range(len(TIRESIAS_LIMITS) + 1):
        for came in (False, True):  # who was here, then who came down, those that were submitted first ahead
            for j in by_age if came else before:
                falls = _has_attained(level[j], width[j], attained[j])
                if level[j] + falls == lowest and falls == came:
                    active[at] = j
                    at += 1
    for j in active:
        level[j] += _has_attained(level[j], width[j], attained[j])


@compiled
def _has_attained(level: int, width: int, attained: float) -> bool:
    return level < len(TIRESIAS_LIMITS) and attained * width >= TIRESIAS_LIMITS[level] - ROUNDING


@compiled
def _until_fall(level: int, width: int, attained: float) -> float:
    """Seconds of running until the event at which it goes one queue down: at a whole second."""
    if level >= len(TIRESIAS_LIMITS):
        return math.inf
    return math.ceil(TIRESIAS_LIMITS[level] / width) - attained


@compiled
def _running_first(active: Int, runs: NDArray[np.bool_], level: Int) -> None:
    """Within a queue who runs stays ahead of who waits."""
    before, at = active.copy(), 0
    for lowest in range(len(TIRESIAS_LIMITS) + 1):
        for is_running in (True, False):
            for j in before:
                if level[j] == lowest and runs[j] == is_running:
                    active[at] = j
                    at += 1


@compiled
def _first_fit(free: Int, node_gpus: int, width: int, node: Int, taken: Int) -> bool:
    """Take the GPUs: on the first node with enough, more than a node has on wholly free ones and one for the rest."""
    whole, rest, found = width // node_gpus, width % node_gpus, 0
    node[:] = -1
    for n in range(len(free)):
        if found < whole and free[n] == node_gpus:
            node[found], taken[found] = n, node_gpus
            found += 1
    is_there = found == whole
    if rest and is_there:
        is_there = False
        for n in range(len(free)):
            if free[n] >= rest and not (node[:whole] == n).any():
                node[whole], taken[whole] = n, rest
                is_there = True
                break
    if not is_there:
        node[:] = -1
        return False
    return _takes(free, node, taken)


@compiled
def _takes(free: Int, node: Int, taken: Int) -> bool:
    """Take the GPUs at those places, if they are free."""
    for n, gpus in zip(node, taken):  # noqa: B905  Numba's zip has no strict
        if n >= 0 and free[n] < gpus:
            return False
    for n, gpus in zip(node, taken):  # noqa: B905
        if n >= 0:
            free[n] -= gpus
    return True


@compiled
def _give_back(free: Int, node: Int, taken: Int) -> None:
    for n, gpus in zip(node, taken):  # noqa: B905
        if n >= 0:
            free[n] += gpus
