"""What a schedule comes to in figures: times, waits, use and shares.

A percentile p is the element floor(p × n) of the sorted values, as the published results have it. Where no job has
ended there are no times: completion, wait and makespan are NaN, which JSON has as null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import nan

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from berth.base.units import counted
from berth.model.jobs import Float
from berth.model.queue import Queue
from berth.model.reasons import Reason
from berth.scheduling.shares import due_shares
from berth.simulation.queueing.due import due_over_time
from berth.simulation.queueing.schedule import Schedule

SIZES = ((1, 1), (2, 4), (5, 8), (9, 16), (17, 10**9))  # GPUs of a job, in the rows of a report
HOUR_S = 3600.0
STEPS = 20  # of the distribution of waits, beside its ends


class OfQueue(Struct, frozen=True):
    """One queue. Shares are of all GPUs, over equal parts of the time."""

    queue: str
    jobs: int
    avg_jct_s: float
    p50_jct_s: float
    p95_jct_s: float
    p99_jct_s: float
    avg_wait_s: float
    makespan_s: float  # from the first submission of all queues to the last end of its own
    gpu_utilisation: float  # its GPU time in use, of all GPU time
    preemptions: int
    lost_gpu_hours: float
    gpu_hours: float
    share: tuple[float, ...]
    due_share: tuple[float, ...]


class OfSize(Struct, frozen=True):
    """Jobs of a range of GPUs, and how long they waited for their first start."""

    gpus: str
    jobs: int
    avg_wait_s: float
    p50_wait_s: float
    p95_wait_s: float
    p99_wait_s: float
    waits_s: tuple[float, ...]  # least, then each further twentieth of the jobs, up to the longest
    waiting: tuple[float, ...]  # mean number that wait for their first start, over equal parts of the time


class OfCause(Struct, frozen=True):
    """How many jobs wait for one cause, the dominant one of each, by what the cycle says of them."""

    reason: str
    words: str
    waiting: tuple[float, ...]


class Figures(Struct, frozen=True):
    """One trace under one policy."""

    trace: str
    policy: str
    jobs: int
    gpus: int
    finished: int
    cancelled: int  # given up before they ended
    avg_jct_s: float
    p50_jct_s: float
    p95_jct_s: float
    p99_jct_s: float
    makespan_s: float  # from the first submission to the last end
    avg_wait_s: float
    gpu_utilisation: float  # GPU time in use, of all GPU time until the last end
    preemptions: int
    lost_gpu_hours: float
    decisions_per_second: float
    overhead: str
    part_s: float  # length of one part of the time, for `share` and `waiting`
    waiting: tuple[float, ...]  # mean number of jobs that wait
    up: tuple[float, ...]  # mean GPUs of nodes that are up
    stranded: tuple[float, ...]  # mean GPUs that are idle while somebody who waits wants them: scattered, or kept
    stranded_gpu_hours: float
    causes: tuple[OfCause, ...]  # (): the policy gives none
    deadlines_met: int
    deadlines_missed: int
    queues: tuple[OfQueue, ...]
    sizes: tuple[OfSize, ...]
    notes: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether all ended that nobody gave up, so that its averages may be set beside those of others."""
        return 0 < self.finished == self.jobs - self.cancelled


def figures_of(
    schedule: Schedule,
    overhead: str,
    causes: Sequence[OfCause] = (),
    weights: Mapping[str, float] | None = None,
    queues: Sequence[Queue] = (),
    there: Mapping[str, int] | None = None,
    stuck: Mapping[Reason, int] | None = None,
) -> Figures:
    """Of the jobs that ended; shares are of the GPUs of the whole cluster. What is due is by the tree and limits of
    `queues`, with so many GPUs `there` by class, else by `weights`; queues that neither names weigh 1. `stuck` is for
    what reasons jobs wait at the end, and how many."""
    jobs, events = schedule.jobs, schedule.events
    ended = np.isfinite(schedule.end_s)
    used, wanted = events.over_time(events.used), events.over_time(events.wanted)
    weight = np.array([(weights or {}).get(queue, 1.0) for queue in jobs.queues])
    if any(queue.parent or queue.limit or not queue.borrowing for queue in queues):
        due = due_over_time(jobs.queues, wanted, schedule.gpus, queues, there)
    else:
        due = due_shares(weight, wanted, schedule.gpus)
    begin, length = float(events.at_s[0]), float(events.at_s[-1] - events.at_s[0])
    up = events.up if len(events.up) else np.full(len(events.at_s), float(schedule.gpus))
    stranded = events.over_time(events.stranded(up)[:, None])[0]
    edges = np.linspace(begin, begin + length, used.shape[1] + 1)
    met = schedule.deadlines_met
    jct, wait = schedule.jct_s, schedule.wait_s
    return Figures(
        trace=jobs.name,
        policy=schedule.policy,
        jobs=len(jobs),
        gpus=schedule.gpus,
        finished=int(ended.sum()),
        cancelled=int((~ended & np.isfinite(jobs.cancelled_s)).sum()) if len(jobs.cancelled_s) else 0,
        avg_jct_s=_mean(jct[ended]),
        p50_jct_s=_at(jct[ended], 0.5),
        p95_jct_s=_at(jct[ended], 0.95),
        p99_jct_s=_at(jct[ended], 0.99),
        makespan_s=_span(schedule, ended),
        avg_wait_s=_mean(wait[ended]),
        gpu_utilisation=float(used.sum(axis=0).mean() / schedule.gpus) if length else 0.0,
        preemptions=int(schedule.preemptions.sum()),
        lost_gpu_hours=float((schedule.lost_s * jobs.width).sum() / HOUR_S),
        decisions_per_second=len(events.at_s) / schedule.decide_s if schedule.decide_s else 0.0,
        overhead=overhead,
        part_s=length / used.shape[1],
        waiting=_told(events.over_time(events.waiting).sum(axis=0)),
        up=_told(events.over_time(up[:, None])[0]),
        stranded=_told(stranded),
        stranded_gpu_hours=float(stranded.mean() * length / HOUR_S),
        causes=tuple(causes),
        deadlines_met=int((met > 0).sum()),
        deadlines_missed=int((met < 0).sum()),
        queues=tuple(
            _of_queue(schedule, q, ended & (jobs.queue == q), used[q] / schedule.gpus, due[q] / schedule.gpus)
            for q in range(len(jobs.queues))
        ),
        sizes=tuple(one for low, high in SIZES if (one := _of_size(schedule, edges, low, high)).jobs),
        notes=_notes(schedule, int(ended.sum()), stuck or {}),
    )


