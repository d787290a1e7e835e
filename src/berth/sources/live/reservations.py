"""GPUReservations as the cluster shows them, and where the last decision had them until their status says so."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from berth.kube import wire
from berth.kube.wire_reservations import GPUReservation, ReservationSpec
from berth.model.booking import Booking, Share, Standing, next_change_s
from berth.sources.bookings import booking_of


class Reservations:
    """By name. What was decided counts before what a status says: that is written later, and may come back late."""

    def __init__(self) -> None:
        self._bookings: dict[str, Booking] = {}
        self._specs: dict[str, tuple[str, ReservationSpec | None]] = {}
        self._stood: dict[str, tuple[Share, ...]] = {}

    def put(self, thing: GPUReservation) -> bool:
        """Whether it keeps something else than before."""
        meta = thing.metadata or wire.NO_META
        name, said = meta.name or "", (meta.uid or "", thing.spec)
        if self._specs.get(name) == said:
            return False
        self._specs[name] = said
        self._stood.pop(name, None)
        booking = booking_of(name, thing)
        before = self._bookings.pop(name, None)
        if booking is not None:
            self._bookings[name] = booking
        return booking is not None or before is not None

    def drop(self, name: str) -> bool:
        self._specs.pop(name, None)
        self._stood.pop(name, None)
        return self._bookings.pop(name, None) is not None

    def stand(self, standings: Iterable[Standing]) -> None:
        """Where a decision has them: there they stay."""
        self._stood.update((one.name, one.shares) for one in standings if one.name in self._bookings)

    def now(self) -> tuple[Booking, ...]:
        """By name."""
        return tuple(
            replace(one, shares=self._stood[name]) if name in self._stood else one
            for name, one in sorted(self._bookings.items())
        )

    def next_s(self, now_s: float) -> float:
        """When a window opens or closes."""
        return next_change_s(tuple(self._bookings.values()), now_s)
