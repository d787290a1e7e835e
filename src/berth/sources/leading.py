"""Who leads: which Berths hold a Lease now, as far as one look and this machine's clock can tell.

The scheduler itself judges a Lease by how long it was seen unchanged. A command looks once, so it goes by the date that
the holder wrote, with room for clocks that differ.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from berth.base.units import duration
from berth.kube.client import Client
from berth.kube.errors import ApiError
from berth.kube.lease import Lease, LeaseSpec, address_of, leases_of_berths, serves
from berth.sources.inventory import seconds

OWN = "berth"  # the name that Berth serves where nobody says another
SKEW_S = 5.0  # between our clock and the holder's
LASTS_S = 15.0  # a Lease that does not say how long it lasts


class Leading(Struct, frozen=True):
    """The Leases of Berths. `is_seen` False: they may not be listed, so nobody can tell who leads."""

    leases: tuple[Lease, ...] = ()
    is_seen: bool = True
    now_s: float = 0.0

    def leads(self, scheduler: str = "") -> bool:
        """A Berth that serves this name, or ("") any name, holds its Lease."""
        return any(self._is_held(lease) for lease in self._serving(scheduler))

    def lack(self, schedulers: Iterable[str] = ("",)) -> str:
        """That nobody leads who places pods of these names ("" is any of Berth's), as a sentence without its end.

        "" where somebody does, where it cannot be seen, and where the names are no Berth's.
        """
        if not self.is_seen:
            return ""
        ours = {"", OWN, *(name for lease in self.leases for name in serves(lease))}
        idle = sorted(name for name in ours.intersection(schedulers) if not self.leads(name))
        if not idle:
            return ""
        latest = max(self._serving(idle[0]), key=self._renewed_s, default=None)
        whose = f" pods of {', '.join(filter(None, idle))}" if any(idle) else ""
        return f"no Berth {self._about(latest)}; until one leads nobody places{whose or ' what waits for it'}"

    def _serving(self, scheduler: str) -> list[Lease]:
        return [lease for lease in self.leases if not scheduler or scheduler in serves(lease)]

    def _about(self, lease: Lease | None) -> str:
        if lease is None:
            return "is seen here: no Lease of one is there"
        where, renewed_s = "/".join(address_of(lease)), self._renewed_s(lease)
        lately = f" since {duration(max(0.0, self.now_s - renewed_s))}" if renewed_s else ""
        return f"leads here: Lease {where} is not held{lately}"

    def _is_held(self, lease: Lease) -> bool:
        spec = lease.spec or LeaseSpec()
        lasts_s = spec.lease_duration_seconds or LASTS_S
        return bool(spec.holder_identity) and self.now_s - self._renewed_s(lease) <= lasts_s + SKEW_S

    @staticmethod
    def _renewed_s(lease: Lease) -> float:
        return seconds(lease.spec.renew_time if lease.spec else None)


async def leading(client: Client, now_s: float) -> Leading:
    """Who leads, by one look. `now_s` is seconds since the epoch. Never raises for what may not be seen."""
    try:
        return Leading(await leases_of_berths(client), now_s=now_s)
    except ApiError:
        return Leading(is_seen=False, now_s=now_s)
