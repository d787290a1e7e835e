"""The cluster as it is now, kept up with by changes; the snapshot of it costs what has changed since the last one.

One writer: the event loop. What has been decided and not yet been seen is *assumed*: a pod counts on its node
from the moment that its bind is sent, until the API server shows it or refuses it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from berth.dialects.following import Following
from berth.dialects.membership import Membership
from berth.dialects.objects import ObjectKey, OwnerRef, group_of
from berth.dialects.remaking import lost_for_good
from berth.kube import wire, wire_budgets, wire_devices, wire_ledger, wire_queues
from berth.kube.wire_reservations import GPUReservation
from berth.model.gpus import GpuMapping, joined
from berth.model.history import Ended
from berth.model.hold import Hold
from berth.model.queue import Queue
from berth.model.resources import PODS
from berth.model.snapshot import Snapshot
from berth.model.topology import Level, Topology
from berth.model.workload import PodClass, Workload
from berth.scheduling.usage import HALF_LIFE_S
from berth.sources.assemble import levels_of, queues_of
from berth.sources.budgets import budget_of
from berth.sources.domains import Domains
from berth.sources.governing import Governors
from berth.sources.health import SILENT_S
from berth.sources.inventory import Inventory, Key, PodRecord
from berth.sources.live.assumed import Assumed
from berth.sources.live.ended import EndedPods
from berth.sources.live.ground import Ground
from berth.sources.live.ours import Ours
from berth.sources.live.promises import Promises
from berth.sources.live.rejections import Rejections, findings, rejected
from berth.sources.live.reservations import Reservations
from berth.sources.live.roster import Roster
from berth.sources.live.selections import Selections
from berth.sources.live.staying import Staying
from berth.sources.live.stock import Stock
from berth.sources.live.unheard import GroupKey, Unheard
from berth.sources.past_usage import Usage
from berth.sources.pods_doubts import Doubts
from berth.sources.workloads import Workloads

log = logging.getLogger("berth.world")

PIECE_S = 0.01  # for which the event loop is held at a time by what has changed

# Of these only `spec` is read; their status changes with every decision.
_STATUS_SAYS_NOTHING = frozenset(("PodGroup", "Workload", "Queue", "LocalQueue", "ClusterQueue"))


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
        silent_s: float = SILENT_S,
        half_life_s: float = HALF_LIFE_S,
        on_change: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.time,
    ) -> None:
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
        self.unheard = Unheard()
        self._made.needs = lambda group, kind: self.unheard.needs(group, kind)
        self._roster = Roster(
            self._made, self._following, Ours(schedulers), self._inventory.share, self.unheard,
            changed=lambda: self.on_change(), asked=lambda levels: self._ground.ask(levels),
            mounts=lambda record: self.stock.see(record),
        )  # fmt: skip
        self._at_s = 0.0  # of the snapshot that is being made
        self.promises = Promises()
        self.staying = Staying()
        self._ended_pods = EndedPods()
        self._held_back: dict[Key, wire.Pod] = {}
        self._mapping = mapping
        self._ground = Ground(mapping, self._inventory.share, silent_s)
        self.reservations = Reservations()
        self.usage = Usage(half_life_s)
        self.rejections = Rejections(self._ground.distrust, self._ground.trust)
        self._inventory.storage.knows_classes = self._inventory.storage.knows_volumes = True
        self.stock = Stock(
            self._inventory.storage, self._inventory.offers, self._roster.volumes_changed, lambda: self.on_change()
        )
        self.selections = Selections(self.stock, self.record, self.hold_off)

    # ---- facts

    def put_node(self, node: wire.Node) -> None:
        if self._ground.put(node):
            self.on_change()

    def drop_node(self, name: str) -> None:
        if self._ground.drop(name):
            self.on_change()

    def put_ledger(self, ledger: wire_ledger.NodeLedger) -> None:
        if self._ground.put_ledger(ledger, self._now()):
            self.on_change()

    def drop_ledger(self, node: str) -> None:
        if self._ground.drop_ledger(node):
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
        before = self._roster.record(key)
        if before is not None and before.uid != (meta.uid or ""):  # another pod of the same name
            self.drop_pod(key)
            before = None
        if before is not None and spec.node_name:
            self._hear_kubelet(before, spec.node_name, status)
        if spec.node_name and before is not None and not before.node and self.on_bound(key, spec.node_name):
            self._held_back[key] = pod
            return
        record = self.assumed.seen(self._inventory.record(key, meta, spec, status))
        self._roster.put(record)
        if status.phase == "Succeeded":
            reading = self._inventory.reader.read(spec, meta.labels, meta.annotations)
            self._ended_pods.put(key, reading.pod_class, status)

    def _hear_kubelet(self, before: PodRecord, node: str, status: wire.PodStatus) -> None:
        """Whether the pod was admitted."""
        if status.phase == "Failed" and not before.has_ended:
            one = rejected(before, self._roster.group_of(before.key), node, status)
            # Where our account has no room for it either, somebody else was there first, and nothing is wrong.
            if one is not None and not (one.is_of_node and self._is_overbooked(node, before.reading.pod_class)):
                self.rejections.take(one, self._now())
                self.on_change()
        elif self.rejections and status.phase in ("Pending", "Running") and status.start_time and not before.started_s:
            self.rejections.admitted(before, self._roster.group_of(before.key), node, self._now())
            self.on_change()

    def _is_overbooked(self, node: str, pod_class: PodClass) -> bool:
        """With the pods that are there by our account, of anything that these ask for."""
        offers, used = dict(self._ground.offers(node)), self._roster.used_on(node)
        if used[PODS] > offers.get(PODS, used[PODS]):
            return True
        return any(used.get(name, 0) > offers.get(name, 0) for name, _ in pod_class.requests)

    def drop_pod(self, key: Key) -> None:
        self.assumed.drop(key)
        self.promises.forget(key)
        self.staying.forget(key)
        self._ended_pods.drop(key)
        if self._roster.drop(key) is None:
            return
        self.stock.lose(key)
        self._held_back.pop(key, None)
        self.on_gone(key)

    def let_through(self, key: Key) -> None:
        """What was held back of a pod counts from now on."""
        if pod := self._held_back.pop(key, None):
            meta, spec = pod.metadata or wire.NO_META, pod.spec or wire.PodSpec()
            self._roster.put(self._inventory.record(key, meta, spec, pod.status or wire.PodStatus()))

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
        self._roster.regroup(self._following.put(key, thing))

    def drop_object(self, thing: ObjectKey) -> None:
        self._roster.regroup(self._following.drop(thing))

    def put_priority(self, priority: wire.PriorityClass) -> None:
        name = (priority.metadata or wire.NO_META).name or ""
        value = priority.value or 0
        if self._inventory.priorities.get(name) == value and not priority.global_default:
            return
        self._inventory.priorities[name] = value
        if priority.global_default:
            self._inventory.default_priority = value
        self._roster.read_again()

    def drop_priority(self, name: str) -> None:
        if self._inventory.priorities.pop(name, None) is not None:
            self._roster.read_again()

    def put_budget(self, budget: wire_budgets.PodDisruptionBudget) -> None:
        meta = budget.metadata or wire.NO_META
        key = (meta.namespace or "default", meta.name or "")
        before, found = self._inventory.budgets.get(key), budget_of(budget)
        if found is None:
            self.drop_budget(key)
            return
        self._inventory.budgets[key] = found
        # Its status changes with every pod: only who may leave now and might not before lets somebody be placed.
        if before is not None and (found.allowed > before.allowed or found.selector != before.selector):
            self.on_change()

    def drop_budget(self, key: Key) -> None:
        if self._inventory.budgets.pop(key, None) is not None:
            self.on_change()

    def put_queue(self, queue: wire_queues.GPUQueue) -> None:
        name = (queue.metadata or wire.NO_META).name or ""
        before = self._inventory.queues.get(name)
        self._inventory.queues[name] = queue
        self.usage.put(queue)
        if before is None or before.spec != queue.spec:  # its status changes with every decision
            self._charge_anew()
        self.on_change()

    def drop_queue(self, name: str) -> None:
        self.usage.drop(name)
        if self._inventory.queues.pop(name, None) is not None:
            self._charge_anew()
        self.on_change()

    def put_reservation(self, reservation: GPUReservation) -> None:
        if self.reservations.put(reservation):
            self.on_change()

    def drop_reservation(self, name: str) -> None:
        if self.reservations.drop(name):
            self.on_change()

    def _charge_anew(self) -> None:
        self._made.payers = self._inventory.payers()
        governors, before = Governors(queues_of(self._inventory)), self._made.governors
        self._made.governors = governors
        if governors or before:  # what runs may have another limit now
            self._roster.read_again()
        self._roster.touch_where(lambda records, key: True)

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
        return self._roster.ours.names

    def serve(self, schedulers: Collection[str]) -> None:
        """Serve these names and no others, from now on: what waits under another is not ours any more."""
        if self._roster.ours.names != frozenset(schedulers):
            self._roster.serve(Ours(schedulers))

    # ---- decisions on their way

    def assume(self, key: Key, node: str) -> PodRecord | None:
        """Count a waiting pod on a node from now on. None where it has gone, has a node already, or is not ours."""
        waiting = self._roster.record(key)
        if waiting is None or not self._roster.is_ours(key):
            return None
        record = self.assumed.put(waiting, node)
        self._roster.put(record)
        return record

    def forget(self, key: Key) -> None:
        """The bind was refused: the pod waits again, unless the API server has shown otherwise."""
        record = self.assumed.refused(key)
        known = self._roster.record(key)
        if record is not None and known is not None and known.uid == record.uid:
            self._roster.put(record)

    def hold_off(self, key: Key, why: str, now_s: float) -> None:
        """Leave a waiting pod alone for a while, twice as long each time."""
        if self._roster.record(key) is not None:
            self.promises.hold_off(key, why, now_s)
            self._roster.touch(key)

    def keep(self, hold: Hold) -> None:
        """Keep places for a workload, instead of those that it had."""
        self.promises.keep(hold)

    def adopt(self, now_s: float) -> None:
        """Keep what an earlier leader has promised and not been able to give."""
        self._at_s = now_s
        self._roster.rebuild(self._finished, self._ended, now_s)
        held = tuple(self._roster.held.values())
        for key, workload in self._roster.waiting.items():
            waiting = (record for record, _ in self._roster.of(key) if record.waits)
            self.promises.adopt(workload, waiting, held, now_s)

    def stays(self, pod: Key, workload: str) -> None:
        """The pod was to leave for a workload (its identity), and was not asked."""
        self.promises.stays(workload, pod)
        self.on_change()

    def refuses_to_leave(self, pod: Key, workload: str, why: str, now_s: float, all_alike: bool = False) -> None:
        """The API server did not let the pod go for a workload, nor (`all_alike`) any pod that it belongs with."""
        pods = [pod]
        if all_alike and self._roster.record(pod) is not None:
            pods = [record.key for record, _ in self._roster.of(self._roster.group_of(pod)) if record.node]
        self.staying.refused(pods, workload, why, now_s)
        self._roster.touch_group(_group_of(workload))
        self.stays(pod, workload)

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
        parts = (self.promises, self._ground, self.stock, self.selections, self.unheard, self.rejections, self.staying)
        return min(self.reservations.next_s(self._at_s), *(part.next_s for part in parts))

    def standing(self, node: str) -> Hashable:
        """Whether a node takes new pods, and what it offers; None where it is not there."""
        return self._ground.standing(node)

    def record(self, key: Key) -> PodRecord | None:
        return self._roster.record(key)

    def members_of(self, workload: Workload) -> Iterable[tuple[PodRecord, Membership]]:
        """All pods of a workload that waits or waited: the bound ones too."""
        return self._roster.of((workload.kind, workload.key))

    def ended(self) -> tuple[list[Ended], Sequence[Queue]]:
        """What has run and ended, as far as the API server still tells of it; with the queues, which say who paid."""
        ended = self._ended_pods.workloads(self._roster.group_of, self._roster.of)
        return ended, queues_of(self._inventory)

    # ---- the moment

    async def catch_up(self, now_s: float) -> None:
        """Take in what has changed until now piece by piece, so that nobody else on the event loop waits for long.

        A snapshot that follows finds little to do. It is right without this, too.
        """
        left = self._roster.changed_count
        while left > 0:
            self._stand(now_s)
            looked_at = self._roster.rebuild(self._finished, self._ended, now_s, PIECE_S)
            if not looked_at:  # a snapshot was taken in between
                break
            left -= looked_at
            await asyncio.sleep(0)

    def snapshot(self, now_s: float) -> Snapshot:
        """The cluster now. What has not changed since the last snapshot is the same object."""
        self._stand(now_s)
        self._roster.rebuild(self._finished, self._ended, now_s)
        self._roster.charge_anew()
        waiting = self._roster.waiting.values()
        return Snapshot(
            nodes=self.stock.put_on(self._ground.nodes),
            allocations=tuple(self.staying.heeded(self._roster.held, now_s)),
            workloads=tuple(waiting),
            gpu_classes=self._ground.gpu_classes,
            queues=queues_of(self._inventory),
            topology=self._ground.topology,
            now_s=now_s,
            budgets=tuple(self._inventory.budgets.values()),
            holds=(*self.promises.holds(waiting, now_s), *self.selections.holds(waiting, now_s)),
            bookings=self.reservations.now(),
            usage=self.usage.now(now_s),
        )

    @property
    def size(self) -> Mapping[str, int]:
        """How much is known, by what."""
        return {
            "nodes": len(self._ground),
            "pods": len(self._roster),
            "allocations": len(self._roster.held),
            "workloads waiting": len(self._roster.waiting),
        }

    # ---- how it is kept

    def _stand(self, now_s: float) -> None:
        """What workloads are made by: the time, the nodes, the topology, what has been refused."""
        self._at_s = now_s
        self._let_pass(now_s)
        self._ground.survey(self._levels or levels_of(self._inventory), now_s)
        self._made.domains = self._ground.domains
        self.stock.stand_on(self._ground.nodes)

    def _finished(self, key: GroupKey, workload: Workload, records: list[PodRecord]) -> Workload:
        """A workload with what is known of it beside its pods."""
        workload = self._made.charged(workload)
        off = self.rejections.nodes_off(records, key, self._at_s)
        if off:
            workload = replace(workload, findings=(*workload.findings, *findings(off)))
        why = self.promises.why_off(records, self._at_s) or self.rejections.why_off(records, key, self._at_s)
        if why:
            workload = replace(workload, held_off=why)
        if nodes := sorted({*self.promises.avoided(records), *off}):
            workload = self._made.kept_off(workload, tuple(nodes))
        workload = self.staying.waiting(self.selections.awaiting(workload), self._at_s)
        self.stock.asks(key, workload)
        if workload.has_begun:
            self.promises.go_on(workload, records, self._at_s)
        return workload

    def _ended(self, key: GroupKey, workload: Workload) -> None:
        self.promises.done(workload.identity)
        self.selections.end(workload.identity)
        self.stock.asks(key, None)

    def _let_pass(self, now_s: float) -> None:
        """Refusals whose time is over, and owners that did not come."""
        if self.rejections.over(now_s):
            self._roster.touch_where(self.rejections.concerns)
            self.rejections.settled()
        self.stock.let_pass(now_s)
        for group in self.unheard.over(now_s):
            self._roster.touch_group(group)
        for identity in self.staying.over(now_s):
            self._roster.touch_group(_group_of(identity))
        for key in self.promises.over(now_s):
            self._roster.touch(key)


def _group_of(identity: str) -> GroupKey:
    kind, _, key = identity.partition(" ")
    return kind, key


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

