"""Another Berth that serves the same name: two would place each pod twice, each taking the other for a stranger.

Each Berth's Lease says which names it serves (kube/lease.py). Whoever starts looks whether one of them is alive, by
our clock and by what is seen to change, and does not begin. Two that start in the same moment see it a little later,
and say so.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime

from berth.base.errors import BadInput
from berth.kube.client import Client
from berth.kube.errors import ApiError
from berth.kube.lease import Lease, address_of, leases_of_berths, serves

log = logging.getLogger("berth.scheduler")

LOOK_S = 1.0  # while it is in doubt at start
AGAIN_S = 30.0  # from then on
LASTS_S = 15.0  # a Lease that does not say how long it lasts
PART = 0.4  # of the time for which a Lease lasts: whoever renews it has done so within it
LONG_AGO_S = 120.0  # so old by its own date that clocks which differ do not matter


class Others:
    """The other Berths. `own` is (namespace, name) of our Lease; None where we hold none."""

    def __init__(
        self,
        client: Client,
        names: Collection[str],
        own: tuple[str, str] | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._names = frozenset(names)
        self._own = own
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._versions: dict[tuple[str, str], str] = {}
        self._told: set[tuple[str, str]] = set()
        self._is_unseen = False

    async def look_before(self) -> None:
        """Return once nobody else serves our names; raises BadInput where somebody is seen to.

        A Lease that nobody renews, of one that was killed a moment ago, is looked at for a few seconds.
        """
        began = self._clock()
        doubtful = await self._look()
        for lease in doubtful:
            log.info("looks whether another Berth serves the same name still", extra=_about(lease, self._names))
        while doubtful:
            await self._sleep(LOOK_S)
            now = await self._look()
            for lease in now:
                if self._changed(lease):
                    raise _taken(lease, self._names)
            passed = self._clock() - began
            doubtful = [lease for lease in now if passed < PART * _lasts_s(lease)]

    async def run(self) -> None:
        """Until cancelled: tell of one that came to serve the same name, once for as long as it does."""
        while True:
            await self._sleep(AGAIN_S)
            found = await self._look()
            alive = {address_of(lease) for lease in found if self._changed(lease)}
            for lease in found:
                if address_of(lease) in alive - self._told:
                    log.warning("another Berth serves the same name", extra=_about(lease, self._names))
            self._told = alive
            self._remember(found)

    async def _look(self) -> list[Lease]:
        """Leases of others that are held for one of our names, and may be fresh."""
        try:
            leases = await leases_of_berths(self._client)
        except ApiError as error:
            if not self._is_unseen:
                about = {"error": str(error), "needs": "list on leases.coordination.k8s.io"}
                log.info("whether another Berth serves the same names cannot be seen", extra=about)
            self._is_unseen = True
            return []
        self._is_unseen = False
        found = [
            lease
            for lease in leases
            if address_of(lease) != self._own
            and serves(lease) & self._names
            and lease.spec is not None
            and lease.spec.holder_identity
            and not self._ended_long_ago(lease)
        ]
        for lease in found:
            self._versions.setdefault(address_of(lease), _version(lease))
        return found

    def _changed(self, lease: Lease) -> bool:
        return self._versions.get(address_of(lease)) != _version(lease)

    def _remember(self, leases: list[Lease]) -> None:
        self._versions = {address_of(lease): _version(lease) for lease in leases}

    def _ended_long_ago(self, lease: Lease) -> bool:
        written = (lease.spec.renew_time if lease.spec else None) or ""
        try:
            renewed_s = datetime.fromisoformat(written).timestamp()
        except ValueError:
            return False
        return self._now() - renewed_s > LONG_AGO_S


def _version(lease: Lease) -> str:
    return (lease.metadata.resource_version if lease.metadata else None) or ""


def _lasts_s(lease: Lease) -> float:
    return (lease.spec.lease_duration_seconds if lease.spec else None) or LASTS_S


def _about(lease: Lease, names: Collection[str]) -> dict[str, str]:
    return {
        "names": ", ".join(sorted(serves(lease) & set(names))),
        "lease": "/".join(address_of(lease)),
        "holder": (lease.spec.holder_identity if lease.spec else None) or "",
        "remedy": "stop one of them, or give each names of its own: schedulerNames",
    }


def _taken(lease: Lease, names: Collection[str]) -> BadInput:
    about = _about(lease, names)
    return BadInput(
        f"schedulerNames: {about['names']}",
        f"is served by another Berth: Lease {about['lease']}, held by {about['holder']}.",
        "Stop it, or give this one a name of its own with --scheduler-name.",
    )
