"""The compiled loops that clear room compute what trying everything says."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from berth.scheduling import clearing, kernels
from berth.scheduling.clearing import NEVER

often = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
GPU, POOL = 3, 3  # cpu, memory, pods, devices
NEED = np.array([[1, 0, 1, 1], [2, 1, 1, 2], [3, 0, 1, 0], [0, 0, 1, 0]], np.int64)
ASK = np.array([[GPU, 1, 1000, 0], [GPU, 2, 1000, 0], [-1, 0, 1000, 0], [GPU, 1, 500, 0]], np.int32)


@st.composite
def hosts(draw):
    """A node with pods on it, the dearest first: (kind, mask, price), what is left, and who comes."""
    devices = draw(st.integers(1, 5))
    left = np.full(devices, 1000, np.int32)
    free = np.array([draw(st.integers(0, 4)), draw(st.integers(0, 2)), 9, 0], np.int64)
    pods = []
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(st.integers(0, 3))
        asked, milli = int(ASK[kind, 1]), int(ASK[kind, 2])
        able = [g for g in range(devices) if left[g] >= milli]
        if asked > len(able):
            continue
        mask = 0
        for g in able[:asked]:
            left[g] -= milli
            mask |= 1 << g
        pods.append((kind, mask, draw(st.integers(1, 9))))
    free[GPU] = int((left == 1000).sum())
    pods.sort(key=lambda p: -p[2])
    comes = draw(st.sampled_from([0, 1, 2]))
    return pods, free, left, comes, draw(st.integers(1, 3))


def fits_without(gone, pods, free, left, comes):
    """Copies of who comes that fit once these pods have left."""
    free, left = free.copy(), left.copy()
    for p in gone:
        kind, mask, _ = pods[p]
        kernels.take(-1, mask, NEED[kind], ASK[kind], free, left, POOL)
    islands = np.full(len(left), -1, np.int32)
    return kernels.put_what_fits(99, NEED[comes], ASK[comes], free, left, islands, POOL)


def released(host, steps):
    pods, free, left, comes, copies = host
    kind, mask, price = (np.array([p[i] for p in pods], np.int64) for i in range(3))
    gone = np.zeros(len(pods), bool)
    islands = np.full(len(left), -1, np.int32)
    cost = clearing.release_least(
        NEED[comes], ASK[comes], copies, steps, 0, len(pods), kind, mask, price, np.zeros(len(pods), bool), NEED, ASK,
        free, left, islands, POOL, gone,
    )  # fmt: skip
    return cost, np.flatnonzero(gone).tolist()


@often
@given(host=hosts())
def test_the_cheapest_pods_of_a_node_leave(host):
    pods, free, left, comes, copies = host
    able = [
        (sum(pods[p][2] for p in some), some)
        for size in range(len(pods) + 1)
        for some in combinations(range(len(pods)), size)
        if fits_without(some, pods, free, left, comes) >= copies
    ]
    cost, gone = released(host, steps=10_000)
    event("can be" if able else "cannot be")
    if not able:
        assert cost == NEVER
        return
    assert cost == min(able)[0] == sum(pods[p][2] for p in gone)
    assert fits_without(gone, pods, free, left, comes) >= copies


@often
@given(host=hosts())
def test_without_steps_nobody_leaves_who_could_stay(host):
    pods, free, left, comes, copies = host
    cost, gone = released(host, steps=0)
    if cost == NEVER:
        return
    assert fits_without(gone, pods, free, left, comes) >= copies
    assert cost == sum(pods[p][2] for p in gone)
    for p in gone:
        assert fits_without([q for q in gone if q != p], pods, free, left, comes) < copies
    if len({kind for kind, _, _ in pods}) == 1 and all(ASK[kind, 2] == 1000 for kind, _, _ in pods):
        assert cost == released(host, steps=10_000)[0], "of pods that are alike it is the cheapest at once"


@st.composite
def tables(draw, convex=False):
    """(nodes, copies + 1) costs, rising; NEVER from somewhere on."""
    most = draw(st.integers(1, 4))
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        steps = [draw(st.integers(0, 6)) for _ in range(most)]
        steps = sorted(steps) if convex else steps
        fit = draw(st.integers(0, most))
        row = np.append(0, np.cumsum(steps))
        row[fit + 1 :] = NEVER
        rows.append(row)
    return np.array(rows, np.int64)


def cheapest(cost, need):
    found = [
        sum(int(cost[i, c]) for i, c in enumerate(counts))
        for counts in product(range(cost.shape[1]), repeat=len(cost))
        if sum(counts) == need and all(cost[i, c] < NEVER for i, c in enumerate(counts))
    ]
    return min(found, default=NEVER)


def by_steps(cost):
    room = cost.size
    node, size, extra = (np.zeros(room, np.int64) for _ in range(3))
    slope = np.zeros(room)
    count = clearing.steps_of(cost, node, size, extra, slope)
    return node[:count], size[:count], extra[:count], np.argsort(slope[:count], kind="stable")


@often
@given(cost=tables(), need=st.integers(1, 8))
def test_copies_are_dealt_where_they_cost_least(cost, need):
    counts = np.zeros(len(cost), np.int64)
    total = clearing.deal(cost, need, counts)
    assert total == cheapest(cost, need)
    if total < NEVER:
        assert counts.sum() == need and total == sum(int(cost[i, c]) for i, c in enumerate(counts.tolist()))


@often
@given(cost=tables(convex=True), need=st.integers(1, 8))
def test_by_steps_is_exact_where_costs_are_convex(cost, need):
    node, size, _, order = by_steps(cost)
    counts = np.zeros(len(cost), np.int64)
    total = clearing.deal_by_steps(cost, need, order, node, size, counts)
    assert total == cheapest(cost, need)
    assert total == NEVER or counts.sum() == need


@often
@given(cost=tables(), need=st.integers(1, 8), domain=st.lists(st.integers(-1, 1), min_size=4, max_size=4))
def test_steps_deal_well_and_never_promise_too_little(cost, need, domain):
    node, size, extra, order = by_steps(cost)
    counts = np.zeros(len(cost), np.int64)
    total = clearing.deal_by_steps(cost, need, order, node, size, counts)
    best = cheapest(cost, need)
    assert (total == NEVER) == (best == NEVER) and total >= best
    if total < NEVER:
        assert counts.sum() == need and total == sum(int(cost[i, c]) for i, c in enumerate(counts.tolist()))
    where = np.array(domain[: len(cost)])
    least = np.zeros(2, np.int64)
    clearing.cost_by_domain(need, order, where[node], size, extra, least)
    for d in range(2):
        inside = cost[where == d]
        best = cheapest(inside, need) if len(inside) else NEVER
        assert (least[d] == NEVER) == (best == NEVER) and least[d] <= best, "a bound from below"
