"""Step 5: a verdict for each workload that waits."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from berth.model.reasons import Answer, Cause, Reason, Verdict
from berth.scheduling.explain import verdict_of, without_release
from berth.scheduling.held import (
    behind,
    behind_booking,
    behind_in_time,
    making_room,
    room_is_held,
    whose_place_went,
    with_place,
)
from berth.scheduling.limits import refused_by_limits
from berth.scheduling.placement import place_gang
from berth.scheduling.proof import minimum_of
from berth.scheduling.reservation import passing
from berth.scheduling.round import Round
from berth.scheduling.sets import AsListed
from berth.scheduling.shapes import shape, shapes


def verdicts(now: Round) -> dict[int, Verdict]:
    """By the workload's index; workloads of the same shape share the work."""
    found: dict[int, Verdict] = {}
    shared: dict[object, Verdict] = {}
    whatever_the_queue: dict[object, Verdict] = {}
    took, of = _took_place(now), shapes(now)
    for w in now.waiting:
        workload = now.workloads[w]
        if w in now.refused and now.refused[w].reason is not Reason.LimitExceeded:
            cause = now.refused[w]
            found[w] = Verdict(workload.key, cause.reason.answer, (cause,))
            continue
        alike = of[w]
        if alike not in shared:
            with now.booked.entering(w), passing((w,) if w in now.reserved else (), now):
                shared[alike] = _explained(w, now, whatever_the_queue)
        verdict = shared[alike]
        if w in now.refused:  # a limit would keep it, whatever GPUs came free
            verdict = Verdict(workload.key, verdict.answer, tuple(without_release(c) for c in verdict.causes))
        if verdict.answer is not Answer.Never:
            if w in now.reserved and verdict.causes:
                one, nodes = now.reserved[w], now.draft.columns.nodes
                verdict = with_place(verdict, one.at_s, [nodes[n].name for n in one.kept.nodes])
            if w in now.kept_off:
                verdict = Verdict(workload.key, Answer.NotYet, (now.kept_off[w],))
            elif w in now.making:
                first = verdict.causes[0]
                cause = replace(_making(w, now), blocks=first.blocks, nearest=first.nearest)
                verdict = Verdict(workload.key, Answer.NotYet, (cause,))
        verdict = Verdict(workload.key, verdict.answer, verdict.causes)
        found[w] = whose_place_went(verdict, took[workload.identity]) if workload.identity in took else verdict
    return found


def _explained(w: int, now: Round, known: dict[object, Verdict]) -> Verdict:
    """What the tables say; a limit or a hold where they would let it start. What the tables say is `known` of those
    who are alike but for their queue."""
    workload, rows = now.workloads[w], now.rows[w]
    alike = shape(w, now, limits=False)
    said = known.get(alike)
    if said is None:
        everywhere = np.ones(now.draft.columns.size, bool)
        said = known[alike] = verdict_of(workload, rows, now.draft, everywhere, w not in now.unproven)
    if said.answer is Answer.Never:
        return said
    refusal = refused_by_limits(workload, rows, now.draft, now.ledger, int(now.queue[w]))
    return refusal or _behind(w, now) or _behind_booking(w, now) or said


def _making(w: int, now: Round) -> Cause:
    """Room is on its way."""
    making, nodes = now.making[w], now.draft.columns.nodes
    still = sum(count for _, count in making.waits_for)
    if still:
        names = [nodes[n].name for n, _ in making.waits_for]
        return making_room(names, making.leaving, making.leaving - still, making.until_s)
    names = [nodes[n].name for n in (now.holds[w].nodes if w in now.holds else making.nodes)]
    return room_is_held(names, sum(s.min_count for s in now.workloads[w].pod_sets), making.until_s)


def _behind(w: int, now: Round) -> Verdict | None:
    """The room that would do is held for another workload."""
    kept_places = [*now.holds.values(), *(one.kept for one in now.reserved.values() if one.kept.workload != w)]
    if not kept_places or w in now.making:
        return None
    workload, draft = now.workloads[w], now.without_holds
    tried = place_gang(
        minimum_of(workload), now.rows[w], draft, now.allowed(w), AsListed(), steps=now.policy.search_steps
    )
    nodes = sorted({put.node for put in draft.puts})
    draft.drop()
    whose = next((kept for kept in kept_places if set(nodes) & set(kept.pods)), None)
    if not tried.placed or whose is None:
        return None
    held = [draft.columns.nodes[n].name for n in nodes if n in whose.pods]
    holder = now.workloads[whose.workload].key
    if whose.workload in now.reserved:
        place = now.reserved[whose.workload]
        times = place.times(workload.queue, workload.namespace) if workload.time_limit_s else 1.0
        cause = behind_in_time(workload, holder, held, whose.hold.until_s, now.snapshot.now_s, times)
    else:
        cause = behind(workload, holder, held, whose.hold.until_s)
    return Verdict(workload.key, Answer.NotYet, (cause,))


def _behind_booking(w: int, now: Round) -> Verdict | None:
    """The room that would do is kept by people for others."""
    if not now.booked.blocked(w):
        return None
    workload, draft = now.workloads[w], now.without_bookings
    tried = place_gang(
        minimum_of(workload), now.rows[w], draft, now.allowed(w), AsListed(), steps=now.policy.search_steps
    )
    nodes = sorted({put.node for put in draft.puts})
    draft.drop()
    keepers = now.booked.keepers(nodes, w) if tried.placed else []
    if not keepers:
        return None
    booked = [draft.columns.nodes[n].name for n in nodes if n in keepers[0].gpus]
    cause = behind_booking(workload, keepers[0], booked, now.snapshot.now_s)
    return Verdict(workload.key, Answer.NotYet, (cause,))


def _took_place(now: Round) -> dict[str, str]:
    """Workloads whose pods have left or leave for another, and the other as people name it."""
    return {one.workload: now.workloads[w].key for w, kept in now.holds.items() for one in kept.hold.leaving}
