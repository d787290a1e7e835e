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
    """(node terms that all bound volumes allow, names of the claims that are not bound or not there).

    Binding an unbound claim is not Berth's work; a volume that the dump lacks is taken to be reachable.
    """
    terms: tuple[NodeTerm, ...] = ()
    unbound: list[str] = []
    for name in claim_names:
        claim = claims.get((namespace, name))
        if claim is None:
            unbound.append(name)
            continue
        volume_name = claim.spec.volume_name if claim.spec else None
        if not volume_name:
            unbound.append(name)
            continue
        volume = volumes.get(volume_name)
        affinity = volume.spec.node_affinity if volume and volume.spec else None
        if affinity and affinity.required:
            terms = both(terms, node_terms(affinity.required, f"volume {volume_name}", Problems()))
    return terms, tuple(unbound)
