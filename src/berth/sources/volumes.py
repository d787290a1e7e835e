"""Where the volumes of a waiting pod allow it to run."""

from __future__ import annotations

from collections.abc import Mapping

from berth.kube import wire
from berth.model.workload import NodeTerm
from berth.sources.requests import Problems
from berth.sources.selectors import both, node_terms


def volume_wishes(
    namespace: str,
    claim_names: tuple[str, ...],
    claims: Mapping[tuple[str, str], wire.PersistentVolumeClaim],
    volumes: Mapping[str, wire.PersistentVolume],
) -> tuple[tuple[NodeTerm, ...], tuple[str, ...]]:
    """(node terms that all bound volumes allow, what keeps the pod from being placed: a phrase each).

    Binding an unbound claim is not Berth's work; a volume that the dump lacks is taken to be reachable.
    """
    terms: tuple[NodeTerm, ...] = ()
    phrases: list[str] = []
    for name in claim_names:
        claim = claims.get((namespace, name))
        if claim is None:
            phrases.append(f"volume claim {name}, which does not exist")
            continue
        volume_name = claim.spec.volume_name if claim.spec else None
        if not volume_name:
            phrases.append(f"volume claim {name}, which is not bound to a volume yet")
            continue
        volume = volumes.get(volume_name)
        affinity = volume.spec.node_affinity if volume and volume.spec else None
        if affinity and affinity.required:
            terms = both(terms, node_terms(affinity.required, f"volume {volume_name}", Problems()))
    return terms, tuple(phrases)
