"""From GPUReservation objects to bookings of the model."""

from __future__ import annotations

import re
from collections.abc import Mapping

from berth.kube.wire_reservations import GPUReservation, Repeated, ReservationSpec, ReservationStatus
from berth.model.booking import FOR_EVER, Booking, Repeat, Share
from berth.model.queue import ANY_CLASS
from berth.sources.inventory import seconds

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAY_MIN = 24 * 60
_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)", re.ASCII)


def bookings_in(objects: Mapping[str, GPUReservation]) -> tuple[Booking, ...]:
    """By name; those that name nobody, or nothing, keep nothing and are left out."""
    found = (booking_of(name, thing) for name, thing in sorted(objects.items()))
    return tuple(one for one in found if one is not None)


def booking_of(name: str, thing: GPUReservation) -> Booking | None:
    """The booking that an object says; None where it says not for whom, not what, or a time that cannot be read: the
    schema refuses such an object, and nothing is kept from anybody by a guess."""
    spec, status = thing.spec or ReservationSpec(), thing.status or ReservationStatus()
    who, domain = spec.workload, spec.domain
    workload = f"{who.namespace or 'default'}/{who.name}" if who is not None and who.name else ""
    if not (spec.queue or workload) or not (spec.gpus or spec.nodes or (domain and domain.name)):
        return None
    begins_s, until_s = seconds(spec.begins), seconds(spec.until)
    if (spec.begins and not begins_s) or (spec.until and not until_s):
        return None
    repeat = None
    if spec.repeat is not None:
        repeat = _repeat(spec.repeat)
        if repeat is None:
            return None
    return Booking(
        name,
        spec.queue or "",
        workload,
        (who.kind if who is not None and workload else None) or "",
        tuple(spec.nodes or ()),
        (domain.level if domain is not None else None) or "",
        (domain.name if domain is not None else None) or "",
        spec.gpu_class or ANY_CLASS,
        max(spec.gpus or 0, 0),
        begins_s,
        until_s or FOR_EVER,
        repeat,
        tuple(Share(one.name, max(one.gpus or 0, 0)) for one in status.nodes or () if one.name),
    )


def _repeat(said: Repeated) -> Repeat | None:
    days = tuple(sorted({DAYS.index(day) for day in said.days or () if day in DAYS}))
    start, end = _minute(said.start or "00:00"), _minute(said.end or "24:00")
    if start is None or end is None or (said.days and len(days) != len(set(said.days))):
        return None
    return Repeat(days, start % DAY_MIN, end, said.time_zone or "UTC")


def _minute(text: str) -> int | None:
    found = _CLOCK.fullmatch(text)
    minute = int(found[1]) * 60 + int(found[2]) if found else DAY_MIN + 1
    return minute if minute <= DAY_MIN else None
