"""Step 4: room for those that wait and have priority over pods that run, and holds for those who get it.

In the order of the queue, each workload that no limit and no gate keeps: by what becomes free anyway, else by the
cheapest pods that leave (preemption.py). Who has a hold already evicts nobody as long as the hold would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from berth.model.hold import Hold, Leaving, Place
from berth.scheduling import holds
from berth.scheduling.allowance import Allowances
from berth.scheduling.feasibility import starts_a_gang
from berth.scheduling.future import Future
from berth.scheduling.holds import Kept
from berth.scheduling.plan import Eviction, Rule
from berth.scheduling.preemption import Hunt, Sacrifice
from berth.scheduling.roster import Roster
from berth.scheduling.round import Making, Round


def make_room(now: Round) -> None:
    """Writes evictions, new holds and what is on its way into the round."""
    hopefuls = [w for w in now.waiting if _may_ask(w, now)]
    if not hopefuls and not any(kept.hold.leaving or kept.workload not in now.refused for kept in now.holds.values()):
        return
    crowd = now.draft.tables.crowd
    lowest = int(crowd.priority[crowd.may_leave].min(initial=2**31))
    if not now.holds and not crowd.ending.any():
        hopefuls = [w for w in hopefuls if now.workloads[w].priority > lowest]
        if not hopefuls:
            return
    roster = now.draft.tables.roster()
    future = _future(now, roster)
    hunt = Hunt(future, Allowances(roster, now.snapshot.budgets, future.gone), now.policy, now.snapshot.now_s)
    expired = {hold.workload for hold in now.snapshot.holds}
    for kept in list(now.holds.values()):
        _confirm(kept, now, hunt)
    hopeless: set[object] = set()
    searches = 0
    for w in hopefuls:
        workload = now.workloads[w]
        alike = (now.shape(w), workload.priority)
        if w in now.holds or alike in hopeless or now.over_limit(w):
            continue
        if searches == now.policy.room_searches:
            break
        searches += 1
        # Nobody leaves for a place on a node that may be failing.
        found = hunt.find(workload, now.rows[w], now.allowed(w) & ~now.draft.columns.suspect)
        if found is None:
            hopeless.add(alike)
            continue
        _record(w, found, now, hunt, workload.identity in expired if expired else False)


def _may_ask(w: int, now: Round) -> bool:
    return now.policy.evicts and now.workloads[w].preempts and w not in now.refused and w not in now.kept_off


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
    roster = hunt.future.roster
    told = {(one.namespace, one.name) for one in kept.hold.leaving}
    there = np.flatnonzero(hunt.future.gone)
    still = [
        int(roster.node[p])
        for p in there.tolist()
        if nodes[roster.node[p]] or (roster.allocations[p].namespace, roster.allocations[p].name) in told
    ]
    now.making[w] = Making(_counted(still), max(len(told), len(still)), kept.hold.until_s)


def _record(w: int, found: Sacrifice, now: Round, hunt: Hunt, had_hold: bool) -> None:
    roster, workload = hunt.future.roster, now.workloads[w]
    nodes = {n for _, n, _ in found.places}
    pods = list(found.pods)
    others = [p for n in sorted(nodes) for p in roster.on(n).tolist() if hunt.future.gone[p] and p not in found.pods]
    waits_for = [*pods, *others]
    until_s = now.snapshot.now_s + now.policy.hold_s + _longest(waits_for, roster, now.snapshot.now_s)
    now.making[w] = Making(_counted(int(roster.node[p]) for p in waits_for), len(waits_for), until_s)
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


def _counted(nodes: Iterable[int]) -> tuple[tuple[int, int], ...]:
    found: dict[int, int] = {}
    for n in nodes:
        found[n] = found.get(n, 0) + 1
    return tuple(sorted(found.items()))


def _evictions(w: int, found: Sacrifice, nodes: set[int], now: Round, hunt: Hunt) -> list[Eviction]:
    roster = hunt.future.roster
    lost_s = roster.lost_s(now.snapshot.now_s)
    made = []
    for p in found.pods:
        rule = Rule.LowerPriority
        if p in found.beyond_budgets:
            rule = Rule.BeyondBudget
        elif int(roster.node[p]) not in nodes:
            rule = Rule.WithGang
        hours = float(lost_s[p]) * int(roster.milli[p]) / 1000 / 3600
        made.append(Eviction(roster.allocations[p], w, hours, rule))
    return made
