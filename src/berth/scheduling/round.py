"""What one cycle works with: the workloads with their rows and queues, the draft, what was decided so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from berth.model.booking import next_change_s
from berth.model.demand import Demand
from berth.model.hold import Hold
from berth.model.queue_rules import QueueRules, rules_of
from berth.model.reasons import Cause, Verdict
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, Workload
from berth.scheduling import holds
from berth.scheduling.admission import against_rules, may_not_borrow, open_classes, over_limit
from berth.scheduling.booked import NONE, Bookings
from berth.scheduling.draft import Draft
from berth.scheduling.feasibility import starts_a_gang
from berth.scheduling.holdings import ledger_with
from berth.scheduling.holds import Kept, holds_of
from berth.scheduling.losses import Losses
from berth.scheduling.neighbours import Neighbours, Who
from berth.scheduling.owing import shares_now, value_of, worth_of_rows
from berth.scheduling.plan import Eviction, Plan, Vacating
from berth.scheduling.policy import Policy
from berth.scheduling.quota import Ledger, gpu_milli
from berth.scheduling.reservation import Passages, Reserved, in_time
from berth.scheduling.seen import demand_seen
from berth.scheduling.shares import Shares
from berth.scheduling.tables import Tables, classes_of
from berth.scheduling.time_sharing import Turn
from berth.scheduling.vain import Vain
from berth.scheduling.waiting import Ask, PodSets, Rows, Waiting

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Making:
    """Room is on its way for a workload: `waits_for` are nodes and how many pods have to leave them still.

    `leaving` is how many leave in all, those that have gone among them; `until_s` when they have to be gone; `nodes`
    where the room is.
    """

    waits_for: tuple[tuple[int, int], ...]
    leaving: int
    until_s: float
    nodes: tuple[int, ...] = ()


def take_in(snapshot: Snapshot, tables: Tables) -> Waiting:
    """Read who waits and bring the tables up to the snapshot."""
    waits = tables.register.read(snapshot.workloads)
    tables.sync(snapshot, classes_of(waits.kinds))
    return waits


def _expected(snapshot: Snapshot, policy: Policy, tables: Tables, waits: Waiting) -> Demand:
    """What is likely to be asked for next; the tables know its classes then."""
    demand = snapshot.demand
    if snapshot.workloads and not demand.classes and not policy.learn_arrivals:
        demand = demand_seen(snapshot, tables.crowd, waits)
    if not tables.knows(demand.classes):
        tables.sync(snapshot, classes_of(waits.kinds, demand.classes))
    return demand


@dataclass
class Round:
    """Mutable, for the length of one cycle.

    waits    those who wait, in columns; rows the class row of each pod set of each of them
    asks     (K,) what each kind of them asks for
    milli    (W,) int64 GPU milli of each workload; queue (W,) int32 who pays
    binds    columns of the binds so far: workload, pod set, node, devices
    holds    what is kept off the draft for workloads that wait
    """

    snapshot: Snapshot
    policy: Policy
    draft: Draft
    ledger: Ledger
    losses: Losses
    waits: Waiting
    asks: list[Ask]
    rows: Rows
    milli: I64
    queue: I32
    binds: list[tuple[I32, I32, I32, I64]] = field(default_factory=list)
    scopes: dict[int, str] = field(default_factory=dict)
    refused: dict[int, Cause] = field(default_factory=dict)
    kept_off: dict[int, Cause] = field(default_factory=dict)  # told unless the workload could never run
    unproven: set[int] = field(default_factory=set)
    waiting: list[int] = field(default_factory=list)
    holds: dict[int, Kept] = field(default_factory=dict)  # by the workload that has them
    sought: set[int] = field(default_factory=set)  # for whom room was sought already
    searches: int = 0  # so many times
    promised: dict[int, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)  # (pod set, node, pods) of each
    making: dict[int, Making] = field(default_factory=dict)  # for whom room is on its way
    evictions: list[Eviction] = field(default_factory=list)
    reclaimed: set[int] = field(default_factory=set)  # who gets what its queue is due from queues that hold more
    new_holds: list[Hold] = field(default_factory=list)
    protected_until_s: float = np.inf  # when the first of those who just started may be asked to leave for who waits
    vacating: list[Vacating] = field(default_factory=list)
    placeless: int = 0  # workloads for which a place in time was sought in vain
    turn: Turn | None = None  # who should run now, where who runs may be set aside for it
    booked: Bookings = NONE  # what people keep for others, and for whom
    _without_holds: dict[frozenset[int], Draft] = field(default_factory=dict)
    reserved: dict[int, Reserved] = field(default_factory=dict)  # places in time, by the workload that has them
    passages: Passages | None = None  # who may use which places in time
    vain: Vain = field(default_factory=Vain)  # what has found no room

    @classmethod
    def of(cls, snapshot: Snapshot, policy: Policy, tables: Tables, waits: Waiting | None = None) -> Round:
        """`waits` is what `take_in` told of the snapshot, where the tables have been brought up to it already."""
        if waits is None:
            waits = take_in(snapshot, tables)
        demand = _expected(snapshot, policy, tables, waits)
        draft = Draft.of(tables, Neighbours.of(snapshot.workloads, tables.residents, waits.kinds))
        asks = tables.register.asks(waits, tables.row)
        ledger = ledger_with(snapshot, tables, waits.payers)
        of_payer = np.array([ledger.queue_of(*payer) for payer in waits.payers], np.int32)
        queue: I32 = of_payer[waits.payer]
        milli = np.array([ask.milli for ask in asks], np.int64)[waits.kind]
        rows = Rows(asks, waits)
        demand_rows, shares = _demand(demand, policy, tables, [ask.rows for ask in asks])
        losses = Losses.of(demand_rows, shares, policy, bool(snapshot.demand.classes))
        draft.on_change.append(lambda nodes: losses.follow(nodes, draft))
        return cls(snapshot, policy, draft, ledger, losses, waits, asks, rows, milli, queue)

    @property
    def workloads(self) -> Sequence[Workload]:
        return self.snapshot.workloads

    def number(self, w: int) -> int:
        """The same for those whose pod sets ask for the same."""
        return self.asks[self.waits.of_kind[w]].number

    def singles(self) -> Mask:
        """(W,) lone pods that the kernel can place: no gang, no wish for a domain, nothing about other pods."""
        waits = self.waits
        found = waits.is_plain & ~waits.stays if self.ledger.has_quotas else waits.is_plain.copy()
        if self.ledger.fences:  # the kernel knows limits of the tree alone
            found &= np.array([ask.milli == 0 for ask in self.asks], bool)[waits.kind]
        if self.holds:
            found[list(self.holds)] = False
        if self.booked.booked:
            found[self.booked.eager()] = False
        neighbours = self.draft.neighbours
        for w in np.flatnonzero(found & np.isin(self.queue, list(self._rules))).tolist() if self._rules else ():
            found[w] = self.against_rules(w) is None
        if neighbours is not None:
            for w in np.flatnonzero(found).tolist():
                namespace, pod_set = self.workloads[w].namespace, self.workloads[w].pod_sets[0]
                found[w] = not neighbours.concern(Who(namespace, pod_set.labels, pod_set.pod_class))
        return found

    @cached_property
    def has_time_limits(self) -> bool:
        """Somebody who runs, or may start, has to have ended at a known time."""
        return bool(self.draft.tables.crowd.limited.any() or (self.waits.limit_s > 0).any())

    @cached_property
    def first_row(self) -> I64:
        """(W,) the class row of the first pod set of each."""
        found: I64 = np.array([ask.rows[0] if ask.rows else -1 for ask in self.asks], np.int64)[self.waits.kind]
        return found

    @cached_property
    def keeps_places(self) -> bool:
        """Places in time matter though nobody who waits could start now: they are told, or room may still come back."""
        gives_room = self.policy.evicts or self.policy.sets_aside or self.snapshot.moves_hours > 0
        return self.policy.explains or gives_room or bool(self.snapshot.holds) or bool(self.snapshot.bookings)

    def some_fit(self) -> bool:
        """Some node takes a pod of a class that waits."""
        return bool(np.count_nonzero(self.draft.copies[self._waiting_rows]))

    @cached_property
    def _waiting_rows(self) -> list[int]:
        return sorted({row for ask in self.asks for row in ask.rows})

    @cached_property
    def shares(self) -> Shares | None:
        """What queues are owed, as it was when the cycle began to ask; None where there is one queue."""
        return shares_now(self)

    @cached_property
    def row_worth(self) -> NDArray[np.float64]:
        """(M,) value of a milli of each class row in use."""
        return worth_of_rows(self.draft, self.value[1])

    @cached_property
    def value(self) -> tuple[float, float]:
        """Value milli of all GPUs that may be given out, and of one milli in the mean."""
        layouts = self.draft.tables.layouts  # as long as the nodes stay what they are
        found: tuple[float, float] | None = layouts.get("value")
        if found is None:
            found = layouts["value"] = value_of(self.draft.columns)
        return found

    @cached_property
    def asked(self) -> NDArray[np.float64]:
        """(W,) value milli of all pods of each workload; 0.0 of those that something of their own keeps."""
        known = self._values
        for code, sets, ask in zip(self.waits.codes, self.waits.kinds, self.asks, strict=True):
            if code not in known:
                known[code] = self._value(sets, ask.rows)
        of_kind = np.array([known[code] for code in self.waits.codes])
        found: NDArray[np.float64] = np.where(self.waits.is_kept, 0.0, of_kind[self.waits.kind])
        return found

    @cached_property
    def _values(self) -> dict[int, float]:
        """Value milli of pods of each kind that was met while class rows were worth what they are."""
        register = self.draft.tables.register
        return register.values(self.row_worth.tobytes())

    def least_value(self, w: int) -> float:
        """Value milli of what a workload starts with."""
        return self._value(self.workloads[w].pod_sets, self.rows[w], minimum=True)

    def _value(self, sets: PodSets, rows: Sequence[int], *, minimum: bool = False) -> float:
        return float(
            sum(
                (s.min_count if minimum else s.count) * int(self.milli_of_rows[row]) * self.row_worth[row]
                for row, s in zip(rows, sets, strict=True)
            )
        )

    @cached_property
    def may_reclaim(self) -> bool:
        """Queues that somebody wrote take back what they are due; not where who should run is chosen from all."""
        within = self.turn is None or self.policy.least_left
        return self.policy.reclaims and within and sum(q.is_stated for q in self.ledger.queues) > 1

    # ---- holds

    def keep_holds(self) -> None:
        """Take what the snapshot's holds keep off the draft, and count it to their queues; then what is booked."""
        self.booked = Bookings.of(self)
        size = self.draft.columns.size
        found = [
            kept
            for kept in holds_of(self.snapshot, self.draft)
            if not self.booked.shut(kept.workload, size)[kept.nodes].any()
        ]
        self.holds = {kept.workload: kept for kept in found}
        holds.keep(found, self.rows, self.draft)
        for kept in found:
            self._book_hold(kept, 1)
        self.booked.hide()

    def hold(self, kept: Kept) -> None:
        """A new hold, in the place of one that the workload may have had."""
        self.vain.forget()
        self.holds[kept.workload] = kept
        holds.keep([kept], self.rows, self.draft)
        self._book_hold(kept, 1)

    def release(self, kept: Kept) -> None:
        """A hold counts no longer."""
        self.vain.forget()
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

    @cached_property
    def _rules(self) -> Mapping[int, QueueRules]:
        """By index, the queues that ask something of their workloads."""
        rules = rules_of(self.snapshot.queues)
        names = self.ledger.names
        return {q: rules[names[q]] for q in range(len(names)) if names[q] in rules} if rules else {}

    def against_rules(self, w: int) -> Cause | None:
        """What the rules of its queue have against a workload."""
        rules = self._rules.get(int(self.queue[w])) if self._rules else None
        return None if rules is None else against_rules(self.workloads[w], rules)

    def is_bounded(self, w: int) -> bool:
        """Its queue, or one above it, has a limit."""
        return self.ledger.has_limits and bool(self.bounded[self.queue[w]])

    @cached_property
    def bounded(self) -> Mask:
        """(Q,) queues that have a limit, or are below one that has."""
        return self.ledger.bounded

    def over_limit(self, w: int) -> Cause | None:
        """The limit that keeps a workload, or the quota of one that may not borrow, its own hold not counted."""
        own = self.holds.get(w)
        if own:
            self._book_hold(own, -1)
        if own is None and not self.is_bounded(w) and not self.ledger.has_quotas:
            return None
        workload, queue = self.workloads[w], int(self.queue[w])
        refusal = over_limit(workload, queue, self.ledger) or may_not_borrow(workload, queue, self.ledger)
        if own:
            self._book_hold(own, 1)
        return refusal

    def weaker(self, w: int) -> list[Kept]:
        """Holds that a workload may break: those of strictly lower priority, not of another queue with which its own
        shares, on no node that is booked for others."""
        priority = self.workloads[w].priority
        weaker = [
            kept
            for kept in self.holds.values()
            if kept.priority < priority and kept.workload != w and not self.share(w, kept.workload)
        ]
        if weaker and self.booked.booked:
            shut = self.booked.shut(w, self.draft.columns.size)
            weaker = [kept for kept in weaker if not shut[kept.nodes].any()]
        return weaker

    def share(self, one: int, other: int) -> bool:
        """Their queues are two that somebody wrote: between them shares decide, and no priority."""
        mine, theirs = int(self.queue[one]), int(self.queue[other])
        queues = self.ledger.queues
        return mine != theirs and self.may_reclaim and queues[mine].is_stated and queues[theirs].is_stated

    @property
    def without_holds(self) -> Draft:
        """The draft as it would be if nothing were held, for whom the same is booked. Asked for once everything is
        decided."""
        found = self._without_holds.get(self.booked.blocking)
        if found is None:
            kept = [*self.holds.values(), *(one.kept for one in self.reserved.values())]
            holds.give_back(kept, self.draft)
            found = self._without_holds[self.booked.blocking] = self.draft.copy()
            holds.keep(kept, self.rows, self.draft)
        return found

    @cached_property
    def without_bookings(self) -> Draft:
        """The draft as it would be if nothing were booked."""
        return self.booked.without()

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
            {w: one.at_s for w, one in self.reserved.items()},
            vacating=tuple(self.vacating),
            due=self._due(),
            bookings=self.booked.standings(),
            look_s=min(
                self.turn.look_s if self.turn is not None else np.inf,
                self.protected_until_s,
                next_change_s(self.snapshot.bookings, self.snapshot.now_s),
            ),
        )

    def _due(self) -> dict[str, float]:
        """What was worked out for the order, in GPUs of mean value."""
        shares = self.__dict__.get("shares")  # not worked out for this
        if shares is None:
            return {}
        unit = (shares.mean_worth or 1.0) * WHOLE
        return {q.name: float(shares.due[i]) / unit for i, q in enumerate(self.ledger.queues) if q.is_stated}

    def drop_places_of_holders(self) -> None:
        """For whom room is held needs no place in time beside it."""
        both = [w for w in self.reserved if w in self.holds]
        holds.give_back([self.reserved.pop(w).kept for w in both], self.draft)
        self.passages = None
        self.__dict__.pop("in_time", None)
        self.vain.forget()

    @cached_property
    def in_time(self) -> list[tuple[object, ...]]:
        """(W,) how each stands to the places in time of others, once all are known."""
        return in_time(self)

    def allowed(self, w: int, closed: Mask | None = None) -> Mask:
        """(N,) nodes whose GPU class the queue may still take, and that are not kept for others, nor from new gangs."""
        suspect = self.draft.columns.suspect
        fit = ~suspect if starts_a_gang(self.workloads[w]) else np.ones(len(suspect), bool)
        if not self.ledger.has_limits and (closed is None or not closed.any()):
            return fit
        open_ = open_classes(self.workloads[w], int(self.queue[w]), self.ledger)
        if closed is not None:
            open_ = open_ & ~closed
        found: Mask = open_[self.draft.columns.gpu_class] & fit
        return found

    @cached_property
    def milli_of_rows(self) -> I64:
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
