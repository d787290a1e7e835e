"""Claims of pods that nobody has created yet: what those that are there, and those that come with the pod, mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from berth.kube import wire_volumes as wire
from berth.model.resources import added
from berth.model.workload import PodClass
from berth.sources.inventory import Inventory
from berth.sources.pod_class import read_template
from berth.sources.selectors import both
from berth.sources.volumes.reading import shape_of
from berth.sources.volumes.wishes import Wishes, wishes_of, wishes_of_shape


class ClaimsAsked:
    """Pod templates as classes, in a namespace of the cluster that an inventory holds.

    `unseen` are claims about which nothing can be said: they are not there, and only their volumes will tell.
    """

    def __init__(self, inventory: Inventory, namespace: str) -> None:
        self.unseen: list[str] = []
        self._inventory = inventory
        self._namespace = namespace

    def pod_class(self, template: Mapping[str, Any], where: str, path: str) -> PodClass:
        """As manifests.ToPodClass. Raises BadInput for a field of the wrong type."""
        made = read_template(template, where, path).pod_class
        for wishes in self._wishes(template):
            made = replace(
                made, requests=added(made.requests, wishes.requests),
                node_affinity=both(made.node_affinity, wishes.terms), unbound=(*made.unbound, *wishes.waits),
            )  # fmt: skip
        return made

    def _wishes(self, template: Mapping[str, Any]) -> Iterator[Wishes]:
        storage, offers = self._inventory.storage, self._inventory.offers
        names: list[str] = []
        for volume in (template.get("spec") or {}).get("volumes") or ():
            if not isinstance(volume, Mapping):
                continue
            if isinstance(source := volume.get("persistentVolumeClaim"), Mapping):
                name = str(source.get("claimName") or "")
                (names if (self._namespace, name) in storage.claims else self.unseen).append(name)
            elif isinstance(source := volume.get("ephemeral"), Mapping):
                found = self._to_be_made(source)
                if found is None:
                    self.unseen.append(str(volume.get("name") or ""))
                else:
                    yield found
        if names:
            yield wishes_of((self._namespace, ""), "", tuple(names), (), storage, offers)

    def _to_be_made(self, source: Mapping[str, Any]) -> Wishes | None:
        """What a claim that comes with the pod means; None where its class makes volumes anywhere, or is not known."""
        template = source.get("volumeClaimTemplate")
        spec = template.get("spec") if isinstance(template, Mapping) else None
        try:
            read = msgspec.convert(spec or {}, wire.PersistentVolumeClaimSpec)
        except msgspec.ValidationError:
            return None
        return wishes_of_shape(shape_of(read), self._inventory.storage, self._inventory.offers)
