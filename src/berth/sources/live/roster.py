"""The pods of a cluster that changes, and what they are part of: what holds capacity, what waits.

A change costs what it touches: the pod's record, its membership where that may differ, and, at the next look, the
one workload that it is of.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from berth.dialects.following import Following
from berth.dialects.membership import Membership, Signature, signature
from berth.model.cluster import Allocation
from berth.model.resources import PODS
from berth.model.workload import Workload
from berth.sources.inventory import Key, PodRecord
from berth.sources.live.ours import Ours, asks_for_gpus
from berth.sources.live.unheard import GroupKey, Unheard
from berth.sources.workloads import Workloads


@dataclass(slots=True)
class Member:
    """A pod and where it belongs."""

    record: PodRecord
    alike: Signature
    membership: Membership
    group: GroupKey


@dataclass(slots=True)
class Group:
    """The pods of one workload, and how many of them wait for us.

    `beside` wait for us only if others of the workload ask for GPUs.
    """

    pods: dict[Key, Member] = field(default_factory=dict)
    waiting: int = 0
    beside: int = 0


class Roster:
    """`held` are the allocations, `waiting` the workloads of the last `rebuild`.

    What `unheard` waits for is not among `waiting`. `changed` is called where something may let a pod be placed;
    `asked` with the levels of topology that a new member names, `mounts` with the record of a pod that has volumes or
    had some.
    """

    def __init__(
        self,
        made: Workloads,
        following: Following,
        ours: Ours,
        share: Callable[[str], str],
        unheard: Unheard,
        *,
        changed: Callable[[], None],
        asked: Callable[[Collection[str]], None],
        mounts: Callable[[PodRecord], None],
    ) -> None:
        self.held: dict[Key, Allocation] = {}
        self.waiting: dict[GroupKey, Workload] = {}
        self.ours = ours
        self._made = made
        self._following = following
        self._share = share
        self._unheard = unheard
        self._changed = changed
        self._asked = asked
        self._mounts = mounts
        self._members: dict[Key, Member] = {}
        self._groups: dict[GroupKey, Group] = {}
        self._alike: dict[Signature, set[Key]] = {}
        self._dirty: dict[GroupKey, None] = {}

    def __len__(self) -> int:
        return len(self._members)

    # ---- looked at

    def record(self, key: Key) -> PodRecord | None:
        member = self._members.get(key)
        return member.record if member else None

    def group_of(self, key: Key) -> GroupKey:
        """The workload of a pod that is there."""
        return self._members[key].group

    def used_on(self, node: str) -> dict[str, int]:
        """What the pods of a node ask for together, their number too. Costs a look at all that run."""
        here = [one for one in self.held.values() if one.node == node]
        used = {PODS: len(here)}
        for one in here:
            for name, amount in one.pod_class.requests:
                used[name] = used.get(name, 0) + amount
        return used

    def of(self, group_key: GroupKey) -> list[tuple[PodRecord, Membership]]:
        """All pods of a workload, the bound ones too."""
        group = self._groups.get(group_key)
        return [(m.record, m.membership) for m in group.pods.values()] if group else []

    def is_ours(self, key: Key) -> bool:
        """The pod is there and waits for us, by itself or because of the others of its workload."""
        member = self._members.get(key)
        return member is not None and self._is_ours(member.record, self._groups[member.group])

    # ---- changed

    def put(self, record: PodRecord) -> None:
        key = record.key
        before = self._members.get(key)
        if before is not None and before.record == record:
            return
        if before is not None and _says_the_same(before.record, record):
            member = before
            alike, membership = before.alike, before.membership
        else:
            facts = self._made.facts(record)
            alike = signature(facts)
            membership = self._following.of_alike(alike, facts)
            self._asked(membership.levels)
            member = Member(record, alike, membership, (membership.kind, self._share(membership.key)))
        waited = before is not None and self.ours.has(before.record)
        waits = self.ours.has(record)
        was_beside = before is not None and self.ours.may_have(before.record)
        beside = self.ours.may_have(record)
        group_before = before.group if before is not None else None
        mounted = before is not None and bool(before.record.claims)
        if before is not None and before is not member:
            self._leave(key, before)
        member.record, member.alike, member.membership = record, alike, membership
        if before is not member:
            self._members[key] = member
            self._alike.setdefault(alike, set()).add(key)
            group = self._groups.setdefault(member.group, Group())
            group.pods[key] = member
            group.waiting += waits
            group.beside += beside
        else:
            group = self._groups[member.group]
            group.waiting += waits - waited
            group.beside += beside - was_beside
        if group.waiting or group.beside or waited or was_beside or group_before != member.group:
            self._dirty[member.group] = None
        if record.claims or mounted:
            self._mounts(record)
        self._hold(key, record, member)
        if waits or beside or (waited and not record.node):
            self._changed()

    def drop(self, key: Key) -> PodRecord | None:
        """The pod has gone. Its last record, None where it was not known."""
        member = self._members.pop(key, None)
        if member is None:
            return None
        self._leave(key, member)
        self._made.attached.leave(key)
        # Of one that waited something else is to be said now, if only that nobody waits.
        if self.held.pop(key, None) is not None or self.ours.has(member.record):
            self._changed()
        return member.record

    def touch(self, key: Key) -> None:
        """Something about the pod is to be told otherwise."""
        member = self._members.get(key)
        if member is not None:
            self._dirty[member.group] = None

    def touch_group(self, key: GroupKey) -> None:
        """The same of a workload."""
        self._dirty[key] = None

    def touch_where(self, concerned: Callable[[Iterable[PodRecord], GroupKey], bool]) -> None:
        """The same of all that wait and are concerned."""
        for key in self.waiting:
            if (group := self._groups.get(key)) and concerned((m.record for m in group.pods.values()), key):
                self._dirty[key] = None

    def regroup(self, stale: set[Signature]) -> None:
        """Pods whose owner or group changed are read anew."""
        for alike in stale:
            for key in sorted(self._alike.get(alike, ())):
                member = self._members.get(key)
                if member is None:
                    continue
                self._leave(key, member)
                del self._members[key]
                self.put(member.record)
        if stale:
            self._changed()

    def volumes_changed(self, pods: Iterable[Key]) -> None:
        """The volumes of these pods are others than before, or elsewhere."""
        for key in pods:
            member = self._members.get(key)
            if member is None:
                continue
            group = self._groups.get(member.group)
            if group is not None and (group.waiting or group.beside):
                self._dirty[member.group] = None
                self._changed()
            if key in self.held:
                self.held[key] = self._made.allocation(member.record, member.group[1], member.membership)

    def read_again(self) -> None:
        """Priorities changed: everything may differ."""
        for key, member in self._members.items():
            self._dirty[member.group] = None
            if key in self.held:
                self.held[key] = self._made.allocation(member.record, member.group[1], member.membership)
        self._changed()

    def serve(self, ours: Ours) -> None:
        """Whose pods are ours, from now on."""
        self.ours = ours
        for key, group in self._groups.items():
            before = group.waiting, group.beside
            group.waiting = sum(ours.has(m.record) for m in group.pods.values())
            group.beside = sum(ours.may_have(m.record) for m in group.pods.values())
            if before != (group.waiting, group.beside):
                self._dirty[key] = None
        self._changed()

    def rebuild(
        self,
        finished: Callable[[GroupKey, Workload, list[PodRecord]], Workload],
        ended: Callable[[GroupKey, Workload], None],
        now_s: float,
        longest_s: float = math.inf,
    ) -> int:
        """Bring `waiting` up to date. What may differ goes through `finished`; of `ended` nothing waits any more.

        Stops after `longest_s`, at least one workload later; the answer is how many have been looked at.
        """
        self._made.doubts.forget()
        until = time.perf_counter() + longest_s
        looked_at: list[GroupKey] = []
        for key in self._dirty:
            if looked_at and time.perf_counter() >= until:
                break
            looked_at.append(key)
            group = self._groups.get(key)
            if group is None:
                continue
            if not group.pods:
                del self._groups[key]
            members = self._members_that_count(group)
            unseen = {one for record, m in members if m.unseen and record.waits for one in m.unseen}
            is_early = self._unheard.waits(key, unseen, now_s)
            if not is_early and any(record.waits for record, _ in members):
                workload = self._unheard.doubted(key, self._made.workload(members))
                self.waiting[key] = finished(key, workload, [record for record, _ in members])
            elif (gone := self.waiting.pop(key, None)) is not None:
                ended(key, gone)
        for key in looked_at:
            del self._dirty[key]
        return len(looked_at)

    @property
    def changed_count(self) -> int:
        """Workloads that may differ from those in `waiting`."""
        return len(self._dirty)

    def charge_anew(self) -> None:
        """Pods that share a volume with one that came or went."""
        charged_anew = self._made.attached.charged_anew
        while charged_anew:
            key = charged_anew.pop()
            if key in self.held and (member := self._members.get(key)) is not None:
                self.held[key] = self._made.allocation(member.record, member.group[1], member.membership)

    # ---- how it is kept

    def _hold(self, key: Key, record: PodRecord, member: Member) -> None:
        if record.node and not record.has_ended:
            self.held[key] = self._made.allocation(record, member.group[1], member.membership)
        elif self.held.pop(key, None) is not None:
            self._made.attached.leave(key)
            self._changed()

    def _leave(self, key: Key, member: Member) -> None:
        group = self._groups.get(member.group)
        if group is not None and group.pods.pop(key, None) is not None:
            group.waiting -= self.ours.has(member.record)
            group.beside -= self.ours.may_have(member.record)
            self._dirty[member.group] = None
        alike = self._alike.get(member.alike)
        if alike is not None:
            alike.discard(key)
            if not alike:
                del self._alike[member.alike]
                self._following.forget_signature(member.alike)

    def _is_ours(self, record: PodRecord, group: Group) -> bool:
        """The pod waits for us, by itself or because of the others of its workload."""
        if self.ours.has(record):
            return True
        if not self.ours.may_have(record):
            return False
        return any(asks_for_gpus(m.record) for m in group.pods.values())

    def _members_that_count(self, group: Group) -> list[tuple[PodRecord, Membership]]:
        """Pods that wait for us, and all that do not wait; none where nobody waits for us."""
        if not (group.waiting or group.beside):
            return []
        return [
            (m.record, m.membership)
            for m in group.pods.values()
            if not m.record.waits or self._is_ours(m.record, group)
        ]


def _says_the_same(one: PodRecord, other: PodRecord) -> bool:
    """Nothing changed of what decides where the pod belongs."""
    return (
        one.labels == other.labels
        and one.annotations == other.annotations
        and one.owners == other.owners
        and one.scheduling_group == other.scheduling_group
        and one.priority_class == other.priority_class
    )
