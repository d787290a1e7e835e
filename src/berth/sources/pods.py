"""Pods that hold capacity become allocations; pods that wait become workloads, whole gangs where there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from berth.dialects.membership import Membership, Memberships, OwnerRef, index
from berth.dialects.objects import chain
from berth.model.cluster import Allocation
from berth.model.snapshot import Owner
from berth.model.topology import Topology
from berth.model.workload import Workload
from berth.sources.domains import Domains
from berth.sources.governing import Governors
from berth.sources.inventory import Inventory, Key, PodRecord
from berth.sources.pods_doubts import Doubts
from berth.sources.queues_read import queues_in
from berth.sources.suspended import suspended_workloads
from berth.sources.volumes.mounts import Mount
from berth.sources.workloads import DAEMONS, Workloads


@dataclass(slots=True)
class _Group:
    """The pods of one workload, each with its membership, and whether one of them waits."""

    members: list[tuple[PodRecord, Membership]] = field(default_factory=list)
    waits: bool = False


class Pods:
    """Both sides of the pods of an inventory.

    `devices` are the indexes that pods hold by name. Where the nodes are is told by `place_in`, before `waiting`.
    """

    def __init__(self, inventory: Inventory, devices: Mapping[Key, tuple[int, ...]]) -> None:
        self._inventory = inventory
        self._groups: dict[str, _Group] = {}
        self._held: list[Allocation] = []
        storage, listed = inventory.storage, inventory.listed
        storage.knows_classes = bool(storage.classes) or "StorageClass" in listed
        storage.knows_volumes = bool(storage.volumes) or "PersistentVolume" in listed
        self._doubts = Doubts(
            knows_claims=bool(storage.claims) or "PersistentVolumeClaim" in listed,
            knows_groups="PodGroup" in listed or any(t.get("kind") == "PodGroup" for t in inventory.plain),
            called=inventory.called,
            knows_limits=storage.knows_limits or "CSINode" in listed,
        )
        made = self._made = Workloads(inventory, devices, Domains(Topology(), ()), self._doubts)
        made.payers = inventory.payers()
        made.governors = Governors(queues_in(inventory.queues))
        for record in inventory.pods.values():
            if record.claims and record.node:
                made.attached.charge(record.key, record.node, record.claims)  # who is the first is known after all
        self._objects = index(inventory.plain)
        memberships = Memberships(self._objects)
        for record in inventory.pods.values():
            if record.claims:
                storage.mounts.put(Mount(record.key, record.claims, bool(record.node), record.created_s))
        for record in inventory.pods.values():
            membership = memberships.of(made.facts(record))
            identity = inventory.share(membership.identity)
            if record.node and not record.has_ended:
                self._held.append(made.allocation(record, inventory.share(membership.key), membership))
            group = self._groups.get(identity)
            if group is None:
                group = self._groups[identity] = _Group()
            group.members.append((record, membership))
            group.waits |= record.waits

    def levels_asked(self) -> frozenset[str]:
        """The levels of topology that workloads name."""
        return frozenset(level for group in self._groups.values() for _, m in group.members for level in m.levels)

    def place_in(self, domains: Domains) -> None:
        self._made.domains = domains

    def held(self) -> tuple[Allocation, ...]:
        """Every pod with a node counts until it has ended, also while it is being deleted."""
        return tuple(self._held)

    def waiting(self) -> tuple[Workload, ...]:
        """Workloads with a pod that has no node, has not ended and is not being deleted; and suspended ones."""
        waiting = [self._made.workload(group.members) for group in self._groups.values() if group.waits]
        waiting.extend(suspended_workloads(self._inventory, self._objects, self._groups, self._doubts.contradictions))
        return tuple(self._made.charged(workload) for workload in waiting)

    def findings(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What is doubtful of workloads that run and do not wait, by identity."""
        found: list[tuple[str, tuple[str, ...]]] = []
        for identity, group in self._groups.items():
            if group.waits:
                continue
            running = [m for record, m in group.members if record.node and not record.has_ended]
            doubts = (self._made.payers.doubt(m.queue, m.namespace) for m in running)
            told = dict.fromkeys([*(one for m in running for one in m.contradictions), *(d for d in doubts if d)])
            if told:
                found.append((identity, tuple(told)))
        return tuple(found)

    def owners(self) -> tuple[Owner, ...]:
        """The owners of pods, upwards, whose workloads go by other names; workloads that wait come first."""
        chains: dict[tuple[str, tuple[OwnerRef, ...]], tuple[OwnerRef, ...]] = {}
        found: dict[tuple[str, str, str], dict[str, None]] = {}
        for identity, group in sorted(self._groups.items(), key=lambda item: not item[1].waits):
            for record, membership in group.members:
                if not record.owners or record.has_ended or record.owners[0].kind in DAEMONS:
                    continue
                refs = chains.get((record.namespace, record.owners))
                if refs is None:
                    links = chain(record.owners, record.namespace, self._objects)
                    refs = chains[record.namespace, record.owners] = tuple(ref for ref, _ in links)
                for ref in refs:
                    if (ref.kind, ref.name) != (membership.kind, membership.name):
                        found.setdefault((record.namespace, ref.kind, ref.name), {})[identity] = None
        return tuple(Owner(*named, tuple(keys)) for named, keys in found.items())

    def notes(self, nodes: frozenset[str]) -> tuple[str, ...]:
        """What is doubtful about pods, after `waiting`. `nodes` are the names of those that are known."""
        return self._doubts.sentences(self._inventory.pods.values(), nodes)
