"""What of all that happens is worth telling: facts of one step, in the order in which they are best told.

Many jobs that leave for one are one story, a gang that starts is a story of its own, and so is who passes a job that
has its place in time.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from berth.model.gpus import satisfies
from berth.model.reasons import Answer
from berth.scheduling.plan import Rule
from berth.simulation.queueing.state import Happened, State, What


class Kind(IntEnum):
    """What a story is about, in the order in which those of one step are told; from Starts on it is what happens all
    the time."""

    NodeFails = 0
    NodeIsBack = 1
    StopsWithNode = 2
    LeavesForPriority = 3  # `jobs` of `gpus` leave for `job`
    LeavesForShare = 4  # the same, because their queues hold more than they are due
    LeavesForShorter = 5
    GangStarts = 6
    GangWaits = 7
    CanNeverStart = 8
    Passes = 9  # `job` starts before `other`, which has its place in time
    Starts = 10
    Grows = 11
    Shrinks = 12
    Ends = 13
    IsGivenUp = 14


class Story(NamedTuple):
    """Indexes are -1 where there is none. `jobs` and `gpus` are how many, `nodes` on how many."""

    at_s: float
    kind: Kind
    job: int = -1
    other: int = -1
    node: int = -1
    jobs: int = 1
    gpus: float = 0.0
    nodes: int = 0
    waited_s: float = 0.0  # for its first start; -1.0: it has begun before
    said: str = ""  # the verdict's sentence


_PLAIN = {
    What.Started: Kind.Starts, What.Ended: Kind.Ends, What.GivenUp: Kind.IsGivenUp, What.Grew: Kind.Grows,
    What.Shrank: Kind.Shrinks,
}  # fmt: skip
_LEAVING = {Rule.SetAside: Kind.LeavesForShorter}
_LEAVING |= {rule: Kind.LeavesForShare for rule in Rule if rule.name == "Reclaimed"}


def stories_of(state: State) -> list[Story]:
    """Of the step that has just been made."""
    found = [*_leaving(state)]
    for one in state.happened:
        found += _told(one, state)
    return sorted(found, key=lambda story: story.kind)  # stable: of one kind as they happened


def _told(one: Happened, state: State) -> Iterator[Story]:
    now, job, jobs = state.now_s, one.job, state.jobs
    if one.what in (What.Failed, What.Back):
        yield Story(now, Kind.NodeFails if one.what is What.Failed else Kind.NodeIsBack, node=one.node)
        return
    gpus = float(jobs.width[job])
    is_gang = state.workloads[job].is_gang
    if one.what is What.Lost:
        yield Story(now, Kind.StopsWithNode, job, gpus=gpus)
    elif one.what is What.Came and job in state.waiting:
        verdict = state.said.get(job)
        if verdict is not None and verdict.answer is Answer.Never:
            yield Story(now, Kind.CanNeverStart, job, gpus=gpus, said=verdict.message)
        elif is_gang:
            yield Story(now, Kind.GangWaits, job, gpus=gpus, said=verdict.message if verdict else "")
    elif one.what is What.Started and job in state.running:
        nodes = len(set(state.running[job].nodes))
        waited_s = now - max(float(jobs.submit_s[job]), 0.0)
        begun = bool(state.stops[job])
        if not begun and (other := _passed(job, state)) >= 0:
            yield Story(now, Kind.Passes, job, other, gpus=gpus, nodes=nodes)
        kind = Kind.GangStarts if is_gang else Kind.Starts
        yield Story(
            now, kind, job, gpus=state.running[job].gpus or gpus, nodes=nodes, waited_s=-1.0 if begun else waited_s
        )
    elif one.what in _PLAIN:
        yield Story(now, _PLAIN[one.what], job, gpus=gpus)


def _leaving(state: State) -> Iterator[Story]:
    """Who was set aside, by whom it was for and why."""
    groups: dict[tuple[int, Kind], list[int]] = {}
    for one in state.happened:
        if one.what is What.SetAside:
            kind = _LEAVING.get(one.rule, Kind.LeavesForPriority) if one.rule else Kind.LeavesForPriority
            groups.setdefault((one.other, kind), []).append(one.job)
    for (beneficiary, kind), jobs in groups.items():
        gpus = float(sum(state.jobs.width[job] for job in jobs))
        yield Story(state.now_s, kind, beneficiary, jobs[0], jobs=len(jobs), gpus=gpus)


def _passed(job: int, state: State) -> int:
    """A larger job that is before it, has its place in time, and would do with the GPUs that this one starts on; -1:
    none."""
    jobs, classes = state.jobs, {one.name: one for one in state.cluster.gpu_classes}
    mine = [classes[c] for c in {state.cluster.nodes[n].gpu_class for n in state.running[job].nodes} if c in classes]
    for other in state.starts_by:
        is_before = jobs.submit_s[other] < jobs.submit_s[job] and jobs.priority[other] >= jobs.priority[job]
        if other not in state.waiting or not is_before or jobs.width[other] <= jobs.width[job]:
            continue
        least = state.workloads[other].pod_sets[0].pod_class.least
        if any(satisfies(one, least) for one in mine):
            return other
    return -1
