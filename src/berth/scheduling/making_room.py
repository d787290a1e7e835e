"""Step 4: room for those that wait and have priority over pods that run, or whose queue is owed it, and holds for
those who get it.

In the order of the queue, each workload that no limit and no gate keeps: by what becomes free anyway, else by the
cheapest pods that leave (preemption.py), of queues that hold more than they are due first (reclaim.py). Who has a hold
already evicts nobody as long as the hold would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from berth.model.hold import Hold, Leaving, Place
from berth.scheduling import holds
from berth.scheduling.allowance import Allowances
from berth.scheduling.feasibility import starts_a_gang
from berth.scheduling.future import Future
from berth.scheduling.holds import Kept
from berth.scheduling.plan import Eviction, Rule
from berth.scheduling.preemption import Hunt, Sacrifice
from berth.scheduling.quota import milli_of
from berth.scheduling.reclaim import ROUNDING, Owed
from berth.scheduling.reservation import passing
from berth.scheduling.roster import Roster
from berth.scheduling.round import Making, Round
from berth.scheduling.shapes import shape

Mask = NDArray[np.bool_]


def make_room(now: Round) -> None:
    """Writes evictions, new holds and what is on its way into the round. Who was looked at is not looked at again."""
    hopefuls = [w for w in now.waiting if w not in now.sought and _may_ask(w, now)] if now.policy.evicts else []
    if not hopefuls and not any(kept.hold.leaving or kept.workload not in now.refused for kept in now.holds.values()):
        return
    now.sought.update(hopefuls)
    crowd, lowest = now.draft.tables.crowd, lowest_that_runs(now)
    if not any(kept.hold not in now.new_holds for kept in now.holds.values()) and not crowd.ending.any():
        first = now.turn.first if now.turn is not None else frozenset[int]()
        owed = _owed(hopefuls, now)
        hopefuls = [w for w in hopefuls if w in first or w in owed or now.workloads[w].priority > lowest]
        if not hopefuls:
            return
    with passing(tuple(now.reserved), now):
        _search(hopefuls, now)


def _search(hopefuls: Sequence[int], now: Round) -> None:
    """In the cluster as it will be, in which the places in time of others are free: who runs gives them up."""
    roster = now.draft.tables.roster()
    future = _future(now, roster)
    hunt = Hunt(future, Allowances(roster, now.snapshot.budgets, future.gone), now.policy, now.snapshot.now_s)
    expired = {hold.workload for hold in now.snapshot.holds}
    for w, promised in now.promised.items():  # earlier in this cycle
        hunt.keep_promise(now.workloads[w], now.rows[w], promised)
    for kept in list(now.holds.values()):
        if kept.workload not in now.promised:
            _confirm(kept, now, hunt)
    owed_now = Owed.of(now, now.shares, future) if now.shares is not None else None
    hopeless: set[object] = set()
    for w in hopefuls:
        workload = now.workloads[w]
        alike = (
            shape(w, now), workload.priority, now.turn is not None and (w in now.turn.first, w in now.turn.patient),
            int(now.queue[w]) if owed_now is not None else -1,
        )  # fmt: skip
        if w in now.holds or alike in hopeless or now.over_limit(w):
            continue
        if now.searches == now.policy.room_searches:
            break
        now.searches += 1
        # Nobody leaves for a place on a node that may be failing.
        fit = now.allowed(w) & ~now.draft.columns.suspect & ~now.booked.shut(w, now.draft.columns.size)
        has_turn = now.turn is not None and w in now.turn.first
        found = None
        if not has_turn or now.policy.least_left:  # where shares and priority decide, too, they come first
            found = _found(w, fit, now, hunt, owed_now)
        if found is None and has_turn:
            found = _for_its_turn(w, fit, now, hunt, owed_now)
        if found is None:
            hopeless.add(alike)
            continue
        _record(w, found, now, hunt, workload.identity in expired if expired else False)
    if any(w not in now.making for w in hopefuls):
        now.protected_until_s = _protected_until_s(future, now.snapshot.now_s)


def _protected_until_s(future: Future, now_s: float) -> float:
    """When the first of those who have not run for their least time has; infinite where there is none."""
    roster = future.roster
    until = (roster.started_s + roster.min_runtime_s)[roster.may_leave & ~future.gone]
    return float(until[until > now_s].min(initial=np.inf))


def lowest_that_runs(now: Round) -> int:
    """The lowest priority of those who run and may be asked to leave; above every priority where nobody may."""
    crowd = now.draft.tables.crowd
    return int(crowd.priority[crowd.may_leave].min(initial=2**31))


def asks_for_room(w: int, lowest: int, now: Round) -> bool:
    """Somebody of less priority than this one, which waits, runs, and its turn to have room made has not been."""
    is_above = bool(now.waits.priority[w] > lowest) and now.searches < now.policy.room_searches
    return is_above and w not in now.holds and w not in now.sought and _may_ask(w, now)


def _may_ask(w: int, now: Round) -> bool:
    return now.workloads[w].preempts and w not in now.refused and w not in now.kept_off


def _owed(hopefuls: Sequence[int], now: Round) -> set[int]:
    """Those whose queues hold less than they are due, where some queue holds more."""
    shares = now.shares
    if shares is None or not now.may_reclaim:
        return set()
    held = shares.held_now(now.ledger)
    if not (held > shares.due + ROUNDING).any():
        return set()
    # The chain of a queue up to the first that is owed nothing has to begin with itself.
    takes = [queue.is_stated and queue.reclaim != "Never" for queue in now.ledger.queues]
    due = np.where(takes, shares.due + ROUNDING, -np.inf)
    lacks = (held <= due)[now.queue].tolist()
    values: dict[int, float] = {}  # by what is asked for
    found = set()
    for w in hopefuls:
        if lacks[w]:
            if (value := values.get(now.number(w))) is None:
                value = values[now.number(w)] = now.least_value(w)
            if held[(q := int(now.queue[w]))] + value <= due[q]:
                found.add(w)
    return found


def _found(w: int, fit: Mask, now: Round, hunt: Hunt, owed: Owed | None) -> Sacrifice | None:
    """Work of queues that hold more than they are due leaves first, then work of lower priority; none of what is
    guaranteed to another queue."""
    if owed is None or not now.policy.reclaims:
        return hunt.find(now.workloads[w], now.rows[w], fit)
    if now.may_reclaim and (found := _reclaimed(w, fit, now, hunt, owed)) is not None:
        return found
    return hunt.find(now.workloads[w], now.rows[w], fit, guarded=owed.guarded(int(now.queue[w])))


def _for_its_turn(w: int, fit: Mask, now: Round, hunt: Hunt, owed: Owed | None) -> Sacrifice | None:
    """Those leave that have more left to do; where each queue has its own turns nobody of another does."""
    assert now.turn is not None
    guarded = owed.guarded(int(now.queue[w])) if owed is not None and now.policy.least_left else None
    for some in now.turn.may_leave(w, int(now.milli[w])):
        if (found := hunt.find(now.workloads[w], now.rows[w], fit, some, guarded=guarded)) is not None:
            return found
    return None


def _reclaimed(w: int, fit: Mask, now: Round, hunt: Hunt, owed: Owed) -> Sacrifice | None:
    """The cheapest that keeps every queue at what it is due; else what stands beyond it, in order; else with the
    smallest job that stands across."""
    workload, q = now.workloads[w], int(now.queue[w])
    queue, shares = now.ledger.queues[q], owed.shares
    if queue.reclaim == "Never" or not queue.is_stated:
        return None
    held = owed.held()
    entitled = owed.entitled(q, now.least_value(w), held)
    lenders = owed.lenders(entitled, q, held)
    if not lenders:
        return None
    candidates = owed.candidates(workload, lenders, queue.reclaim == "Any")
    if not candidates.any():
        return None
    # A dearer class than the mean could take it above what it is due.
    milli = milli_of(workload, minimum=True)
    least = min(float(shares.due[x] - held[x]) for x in entitled) + ROUNDING
    fit = fit & (milli * shares.worth <= least)[now.draft.columns.gpu_class]
    rows = now.rows[w]
    found = hunt.find(
        workload, rows, fit, only=candidates, accepts=lambda pods: owed.keeps_due(pods, lenders, held)
    )  # fmt: skip
    for only in owed.beyond(candidates, lenders, held) if found is None else ():
        if (found := hunt.find(workload, rows, fit, only=only)) is not None:
            break
    if found is not None:
        now.reclaimed.add(w)
    return found


def _future(now: Round, roster: Roster) -> Future:
    """Without what holds keep: who holds is put there instead."""
    kept = list(now.holds.values())
    told = {(one.namespace, one.name) for k in kept for one in k.hold.leaving}
    leaving = [p for p, a in enumerate(roster.allocations) if (a.namespace, a.name) in told] if told else []
    leaving = [p for p in leaving if roster.node[p] >= 0]
    mixed = {int(n) for _, _, node, _ in now.binds for n in np.unique(node)}
    holds.give_back(kept, now.draft)
    future = Future.of(now.draft, roster, leaving, mixed)
    holds.keep(kept, now.rows, now.draft)
    return future


def _confirm(kept: Kept, now: Round, hunt: Hunt) -> None:
    """The hold counts as if its workload were placed; where it could not be there any more, it is void."""
    w = kept.workload
    nodes = np.zeros(now.draft.columns.size, bool)
    nodes[kept.nodes] = True
    may_start = now.allowed(w)[kept.nodes].all() or not starts_a_gang(now.workloads[w])
    found = hunt.confirm(now.workloads[w], now.rows[w], nodes, kept.pods) if may_start else None
    if found is None:
        now.release(kept)
        return
    now.promised[w] = found.places
    roster = hunt.future.roster
    told = {(one.namespace, one.name) for one in kept.hold.leaving}
    there = np.flatnonzero(hunt.future.gone)
    still = [
        int(roster.node[p])
        for p in there.tolist()
        if nodes[roster.node[p]] or (roster.allocations[p].namespace, roster.allocations[p].name) in told
    ]
    now.making[w] = made(still, max(len(told), len(still)), kept.hold.until_s)


def _record(w: int, found: Sacrifice, now: Round, hunt: Hunt, had_hold: bool) -> None:
    roster, workload = hunt.future.roster, now.workloads[w]
    now.promised[w] = found.places
    nodes = {n for _, n, _ in found.places}
    pods = list(found.pods)
    others = [p for n in sorted(nodes) for p in roster.on(n).tolist() if hunt.future.gone[p] and p not in found.pods]
    waits_for = [*pods, *others]
    until_s = now.snapshot.now_s + now.policy.hold_s + _longest(waits_for, roster, now.snapshot.now_s)
    where = tuple(sorted(nodes))
    now.making[w] = made((int(roster.node[p]) for p in waits_for), len(waits_for), until_s, where)
    if not pods and not had_hold:
        return
    index = now.draft.columns.nodes
    hold = Hold(
        workload.identity,
        tuple(Place(workload.pod_sets[s].name, index[n].name, count) for s, n, count in found.places),
        workload.uid,
        tuple(_leaving(p, roster) for p in waits_for),
        until_s,
    )
    now.new_holds.append(hold)
    now.evictions += _evictions(w, found, nodes, now, hunt)
    if kept := holds.kept_of(hold, w, workload, now.draft):
        now.hold(kept)


def _leaving(p: int, roster: Roster) -> Leaving:
    a = roster.allocations[p]
    return Leaving(a.namespace, a.name, a.uid, a.workload_identity)


def _longest(pods: Sequence[int], roster: Roster, now_s: float) -> float:
    """Seconds until the last of these pods has to be gone."""
    longest = 0.0
    for a in (roster.allocations[p] for p in pods):
        longest = max(longest, a.ends_s - now_s if a.is_ending and a.ends_s else a.grace_s)
    return longest


def made(nodes: Iterable[int], leaving: int, until_s: float, where: tuple[int, ...] = ()) -> Making:
    """Room that is on its way: one node for each pod that has to leave still."""
    found: dict[int, int] = {}
    for n in nodes:
        found[n] = found.get(n, 0) + 1
    return Making(tuple(sorted(found.items())), leaving, until_s, where)


def _evictions(w: int, found: Sacrifice, nodes: set[int], now: Round, hunt: Hunt) -> list[Eviction]:
    roster = hunt.future.roster
    lost_s = roster.lost_s(now.snapshot.now_s)
    made = []
    for p in found.pods:
        rule = Rule.LowerPriority
        if p in found.beyond_budgets:
            rule = Rule.BeyondBudget
        elif w in now.reclaimed:
            rule = Rule.Reclaimed
        elif int(roster.node[p]) not in nodes:
            rule = Rule.WithGang
        elif roster.priority[p] >= now.workloads[w].priority:
            rule = Rule.SetAside
        hours = float(lost_s[p]) * int(roster.milli[p]) / 1000 / 3600
        made.append(Eviction(roster.allocations[p], w, hours, rule))
    return made
