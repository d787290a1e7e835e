"""The live cluster that kubectl would ask: a connection for the length of one command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from berth.app.cli.options import Where

if TYPE_CHECKING:
    from berth.kube.access import Access
    from berth.kube.client import Client
    from berth.kube.discover import Served

T = TypeVar("T")

FIRST_ANSWER_S = 10.0  # a server that is there says its version sooner
FIRST_ATTEMPTS = 2


@dataclass(frozen=True)
class Connection:
    """An open client, whom it asks as what, and what is served there."""

    client: Client
    access: Access
    served: Served


def access_of(where: Where) -> Access:
    """Whom to ask, as whom. Raises BadInput with exit code 3."""
    from msgspec.structs import replace

    from berth.kube.access import Impersonate
    from berth.kube.find_access import load_access

    access = load_access(where.kubeconfig, where.context)
    return replace(access, impersonate=Impersonate(where.acting_as)) if where.acting_as else access


def ask(where: Where, work: Callable[[Connection], Awaitable[T]]) -> T:
    """What `work` finds out. Raises BadInput, exit code 3, where the cluster does not answer or refuses."""
    from berth.app.cli.refusals import as_input
    from berth.kube.client import Client
    from berth.kube.discover import served
    from berth.kube.errors import ApiError

    access = access_of(where)

    async def connected() -> T:
        async with Client(access, user_agent="berth-cli") as client:
            # Whoever is not there is not asked again and again.
            await client.request("GET", "/version", timeout_s=FIRST_ANSWER_S, most_attempts=FIRST_ATTEMPTS)
            return await work(Connection(client, access, await served(client)))

    try:
        return asyncio.run(connected())
    except ApiError as error:
        raise as_input(error, access) from None
