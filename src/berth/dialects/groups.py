"""Groups that a pod names itself: PodGroups of four schedulers, Berth's gang label, Kueue's pod group.

Each dialect's function answers with a claim: which group, how many must start together, what else the group
object says. A group object that is not among the objects leaves the claim without numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from berth.dialects.carriers import Carrier, annotation, either, label
from berth.dialects.fields import Field
from berth.dialects.objects import Objects, Unseen, find
from berth.dialects.queue import GANG, POD_SET, Candidate
from berth.dialects.shape import Disruption
from berth.dialects.topology import Source, kai_constraint, upstream_constraints, volcano_network

UPSTREAM = "scheduling.k8s.io"
KAI = "scheduling.run.ai"
VOLCANO = "scheduling.volcano.sh"
PLUGINS = "scheduling.x-k8s.io"
KUEUE = "kueue.x-k8s.io"
VOLCANO_GROUPS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")  # annotations of a pod
KAI_LOOKALIKE = "pod-group.scheduling.run.ai/name"


class Part(Struct, frozen=True):
    """A part of a group with a minimum of its own: a sub-group of KAI, a task of Volcano."""

    name: str
    minimum: int
    topology: Source | None = None


class Claim(Struct, frozen=True):
    """One dialect's word on where a pod belongs. `minimum` 0: not known; `total` 0: as many as there are."""

    dialect: str
    kind: str
    name: str
    by: str
    pod_set: str = ""
    minimum: int = 0
    total: int = 0
    parts: tuple[Part, ...] = ()
    topology: Source | None = None
    queue: Candidate | None = None
    priority_class: Candidate | None = None
    preemptible: bool | None = None
    waits_for: Unseen | None = None  # the group object that is not there
    priority: int | None = None  # where the group states a number
    preempts: bool = True  # False by the group's preemptionPolicy
    disruption: Disruption = "all"
    api_version: str = ""  # of the group object, where there is one
    uid: str = ""
    notes: tuple[str, ...] = ()
    unseen: tuple[Unseen, ...] = ()  # what the group object names, and is not at hand


def claims_of(
    carriers: Sequence[Carrier],
    namespace: str,
    objects: Objects,
    scheduling_group: str = "",
    tiers: Mapping[int, str] | None = None,
) -> tuple[Claim, ...]:
    """All claims on a pod, the one that holds first. `carriers`: the pod, then its owners upwards.

    Raises BadInput where a group object or an annotation cannot be read.
    """
    pod = carriers[:1]
    made = (
        _upstream(scheduling_group, namespace, objects),
        _berth(carriers),
        _kai(pod, namespace, objects),
        _volcano(pod, namespace, objects, tiers or {}),
        _plugins(pod, namespace, objects),
        _kueue(pod, namespace, objects),
    )
    return tuple(claim for claim in made if claim is not None)


def doubts_of(carriers: Sequence[Carrier]) -> tuple[str, ...]:
    """Keys that mean something to another scheduler and not what they seem to, or nothing, here."""
    told = []
    said, read = label(carriers, KAI_LOOKALIKE), annotation(carriers, "pod-group-name")
    if said is not None and (read is None or read.value != said.value):
        told.append(
            f"Label {KAI_LOOKALIKE} names the group {said.value}, but KAI joins pods by the annotation "
            "pod-group-name: they are not a gang by it."
        )
    if share := annotation(carriers[:1], "gpu-fraction", "gpu-memory"):
        told.append(
            f"A share of a GPU is asked for by KAI's {share.by} ({share.value}), which is not read: the pod is "
            "counted without a GPU."
        )
    return tuple(told)


