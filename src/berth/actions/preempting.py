"""A workload that was asked to leave for another: what both are told, and what the victim's Verdict remembers."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from berth.actions.events import PREEMPTING, Event
from berth.actions.subjects import Reference, SubjectKey
from berth.base.units import counted
from berth.kube import wire_verdict as wire


class Preempted(Struct, frozen=True):
    """`pods` of `victim` were asked to leave `sentence` ("for a workload of higher priority").

    `victim_on` and `winner_on` are the objects on which each is told. `lost_gpu_s`: work lost, in GPU-seconds.
    """

    victim: SubjectKey
    victim_on: Reference
    winner: SubjectKey
    winner_on: Reference
    pods: int
    sentence: str
    lost_gpu_s: int = 0
    reason: str = "Preempted"

    def events(self) -> Iterator[Event]:
        """One on each side. Whom it was for, or who left, is named within one namespace only."""
        same = self.victim[1] == self.winner[1]
        asked = f"{counted(self.pods, 'pod')} asked to leave"
        winner = f" ({self.winner[0]} {self.winner[2]})" if same else ""
        yield Event(
            self.victim_on, self.reason, f"{asked} {self.sentence}{winner}", PREEMPTING, True,
            self.winner_on if same else None,
        )  # fmt: skip
        victim = f" of {self.victim[0]} {self.victim[2]}" if same else " of another namespace"
        note = f"{counted(self.pods, 'pod')}{victim} asked to leave for it"
        yield Event(self.winner_on, "MakingRoom", note, PREEMPTING, related=self.victim_on if same else None)

    def as_eviction(self, at: str) -> wire.Eviction:
        return wire.Eviction(at, self.reason, f"{counted(self.pods, 'pod')} asked to leave {self.sentence}", self.pods,
                             self.lost_gpu_s)  # fmt: skip
