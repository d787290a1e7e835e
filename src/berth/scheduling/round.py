"""What one cycle works with: the workloads with their rows and queues, the draft, what was decided so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from berth.model.demand import Demand
from berth.model.hold import Hold
from berth.model.reasons import Cause, Verdict
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload
from berth.scheduling import holds
from berth.scheduling.admission import open_classes, over_limit
from berth.scheduling.draft import Draft
from berth.scheduling.feasibility import starts_a_gang
from berth.scheduling.holdings import Allotment, ledger_with
from berth.scheduling.holds import Kept, holds_of
from berth.scheduling.losses import Losses
from berth.scheduling.neighbours import Neighbours, Who
from berth.scheduling.placement import place_gang
from berth.scheduling.plan import Eviction, Plan
from berth.scheduling.policy import Policy
from berth.scheduling.quota import Ledger, gpu_milli, milli_of
from berth.scheduling.seen import demand_seen
from berth.scheduling.singles import Queues
from berth.scheduling.tables import Tables, classes_of

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Making:
    """Room is on its way for a workload: `waits_for` are nodes and how many pods have to leave them still.

    `leaving` is how many leave in all, those that have gone among them; `until_s` when they have to be gone.
    """

    waits_for: tuple[tuple[int, int], ...]
    leaving: int
    until_s: float


@dataclass
class Round:
    """Mutable, for the length of one cycle.

    rows     class row of each pod set of each workload
    milli    (W,) int64 GPU milli of each workload; queue (W,) int32 who pays
    binds    columns of the binds so far: workload, pod set, node, devices
    holds    what is kept off the draft for workloads that wait
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
    holds: dict[int, Kept] = field(default_factory=dict)  # by the workload that has them
    making: dict[int, Making] = field(default_factory=dict)  # for whom room is on its way
    evictions: list[Eviction] = field(default_factory=list)
    new_holds: list[Hold] = field(default_factory=list)

    @classmethod
    def of(cls, snapshot: Snapshot, policy: Policy, tables: Tables) -> Round:
        demand = snapshot.demand
        if snapshot.workloads and not demand.classes and not policy.learn_arrivals:
            demand = demand_seen(snapshot, tables.meet(snapshot))
        classes = list(classes_of(snapshot.workloads, demand))
        tables.sync(snapshot, classes)
        draft = Draft.of(tables, Neighbours.of(snapshot.workloads, tables.residents))
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
        ledger = ledger_with(snapshot, tables)
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
        if workload.held_off or workload.unmet:
            return False
        pod_set = workload.pod_sets[0]
        if pod_set.count != 1 or pod_set.min_count != 1 or pod_set.topology:
            return False
        if w in self.holds:
            return False
        if pod_set.pod_class.unsupported or pod_set.pod_class.problems or pod_set.pod_class.unbound:
            return False
        neighbours = self.draft.neighbours
        return neighbours is None or not neighbours.concern(Who(workload.namespace, pod_set.labels, pod_set.pod_class))

    # ---- holds

    def keep_holds(self) -> None:
        """Take what the snapshot's holds keep off the draft, and count it to their queues."""
        found = holds_of(self.snapshot, self.draft)
        self.holds = {kept.workload: kept for kept in found}
        holds.keep(found, self.rows, self.draft)
        for kept in found:
            self._book_hold(kept, 1)

    def hold(self, kept: Kept) -> None:
        """A new hold, in the place of one that the workload may have had."""
        self.holds[kept.workload] = kept
        holds.keep([kept], self.rows, self.draft)
        self._book_hold(kept, 1)

    def release(self, kept: Kept) -> None:
        """A hold counts no longer."""
        del self.holds[kept.workload]
        holds.give_back([kept], self.draft)
        self._book_hold(kept, -1)

    def _book_hold(self, kept: Kept, sign: int) -> None:
        workload, gpu_class = self.workloads[kept.workload], self.draft.columns.gpu_class
        for n, pods in kept.pods.items():
            for s, count in pods:
                one = workload.pod_sets[s].pod_class
                milli = gpu_milli(one.requests, one.gpu_milli) * count * sign
                if milli:
                    self.ledger.take(int(self.queue[kept.workload]), int(gpu_class[n]), milli)

    def over_limit(self, w: int) -> Cause | None:
        """The limit that keeps a workload, its own hold not counted."""
        own = self.holds.get(w)
        if own:
            self._book_hold(own, -1)
        refusal = over_limit(self.workloads[w], int(self.queue[w]), self.ledger)
        if own:
            self._book_hold(own, 1)
        return refusal

    def _weaker(self, w: int) -> list[Kept]:
        """Holds that a workload may break: those of strictly lower priority."""
        priority = self.workloads[w].priority
        return [kept for kept in self.holds.values() if kept.priority < priority and kept.workload != w]

    @cached_property
    def without_holds(self) -> Draft:
        """The draft as it would be if nothing were held. Asked for once everything is decided."""
        kept = list(self.holds.values())
        holds.give_back(kept, self.draft)
        found = self.draft.copy()
        holds.keep(kept, self.rows, self.draft)
        return found

    # ---- place

    def place_run(self, run: I64, closed: Mask | None = None) -> None:
        """Place a run of single pods. `closed` (C + 1,) are GPU classes kept for others."""
        for w in self._run(run, closed):
            if (weaker := self._weaker(w)) and not self.over_limit(w) and self._place_over(w, closed, weaker):
                continue
            self.waiting.append(w)

    def _run(self, run: I64, closed: Mask | None) -> list[int]:
        """Hand a run of single pods to the kernel; those that it could not place."""
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
        left: list[int] = run[~placed].tolist()
        return left

    def _tell_neighbours(self, placed: I64, node: I32) -> None:
        if self.draft.neighbours is not None:
            for w, n in zip(placed.tolist(), node.tolist(), strict=True):
                workload = self.workloads[w]
                pod_set = workload.pod_sets[0]
                self.draft.neighbours.add(n, Who(workload.namespace, pod_set.labels, pod_set.pod_class), 1)

    def place_gang(self, w: int, closed: Mask | None = None) -> bool:
        """Place a workload whole, or leave the draft as it was. Where room is held for it, there first."""
        if not self.holds:
            return self._place(w, closed)
        own = self.holds.get(w)
        if own is not None:
            self.release(own)
            held = np.zeros(self.draft.columns.size, bool)
            held[own.nodes] = True
            if self._place(w, closed, held):
                return True
        weaker = self._weaker(w)
        if self._place(w, closed) or (weaker and self._place_over(w, closed, weaker)):
            return True
        if own is not None:
            self.hold(own)
        return False

    def _place_over(self, w: int, closed: Mask | None, weaker: Sequence[Kept]) -> bool:
        """Place a workload where room is held for others of lower priority."""
        holds.give_back(weaker, self.draft)
        placed = self._place(w, closed)
        holds.keep(weaker, self.rows, self.draft)
        return placed

    def _place(self, w: int, closed: Mask | None, within: Mask | None = None) -> bool:
        workload, draft = self.workloads[w], self.draft
        allowed = self.allowed(w, closed)
        tried = place_gang(
            workload, self.rows[w], draft, allowed if within is None else allowed & within, self.losses,
            self._growth(w, closed), steps=self.policy.search_steps,
        )  # fmt: skip
        if not tried.placed and self.ledger.limits_classes and within is None:
            # No class may take all of the gang: deal its pods to classes one by one.
            draft.drop()
            everywhere = np.ones(draft.columns.size, bool)
            room = self._allotment(w, closed, after_minimum=False)
            tried = place_gang(workload, self.rows[w], draft, everywhere, self.losses, room, bounds_minimum=True)
        if not tried.placed:
            draft.drop()
            if not tried.proven:
                self.unproven.add(w)
            return False
        self.unproven.discard(w)
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
            tuple(self.evictions),
            tuple(self.new_holds),
        )

    def shape(self, w: int) -> object:
        """Workloads with the same shape wait for the same reason."""
        workload = self.workloads[w]
        sets = tuple(
            (row, s.count, s.min_count, s.topology) for row, s in zip(self.rows[w], workload.pod_sets, strict=True)
        )
        limits = int(self.queue[w]) if self.ledger.has_limits else -1
        # Pods that look at each other's labels, or are looked at, are alike only where their labels are.
        neighbours = self.draft.neighbours
        labels = None
        if neighbours is not None and any(
            neighbours.concern(Who(workload.namespace, s.labels, s.pod_class)) for s in workload.pod_sets
        ):
            labels = (workload.namespace, tuple(s.labels for s in workload.pod_sets))
        held = (workload.priority, w in self.holds) if self.holds else None
        return (sets, workload.topology, limits, labels, w in self.unproven, held, starts_a_gang(workload))

    def _growth(self, w: int, closed: Mask | None) -> Allotment | None:
        return self._allotment(w, closed, after_minimum=True) if self.ledger.has_limits else None

    def _allotment(self, w: int, closed: Mask | None, after_minimum: bool) -> Allotment:
        """With `after_minimum` the workload's minimum is taken off every class: where it went is not known yet."""
        room = self.ledger.room(int(self.queue[w])).copy()
        if closed is not None:
            room[closed] = 0
        minimum = milli_of(self.workloads[w], minimum=True) if after_minimum else 0
        return Allotment(self.draft.columns.gpu_class, room - minimum, int(room[-1]) - minimum)

    def allowed(self, w: int, closed: Mask | None = None) -> Mask:
        """(N,) nodes whose GPU class the queue may still take, and that are not kept for others, nor from new gangs."""
        suspect = self.draft.columns.suspect
        fit = ~suspect if starts_a_gang(self.workloads[w]) else np.ones(len(suspect), bool)
        if not self.ledger.has_limits and (closed is None or not closed.any()):
            return fit
        open_ = open_classes(self.workloads[w], int(self.queue[w]), self.ledger)
        if closed is not None:
            open_ = open_ & ~closed
        allowed: Mask = open_[self.draft.columns.gpu_class] & fit
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


def _demand(
    demand: Demand, policy: Policy, tables: Tables, rows: Sequence[tuple[int, ...]]
) -> tuple[I64, NDArray[np.float64]]:
    """Rows with demand and their shares; where it is learned, the rows of all that is offered, and nothing yet."""
    if policy.learn_arrivals:
        distinct = list(dict.fromkeys(r for each in rows for r in each))
        return np.array(distinct, np.int64), np.zeros(len(distinct))
    known = [tables.row(c) for c in demand.classes]
    return np.array(known, np.int64), np.array(demand.shares, np.float64)
