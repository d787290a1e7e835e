"""What has run and ended, as far as the API server still holds its pods: from that a scheduler that has just started
knows how long work like it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from berth.dialects.membership import Membership
from berth.kube import wire
from berth.model.history import Ended
from berth.model.workload import PodClass, identity_of
from berth.scheduling.quota import gpu_milli
from berth.sources.inventory import Key, PodRecord, seconds
from berth.sources.live.unheard import GroupKey

KEPT = 20_000  # pods; of more the ones that were told first are forgotten

Members = Iterable[tuple[PodRecord, Membership]]


class EndedPods:
    """Pods that did what they had to: what each held, and when it ended."""

    def __init__(self) -> None:
        self._pods: dict[Key, tuple[int, float]] = {}

    def put(self, key: Key, pod_class: PodClass, status: wire.PodStatus) -> None:
        """A pod that has ended well. Who held no GPU, or does not say when it ended, is passed over."""
        milli, ended_s = gpu_milli(pod_class.requests, pod_class.gpu_milli), ended_at_s(status)
        if not milli or not ended_s:
            return
        self._pods[key] = milli, ended_s
        if len(self._pods) > KEPT:
            del self._pods[next(iter(self._pods))]

    def drop(self, key: Key) -> None:
        self._pods.pop(key, None)

    def workloads(self, group_of: Callable[[Key], GroupKey], members: Callable[[GroupKey], Members]) -> list[Ended]:
        """Those of which all pods that are there have ended well."""
        found = []
        for group in {group_of(key) for key in self._pods}:
            pods = list(members(group))
            if all(record.has_ended for record, _ in pods) and any(record.started_s for record, _ in pods):
                found.append(self._ended(group, pods))
        return found

    def _ended(self, group: GroupKey, pods: list[tuple[PodRecord, Membership]]) -> Ended:
        known = [self._pods[record.key] for record, _ in pods if record.key in self._pods]
        first, membership = pods[0]
        return Ended(
            identity_of(*group),
            first.namespace,
            membership.queue,
            sum(milli for milli, _ in known),
            first.priority or 0,
            membership.time_limit_s,
            min(record.created_s for record, _ in pods),
            min(record.started_s for record, _ in pods if record.started_s),
            max(ended_s for _, ended_s in known),
        )


def ended_at_s(status: wire.PodStatus) -> float:
    """When the last of its containers ended, in seconds since the epoch; 0.0 where that is not told."""
    ends = [
        seconds(one.state.terminated.finished_at)
        for one in status.container_statuses or ()
        if one.state is not None and one.state.terminated is not None
    ]
    return max(ends, default=0.0)
