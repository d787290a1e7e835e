"""What the API server serves: groups, versions, resources, and its own version."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from berth.kube.client import Client
from berth.kube.errors import ApiError

# Served since 1.30; the rest of the list is what an older server falls back to.
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


class Resource(Struct, frozen=True):
    """One kind in one version of its group. `resource` is the plural in paths; subresources by name alone."""

    group: str
    version: str
    resource: str
    kind: str
    is_namespaced: bool
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """As manifests write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """Of one object, of all in a namespace, or of all."""
        root = f"/apis/{self.group}" if self.group else "/api"
        inside = f"/namespaces/{namespace}" if namespace and self.is_namespaced else ""
        return f"{root}/{self.version}{inside}/{self.resource}{f'/{name}' if name else ''}"


class ServerVersion(Struct, frozen=True, rename="camel"):
    major: str = ""
    minor: str = ""
    git_version: str = ""

    @property
    def number(self) -> tuple[int, int]:
        """(1, 37); some providers write a minor of `37+`. (0, 0) where it cannot be read."""
        digits = "".join(char for char in self.minor if char.isdigit())
        return (int(self.major), int(digits)) if self.major.isdigit() and digits else (0, 0)


class Served(Struct, frozen=True):
    """What is served, for each (group, resource) the versions in the server's order of preference.

    `unseen` are groups whose server does not answer (an aggregated API that is down): what it would serve is
    unknown, not absent.
    """

    resources: dict[tuple[str, str], tuple[Resource, ...]]
    server: ServerVersion
    unseen: tuple[str, ...] = ()

    def has(self, group: str, resource: str) -> bool:
        return (group, resource) in self.resources

    def is_unknown(self, group: str, resource: str) -> bool:
        return group in self.unseen and not self.has(group, resource)

    def preferred(self, group: str, resource: str, readable: Iterable[str] | None = None) -> Resource | None:
        """The version that the server prefers among those that we can read (any, where `readable` is None)."""
        wanted = None if readable is None else set(readable)
        for each in self.resources.get((group, resource), ()):
            if wanted is None or each.version in wanted:
                return each
        return None

    def version(self, group: str, resource: str, readable: Iterable[str] | None = None) -> str | None:
        """The name of that version."""
        found = self.preferred(group, resource, readable)
        return found.version if found else None


# ---- as it travels


class _Kind(Struct, frozen=True):
    kind: str | None = None


class _Subresource(Struct, frozen=True):
    subresource: str = ""


class _AggregatedResource(Struct, frozen=True, rename="camel"):
    resource: str = ""
    response_kind: _Kind | None = None
    scope: str | None = None
    verbs: tuple[str, ...] | None = None
    subresources: tuple[_Subresource, ...] | None = None


class _AggregatedVersion(Struct, frozen=True):
    version: str = ""
    resources: tuple[_AggregatedResource, ...] | None = None
    freshness: str | None = None


class _Meta(Struct, frozen=True):
    name: str | None = None


class _AggregatedGroup(Struct, frozen=True):
    metadata: _Meta | None = None
    versions: tuple[_AggregatedVersion, ...] | None = None


class _Aggregated(Struct, frozen=True):
    items: tuple[_AggregatedGroup, ...] | None = None


class _GroupVersion(Struct, frozen=True):
    version: str = ""


class _Group(Struct, frozen=True, rename="camel"):
    name: str = ""
    versions: tuple[_GroupVersion, ...] | None = None
    preferred_version: _GroupVersion | None = None


class _GroupList(Struct, frozen=True):
    kind: str | None = None
    groups: tuple[_Group, ...] | None = None
    versions: tuple[str, ...] | None = None


class _OldResource(Struct, frozen=True):
    name: str = ""
    kind: str | None = None
    namespaced: bool = False
    verbs: tuple[str, ...] | None = None


class _OldResources(Struct, frozen=True):
    resources: tuple[_OldResource, ...] | None = None


async def served(client: Client) -> Served:
    """All that is served: three calls where discovery is aggregated, else one more for each group and version.

    Raises ApiError where the server does not say.
    """
    core, named, version = await asyncio.gather(
        _discover(client, "/api"), _discover(client, "/apis"), client.get("/version", ServerVersion)
    )
    resources: dict[tuple[str, str], tuple[Resource, ...]] = {}
    for each in (*core[0], *named[0]):
        key = (each.group, each.resource)
        resources[key] = (*resources.get(key, ()), each)
    return Served(resources, version, tuple(sorted({*core[1], *named[1]})))


async def _discover(client: Client, root: str) -> tuple[list[Resource], list[str]]:
    body = await client.request("GET", root, accept=AGGREGATED)
    try:
        if msgspec.json.decode(body, type=_Kind).kind == "APIGroupDiscoveryList":
            return _aggregated(msgspec.json.decode(body, type=_Aggregated))
        groups = msgspec.json.decode(body, type=_GroupList)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(200, "Undecodable", f"no discovery document: {error}", verb="GET", path=root) from None
    return await _by_group(client, root, groups)


def _aggregated(document: _Aggregated) -> tuple[list[Resource], list[str]]:
    found: list[Resource] = []
    unseen: list[str] = []
    for group in document.items or ():
        name = (group.metadata.name if group.metadata else None) or ""
        for version in group.versions or ():
            if version.freshness == "Stale":
                unseen.append(name)
            for each in version.resources or ():
                found.append(
                    Resource(
                        name,
                        version.version,
                        each.resource,
                        (each.response_kind.kind if each.response_kind else None) or "",
                        each.scope == "Namespaced",
                        each.verbs or (),
                        tuple(sub.subresource for sub in each.subresources or ()),
                    )
                )
    return found, unseen


async def _by_group(client: Client, root: str, listed: _GroupList) -> tuple[list[Resource], list[str]]:
    wanted: list[tuple[str, str]] = [("", version) for version in listed.versions or ()]
    for group in listed.groups or ():
        first = group.preferred_version.version if group.preferred_version else ""
        # The preferred version first, the others as the server lists them.
        versions = sorted((each.version for each in group.versions or ()), key=lambda version: version != first)
        wanted += [(group.name, version) for version in versions]
    answers = await asyncio.gather(
        *(_of_version(client, root, group, version) for group, version in wanted), return_exceptions=True
    )
    found: list[Resource] = []
    unseen: list[str] = []
    for (group_name, _), answer in zip(wanted, answers, strict=True):
        if isinstance(answer, ApiError):
            unseen.append(group_name)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found += answer
    return found, unseen


async def _of_version(client: Client, root: str, group: str, version: str) -> list[Resource]:
    path = f"{root}/{group}/{version}" if group else f"{root}/{version}"
    listed = (await client.get(path, _OldResources)).resources or ()
    below: dict[str, list[str]] = {}
    for each in listed:
        name, slash, subresource = each.name.partition("/")
        if slash:
            below.setdefault(name, []).append(subresource)
    return [
        Resource(
            group,
            version,
            each.name,
            each.kind or "",
            each.namespaced,
            each.verbs or (),
            tuple(below.get(each.name, ())),
        )
        for each in listed
        if "/" not in each.name
    ]
