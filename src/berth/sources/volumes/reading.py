"""From objects of storage to facts: claims, volumes, classes."""

from __future__ import annotations

from msgspec import Struct

from berth.base import quantity
from berth.base.quantity import QuantityError
from berth.kube import wire_volumes as wire
from berth.kube.wire import NO_META, Labels, NodeSelector, Quantities, Quantity
from berth.kube.wire import LabelSelector as WireLabelSelector
from berth.model.volumes import Claim, Shape, Volume
from berth.model.workload import NodeTerm, Requirement
from berth.sources.requests import Problems
from berth.sources.selectors import both, label_selector, node_terms, pairs

FILESYSTEM, BLOCK = "Filesystem", "Block"

# Labels of a volume that say where it is, with those that a node may carry instead of the older ones.
_ZONES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
_BETWEEN_ZONES = "__"


class StorageClass(Struct, frozen=True, gc=False):
    """`waits`: its claims get a volume once their first pod has a node. `topologies`: on these nodes; () for all."""

    name: str
    provisioner: str = ""
    waits: bool = False
    topologies: tuple[NodeTerm, ...] = ()
    is_default: bool = False

    @property
    def makes_volumes(self) -> bool:
        """Else its volumes are there already, or are not."""
        return self.provisioner not in ("", wire.NO_PROVISIONER)

    @property
    def driver(self) -> str:
        return wire.DRIVERS_OF_PROVISIONERS.get(self.provisioner, self.provisioner)


class Capacity(Struct, frozen=True, gc=False):
    """A driver can make volumes of a class up to so many bytes, on these nodes; () for all."""

    storage_class: str
    bytes: int
    reach: tuple[NodeTerm, ...] = ()


def claim_of(claim: wire.PersistentVolumeClaim) -> Claim:
    meta, spec = claim.metadata or NO_META, claim.spec or wire.PersistentVolumeClaimSpec()
    phase = claim.status.phase if claim.status else None
    annotations = meta.annotations or {}
    volume = spec.volume_name or ""
    return Claim(
        namespace=meta.namespace or "default",
        name=meta.name or "",
        uid=meta.uid or "",
        shape=shape_of(spec, meta.annotations),
        volume=volume,
        # Where nobody says in which phase it is, as in a dump written by hand, it counts by its volume.
        is_bound=bool(volume) and (phase in (None, "", "Bound") or wire.BIND_COMPLETED in annotations),
        selected_node=annotations.get(wire.SELECTED_NODE) or "",
        made_for=next((o.uid or "" for o in meta.owner_references or () if o.kind == "Pod" and o.controller), ""),
        is_single=wire.ONCE in (spec.access_modes or ()),
        is_lost=phase == "Lost",
        is_ending=bool(meta.deletion_timestamp),
    )


def shape_of(spec: wire.PersistentVolumeClaimSpec, annotations: Labels = None) -> Shape:
    """What a claim with this spec asks of a volume."""
    requests = spec.resources.requests if spec.resources else None
    selector = spec.selector
    return Shape(
        storage_class=_class(spec.storage_class_name, annotations),
        bytes=_storage(requests),
        modes=tuple(sorted(spec.access_modes or ())),
        is_block=spec.volume_mode == BLOCK,
        selector=label_selector(selector, "spec.selector", Problems(), {}) if selector is not None else None,
        attributes_class=spec.volume_attributes_class_name or "",
    )


def volume_of(volume: wire.PersistentVolume) -> Volume:
    meta, spec = volume.metadata or NO_META, volume.spec or wire.PersistentVolumeSpec()
    driver, handle = _driver(spec)
    reference = spec.claim_ref
    return Volume(
        name=meta.name or "",
        uid=meta.uid or "",
        version=meta.resource_version or "",
        shape=Shape(
            _class(spec.storage_class_name, meta.annotations),
            _storage(spec.capacity),
            tuple(sorted(spec.access_modes or ())),
            spec.volume_mode == BLOCK,
            attributes_class=spec.volume_attributes_class_name or "",
        ),
        labels=pairs(meta.labels),
        reach=both(
            _terms(spec.node_affinity.required if spec.node_affinity else None, meta.name or ""), _zones(meta.labels)
        ),
        claim=(reference.namespace or "", reference.name or "") if reference and reference.name else None,
        claim_uid=(reference.uid or "") if reference else "",
        is_available=(volume.status.phase if volume.status else None) == "Available",
        is_ending=bool(meta.deletion_timestamp),
        driver=driver,
        handle=handle,
    )


def class_of(storage_class: wire.StorageClass) -> StorageClass:
    meta = storage_class.metadata or NO_META
    return StorageClass(
        name=meta.name or "",
        provisioner=storage_class.provisioner or "",
        waits=storage_class.volume_binding_mode == wire.WAITS,
        topologies=tuple(
            NodeTerm(tuple(Requirement(e.key or "", "In", e.values or ()) for e in term.match_label_expressions or ()))
            for term in storage_class.allowed_topologies or ()
        ),
        is_default=(meta.annotations or {}).get(wire.DEFAULT_CLASS) == "true",
    )


def capacity_of(capacity: wire.CsiStorageCapacity) -> Capacity | None:
    """None where the driver has nothing, or does not say where."""
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    if capacity.node_topology is None or limit is None:
        return None
    return Capacity(capacity.storage_class_name or "", _bytes(limit), _labelled(capacity.node_topology))


def _driver(spec: wire.PersistentVolumeSpec) -> tuple[str, str]:
    if spec.csi is not None:
        return spec.csi.driver or "", spec.csi.volume_handle or ""
    for field, driver in wire.DRIVERS_OF_FIELDS.items():
        source: wire.InTreeSource | None = getattr(spec, field)
        if source is not None:
            return driver, source.handle
    return "", ""


def _class(name: str | None, annotations: Labels) -> str:
    """The annotation of old objects goes before the field."""
    return (annotations or {}).get(wire.CLASS_BEFORE_IT_WAS_A_FIELD) or name or ""


def _terms(selector: NodeSelector | None, volume: str) -> tuple[NodeTerm, ...]:
    return node_terms(selector, f"volume {volume}", Problems())


def _zones(labels: Labels) -> tuple[NodeTerm, ...]:
    """Nodes in the zone and region that a volume's labels name; a node that names neither is taken to be there."""
    if not labels:
        return ()
    wanted = [(key, tuple((labels[key] or "").split(_BETWEEN_ZONES))) for key in _ZONES if key in labels]
    if not wanted:
        return ()
    here: tuple[NodeTerm, ...] = ()
    for key, values in wanted:
        own = NodeTerm((Requirement(key, "In", values),))
        newer = _ZONES[key]
        either: tuple[NodeTerm, ...] = (own,)
        if newer != key:
            either = (own, NodeTerm((Requirement(key, "DoesNotExist"), Requirement(newer, "In", values))))
        here = both(here, either)
    return (*here, NodeTerm(tuple(Requirement(key, "DoesNotExist") for key in _ZONES)))


def _labelled(selector: WireLabelSelector) -> tuple[NodeTerm, ...]:
    """A label selector over nodes; an empty one is all of them."""
    read = label_selector(selector, "nodeTopology", Problems(), {})
    expressions = tuple(Requirement(key, "In", (value,)) for key, value in read.labels) + read.expressions
    return (NodeTerm(expressions),) if expressions else ()


def _storage(amounts: Quantities) -> int:
    return _bytes((amounts or {}).get("storage"))


def _bytes(value: Quantity) -> int:
    if value is None:
        return 0
    try:
        return max(0, quantity.whole(value if isinstance(value, str) else repr(value)))
    except QuantityError:
        return 0
