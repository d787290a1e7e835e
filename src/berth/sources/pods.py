"""Pods that hold capacity become allocations; pods that wait become workloads, whole gangs where there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from berth.base.units import counted
from berth.dialects.membership import Membership, PodFacts, Standing, index, membership_of, standings
from berth.model.cluster import Allocation
from berth.model.workload import PodClass, PodSet, Workload
from berth.sources.inventory import Inventory, Key, Pairs, PodRecord, some
from berth.sources.volumes import volume_wishes

# Owners whose pods come back on the same node: DaemonSets, and the node itself for static pods.
_DAEMONS = ("DaemonSet", "Node")


class Pods:
    """Both sides of the pods of an inventory. `devices` are the indexes that pods hold by name."""

    def __init__(self, inventory: Inventory, devices: Mapping[Key, tuple[int, ...]]) -> None:
        self._inventory = inventory
        self._devices = devices
        self._objects = index(inventory.plain)
        self._labels: dict[Pairs, dict[str, str]] = {}
        self._missing_claims: list[str] = []
        self._told: Counter[str] = Counter()
        # Pods of each workload that has one waiting or shares it with others: membership, and who belongs.
        self._members: dict[str, list[tuple[PodRecord, PodFacts, Membership]]] = {}
        self._workload_of: dict[Key, tuple[str, str]] = {}
        for record in inventory.pods.values():
            facts = self._facts(record)
            member = membership_of(facts, self._objects)
            self._workload_of[record.key] = inventory.share(member.key), inventory.share(member.queue)
            self._members.setdefault(member.key, []).append((record, facts, member))

    def held(self) -> tuple[Allocation, ...]:
        """Every pod with a node counts until it has ended, also while it is being deleted."""
        return tuple(self._allocation(r) for r in self._inventory.pods.values() if r.node)

    def waiting(self) -> tuple[Workload, ...]:
        """Workloads with a pod that has no node and is not being deleted."""
        return tuple(
            self._workload(members)
            for members in self._members.values()
            if any(not r.node and not r.is_ending for r, _, _ in members)
        )

    def notes(self, nodes: frozenset[str]) -> tuple[str, ...]:
        """What is doubtful about pods."""
        told: list[str] = []
        records = self._inventory.pods.values()
        if lost := [f"{r.namespace}/{r.name} on {r.node}" for r in records if r.node and r.node not in nodes]:
            pods = counted(len(lost), "pod is on a node", "pods are on nodes")
            told.append(f"{pods} that the dump does not hold: {some(lost)}")
        if self._missing_claims:
            pods = counted(len(self._missing_claims), "waiting pod mounts", "waiting pods mount")
            told.append(
                f"{pods} volume claims, and the dump holds none: where the volumes are was not considered"
                f" ({some(self._missing_claims)})"
            )
        broken = [r for r in records if r.node and r.reading.problems]
        if broken:
            first = broken[0]
            told.append(
                f"{counted(len(broken), 'running pod')} with amounts that Kubernetes does not allow, taken as the"
                f" nearest allowed: {first.namespace}/{first.name}: {first.reading.problems[0]}"
            )
        told.extend(self._told)
        return tuple(told)

    # ---- one pod

    def _allocation(self, record: PodRecord) -> Allocation:
        workload, queue = self._workload_of[record.key]
        return Allocation(
            node=record.node,
            namespace=record.namespace,
            name=record.name,
            pod_class=record.reading.pod_class,
            labels=record.labels,
            workload=workload,
            queue=queue,
            devices=self._devices.get(record.key, ()),
            priority=self._priority(record, ""),
            scheduler=record.scheduler,
            is_daemon=any(o.kind in _DAEMONS for o in record.owners),
            started_s=record.started_s or record.created_s,
        )

    def _facts(self, record: PodRecord) -> PodFacts:
        return PodFacts(
            record.name,
            record.namespace,
            self._mapping(record.labels),
            self._mapping(record.annotations),
            record.owners,
            record.scheduling_group,
            record.scheduler,
            record.priority_class,
            bool(record.node),
        )

    def _mapping(self, pairs: Pairs) -> dict[str, str]:
        found = self._labels.get(pairs)
        if found is None:
            found = self._labels[pairs] = dict(pairs)
        return found

    def _priority(self, record: PodRecord, workload_class: str) -> int:
        """As the API server wrote it, else from the class."""
        if record.priority is not None and not workload_class:
            return record.priority
        name = workload_class or record.priority_class
        default = self._inventory.default_priority[1] if not name else 0
        return self._inventory.priorities.get(name, record.priority or default)

    def _class(self, record: PodRecord) -> PodClass:
        """The class of a waiting pod, with what its volumes allow."""
        if not record.claims or record.spec is None:
            return record.reading.pod_class
        if not self._inventory.volume_claims:
            self._missing_claims.append(f"{record.namespace}/{record.name}")
            return record.reading.pod_class
        terms, phrases = volume_wishes(
            record.namespace, record.claims, self._inventory.volume_claims, self._inventory.volumes
        )
        labels, annotations = self._mapping(record.labels), self._mapping(record.annotations)
        return self._inventory.reader.read(record.spec, labels, annotations, terms, phrases).pod_class

    # ---- one workload

    def _workload(self, members: list[tuple[PodRecord, PodFacts, Membership]]) -> Workload:
        membership = members[0][2]
        standing = standings(membership, [(facts, m.pod_set) for _, facts, m in members])
        waiting = [(r, m.pod_set) for r, _, m in members if not r.node and not r.is_ending]
        first = waiting[0][0]
        for sentence in membership.contradictions:
            self._told[f"{membership.kind} {membership.key}: {sentence}"] += 1
        gates = tuple(sorted({gate for r, _ in waiting for gate in r.gates}))
        return Workload(
            name=membership.name,
            namespace=membership.namespace,
            kind=membership.kind,
            pod_sets=self._pod_sets(waiting, {s.name: s for s in standing}),
            queue=membership.queue,
            priority=self._priority(first, membership.priority_class),
            created_s=min(r.created_s for r, _ in waiting),
            topology=membership.topology,
            scheduler=first.scheduler,
            gates=gates,
            missing_pods=sum(s.missing for s in standing),
            provenance=membership.provenance,
        )

    def _pod_sets(self, waiting: list[tuple[PodRecord, str]], standing: Mapping[str, Standing]) -> tuple[PodSet, ...]:
        """Waiting pods by set and class: pods of one set that differ are sets of their own."""
        groups: dict[tuple[str, PodClass], list[PodRecord]] = {}
        for record, name in waiting:
            groups.setdefault((name, self._class(record)), []).append(record)
        left = {name: s.min_count for name, s in standing.items()}
        sets = []
        for (name, pod_class), records in groups.items():
            minimum = min(len(records), left.get(name, len(records)))
            if name in left:
                left[name] -= minimum
            sets.append(
                PodSet(
                    name=name or "pods",
                    pod_class=pod_class,
                    count=len(records),
                    min_count=minimum,
                    topology=standing[name].topology if name in standing else (),
                    labels=records[0].labels,
                )
            )
        return tuple(sets)
