"""Which volume a claim can have, and which it is given: the smallest that fits.

Source: FindMatchingVolume of k8s.io/component-helpers/storage/volume; claims in the order of their size, as
kube-scheduler's VolumeBinding takes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from berth.model.volumes import Claim, Shape, Step, Unmade, Volume
from berth.model.workload import LabelSelector
from berth.sources.volumes.places import Places, holds
from berth.sources.volumes.storage import Storage


def could_have(asked: Shape, volume: Volume) -> bool:
    """By itself: class, size, modes, labels; not where it is, nor whose."""
    offers = volume.shape
    return (
        offers.storage_class == asked.storage_class
        and offers.bytes >= asked.bytes
        and offers.is_block == asked.is_block
        and offers.attributes_class == asked.attributes_class
        and set(asked.modes) <= set(offers.modes)
        and (asked.selector is None or _selects(asked.selector, dict(volume.labels)))
    )


class Shelves:
    """Volumes that are nobody's yet, by class and by the node on which they could be used, the smallest first.

    One that several nodes reach lies on each of their shelves. Those chosen for somebody lie there, too.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._places = Places()
        self._known: dict[str, tuple[int, Mapping[int, Sequence[Volume]]]] = {}

    def stand_on(self, places: Places) -> None:
        """The nodes, or their labels, have changed."""
        if places is not self._places:
            self._places = places
            self._known.clear()

    @property
    def places(self) -> Places:
        return self._places

    def of(self, storage_class: str) -> Mapping[int, Sequence[Volume]]:
        """By the position of the node."""
        version = self._storage.versions.get(f"volumes {storage_class}", 0)
        known = self._known.get(storage_class)
        if known is None or known[0] != version:
            shelves: dict[int, list[Volume]] = {}
            for volume in self._storage.unclaimed(storage_class):
                for n in self._places.of(volume.reach):
                    shelves.setdefault(n, []).append(volume)
            known = self._known[storage_class] = (version, shelves)
        return known[1]

    def smallest(self, asked: Shape, node: int) -> Volume | None:
        """The smallest volume on a node that a claim could have and nobody else is to have."""
        chosen = self._storage.chosen
        for volume in self.of(asked.storage_class).get(node, ()):
            if volume.name not in chosen and could_have(asked, volume):
                return volume
        return None


def steps_on(claims: Sequence[Claim], node: int, shelves: Shelves, storage: Storage) -> tuple[list[Step], list[Unmade]]:
    """What makes these claims get their volumes on a node; and those for which there is none there any more.

    They are unbound, and of classes that wait for their first consumer. Volumes that are given count as chosen. A node
    that was selected before and is there still stays.
    """
    index, name = shelves.places.index, shelves.places.nodes[node].name
    steps: list[Step] = []
    unmade: list[Unmade] = []
    for claim in sorted(claims, key=lambda c: (c.shape.bytes, c.key)):
        storage_class = storage.classes.get(claim.shape.storage_class)
        volume = storage.volume_for(claim)
        selected = node_for if (node_for := storage.node_for(claim)) in index else ""
        if volume is None and not selected:
            volume = shelves.smallest(claim.shape, node)
        if volume is not None:
            if not volume.is_for(claim):
                storage.choose(volume.name, claim.key)
            is_written = volume.claim == claim.key and volume.claim_uid == claim.uid
            steps.append(Step(claim.key, claim.uid, name, volume.name, volume.uid, volume.version, is_written))
        elif storage_class is not None and storage_class.makes_volumes:
            is_written = bool(selected) and claim.selected_node == selected
            steps.append(Step(claim.key, claim.uid, selected or name, is_written=is_written))
        else:
            why = f"no volume of class {claim.shape.storage_class} is left on {name} for claim {claim.name}"
            unmade.append(Unmade(claim.key, name, why))
    return steps, unmade


def _selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.labels) and all(
        holds(e, labels.get(e.key)) for e in selector.expressions
    )
