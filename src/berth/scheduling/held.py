"""Causes about room that is being made for a workload, or held for another."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from berth.base.units import counted, duration
from berth.model.booking import FOR_EVER
from berth.model.reasons import Answer, Cause, Reason, Verdict
from berth.model.workload import Workload
from berth.scheduling.booked import Booked
from berth.scheduling.wording import at_time

NAMED = 3  # nodes


def making_room(nodes: Sequence[str], leave: int, left: int, until_s: float) -> Cause:
    """Of `leave` pods that leave for the workload `left` have gone; the others are on `nodes`."""
    where, by = _some(nodes), at_time(until_s)
    still = leave - left
    gone = f" of {leave:,}" if left else ""
    are = "is" if still == 1 else "are"
    pods = f"{still:,}{gone} pods {are}" if gone else f"{counted(still, 'pod')} {are}"
    return Cause(
        Reason.MakingRoom,
        f"{pods} leaving {where} to make room, which should be free by {by}",
        need=leave, have=left, unit="pods", where=where, unlock=(f"{counted(still, 'pod')} gone from {where}",),
    )  # fmt: skip


def room_is_held(nodes: Sequence[str], pods: int, until_s: float) -> Cause:
    """All have left, and the workload has not started yet."""
    where = _some(nodes)
    return Cause(
        Reason.MakingRoom, f"room is held for it on {where} until {at_time(until_s)}",
        need=pods, unit="pods", where=where,
    )  # fmt: skip


def behind(workload: Workload, holder: str, nodes: Sequence[str], until_s: float) -> Cause:
    """It would fit on `nodes` if the room there were not held for `holder`, a workload as people name it."""
    pods = sum(s.min_count for s in workload.pod_sets)
    where = _some(nodes)
    its = "has room for it" if len(nodes) == 1 else "have room for it"
    return Cause(
        Reason.BehindReservation,
        f"{where} {its}, but the room is held for {holder} until {at_time(until_s)}",
        need=pods, unit="pods", where=where,
        unlock=(f"{holder} started elsewhere, or no hold after {at_time(until_s)}",),
    )  # fmt: skip


def behind_in_time(
    workload: Workload, holder: str, nodes: Sequence[str], at_s: float, now_s: float, times: float = 1.0
) -> Cause:
    """It would fit on `nodes` if `holder` were not to start there at `at_s`, and if it had to have ended by then. So
    many `times` its limit somebody of its queue runs."""
    pods = sum(s.min_count for s in workload.pod_sets)
    where, by = _some(nodes), at_time(at_s)
    its = "has room for it" if len(nodes) == 1 else "have room for it"
    limit = f"its run-time limit ends after {by}" if workload.time_limit_s else "it has no run-time limit"
    if times > 1 and now_s + workload.time_limit_s <= at_s:
        limit = f"a workload of its queue runs {times:.1f} times as long as its limit, which is counted on of it, too"
    return Cause(
        Reason.BehindReservation,
        f"{where} {its}, but {holder} is to start there by {by}, and {limit}",
        need=pods, unit="pods", where=where,
        unlock=(f"a run-time limit of at most {duration((at_s - now_s) / times)}", f"{holder} started"),
    )  # fmt: skip


def behind_booking(workload: Workload, booked: Booked, nodes: Sequence[str], now_s: float) -> Cause:
    """It would fit on `nodes` if people did not keep the room there for others."""
    booking, window = booked.booking, booked.window
    pods = sum(s.min_count for s in workload.pod_sets)
    where = _some(nodes)
    have = "has" if len(nodes) == 1 else "have"
    whose = f"queue {booking.queue}" if booking.queue else booking.workload
    ends = f" until {at_time(window.closes_s)}" if window.closes_s < FOR_EVER else ""
    if booked.is_open:
        said = f"{where} {have} room for it, but GPUReservation {booking.name} keeps that for {whose}{ends}"
        unlock = [f"GPUReservation {booking.name} smaller or gone"]
        if ends:
            unlock.insert(0, f"the window of GPUReservation {booking.name} over, at {at_time(window.closes_s)}")
    else:
        why = "its run-time limit ends later" if workload.time_limit_s else "it has no run-time limit"
        said = (
            f"{where} {have} room for it, but GPUReservation {booking.name} keeps that for {whose} from "
            f"{at_time(window.opens_s)} on, and {why}"
        )
        unlock = [
            f"a run-time limit of at most {duration(window.opens_s - now_s)}",
            'berth.dev/preemptible "true": it would leave when the window opens',
        ]
    return Cause(Reason.Reserved, said, need=pods, unit="pods", where=booking.name, unlock=tuple(unlock))


def with_place(verdict: Verdict, at_s: float, nodes: Sequence[str]) -> Verdict:
    """The verdict of a workload that has a place in time."""
    first = verdict.causes[0]
    told = replace(first, sentence=f"{first.sentence}; it is to start by {at_time(at_s)} on {_some(nodes)}")
    return replace(verdict, causes=(told, *verdict.causes[1:]))


def whose_place_went(verdict: Verdict, taker: str) -> Verdict:
    """The verdict of a workload whose pods have left for another."""
    if verdict.answer is not Answer.NotYet or not verdict.causes:
        return verdict
    first = verdict.causes[0]
    told = replace(first, sentence=f"{first.sentence}; its pods left for {taker}")
    return replace(verdict, causes=(told, *verdict.causes[1:]))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
