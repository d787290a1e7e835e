"""What a pod's owners say of it: which of them makes it part of a workload, and which pod set it is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from berth.base.errors import BadInput
from berth.dialects import topology
from berth.dialects.assembly import called
from berth.dialects.batch import pods_at_once
from berth.dialects.carriers import Carrier, carrier
from berth.dialects.fields import Field
from berth.dialects.objects import Objects, OwnerRef, Unseen, chain, find, unseen_of
from berth.dialects.owners import ABOVE_ANOTHER, INDEPENDENT, READERS, shapes_of, tiers_among
from berth.dialects.queue import Candidate
from berth.dialects.shape import Disruption, Manifest, SetShape, Shape
from berth.dialects.topology import Source

LWS = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
LWS_KEY = "leaderworkerset.sigs.k8s.io/"
JOBSET_KEY = "jobset.sigs.k8s.io/"
KUBEFLOW_KEY = "training.kubeflow.org/"

# Which label or annotation names the pod set, by the API group of the owner.
_SET_KEYS = {
    "jobset.x-k8s.io": (JOBSET_KEY + "replicatedjob-name",),
    "trainer.kubeflow.org": (JOBSET_KEY + "replicatedjob-name",),
    "kubeflow.org": (KUBEFLOW_KEY + "replica-type", "replica-type", KUBEFLOW_KEY + "job-role"),
    "batch.volcano.sh": ("volcano.sh/task-spec",),
    "ray.io": ("ray.io/group",),
}


class Owned(Struct, frozen=True):
    """The owner that decides for a pod. `is_workload`: its pods are one workload; else each stands alone.

    `is_size_unknown`: the owner is known by name only, its object is not at hand.
    """

    group: str = ""
    kind: str = ""
    name: str = ""
    called: str = ""
    by: str = ""
    is_workload: bool = False
    is_size_unknown: bool = False
    shape: Shape | None = None
    sets: tuple[SetShape, ...] = ()
    suspended: bool = False
    disruption: Disruption | None = None  # where the owner says how its pods may be asked to leave
    api_version: str = ""
    uid: str = ""
    unseen: tuple[Unseen, ...] = ()  # owners, up to the highest, that are not at hand
    carriers: tuple[Carrier, ...] = ()
    volcano_queue: Candidate | None = None
    priority_classes: tuple[Candidate, ...] = ()
    upstream: Source | None = None
    volcano_topology: Source | None = None
    exclusive: Source | None = None
    tiers: Mapping[int, str] = {}
    notes: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()

    @property
    def is_independent(self) -> bool:
        """Its kind's pods start one by one, unless something says otherwise."""
        return (self.group, self.kind) in INDEPENDENT

    def pod_set(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
        """The pod's own set, by the labels that the owner's controller writes; "pods" where none does."""
        if (self.group, self.kind) == LWS:
            index = labels.get(LWS_KEY + "worker-index", "")
            return "leader" if index in ("0", "") else "worker"
        if self.group == "ray.io" and labels.get("ray.io/node-type") == "head":
            return "head"
        for key in _SET_KEYS.get(self.group, ()):
            if said := labels.get(key) or annotations.get(key):
                return said.lower() if self.group == "kubeflow.org" else said
        return self.sets[0].name if len(self.sets) == 1 else "pods"

    def sets_of(self, annotations: Mapping[str, str]) -> tuple[SetShape, ...]:
        """The owner's sets; of a LeaderWorkerSet that is not at hand, by the size that its pods carry."""
        if self.sets or (self.group, self.kind) != LWS:
            return self.sets
        size = annotations.get(LWS_KEY + "size", "")
        if not (size.isascii() and size.isdigit() and int(size)):
            return ()
        workers = int(size) - 1
        leader = SetShape("leader")
        return (leader, SetShape("worker", count=workers, min_count=workers)) if workers else (leader,)

    def sets_in_group(self, annotations: Mapping[str, str]) -> tuple[SetShape, ...]:
        """The sets when the pods belong to a group that they name: all copies, told apart by the owner.

        Two Jobs in one group are two sets; each Job calls its own "pods".
        """
        sets = self.sets_of(annotations)
        copies = self.shape.copies if self.shape and (self.group, self.kind) in INDEPENDENT else 1
        return tuple(replace(s, name=self.name if s.name == "pods" else s.name, count=s.count * copies) for s in sets)

    def set_in_group(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
        """The pod's own among `sets_in_group`."""
        own = self.pod_set(labels, annotations)
        return self.name if own == "pods" and self.sets and self.name else own

    def suffix(self, labels: Mapping[str, str]) -> str:
        """What tells the copies of an owner apart: the group index of a LeaderWorkerSet."""
        if (self.group, self.kind) != LWS:
            return ""
        return "-" + labels.get(LWS_KEY + "group-index", "0")


def owned_by(refs: Sequence[OwnerRef], namespace: str, objects: Objects, above: OwnerRef | None = None) -> Owned:
    """From ownerReferences, and the owner that the pod's labels name (`named_owner`).

    Never raises: an owner that cannot be read is told, and its pods stand alone.
    """
    links = _completed(chain(refs, namespace, objects), above, namespace, objects)
    troubles: list[str] = []
    carriers: list[Carrier] = []
    for ref, thing in links:
        if thing is None:
            continue
        try:
            carriers.append(carrier(Field(thing)["metadata"], f"{ref.kind} {ref.name}"))
        except BadInput as error:
            troubles.append(f"{ref.kind} {ref.name}: {error.sentence}")
    tiers = tiers_among(objects) if any(r.group == "batch.volcano.sh" for r, _ in links) else {}
    base = Owned(unseen=unseen_of(links, namespace), carriers=tuple(carriers), tiers=tiers)
    chosen = _deciding(links)
    if chosen is None:
        return replace(base, troubles=tuple(troubles))
    ref, thing = chosen
    base = replace(
        base, group=ref.group, kind=ref.kind, name=ref.name, called=f"{ref.kind} {ref.name}",
        api_version=ref.api_version, uid=ref.uid or Field(thing)["metadata.uid"].text(),
    )  # fmt: skip
    if thing is None:
        if (ref.group, ref.kind) in INDEPENDENT:
            return replace(base, troubles=tuple(troubles))
        note = f"{base.called} is not among the objects: its size is taken from its pods."
        return replace(
            base,
            is_workload=True,
            is_size_unknown=True,
            by=f"owner {base.called}",
            notes=(note,),
            troubles=tuple(troubles),
        )
    try:
        return _read(base, thing, objects, troubles, _above(links, ref))
    except BadInput as error:
        troubles.append(f"{base.called} cannot be read: {error.sentence}")
        is_alone = (ref.group, ref.kind) in INDEPENDENT
        return replace(
            base,
            is_workload=not is_alone,
            is_size_unknown=not is_alone,
            by=f"owner {base.called}",
            troubles=tuple(troubles),
        )


def _above(links: Sequence[tuple[OwnerRef, Manifest | None]], chosen: OwnerRef) -> list[Carrier]:
    """Owners of the one that decides. One whose keys cannot be read has been told of."""
    found: list[Carrier] = []
    highest = [ref for ref, _ in links].index(chosen)
    for ref, thing in links[highest + 1 :]:
        with suppress(BadInput):
            if thing is not None:
                found.append(carrier(Field(thing)["metadata"], f"{ref.kind} {ref.name}"))
    return found


def _read(
    base: Owned, thing: Manifest, objects: Objects, troubles: list[str], above: Sequence[Carrier]
) -> Owned:
    shapes = shapes_of(thing, "", objects, above)
    shape = shapes[0]
    sets = tuple(s for one in shapes for s in one.sets)
    field = Field(thing)
    kind = (base.group, base.kind)
    is_workload = shape.copies == 1 and shape.pod_count > 1
    if kind == LWS:
        is_workload = shape.pod_count > 1
    if kind not in INDEPENDENT and kind != LWS:
        is_workload = True
    if kind == ("batch", "Job"):
        sets = tuple(_without_ended(s, field) for s in sets)
    if len(shapes) > 1:
        # Sets of one owner that never run together wait for each other, not for the gang.
        late = {s.name for one in shapes[1:] for s in one.sets}
        sets = tuple(replace(s, follows=s.follows or s.name in late) for s in sets)
    by = dict(shape.provenance).get("gang", f"owner {base.called}")
    spec = field["spec"]
    name = called(field)
    policy = spec["runPolicy.schedulingPolicy"] if base.group == "kubeflow.org" else Field(None)
    queue = policy["queue"].text()
    priority = policy["priorityClass"].text()
    volcano_topology = None
    if base.group == "batch.volcano.sh":
        queue, priority = spec["queue"].text(), spec["priorityClassName"].text()
        volcano_topology = topology.volcano_network(spec["networkTopology"], name, base.tiers)
    exclusive = None
    if kind == LWS:
        owner = [carrier(field["metadata"], name)]
        exclusive = topology.exclusive_domain(owner, LWS_KEY + "exclusive-topology", 0)
    return replace(
        base,
        by=by,
        is_workload=is_workload,
        shape=shape,
        sets=sets,
        suspended=shape.suspended,
        volcano_queue=Candidate(queue, f"the queue of {name}") if queue else None,
        priority_classes=(Candidate(priority, f"the priority class of {name}"),) if priority else (),
        upstream=topology.upstream_constraints(spec["scheduling.schedulingConstraints"], name),
        volcano_topology=volcano_topology,
        exclusive=exclusive,
        disruption=_disruption(spec["scheduling.disruptionMode"]),
        notes=shape.notes,
        troubles=tuple(troubles),
    )


def _disruption(mode: Field) -> Disruption | None:
    """`spec.scheduling.disruptionMode` of a Job."""
    if mode["all"].is_given:
        return "all"
    return "single" if mode["single"].is_given else None


def _without_ended(one: SetShape, job: Field) -> SetShape:
    """A Job near its end runs fewer pods at once than it began with: the gang shrinks to what is left."""
    spec = job["spec"]
    if not spec["completions"].is_given:
        return one
    left = max(0, spec["completions"].number() - job["status.succeeded"].number())
    at_once = min(pods_at_once(spec)[0], left)
    if one.count <= 1 or at_once >= one.count:
        return one
    return replace(one, count=at_once, min_count=min(one.min_count, at_once))


def _deciding(links: Sequence[tuple[OwnerRef, Manifest | None]]) -> tuple[OwnerRef, Manifest | None] | None:
    """The highest owner of a kind that Berth reads; one that makes another such owner leaves it to that.

    A kind that Berth does not read (a workflow, an operator's own) is passed over.
    """
    known = [(ref, thing) for ref, thing in links if (ref.group, ref.kind) in READERS]
    known = [(ref, thing) for ref, thing in known if (ref.group, ref.kind) != ("", "Pod")]
    if not known:
        return None
    highest = known[-1]
    while len(known) > 1 and (highest[0].group, highest[0].kind) in ABOVE_ANOTHER:
        known.pop()
        highest = known[-1]
    # Between a JobSet and its pods there are Jobs: the JobSet decides. A Job alone decides for itself.
    return highest


def named_owner(labels: Mapping[str, str]) -> OwnerRef | None:
    """The owner that a pod's labels name, for chains that break: between a LeaderWorkerSet and its workers
    there are StatefulSets and the leader pod, between a JobSet or MPIJob and its pods there are Jobs.
    """
    if name := labels.get(LWS_KEY + "name"):
        return OwnerRef("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, "", True)
    if name := labels.get(JOBSET_KEY + "jobset-name"):
        return OwnerRef("jobset.x-k8s.io/v1alpha2", "JobSet", name, "", True)
    name = labels.get(KUBEFLOW_KEY + "job-name", "")
    if name and labels.get(KUBEFLOW_KEY + "operator-name") == "mpi-operator":
        return OwnerRef("kubeflow.org/v2beta1", "MPIJob", name, "", True)
    return None


def _completed(
    links: tuple[tuple[OwnerRef, Manifest | None], ...],
    above: OwnerRef | None,
    namespace: str,
    objects: Objects,
) -> tuple[tuple[OwnerRef, Manifest | None], ...]:
    """The chain with the owner that labels name, where it is not in it."""
    if above is None or any((r.group, r.kind) == (above.group, above.kind) for r, _ in links):
        return links
    thing = find(objects, above.group, above.kind, namespace, above.name)
    upwards = chain([above], namespace, objects)
    return (*links, *(upwards or ((above, thing),)))
