"""What the scheduler has said of a workload that waits, as the cluster keeps it.

Reasons and verdicts are text here, not our own: a newer scheduler may know more of them than who reads this.
"""

from __future__ import annotations

from msgspec import Struct

from berth.model.workload import identity_of


class ToldCause(Struct, frozen=True, gc=False):
    """One reason with its numbers; None where no number was given."""

    reason: str = ""
    sentence: str = ""
    need: int | None = None
    have: int | None = None
    unit: str = ""
    where: str = ""
    unlock: tuple[str, ...] = ()
    blocks: tuple[tuple[str, int], ...] = ()  # (code, nodes), most nodes first
    nearest: tuple[tuple[str, str], ...] = ()  # (node, what it lacks)
    proven: bool = True
    codes: tuple[tuple[str, int], ...] = ()  # unfit and suspect nodes by what was found there, most nodes first


class Told(Struct, frozen=True, gc=False):
    """One Verdict object. Moments are seconds since the epoch, 0.0 where none is given."""

    namespace: str
    name: str  # of the workload
    kind: str = "Workload"
    uid: str = ""  # of the workload
    own_name: str = ""  # of the Verdict
    queue: str = ""
    pods: int = 0
    gpu_milli: int = 0
    verdict: str = ""
    causes: tuple[ToldCause, ...] = ()  # the dominant one first
    unlock: tuple[str, ...] = ()
    position: int = 0  # in its queue, 1 is next; 0 where it is not known
    ahead: int | None = None  # workloads that are decided before it
    ahead_here: tuple[str, ...] = ()  # those of them in its own namespace, by name
    starts_s: tuple[float, float, float] = (0.0, 0.0, 0.0)  # p10, p50, p90 of when it is expected to start
    since_s: float = 0.0  # the reason has held
    at_s: float = 0.0  # it was last seen to hold
    evicted: str = ""  # why it last lost its place, a sentence
    evicted_s: float = 0.0
    findings: tuple[str, ...] = ()  # what its manifests disagree on

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def identity(self) -> str:
        """As `Workload.identity` names it."""
        return identity_of(self.kind, self.key)

    @property
    def reason(self) -> str:
        return self.causes[0].reason if self.causes else ""

    @property
    def sentence(self) -> str:
        return self.causes[0].sentence if self.causes else ""

    def is_called(self, asked: str) -> bool:
        """By its name, `kind/name`, `namespace/name`, its identity, or the name of the Verdict itself."""
        if asked in (self.name, self.own_name, self.identity):
            return True
        first, slash, rest = asked.partition("/")
        if not slash:
            return False
        kind = self.kind.lower()
        if rest == self.name and (first == self.namespace or first.lower() in (kind, kind + "s")):
            return True
        return rest == self.own_name and first.lower() in ("verdict", "verdicts", self.namespace)
