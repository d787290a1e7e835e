"""Causes about room that is being made for a workload, or held for another."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from berth.base.units import counted
from berth.model.reasons import Answer, Cause, Reason, Verdict
from berth.model.workload import Workload
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
