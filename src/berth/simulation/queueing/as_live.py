"""The order by what is left to do as a cluster has it: known by run-time limits and by what was seen to run alone."""

from __future__ import annotations

from msgspec.structs import replace

from berth.model.cluster import Allocation
from berth.model.snapshot import Snapshot
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.run_times import RunTimes
from berth.scheduling.tables import Tables

SAVES_EVERY_S = 600.0


class AsLive:
    """`decide` as a scheduler with `order.by: least-left`. With `all_save` it sets aside, and all work that does not
    say otherwise may leave and saves what it does: traces say nothing of that."""

    def __init__(self, all_save: bool, policy: Policy) -> None:
        self._all_save = all_save
        self._policy = replace(policy, least_left=True, savers_leave=all_save)
        self._run_times = RunTimes()
        self._tables = Tables()

    def decide(self, snapshot: Snapshot) -> Plan:
        """One cycle."""
        return self._decide(snapshot, self._policy)

    def explain(self, snapshot: Snapshot) -> Plan:
        """The same, which says of those that wait why they do."""
        return self._decide(snapshot, replace(self._policy, explains=True))

    def _decide(self, snapshot: Snapshot, policy: Policy) -> Plan:
        seen = self._run_times.of(_saving(snapshot) if self._all_save else snapshot)
        plan = cycle(seen, policy, self._tables)
        self._run_times.told(plan)
        return plan


def _saver(a: Allocation) -> Allocation:
    return replace(a, preemptible=True, checkpoint_every_s=a.checkpoint_every_s or SAVES_EVERY_S)


def _saving(snapshot: Snapshot) -> Snapshot:
    return replace(
        snapshot,
        allocations=tuple(a if a.preemptible is not None else _saver(a) for a in snapshot.allocations),
        workloads=tuple(
            replace(w, checkpoint_every_s=w.checkpoint_every_s or SAVES_EVERY_S) for w in snapshot.workloads
        ),
    )
