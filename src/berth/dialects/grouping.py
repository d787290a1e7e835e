"""Manifests whose pods name a group become one workload: pods with a PodGroup beside them, Jobs of one gang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from berth.base.errors import BadInput
from berth.dialects.assembly import share_minimum
from berth.dialects.members import Membership, PodFacts
from berth.dialects.membership import Memberships
from berth.dialects.objects import Objects, OwnerRef
from berth.dialects.owners import API_GROUPS
from berth.dialects.shape import SetShape, Shape

GROUP_KINDS = ("PodGroup", "Gang")


def grouped(shapes: Sequence[Shape], objects: Objects) -> list[Shape]:
    """The shapes, with those whose pods name one group joined into one, in the place of its first.

    `objects` are all objects of the file, the shapes' own manifests among them. Raises BadInput for a value that
    cannot be read, of a pod or of the group that it names.
    """
    read = Memberships(objects, stops=True)
    made: list[Shape] = []
    joined: dict[tuple[str, str], tuple[int, list[tuple[Shape, Membership]]]] = {}
    for shape in shapes:
        membership = _membership(shape, read)
        if membership is None:
            made.append(shape)
            continue
        key = (membership.namespace, membership.name)
        if key in joined:
            joined[key][1].append((shape, membership))
        else:
            joined[key] = (len(made), [(shape, membership)])
            made.append(shape)
    for place, members in joined.values():
        made[place] = _join(members)
    return made


def _membership(shape: Shape, read: Memberships) -> Membership | None:
    """The group that the shape's pods name, if they do."""
    for one in shape.sets:
        meta, spec = _mapping(one.template, "metadata"), _mapping(one.template, "spec")
        group = API_GROUPS.get(shape.kind, "batch.volcano.sh")
        owners: tuple[OwnerRef, ...] = ()
        if shape.kind != "Pod":
            owners = (OwnerRef(f"{group}/v1" if group else "v1", shape.kind, shape.name, "", True),)
        facts = PodFacts(
            shape.name,
            shape.namespace,
            _texts(meta, "labels"),
            _texts(meta, "annotations"),
            owners,
            str(_mapping(spec, "schedulingGroup").get("podGroupName") or ""),
            shape.scheduler,
            shape.priority_class,
        )
        try:
            found = read.of(facts)
        except BadInput as error:
            # A pod's own keys are read without its file and place.
            own = error.where.startswith(("labels", "annotations"))
            place = ".".join(part for part in (one.path, "metadata", error.where) if part) if own else error.where
            raise BadInput(f"{shape.where}: {place}", error.problem, error.remedy) from None
        if found.kind in GROUP_KINDS:
            return found
    return None


def _join(members: Sequence[tuple[Shape, Membership]]) -> Shape:
    first, membership = members[0]
    sets: list[SetShape] = []
    for shape, one in members:
        for part in shape.sets:
            name = part.name
            if name == "pods":
                name = one.pod_set if shape.kind == "Pod" else shape.name
            sets.append(replace(part, name=name, count=part.count * shape.copies))
    sets = _merged(sets)
    total = sum(s.count for s in sets)
    parts = {need.name: need for need in membership.sets if need.count or need.topology}
    sets = [replace(s, topology=parts[s.name].topology) if s.name in parts and not s.topology else s for s in sets]
    least = total if membership.least < 0 else membership.minimum
    missing = max(0, least - total)
    if missing and sets:
        largest = max(range(len(sets)), key=lambda i: (sets[i].count, -i))
        sets[largest] = replace(sets[largest], count=sets[largest].count + missing)
    shared = _with_minimums(sets, membership, least)
    notes = [note for shape, _ in members for note in shape.notes]
    if membership.waits_for:
        called = membership.waits_for.called
        notes.append(f"{called} is not among the manifests, so all {total} pods are taken as the gang.")
    if missing:
        notes.append(
            f"{membership.kind} {membership.name} asks for {least} pods and the manifests hold {total}: what is "
            "missing is taken to be like these."
        )
    told = [c for shape, one in members for c in (*shape.contradictions, *one.contradictions)]
    return replace(
        first,
        kind=membership.kind,
        name=membership.name,
        sets=shared,
        copies=1,
        topology=membership.topology or first.topology,
        queue=membership.queue or first.queue,
        priority_class=membership.priority_class or first.priority_class,
        preemptible=membership.preemptible,
        gates=tuple(dict.fromkeys(gate for shape, _ in members for gate in shape.gates)),
        provenance=membership.provenance,
        notes=tuple(dict.fromkeys((*notes, *membership.notes))),
        contradictions=tuple(dict.fromkeys(told)),
    )


def _with_minimums(sets: Sequence[SetShape], membership: Membership, least: int) -> tuple[SetShape, ...]:
    """A part's own minimum first, then the share of the whole's, leaders first."""
    parts = {need.name: need.min_count for need in membership.sets}
    own = [min(s.count, parts.get(s.name, 0)) for s in sets]
    rest = [replace(s, count=s.count - least_own, min_count=0) for s, least_own in zip(sets, own, strict=True)]
    more = share_minimum(rest, max(0, least - sum(own)))
    return tuple(
        replace(s, min_count=least_own + extra.min_count) for s, least_own, extra in zip(sets, own, more, strict=True)
    )


def _merged(sets: Sequence[SetShape]) -> list[SetShape]:
    """Pods of one set that ask for the same are one entry; others of that name are told apart by number."""
    made: list[SetShape] = []
    for one in sets:
        alike = next((i for i, other in enumerate(made) if _is_alike(one, other)), None)
        if alike is None:
            same_name = sum(1 for other in made if other.name.rpartition("-")[0] == one.name or other.name == one.name)
            made.append(replace(one, name=f"{one.name}-{same_name + 1}") if same_name else one)
            continue
        other = made[alike]
        made[alike] = replace(
            other,
            count=other.count + one.count,
            min_count=other.min_count + one.min_count,
            later=other.later + one.later,
        )
    return made


def _is_alike(one: SetShape, other: SetShape) -> bool:
    return (
        (other.name == one.name or other.name.rpartition("-")[0] == one.name)
        and other.template.get("spec") == one.template.get("spec")
        and other.labels == one.labels
        and other.topology == one.topology
        and _mapping(_mapping(other.template, "metadata"), "annotations")
        == _mapping(_mapping(one.template, "metadata"), "annotations")
    )


def _mapping(thing: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = thing.get(key)
    return found if isinstance(found, Mapping) else {}


def _texts(thing: Mapping[str, Any], key: str) -> dict[str, str]:
    return {str(k): str(v) for k, v in _mapping(thing, key).items() if v is not None}
