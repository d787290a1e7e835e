"""Names of the live cluster, for whoever presses Tab: few, quick, and never an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from berth.app.cli.options import Where

if TYPE_CHECKING:
    from berth.kube.access import Access
    from berth.kube.client import Client

LONGEST_S = 2.0
MOST = 200


def workloads(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Workloads that wait, by what the scheduler has written, then pods; of the namespace that is meant."""

    async def names(client: Client, access: Access) -> list[CompletionItem]:
        namespace = context.params.get("namespace") or access.namespace
        inside = "" if context.params.get("everywhere") else f"/namespaces/{namespace}"
        waiting, pods = await asyncio.gather(
            _items(client, f"/apis/berth.dev/v1alpha1{inside}/verdicts"),
            _items(client, f"/api/v1{inside}/pods"),
        )
        found = {str((v.get("workload") or {}).get("name")): str(v.get("reason") or "") for v in waiting}
        for pod in pods:
            found.setdefault(str((pod.get("metadata") or {}).get("name")), "pod")
        return [CompletionItem(name, help=said) for name, said in found.items()]

    return _quickly(context, names, incomplete)


def queues(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of queues."""

    async def names(client: Client, access: Access) -> list[CompletionItem]:
        found = await _items(client, "/apis/berth.dev/v1alpha1/gpuqueues")
        return [CompletionItem(str((q.get("metadata") or {}).get("name"))) for q in found]

    return _quickly(context, names, incomplete)


async def _items(client: Client, path: str) -> list[dict[str, Any]]:
    """The first objects of a list; none where they may not be seen."""
    from berth.kube.errors import ApiError

    try:
        listed = await client.get(path, params={"limit": MOST})
    except ApiError:
        return []
    items = listed.get("items")
    return items if isinstance(items, list) else []


def _quickly(
    context: click.Context, names: Callable[[Client, Access], Awaitable[list[CompletionItem]]], incomplete: str
) -> list[CompletionItem]:
    """Nothing where anything goes wrong: a completion says no errors."""
    if context.params.get("dump"):
        return []
    given = context.params.get
    where = Where(None, given("kubeconfig"), given("context"), given("acting_as"))

    async def found() -> list[CompletionItem]:
        from berth.app.cli.live import access_of
        from berth.kube.client import Client

        access = access_of(where)
        async with asyncio.timeout(LONGEST_S), Client(access, user_agent="berth-cli") as client:
            return await names(client, access)

    try:
        return [item for item in asyncio.run(found()) if item.value.startswith(incomplete)]
    except Exception:
        return []
