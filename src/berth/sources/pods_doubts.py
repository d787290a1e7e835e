"""What is doubtful about the pods of a dump, gathered while they are read, and told in few sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from berth.base.units import counted
from berth.dialects.membership import Membership
from berth.model.volumes import Claim
from berth.sources.inventory import PodRecord, some
from berth.sources.volumes.storage import Storage

MOST_OF_A_KIND = 5  # sentences of one kind that are told one by one


@dataclass(slots=True)
class Doubts:
    """`knows_…`: the dump holds PersistentVolumeClaims, PodGroups, CSINodes at all. `called`: the dump."""

    knows_claims: bool
    knows_groups: bool
    called: str = "the dump"
    knows_limits: bool = True
    claims_unseen: list[str] = field(default_factory=list)
    volumes_unseen: list[str] = field(default_factory=list)
    classes_unseen: list[str] = field(default_factory=list)
    limits_unseen: list[str] = field(default_factory=list)
    groups_unseen: list[str] = field(default_factory=list)
    contradictions: dict[str, None] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)

    def forget(self) -> None:
        """What was told is about to be told anew."""
        for told in (
            self.claims_unseen, self.volumes_unseen, self.classes_unseen, self.limits_unseen, self.groups_unseen,
        ):  # fmt: skip
            told.clear()
        self.contradictions.clear()
        self.remarks.clear()

    def of_volumes(self, namespace: str, pod: str, claims: Iterable[str], storage: Storage) -> None:
        """What of a waiting pod's claims could not be seen."""
        who = f"{namespace}/{pod}"
        known = [claim for name in claims if (claim := storage.claims.get((namespace, name))) is not None]
        if not storage.knows_volumes and any(claim.is_bound for claim in known):
            self.volumes_unseen.append(who)
        if not storage.knows_classes and any(claim.shape.storage_class and not claim.volume for claim in known):
            self.classes_unseen.append(who)
        if not self.knows_limits and any(_is_attached(claim, storage) for claim in known):
            self.limits_unseen.append(who)

    def of_membership(self, membership: Membership) -> None:
        """What the dialects say of one waiting workload."""
        who = f"{membership.kind} {membership.key}"
        self.contradictions.update(dict.fromkeys(f"{who}: {c}" for c in membership.contradictions))
        self.remarks.update(dict.fromkeys(f"{who}: {n}" for n in membership.notes))
        if membership.waits_for and not self.knows_groups:
            self.groups_unseen.append(who)

    def sentences(self, records: Iterable[PodRecord], nodes: frozenset[str]) -> tuple[str, ...]:
        """All of it. `nodes` are the names of the nodes that the dump holds."""
        told: list[str] = []
        held = [r for r in records if r.node and not r.has_ended]
        if lost := [f"{r.namespace}/{r.name} on {r.node}" for r in held if r.node not in nodes]:
            pods = counted(len(lost), "pod is on a node", "pods are on nodes")
            told.append(f"{pods} that {self.called} does not hold: {some(lost)}")
        if broken := [r for r in held if r.reading.problems]:
            pods = counted(len(broken), "running pod has", "running pods have")
            first = f"{broken[0].namespace}/{broken[0].name}: {broken[0].reading.problems[0]}"
            told.append(f"{pods} amounts that Kubernetes does not allow, read as the nearest allowed ones: {first}")
        if self.claims_unseen:
            pods = counted(len(self.claims_unseen), "waiting pod mounts", "waiting pods mount")
            told.append(
                f"{pods} volume claims and {self.called} holds none, so that where their volumes are was not looked"
                f" at{self._dump('pv,pvc')}: {some(self.claims_unseen)}"
            )
        for unseen, what, then, kinds in (
            (self.volumes_unseen, "bound claims", "no volumes, so that where these are was not looked at", "pv"),
            (self.classes_unseen, "unbound claims", "no storage classes, so that whether these wait for the pod is not "
             "known", "storageclasses"),
            (self.limits_unseen, "volumes", "no CSINodes, so that how many a node can attach was not looked at",
             "csinodes"),
        ):  # fmt: skip
            if unseen:
                pods = counted(len(unseen), "waiting pod mounts", "waiting pods mount")
                told.append(f"{pods} {what} and {self.called} holds {then}{self._dump(kinds)}: {some(unseen)}")
        if self.groups_unseen:
            workloads = counted(len(self.groups_unseen), "workload belongs", "workloads belong")
            told.append(
                f"{workloads} to groups and {self.called} holds none, so that sizes are taken from the pods that are"
                f" there{self._dump('podgroups')}: {some(self.groups_unseen)}"
            )
        for sentences in (self.contradictions, self.remarks):
            listed = list(sentences)
            told.extend(listed[:MOST_OF_A_KIND])
            if len(listed) > MOST_OF_A_KIND:
                told.append(f"{len(listed) - MOST_OF_A_KIND:,} more like the last one")
        return tuple(told)

    def _dump(self, kinds: str) -> str:
        return f"; dump {kinds} as well" if self.called == "the dump" else ""


def _is_attached(claim: Claim, storage: Storage) -> bool:
    """A driver attaches its volume to the node."""
    if claim.volume:
        volume = storage.volumes.get(claim.volume)
        return volume is not None and bool(volume.driver)
    storage_class = storage.classes.get(claim.shape.storage_class)
    return storage_class is not None and storage_class.waits and storage_class.makes_volumes
