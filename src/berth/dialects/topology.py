"""Topology wishes as people write them, in every dialect, as `TopologyWish`es of a workload or a pod set.

A level is kept as it is written: a level's name, or a node label's key. Order where several dialects speak:
upstream, Berth's keys, KAI, Volcano, Kueue, exclusive placement of JobSet and LeaderWorkerSet; the first is
taken, and another that disagrees is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from berth.dialects.carriers import Carrier, annotation, either
from berth.dialects.fields import Field
from berth.model.workload import TopologyWish

REQUIRED, PREFERRED = "berth.dev/topology-required", "berth.dev/topology-preferred"
SET_REQUIRED = "berth.dev/pod-set-topology-required"
SET_PREFERRED = "berth.dev/pod-set-topology-preferred"
KAI = "kai.scheduler/"
KUEUE = "kueue.x-k8s.io/podset-"

Levels = tuple[TopologyWish, ...]


class Source(Struct, frozen=True):
    """Wishes of one dialect and who said them."""

    wishes: Levels
    by: str


class Wishes(Struct, frozen=True):
    """The wishes that hold, where they came from, and who disagreed."""

    wishes: Levels = ()
    by: str = ""
    contradictions: tuple[str, ...] = ()

    @property
    def provenance(self) -> tuple[tuple[str, str], ...]:
        return (("topology", self.by),) if self.by else ()


def whole_wishes(
    carriers: Sequence[Carrier],
    upstream: Source | None = None,
    kai: Source | None = None,
    volcano: Source | None = None,
    exclusive: Source | None = None,
) -> Wishes:
    """Of the whole workload. The four are what its group object or owner says in fields of its own."""
    return _chosen(
        [
            upstream,
            _pair(carriers, REQUIRED, PREFERRED),
            kai,
            _pair(carriers, KAI + "topology-required-placement", KAI + "topology-preferred-placement"),
            volcano,
            exclusive,
        ]
    )


def set_wishes(
    carriers: Sequence[Carrier],
    kai: Source | None = None,
    volcano: Source | None = None,
    exclusive: Source | None = None,
) -> Wishes:
    """Of one pod set. Raises BadInput for a size of a slice or segment that cannot be read."""
    return _chosen(
        [
            _pair(carriers, SET_REQUIRED, SET_PREFERRED),
            kai,
            _segments(carriers),
            volcano,
            _kueue(carriers),
            exclusive,
        ]
    )


def kai_constraint(constraint: Field, called: str) -> Source | None:
    """`topologyConstraint` of a KAI PodGroup or sub-group: required and preferred level."""
    wishes = _levels(constraint["requiredTopologyLevel"].text(), constraint["preferredTopologyLevel"].text())
    return Source(wishes, f"{constraint.path} of {called}") if wishes else None


def upstream_constraints(constraints: Field, called: str) -> Source | None:
    """`schedulingConstraints.topology[].key` of a PodGroup, a Workload's template or a Job."""
    found = []
    for entry in constraints["topology"].items():
        if key := entry["key"].text():
            found.append(TopologyWish(key))
    return Source(tuple(found), f"{constraints.path} of {called}") if found else None


def volcano_network(network: Field, called: str, tier_names: Mapping[int, str], slice_size: int = 0) -> Source | None:
    """`networkTopology` of a Volcano Job, task or PodGroup.

    A tier is a number that only HyperNodes explain: with their `tierName` it becomes a level, without it
    stays `tier-<n>`, a name that the configuration may give to a level. Mode soft is a preference; Volcano's
    default is hard.
    """
    name = network["highestTierName"].text()
    tier = network["highestTierAllowed"]
    if not name and tier.is_given:
        number = tier.number()
        name = tier_names.get(number, f"tier-{number}")
    if not name:
        return None
    wish = TopologyWish(name, network["mode"].text("hard") != "soft", slice_size)
    return Source((wish,), f"{network.path} of {called}")


