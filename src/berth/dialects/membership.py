"""Which workload a pod of a running cluster belongs to, by whichever dialect speaks on it.

Order of precedence: upstream `spec.schedulingGroup`, Berth's keys, KAI, Volcano, scheduler-plugins, Kueue,
and at last what the owners say. Where two disagree the first is taken, and the disagreement is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from berth.base.errors import BadInput
from berth.dialects.carriers import Carrier, Said, inherited
from berth.dialects.groups import VOLCANO_GROUPS, Claim, Part, claims_of, doubts_of
from berth.dialects.known_keys import unknown_keys
from berth.dialects.members import Membership, PodFacts, SetNeed, Standing
from berth.dialects.objects import ObjectKey, Objects, OwnerRef, index
from berth.dialects.owners import tiers_among
from berth.dialects.ownership import Owned, named_owner, owned_by
from berth.dialects.queue import minimum_of, terms_of
from berth.dialects.shape import SetShape
from berth.dialects.standing import merged, standings
from berth.dialects.topology import Wishes, set_wishes, whole_wishes

__all__ = [
    "Membership",
    "Memberships",
    "ObjectKey",
    "Objects",
    "OwnerRef",
    "PodFacts",
    "SetNeed",
    "Standing",
    "index",
    "membership_of",
    "merged",
    "standings",
]


# Keys that say something on membership; cluster-wide most labels do not, and the cache ignores them.
_TELLING = (
    "berth.dev/",
    "kai.scheduler/",
    "runai/",
    "scheduling.",
    "volcano.sh/",
    "kueue.x-k8s.io/",
    "pod-group",
    "priorityClassName",
    "jobset.sigs.k8s.io/",
    "alpha.jobset.sigs.k8s.io/",
    "leaderworkerset.sigs.k8s.io/",
    "ray.io/",
    "training.kubeflow.org/",
    "replica-type",
)
_PER_POD = ("job-index", "replica-index", "restart-attempt", "job-key", "job-global-index", "task-index",
            "last-checkpoint", "berth.dev/decision")  # fmt: skip


OwnerKey = tuple[str, tuple[OwnerRef, ...]]
Signature = tuple[object, ...]  # all that decides where a pod belongs, but for its own name


def signature(pod: PodFacts) -> Signature:
    """Pods with the same signature belong to the same workload, or stand alone by the same rules."""
    return (
        pod.namespace,
        pod.owners,
        pod.scheduling_group,
        pod.priority_class,
        _telling(pod.labels),
        _telling(pod.annotations),
    )


class _Troubles(list[str]):
    """What is told beside a workload. In a cluster nobody can be stopped, and a value that cannot be read is passed
    over; whoever writes a manifest is stopped by it."""

    def __init__(self, stops: bool) -> None:
        super().__init__()
        self._stops = stops

    def pass_over(self, error: BadInput) -> None:
        if self._stops:
            raise error
        self.append(f"{error.sentence} It was passed over.")


class Memberships:
    """Memberships among the objects of one dump, or of manifests. Pods that are alike are read once.

    `stops`: a value that cannot be read raises BadInput, as of a manifest; otherwise it is in `contradictions`.
    """

    def __init__(self, objects: Objects, *, stops: bool = False) -> None:
        self._objects = objects
        self._stops = stops
        self._known: dict[Signature, Membership] = {}
        self._by_owner: dict[OwnerKey, Owned] = {}

    def of(self, pod: PodFacts) -> Membership:
        """The workload of one pod. What cannot be read is told in `contradictions`, unless it `stops`."""
        return self.of_alike(signature(pod), pod)

    def of_alike(self, alike: Signature, pod: PodFacts) -> Membership:
        """The workload of a pod whose signature is known."""
        found = self._known.get(alike)
        if found is None:
            found = self._known[alike] = self._read(alike, pod)
        # What stands alone is known by the pod's own name.
        return replace(found, name=pod.name) if found.kind == "Pod" else found

    @staticmethod
    def _owner_key(pod: PodFacts) -> OwnerKey:
        above = named_owner(pod.labels)
        return (pod.namespace, (*pod.owners, above) if above else pod.owners)

    def _owned(self, pod: PodFacts) -> Owned:
        key = self._owner_key(pod)
        owned = self._by_owner.get(key)
        if owned is None:
            above = named_owner(pod.labels)
            owned = self._by_owner[key] = owned_by(pod.owners, pod.namespace, self._objects, above)
        return owned

    def _read(self, alike: Signature, pod: PodFacts) -> Membership:
        own = Carrier("the pod", pod.labels, pod.annotations)
        owned = self._owned(pod)
        carriers = [own, *owned.carriers]
        troubles = _Troubles(self._stops)
        troubles += [*owned.troubles, *doubts_of(carriers[:1]), *unknown_keys(carriers)]
        claims: tuple[Claim, ...] = ()
        try:
            # A group's tiers are numbers that only HyperNodes explain, whoever owns its pods.
            names_tiers = any(key in pod.annotations for key in VOLCANO_GROUPS)
            tiers = tiers_among(self._objects) if names_tiers else owned.tiers
            claims = claims_of(carriers, pod.namespace, self._objects, pod.scheduling_group, tiers)
        except BadInput as error:
            troubles.pass_over(error)
        if claims:
            found = _claimed(pod, claims, carriers, owned, troubles)
        else:
            found = _of_owner(pod, carriers, owned, troubles)
        return _with_terms(found, pod, claims, carriers, owned, troubles)


def membership_of(pod: PodFacts, objects: Objects) -> Membership:
    """The workload of one pod. For many pods `Memberships` remembers what is alike."""
    return Memberships(objects).of(pod)


def _claimed(
    pod: PodFacts, claims: Sequence[Claim], carriers: Sequence[Carrier], owned: Owned, troubles: _Troubles
) -> Membership:
    """By the first claim; the owner says how many pods there will be."""
    claim = claims[0]
    role = claim.pod_set or owned.set_in_group(pod.labels, pod.annotations)
    minimum, by = _minimum(claims, carriers, troubles)
    for other in claims[1:]:
        if other.name != claim.name or (other.minimum and minimum and other.minimum != minimum):
            troubles.append(
                f"{claim.dialect} ({claim.by}) says {_said(claim.name, minimum)}, but {other.dialect} "
                f"({other.by}) says {_said(other.name, other.minimum)}; the first was taken."
            )
    if claim.parts:
        sets = tuple(_part(p, owned) for p in claim.parts)
        if role not in {s.name for s in sets}:
            sets = (*sets, SetNeed(role, 0, 0))
    else:
        known = [(s, _in_group(s.count, minimum, claim, owned)) for s in owned.sets_in_group(pod.annotations)]
        sets = tuple(SetNeed(s.name, count, 0, s.follows, s.topology, s.template) for s, count in known)
        if role not in {s.name for s in sets}:
            sets = (SetNeed(role, claim.total, 0),)
    total = sum(s.count for s in owned.sets_in_group(pod.annotations))
    if owned.sets and not claim.parts and minimum > total > 0 and claim.dialect != "Berth":
        troubles.append(
            f"{claim.kind} {claim.name} asks for {minimum} pods, but {owned.called} makes {total}: "
            "alone it never starts."
        )
    return Membership(
        claim.kind,
        pod.namespace,
        claim.name,
        role,
        sets,
        least=minimum or -1,
        waits_for=claim.waits_for,
        provenance=(("gang", by if minimum else claim.by),),
        notes=claim.notes,
        priority=claim.priority,
        preempts=claim.preempts,
        disruption=claim.disruption if minimum != 1 or claim.dialect == "upstream" else "single",
        # Upstream's "all" is a word of its own: whoever is left runs for nothing.
        gang_minimum=0 if claim.dialect == "upstream" else max(minimum, sum(p.minimum for p in claim.parts)),
        api_version=claim.api_version,
        uid=claim.uid,
    )


def _of_owner(pod: PodFacts, carriers: Sequence[Carrier], owned: Owned, troubles: _Troubles) -> Membership:
    if not owned.is_workload:
        provenance = (("alone", f"pods of {owned.called} start one by one"),) if owned.called else ()
        return Membership("Pod", pod.namespace, pod.name, "pods", (SetNeed("pods", 1, 1),), provenance=provenance)
    known = owned.sets_of(pod.annotations)
    sets = tuple(SetNeed(s.name, s.count, s.min_count, s.follows, s.topology, s.template) for s in known)
    role = owned.pod_set(pod.labels, pod.annotations)
    if role not in {s.name for s in sets}:
        sets = (*sets, SetNeed(role, 0, 0))
    name = owned.name + owned.suffix(pod.labels)
    return Membership(
        owned.kind,
        pod.namespace,
        name,
        role,
        sets,
        least=-1 if owned.is_size_unknown and not known else 0,
        suspended=owned.suspended,
        provenance=(("gang", owned.by),),
        notes=owned.notes,
        disruption=owned.disruption or "all",
        gang_minimum=0 if owned.disruption else sum(s.min_count for s in known if not s.follows),
        api_version=owned.api_version,
        uid=owned.uid,
    )


def _minimum(claims: Sequence[Claim], carriers: Sequence[Carrier], troubles: _Troubles) -> tuple[int, str]:
    """Upstream's number, else Berth's annotation, else the first claim that has one."""
    first = claims[0]
    said: Said | None = None
    number, by = 0, ""
    try:
        number, by, said = minimum_of(carriers)
    except BadInput as error:
        troubles.pass_over(error)
    if first.dialect == "upstream" and first.minimum:
        if said is not None and number != first.minimum:
            troubles.append(
                f"PodGroup {first.name} asks for {first.minimum} pods, but {by} for {number}; the first was taken."
            )
        return first.minimum, first.by
    if number:
        return number, by
    for claim in claims:
        if claim.minimum:
            return claim.minimum, f"{claim.kind} {claim.name}"
    return 0, first.by


def _with_terms(
    found: Membership,
    pod: PodFacts,
    claims: Sequence[Claim],
    carriers: Sequence[Carrier],
    owned: Owned,
    troubles: _Troubles,
) -> Membership:
    by_dialect = {claim.dialect: claim for claim in claims}
    kai, volcano = by_dialect.get("KAI"), by_dialect.get("Volcano")
    upstream = by_dialect.get("upstream")
    priorities = [claim.priority_class for claim in claims if claim.priority_class]
    shape = owned.shape
    terms = None
    try:
        terms = terms_of(
            carriers,
            kai_queue=kai.queue if kai else None,
            volcano_queue=(volcano.queue if volcano else None) or owned.volcano_queue,
            priority_classes=[*priorities, *owned.priority_classes],
            pod_priority_class=pod.priority_class,
            time_limit=(shape.time_limit_s, f"{owned.called}") if shape else (0.0, ""),
        )
    except BadInput as error:
        troubles.pass_over(error)
    whole, own = Wishes(), Wishes()
    try:
        whole = whole_wishes(
            carriers,
            upstream.topology if upstream else owned.upstream,
            kai.topology if kai else None,
            volcano.topology if volcano else owned.volcano_topology,
            owned.exclusive,
        )
        own = set_wishes(carriers)
    except BadInput as error:
        troubles.pass_over(error)
    sets = tuple(
        replace(s, topology=own.wishes) if s.name == found.pod_set and own.wishes and not s.topology else s
        for s in found.sets
    )
    told = (*troubles, *whole.contradictions, *own.contradictions, *(terms.contradictions if terms else ()))
    found = replace(
        found,
        sets=sets,
        topology=whole.wishes,
        unseen=(*owned.unseen, *(one for claim in claims for one in claim.unseen)),
        inherited=inherited(carriers),
        provenance=(*found.provenance, *whole.provenance),
        contradictions=tuple(dict.fromkeys(told)),
    )
    if terms is None:
        return replace(found, priority_class=pod.priority_class)
    preemptible = terms.preemptible if terms.preemptible is not None else (kai.preemptible if kai else None)
    return replace(
        found,
        queue=terms.queue,
        priority_class=terms.priority_class,
        preemptible=preemptible,
        min_runtime_s=terms.min_runtime_s,
        time_limit_s=terms.time_limit_s,
        checkpoint_every_s=terms.checkpoint_every_s,
        provenance=(*found.provenance, *terms.provenance),
    )


def _telling(keys: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((k, v) for k, v in keys.items() if k.startswith(_TELLING) and not k.endswith(_PER_POD)))


def _in_group(count: int, minimum: int, claim: Claim, owned: Owned) -> int:
    """How many of a set's pods are surely in the group; 0: as many as are seen.

    Pods that start one by one need not share a group: KAI makes one for each pod of a Deployment. Of those
    only the group's minimum is waited for, and where nobody knows it, only what is there.
    """
    if claim.dialect == "Berth" or not owned.is_independent:
        return count
    return min(count, minimum)


def _part(part: Part, owned: Owned) -> SetNeed:
    """A part of a group; its owner says how many pods there will be, and what they are."""
    known = next((s for s in owned.sets if s.name == part.name), SetShape(part.name, count=0))
    return SetNeed(
        part.name,
        max(known.count, part.minimum),
        part.minimum,
        False,
        part.topology.wishes if part.topology else known.topology,
        known.template,
    )


def _said(name: str, minimum: int) -> str:
    return f"{name} with {minimum} pods" if minimum else name