def _upstream(name: str, namespace: str, objects: Objects) -> Claim | None:
    """`spec.schedulingGroup.podGroupName`. What the PodGroup leaves out its Workload's template says."""
    if not name:
        return None
    by = "spec.schedulingGroup"
    group = _object(objects, UPSTREAM, "PodGroup", namespace, name)
    if group is None:
        return Claim("upstream", "PodGroup", name, by, waits_for=_absent(UPSTREAM, namespace, name))
    spec = group["spec"]
    template, unseen = _workload_template(spec, namespace, objects)
    policy = spec["schedulingPolicy"] if spec["schedulingPolicy"].is_given else template["schedulingPolicy"]
    gang = policy["gang.minCount"]
    constraints = spec["schedulingConstraints"]
    if not constraints.is_given:
        constraints = template["schedulingConstraints"]
    disruption = spec["disruptionMode"] if spec["disruptionMode"].is_given else template["disruptionMode"]
    number = spec["priority"]
    called = f"PodGroup {name}"
    priority = spec["priorityClassName"].text() or template["priorityClassName"].text()
    notes = []
    if parent := spec["parentCompositePodGroupName"].text():
        notes.append(f"{called} is part of the CompositePodGroup {parent}, which is not read.")
    return Claim(
        "upstream",
        "PodGroup",
        name,
        by,
        minimum=gang.number(1, least=1),
        topology=upstream_constraints(constraints, called),
        priority_class=_candidate(priority, f"priorityClassName of {called}"),
        notes=tuple(notes),
        priority=number.number(least=-(2**31)) if number.is_given else None,
        preempts=(spec["preemptionPolicy"].text() or template["preemptionPolicy"].text()) != "Never",
        # The API server's own default is that pods leave one by one.
        disruption="all" if disruption["all"].is_given else "single",
        unseen=unseen,
        **_known(group),
    )


def _workload_template(spec: Field, namespace: str, objects: Objects) -> tuple[Field, tuple[Unseen, ...]]:
    """The template that a PodGroup was made from; the Workload that has it, where that is not at hand."""
    ref = spec["workloadRef"]
    name = ref["workloadName"].text()
    workload = _object(objects, UPSTREAM, "Workload", namespace, name)
    if workload is None:
        return Field(None), (Unseen(UPSTREAM, "Workload", namespace, name),) if name else ()
    for template in workload["spec.podGroupTemplates"].items():
        if template["name"].text() == ref["templateName"].text():
            return template, ()
    return Field(None), ()


def _berth(carriers: Sequence[Carrier]) -> Claim | None:
    """`berth.dev/gang`: the pods with the same value in one namespace. Its minimum is an annotation."""
    said = either(carriers, GANG)
    if said is None:
        return None
    of_set = either(carriers, POD_SET)
    return Claim("Berth", "Gang", said.value, said.by, pod_set=of_set.value if of_set else "")


def _kai(pod: Sequence[Carrier], namespace: str, objects: Objects) -> Claim | None:
    said = annotation(pod, "pod-group-name")
    if said is None:
        return None
    sub_group = label(pod, "kai.scheduler/subgroup-name")
    of_set = sub_group.value if sub_group else ""
    group = _object(objects, KAI, "PodGroup", namespace, said.value)
    if group is None:
        absent = _absent(KAI, namespace, said.value)
        return Claim("KAI", "PodGroup", said.value, said.by, pod_set=of_set, waits_for=absent)
    spec, called = group["spec"], f"PodGroup {said.value}"
    subs = spec["subGroups"].items()
    parents = {sub["parent"].text() for sub in subs}
    leaves = [sub for sub in subs if sub["name"].text() not in parents]
    parts = tuple(
        Part(
            sub["name"].text(),
            sub["minMember"].number(1),
            kai_constraint(sub["topologyConstraint"], called),
        )
        for sub in leaves
    )
    notes = []
    if any(sub["topologyConstraint"].is_given for sub in subs if sub not in leaves):
        notes.append(f"Topology of sub-groups of {called} that hold other sub-groups is not read.")
    least = spec["minSubGroup"]
    if least.is_given and 0 < least.number() < len(leaves):
        notes.append(f"{called} may start with {least.number()} of its sub-groups; all are counted here.")
    kinds = {"preemptible": True, "non-preemptible": False, "semi-preemptible": False}
    return Claim(
        "KAI",
        "PodGroup",
        said.value,
        said.by,
        pod_set=of_set,
        minimum=sum(p.minimum for p in parts) or spec["minMember"].number(1),
        parts=parts,
        topology=kai_constraint(spec["topologyConstraint"], called),
        queue=_candidate(spec["queue"].text(), f"spec.queue of {called}"),
        priority_class=_candidate(spec["priorityClassName"].text(), f"priorityClassName of {called}"),
        preemptible=kinds.get(spec["preemptibility"].text()),
        notes=tuple(notes),
        **_known(group),
    )


