"""What would let a workload start that somebody asks about: proven by deciding again as if it were so.

1 moves    pods that leave a node for others, so that the one pod that lacks fits there
2 release  the fewest GPUs, node by node, that complete the pods that lack: pod by pod, the hardest first, each where
           least has to come free for it. Of pods of one size that is the least there is, of others it is enough

Each is proven by a cycle of the same snapshot with the pods moved, or so many GPUs given back by who holds them and
nothing else of theirs. What is not proven is not said. A cycle never asks this; who waits there is told arithmetic
(release.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.model.cluster import Allocation
from berth.model.reasons import Answer, Block, Cause, Verdict
from berth.model.resources import get
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, PodSet, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.explain import FOR_GPUS
from berth.scheduling.moves import Freed, nodes_to_free, told
from berth.scheduling.policy import Policy
from berth.scheduling.question import Question, narrowest_level, node_idle, question_on
from berth.scheduling.release import releasable
from berth.scheduling.round import Round
from berth.scheduling.tables import Tables
from berth.scheduling.wishes import set_wishes, whole_level
from berth.scheduling.wording import amount, resource_of

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

MOST_ASKED = 8  # workloads of one question
MOST_PROOFS = 3  # cycles for each kind of answer
MOST_DOMAINS = 64  # looked at, those with most free first
MOST_PODS = 512
MOST_NAMED = 6  # nodes in one line


@dataclass(frozen=True)
class _Asked:
    """The question, and what proves an answer to it."""

    snapshot: Snapshot
    policy: Policy
    tables: Tables
    now: Round

    def starts(self, w: int, allocations: Sequence[Allocation], moved: Sequence[Workload] = ()) -> bool:
        """The workload starts, were these the pods that run, and beside it all that move have a place."""
        then = replace(self.snapshot, allocations=tuple(allocations))
        plan = cycle(then, self.policy, self.tables)
        if w not in plan.placed.tolist():
            return False
        if not moved:
            return True
        put = [
            Allocation(
                bind.node.name, bind.workload.namespace, f"{bind.workload.name}-{i}",
                bind.workload.pod_sets[bind.pod_set].pod_class, bind.workload.pod_sets[bind.pod_set].labels,
                queue=bind.workload.queue, devices=bind.devices if bind.node.named_devices else (),
            )
            for i, bind in enumerate(plan.binds())
        ]  # fmt: skip
        after = replace(then, allocations=(*then.allocations, *put), workloads=tuple(moved))
        return len(cycle(after, self.policy, self.tables).placed) == len(moved)


def proven(asked: Snapshot, verdicts: Mapping[int, Verdict], policy: Policy, tables: Tables) -> dict[int, Verdict]:
    """The verdicts on those that wait for GPUs, with what was proven to let them start and no more.

    `tables` are brought up to other snapshots by it.
    """
    waits = [w for w, v in verdicts.items() if v.answer is Answer.NotYet and v.reason in FOR_GPUS]
    policy = replace(policy, evicts=False, explains=False)
    found: dict[int, Verdict] = {}
    for w in waits[:MOST_ASKED]:
        question = _Asked(asked, policy, tables, Round.of(asked, policy, tables))
        first, *others = verdicts[w].causes
        found[w] = replace(verdicts[w], causes=(_with_proven(first, w, question), *others))
    return found


def _with_proven(cause: Cause, w: int, asked: _Asked) -> Cause:
    questions = _questions(w, asked.now)
    moves, released = _moves(w, questions, asked), _released(w, questions, asked)
    lines = list(moves)
    if released is None:
        lines += [line for line in cause.unlock if not line.startswith("moving ")]  # arithmetic alone
    elif released:
        lines.append(next((line for line in cause.unlock if _is_plain(line, asked)), released))
    elif not lines:
        lines += [line for line in cause.unlock if line.startswith("room for ")]
    return replace(cause, unlock=tuple(lines))


def _is_plain(line: str, asked: _Asked) -> bool:
    """`2 more GPUs released`, wherever they are: more than one proof could tell."""
    return " released" in line and line.rpartition(" on ")[2] not in asked.now.draft.columns.index


def _questions(w: int, now: Round) -> list[Question]:
    workload, everywhere = now.workloads[w], np.ones(now.draft.columns.size, bool)
    has_minimum = any(s.min_count for s in workload.pod_sets)
    return [
        question_on(workload, pod_set, row, now.draft, everywhere)
        for row, pod_set in zip(now.rows[w], workload.pod_sets, strict=True)
        if (pod_set.min_count if has_minimum else pod_set.count)
    ]


def _moves(w: int, questions: Sequence[Question], asked: _Asked) -> tuple[str, ...]:
    q = questions[0]
    # Told where a move is all that lacks: one pod, and no domain to keep to.
    if len(questions) > 1 or not q.per_pod or q.need - int(q.copies.sum()) != 1 or narrowest_level(q) is not None:
        return ()
    for freed in nodes_to_free(q, q.static == Block.Nothing)[:MOST_PROOFS]:
        if _is_possible(w, freed, asked):
            return (told(freed, q),)
    return ()


def _is_possible(w: int, freed: Freed, asked: _Asked) -> bool:
    gone = {id(a) for a in freed.pods}
    stay = [a for a in asked.snapshot.allocations if id(a) not in gone]
    node = asked.now.draft.columns.nodes[freed.node].name
    moved = []
    for a in freed.pods:
        elsewhere = replace(a.pod_class, refused_by=(*a.pod_class.refused_by, node))
        sets = (PodSet("moved", elsewhere, labels=a.labels),)
        moved.append(Workload(a.name, sets, namespace=a.namespace, queue=a.queue))
    return asked.starts(w, stay, moved)


def _released(w: int, questions: Sequence[Question], asked: _Asked) -> str | None:
    """`4 more GPUs released on n1 and 2 on n3`; "" where nothing is proven, None where it was not looked for."""
    workload, draft = asked.now.workloads[w], asked.now.draft
    with_gpus = [q for q in questions if q.per_pod]
    own_wishes = len(workload.pod_sets) > 1 and any(set_wishes(workload, s) for s in workload.pod_sets)
    if len({resource_of(q) for q in with_gpus}) != 1 or own_wishes:
        return None
    if any(wish.slice_size for s in workload.pod_sets for wish in set_wishes(workload, s)):
        return None
    if any(releasable(q, q.static == Block.Nothing) is None for q in with_gpus):
        return None
    if sum(q.need for q in with_gpus) > MOST_PODS:
        return None
    choices = [one for nodes in _scopes(workload, with_gpus[0], asked) if (one := _fewest(with_gpus, nodes))]
    for choice in sorted(choices, key=lambda one: (sum(one.values()), len(one)))[:MOST_PROOFS]:
        rest = _given_back(choice, resource_of(with_gpus[0]), asked)
        if len(choice) <= MOST_NAMED and rest is not None and asked.starts(w, rest):
            (first, gpus), *others = ((draft.columns.nodes[n].name, gpus) for n, gpus in choice.items())
            parts = [f"{amount(with_gpus[0], gpus * WHOLE, 'more')} released on {first}"]
            parts += [f"{gpus:,} on {name}" for name, gpus in others]
            return " and ".join(p for p in (", ".join(parts[:-1]), parts[-1]) if p)
    return ""


def _scopes(workload: Workload, q: Question, asked: _Asked) -> Iterator[Mask]:
    """The nodes among which all pods have to be: every node, or each domain of the required level."""
    draft = asked.now.draft
    columns, level = draft.columns, whole_level(workload, draft)
    if level is None:
        yield np.ones(columns.size, bool)
        return
    on_host = level == len(columns.topology.levels)
    domain = np.arange(columns.size) if on_host else columns.domain[level]
    inside = (domain >= 0) & (q.static == Block.Nothing)
    if not inside.any():
        return
    idle = np.bincount(domain[inside], weights=node_idle(q)[inside])
    for d in np.argsort(-idle, kind="stable")[:MOST_DOMAINS].tolist():
        yield domain == d


def _fewest(questions: Sequence[Question], nodes: Mask) -> dict[int, int]:
    """GPUs to come free by node so that all pods fit on some nodes by their amounts; {} where they cannot."""
    draft = questions[0].draft
    column = draft.columns.column(resource_of(questions[0]))
    free, held = np.zeros(draft.columns.size, np.int64), np.zeros(draft.columns.size, np.int64)
    left = draft.free.copy()
    of_set = []
    for q in sorted(questions, key=lambda one: -one.per_pod):
        here = nodes & (q.static == Block.Nothing)
        there = releasable(q, here)
        assert there is not None, "asked before"
        free, held = np.maximum(free, there.free), np.maximum(held, there.held)
        need = draft.tables.need[q.row].copy()
        need[column] = 0
        of_set.append((q.need, there.each, here & ((there.free > 0) | (there.held > 0)), need))
    before = held.copy()
    for count, each, here, need in of_set:
        asked = np.flatnonzero(need)
        for _ in range(count):
            cost = np.maximum(each - free, 0)
            able = np.flatnonzero(here & (cost <= held) & (left[:, asked] >= need[asked]).all(axis=1))
            if not len(able):
                return {}
            # Least to come free; then where some comes free already; then where least is left.
            is_new = (cost > 0) & (held == before)
            n = int(able[np.lexsort((free[able], is_new[able], cost[able]))[0]])
            free[n], held[n] = max(int(free[n]) - each, 0), held[n] - cost[n]
            left[n] -= need
    return {int(n): int(before[n] - held[n]) for n in np.flatnonzero(before > held).tolist()}


def _given_back(choice: Mapping[int, int], resource: str, asked: _Asked) -> list[Allocation] | None:
    """The pods that run, without so many whole GPUs on each node; None where who holds them shares them."""
    index, missing = asked.now.draft.columns.index, dict(choice)
    rest = []
    for a in asked.snapshot.allocations:
        n, has = index.get(a.node, -1), get(a.pod_class.requests, resource)
        gives = min(has, missing.get(n, 0))
        if gives and not a.is_daemon and a.pod_class.gpu_milli == WHOLE:
            missing[n] -= gives
            requests = tuple((name, x - gives if name == resource else x) for name, x in a.pod_class.requests)
            kept = tuple((name, x) for name, x in requests if x)
            devices = a.devices[: has - gives] if a.devices else ()
            a = replace(a, pod_class=replace(a.pod_class, requests=kept), devices=devices)
        rest.append(a)
    return None if any(missing.values()) else rest
