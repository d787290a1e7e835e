"""A live cluster read once, as a dump is read, with the rights of whoever asks.

All kinds are listed at the same time, page by page. What is not served is no error; what may not be seen is told
as the right that is missing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from berth.kube.client import Client
from berth.kube.discover import Resource, Served
from berth.kube.errors import ApiError
from berth.kube.listing import pages
from berth.kube.wire import PriorityClass
from berth.kube.wire_budgets import PodDisruptionBudget
from berth.kube.wire_devices import ResourceClaim, ResourceSlice
from berth.sources.dump import Found
from berth.sources.inventory import Inventory
from berth.sources.live.kinds import FOLLOWED, Kind

# Read for people beside what the scheduler follows.
_BESIDE = (
    Kind("policy", "poddisruptionbudgets", "PodDisruptionBudget", PodDisruptionBudget),
    Kind("resource.k8s.io", "resourceslices", "ResourceSlice", ResourceSlice),
    Kind("resource.k8s.io", "resourceclaims", "ResourceClaim", ResourceClaim),
)
KINDS = (*FOLLOWED, *(k for k in _BESIDE if (k.group, k.resource) not in {(f.group, f.resource) for f in FOLLOWED}))
NODES = next(k for k in KINDS if k.kind == "Node")
PODS = next(k for k in KINDS if k.kind == "Pod")
PRIORITIES = next(k for k in KINDS if k.type is PriorityClass)

_WHO = re.compile(r'\bUser "([^"]+)"')
MOST_TROUBLES = 3  # objects that cannot be decoded, told one by one


@dataclass(frozen=True)
class Missing:
    """A kind that may not be listed in a namespace ("" is the whole cluster); `who` asked, "" where nobody says."""

    kind: Kind
    namespace: str = ""
    who: str = ""

    @property
    def sentence(self) -> str:
        return lacking((self,))

    @property
    def check(self) -> str:
        """The command with which kubectl says the same."""
        return f"kubectl auth can-i list {self.kind.called} {f'-n {self.namespace}' if self.namespace else '-A'}"


def lacking(missing: Sequence[Missing]) -> str:
    """`cannot list nodes and pods in the whole cluster: needs get, list on nodes, pods; asked as alice`."""
    places: dict[str, dict[str, None]] = {}
    for one in missing:
        places.setdefault(one.namespace, {})[one.kind.called] = None
    seen = ", nor ".join(
        f"{_listed_in_words(list(kinds))} in {f'namespace {place}' if place else 'the whole cluster'}"
        for place, kinds in places.items()
    )
    needed = ", ".join(dict.fromkeys(one.kind.called for one in missing))
    asked = f"; asked as {missing[0].who}" if missing[0].who else ""
    return f"cannot list {seen}: needs get, list on {needed}{asked}"


def _listed_in_words(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def missing(kind: Kind, namespace: str, refused: ApiError) -> Missing:
    """The right whose lack the API server has told of; it says in whose name was asked."""
    said = _WHO.search(refused.message)
    return Missing(kind, namespace, said[1] if said else "")


@dataclass
class Reading:
    """What was seen: an inventory to make a snapshot of, and what could not be seen."""

    inventory: Inventory
    namespace: str = ""
    missing: list[Missing] = field(default_factory=list)
    absent: list[Kind] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def lacks(self, *kinds: Kind) -> list[Missing]:
        """Those of the kinds that may not be seen."""
        return [one for one in self.missing if one.kind in kinds]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is doubtful because something could not be seen, a sentence each."""
        told = [f"{lacking(self.missing)}; what they say did not count"] if self.missing else []
        told += self.troubles[:MOST_TROUBLES]
        if len(self.troubles) > MOST_TROUBLES:
            told.append(f"{len(self.troubles) - MOST_TROUBLES:,} more objects that cannot be read were left out")
        return tuple(told)


async def read(client: Client, served: Served, namespace: str = "", kinds: Sequence[Kind] = KINDS) -> Reading:
    """Everything of these kinds, in a namespace or ("") in the whole cluster. Kinds without a namespace are read whole.

    Raises ApiError for every refusal but a missing right.
    """
    found: dict[Kind, list[Any]] = {}
    reading = Reading(Inventory(), namespace)

    async def one(kind: Kind) -> None:
        resource = served.preferred(kind.group, kind.resource)
        if resource is None:
            reading.absent.append(kind)
            return
        try:
            found[kind] = await _listed(client, resource, kind, namespace, reading.troubles)
        except ApiError as error:
            if error.is_not_found:
                reading.absent.append(kind)
            elif error.is_forbidden:
                reading.missing.append(missing(kind, namespace if resource.is_namespaced else "", error))
            else:
                raise

    async with _Together() as tasks:
        for kind in kinds:
            tasks.start(one(kind))
    refused = {m.kind for m in reading.missing}
    reading.missing.sort(key=lambda m: kinds.index(m.kind))
    called = "the part of the cluster that could be seen" if refused or namespace else "the cluster"
    reading.inventory = inventory = Inventory(called, frozenset(k.kind for k in kinds if k not in refused))
    for kind in kinds:  # in the order of kinds, whichever was there first
        resource = served.preferred(kind.group, kind.resource)
        for number, item in enumerate(found.pop(kind, ())):
            assert resource is not None
            inventory.add(Found(resource.api_version, kind.kind, item, kind.called, number + 1))
    return reading


async def _listed(
    client: Client, resource: Resource, kind: Kind, namespace: str, troubles: list[str]
) -> list[Any]:
    items: list[Any] = []
    unreadable: list[str] = []
    async for page in pages(client, resource.path(namespace), kind.type or dict, is_lenient=True):
        if page.is_first:
            items.clear()
            unreadable.clear()
        items.extend(page.items if kind.type else (_whole(item, resource, kind) for item in page.items))
        unreadable += [
            f"an object of {kind.called} cannot be read and was left out: {broken.problem}"
            for broken in page.undecodable
        ]
    troubles += unreadable
    return items


def _whole(item: dict[str, Any], resource: Resource, kind: Kind) -> dict[str, Any]:
    """Items of a list do not say what they are."""
    meta = item.get("metadata")
    if isinstance(meta, dict):
        meta.pop("managedFields", None)
    return {**item, "apiVersion": resource.api_version, "kind": kind.kind}


class _Together:
    """Tasks that end together; the first error is raised as it is, not in a group."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> _Together:
        return self

    def start(self, work: Any) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def __aexit__(self, *_: object) -> None:
        try:
            await asyncio.gather(*self._tasks)
        except BaseException:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            raise

