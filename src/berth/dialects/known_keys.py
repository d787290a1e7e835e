"""Berth's own keys, and those that look like one: a key that nobody reads says nothing, so it is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from berth.base.errors import BadInput
from berth.dialects.carriers import BERTH, Carrier
from berth.dialects.fields import Field
from berth.dialects.queue import MIN_COUNT

KNOWN = frozenset((
    "queue", "gang", "min-count", "pod-set", "time-limit", "preemptible", "min-runtime", "checkpoint-every",
    "last-checkpoint", "gpu-memory", "gpu-compute", "gpu-product", "gpu-precision", "gpu-link", "rdma", "sharing",
    "topology-required", "topology-preferred", "pod-set-topology-required", "pod-set-topology-preferred",
    "scheduler", "decision", "config-hash",  # of namespaces; written by Berth, by the chart
))  # fmt: skip


def unknown_keys(carriers: Sequence[Carrier]) -> tuple[str, ...]:
    """A sentence for each key of Berth's prefix, on the pod or its owners, that Berth does not read."""
    return tuple(dict.fromkeys(
        f"{place} {key} of {one.called} is no key of Berth{_close(key)}. It was passed over."
        for one in carriers
        for place, keys in (("Label", one.labels), ("Annotation", one.annotations))
        for key in sorted(map(str, keys))
        if _is_unknown(key)
    ))  # fmt: skip


def refuse_unknown(manifest: Mapping[str, Any], where: str) -> None:
    """Raises BadInput for the first such key of a manifest or of a pod template in it, or for a minimum that is none:
    a pod that stands alone, and kinds that are gangs anyhow, have no use for it."""
    for metadata in _metadata(Field(manifest, where)):
        for place in ("labels", "annotations"):
            field = metadata[place]
            for key in field.value if isinstance(field.value, Mapping) else ():
                if _is_unknown(str(key)):
                    raise BadInput(
                        f"{where}: {field.path}", f"{key} is no key of Berth{_close(str(key))}.",
                        "Berth's keys are in docs/api.md; see whether it is spelt as there.",
                    )  # fmt: skip
                if key == MIN_COUNT and (minimum := field.at(MIN_COUNT)).value != "":
                    minimum.number_in_text(least=1)


def _is_unknown(key: str) -> bool:
    return key.startswith(BERTH) and key[len(BERTH) :] not in KNOWN


def _close(key: str) -> str:
    close = get_close_matches(key[len(BERTH) :], sorted(KNOWN), 1, 0.6)
    return f"; close to it: {close[0]}" if close else ""


def _metadata(thing: Field) -> Iterator[Field]:
    """Every `metadata` in it, wherever a template stands."""
    if isinstance(thing.value, Mapping):
        for key in thing.value:
            if key == "metadata":
                yield thing[key]
            elif isinstance(thing.value[key], Mapping | list):
                yield from _metadata(thing.at(str(key)))
    elif isinstance(thing.value, list):
        for one in thing.items():
            yield from _metadata(one)
