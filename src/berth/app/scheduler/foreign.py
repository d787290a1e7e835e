"""Names of other schedulers are served only while those are gone: by their Leases, looked at every few seconds.

A Lease is judged as our own is (leader.py): held as long as it changes, on our clock, and free once it has stood
unchanged for as long as its holder promised to renew it, or nobody holds it. A scheduler that comes back is seen
at the next look, and its name is not ours any more. What cannot be seen counts as held.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping

from msgspec import Struct

from berth.app.scheduler.rights import FOREIGN
from berth.kube.client import Client
from berth.kube.errors import ApiError
from berth.kube.lease import LEASES, Lease, Leases, LeaseSpec

log = logging.getLogger("berth.scheduler")

LOOK_S = 3.0
LASTS_S = 15.0  # a Lease that does not say how long it lasts


class Seen(Struct, frozen=True):
    """A Lease as it was last seen to change; `since_s` is our monotonic clock."""

    version: str
    since_s: float


class Foreign:
    """Which of the configured names are served now; `serve` is told whenever that changes.

    `table` says under which names a scheduler keeps its Lease, in whatever namespace. One that keeps none, or is
    not in the table, cannot be looked for: its name is served as it is configured.
    """

    def __init__(
        self,
        client: Client,
        names: Collection[str],
        serve: Callable[[frozenset[str]], None],
        *,
        table: Mapping[str, tuple[str, ...]] = FOREIGN,
        look_s: float = LOOK_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._names = frozenset(names)
        self._serve = serve
        self._leases = {name: table[name] for name in sorted(self._names) if table.get(name)}
        self._look_s = look_s
        self._clock = clock
        self._seen: dict[tuple[str, str], Seen] = {}
        self._troubles: dict[str, str] = {}
        self._has_looked = False
        self.served = self._names - self._leases.keys()

    @property
    def is_needed(self) -> bool:
        """There is a name among them whose scheduler may be alive."""
        return bool(self._leases)

    async def run(self) -> None:
        """Until cancelled; at once where no such name is configured."""
        while self.is_needed:
            await self.look()
            await asyncio.sleep(self._look_s)

    async def look(self) -> None:
        """Look once, and tell if something has changed."""
        held = await asyncio.gather(*(self._is_held(name) for name in self._leases))
        kept = {name for name, is_held in zip(self._leases, held, strict=True) if is_held}
        served = self._names - kept
        if not self._has_looked:
            self._has_looked = True
            for name in sorted(kept):
                if not self._troubles.get(name):
                    about = {"scheduler": name, "leases": ", ".join(self._leases[name])}
                    log.info("a scheduler's name is not served until its Lease is seen to be free", extra=about)
        if served == self.served:
            return
        for name in sorted(self._leases):
            if (name in served) != (name in self.served):
                log.info("serves a scheduler's name" if name in served else "serves a scheduler's name no longer",
                         extra={"scheduler": name})  # fmt: skip
        self.served = served
        self._serve(served)

    async def _is_held(self, scheduler: str) -> bool:
        try:
            found = [lease for name in self._leases[scheduler] for lease in await self._list(name)]
        except ApiError as error:
            self._trouble(scheduler, str(error))
            # Unreachable for a moment: nothing can be bound either, so that what was known may stand.
            return scheduler not in self.served or error.is_forbidden
        self._trouble(scheduler, "")
        # Each is looked at, whatever the first says: only so is known when it last changed.
        held = [lease for lease in found if self._holds(lease)]
        return bool(held)

    async def _list(self, name: str) -> tuple[Lease, ...]:
        # From the API server's memory: a few seconds' age does not matter, and nodes have thousands of Leases.
        query = {"fieldSelector": f"metadata.name={name}", "resourceVersion": "0"}
        return (await self._client.get(LEASES, Leases, params=query)).items

    def _holds(self, lease: Lease) -> bool:
        """Somebody holds it and has renewed it lately, or we have not looked for long enough to say."""
        meta, spec, now_s = lease.metadata, lease.spec or LeaseSpec(), self._clock()
        key = ((meta.namespace if meta else None) or "", (meta.name if meta else None) or "")
        version = (meta.resource_version if meta else None) or ""
        seen = self._seen.get(key)
        if seen is None or seen.version != version:
            seen = self._seen[key] = Seen(version, now_s)
        if not spec.holder_identity:
            return False
        return now_s - seen.since_s <= (spec.lease_duration_seconds or LASTS_S)

    def _trouble(self, scheduler: str, said: str) -> None:
        """Told once, and again when it differs."""
        if said and self._troubles.get(scheduler) != said:
            about = {"scheduler": scheduler, "error": said, "needs": "list on leases.coordination.k8s.io"}
            log.warning("whether a scheduler is alive cannot be seen, so its name is not served", extra=about)
        self._troubles[scheduler] = said
