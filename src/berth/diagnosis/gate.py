"""May one go on? A report ends in this: go on, or stop, with the evidence that is missing and its stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from berth.diagnosis.evidence_kinds import WORDS_ALONE
from berth.diagnosis.finding import Finding, Unconfirmed
from berth.diagnosis.words import Layer, Severity
from berth.evidence.facts import Facts

# discovery: do host, plugin, node, request and container agree; isolation: which of them is at fault;
# distributed: do all ranks and links take part
Stage = Literal["discovery", "isolation", "distributed"]


class Gate(Struct, frozen=True):
    """`go` where nothing stands in the way of the next step; else the sentence says what does."""

    go: bool
    stage: Stage
    sentence: str
    missing: tuple[Unconfirmed, ...] = ()


def not_read(facts: Facts) -> tuple[Unconfirmed, ...]:
    """What is missing because its file is cut off or damaged."""
    how = "get it again, and look whether the command that wrote it was interrupted"
    return tuple(
        Unconfirmed(f"the rest of {source} ({problem})", how, "", Layer.L4) for source, problem in facts.damage.items()
    )


def gate_of(causes: Sequence[Finding], unconfirmed: Sequence[Unconfirmed], facts: Facts) -> Gate:
    """Stop at the first fault that keeps work off, or where nothing is known yet."""
    missing = tuple(unconfirmed)
    if not causes and all(isinstance(fact, WORDS_ALONE) for fact in facts):
        return Gate(False, "discovery", "stop: nothing was read that says anything about a GPU", missing)
    for cause in causes:
        if cause.severity >= Severity.Error:
            stage: Stage = "distributed" if cause.layer == Layer.L6 else "isolation"
            return Gate(False, stage, f"stop: {cause.title} ({cause.code}); mend and verify it first", missing)
    if missing:
        first = missing[0]
        stage = "distributed" if first.layer == Layer.L6 else "discovery"
        return Gate(False, stage, f"stop: {first.what} was not seen, {_others(len(missing))}", missing)
    return Gate(True, "distributed", "go on: what was looked at agrees")


def _others(count: int) -> str:
    return "and nothing else is missing" if count == 1 else f"and {count - 1} more"