def _notes(schedule: Schedule, ended: int, stuck: Mapping[Reason, int]) -> tuple[str, ...]:
    jobs = schedule.jobs
    notes, policy = list(jobs.notes), schedule.policy
    if not ended:
        none = "the job did not end" if len(jobs) == 1 else f"none of {len(jobs)} jobs ended"
        notes.append(f"{policy}: {none}; there are no times")
    elif ended < len(jobs):
        notes.append(f"{policy}: {ended} of {len(jobs)} jobs ended; times are of those")
    if stuck:
        many = sum(stuck.values())
        why = ", ".join(f"{count} {reason.name} ({reason.summary})" for reason, count in Counter(stuck).most_common())
        notes.append(f"{policy}: {counted(many, 'job')} {'waits' if many == 1 else 'wait'} at the end: {why}")
    return (*notes, *_too_late(schedule))


def _too_late(schedule: Schedule) -> Iterator[str]:
    """Of the node events of a file those that nothing met; who passes over events of nodes has said so."""
    over_s, events = float(schedule.events.at_s[-1]), schedule.jobs.node_events
    late = [event.where for event in events if event.at_s > over_s and ": row " in event.where]
    if late and len(schedule.events.up):
        come, change = ("comes", "changes") if len(late) == 1 else ("come", "change")
        told = f"{len(late)} of {counted(len(events), 'node event')} {come} after the end, at {over_s:.0f} s"
        yield f"{schedule.policy}: {late[0].partition(': row ')[0]}: {told}, and {change} nothing"


def _of_queue(schedule: Schedule, q: int, mine: NDArray[np.bool_], share: Float, due: Float) -> OfQueue:
    jobs, jct = schedule.jobs, schedule.jct_s[mine]
    return OfQueue(
        queue=jobs.queues[q],
        jobs=int(mine.sum()),
        avg_jct_s=_mean(jct),
        p50_jct_s=_at(jct, 0.5),
        p95_jct_s=_at(jct, 0.95),
        p99_jct_s=_at(jct, 0.99),
        avg_wait_s=_mean(schedule.wait_s[mine]),
        makespan_s=_span(schedule, mine),
        gpu_utilisation=float(share.mean()),
        preemptions=int(schedule.preemptions[jobs.queue == q].sum()),
        lost_gpu_hours=float((schedule.lost_s * jobs.width)[jobs.queue == q].sum() / HOUR_S),
        gpu_hours=float((jobs.service_s * jobs.width)[mine].sum() / HOUR_S),
        share=_told(share),
        due_share=_told(due),
    )


def _span(schedule: Schedule, of: NDArray[np.bool_]) -> float:
    begin = float(schedule.jobs.submit_s.min())
    return float(schedule.end_s[of].max()) - begin if of.any() else nan


def size_name(low: int, high: int) -> str:
    """`1`, `2 to 4`, `17 and more`."""
    return f"{low}" if low == high else f"{low} and more" if high > 10**6 else f"{low} to {high}"


def _of_size(schedule: Schedule, edges: Float, low: int, high: int) -> OfSize:
    """Jobs of so many GPUs that ended; those that did not count among those that wait."""
    jobs = schedule.jobs
    mine = (jobs.width >= low) & (jobs.width <= high)
    wait = np.sort(schedule.wait_s[mine & np.isfinite(schedule.end_s)])
    name = size_name(low, high)
    at = np.minimum((np.linspace(0.0, 1.0, STEPS + 1) * len(wait)).astype(np.int64), len(wait) - 1)
    waits = tuple(round(float(one), 3) for one in wait[at]) if len(wait) else ()
    waiting = _there(jobs.submit_s[mine], schedule.start_s[mine], edges)
    return OfSize(
        name, len(wait), _mean(wait), _at(wait, 0.5), _at(wait, 0.95), _at(wait, 0.99), waits, _told(waiting)
    )  # fmt: skip


def _there(since: Float, until: Float, edges: Float) -> Float:
    """(B,) mean number of those who are there between two edges."""
    stays = np.minimum(until, edges[-1])
    # Time that has been spent by a moment: of each who came before it, until then or until it left.
    came, left = np.sort(since), np.sort(stays)
    spent = _spent(came, edges) - _spent(left, edges)
    length = np.diff(edges)
    there: Float = np.divide(np.diff(spent), length, out=np.zeros(len(length)), where=length > 0)
    return np.maximum(there, 0.0)


def _spent(at: Float, edges: Float) -> Float:
    """(B + 1,) sum of edge - at over those that are before the edge. `at` ascends."""
    counts = np.searchsorted(at, edges)
    spent: Float = counts * edges - np.concatenate([[0.0], np.cumsum(at)])[counts]
    return spent


def _mean(values: Float) -> float:
    return float(values.mean()) if len(values) else nan


def _at(values: Float, part: float) -> float:
    return float(np.sort(values)[int(part * len(values))]) if len(values) else nan


def _told(values: Float) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in values)