def exclusive_domain(carriers: Sequence[Carrier], key: str, pods: int) -> Source | None:
    """`exclusive-topology` of JobSet and LeaderWorkerSet: each so many pods in one domain of their own."""
    said = either(carriers, key)
    if said is None:
        return None
    return Source((TopologyWish(said.value, True, pods),), said.by)


def tier_names(hypernodes: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Names of Volcano's tiers, from HyperNode objects: `spec.tier` to `spec.tierName`."""
    names: dict[int, str] = {}
    for thing in hypernodes:
        spec = thing.get("spec")
        if not isinstance(spec, Mapping):
            continue
        tier, name = spec.get("tier"), spec.get("tierName")
        if isinstance(tier, int) and isinstance(name, str) and name:
            names.setdefault(tier, name)
    return names


def _pair(carriers: Sequence[Carrier], required: str, preferred: str) -> Source | None:
    must, may = either(carriers, required), either(carriers, preferred)
    wishes = _levels(must.value if must else "", may.value if may else "")
    first = must or may
    return Source(wishes, first.by) if first else None


def _segments(carriers: Sequence[Carrier]) -> Source | None:
    """KAI segments: so many pods of a set at a time in one domain."""
    size = annotation(carriers, KAI + "segment-size")
    must = annotation(carriers, KAI + "segment-topology-required-placement")
    may = annotation(carriers, KAI + "segment-topology-preferred-placement")
    first = must or may
    if size is None or first is None:
        return None
    wishes = _levels(must.value if must else "", may.value if may else "", size.field.number_in_text(least=1))
    return Source(wishes, first.by)


def _kueue(carriers: Sequence[Carrier]) -> Source | None:
    """Kueue's podset annotations. `podset-unconstrained-topology` asks for capacity, not for a place."""
    found: list[TopologyWish] = []
    by = ""
    for kind, is_required in (("required-topology", True), ("preferred-topology", False)):
        if said := annotation(carriers, KUEUE + kind):
            found.append(TopologyWish(said.value, is_required))
            by = by or said.by
    if said := annotation(carriers, KUEUE + "slice-required-topology"):
        size = annotation(carriers, KUEUE + "slice-size")
        if size is None:
            raise said.field.bad(
                f"it needs {KUEUE}slice-size beside it", "Say how many pods make a slice, or remove it."
            )
        found.append(TopologyWish(said.value, True, size.field.number_in_text(least=1)))
        by = by or said.by
    if said := annotation(carriers, KUEUE + "slice-required-topology-constraints"):
        found.extend(_layers(said.field))
        by = by or said.by
    return Source(tuple(found), by) if found else None


def _layers(field: Field) -> list[TopologyWish]:
    """`[{"topology": …, "size": …}]`, JSON in an annotation."""
    try:
        layers = Field(json.loads(field.value), field.where, field.path)
    except (TypeError, ValueError):
        raise field.bad("it is not JSON", 'Write [{"topology": "…", "size": 8}].') from None
    return [
        TopologyWish(layer["topology"].text(), True, layer["size"].number(least=1))
        for layer in layers.items()
        if layer["topology"].text()
    ]


def _levels(required: str, preferred: str, slice_size: int = 0) -> Levels:
    """A preference for the level that is required anyhow says nothing."""
    wishes = [TopologyWish(required, True, slice_size)] if required else []
    if preferred and preferred != required:
        wishes.append(TopologyWish(preferred, False, slice_size))
    return tuple(wishes)


def _chosen(sources: Sequence[Source | None]) -> Wishes:
    given = [one for one in sources if one is not None and one.wishes]
    if not given:
        return Wishes()
    first = given[0]
    return Wishes(
        first.wishes,
        first.by,
        tuple(
            f"Topology is {spoken(first.wishes)} by {first.by}, but {spoken(other.wishes)} by {other.by}; "
            "the first was taken."
            for other in given[1:]
            if other.wishes != first.wishes
        ),
    )


def spoken(wishes: Levels) -> str:
    """`rack (required), slices of 8 in host (required)`."""
    return ", ".join(
        (f"slices of {w.slice_size} in " if w.slice_size else "")
        + f"{w.level} ({'required' if w.required else 'preferred'})"
        for w in wishes
    )
