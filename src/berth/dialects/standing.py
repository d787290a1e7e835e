"""How far a workload has come: who waits, who is bound, who is missing, how many more must start together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from berth.dialects.assembly import least_shared
from berth.dialects.members import Membership, PodFacts, SetNeed, Standing


def merged(memberships: Iterable[Membership]) -> Membership:
    """One membership for all pods of a workload: the sets that any of them knows, all that was told.

    Raises ValueError where there is none.
    """
    alike = list({id(m): m for m in memberships}.values())
    if not alike:
        raise ValueError("a workload has one pod at least")
    sets: dict[str, SetNeed] = {}
    for one in alike:
        for need in one.sets:
            known = sets.get(need.name)
            if known is None or (need.count, bool(need.topology)) > (known.count, bool(known.topology)):
                sets[need.name] = need
    first = alike[0]
    return replace(
        first,
        sets=tuple(sets.values()),
        topology=next((m.topology for m in alike if m.topology), ()),
        contradictions=tuple(dict.fromkeys(c for m in alike for c in m.contradictions)),
        notes=tuple(dict.fromkeys(n for m in alike for n in m.notes)),
    )


def standings(membership: Membership, pods: Iterable[tuple[PodFacts, str]]) -> tuple[Standing, ...]:
    """How far the workload has come. `pods` are all pods of the workload, each with its pod set's name.

    Bound pods count toward the minimum; ended ones neither wait nor are missing.
    """
    waiting: dict[str, int] = {}
    bound: dict[str, int] = {}
    ended: dict[str, int] = {}
    for pod, name in pods:
        tally = ended if pod.ended else bound if pod.bound else waiting
        tally[name] = tally.get(name, 0) + 1
    needs = {need.name: need for need in membership.sets}
    for name in (*waiting, *bound, *ended):
        needs.setdefault(name, SetNeed(name, 0, 0))
    counts = {
        name: max(need.count, waiting.get(name, 0) + bound.get(name, 0) + ended.get(name, 0))
        for name, need in needs.items()
    }
    _add_uncreated(membership, needs, counts)
    minimums = _minimums(membership, needs, counts, waiting, bound)
    made = []
    for name, need in needs.items():
        here = waiting.get(name, 0) + bound.get(name, 0)
        missing = max(0, counts[name] - here - ended.get(name, 0))
        if need.follows and not here:
            missing = 0  # nobody is to make them yet
        made.append(
            Standing(
                name,
                waiting.get(name, 0),
                bound.get(name, 0),
                missing,
                min(minimums[name], waiting.get(name, 0) + missing),
                need.topology,
                need.template,
            )
        )
    return tuple(made)


def _add_uncreated(membership: Membership, needs: Mapping[str, SetNeed], counts: dict[str, int]) -> None:
    """A group's minimum may be larger than the number of pods seen; the rest has not been created yet."""
    short = membership.least - sum(counts.values())
    if short <= 0 or not needs:
        return
    open_ended = [name for name, need in needs.items() if not need.count]
    counts[open_ended[0] if open_ended else next(iter(needs))] += short


def _minimums(
    membership: Membership,
    needs: Mapping[str, SetNeed],
    counts: Mapping[str, int],
    waiting: Mapping[str, int],
    bound: Mapping[str, int],
) -> dict[str, int]:
    """By set, how many more must be placed together: its own minimum, then its share of the whole's."""
    started = {name: bool(waiting.get(name, 0) + bound.get(name, 0)) for name in needs}
    counted_sets = [n for n in needs if started[n] or not needs[n].follows]
    if membership.least < 0:
        return {n: max(0, counts[n] - bound.get(n, 0)) if n in counted_sets else 0 for n in needs}
    given = {n: max(0, needs[n].min_count - bound.get(n, 0)) if n in counted_sets else 0 for n in needs}
    left = membership.least - sum(bound.values()) - sum(given.values())
    if left > 0:
        room = [(n, counts[n] - bound.get(n, 0) - given[n], waiting.get(n, 0) - given[n]) for n in counted_sets]
        for name, more in least_shared(room, left).items():
            given[name] += more
    return given
