"""What looks like a fault and is none: codes of that kind, and the usual way to find one."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix
from berth.diagnosis.heard import by_place
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts


def trap(
    name: str,
    layer: Layer,
    effect: Effect,
    title: str,
    *,
    meaning: str,
    known_by: str,
    disproved_by: str,
    counter_check: str,
    sources: tuple[str, ...],
    steps: tuple[str, ...] = ("nothing to mend",),
    verify: tuple[str, ...] = (),
    instead_of: tuple[str, ...] = (),
) -> Code:
    """A code of what needs no mending. `instead_of` names the faults that the same words would else be taken for."""
    return Code(
        name=name,
        layer=layer,
        cause_class="diagnosis-rule",
        severity=Severity.Info,
        effect=effect,
        title=title,
        meaning=meaning,
        known_by=known_by,
        disproved_by=disproved_by,
        counter_check=counter_check,
        fix=Fix(steps=steps, risk="none", rollback="nothing to undo"),
        verify=verify or (counter_check,),
        sources=sources,
        is_trap=True,
        instead_of=instead_of,
    )


def noted(
    facts: Facts,
    code: Code,
    messages: tuple[str, ...],
    cause: str,
    confidence: float = LIKELY,
    *,
    unless: tuple[str, ...] = (),
) -> Iterator[Answer]:
    """One for each node or pod where it is said, unless something else was said that makes it a fault."""
    if unless and any(facts.said(*unless)):
        return
    for node, pod, found in by_place(facts.said(*messages)):
        yield code.finding(cause, confidence, found, node=node, pod=pod)
