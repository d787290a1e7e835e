"""What if: who would be asked to leave for a workload that finds no room, if it were submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from berth.base.units import counted
from berth.model.reasons import Answer, Verdict
from berth.model.snapshot import Snapshot
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Eviction, Rule
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables

MOST_NAMED = 3


def who_would_leave(
    asked: Snapshot, verdicts: Mapping[int, Verdict], policy: Policy, tables: Tables
) -> Mapping[int, Sequence[Eviction]]:
    """By workload of `asked`, the pods that would leave for it; those that get no room that way are not in it.

    `verdicts` are those of the same question where nobody leaves.
    """
    crowd = tables.crowd
    lowest = int(crowd.priority[crowd.may_leave].min(initial=2**31))
    hopes = [w for w, v in verdicts.items() if v.answer is Answer.NotYet and asked.workloads[w].preempts]
    by_priority = any(asked.workloads[w].priority > lowest for w in hopes)
    by_share = policy.reclaims and bool(hopes) and len(asked.queues) > 1
    if not policy.evicts or not (by_priority or by_share):
        return {}
    found: dict[int, list[Eviction]] = {}
    for eviction in cycle(asked, policy, tables).evictions:
        found.setdefault(eviction.beneficiary, []).append(eviction)
    return found


def told(leaving: Sequence[Eviction]) -> str:
    """One sentence on who would leave, and what would be lost."""
    names = [f"{e.allocation.namespace}/{e.allocation.name}" for e in leaving[:MOST_NAMED]]
    if more := len(leaving) - len(names):
        names.append(f"{more:,} more")
    listed = " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
    lost = sum(e.gpu_hours for e in leaving)
    is_known = all(e.is_loss_known for e in leaving)
    work = f"{lost:,.1f} GPU-hours of work would be lost" if is_known else "nobody says since when they run"
    whose = (
        "of queues that hold more than they are due"
        if all(e.rule is Rule.Reclaimed for e in leaving)
        else "of lower priority"
        if all(e.rule is not Rule.Reclaimed for e in leaving)
        else "of lower priority, or of queues that hold more than they are due,"
    )
    return (
        f"It would start by making room: {counted(len(leaving), 'pod')} {whose} would be asked to leave ({listed}); "
        f"{work}."
    )
