"""Pods that were asked to leave and did not, and for whom they were to leave: both are left alone for a while.

A budget that is used up says no to every pod of a workload, so after a 429 none of them is asked; after any other
refusal only that pod is not. Room for the workload that was to have it is not looked for meanwhile, at first for a
moment only: somebody else may leave in their stead. It is placed all the same where there is room.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from berth.model.cluster import Allocation
from berth.model.workload import Workload
from berth.sources.inventory import Key
from berth.sources.live.refusals import Refusals

STAYS_S = (1.0, 300.0)  # for which a pod is not asked again: first, longest
PAUSES_S = (0.25, 60.0)  # and for which no room is looked for


class Staying:
    """`now_s` is seconds since the epoch throughout; workloads are known by their identity."""

    def __init__(self) -> None:
        self._pods: Refusals[Key] = Refusals(*STAYS_S)
        self._for: Refusals[str] = Refusals(*PAUSES_S)
        self._told: set[str] = set()
        self._marked: dict[Key, tuple[Allocation, Allocation]] = {}

    def refused(self, pods: Iterable[Key], workload: str, why: str, now_s: float) -> None:
        """These do not leave for the workload. What is refused at the same time counts once."""
        for pod in pods:
            if self._pods.of(pod, now_s) is None:
                self._pods.add(pod, why, now_s)
        if self._for.of(workload, now_s) is None:
            self._for.add(workload, why, now_s)
        self._told.add(workload)

    def forget(self, pod: Key) -> None:
        """The pod is gone."""
        if self._pods:
            self._pods.drop(pod)
            self._marked.pop(pod, None)

    def heeded(self, held: Mapping[Key, Allocation], now_s: float) -> Iterable[Allocation]:
        """What is held, these marked as not to be asked. The same objects as long as nothing changes."""
        if not self._pods:
            return held.values()
        all_of_them = dict(held)
        marked: dict[Key, tuple[Allocation, Allocation]] = {}
        for pod in self._pods:
            allocation = held.get(pod)
            if allocation is None or self._pods.of(pod, now_s) is None:
                continue
            known = self._marked.get(pod)
            if known is None or known[0] is not allocation:
                known = allocation, replace(allocation, preemptible=False)
            marked[pod] = known
            all_of_them[pod] = known[1]
        self._marked = marked
        return all_of_them.values()

    def waiting(self, workload: Workload, now_s: float) -> Workload:
        """The workload with what is said of it; while it is left alone nobody is asked to leave for it."""
        if not self._for or workload.identity not in self._for:
            return workload
        workload = replace(workload, findings=(*workload.findings, self._for.why(workload.identity)))
        return replace(workload, preempts=False) if self._for.of(workload.identity, now_s) else workload

    def over(self, now_s: float) -> Collection[str]:
        """Workloads of which something else is to be said from now on."""
        if not self._told and not self._pods:
            return ()
        self._pods.over(now_s)
        ended = set(self._for.over(now_s))
        ended |= {workload for workload in self._told if workload not in self._for}
        self._told = {workload for workload in self._told if workload in self._for}
        return ended

    @property
    def next_s(self) -> float:
        """When something of this changes by itself; infinity where nothing will."""
        return min(self._pods.next_s, self._for.next_s)
