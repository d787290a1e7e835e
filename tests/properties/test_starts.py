"""A queue played forward: the compiled loop equals its plain definition, and keeps what it promises. Hindsight: nothing
that is not known yet has a part in an answer, and so many answers are right in the long run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.model.jobs import Jobs
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.starts_columns import Asked, Ground, Rules, Tree
from berth.scheduling.starts_hindsight import Record, corrected
from berth.scheduling.starts_plain import Queue
from berth.scheduling.starts_run import run_all
from berth.scheduling.tables import Tables
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import steps
from berth.simulation.queueing.forecasts import Forecasting
from berth.simulation.queueing.schedule import Overhead

NODE_UNITS = 8
QUEUES = 4  # the root, one queue with two below it, one alone


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes, runs = draw(st.integers(1, 4)), draw(st.integers(0, 6))
    waits, comes = draw(st.integers(1, 10)), draw(st.integers(0, 6))
    one_queue, has_limits = draw(st.booleans()), draw(st.booleans())
    free, held = np.full(nodes, NODE_UNITS), []
    for _ in range(runs):
        pods = []
        for n in rng.permutation(nodes)[: rng.integers(1, nodes + 1)].tolist():
            units = int(rng.integers(1, 5))
            if free[n] >= units:
                free[n] -= units
                pods.append((n, units))
        held.append(pods)
    flat = [pod for pods in held for pod in pods]
    ground = Ground(
        free=free.astype(np.int64), pool=np.arange(nodes) % 2, levels=NODE_UNITS, pools=2,
        first=np.cumsum([0, *(len(pods) for pods in held)]), node=np.array([n for n, _ in flat], np.int64),
        units=np.array([u for _, u in flat], np.int64), ran_s=rng.integers(0, 50, runs).astype(float),
    )  # fmt: skip
    if one_queue:
        parent, first, child, leaves = [-1, 0], [0, 1, 1], [1], [1]
    else:
        parent, first, child, leaves = [-1, 0, 0, 1, 1], [0, 2, 4, 4, 4, 4], [1, 2, 3, 4], [2, 3, 4]
    count = runs + waits + comes
    width = rng.choice([1, 2, 4, 8, 16], count)
    leaf = rng.choice(leaves, count)
    milli_held = np.zeros(len(parent), np.int64)
    milli = np.array([1000 * sum(u for _, u in held[j]) if j < runs else 1000 * width[j] for j in range(count)])
    for j in range(runs):
        q = int(leaf[j])
        while q >= 0:
            milli_held[q] += milli[j]
            q = parent[q]
    tree = Tree(
        np.array(parent), np.array(first), np.array(child), rng.choice([1.0, 2.0, 3.0], len(parent)),
        rng.choice([0.0, 4000.0], len(parent)), milli_held,
        np.where(rng.random(len(parent)) < 0.2, 12_000, 2**62) if draw(st.booleans()) else np.full(len(parent), 2**62),
    )  # fmt: skip
    lasts = rng.integers(1, 60, count) + rng.random(count)
    factor = rng.choice([0.5, 1.0, 2.0, 5.0], count)  # limits that are passed, too
    unlimited = (rng.random(count) < 0.3) | (not has_limits)
    asked = Asked(
        leaf=leaf, milli=milli, priority=rng.choice([0, 0, 5], count), pods_a=np.maximum(width // 8, 1),
        units_a=np.minimum(width, 8), pods_b=rng.choice([0, 0, 1], count), units_b=np.minimum(width, 2),
        pools=rng.choice([1, 2, 3, 3], count), limit_s=np.where(unlimited, np.inf, lasts * factor),
        rank=rng.choice([0.0, 1.0, 2.5], count) if draw(st.booleans()) else np.zeros(count),
    )  # fmt: skip
    at_s = np.sort(rng.integers(0, 100, comes)).astype(float)
    return ground, tree, asked, np.arange(count), at_s, lasts, waits


def rules(crowd=1000, depth=100):
    return Rules(depth=depth, crowd=crowd, searches=8, pops=1000, overrun_s=10.0, steps=2000)


def compiled_starts(case, some_rules):
    ground, tree, asked, row, at_s, lasts, waits = case
    starts = np.full((1, waits), np.nan)
    run_all(ground, tree, asked, some_rules, row[None], at_s[None], lasts[None], waits, starts)
    return starts[0].tolist()


@given(cases(), st.sampled_from([1, 2, 1000]), st.sampled_from([3, 100]))
@settings(max_examples=150, deadline=None)
def test_the_compiled_loop_equals_its_plain_definition(case, crowd, depth):
    ground, tree, asked, row, at_s, lasts, waits = case
    some = rules(crowd, depth)
    plain = Queue(ground, tree, asked, some, row, at_s, lasts).play(waits)
    assert compiled_starts(case, some) == plain


@given(cases())
@settings(max_examples=60, deadline=None)
def test_nothing_is_given_out_twice(case):
    ground, tree, asked, row, at_s, lasts, waits = case
    queue = Queue(ground, tree, asked, rules(), row, at_s, lasts)
    queue.play(waits)
    held = [0] * len(queue.nodes)
    for number in queue.ends:
        for n, units in queue.jobs[number].pods:
            held[n] += units
    size = ground.free.copy()
    np.add.at(size, ground.node, ground.units)
    assert [node.free + there for node, there in zip(queue.nodes, held, strict=True)] == size.tolist()
    assert all(node.free >= 0 and node.kept == 0 for node in queue.nodes)


# ---- nothing of what is to come


def line_of(rng: np.random.Generator, count: int) -> Jobs:
    """Jobs that mostly have to wait on a node of four GPUs, with limits that are mostly too long."""
    lasts, zeros = rng.uniform(60, 2000, count), np.zeros(count, np.int64)
    return Jobs(
        name="line", names=tuple(f"j{i}" for i in range(count)), submit_s=np.cumsum(rng.exponential(300, count)),
        service_s=lasts, limit_s=lasts * rng.choice([1.0, 2.0, 5.0], count), restart_s=np.zeros(count),
        width=rng.choice([1, 2, 4], count), pod_gpus=zeros, priority=zeros, queue=zeros, owner=zeros,
        gpu_class=zeros - 1,
    )  # fmt: skip


def forecasts_of(jobs: Jobs, until_s: float):
    """All that was told up to that moment, and when each job starts and ends in the end."""
    policy, tables = Policy(explains=False), Tables()
    watching = Forecasting(lambda snapshot: cycle(snapshot, policy, tables), policy, 1)
    for state in steps(jobs, like_nodes(1, 4), Overhead.Nothing, watching.decide):
        watching.look(state)
    return [one for one in watching.made if one.at_s <= until_s], state.start_s, state.end_s


@given(st.integers(0, 2**32 - 1), st.floats(0.3, 0.9))
@settings(max_examples=12, deadline=None)
def test_what_has_not_happened_yet_has_no_part_in_an_answer(seed, part):
    """Other jobs come from some moment on, and who has not ended then runs longer or shorter, within its limit: all
    answers until then are the same."""
    rng = np.random.default_rng(seed)
    jobs = line_of(rng, 40)
    until_s = float(jobs.submit_s[int(part * 39)])
    before, start, end = forecasts_of(jobs, until_s)
    left = np.where(start <= until_s, until_s - start, 0.0)
    other = np.where(end > until_s, rng.uniform(left + 1, np.maximum(jobs.limit_s, left + 2)), jobs.service_s)
    later = np.cumsum(rng.exponential(100, 40)) + until_s + 1
    changed = replace(jobs, service_s=other, submit_s=np.where(jobs.submit_s > until_s, later, jobs.submit_s))
    assert forecasts_of(changed, until_s)[0] == before
    assert not (other == jobs.service_s).all()


@given(st.integers(0, 2**32 - 1), st.floats(0.25, 0.9), st.sampled_from([1, 10]))
@settings(max_examples=20, deadline=None)
def test_four_of_five_are_right_in_the_long_run_however_sure_the_model_is(seed, spread, asked_ahead):
    """Waits are off by more and more, or less and less, and the model does not know; answers are asked for before it is
    known what came of the last ones."""
    rng = np.random.default_rng(seed)
    record, right, now = Record(), [], 0.0
    drift = np.exp(np.linspace(-0.2, 0.2, 800) * rng.choice([-1, 1]))
    told_of: list[tuple[str, float, tuple[float, ...]]] = []
    for i in range(800):
        now += 10_000.0
        said = 3600.0 * np.exp(np.array([-0.3, 0.0, 0.3]))
        told = corrected(said[None], np.array([4]), record.hindsight(now))[0]
        record.note(f"j{i}", 4, now, tuple(said.tolist()), tuple(told.tolist()))
        told_of.append((f"j{i}", now, tuple(told.tolist())))
        if len(told_of) < asked_ahead:
            continue
        started = {}
        for name, at, levels in told_of:
            waited = 3660.0 * np.exp(spread * drift[i] * rng.normal()) - 60.0
            started[name] = at + max(waited, 0.0)
            right.append(levels[0] <= max(waited, 0.0) <= levels[2])
        told_of = []
        record.settle({}, started, now)
    assert 0.75 < np.mean(right) < 0.85
