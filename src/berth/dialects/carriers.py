"""Who carries keys: the pod first, then its owners upwards. The first that has a key is believed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from berth.dialects.fields import Field

BERTH = "berth.dev/"
EMPTY: Mapping[str, Any] = {}


class Carrier(Struct, frozen=True):
    """One object whose labels and annotations speak. `called` is how people name it: "Job train"."""

    called: str
    labels: Mapping[str, Any] = EMPTY
    annotations: Mapping[str, Any] = EMPTY
    where: str = ""
    path: str = ""  # where its metadata stands: "spec.template.metadata"


class Said(Struct, frozen=True):
    """A value and who said it: ("team-a", "label kueue.x-k8s.io/queue-name of Job train")."""

    value: str
    by: str
    field: Field


def carrier(metadata: Field, called: str) -> Carrier:
    """The carrier that an object's metadata is. Raises BadInput where it is no mapping."""
    labels, annotations = metadata.at("labels").mapping(), metadata.at("annotations").mapping()
    return Carrier(called, labels, annotations, metadata.where, metadata.path)


def label(carriers: Iterable[Carrier], *keys: str) -> Said | None:
    """The first carrier's value of the first of `keys` that any of them has."""
    return _first(carriers, keys, "labels")


def annotation(carriers: Iterable[Carrier], *keys: str) -> Said | None:
    return _first(carriers, keys, "annotations")


def either(carriers: Sequence[Carrier], *keys: str) -> Said | None:
    """People mix up labels and annotations: the right one first, the other where it is all there is."""
    return label(carriers, *keys) or annotation(carriers, *keys)


def inherited(carriers: Sequence[Carrier]) -> dict[str, str]:
    """Berth's annotations that owners carry and the pod, the first carrier, does not."""
    if not carriers:
        return {}
    own = carriers[0].annotations
    found: dict[str, str] = {}
    for owner in carriers[1:]:
        for key, value in owner.annotations.items():
            if str(key).startswith(BERTH) and key not in own and value is not None:
                found.setdefault(str(key), str(value))
    return found


def _first(carriers: Iterable[Carrier], keys: Sequence[str], place: str) -> Said | None:
    carriers = tuple(carriers)
    for key in keys:
        for one in carriers:
            said = (one.labels if place == "labels" else one.annotations).get(key)
            if said is None or said == "":
                continue
            field = Field({key: said}, one.where, ".".join(p for p in (one.path, place) if p)).at(key)
            return Said(str(said), f"{place[:-1]} {key} of {one.called}", field)
    return None
