"""A queue played forward: who of those that wait starts when, if everybody runs as long as one sample says.

Whole pods on nodes with counted GPUs, the order of queues, limits, and one place in time (reservation.py) at each
moment at which somebody ends or comes. Nothing else of a cycle is in it; starts_plain.py says the same slowly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from berth.base.staleness import forget_stale
from berth.scheduling import starts_room
from berth.scheduling.kernels import compiled
from berth.scheduling.starts_columns import F64, I64, Asked, Ground, Rules, Tree
from berth.scheduling.starts_room import (
    Heap,
    Place,
    Pods,
    Room,
    forget,
    give_back,
    link,
    pop,
    push,
    put,
    put_before,
    reserve,
    set_node,
    widest_of,
)


@compiled
def run_all(
    ground: Ground, tree: Tree, asked: Asked, rules: Rules, row: I64, at_s: F64, runs_s: F64, waits: int,
    start_s: F64,
) -> None:  # fmt: skip
    """Fills start_s (S, W): one sample after another.

    row (S, J) row of `asked`; runs_s (S, J) how long each still runs, or will; at_s (S, C) when those that come do,
    ascending, infinite past the last. Those that wait are J = R .. R + waits.
    """
    for s in range(len(row)):
        _run(ground, tree, asked, rules, row[s], at_s[s], runs_s[s], waits, start_s[s])


class _Lines(NamedTuple):
    """Who stands in line: head, tail (Q,) of each leaf, before, after (J,); candidate, passed (Q,): of a walk through
    all lines at once, who is next of each queue, and the milli before it."""

    head: I64
    tail: I64
    before: I64
    after: I64
    candidate: I64
    passed: I64


@compiled
def _join(lines: _Lines, asked: Asked, row: I64, j: int) -> None:
    """Behind all of its line that have more priority, or as much and no higher rank."""
    q, mine, rank = asked.leaf[row[j]], asked.priority[row[j]], asked.rank[row[j]]
    at = lines.tail[q]
    while at >= 0 and (
        asked.priority[row[at]] < mine or (asked.priority[row[at]] == mine and asked.rank[row[at]] > rank)
    ):
        at = lines.before[at]
    after = lines.head[q] if at < 0 else lines.after[at]
    lines.before[j], lines.after[j] = at, after
    if at < 0:
        lines.head[q] = j
    else:
        lines.after[at] = j
    if after < 0:
        lines.tail[q] = j
    else:
        lines.before[after] = j


@compiled
def _leave(lines: _Lines, q: int, j: int) -> None:
    before, after = lines.before[j], lines.after[j]
    if before < 0:
        lines.head[q] = after
    else:
        lines.after[before] = after
    if after < 0:
        lines.tail[q] = before
    else:
        lines.before[after] = before


@compiled
def _next_of(lines: _Lines, tree: Tree, held: I64, asked: Asked, row: I64, q: int) -> int:
    """Who is next of a queue that has children: by virtual time, then priority, rank and who came first."""
    best, best_time, best_priority, best_rank = -1, np.inf, 0, 0.0
    for i in range(tree.first_child[q], tree.first_child[q + 1]):
        c = tree.child[i]
        j = lines.candidate[c]
        if j < 0:
            continue
        virtual = max(held[c] + lines.passed[c] + asked.milli[row[j]] - tree.base[c], 0.0) / tree.weight[c]
        priority, rank = asked.priority[row[j]], asked.rank[row[j]]
        if best >= 0 and virtual == best_time:
            if priority != best_priority:
                is_next = priority > best_priority
            else:
                is_next = rank < best_rank or (rank == best_rank and j < best)
        else:
            is_next = best < 0 or virtual < best_time
        if is_next:
            best, best_time, best_priority, best_rank = j, virtual, priority, rank
    return best


@compiled
def _begin(lines: _Lines, tree: Tree, held: I64, asked: Asked, row: I64) -> None:
    for q in range(len(tree.parent) - 1, -1, -1):
        lines.passed[q] = 0
        is_leaf = tree.first_child[q] == tree.first_child[q + 1]
        lines.candidate[q] = lines.head[q] if is_leaf else _next_of(lines, tree, held, asked, row, q)


@compiled
def _step_past(lines: _Lines, tree: Tree, held: I64, asked: Asked, row: I64, j: int) -> None:
    q = asked.leaf[row[j]]
    lines.candidate[q] = lines.after[j]
    if len(tree.parent) == 2:  # one queue: its line
        lines.candidate[0] = lines.after[j]
        return
    while q >= 0:
        lines.passed[q] += asked.milli[row[j]]
        q = tree.parent[q]
        if q >= 0:
            lines.candidate[q] = _next_of(lines, tree, held, asked, row, q)


@compiled
def _over_limit(tree: Tree, held: I64, q: int, milli: int) -> bool:
    while q >= 0:
        if held[q] + milli > tree.limit[q]:
            return True
        q = tree.parent[q]
    return False


@compiled
def _book(tree: Tree, held: I64, q: int, milli: int) -> None:
    while q >= 0:
        held[q] += milli
        q = tree.parent[q]


@compiled
def _run(
    ground: Ground, tree: Tree, asked: Asked, rules: Rules, row: I64, at_s: F64, runs_s: F64, waits: int,
    start_s: F64,
) -> None:  # fmt: skip
    nodes, runs, jobs = len(ground.free), len(ground.first) - 1, len(row)
    most_pods = len(ground.node)
    for j in range(runs, jobs):
        most_pods += asked.pods_a[row[j]] + asked.pods_b[row[j]]
    room = Room(
        ground.free.copy(), np.zeros(nodes, np.int64), np.full(nodes, -1), np.full(nodes, -1),
        np.full((ground.pools, ground.levels + 1), -1), np.zeros((ground.pools, ground.levels + 1), np.int64),
        ground.pool, np.array([ground.free.sum()]),
    )  # fmt: skip
    for n in range(nodes - 1, -1, -1):
        link(room, n)
    pods = Pods(
        np.full(jobs, -1), np.full(most_pods, -1), np.zeros(most_pods, np.int64), np.zeros(most_pods, np.int64),
        np.zeros(1, np.int64),
    )  # fmt: skip
    heap = Heap(np.empty(jobs), np.empty(jobs, np.int64), np.zeros(1, np.int64))
    ends = Heap(np.empty(jobs + 1), np.empty(jobs + 1, np.int64), np.zeros(1, np.int64))
    popped = Heap(np.empty(rules.pops + 1), np.empty(rules.pops + 1, np.int64), np.zeros(1, np.int64))
    place = Place(
        np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes + 1, np.int64), np.zeros(1, np.float64)
    )
    lift, touched = np.zeros(nodes, np.int64), np.zeros(nodes + 1, np.int64)
    gone, began, due = np.zeros(jobs, np.bool_), np.zeros(jobs), np.full(jobs, np.inf)
    began[:runs] = -ground.ran_s
    queues = len(tree.parent)
    lines = _Lines(
        np.full(queues, -1), np.full(queues, -1), np.full(jobs, -1), np.full(jobs, -1), np.full(queues, -1),
        np.zeros(queues, np.int64),
    )  # fmt: skip
    held = tree.held.copy()
    for j in range(runs):
        for i in range(ground.first[j], ground.first[j + 1]):
            e = pods.used[0]
            pods.node[e], pods.units[e], pods.next[e] = ground.node[i], ground.units[i], pods.first[j]
            pods.first[j] = e
            pods.used[0] += 1
        push(heap, runs_s[j], j)
        due[j] = asked.limit_s[row[j]]
        if due[j] < np.inf:
            push(ends, due[j], j)
    start_s[:] = np.inf
    for i in np.argsort(asked.rank[row[runs : runs + waits]], kind="mergesort"):  # so that each joins at the end
        _join(lines, asked, row, runs + i)
    left, comes, changes = waits, 0, 0
    for _ in range(rules.steps):
        next_end = heap.at[0] if heap.size[0] > 0 else np.inf
        next_comes = at_s[comes] if comes < len(at_s) else np.inf
        now = min(next_end, next_comes)
        if left == 0 or now == np.inf:
            return
        while heap.size[0] > 0 and heap.at[0] <= now:
            j = heap.who[0]
            pop(heap)
            changes += 1
            gone[j] = True
            e = pods.first[j]
            while e >= 0:
                set_node(room, pods.node[e], room.free[pods.node[e]] + pods.units[e], 0)
                e = pods.next[e]
            _book(tree, held, asked.leaf[row[j]], -asked.milli[row[j]])
        while comes < len(at_s) and at_s[comes] <= now:
            _join(lines, asked, row, runs + waits + comes)
            comes += 1
            changes += 1
        if room.idle[0] == 0 or changes <= heap.size[0] // rules.crowd:
            continue
        changes = 0
        while ends.size[0] > 0 and gone[ends.who[0]]:
            pop(ends)
        _begin(lines, tree, held, asked, row)
        booked = held.copy()  # the order is that of the moment at which it begins
        in_vain, looked = 0, 0
        widest = widest_of(room)
        visible = widest
        while lines.candidate[0] >= 0 and looked < rules.depth and room.idle[0] > 0:
            j = lines.candidate[0]
            looked += 1
            r = row[j]
            q = asked.leaf[r]
            _step_past(lines, tree, booked, asked, row, j)
            if _over_limit(tree, held, q, asked.milli[r]):
                continue
            has_ended = place.nodes[0] > 0 and now + asked.limit_s[r] <= place.at_s[0]
            placed = asked.units_a[r] <= visible and put(room, pods, asked, j, r)
            if not placed and has_ended and asked.units_a[r] <= widest:
                placed = put_before(room, place, pods, asked, j, r)
            if placed:
                _leave(lines, q, j)
                _book(tree, held, q, asked.milli[r])
                began[j] = now
                push(heap, now + runs_s[j], j)
                due[j] = now + asked.limit_s[r]
                if due[j] < np.inf:
                    push(ends, due[j], j)
                if j < runs + waits:
                    start_s[j - runs] = now
                    left -= 1
            elif place.nodes[0] == 0 and in_vain < rules.searches and ends.size[0] > 0:
                if not reserve(room, place, pods, ends, popped, gone, lift, touched, asked, r, now, rules, began, due):
                    in_vain += 1
                visible = widest_of(room)
        give_back(room, place)
        forget(place)


for _kernel in (run_all, _run):
    forget_stale(_kernel, starts_room)
