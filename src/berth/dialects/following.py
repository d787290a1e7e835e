"""Memberships in a cluster that changes: what each was read from, so that a changed object makes few be read anew."""

from __future__ import annotations

from typing import Any

from berth.dialects.members import Membership, PodFacts
from berth.dialects.membership import Memberships, OwnerKey, Signature
from berth.dialects.objects import Index, ObjectKey
from berth.dialects.ownership import Owned
from berth.dialects.shape import Manifest

_HYPERNODES: ObjectKey = ("", "HyperNode", "", "")  # stands for all of them: tiers are read from the whole tree


class Watched(Index):
    """Objects by key that note which of them are asked for, those that are not there too."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[ObjectKey] = set()
        self._tiers: dict[ObjectKey, Manifest] = {}

    def get(self, key: ObjectKey, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    @property
    def hypernodes(self) -> tuple[Manifest, ...]:  # type: ignore[override]
        self.asked.add(_HYPERNODES)
        return tuple(self._tiers.values())

    def put(self, key: ObjectKey, thing: Manifest) -> None:
        self[key] = thing
        if key[1] == "HyperNode":
            self._tiers[key] = thing

    def drop(self, key: ObjectKey) -> None:
        self.pop(key, None)
        self._tiers.pop(key, None)


class Following(Memberships):
    """Memberships that can be told of a change.

    Costs one entry for each object that a signature's reading looked at; pods that stand alone look at few.
    """

    def __init__(self) -> None:
        self.objects = Watched()
        super().__init__(self.objects)
        self._readers: dict[ObjectKey, set[Signature]] = {}
        self._owner_readers: dict[ObjectKey, set[OwnerKey]] = {}
        self._owner_asked: dict[OwnerKey, frozenset[ObjectKey]] = {}

    def put(self, key: ObjectKey, thing: Manifest) -> set[Signature]:
        """Signatures whose membership may differ now that the object is there or has changed."""
        self.objects.put(key, thing)
        return self._forget(key)

    def drop(self, key: ObjectKey) -> set[Signature]:
        self.objects.drop(key)
        return self._forget(key)

    def forget_signature(self, alike: Signature) -> None:
        """No pod has it any more."""
        self._known.pop(alike, None)

    def _forget(self, key: ObjectKey) -> set[Signature]:
        keys = (key, _HYPERNODES) if key[1] == "HyperNode" else (key,)
        stale: set[Signature] = set()
        for one in keys:
            stale |= self._readers.pop(one, set())
            for owner in self._owner_readers.pop(one, ()):
                self._by_owner.pop(owner, None)
                self._owner_asked.pop(owner, None)
        for alike in stale:
            self._known.pop(alike, None)
        return stale

    def _owned(self, pod: PodFacts) -> Owned:
        before, self.objects.asked = self.objects.asked, set()
        known = self._owner_key(pod)
        fresh = known not in self._by_owner
        owned = super()._owned(pod)
        if fresh:
            asked = self._owner_asked[known] = frozenset(self.objects.asked)
            for key in asked:
                self._owner_readers.setdefault(key, set()).add(known)
        self.objects.asked = before | self._owner_asked.get(known, frozenset())
        return owned

    def _read(self, alike: Signature, pod: PodFacts) -> Membership:
        self.objects.asked = set()
        found = super()._read(alike, pod)
        for key in self.objects.asked:
            self._readers.setdefault(key, set()).add(alike)
        return found
