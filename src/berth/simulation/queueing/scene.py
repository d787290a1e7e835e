"""What a watcher sees of jobs over time at one moment: facts, taken out of the books, that do not change any more.

Shapes: N nodes, G devices of the largest node, Q queues, J jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.model.jobs import Float, Int
from berth.model.reasons import Answer, Verdict
from berth.model.snapshot import Snapshot
from berth.scheduling.lines import QueueLine, lines_of, offers
from berth.scheduling.shares import due_shares, worths
from berth.scheduling.starts import Start
from berth.simulation.queueing.engine import schedule_of
from berth.simulation.queueing.schedule import Events, Schedule
from berth.simulation.queueing.state import State
from berth.simulation.queueing.stories import Kind, Story

MOST_IN_LINE = 3000  # workloads: beyond them the line is not worked out for each scene
IDLE, DOWN, ABSENT = -1, -2, -3  # in place of a queue: nobody holds it, its node gives nothing out, there is no device


class Runs(NamedTuple):
    job: int
    started_s: float
    nodes: int


class Waits(NamedTuple):
    """`since_s` is when it came, or was stopped last; `place_s` is when it has a place in time, `start` when it is
    expected to start; None: it is not known."""

    job: int
    since_s: float
    verdict: Verdict | None
    place_s: float | None
    start: Start | None


class SoFar(NamedTuple):
    """(J,) each, as in Schedule."""

    start_s: Float
    end_s: Float
    stops: Int
    lost_s: Float


@dataclass(frozen=True)
class Scene:
    """`queue` (N, G) is the queue that holds each device (its index), or IDLE, DOWN, ABSENT; `held` (N, G) the part of
    it that is held, 0 to 1; `used`, `due`, `wanted` (Q,) are GPUs, `waiting` (Q,) jobs. `runs` and `waits` are the
    first in line and no more than asked for; `running` and `still` are how many there are. `is_new` (N, G): held by a
    job that has started since the scene before."""

    at_s: float
    queue: NDArray[np.int16]
    held: NDArray[np.float32]
    is_new: NDArray[np.bool_]
    used: Float
    due: Float
    wanted: Float
    waiting: Float
    runs: tuple[Runs, ...]
    waits: tuple[Waits, ...]
    running: int
    still: int
    ended: int
    reasons: tuple[tuple[str, int], ...]  # of all that wait, the commonest first
    stories: tuple[Story, ...]  # since the scene before
    so_far: SoFar


def scene_of(
    state: State, stories: Sequence[Story], starts: Mapping[int, Start] | None = None, most: int = 60
) -> Scene:
    """The present. `stories` are those since the scene before, `starts` are expected ones, by job."""
    starts = starts or {}
    queue, held, is_new = _map(state, {one.job for one in stories if one.kind in (Kind.Starts, Kind.GangStarts)})
    gpus = float((queue != ABSENT).sum())
    used, wanted, waiting = np.maximum(state.row, 0.0)
    due, place = _lines(state, wanted, gpus)
    runs = sorted(
        (Runs(job, one.started_s, len(set(one.nodes))) for job, one in state.running.items()),
        key=lambda one: (-state.jobs.width[one.job], one.started_s),
    )
    waits = sorted(
        (
            Waits(job, _since_s(job, state), state.said.get(job), state.starts_by.get(job), starts.get(job))
            for job in state.waiting
        ),
        key=lambda one: (_is_never(one.verdict), place.get(one.job, 0), -state.jobs.priority[one.job], one.job),
    )
    reasons = Counter(v.reason.name for job, v in state.said.items() if v.reason and job in state.waiting)
    return Scene(
        at_s=state.now_s,
        queue=queue,
        held=held,
        is_new=is_new,
        used=used,
        due=due,
        wanted=wanted,
        waiting=waiting,
        runs=tuple(runs[:most]),
        waits=tuple(waits[:most]),
        running=len(runs),
        still=len(waits),
        ended=state.ended,
        reasons=tuple(reasons.most_common()),
        stories=tuple(stories),
        so_far=SoFar(state.start_s.copy(), state.end_s.copy(), state.stops.copy(), state.lost_s.copy()),
    )


def _since_s(job: int, state: State) -> float:
    return float(state.waiting[job].waits_since_s or state.jobs.submit_s[job])


def _is_never(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.answer is Answer.Never


def _lines(state: State, wanted: Float, gpus: float) -> tuple[Float, dict[int, int]]:
    """(Q,) GPUs that each queue is due, and the place of each that waits, as the scheduler has it. Of very many only
    weights and wishes are looked at, and the line is by priority and age."""
    weights = {queue.name: float(queue.weight) for queue in state.cluster.queues}
    if len(state.waiting) + len(state.running) > MOST_IN_LINE:
        weight = np.array([weights.get(name, 1.0) for name in state.jobs.queues])
        return due_shares(weight, wanted[:, None], gpus)[:, 0], {}
    jobs = list(state.waiting)
    queues, line = lines_of(
        msgspec.structs.replace(
            state.cluster,
            allocations=tuple(pod for one in state.running.values() for pod in one.allocations),
            workloads=tuple(state.waiting.values()),
            now_s=state.now_s,
        )
    )
    due = {one.name: _in_its_gpus(one, state.cluster) for one in queues}
    return (
        np.array([due.get(name, 0.0) for name in state.jobs.queues]),
        {jobs[one.index]: one.ahead for one in line},
    )


def _in_its_gpus(line: QueueLine, cluster: Snapshot) -> float:
    """What a queue is due, in GPUs of the classes that it holds: the scheduler counts in value, and an H100 is worth
    several L40S."""
    values = dict(zip((c.name for c in cluster.gpu_classes), worths(cluster.gpu_classes).tolist(), strict=False))
    offered = [(offers(node), values.get(node.gpu_class, 1.0)) for node in cluster.nodes]
    mean = sum(milli * value for milli, value in offered) / max(1, sum(milli for milli, _ in offered))
    held = sum(milli for name, milli in line.used_milli.items() if name in values)
    value = sum(milli * values[name] for name, milli in line.used_milli.items() if name in values)
    return max(0.0, line.due_milli / 1000) * (mean * held / value if value else 1.0)


def _map(state: State, fresh: set[int]) -> tuple[NDArray[np.int16], NDArray[np.float32], NDArray[np.bool_]]:
    nodes = state.cluster.nodes
    widest = max(len(node.devices) for node in nodes)
    queue = np.full((len(nodes), widest), ABSENT, np.int16)
    held = np.zeros((len(nodes), widest), np.float32)
    is_new = np.zeros((len(nodes), widest), bool)
    for n, node in enumerate(nodes):
        queue[n, : len(node.devices)] = IDLE if node.ready else DOWN
    counted: dict[int, list[tuple[int, bool]]] = {}  # node: (queue, is new) of each partition in use
    for job, one in state.running.items():
        mine, starts = int(state.jobs.queue[job]), job in fresh
        for n, allocation in zip(one.nodes, one.allocations, strict=True):
            if allocation.devices:
                at = list(allocation.devices)
                queue[n, at] = mine
                held[n, at] += allocation.pod_class.gpu_milli / 1000
                is_new[n, at] |= starts
            else:
                parts = sum(k for name, k in allocation.pod_class.requests if "/mig-" in name)
                counted.setdefault(n, []).extend([(mine, starts)] * parts)
    for n, parts_in_use in counted.items():
        _fill(n, parts_in_use, len(nodes[n].devices), _parts(state, n), queue, held, is_new)
    return queue, held, is_new


def _parts(state: State, n: int) -> int:
    """Partitions of each device of the node."""
    node = state.cluster.nodes[n]
    return max(1, *(len(device.partitions) for device in node.devices))


def _fill(
    n: int, used: list[tuple[int, bool]], devices: int, parts: int,
    queue: NDArray[np.int16], held: NDArray[np.float32], is_new: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Partitions are only counted: which device each is on is the plugin's choice. Shown one device after the other."""
    used.sort()
    for g in range(min(devices, -(-len(used) // parts))):
        here = used[g * parts : (g + 1) * parts]
        queue[n, g] = Counter(q for q, _ in here).most_common(1)[0][0]
        held[n, g] = len(here) / parts
        is_new[n, g] = any(starts for _, starts in here)


def schedule_at(state: State, scene: Scene, until_s: float, policy: str = "berth") -> Schedule:
    """What had become of the jobs that had come by the time of the scene; the state may be further on. What was used
    and due counts until `until_s`: since the scene nothing has happened. Raises ValueError where none had come."""
    whole, jobs = schedule_of(policy, state), state.jobs
    count = int(np.searchsorted(jobs.submit_s, scene.at_s, side="right"))
    if not count:
        raise ValueError("nobody has come yet")
    came = slice(0, count)
    by_job = {
        f.name: getattr(jobs, f.name)[came] for f in fields(jobs) if isinstance(getattr(jobs, f.name), np.ndarray)
    }
    events = whole.events
    rows = [*range(int(np.searchsorted(events.at_s, scene.at_s, side="right")))]
    goes_on = bool(until_s > events.at_s[rows[-1]])
    cut = Events(**{f.name: getattr(events, f.name)[[*rows, *rows[-1:] * goes_on]] for f in fields(events)})
    if goes_on:
        cut.at_s[-1] = until_s
    return replace(
        whole,
        jobs=replace(jobs, names=jobs.names[came], **by_job),
        start_s=scene.so_far.start_s[came],
        end_s=scene.so_far.end_s[came],
        preemptions=scene.so_far.stops[came],
        lost_s=scene.so_far.lost_s[came],
        events=cut,
    )
