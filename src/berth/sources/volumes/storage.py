"""All that is known of a cluster's storage, and what was decided of it and is not to be seen there yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from berth.kube import wire_volumes as wire
from berth.kube.wire import NO_META
from berth.model.volumes import NO_LIMIT, Claim, ClaimKey, Volume
from berth.sources.volumes.mounts import Mounts
from berth.sources.volumes.reading import Capacity, StorageClass, capacity_of, claim_of, class_of, volume_of

__all__ = ["Capacity", "Storage", "StorageClass"]

Refused = tuple[ClaimKey, str]  # a claim, and a node for which it got no volume


class Storage:
    """Claims, volumes, classes and what drivers say, by name. Each `put` and `drop` says whether it decides anything.

    `selected`: claims whose volume is to be made for a node. `selecting`: those that are being told which, with it.
    `chosen`: volumes that were chosen for a claim, until the cluster says whose they are.
    `refused`: nodes that a claim is not tried on for a while.
    `mounts`: which pods use which claims.
    `knows_classes`, `knows_volumes`: none that is not here is there.
    """

    def __init__(self) -> None:
        self.claims: dict[ClaimKey, Claim] = {}
        self.volumes: dict[str, Volume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.chosen: dict[str, ClaimKey] = {}
        self.selected: set[ClaimKey] = set()
        self.selecting: dict[ClaimKey, str] = {}
        self.refused: set[Refused] = set()
        self.mounts = Mounts()
        self.knows_classes = False
        self.knows_volumes = False
        self.versions: dict[str, int] = {}  # by what a node's amounts are worked out from: how often it has changed
        self._limits: dict[str, Mapping[str, int | None]] = {}  # by node and driver; None: as many as one likes
        self._capacities: dict[tuple[str, str], Capacity] = {}
        self._tracks_capacity: set[str] = set()
        self._needs_driver: set[str] = set()
        self._of_claim: dict[ClaimKey, dict[str, None]] = {}  # volumes that name a claim
        self._of_class: dict[str, dict[str, None]] = {}
        self._naming: dict[str, dict[ClaimKey, None]] = {}  # by volume, the claims that name it: mostly one
        self._chosen_for: dict[ClaimKey, str] = {}
        self._limited: frozenset[str] = frozenset()

    @property
    def knows_limits(self) -> bool:
        return bool(self._limits)

    # ---- claims

    def put_claim(self, claim: wire.PersistentVolumeClaim) -> Claim | None:
        """The claim, where it is not as it was."""
        made = claim_of(claim)
        before = self.claims.get(made.key)
        if before == made:
            return None
        if before is not None and before.volume != made.volume:
            self._names_no_more(before)
        if made.volume:
            self._naming.setdefault(made.volume, {})[made.key] = None
        self.claims[made.key] = made
        (self.selected.add if made.selected_node and not made.volume else self.selected.discard)(made.key)
        return made

    def drop_claim(self, key: ClaimKey) -> bool:
        before = self.claims.pop(key, None)
        self.selected.discard(key)
        self.selecting.pop(key, None)
        if before is not None:
            self._names_no_more(before)
        self.refused = {one for one in self.refused if one[0] != key}
        return before is not None

    def _names_no_more(self, claim: Claim) -> None:
        naming = self._naming.get(claim.volume, {})
        naming.pop(claim.key, None)
        if not naming:
            self._naming.pop(claim.volume, None)

    # ---- volumes

    def put_volume(self, volume: wire.PersistentVolume) -> Volume | None:
        """The volume, where it is not as it was."""
        made = volume_of(volume)
        before = self.volumes.get(made.name)
        if before is not None:
            if _but_for_version(before) == _but_for_version(made):
                self.volumes[made.name] = made
                return None
            self._forget(before)
        self.volumes[made.name] = made
        self._of_class.setdefault(made.shape.storage_class, {})[made.name] = None
        if made.claim is not None:
            self._of_claim.setdefault(made.claim, {})[made.name] = None
            self._not_chosen(made.name)  # whoever has it now, the cluster says so
        self._changed(f"volumes {made.shape.storage_class}")
        return made

    def drop_volume(self, name: str) -> Volume | None:
        before = self.volumes.pop(name, None)
        if before is not None:
            self._forget(before)
            self._not_chosen(name)
        return before

    def _forget(self, volume: Volume) -> None:
        self._changed(f"volumes {volume.shape.storage_class}")
        self._of_class.get(volume.shape.storage_class, {}).pop(volume.name, None)
        if volume.claim is not None:
            names = self._of_claim.get(volume.claim, {})
            names.pop(volume.name, None)
            if not names:
                self._of_claim.pop(volume.claim, None)

    def claims_of(self, volume: Volume) -> Iterator[ClaimKey]:
        """Claims about which this volume says something: its own, and those that name it."""
        if volume.claim is not None:
            yield volume.claim
        yield from (claim for claim in self._naming.get(volume.name, ()) if claim != volume.claim)

    def unclaimed(self, storage_class: str) -> list[Volume]:
        """Volumes of a class that are nobody's yet, by size and name; those chosen for somebody are among them."""
        found = [
            volume
            for name in self._of_class.get(storage_class, ())
            if (volume := self.volumes[name]).claim is None and volume.is_available and not volume.is_ending
        ]
        return sorted(found, key=lambda v: (v.shape.bytes, v.name))

    def volume_for(self, claim: Claim) -> Volume | None:
        """The volume that an unbound claim is to have, because it says so or because it was chosen."""
        named = (self.volumes[name] for name in self._of_claim.get(claim.key, ()))
        if own := [volume for volume in named if volume.is_for(claim) and not volume.is_ending]:
            return min(own, key=lambda v: (v.shape.bytes, v.name))
        return self.volumes.get(self._chosen_for.get(claim.key, ""))

    def node_for(self, claim: Claim) -> str:
        """The node that the volume of an unbound claim is to be made for; "" where none was selected."""
        return claim.selected_node or self.selecting.get(claim.key, "")

    def choose(self, volume: str, claim: ClaimKey) -> None:
        self.chosen[volume] = claim
        self._chosen_for[claim] = volume
        self._changed("chosen")

    def _not_chosen(self, volume: str) -> None:
        if (claim := self.chosen.pop(volume, None)) is not None:
            self._chosen_for.pop(claim, None)
            self._changed("chosen")

    def unchoose(self, claims: Iterable[ClaimKey]) -> None:
        """These claims are to have other volumes than those that were chosen."""
        for claim in claims:
            if (volume := self._chosen_for.get(claim)) is not None:
                self._not_chosen(volume)

    # ---- classes, and what drivers say

    def put_class(self, storage_class: wire.StorageClass) -> bool:
        made = class_of(storage_class)
        before = self.classes.get(made.name)
        self.classes[made.name] = made
        return before != made

    def drop_class(self, name: str) -> bool:
        return self.classes.pop(name, None) is not None

    @property
    def default_class(self) -> str:
        """Of claims that name none; "" where there is none, or several."""
        named = [c.name for c in self.classes.values() if c.is_default]
        return named[0] if len(named) == 1 else ""

    def put_limits(self, node: wire.CsiNode) -> bool:
        name = (node.metadata or NO_META).name or ""
        drivers = (node.spec.drivers if node.spec else None) or ()
        made = {d.name or "": d.allocatable.count if d.allocatable else None for d in drivers}
        if self._limits.get(name) == made:
            return False
        self._limits[name] = made
        self._see_limits()
        return True

    def drop_limits(self, node: str) -> bool:
        if self._limits.pop(node, None) is None:
            return False
        self._see_limits()
        return True

    def put_driver(self, driver: wire.CsiDriver) -> bool:
        name, spec = (driver.metadata or NO_META).name or "", driver.spec or wire.CsiDriverSpec()
        before = name in self._tracks_capacity, name in self._needs_driver
        for known, says in ((self._tracks_capacity, spec.storage_capacity),
                            (self._needs_driver, spec.prevent_pod_scheduling_if_missing)):  # fmt: skip
            (known.add if says else known.discard)(name)
        self._see_limits()
        return before != (name in self._tracks_capacity, name in self._needs_driver)

    def drop_driver(self, name: str) -> bool:
        was = name in self._tracks_capacity or name in self._needs_driver
        self._tracks_capacity.discard(name)
        self._needs_driver.discard(name)
        self._see_limits()
        return was

    def tracks_capacity(self, driver: str) -> bool:
        return driver in self._tracks_capacity

    @property
    def limited(self) -> frozenset[str]:
        """Drivers of which not every node takes as many volumes as one likes."""
        return self._limited

    def limit(self, node: str, driver: str) -> int:
        """How many volumes of a driver can be attached to a node."""
        drivers = self._limits.get(node, {})
        if driver not in drivers:
            return 0 if driver in self._needs_driver else NO_LIMIT
        count = drivers[driver]
        return NO_LIMIT if count is None else max(0, count)

    def _see_limits(self) -> None:
        # A set of drivers is the same object as long as it is the same: others compare by identity.
        counts = frozenset(d for ds in self._limits.values() for d, count in ds.items() if count is not None)
        found = counts | self._needs_driver
        if found != self._limited:
            self._limited = found
        self._changed("limits")

    def put_capacity(self, capacity: wire.CsiStorageCapacity) -> bool:
        meta = capacity.metadata or NO_META
        key, made = (meta.namespace or "default", meta.name or ""), capacity_of(capacity)
        if self._capacities.get(key) == made:
            return False
        if made is None:
            del self._capacities[key]
        else:
            self._capacities[key] = made
        self._changed("capacities")
        return True

    def drop_capacity(self, key: tuple[str, str]) -> bool:
        if self._capacities.pop(key, None) is None:
            return False
        self._changed("capacities")
        return True

    def capacities(self, storage_class: str, size: int) -> Iterator[Capacity]:
        """Where a volume of so many bytes can be made."""
        return (c for c in self._capacities.values() if c.storage_class == storage_class and c.bytes >= size)

    # ---- refusals

    def refuse(self, claim: ClaimKey, node: str) -> None:
        self.refused.add((claim, node))
        self._changed("refused")

    def forgive(self, refused: Iterable[Refused]) -> None:
        self.refused.difference_update(refused)
        self._changed("refused")

    def _changed(self, what: str) -> None:
        self.versions[what] = self.versions.get(what, 0) + 1


def _but_for_version(volume: Volume) -> Volume:
    return Volume(
        volume.name, volume.uid, "", volume.shape, volume.labels, volume.reach, volume.claim, volume.claim_uid,
        volume.is_available, volume.is_ending, volume.driver, volume.handle,
    )  # fmt: skip
