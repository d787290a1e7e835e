"""Facts in, diagnosis out: every rule is asked, the answers are merged, chained and ranked, and a gate closes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from berth.diagnosis import chain
from berth.diagnosis.finding import MOST_EVIDENCE, Finding, Rule, Unconfirmed
from berth.diagnosis.gate import Gate, gate_of, not_read
from berth.diagnosis.rules import RULES
from berth.diagnosis.words import GUESSED, WEAK
from berth.evidence.facts import Facts
from berth.evidence.formats.told import KIND as TOLD_KIND


class Consequence(Struct, frozen=True):
    """A finding that goes away with another."""

    finding: Finding
    explained_by: Finding


class Diagnosis(Struct, frozen=True):
    """The answer of the doctor."""

    findings: tuple[Finding, ...]  # causes, the deepest first
    consequences: tuple[Consequence, ...]
    unconfirmed: tuple[Unconfirmed, ...]
    traps: tuple[Finding, ...]
    gate: Gate


def diagnose(facts: Facts, rules: Sequence[Rule] = RULES) -> Diagnosis:
    """The same facts give the same diagnosis."""
    found: list[Finding] = []
    missing: dict[tuple[str, str], Unconfirmed] = {}
    for rule in rules:
        for answer in rule.find(facts):
            if isinstance(answer, Unconfirmed):
                missing.setdefault((answer.what, answer.how), answer)
            else:
                found.append(answer)
    certain = _without_guesses(_without_harmless_lines(_without_hints(_merged(found))))
    merged = chain.ranked(_without_mistaken(certain, rules))
    faults = [one for one in merged if not one.is_trap]
    under = chain.explained(faults)
    causes = tuple(one for index, one in enumerate(faults) if index not in under)
    unconfirmed = (*not_read(facts), *missing.values())
    return Diagnosis(
        findings=causes,
        consequences=tuple(Consequence(faults[upper], faults[_root(lower, under)]) for upper, lower in under.items()),
        unconfirmed=unconfirmed,
        traps=tuple(one for one in merged if one.is_trap),
        gate=gate_of(causes, unconfirmed, facts),
    )


def _without_hints(found: list[Finding]) -> list[Finding]:
    """Leaves out what was made of somebody's own words alone where the same line is known better."""
    sure: dict[tuple[str, int], float] = {}
    for one in found:
        if not _is_hint(one):
            for origin in one.evidence:
                place = origin.source, origin.line
                sure[place] = max(sure.get(place, 0.0), 1.0 if one.is_trap else one.confidence)
    return [
        one
        for one in found
        if not _is_hint(one)
        or all(sure.get((origin.source, origin.line), 0.0) <= one.confidence for origin in one.evidence)
    ]


def _without_harmless_lines(found: list[Finding]) -> list[Finding]:
    """Leaves out the faults that rest on nothing but lines which a trap knows at least as well to be harmless, and the
    weak traps where anything else was found."""
    sure: dict[tuple[str, int, str], float] = {}
    for one in found:
        if one.is_trap and one.confidence > WEAK:
            for origin in one.evidence:
                words = origin.source, origin.line, origin.text
                sure[words] = max(sure.get(words, 0.0), one.confidence)
    left = [
        one
        for one in found
        if one.is_trap
        or not all(
            sure.get((origin.source, origin.line, origin.text), 0.0) >= one.confidence for origin in one.evidence
        )
    ]
    return [one for one in left if not (one.is_trap and one.confidence <= WEAK)] or left


def _without_guesses(found: list[Finding]) -> list[Finding]:
    return [one for one in found if one.confidence > GUESSED] or found


def _is_hint(one: Finding) -> bool:
    return all(origin.kind == TOLD_KIND for origin in one.evidence)


def _without_mistaken(found: list[Finding], rules: Sequence[Rule]) -> list[Finding]:
    """Leaves out the faults for which a trap of the same node is mistaken."""
    codes = {code.name: code for rule in rules for code in rule.codes if code.instead_of}
    mistaken = {(fault, one.node) for one in found if one.code in codes for fault in codes[one.code].instead_of}
    return [one for one in found if (one.code, one.node) not in mistaken and (one.code, "") not in mistaken]


def _root(index: int, under: dict[int, int]) -> int:
    while index in under:
        index = under[index]
    return index


def _merged(found: Iterable[Finding]) -> list[Finding]:
    """One fault that several rules or facts establish is one finding with all of their evidence."""
    by_fault: dict[tuple[str, str], Finding] = {}
    for one in found:
        key = (one.code, one.subject)
        if (before := by_fault.get(key)) is None:
            by_fault[key] = one
            continue
        surer = one if one.confidence > before.confidence else before
        evidence = dict.fromkeys((*before.evidence, *one.evidence))
        by_fault[key] = replace(surer, evidence=tuple(evidence)[:MOST_EVIDENCE])
    return list(by_fault.values())
