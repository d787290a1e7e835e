"""What one cycle works with: the workloads with their rows and queues, the draft, what was decided so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from berth.model.demand import Demand
from berth.model.reasons import Answer, Cause, Reason, Verdict
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload
from berth.scheduling.admission import open_classes
from berth.scheduling.draft import Draft
from berth.scheduling.explain import verdict_of
from berth.scheduling.limits import refused_by_limits
from berth.scheduling.losses import Losses
from berth.scheduling.neighbours import Neighbours, Who
from berth.scheduling.placement import place_gang
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.quota import Ledger, gpu_milli, ledger_of, milli_of
from berth.scheduling.seen import demand_seen
from berth.scheduling.singles import Queues
from berth.scheduling.tables import Tables, classes_of

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass
class Round:
    """Mutable, for the length of one cycle.

    rows     class row of each pod set of each workload
    milli    (W,) int64 GPU milli of each workload; queue (W,) int32 who pays
    binds    columns of the binds so far: workload, pod set, node, devices
    """

    snapshot: Snapshot
    policy: Policy
    draft: Draft
    ledger: Ledger
    losses: Losses
    rows: list[tuple[int, ...]]
    milli: I64
    queue: I32
    binds: list[tuple[I32, I32, I32, I64]] = field(default_factory=list)
    scopes: dict[int, str] = field(default_factory=dict)
    refused: dict[int, Cause] = field(default_factory=dict)
    kept_off: dict[int, Cause] = field(default_factory=dict)  # told unless the workload could never run
    unproven: set[int] = field(default_factory=set)
    waiting: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, snapshot: Snapshot, policy: Policy, tables: Tables) -> Round:
        demand = snapshot.demand
        if not demand.classes and not policy.learn_arrivals:
            demand = demand_seen(snapshot)
        classes = list(classes_of(snapshot.workloads, demand))
        columns = tables.sync(snapshot, classes)
        draft = Draft.of(tables, Neighbours.of(snapshot, columns))
        workloads = snapshot.workloads
        # Workloads that are alike share their pod sets, so what depends on those alone is worked out once.
        alike: dict[int, tuple[tuple[int, ...], int]] = {}
        rows: list[tuple[int, ...]] = []
        milli = np.empty(len(workloads), np.int64)
        for i, w in enumerate(workloads):
            known = alike.get(id(w.pod_sets))
            if known is None:
                of_sets = tuple([tables.row(s.pod_class) for s in w.pod_sets])
                known = alike[id(w.pod_sets)] = (of_sets, milli_of(w))
            rows.append(known[0])
            milli[i] = known[1]
        ledger = _ledger(snapshot)
        queue = np.fromiter((ledger.queue_of(w.queue, w.namespace) for w in workloads), np.int32, len(workloads))
        demand_rows, shares = _demand(demand, policy, tables, rows)
        losses = Losses.of(demand_rows, shares, policy, bool(snapshot.demand.classes))
        draft.on_change.append(lambda nodes: losses.follow(nodes, draft))
        return cls(snapshot, policy, draft, ledger, losses, rows, milli, queue)

    @property
    def workloads(self) -> Sequence[Workload]:
        return self.snapshot.workloads

    def is_single(self, w: int) -> bool:
        """A lone pod that the kernel can place: no gang, no wish for a domain, nothing about other pods."""
        workload = self.workloads[w]
        if len(workload.pod_sets) != 1 or workload.topology or workload.gates or workload.missing_pods:
            return False
        pod_set = workload.pod_sets[0]
        if pod_set.count != 1 or pod_set.min_count != 1 or pod_set.topology:
            return False
        if pod_set.pod_class.unsupported or pod_set.pod_class.problems or pod_set.pod_class.unbound:
            return False
        neighbours = self.draft.neighbours
        return neighbours is None or not neighbours.concern(Who(workload.namespace, pod_set.labels, pod_set.pod_class))

    def place_run(self, run: I64, closed: Mask | None = None) -> None:
        """Hand a run of single pods to the kernel. `closed` (C + 1,) are GPU classes kept for others."""
        draft, columns = self.draft, self.draft.columns
        rows = np.fromiter((self.rows[w][0] for w in run), np.int64, len(run))
        milli = self._milli_of_rows
        limit = self.ledger.limit
        if closed is not None and closed.any():
            limit = limit.copy()
            limit[:, closed] = 0
        gpu_class = np.where(columns.gpu_class < 0, limit.shape[1] - 1, columns.gpu_class)
        queues = Queues(
            self.queue[run], bool((limit < 2**62).any()), self.ledger.parent, limit, self.ledger.used,
            gpu_class.astype(np.int32), milli,
        )  # fmt: skip
        node, devices = self.losses.place_run(rows, draft, queues)
        placed = node >= 0
        if placed.any():
            draft.recount(np.unique(node[placed]).astype(np.int64))
            self._tell_neighbours(run[placed], node[placed])
            self.binds.append((
                run[placed].astype(np.int32), np.zeros(int(placed.sum()), np.int32), node[placed], devices[placed]
            ))  # fmt: skip
        self.waiting += run[~placed].tolist()

    def _tell_neighbours(self, placed: I64, node: I32) -> None:
        if self.draft.neighbours is not None:
            for w, n in zip(placed.tolist(), node.tolist(), strict=True):
                workload = self.workloads[w]
                pod_set = workload.pod_sets[0]
                self.draft.neighbours.add(n, Who(workload.namespace, pod_set.labels, pod_set.pod_class), 1)

    def place_gang(self, w: int, closed: Mask | None = None) -> bool:
        """Place a workload whole, or leave the draft as it was."""
        workload, draft = self.workloads[w], self.draft
        tried = place_gang(
            workload, self.rows[w], draft, self._allowed(w, closed), self.losses, self._growth(w, closed),
            steps=self.policy.search_steps,
        )  # fmt: skip
        if not tried.placed and self.ledger.limits_classes:
            # No class may take all of the gang: deal its pods to classes one by one.
            draft.drop()
            everywhere = np.ones(draft.columns.size, bool)
            room = _Growth.of(self, w, closed, after_minimum=False)
            tried = place_gang(workload, self.rows[w], draft, everywhere, self.losses, room, bounds_minimum=True)
        if not tried.placed:
            draft.drop()
            if not tried.proven:
                self.unproven.add(w)
            return False
        puts = draft.commit()
        counts = [p.count for p in puts]
        node = np.repeat(np.array([p.node for p in puts], np.int32), counts)
        pod_set = np.repeat(np.array(tried.set_of_put, np.int32), counts)
        devices = np.array([mask for p in puts for mask in p.devices], np.int64)
        self.binds.append((np.full(len(node), w, np.int32), pod_set, node, devices))
        if tried.scope:
            self.scopes[w] = tried.scope
        self._book(w, node, pod_set)
        return True

    def wait(self, w: int, refusal: Cause | None) -> None:
        """Leave a workload waiting; without a refusal the tables say why."""
        self.waiting.append(w)
        if refusal is not None:
            self.refused[w] = refusal

    def wanted(self, w: int) -> Mask:
        """(C + 1,) GPU classes on which a workload could run, whatever runs there now."""
        columns = self.draft.columns
        classes = np.zeros(self.ledger.limit.shape[1], bool)
        for row, pod_set in zip(self.rows[w], self.workloads[w].pod_sets, strict=True):
            if gpu_milli(pod_set.pod_class.requests, pod_set.pod_class.gpu_milli):
                classes[columns.gpu_class[self.draft.tables.static[row] == 0]] = True
        return classes

    def verdicts(self) -> dict[int, Verdict]:
        """A verdict for each workload that waits; workloads of the same shape share the work."""
        found: dict[int, Verdict] = {}
        shared: dict[object, Verdict] = {}
        everywhere = np.ones(self.draft.columns.size, bool)
        for w in self.waiting:
            workload = self.workloads[w]
            if w in self.refused and self.refused[w].reason is not Reason.LimitExceeded:
                cause = self.refused[w]
                found[w] = Verdict(workload.key, cause.reason.answer, (cause,))
                continue
            shape = self._shape(w)
            if shape not in shared:
                said = verdict_of(workload, self.rows[w], self.draft, everywhere, w not in self.unproven)
                shared[shape] = said if said.answer is Answer.Never else self._by_limits(w) or said
            verdict = shared[shape]
            if w in self.kept_off and verdict.answer is not Answer.Never:
                verdict = Verdict(workload.key, Answer.NotYet, (self.kept_off[w],))
            found[w] = Verdict(workload.key, verdict.answer, verdict.causes)
        return found

    def plan(self, verdicts: Mapping[int, Verdict], seconds: Mapping[str, float]) -> Plan:
        columns = [np.concatenate(c) for c in zip(*self.binds, strict=True)] if self.binds else None
        empty = np.zeros(0, np.int32)
        workload, pod_set, node, devices = columns or (empty, empty, empty, np.zeros(0, np.int64))
        return Plan(
            self.workloads,
            self.draft.columns.nodes,
            workload,
            pod_set,
            node,
            devices,
            verdicts,
            self.scopes,
            seconds,
        )

    def _shape(self, w: int) -> object:
        """Workloads with the same shape wait for the same reason."""
        workload = self.workloads[w]
        sets = tuple(
            (row, s.count, s.min_count, s.topology) for row, s in zip(self.rows[w], workload.pod_sets, strict=True)
        )
        limits = int(self.queue[w]) if self.ledger.has_limits else -1
        # Pods that look at each other's labels are alike only where their labels are.
        labels = self.draft.neighbours and (workload.namespace, tuple(s.labels for s in workload.pod_sets))
        return (sets, workload.topology, limits, labels, w in self.unproven)

    def _by_limits(self, w: int) -> Verdict | None:
        return refused_by_limits(self.workloads[w], self.rows[w], self.draft, self.ledger, int(self.queue[w]))

    def _growth(self, w: int, closed: Mask | None) -> _Growth | None:
        return _Growth.of(self, w, closed, after_minimum=True) if self.ledger.has_limits else None

    def _allowed(self, w: int, closed: Mask | None) -> Mask:
        """(N,) nodes whose GPU class the queue may still take, and that are not kept for others."""
        size = self.draft.columns.size
        if not self.ledger.has_limits and (closed is None or not closed.any()):
            return np.ones(size, bool)
        open_ = open_classes(self.workloads[w], int(self.queue[w]), self.ledger)
        if closed is not None:
            open_ = open_ & ~closed
        allowed: Mask = open_[self.draft.columns.gpu_class]
        return allowed

    def _book(self, w: int, node: I32, pod_set: I32) -> None:
        for s, one in enumerate(self.workloads[w].pod_sets):
            milli = gpu_milli(one.pod_class.requests, one.pod_class.gpu_milli)
            if milli:
                classes, counts = np.unique(self.draft.columns.gpu_class[node[pod_set == s]], return_counts=True)
                for c, count in zip(classes.tolist(), counts.tolist(), strict=True):
                    self.ledger.take(int(self.queue[w]), c, milli * count)

    @cached_property
    def _milli_of_rows(self) -> I64:
        """(M,) GPU milli of one pod of each class row in use."""
        milli = np.zeros(len(self.draft.tables.rows), np.int64)
        for pod_class, row in self.draft.tables.rows.items():
            milli[row] = gpu_milli(pod_class.requests, pod_class.gpu_milli)
        return milli


@dataclass
class _Growth:
    """What the queue of a workload may still take, (C + 1,) milli by GPU class, told pod by pod."""

    gpu_class: I32
    room: I64
    left: int

    @classmethod
    def of(cls, now: Round, w: int, closed: Mask | None, after_minimum: bool) -> _Growth:
        """With `after_minimum` the workload's minimum is taken off every class: where it went is not known yet."""
        room = now.ledger.room(int(now.queue[w])).copy()
        if closed is not None:
            room[closed] = 0
        minimum = milli_of(now.workloads[w], minimum=True) if after_minimum else 0
        return cls(now.draft.columns.gpu_class, room - minimum, int(room[-1]) - minimum)

    def fork(self) -> _Growth:
        return _Growth(self.gpu_class, self.room.copy(), self.left)

    def open_nodes(self, milli: int) -> Mask:
        mask: Mask = (self.room >= milli)[self.gpu_class] & (self.left >= milli)
        return mask

    def take(self, node: int, milli: int) -> None:
        self.left -= milli
        self.room[self.gpu_class[node]] -= milli


