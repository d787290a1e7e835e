"""One workload from the records of its pods: what of it holds capacity, what is still to be placed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from berth.base.lately import Lately
from berth.dialects.membership import Membership, PodFacts, merged, standings
from berth.dialects.ranks import UNRANKED, Rank, rank_of
from berth.model.cluster import Allocation
from berth.model.paying import Payers
from berth.model.resources import added
from berth.model.workload import SUSPENDED, NodeTerm, PodClass, PodSet, TopologyWish, Workload
from berth.sources.absent import unmet
from berth.sources.domains import Domains
from berth.sources.governing import Governors
from berth.sources.inventory import Inventory, Key, Pairs, PodRecord, seconds
from berth.sources.pod_class import with_inherited
from berth.sources.pods_doubts import Doubts
from berth.sources.selectors import both
from berth.sources.volumes.attached import Attached
from berth.sources.volumes.wishes import wishes_of

# Owners whose pods come back on the same node: DaemonSets, and the node itself for static pods.
DAEMONS = ("DaemonSet", "Node")
LAST_CHECKPOINT = "berth.dev/last-checkpoint"
KAI_SCHEDULER = "kai-scheduler"
KAI_NON_PREEMPTIBLE = 100  # from this priority up, where no preemptibility is stated


class Workloads:
    """Allocations and workloads by what an inventory says of priorities, volumes and the rest.

    `devices` are the indexes that pods hold by name, `domains` where the nodes are.
    """

    def __init__(
        self, inventory: Inventory, devices: Mapping[Key, tuple[int, ...]], domains: Domains, doubts: Doubts
    ) -> None:
        self._inventory = inventory
        self._devices = devices
        self.domains = domains
        self.doubts = doubts
        self.attached = Attached(inventory.storage)
        self.payers = Payers({})  # told once the queues are known
        self.governors = Governors()  # and these
        self.needs: Callable[[str, str], str] = lambda group, kind: ""  # rights without which a kind is not seen
        self._mapping: Lately[Pairs, dict[str, str]] = Lately(dict)

    # ---- one pod

    def allocation(self, record: PodRecord, workload: str, membership: Membership) -> Allocation:
        made = self._allocation(record, workload, membership)
        return self.governors.allocation(made, self.payers) if self.governors else made

    def _allocation(self, record: PodRecord, workload: str, membership: Membership) -> Allocation:
        return Allocation(
            node=record.node,
            namespace=record.namespace,
            name=record.name,
            pod_class=self._class_that_holds(record),
            labels=record.labels,
            workload=workload,
            workload_kind=membership.kind,
            pod_set=membership.pod_set,
            queue=membership.queue,
            devices=self._devices.get(record.key, ()),
            priority=self._priority(record, membership),
            scheduler=record.scheduler,
            is_daemon=any(o.kind in DAEMONS for o in record.owners),
            started_s=record.started_s or record.created_s,
            uid=record.uid,
            is_ending=record.is_ending,
            ends_s=record.ends_s,
            grace_s=record.grace_s,
            is_controlled=any(o.controller for o in record.owners),
            preemptible=self._preemptible(record, membership),
            disruption=membership.disruption,
            gang_minimum=membership.gang_minimum,
            set_minimum=next((s.min_count for s in membership.sets if s.name == membership.pod_set), 0),
            min_runtime_s=membership.min_runtime_s,
            time_limit_s=membership.time_limit_s,
            checkpoint_every_s=membership.checkpoint_every_s,
            last_checkpoint_s=self._last_checkpoint(record, membership),
        )

    def _class_that_holds(self, record: PodRecord) -> PodClass:
        """The class of a pod with a node, with what its volumes take there."""
        pod_class = record.reading.pod_class
        if taken := self.attached.charge(record.key, record.node, record.claims):
            made = replace(pod_class, requests=added(pod_class.requests, taken))
            pod_class = self._inventory.reader.share(made)
        return pod_class

    def _preemptible(self, record: PodRecord, membership: Membership) -> bool | None:
        """As it is written; where KAI schedules and nothing is written, its rule of priorities from 100 up."""
        if membership.preemptible is None and record.scheduler == KAI_SCHEDULER:
            return self._priority(record, membership) < KAI_NON_PREEMPTIBLE
        return membership.preemptible

    def _last_checkpoint(self, record: PodRecord, membership: Membership) -> float:
        """The pod's own word, else its owner's; 0.0 where there is none, or it is no time."""
        own = next((value for key, value in record.annotations if key == LAST_CHECKPOINT), "")
        return seconds(own or membership.inherited.get(LAST_CHECKPOINT))

    def facts(self, record: PodRecord) -> PodFacts:
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
            record.has_ended,
        )

    def _priority(self, record: PodRecord, membership: Membership) -> int:
        """By the number or the class that a group or owner names; else as the API server wrote it on the pod."""
        priorities, workload_class = self._inventory.priorities, membership.priority_class
        if membership.priority is not None:
            return membership.priority
        if workload_class and workload_class != record.priority_class and workload_class in priorities:
            return priorities[workload_class]
        if record.priority is not None:
            return record.priority
        if record.priority_class:
            return priorities.get(record.priority_class, 0)
        return self._inventory.default_priority

    def _class(self, record: PodRecord, membership: Membership) -> PodClass:
        """The class of a waiting pod, with what its volumes allow and its owners ask for."""
        reader, storage = self._inventory.reader, self._inventory.storage
        pod_class = record.reading.pod_class
        if record.claims and record.spec and not (storage.claims or self.doubts.knows_claims):
            self.doubts.claims_unseen.append(f"{record.namespace}/{record.name}")
        elif record.claims and record.spec:
            wishes = wishes_of(
                record.key, record.uid, record.claims, record.made_for_it, storage, self._inventory.offers
            )
            self.doubts.of_volumes(record.namespace, record.name, record.claims, storage)
            labels, annotations = self._mapping(record.labels), self._mapping(record.annotations)
            pod_class = reader.read(record.spec, labels, annotations, wishes).pod_class
        if membership.inherited:
            annotations = {**membership.inherited, **self._mapping(record.annotations)}
            pod_class = reader.share(with_inherited(pod_class, annotations))
        return pod_class

    # ---- one workload

    def workload(self, members: list[tuple[PodRecord, Membership]]) -> Workload:
        # By index, then age, then as people count: 2 before 10. In whatever order they came, the answer is the same.
        members = sorted(members, key=lambda m: self._place_in_order(m[0]))
        membership = merged(m for _, m in members)
        waiting = [(r, m) for r, m in members if r.waits]
        first = waiting[0][0]
        self.doubts.of_membership(membership)
        pod_sets = self._pod_sets(membership, members, waiting)
        provenance = membership.provenance
        if domain := self._begun(membership.topology, members, ""):
            pod_sets = [(self._kept_in(s, domain), absent, names) for s, absent, names in pod_sets]
            where = ", ".join(f"{r.key}={r.values[0]}" for r in domain.expressions)
            provenance = (*provenance, ("domain", f"its running pods are in {where}"))
        gates = {gate for r, _ in waiting for gate in r.gates}
        if membership.suspended:
            gates.add(SUSPENDED)
        group = membership.waits_for if self.doubts.knows_groups else None
        return Workload(
            name=membership.name,
            namespace=membership.namespace,
            kind=membership.kind,
            pod_sets=tuple(s for s, _, _ in pod_sets),
            queue=membership.queue,
            priority=self._priority(first, membership),
            created_s=min(r.created_s for r, _ in waiting),
            topology=membership.topology,
            scheduler=first.scheduler,
            gates=tuple(sorted(gates)),
            unmet=(unmet(group, self.needs(group.group, group.kind)),) if group else (),
            pods=tuple(names for _, _, names in pod_sets),
            missing_pods=sum(absent for _, absent, _ in pod_sets),
            has_begun=any(r.node and not r.has_ended for r, _ in members),
            provenance=provenance,
            api_version="v1" if membership.kind == "Pod" else membership.api_version,
            uid=first.uid if membership.kind == "Pod" else membership.uid,
            preempts=self._preempts(first, membership),
            preemptible=self._preemptible(first, membership),
            disruption=membership.disruption,
            min_runtime_s=membership.min_runtime_s,
            time_limit_s=membership.time_limit_s,
            checkpoint_every_s=membership.checkpoint_every_s,
            findings=membership.contradictions,
        )

    def charged(self, workload: Workload) -> Workload:
        """The workload in the queue that pays, as that wants it; where it names another, that is told."""
        if self.governors:
            workload = self.governors.workload(workload, self.payers)
        doubt = self.payers.doubt(workload.queue, workload.namespace)
        pays = self.payers.of(workload.queue, workload.namespace)
        if not workload.queue or pays == workload.queue:
            return workload
        if doubt:
            self.doubts.contradictions[f"{workload.identity}: {doubt}"] = None
        return replace(workload, queue=pays, findings=(*workload.findings, doubt) if doubt else workload.findings)

    def _place_in_order(self, record: PodRecord) -> tuple[Rank, float, int, str]:
        """Neighbours in the job are neighbours in this order, so that slices of it stay together."""
        rank = rank_of(self._mapping(record.labels), self._mapping(record.annotations)) or UNRANKED
        return rank, record.created_s, len(record.name), record.name

    def _preempts(self, record: PodRecord, membership: Membership) -> bool:
        """Neither the pod, nor its group, nor the class that gives the priority says Never."""
        return (
            record.preempts and membership.preempts and membership.priority_class not in self._inventory.never_preempt
        )

    def _begun(
        self, wishes: Iterable[TopologyWish], members: Iterable[tuple[PodRecord, Membership]], pod_set: str
    ) -> NodeTerm | None:
        """The domain that running pods have already chosen for the rest; of one set, or of all where it is ""."""
        running = [r.node for r, m in members if r.node and not r.has_ended and pod_set in ("", m.pod_set)]
        return self.domains.of(wishes, running) if running else None

    def kept_off(self, workload: Workload, nodes: tuple[str, ...]) -> Workload:
        """The workload, on none of these nodes."""
        sets = (replace(s, pod_class=replace(s.pod_class, refused_by=nodes)) for s in workload.pod_sets)
        return replace(workload, pod_sets=tuple(sets))

    @staticmethod
    def _kept_in(pod_set: PodSet, domain: NodeTerm) -> PodSet:
        affinity = both(pod_set.pod_class.node_affinity, (domain,))
        return replace(pod_set, pod_class=replace(pod_set.pod_class, node_affinity=affinity))

    def _pod_sets(
        self,
        membership: Membership,
        members: list[tuple[PodRecord, Membership]],
        waiting: list[tuple[PodRecord, Membership]],
    ) -> list[tuple[PodSet, int, tuple[str, ...]]]:
        """What is still to be placed: (set, how many of its pods nobody has created yet, names of the others).

        Pods of one set that differ in class are sets of their own. A set of which no pod is there yet is
        taken to be like the first that waits: until its pods are created nothing is decided by it.
        """
        alive = [(self.facts(r), m.pod_set) for r, m in members if not r.is_ending or r.node]
        standing = {s.name: s for s in standings(membership, alive)}
        groups: dict[tuple[str, PodClass], list[PodRecord]] = {}
        for record, own in waiting:
            groups.setdefault((own.pod_set, self._class(record, own)), []).append(record)
        missing = {name: s.missing for name, s in standing.items() if s.missing}
        least = {name: s.min_count for name, s in standing.items()}
        stand_in = next(iter(groups))[1]
        for name in missing:
            if not any(known == name for known, _ in groups):
                groups[name, stand_in] = []
        sets: list[tuple[PodSet, int, tuple[str, ...]]] = []
        names: dict[str, int] = {}
        for (name, pod_class), records in groups.items():
            absent = missing.pop(name, 0)
            count = len(records) + absent
            minimum = min(count, least.get(name, count))
            least[name] = least.get(name, count) - minimum
            names[name] = names.get(name, 0) + 1
            made = PodSet(
                name=name if names[name] == 1 else f"{name}-{names[name]}",
                pod_class=pod_class,
                count=count,
                min_count=minimum,
                topology=standing[name].topology if name in standing else (),
                labels=records[0].labels if records else waiting[0][0].labels,
            )
            if domain := self._begun(made.topology, members, name):
                made = self._kept_in(made, domain)
            sets.append((made, absent, tuple(r.name for r in records)))
        if not any(s.min_count for s, _, _ in sets):
            # Enough of the gang runs already: each further pod is welcome by itself.
            sets[0] = (replace(sets[0][0], min_count=1), *sets[0][1:])
        return sets
