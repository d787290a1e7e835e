"""Memberships in a cluster that changes: what each was read from, so that a changed object makes few be read anew."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

from berth.dialects.members import Membership, PodFacts
from berth.dialects.membership import Memberships, OwnerKey, Signature
from berth.dialects.objects import Index, ObjectKey
from berth.dialects.ownership import Owned
from berth.dialects.shape import Manifest

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=Hashable)

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
        self._read_by: dict[Signature, frozenset[ObjectKey]] = {}
        self._owner_readers: dict[ObjectKey, set[OwnerKey]] = {}
        self._owner_asked: dict[OwnerKey, frozenset[ObjectKey]] = {}
        self._owner_of: dict[Signature, OwnerKey] = {}
        self._owner_users: dict[OwnerKey, set[Signature]] = {}

    def put(self, key: ObjectKey, thing: Manifest) -> set[Signature]:
        """Signatures whose membership may differ now that the object is there or has changed."""
        self.objects.put(key, thing)
        return self._forget(key)

    def drop(self, key: ObjectKey) -> set[Signature]:
        self.objects.drop(key)
        return self._forget(key)

    def forget_signature(self, alike: Signature) -> None:
        """No pod has it any more: nothing is remembered on its account."""
        self._known.pop(alike, None)
        _unlist(alike, self._read_by.pop(alike, ()), self._readers)
        owner = self._owner_of.pop(alike, None)
        if owner is not None:
            _unlist(alike, (owner,), self._owner_users)
            if owner not in self._owner_users:
                self._forget_owner(owner)

    @property
    def remembered(self) -> int:
        """How much is remembered beside the objects themselves."""
        return sum(map(len, (
            self._known, self._by_owner, self._readers, self._read_by, self._owner_readers, self._owner_asked,
            self._owner_of, self._owner_users,
        )))  # fmt: skip

    def _forget(self, key: ObjectKey) -> set[Signature]:
        keys = (key, _HYPERNODES) if key[1] == "HyperNode" else (key,)
        stale: set[Signature] = set()
        for one in keys:
            stale |= self._readers.get(one, set())
            for owner in tuple(self._owner_readers.get(one, ())):
                self._forget_owner(owner)
        for alike in stale:
            self.forget_signature(alike)
        return stale

    def _forget_owner(self, owner: OwnerKey) -> None:
        self._by_owner.pop(owner, None)
        _unlist(owner, self._owner_asked.pop(owner, ()), self._owner_readers)

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
        asked = self._read_by[alike] = frozenset(self.objects.asked)
        for key in asked:
            self._readers.setdefault(key, set()).add(alike)
        owner = self._owner_of[alike] = self._owner_key(pod)
        self._owner_users.setdefault(owner, set()).add(alike)
        return found


def _unlist(one: T, keys: Iterable[K], by_key: dict[K, set[T]]) -> None:
    """Take one out of the sets of these keys; empty sets go."""
    for key in keys:
        ones = by_key.get(key)
        if ones is not None:
            ones.discard(one)
            if not ones:
                del by_key[key]
