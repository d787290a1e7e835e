"""Expected starts of those who wait, while jobs go on over time: asked for from time to time, between decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from berth.model.snapshot import Snapshot
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.starts import Start
from berth.scheduling.starts_watch import Watch
from berth.simulation.queueing.state import State

Decide = Callable[[Snapshot], Plan]


class Foreseen:
    """Decides as `decide`, and keeps the last decision: the queue is played forward from there. `every_s` simulated
    seconds lie between two answers at least."""

    def __init__(self, decide: Decide, policy: Policy, every_s: float) -> None:
        self._decide = decide
        self._watch = Watch(policy, every_s)
        self._last: tuple[Snapshot, Plan] | None = None
        self._said: dict[str, Start] = {}

    def __call__(self, snapshot: Snapshot) -> Plan:
        plan = self._decide(snapshot)
        self._last = snapshot, plan
        return plan

    def starts(self, state: State) -> Mapping[int, Start]:
        """Of the jobs that wait, by job, as last answered. One that has come since has none yet."""
        if self._last is not None and self._watch.is_due(state.now_s):
            snapshot, plan = self._last
            found = self._watch.look(snapshot, plan)
            self._said = {snapshot.workloads[w].identity: start for w, start in found.items()}
        waiting = {state.workloads[job].identity: job for job in state.waiting}
        return {waiting[name]: start for name, start in self._said.items() if name in waiting}
