"""What the status of a GPUReservation says: where it has its GPUs, how many of them are there, who is in the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from berth.actions.fence import Fenced
from berth.actions.own_status import write_status
from berth.actions.subjects import stamp
from berth.base.units import counted
from berth.model.as_written import booking_problem
from berth.model.booking import FOR_EVER, Standing
from berth.model.snapshot import Snapshot

EVERY_S = 30.0  # unless where it stands, or its window, has changed
ACCEPTED, OPEN, HELD = "Accepted", "Open", "Held"


class ReservationSaid(Struct, frozen=True):
    """`standing` is None once no window will open any more. `problem` is (reason, message), ("", "") where it can be
    kept as it is written."""

    standing: Standing | None
    problem: tuple[str, str] = ("", "")

    @property
    def pressing(self) -> object:
        """What is told at once when it changes."""
        one = self.standing
        return self.problem, one and (one.shares, one.is_open, one.opens_s, one.closes_s, one.held == one.gpus)


def said_of(standings: Sequence[Standing], snapshot: Snapshot) -> dict[str, ReservationSaid]:
    """By the name of the reservation."""
    stands = {one.name: one for one in standings}
    return {b.name: ReservationSaid(stands.get(b.name), booking_problem(b, snapshot)) for b in snapshot.bookings}


def status_change(thing: Mapping[str, Any], said: ReservationSaid, at: str) -> dict[str, Any] | None:
    """The status as a merge patch; None where the object says it already."""
    before = thing.get("status") or {}
    generation = (thing.get("metadata") or {}).get("generation")
    old = [c for c in before.get("conditions") or () if isinstance(c, dict)]
    conditions = [_condition(*one, old, generation, at) for one in _conditions(said)]
    one = said.standing
    status: dict[str, Any] = {
        "observedGeneration": generation,
        "nodes": [{"name": s.node, **({"gpus": s.gpus} if s.gpus else {})} for s in one.shares] if one else [],
        "gpus": one.gpus if one else 0,
        "held": one.held if one else 0,
        "used": one.used if one else 0,
        "window": _window(one),
        "conditions": [*(c for c in old if c.get("type") not in (ACCEPTED, OPEN, HELD)), *conditions],
    }
    if all(before.get(key) == value for key, value in status.items()):
        return None
    return status


def _window(one: Standing | None) -> dict[str, str | None] | None:
    """A merge patch: what is not said is taken out."""
    if one is None:
        return None
    return {
        "from": stamp(one.opens_s) if one.opens_s > 0 else None,
        "until": stamp(one.closes_s) if one.closes_s < FOR_EVER else None,
    }


def _conditions(said: ReservationSaid) -> list[tuple[str, bool, str, str]]:
    """Type, whether it is true, reason and message."""
    reason, message = said.problem
    accepted = (ACCEPTED, not reason, reason or ACCEPTED, message or "it is kept as it is written")
    one = said.standing
    if one is None:
        over = (OPEN, False, "Over", "no window will open any more")
        return [accepted, over, (HELD, False, "Over", "nothing is held")]
    until = f" until {stamp(one.closes_s)}" if one.closes_s < FOR_EVER else ""
    is_open = (
        (OPEN, True, "WindowOpen", f"nobody else is placed there{until}")
        if one.is_open
        else (OPEN, False, "WindowAhead", f"the next window opens at {stamp(one.opens_s)}")
    )
    if one.held >= one.gpus and one.gpus:
        return [accepted, is_open, (HELD, True, "AllHeld", f"{counted(one.gpus, 'GPU')} held, {one.used:,} used")]
    where = ", ".join(share.node for share in one.shares[:3]) or "no node"
    lacking = f"{one.held:,} of {counted(one.gpus, 'GPU')} held on {where}: pods of others are there, or too few are"
    return [accepted, is_open, (HELD, False, "NotAllHeld", lacking)]


def _condition(
    kind: str, holds: bool, reason: str, message: str, old: Sequence[Mapping[str, Any]], generation: Any, at: str
) -> dict[str, Any]:
    before = next((c for c in old if c.get("type") == kind), None)
    status = "True" if holds else "False"
    same = before is not None and before.get("status") == status
    told = {"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": (before or {}).get("lastTransitionTime") if same else at}  # fmt: skip
    return told if generation is None else {**told, "observedGeneration": generation}


class ReservationStatuses:
    """Written at once where something pressing changed, else at most once in a while. `changed` is called with the
    name of each whose status is to be written; `write` writes it."""

    def __init__(
        self,
        client: Fenced,
        counts: Counter[str],
        *,
        changed: Callable[[str], None],
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self._client = client
        self._counts = counts
        self._changed = changed
        self._clock = clock
        self._now = now
        self._said: dict[str, ReservationSaid] = {}
        self._told: dict[str, tuple[ReservationSaid, float]] = {}
        self._later: asyncio.TimerHandle | None = None

    def take(self, standings: Sequence[Standing], snapshot: Snapshot) -> None:
        """How they stand now."""
        self._said = said_of(standings, snapshot)
        self._look()

    def forget(self) -> None:
        """What was told is not known any more."""
        self._told.clear()

    def close(self) -> None:
        if self._later is not None:
            self._later.cancel()

    def _look(self) -> None:
        at_s, next_s = self._clock(), float("inf")
        self.close()
        for name, said in self._said.items():
            told, told_s = self._told.get(name, (None, float("-inf")))
            if said == told:
                continue
            if told is None or said.pressing != told.pressing or at_s >= told_s + EVERY_S:
                self._told[name] = (said, at_s)
                self._changed(name)
            else:
                next_s = min(next_s, told_s + EVERY_S)
        if next_s < float("inf"):
            self._later = asyncio.get_running_loop().call_later(max(next_s - at_s, 0.0), self._look)

    async def write(self, name: str) -> None:
        """Raises ApiError, Withdrawn; then it is looked at anew the next time."""
        said = self._said.get(name)
        if said is None:
            return
        path = f"/apis/berth.dev/v1alpha1/gpureservations/{name}"
        at = stamp(self._now())
        if await write_status(self._client, path, lambda there: status_change(there, said, at)):
            self._counts["reservations_written"] += 1
