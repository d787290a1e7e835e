"""The other objects of a dump or a file, found by name; and who owns whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from berth.dialects.shape import Manifest

ObjectKey = tuple[str, str, str, str]  # (API group, kind, namespace, name): PodGroup exists in four groups
Objects = Mapping[ObjectKey, Manifest]

MOST_OWNERS = 8  # a chain longer than this is a loop or a mistake


class OwnerRef(Struct, frozen=True, gc=False):
    """One of metadata.ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str = ""
    controller: bool = False

    @property
    def group(self) -> str:
        return group_of(self.api_version)


class Unseen(Struct, frozen=True, gc=False):
    """An object that is named, by a pod or by its owner or group, and not at hand. `uid` "" where it is not known."""

    group: str
    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def called(self) -> str:
        """As its absence is told: `Job team-a/train (batch)`."""
        return f"{self.kind} {self.namespace}/{self.name} ({self.group})"


def group_of(api_version: str) -> str:
    """`batch` of `batch/v1`, "" of `v1`."""
    return api_version.rpartition("/")[0]


class Index(dict[ObjectKey, Manifest]):
    """Objects by key, and apart from them the few that are looked for by kind."""

    hypernodes: tuple[Manifest, ...] = ()


def index(objects: Iterable[Manifest]) -> Index:
    """Objects by (API group, kind, namespace, name), "" for the namespace of what has none.

    What is no object is left out.
    """
    found = Index()
    for thing in objects:
        meta = thing.get("metadata")
        if not isinstance(meta, Mapping):
            continue
        key = (
            group_of(str(thing.get("apiVersion") or "")),
            str(thing.get("kind") or ""),
            str(meta.get("namespace") or ""),
            str(meta.get("name") or ""),
        )
        found[key] = thing
    found.hypernodes = tuple(thing for key, thing in found.items() if key[1] == "HyperNode")
    return found


def find(objects: Objects, group: str, kind: str, namespace: str, name: str) -> Manifest | None:
    """The object in that namespace, or one that was written without a namespace."""
    return objects.get((group, kind, namespace, name)) or objects.get((group, kind, "", name))


def owner_refs(raw: Any) -> tuple[OwnerRef, ...]:
    """From metadata.ownerReferences as plain data; what is malformed is left out."""
    if not isinstance(raw, list | tuple):
        return ()
    return tuple(
        OwnerRef(
            str(ref.get("apiVersion") or ""),
            str(ref.get("kind") or ""),
            str(ref.get("name") or ""),
            str(ref.get("uid") or ""),
            ref.get("controller") is True,
        )
        for ref in raw
        if isinstance(ref, Mapping)
    )


def controlling(refs: Sequence[OwnerRef]) -> OwnerRef | None:
    """The controller among the owners; one owner alone counts as it."""
    for ref in refs:
        if ref.controller:
            return ref
    return refs[0] if len(refs) == 1 else None


def chain(refs: Sequence[OwnerRef], namespace: str, objects: Objects) -> tuple[tuple[OwnerRef, Manifest | None], ...]:
    """Controlling owners from the nearest upwards, each with its object where that is at hand."""
    found: list[tuple[OwnerRef, Manifest | None]] = []
    ref = controlling(refs)
    while ref is not None and len(found) < MOST_OWNERS:
        thing = find(objects, ref.group, ref.kind, namespace, ref.name)
        found.append((ref, thing))
        if thing is None:
            break
        meta = thing.get("metadata")
        ref = controlling(owner_refs(meta.get("ownerReferences") if isinstance(meta, Mapping) else None))
    return tuple(found)


def unseen_of(links: Iterable[tuple[OwnerRef, Manifest | None]], namespace: str) -> tuple[Unseen, ...]:
    """Owners of a chain without their object. One of another uid is an earlier owner of that name, not this one."""
    return tuple(
        Unseen(ref.group, ref.kind, namespace, ref.name, ref.uid)
        for ref, thing in links
        if thing is None or (ref.uid and _uid(thing) not in ("", ref.uid))
    )


def _uid(thing: Manifest) -> str:
    meta = thing.get("metadata")
    return str(meta.get("uid") or "") if isinstance(meta, Mapping) else ""
