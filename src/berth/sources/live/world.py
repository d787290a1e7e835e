"""The cluster as it is now, kept up with by changes; the snapshot of it costs what has changed since the last one.

One writer: the event loop. What has been decided and not yet been seen is *assumed*: a pod counts on its node
from the moment that its bind is sent, until the API server shows it or refuses it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from berth.dialects.following import Following
from berth.dialects.membership import Membership, Signature, signature
from berth.dialects.objects import ObjectKey, OwnerRef, group_of
from berth.dialects.remaking import lost_for_good
from berth.kube import wire, wire_budgets, wire_devices, wire_queues
from berth.model.cluster import Allocation
from berth.model.gpus import GpuMapping, joined
from berth.model.hold import Hold
from berth.model.snapshot import Snapshot
from berth.model.topology import Level, Topology
from berth.model.workload import Workload
from berth.sources.assemble import levels_of, queues_of
from berth.sources.budgets import budget_of
from berth.sources.domains import Domains
from berth.sources.inventory import Inventory, Key, PodRecord
from berth.sources.live.assumed import Assumed
from berth.sources.live.ground import Ground
from berth.sources.live.ours import Ours, asks_for_gpus
from berth.sources.live.promises import Promises
from berth.sources.live.selections import Selections
from berth.sources.live.stock import Stock
from berth.sources.pods_doubts import Doubts
from berth.sources.workloads import Workloads

log = logging.getLogger("berth.world")

GroupKey = tuple[str, str]  # (kind of what makes the pods one workload, its key)

# Of these only `spec` is read; their status changes with every decision.
_STATUS_SAYS_NOTHING = frozenset(("PodGroup", "Workload", "Queue", "LocalQueue", "ClusterQueue"))


@dataclass(slots=True)
class _Member:
    """A pod and where it belongs."""

    record: PodRecord
    alike: Signature
    membership: Membership
    group: GroupKey


@dataclass(slots=True)
class _Group:
    """The pods of one workload; how many of them wait for us, and the workload that those are.

    `beside` wait for us only if others of the workload ask for GPUs.
    """

    pods: dict[Key, _Member] = field(default_factory=dict)
    waiting: int = 0
    beside: int = 0
    workload: Workload | None = None


class World:
    """All that decides about a cluster, by what reflectors tell.

    `schedulers` are the names whose pods are ours to place. `on_change` is called, once, as soon as something
    changed that may let a pod be placed: a pod that waits, capacity that came free, a node, a queue.
    """

    def __init__(
        self,
        schedulers: Collection[str],
        *,
        mapping: GpuMapping | None = None,
        levels: tuple[Level, ...] = (),
        on_change: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._ours = Ours(schedulers)
        self.on_change = on_change
        # The API server shows a pod's node. True: it is to count as waiting until `let_through`.
        self.on_bound: Callable[[Key, str], bool] = lambda key, node: False
        self.on_gone: Callable[[Key], None] = lambda key: None
        self._now = now
        self.assumed = Assumed()
        self._levels = levels
        self._inventory = Inventory()
        self._following = Following()
        doubts = Doubts(knows_claims=True, knows_groups=True)
        self._made = Workloads(self._inventory, {}, Domains(Topology(), ()), doubts)
        self.promises = Promises()
        self._held_back: dict[Key, wire.Pod] = {}
        self._members: dict[Key, _Member] = {}
        self._groups: dict[GroupKey, _Group] = {}
        self._alike: dict[Signature, set[Key]] = {}
        self._dirty: dict[GroupKey, None] = {}
        self._held: dict[Key, Allocation] = {}
        self._waiting: dict[GroupKey, Workload] = {}
        self._mapping = mapping
        self._ground = Ground(mapping, self._inventory.share)
        self._inventory.storage.knows_classes = self._inventory.storage.knows_volumes = True
        self.stock = Stock(
            self._inventory.storage, self._inventory.offers, self._volumes_changed, lambda: self.on_change()
        )
        self.selections = Selections(self.stock, self.record, self.hold_off)

    # ---- facts

    def put_node(self, node: wire.Node) -> None:
        if self._ground.put(node):
            self.on_change()

    def drop_node(self, name: str) -> None:
        if self._ground.drop(name):
            # A volume that is being made for it has to be made for another.
            self._volumes_changed(self._inventory.storage.mounts.all_pods())
            self.on_change()

    def put_slice(self, resource_slice: wire_devices.ResourceSlice) -> None:
        if self._ground.put_slice(resource_slice):
            self.on_change()

    def drop_slice(self, name: str) -> None:
        if self._ground.drop_slice(name):
            self.on_change()

    def put_device_class(self, device_class: wire_devices.DeviceClass) -> None:
        if self._ground.put_device_class(device_class):
            self.on_change()

    def drop_device_class(self, name: str) -> None:
        if self._ground.drop_device_class(name):
            self.on_change()

    def put_pod(self, pod: wire.Pod) -> None:
        meta = pod.metadata or wire.NO_META
        spec = pod.spec or wire.PodSpec()
        status = pod.status or wire.PodStatus()
        key = (self._inventory.share(meta.namespace or "default"), meta.name or "")
        before = self._members.get(key)
        if status.phase == "Failed" and before is not None and not before.record.has_ended and spec.node_name:
            self._ground.not_admitted(spec.node_name, status, self._now())
        if spec.node_name and before is not None and not before.record.node and self.on_bound(key, spec.node_name):
            self._held_back[key] = pod
            return
        record = self.assumed.seen(self._inventory.record(key, meta, spec, status))
        self._put_record(record)

    def drop_pod(self, key: Key) -> None:
        self.assumed.drop(key)
        self.promises.forget(key)
        member = self._members.pop(key, None)
        if member is None:
            return
        self._leave(key, member)
        self._made.attached.leave(key)
        self.stock.lose(key)
        self._held_back.pop(key, None)
        self.on_gone(key)
        # Of one that waited something else is to be said now, if only that nobody waits.
        if self._held.pop(key, None) is not None or self._ours.has(member.record):
            self.on_change()

    def let_through(self, key: Key) -> None:
        """What was held back of a pod counts from now on."""
        if pod := self._held_back.pop(key, None):
            meta, spec = pod.metadata or wire.NO_META, pod.spec or wire.PodSpec()
            self._put_record(self._inventory.record(key, meta, spec, pod.status or wire.PodStatus()))

    def put_object(self, thing: dict[str, Any]) -> None:
        """An owner, a PodGroup of any dialect, whatever else is read as it is written."""
        meta = thing.get("metadata")
        if not isinstance(meta, dict):
            return
        meta.pop("managedFields", None)
        if thing.get("kind") in _STATUS_SAYS_NOTHING:
            thing.pop("status", None)
        key = _object_key(thing, meta)
        before = self._following.objects.get(key)
        if before is not None and _without_version(before) == _without_version(thing):
            return
        self._regroup(self._following.put(key, thing))

    def drop_object(self, thing: ObjectKey) -> None:
        self._regroup(self._following.drop(thing))

    def put_priority(self, priority: wire.PriorityClass) -> None:
        name = (priority.metadata or wire.NO_META).name or ""
        value = priority.value or 0
        if self._inventory.priorities.get(name) == value and not priority.global_default:
            return
        self._inventory.priorities[name] = value
        if priority.global_default:
            self._inventory.default_priority = value
        self._everything_again()

    def drop_priority(self, name: str) -> None:
        if self._inventory.priorities.pop(name, None) is not None:
            self._everything_again()

    def put_budget(self, budget: wire_budgets.PodDisruptionBudget) -> None:
        meta = budget.metadata or wire.NO_META
        key = (meta.namespace or "default", meta.name or "")
        found = budget_of(budget)
        if found is None:
            self._inventory.budgets.pop(key, None)
        else:
            self._inventory.budgets[key] = found

    def drop_budget(self, key: Key) -> None:
        self._inventory.budgets.pop(key, None)

    def put_queue(self, queue: wire_queues.GPUQueue) -> None:
        self._inventory.queues[(queue.metadata or wire.NO_META).name or ""] = queue
        self.on_change()

    def drop_queue(self, name: str) -> None:
        self._inventory.queues.pop(name, None)
        self.on_change()

    def put_gpu_class(self, gpu_class: wire_queues.GPUClass) -> None:
        name, rule = (gpu_class.metadata or wire.NO_META).name or "", gpu_class.spec or {}
        if self._inventory.gpu_classes.get(name) != rule:
            self._inventory.gpu_classes[name] = rule
            self._remap()

    def drop_gpu_class(self, name: str) -> None:
        if self._inventory.gpu_classes.pop(name, None) is not None:
            self._remap()

    def _remap(self) -> None:
        mapping, troubles = joined(self._mapping, self._inventory.gpu_classes)
        for trouble in troubles:
            log.warning("a GPUClass is passed over", extra={"why": trouble})
        self._ground.map(mapping)
        self.on_change()

    def put_topology(self, group: str, topology: wire_queues.Topology) -> None:
        self.drop_topology(group, (topology.metadata or wire.NO_META).name or "")
        self._inventory.topologies.append((group, topology))

    def drop_topology(self, group: str, name: str) -> None:
        kept = [
            (g, t)
            for g, t in self._inventory.topologies
            if (g, (t.metadata or wire.NO_META).name) != (group, name)
        ]
        self._inventory.topologies[:] = kept
        self._ground.stale()
        self.on_change()

    # ---- whose pods they are

    @property
    def schedulers(self) -> frozenset[str]:
        """The names that are served now."""
        return self._ours.names

    def serve(self, schedulers: Collection[str]) -> None:
        """Serve these names and no others, from now on: what waits under another is not ours any more."""
        if self._ours.names == frozenset(schedulers):
            return
        self._ours = Ours(schedulers)
        for key, group in self._groups.items():
            before = group.waiting, group.beside
            group.waiting = sum(self._ours.has(m.record) for m in group.pods.values())
            group.beside = sum(self._ours.may_have(m.record) for m in group.pods.values())
            if before != (group.waiting, group.beside):
                self._dirty[key] = None
        self.on_change()

    # ---- decisions on their way

    def assume(self, key: Key, node: str) -> PodRecord | None:
        """Count a waiting pod on a node from now on. None where it has gone, has a node already, or is not ours."""
        member = self._members.get(key)
        if member is None or not self._is_ours(member.record, self._groups[member.group]):
            return None
        record = self.assumed.put(member.record, node)
        self._put_record(record)
        return record

    def forget(self, key: Key) -> None:
        """The bind was refused: the pod waits again, unless the API server has shown otherwise."""
        record = self.assumed.refused(key)
        member = self._members.get(key)
        if record is not None and member is not None and member.record.uid == record.uid:
            self._put_record(record)

    def hold_off(self, key: Key, why: str, now_s: float) -> None:
        """Leave a waiting pod alone for a while, twice as long each time."""
        member = self._members.get(key)
        if member is not None:
            self.promises.hold_off(key, why, now_s)
            self._dirty[member.group] = None

    def keep(self, hold: Hold) -> None:
        """Keep places for a workload, instead of those that it had."""
        self.promises.keep(hold)

    def adopt(self, now_s: float) -> None:
        """Keep what an earlier leader has promised and not been able to give."""
        self._rebuild(now_s)
        held = tuple(self._held.values())
        for key, workload in self._waiting.items():
            waiting = (m.record for m in self._groups[key].pods.values() if m.record.waits)
            self.promises.adopt(workload, waiting, held, now_s)

    def release(self, workload: str) -> None:
        """Keep nothing for a workload (its identity) any more."""
        if self.promises.release(workload):
            self.on_change()

    def lost_for_good(self, records: Sequence[PodRecord]) -> str:
        """Why these pods of one workload must not be deleted; "" where a controller makes all of them again."""
        by_owner: dict[tuple[str, tuple[OwnerRef, ...]], int] = {}
        for record in records:
            key = (record.namespace, record.owners)
            by_owner[key] = by_owner.get(key, 0) + 1
        told = (lost_for_good(owners, ns, count, self._following.objects) for (ns, owners), count in by_owner.items())
        return next((why for why in told if why), "")

    @property
    def changes_by_itself_s(self) -> float:
        """When a snapshot will differ although nothing was told; infinity where it will not."""
        return min(self.promises.next_s, self._ground.next_s, self.stock.next_s, self.selections.next_s)

    def has_node(self, name: str) -> bool:
        return name in self._ground

    def record(self, key: Key) -> PodRecord | None:
        member = self._members.get(key)
        return member.record if member else None

    def members_of(self, workload: Workload) -> Iterable[tuple[PodRecord, Membership]]:
        """All pods of a workload that waits or waited: the bound ones too."""
        group = self._groups.get((workload.kind, workload.key))
        return [(m.record, m.membership) for m in group.pods.values()] if group else []

    # ---- the moment

    def snapshot(self, now_s: float) -> Snapshot:
        """The cluster now. What has not changed since the last snapshot is the same object."""
        self._let_pass(now_s)
        self._ground.survey(self._levels or levels_of(self._inventory), now_s)
        self._made.domains = self._ground.domains
        self.stock.offers.stand_on(self._ground.nodes)
        self._rebuild(now_s)
        self._charge_anew()
        waiting = self._waiting.values()
        return Snapshot(
            nodes=self.stock.put_on(self._ground.nodes),
            allocations=tuple(self._held.values()),
            workloads=tuple(waiting),
            gpu_classes=self._ground.gpu_classes,
            queues=queues_of(self._inventory),
            topology=self._ground.topology,
            now_s=now_s,
            budgets=tuple(self._inventory.budgets.values()),
            holds=(*self.promises.holds(waiting, now_s), *self.selections.holds(waiting, now_s)),
        )

    @property
    def size(self) -> Mapping[str, int]:
        """How much is known, by what."""
        return {
            "nodes": len(self._ground),
            "pods": len(self._members),
            "allocations": len(self._held),
            "workloads waiting": len(self._waiting),
        }

    # ---- how it is kept

    def _put_record(self, record: PodRecord) -> None:
        key = record.key
        before = self._members.get(key)
        if before is not None:
            if before.record == record:
                return
            if before.record.uid != record.uid:  # another pod of the same name
                self.drop_pod(key)
                before = None
        if before is not None and _says_the_same(before.record, record):
            member = before
            alike, membership = before.alike, before.membership
        else:
            facts = self._made.facts(record)
            alike = signature(facts)
            membership = self._following.of_alike(alike, facts)
            self._ground.ask(membership.levels)
            member = _Member(record, alike, membership, (membership.kind, self._inventory.share(membership.key)))
        waited = before is not None and self._ours.has(before.record)
        waits = self._ours.has(record)
        was_beside = before is not None and self._ours.may_have(before.record)
        beside = self._ours.may_have(record)
        group_before = before.group if before is not None else None
        if before is not None and before is not member:
            self._leave(key, before)
        member.record, member.alike, member.membership = record, alike, membership
        if before is not member:
            self._members[key] = member
            self._alike.setdefault(alike, set()).add(key)
            group = self._groups.setdefault(member.group, _Group())
            group.pods[key] = member
            group.waiting += waits
            group.beside += beside
        else:
            group = self._groups[member.group]
            group.waiting += waits - waited
            group.beside += beside - was_beside
        if group.waiting or group.beside or waited or was_beside or group_before != member.group:
            self._dirty[member.group] = None
        if record.claims or (before is not None and before.record.claims):
            self.stock.see(record)
        self._hold(key, record, member)
        if waits or beside or (waited and not record.node):
            self.on_change()

    def _hold(self, key: Key, record: PodRecord, member: _Member) -> None:
        if record.node and not record.has_ended:
            self._held[key] = self._made.allocation(record, member.group[1], member.membership)
        elif self._held.pop(key, None) is not None:
            self._made.attached.leave(key)
            self.on_change()

    def _leave(self, key: Key, member: _Member) -> None:
        group = self._groups.get(member.group)
        if group is not None and group.pods.pop(key, None) is not None:
            group.waiting -= self._ours.has(member.record)
            group.beside -= self._ours.may_have(member.record)
            self._dirty[member.group] = None
        alike = self._alike.get(member.alike)
        if alike is not None:
            alike.discard(key)
            if not alike:
                del self._alike[member.alike]
                self._following.forget_signature(member.alike)

    def _is_ours(self, record: PodRecord, group: _Group) -> bool:
        """The pod waits for us, by itself or because of the others of its workload."""
        if self._ours.has(record):
            return True
        if not self._ours.may_have(record):
            return False
        return any(asks_for_gpus(m.record) for m in group.pods.values())

    def _regroup(self, stale: set[Signature]) -> None:
        """Pods whose owner or group changed are read anew."""
        for alike in stale:
            for key in sorted(self._alike.get(alike, ())):
                member = self._members.get(key)
                if member is None:
                    continue
                self._leave(key, member)
                del self._members[key]
                self._put_record(member.record)
        if stale:
            self.on_change()

    def _volumes_changed(self, pods: Iterable[Key]) -> None:
        """The volumes of these pods are others than before, or elsewhere."""
        for key in pods:
            member = self._members.get(key)
            if member is None:
                continue
            group = self._groups.get(member.group)
            if group is not None and (group.waiting or group.beside):
                self._dirty[member.group] = None
                self.on_change()
            if key in self._held:
                self._held[key] = self._made.allocation(member.record, member.group[1], member.membership)

    def _charge_anew(self) -> None:
        """Pods that share a volume with one that came or went."""
        charged_anew = self._made.attached.charged_anew
        while charged_anew:
            key = charged_anew.pop()
            if key in self._held and (member := self._members.get(key)) is not None:
                self._held[key] = self._made.allocation(member.record, member.group[1], member.membership)

    def _everything_again(self) -> None:
        for key, member in self._members.items():
            self._dirty[member.group] = None
            if key in self._held:
                self._held[key] = self._made.allocation(member.record, member.group[1], member.membership)
        self.on_change()

    def _let_pass(self, now_s: float) -> None:
        """Refusals whose time is over."""
        self.stock.let_pass(now_s)
        for key in self.promises.over(now_s):
            if (member := self._members.get(key)) is not None:
                self._dirty[member.group] = None

    def _rebuild(self, now_s: float) -> None:
        self._made.doubts.forget()
        for key in self._dirty:
            group = self._groups.get(key)
            if group is None:
                continue
            if not group.pods:
                del self._groups[key]
            members = self._members_that_count(group)
            if not any(record.waits for record, _ in members):
                gone = self._waiting.pop(key, None)
                if gone is not None:
                    self.promises.done(gone.identity)
                    self.selections.end(gone.identity)
                    self.stock.asks(key, None)
                continue
            workload = self._made.workload(members)
            records = [record for record, _ in members]
            if why := self.promises.why_off(records, now_s):
                workload = replace(workload, held_off=why)
            workload = self.selections.awaiting(workload)
            self.stock.asks(key, workload)
            self._waiting[key] = group.workload = workload
            if workload.has_begun:
                self.promises.go_on(workload, records, now_s)
        self._dirty.clear()

    def _members_that_count(self, group: _Group) -> list[tuple[PodRecord, Membership]]:
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


def _object_key(thing: Mapping[str, Any], meta: Mapping[str, Any]) -> ObjectKey:
    return (
        group_of(str(thing.get("apiVersion") or "")),
        str(thing.get("kind") or ""),
        str(meta.get("namespace") or ""),
        str(meta.get("name") or ""),
    )


def _without_version(thing: Mapping[str, Any]) -> dict[str, Any]:
    meta = {k: v for k, v in thing["metadata"].items() if k not in ("resourceVersion", "generation")}
    return {**thing, "metadata": meta}