def _ledger(snapshot: Snapshot) -> Ledger:
    """The queues with what their allocations hold."""
    classes = [c.name for c in snapshot.gpu_classes]
    namespaces = dict.fromkeys(w.namespace for w in snapshot.workloads if not w.queue)
    named = dict.fromkeys(w.queue for w in snapshot.workloads if w.queue)
    ledger = ledger_of(snapshot.queues, classes, [*namespaces, *named])
    if len(ledger.names) < 2 and not ledger.has_limits and not ledger.has_quotas:
        return ledger
    class_of = {n.name: classes.index(n.gpu_class) if n.gpu_class in classes else -1 for n in snapshot.nodes}
    payers: dict[tuple[str, str], int | None] = {}
    held: dict[tuple[int, int], int] = {}
    for a in snapshot.allocations:
        milli = gpu_milli(a.pod_class.requests, a.pod_class.gpu_milli)
        if milli:
            who = (a.queue, a.namespace)
            if who not in payers:
                known = a.queue in ledger.index or a.namespace in ledger.index or a.namespace in ledger.of_namespace
                payers[who] = ledger.queue_of(*who) if known else None
            q = payers[who]
            if q is not None:
                key = (q, class_of.get(a.node, -1))
                held[key] = held.get(key, 0) + milli
    for (q, c), milli in held.items():
        ledger.take(q, c, milli)
    return ledger


def _demand(
    demand: Demand, policy: Policy, tables: Tables, rows: Sequence[tuple[int, ...]]
) -> tuple[I64, NDArray[np.float64]]:
    """Rows with demand and their shares; where it is learned, the rows of all that is offered, and nothing yet."""
    if policy.learn_arrivals:
        distinct = list(dict.fromkeys(r for each in rows for r in each))
        return np.array(distinct, np.int64), np.zeros(len(distinct))
    known = [tables.row(c) for c in demand.classes]
    return np.array(known, np.int64), np.array(demand.shares, np.float64)
