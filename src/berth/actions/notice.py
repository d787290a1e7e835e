"""What is to be told of one workload, and what has been told."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from berth.actions.subjects import SubjectKey, group_path
from berth.actions.verdicts import Place
from berth.dialects.conditions import Fate, State
from berth.kube import wire_verdict as wire
from berth.model.reasons import Reason, Verdict
from berth.model.workload import Workload

UNSETTLED_S = 1.0  # WaitingForGang changes with every pod that is created: it is told once it has stood so long
MOST_UNSETTLED_S = 5.0  # or has gone on for so long
REFRESH_S = 30.0  # between two writes of a Verdict in which only numbers differ


UNHEARD = (State.Waiting, "")  # what a group has been told by somebody else, or in a write without an answer


class Said(Struct, frozen=True, gc=False):
    """What one Verdict object says, as far as it is compared. `code` is the reason's."""

    uid: str
    verdict: Verdict
    place: Place
    code: str
    findings: tuple[str, ...] = ()

    @classmethod
    def of(cls, workload: Workload, verdict: Verdict, place: Place) -> Said:
        reason = verdict.reason
        code = reason.name if reason else verdict.answer.value
        return cls(workload.uid, verdict, place, code, workload.findings)


@dataclass(slots=True)
class Notice:
    """One workload. Times ending in `_s` are the teller's clock, but for `since_s`, which is of the epoch.

    `now` is what the latest plan says, `told` what the Verdict object says (None: nothing that we know of).
    `there` is the object as an earlier leader left it, until it has been compared.
    """

    key: SubjectKey
    workload: Workload | None = None
    state: State = State.Waiting
    now: Said | None = None
    since_s: float = 0.0
    due_s: float = 0.0  # not to be told before
    news_s: float = 0.0  # when the reason came up
    told: Said | None = None
    written_s: float = float("-inf")
    has_object: bool = False
    there: wire.VerdictObject | None = None
    is_binding: bool = False  # its pods are on their way to nodes
    placed: Fate | None = None  # to be told to its group
    group_told: tuple[State, str] | None = None
    event_code: str = ""
    is_listed: bool = False  # its turn to be written will come
    turn: int = 0

    def take(self, workload: Workload, verdict: Verdict, place: Place, now: float, now_s: float) -> None:
        """What the latest plan says of it."""
        said = Said.of(workload, verdict, place)
        before = self.now if self.state is State.Waiting else None
        if self.workload is not None and self.workload.uid != workload.uid:
            self.placed = self.group_told = None  # that was another one
            self.event_code = ""
        self.workload, self.state = workload, State.Waiting
        if before is None or before.uid != said.uid or (before.verdict.answer, before.code) != (
            verdict.answer, said.code,
        ):  # fmt: skip
            self.since_s = now_s
            self.due_s = self.news_s = now
        if verdict.reason is Reason.WaitingForGang and (before is None or before.verdict != verdict):
            self.due_s = min(now + UNSETTLED_S, max(now, self.news_s + MOST_UNSETTLED_S))
        self.now = said

    def moved(self, place: Place) -> None:
        """Nothing is new but where it stands among the others."""
        if self.now is not None and self.now.place != place:
            self.now = replace(self.now, place=place)

    @property
    def is_told(self) -> bool:
        """The Verdict object says what the latest plan says."""
        return self.told == self.now

    @property
    def is_news(self) -> bool:
        """The reason differs from what was told, not only its numbers."""
        told, now = self.told, self.now
        if told is None or now is None:
            return told is not now
        return (told.uid, told.verdict.answer, told.code) != (now.uid, now.verdict.answer, now.code)

    @property
    def refresh_s(self) -> float:
        """When numbers that differ may be written."""
        return max(self.due_s, self.written_s + REFRESH_S)

    @property
    def owes_group(self) -> bool:
        """Its group is to be told that it was placed, or that what it says is no longer true."""
        if self.workload is None or not group_path(self.workload):
            return False
        return self.placed is not None or (self.state is State.Gone and self.group_told is not None)

    @property
    def is_over(self) -> bool:
        """It waits no more, and all who were told that it did know."""
        return self.state is not State.Waiting and not self.has_object and not self.owes_group
