"""What a reflector tells, and the little that it keeps of each object in order to tell it."""

from __future__ import annotations

import sys
from collections.abc import Set
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

T = TypeVar("T")
Key = tuple[str, str]


class Change(Struct, Generic[T], frozen=True, gc=False):
    """One object is there as `object` (`put`), or no longer there (`gone`). `key` is (namespace, name)."""

    kind: Literal["put", "gone"]
    key: Key
    object: T | None = None


class IdentityMeta(Struct, frozen=True, gc=False, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    annotations: dict[str, str | None] | None = None


class Identity(Struct, frozen=True, gc=False):
    """What every object has, bookmarks included."""

    metadata: IdentityMeta | None = None


class Trouble(Struct, frozen=True):
    """An object that could not be decoded and was skipped. The state of `key` before it, if any, still stands."""

    path: str
    key: Key | None
    problem: str


class Known(Generic[T]):
    """uid and resourceVersion of every object that the sink was told of: enough to see what is new, changed, gone."""

    def __init__(self) -> None:
        self._versions: dict[Key, tuple[str, str]] = {}

    def __len__(self) -> int:
        return len(self._versions)

    def put(self, key: Key, identity: Any, item: T, changes: list[Change[T]]) -> None:
        """Add what is to be told of an object that is there."""
        now = (identity.uid or "", identity.resource_version or "")
        before = self._versions.get(key)
        if before == now and now[1]:
            return
        if before is not None and before[0] != now[0]:
            changes.append(Change("gone", key))
        self._versions[key] = now
        changes.append(Change("put", key, item))

    def begin_with(self, other: Known[Any]) -> None:
        """Know of the objects of another, not what they are like: each is told once it is seen, or seen to be gone."""
        self._versions = {key: (uid, "") for key, (uid, _) in other._versions.items()}

    def drop(self, key: Key, changes: list[Change[T]]) -> None:
        """Add what is to be told of an object that is no longer there."""
        if self._versions.pop(key, None) is not None:
            changes.append(Change("gone", key))

    def all_but(self, keys: Set[Key]) -> list[Key]:
        return [key for key in self._versions if key not in keys]


def identity_of(item: Any) -> Any:
    """The metadata of an object, as something with name, namespace, uid and resource_version; None without a name."""
    if isinstance(item, dict):
        meta = item.get("metadata")
        if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
            return None
        return IdentityMeta(meta["name"], meta.get("namespace"), meta.get("uid"), meta.get("resourceVersion"))
    meta = item.metadata
    return meta if meta is not None and meta.name else None


def key_of(identity: Any) -> Key:
    # Thousands of pods share a namespace: one string for all of them.
    return sys.intern(identity.namespace or ""), identity.name
