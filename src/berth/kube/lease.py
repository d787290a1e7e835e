"""A Lease (coordination.k8s.io/v1): read, made, renewed. Who may hold it and when is decided elsewhere.

Each call is one attempt, bounded in time, and goes before whatever else waits to be sent: a leader that cannot
renew must know so in time to stop.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct, field

from berth.kube.client import Client
from berth.kube.errors import ApiError

_GROUP = "/apis/coordination.k8s.io/v1"


class LeaseSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """`acquire_time` and `renew_time` are the holder's clock, as text (see `micro_time`)."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Struct, frozen=True, rename="camel"):
    """`metadata` is kept as it came, so that a renewal puts back what others wrote there."""

    metadata: dict[str, Any] = field(default_factory=dict)
    spec: LeaseSpec = field(default_factory=LeaseSpec)
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace") or "")

    @property
    def resource_version(self) -> str:
        return str(self.metadata.get("resourceVersion") or "")


async def read_lease(client: Client, namespace: str, name: str, timeout_s: float = 5.0) -> Lease | None:
    """The Lease as it is, None where there is none. Raises ApiError."""
    try:
        answer = await client.request("GET", _path(namespace, name), timeout_s=timeout_s, most_attempts=1, urgent=True)
    except ApiError as error:
        if error.is_not_found:
            return None
        raise
    return _lease(answer)


async def create_lease(client: Client, namespace: str, name: str, spec: LeaseSpec, timeout_s: float = 5.0) -> Lease:
    """The Lease as made. `is_already_there`: somebody was faster."""
    wanted = Lease({"name": name, "namespace": namespace}, spec)
    return _lease(
        await client.request("POST", _path(namespace), wanted, timeout_s=timeout_s, most_attempts=1, urgent=True)
    )


async def update_lease(client: Client, lease: Lease, spec: LeaseSpec, timeout_s: float = 5.0) -> Lease:
    """The Lease with `spec`, if it is still at the version of `lease`. `is_conflict`: somebody wrote in between."""
    if not lease.resource_version:
        raise ValueError("a Lease is only written over the version that was read")
    wanted = Lease(lease.metadata, spec)
    return _lease(
        await client.request(
            "PUT",
            _path(lease.namespace, lease.name),
            wanted,
            timeout_s=timeout_s,
            most_attempts=1,
            urgent=True,
        )
    )


def micro_time(epoch_s: float) -> str:
    """A moment as meta/v1 MicroTime."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _path(namespace: str, name: str = "") -> str:
    return f"{_GROUP}/namespaces/{namespace}/leases{f'/{name}' if name else ''}"


def _lease(body: bytes) -> Lease:
    try:
        return msgspec.json.decode(body, type=Lease)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(200, "Undecodable", f"the answer is no Lease: {error}", path=_GROUP) from None
