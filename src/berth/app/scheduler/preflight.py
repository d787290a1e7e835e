"""What a cluster answers when it is asked whether it is ready for Berth; preflight_checks.py judges it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from berth.app.scheduler.rights import Right, rights
from berth.app.scheduler.settings import Configuration
from berth.app.scheduler.webhooks import Webhook, webhooks_of
from berth.kube import wire, wire_queues
from berth.kube.client import Client
from berth.kube.discover import Served
from berth.kube.errors import ApiError
from berth.kube.lease import Lease
from berth.kube.listing import pages
from berth.kube.review import Action, User, may, may_we, who_am_i
from berth.model.gpus import GpuMapping
from berth.model.topology import Level

T = TypeVar("T")


@dataclass
class Found:
    """What the cluster answered. A list is None where it may not be seen, with the reason in `refused`.

    `account` is whose rights were looked at (namespace, name); None: those of whoever asked. `has_account` is False
    where there is no such ServiceAccount; nothing was asked about its rights then.
    """

    configuration: Configuration
    who: str
    served: Served
    granted: Mapping[Right, bool]
    nodes: list[wire.Node] | None = None
    priorities: list[wire.PriorityClass] | None = None
    webhooks: list[Webhook] | None = None
    leases: list[Lease] | None = None
    topologies: list[tuple[str, wire_queues.Topology]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    mapping: GpuMapping | None = None
    levels: tuple[Level, ...] = ()
    now_s: float = 0.0
    account: tuple[str, str] | None = None
    has_account: bool = True
    is_shadow: bool = False


# ---- asking


async def gather(
    client: Client,
    served: Served,
    configuration: Configuration,
    *,
    now_s: float,
    namespace: str = "",
    service_account: tuple[str, str] | None = None,
    shadow: bool = False,
    mapping: GpuMapping | None = None,
    levels: tuple[Level, ...] = (),
) -> Found:
    """All facts. `service_account` (namespace, name) is whose rights are looked at; None: those of whoever asks."""
    user = None
    if service_account is not None:
        inside, name = service_account
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{inside}", "system:authenticated")
        user = User(f"system:serviceaccount:{inside}:{name}", groups=groups)
    has_account = service_account is None or await _is_account(client, *service_account)
    needed = [r for r in rights(configuration, shadow, namespace) if has_account and _is_there(r, served)]
    granted = await asyncio.gather(*(_granted(client, user, right) for right in needed))
    who = user.username if user is not None else (await who_am_i(client)).username
    found = Found(
        configuration, who or "?", served, dict(zip(needed, granted, strict=True)), mapping=mapping, levels=levels,
        now_s=now_s, account=service_account, has_account=has_account, is_shadow=shadow,
    )  # fmt: skip

    async def listed(name: str, path: str, type: type[T]) -> list[T] | None:
        try:
            return [item async for page in pages(client, path, type, is_lenient=True) for item in page.items]
        except ApiError as error:
            if not (error.is_forbidden or error.is_not_found):
                raise
            found.refused[name] = error.message
            return None

    hooks = "/apis/admissionregistration.k8s.io/v1"
    found.nodes, found.priorities, mutating, validating, found.leases = await asyncio.gather(
        listed("nodes", "/api/v1/nodes", wire.Node),
        listed("priorityclasses", "/apis/scheduling.k8s.io/v1/priorityclasses", wire.PriorityClass),
        listed("webhooks", f"{hooks}/mutatingwebhookconfigurations", dict),
        listed("webhooks", f"{hooks}/validatingwebhookconfigurations", dict),
        listed("leases", "/apis/coordination.k8s.io/v1/leases", Lease),
    )
    if mutating is not None and validating is not None:
        found.webhooks = [*webhooks_of(mutating, True), *webhooks_of(validating, False)]
    for group in ("berth.dev", "kueue.x-k8s.io", "kai.scheduler"):
        resource = "gputopologies" if group == "berth.dev" else "topologies"
        there = served.preferred(group, resource)
        if there is not None:
            for thing in await listed(resource, there.path(), wire_queues.Topology) or ():
                found.topologies.append((group, thing))
    return found


async def _is_account(client: Client, namespace: str, name: str) -> bool:
    """Whether there is such a ServiceAccount; True where that may not be seen."""
    try:
        await client.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}")
    except ApiError as error:
        if not (error.is_forbidden or error.is_not_found):
            raise
        return not error.is_not_found
    return True


def _is_there(right: Right, served: Served) -> bool:
    return served.has(right.group, right.resource)


async def _granted(client: Client, user: User | None, right: Right) -> bool:
    action = Action(right.verb, right.resource, right.group, right.namespace, right.name, right.subresource)
    ruling = await (may_we(client, action) if user is None else may(client, user, action))
    return ruling.allowed
