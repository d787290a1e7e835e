"""When will mine start? For each workload that waits, the moments before which its first start lies in one case of
ten, in five, in nine.

The queue is played forward many times from the snapshot (starts_run.py), each time with other run times of those who
run and wait (starts_lasting.py) and others who come (starts_coming.py); how far off earlier answers were corrects the
new ones (starts_hindsight.py). The same snapshot, plan and hindsight give the same answer.
docs/internals/expected-start.md has the whole of it, and what was measured.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from berth.model.history import History
from berth.model.reasons import Answer, Reason, Verdict
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, Workload
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.quota import milli_of
from berth.scheduling.starts_columns import Asked, Rules
from berth.scheduling.starts_coming import coming
from berth.scheduling.starts_field import Field, field_of
from berth.scheduling.starts_lasting import Lasting, common_of, lasting_s, spread
from berth.scheduling.starts_run import run_all
from berth.scheduling.starts_turn import Standing, left_of, ranks_of
from berth.scheduling.tables import Tables

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

SAMPLES = 64
EFFORT = 200_000  # jobs played in all samples together: many that wait have fewer samples
FEWEST_SAMPLES = 12
PLAIN_EFFORT, PLAIN_MOST = 6_000, 1_000  # where loops are not compiled; with more that run and wait nothing is said
COMING = 512  # that come in a sample, at most
DEPTH = 256
CROWD = 128
LEVELS = (0.1, 0.5, 0.9)

# Who waits for somebody to do something has no moment at which its turn comes.
NOT_BY_ITSELF = frozenset({
    Reason.WaitingForOwner, Reason.Gated, Reason.WaitingForVolume, Reason.WaitingForGang, Reason.NodesHeldBack,
})  # fmt: skip


class Start(Struct, frozen=True, gc=False):
    """Of one workload: seconds since the epoch. Infinite where more samples than that never saw it start."""

    p10_s: float
    p50_s: float
    p90_s: float


@dataclass(frozen=True)
class Play:
    """(S, W) the seconds from now at which each that waits starts, infinite where it does not; `waiting` (W,) are
    indexes in the snapshot."""

    waiting: I64
    starts_s: F64

    def levels(self) -> F64:
        """(W, 3) p10, p50, p90 of each, in seconds from now."""
        return quantiles_of(self.starts_s)


def quantiles_of(starts_s: F64) -> F64:
    """(W, 3) of (S, W): between two samples in proportion."""
    samples = len(starts_s)
    ordered = np.sort(starts_s, axis=0)
    found = np.empty((starts_s.shape[1], len(LEVELS)))
    for i, level in enumerate(LEVELS):
        at = level * samples - 0.5
        low = min(max(int(at), 0), samples - 1)
        high = min(low + 1, samples - 1)
        part = min(max(at - low, 0.0), 1.0)
        with np.errstate(invalid="ignore"):
            between = ordered[low] + part * (ordered[high] - ordered[low])
        found[:, i] = np.where(np.isfinite(ordered[high]), between, np.where(part < 0.5, ordered[low], np.inf))
    return found


def play(snapshot: Snapshot, plan: Plan, policy: Policy | None = None, cache: Tables | None = None) -> Play:
    """Play the queue forward from the moment at which the plan is carried out."""
    policy = policy or Policy()
    able = able_to_start(snapshot, plan)
    if not able:
        return Play(np.zeros(0, np.int64), np.zeros((1, 0)))
    field = field_of(snapshot, plan, able, cache or Tables())
    waits, runs = len(field.waiting), field.runs
    history = snapshot.history
    known = history if history is not None and history.queues else None
    most = min(COMING, 4 * (runs + waits)) if known is not None else 0
    samples = _samples(runs + waits, most)
    if not samples:
        return Play(np.zeros(0, np.int64), np.zeros((1, 0)))
    rng = np.random.Generator(np.random.PCG64(_seed(snapshot)))
    at_s, came = coming(known, snapshot.now_s, samples, most, rng)
    rows = history.rows_of(field.identities) if history is not None else np.full(runs + waits, -1)
    limit = field.asked.limit_s.copy()
    limit[:runs] += field.attained_s[:runs]  # from the start again
    there = Lasting(field.asked.milli // WHOLE, rows, field.attained_s, limit)
    common = common_of(samples, rng)
    runs_s = lasting_s(there, history, spread(samples, runs + waits, rng, common))
    runs_s[:, :runs] = np.minimum(runs_s[:, :runs], field.leaves_s)
    asked, row = field.asked, np.tile(np.arange(runs + waits), (samples, 1))
    node_gpus = max(field.ground.levels * field.unit // WHOLE, 1)
    if policy.least_left:
        asked = asked._replace(rank=_ranks(field, rows, snapshot, node_gpus, policy.aging))
    if history is not None and came.shape[1]:
        kinds, which = np.unique(came, return_inverse=True)
        more = _of_history(kinds, history, field)
        if policy.least_left:
            nothing = np.zeros(len(kinds))
            fresh = Standing(kinds, history.width[kinds], nothing, nothing, more.limit_s)
            more = more._replace(rank=ranks_of(fresh, history, node_gpus, policy.aging))
        asked = _with(asked, more)
        row = np.hstack([row, runs + waits + which.reshape(came.shape)])
        runs_s = np.hstack([runs_s, _lasted(came, history, common, rng)])
    rules = Rules(
        depth=DEPTH, crowd=CROWD, searches=policy.reservation_searches if policy.reservations else 0, pops=4096,
        overrun_s=policy.overrun_s, steps=16 * (runs + waits + at_s.shape[1]),
    )  # fmt: skip
    starts = np.full((samples, waits), np.inf)
    run_all(field.ground, field.tree, asked, rules, row, at_s, runs_s, waits, starts)
    return Play(field.waiting, starts)


def _ranks(field: Field, rows: I64, snapshot: Snapshot, node_gpus: int, aging: float) -> F64:
    """(R + W,) of those that run, whose place in the line is of no matter, and those that wait."""
    history, workloads = snapshot.history, [snapshot.workloads[w] for w in field.waiting.tolist()]
    age = snapshot.now_s - np.array([w.created_s for w in workloads])
    row, limit = rows[field.runs :], field.asked.limit_s[field.runs :]
    attained = np.where(row >= 0, history.attained_s[row], 0.0) if history is not None and len(history) else 0.0 * age
    gpus = field.asked.milli[field.runs :] // WHOLE
    left = left_of(field.identities[field.runs :], snapshot.left)
    ranks = ranks_of(Standing(row, gpus, age, attained, limit), history, node_gpus, aging, left)
    return np.concatenate([np.zeros(field.runs), ranks])


def _samples(jobs: int, come: int) -> int:
    """As many as can be played in a moment."""
    if hasattr(run_all, "py_func"):
        return min(max(EFFORT // (jobs + come), FEWEST_SAMPLES), SAMPLES)
    return 0 if jobs > PLAIN_MOST else min(max(PLAIN_EFFORT // (jobs + come), FEWEST_SAMPLES // 2), SAMPLES)


def able_to_start(snapshot: Snapshot, plan: Plan) -> list[int]:
    """Indexes of those that the plan leaves waiting for nothing but their turn and room, and that ask for GPUs."""
    placed = set(plan.placed.tolist())
    has_begun = {a.workload_identity for a in snapshot.allocations}  # the rest of a gang waits: it has had its start
    return [
        w
        for w, workload in enumerate(snapshot.workloads)
        if w not in placed
        and _can_come(workload, plan.verdicts.get(w))
        and milli_of(workload, minimum=True)
        and not workload.has_begun
        and workload.identity not in has_begun
    ]


def _can_come(workload: Workload, verdict: Verdict | None) -> bool:
    if workload.gates or workload.unmet or workload.missing_pods:
        return False
    return verdict is None or (verdict.answer is not Answer.Never and verdict.reason not in NOT_BY_ITSELF)


def _seed(snapshot: Snapshot) -> int:
    """The same for the same snapshot, and a moment later: who asks again gets no other draw."""
    names = "\n".join(w.identity for w in snapshot.workloads[:64])
    return zlib.crc32(f"{len(snapshot.allocations)} {len(snapshot.workloads)} {names}".encode())


def _of_history(kinds: I64, history: History, field: Field) -> Asked:
    """What those asked for that came before. Of how many pods they were made nobody knows: of as few as nodes allow."""
    per_node = max(field.ground.levels, 1)
    units = np.maximum(history.width[kinds] * WHOLE // field.unit, 1)
    number = history.queue[kinds]
    queue = np.array([field.leaf_of[name] for name in history.queues], np.int64)[number]
    limit = history.limit_s[kinds] if len(history.limit_s) else np.zeros(len(kinds))
    return Asked(
        leaf=queue,
        milli=history.width[kinds] * WHOLE,
        priority=history.priority[kinds] if len(history.priority) else np.zeros(len(kinds), np.int64),
        pods_a=np.where(units >= per_node, units // per_node, 1),
        units_a=np.minimum(units, per_node),
        pods_b=np.where((units > per_node) & (units % per_node > 0), 1, 0),
        units_b=np.where(units % per_node > 0, units % per_node, 1),
        pools=np.full(len(kinds), field.everywhere, np.int64),
        limit_s=np.where(limit > 0, limit, np.inf),
        rank=np.zeros(len(kinds)),
    )


def _with(asked: Asked, more: Asked) -> Asked:
    return Asked(*(np.concatenate([one, other]) for one, other in zip(asked, more, strict=True)))


def _lasted(came: I64, history: History, common: F64, rng: np.random.Generator) -> F64:
    """(S, C) how long each runs that comes again: as long as it did, or would, where it has not ended."""
    kinds, which = np.unique(came, return_inverse=True)
    attained = history.attained_s[kinds]
    limit = history.limit_s[kinds] if len(history.limit_s) else np.zeros(len(kinds))
    going = ~history.has_ended[kinds]
    table = np.tile(attained, (len(came), 1))
    if going.any():
        some = kinds[going]
        limits = np.where(limit[going] > 0, limit[going], np.inf)
        asked = Lasting(history.width[some], some, attained[going], limits)
        table[:, going] += lasting_s(asked, history, spread(len(came), len(some), rng, common))
    return np.take_along_axis(table, which.reshape(came.shape), axis=1)


def starts_of(found: F64, play: Play, now_s: float) -> Mapping[int, Start]:
    """By index in the snapshot, of (W, 3) seconds from now; those of whom no sample saw a start are left out."""
    return {
        w: Start(*(now_s + s for s in some))
        for w, some in zip(play.waiting.tolist(), found.tolist(), strict=True)
        if np.isfinite(some[1])
    }
