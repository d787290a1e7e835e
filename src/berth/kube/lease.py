"""A Lease (coordination.k8s.io/v1): read, made, renewed. Who may hold it and when is decided elsewhere.

Each call is one attempt, bounded in time, and goes before whatever else waits to be sent: a leader that cannot
renew must know so in time to stop.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from berth.kube.client import Client
from berth.kube.errors import ApiError

_GROUP = "/apis/coordination.k8s.io/v1"
LEASES = f"{_GROUP}/leases"

# How Leases of a Berth are found among those of nodes and of others, and which schedulers' names it serves.
OURS = {"app.kubernetes.io/name": "berth"}
SERVES = "berth.dev/serves"


class LeaseSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """`acquire_time` and `renew_time` are the holder's clock, as text (see `micro_time`)."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class LeaseMeta(Struct, frozen=True, rename="camel", omit_defaults=True):
    """All that a writer may have put there, so that a renewal puts it back."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[dict[str, Any]] | None = None
    finalizers: list[str] | None = None


class Lease(Struct, frozen=True, rename="camel"):
    metadata: LeaseMeta | None = None
    spec: LeaseSpec | None = None
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"


class Leases(Struct, frozen=True):
    items: tuple[Lease, ...] = ()


def marked(meta: LeaseMeta | None, serves: Collection[str], leaves: Mapping[str, str] | None = None) -> LeaseMeta:
    """The same metadata, marked as that of a Berth that serves these names; without names as it is. `leaves` are
    annotations for the next holder."""
    meta = meta or LeaseMeta()
    if not serves:
        return meta
    annotations = {**(meta.annotations or {}), **(leaves or {}), SERVES: ",".join(sorted(serves))}
    return msgspec.structs.replace(meta, labels={**(meta.labels or {}), **OURS}, annotations=annotations)


def serves(lease: Lease) -> frozenset[str]:
    """Names of schedulers that the holder serves; none where it is no Berth's."""
    written = ((lease.metadata.annotations if lease.metadata else None) or {}).get(SERVES, "")
    return frozenset(name for name in written.split(",") if name)


def address_of(lease: Lease) -> tuple[str, str]:
    """(namespace, name)."""
    meta = lease.metadata or LeaseMeta()
    return meta.namespace or "", meta.name or ""


async def leases_of_berths(client: Client) -> tuple[Lease, ...]:
    """The Leases of every Berth of the cluster. Raises ApiError; `is_forbidden` where they may not be listed."""
    # From the API server's memory: a few seconds' age does not matter, and nodes have thousands of Leases.
    query = {"labelSelector": ",".join(f"{key}={value}" for key, value in OURS.items()), "resourceVersion": "0"}
    found = await client.get(LEASES, Leases, params=query)
    return tuple(lease for lease in found.items if serves(lease))


async def read_lease(client: Client, namespace: str, name: str, timeout_s: float = 5.0) -> Lease:
    """The Lease as it is. Raises ApiError; `is_not_found` where there is none."""
    return await _ask(client, "GET", _path(namespace, name), None, timeout_s)


async def create_lease(
    client: Client, namespace: str, name: str, spec: LeaseSpec, serves: Collection[str] = (), timeout_s: float = 5.0
) -> Lease:
    """The Lease as made. Raises ApiError; `is_already_there` where somebody was faster."""
    wanted = Lease(marked(LeaseMeta(name=name, namespace=namespace), serves), spec)
    return await _ask(client, "POST", _path(namespace), wanted, timeout_s)


async def write_lease(client: Client, lease: Lease, timeout_s: float = 5.0) -> Lease:
    """The Lease as written, if it was still at the version in `lease.metadata`.

    Raises ApiError; `is_conflict` where somebody wrote in between.
    """
    meta = lease.metadata
    if meta is None or not meta.resource_version:
        raise ValueError("a Lease is only written over the version that was read")
    return await _ask(client, "PUT", _path(meta.namespace or "", meta.name or ""), lease, timeout_s)


def micro_time(epoch_s: float) -> str:
    """A moment as meta/v1 MicroTime."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _path(namespace: str, name: str = "") -> str:
    return f"{_GROUP}/namespaces/{namespace}/leases{f'/{name}' if name else ''}"


async def _ask(client: Client, verb: str, path: str, lease: Lease | None, timeout_s: float) -> Lease:
    body = await client.request(verb, path, lease, timeout_s=timeout_s, most_attempts=1, urgent=True)
    try:
        return msgspec.json.decode(body, type=Lease)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(200, "Undecodable", f"the answer is no Lease: {error}", verb=verb, path=path) from None
