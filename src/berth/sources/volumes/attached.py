"""What the volumes of pods take of the nodes that they are on: a volume that several of them use counts once."""

from __future__ import annotations

from collections.abc import Iterable

from berth.model.resources import Resources
from berth.model.volumes import ATTACHED
from berth.sources.volumes.mounts import PodKey
from berth.sources.volumes.storage import Storage

Used = tuple[str, str]  # (driver, what tells the volume from its others)


def used_by(namespace: str, claims: Iterable[str], storage: Storage) -> list[Used]:
    """Volumes of drivers with a limit that a pod with these claims uses, or will use."""
    found: dict[Used, None] = {}
    for name in claims:
        claim = storage.claims.get((namespace, name))
        if claim is None:
            continue
        volume = storage.volumes.get(claim.volume) if claim.volume else storage.volume_for(claim)
        if volume is not None:
            driver, handle = volume.driver, volume.handle or volume.name
        else:
            storage_class = storage.classes.get(claim.shape.storage_class)
            driver, handle = storage_class.driver if storage_class is not None else "", f"{namespace}/{name}"
        if driver in storage.limited:
            found[driver, handle] = None
    return list(found)


def slots(used: Iterable[Used]) -> Resources:
    """Amounts of `attachable-volumes-csi-DRIVER`."""
    amounts: dict[str, int] = {}
    for driver, _ in used:
        amounts[ATTACHED + driver] = amounts.get(ATTACHED + driver, 0) + 1
    return tuple(sorted(amounts.items()))


class Attached:
    """By node, who uses which volume. The first of several pods, by name, is charged for it.

    `charged_anew` are pods that are to be charged again, because another one came or left.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._users: dict[tuple[str, Used], set[PodKey]] = {}
        self._of: dict[PodKey, list[tuple[str, Used]]] = {}
        self.charged_anew: list[PodKey] = []

    def charge(self, pod: PodKey, node: str, claims: tuple[str, ...]) -> Resources:
        """What a pod on a node is charged."""
        if not claims or not self._storage.limited:
            if pod in self._of:
                self.leave(pod)
            return ()
        places = [(node, used) for used in used_by(pod[0], claims, self._storage)]
        self._leave(pod, [place for place in self._of.pop(pod, []) if place not in places])
        charged: list[Used] = []
        for place in places:
            users = self._users.setdefault(place, set())
            first = min(users, default=pod)
            users.add(pod)
            if pod <= first:
                charged.append(place[1])
                if pod != first:
                    self.charged_anew.append(first)
        if places:
            self._of[pod] = places
        return slots(charged)

    def leave(self, pod: PodKey) -> None:
        """The pod holds nothing any more."""
        self._leave(pod, self._of.pop(pod, []))

    def _leave(self, pod: PodKey, places: list[tuple[str, Used]]) -> None:
        for place in places:
            users = self._users[place]
            was_first = min(users) == pod
            users.discard(pod)
            if not users:
                del self._users[place]
            elif was_first:
                self.charged_anew.append(min(users))