def _volcano(pod: Sequence[Carrier], namespace: str, objects: Objects, tiers: Mapping[int, str]) -> Claim | None:
    said = annotation(pod, *VOLCANO_GROUPS)
    if said is None:
        return None
    task = annotation(pod, "volcano.sh/task-spec")
    of_set = task.value if task else ""
    group = _object(objects, VOLCANO, "PodGroup", namespace, said.value)
    if group is None:
        absent = _absent(VOLCANO, namespace, said.value)
        return Claim("Volcano", "PodGroup", said.value, said.by, pod_set=of_set, waits_for=absent)
    spec, called = group["spec"], f"PodGroup {said.value}"
    minimum = spec["minMember"].number(1)
    parts = tuple(Part(name, member.number()) for name, member in spec["minTaskMember"].entries())
    # As Volcano does: below the tasks' sum only the group's own number counts.
    parts = parts if sum(p.minimum for p in parts) <= minimum else ()
    notes = []
    if spec["subGroupPolicy"].items():
        notes.append(f"spec.subGroupPolicy of {called} is not read.")
    return Claim(
        "Volcano",
        "PodGroup",
        said.value,
        said.by,
        pod_set=of_set,
        minimum=minimum,
        parts=parts,
        topology=volcano_network(spec["networkTopology"], called, tiers),
        queue=_candidate(spec["queue"].text(), f"spec.queue of {called}"),
        priority_class=_candidate(spec["priorityClassName"].text(), f"priorityClassName of {called}"),
        notes=tuple(notes),
        **_known(group),
    )


def _plugins(pod: Sequence[Carrier], namespace: str, objects: Objects) -> Claim | None:
    said = label(pod, "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
    if said is None:
        return None
    group = _object(objects, PLUGINS, "PodGroup", namespace, said.value)
    if group is None:
        absent = _absent(PLUGINS, namespace, said.value)
        return Claim("scheduler-plugins", "PodGroup", said.value, said.by, waits_for=absent)
    minimum = group["spec.minMember"].number(1)
    return Claim("scheduler-plugins", "PodGroup", said.value, said.by, minimum=minimum, **_known(group))


def _kueue(pod: Sequence[Carrier], namespace: str, objects: Objects) -> Claim | None:
    """A group of plain pods: Kueue admits it whole, as soon as all its pods are there."""
    said = label(pod, "kueue.x-k8s.io/pod-group-name")
    if said is None:
        return None
    total = annotation(pod, "kueue.x-k8s.io/pod-group-total-count")
    count = total.field.number_in_text(least=1) if total else 0
    workload = _object(objects, KUEUE, "Workload", namespace, said.value)
    if not count and workload is not None:
        count = sum(one["count"].number(1) for one in workload["spec.podSets"].items())
    return Claim("Kueue", "PodGroup", said.value, said.by, minimum=count, total=count)


def _object(objects: Objects, group: str, kind: str, namespace: str, name: str) -> Field | None:
    thing = find(objects, group, kind, namespace, name) if name else None
    return Field(thing, f"{kind} {namespace}/{name}") if thing is not None else None


def _known(group: Field) -> dict[str, str]:
    """What tells the group object from others: its API version and uid."""
    return {"api_version": group["apiVersion"].text(), "uid": group["metadata.uid"].text()}


def _absent(group: str, namespace: str, name: str) -> Unseen:
    return Unseen(group, "PodGroup", namespace, name)


def _candidate(value: str, by: str) -> Candidate | None:
    return Candidate(value, by) if value else None
