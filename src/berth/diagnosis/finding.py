"""A finding: one fault with its evidence, how it could be wrong, how it is mended, and how the mending is proven."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from berth.diagnosis.words import CauseClass, Effect, Layer, Severity
from berth.evidence.fact import NO_PCI, Fact, Origin, Pci, pci_words
from berth.evidence.facts import Facts

MOST_EVIDENCE = 6  # quotations under one finding


class Fix(Struct, frozen=True):
    """How it is mended. Commands stand in steps as they are typed, with NODE, PCI, NAMESPACE, POD and RESOURCE in the
    place of names; a finding puts in those that it knows."""

    steps: tuple[str, ...]
    risk: str  # what it costs or may break: "the node's pods are lost"
    rollback: str  # how it is undone; "nothing to undo" where nothing is changed


class Code(Struct, frozen=True):
    """What one kind of fault is. Codes are public: never renamed. docs/findings has a section for each, made of it."""

    name: str  # CamelCase
    layer: Layer
    cause_class: CauseClass
    severity: Severity
    effect: Effect  # what does not work as long as it lasts; chains are made of these (chain.py)
    title: str  # one line, lower case, no full stop: "a GPU has fallen off the bus"
    meaning: str  # what it means for whoever computes
    known_by: str  # which facts establish it
    disproved_by: str  # which fact would prove it wrong
    counter_check: str  # the command or look that could disprove it
    fix: Fix
    verify: tuple[str, ...]  # commands with what they must show: "kubectl ... : 8"
    sources: tuple[str, ...]  # documentation, source file, catalogue: where the mechanism is described
    is_trap: bool = False  # looks like a fault and is none
    instead_of: tuple[str, ...] = ()  # of a trap: codes of the faults that it is taken for, which are then not answered

    def finding(
        self,
        cause: str,
        confidence: float,
        evidence: Iterable[Fact | Origin],
        *,
        subject: str = "",
        node: str = "",
        pci: Pci = NO_PCI,
        pod: str = "",
        resource: str = "",
        layer: Layer | None = None,
        cause_class: CauseClass | None = None,
        severity: Severity | None = None,
        fix: Fix | None = None,
        counter_check: str = "",
        effect: Effect | None = None,
    ) -> Finding:
        """One fault of this kind. `cause` is one or two sentences with its numbers and names. What is not given is that
        of the code, or of the evidence (node, pod)."""
        origins = tuple(_origins(evidence))
        node = node or next((one.node for one in origins if one.node), "")
        pod = pod or next((one.pod for one in origins if one.pod), "")
        known = {
            "NODE": node, "PCI": pci_words(pci), "RESOURCE": resource,
            "NAMESPACE": pod.partition("/")[0] if "/" in pod else "", "POD": pod.rpartition("/")[2],
        }  # fmt: skip
        mend = fix or self.fix
        return Finding(
            code=self.name,
            layer=self.layer if layer is None else layer,
            cause_class=cause_class or self.cause_class,
            severity=self.severity if severity is None else severity,
            effect=effect or self.effect,
            subject=subject or _subject(node, pci, pod),
            title=self.title,
            cause=cause,
            confidence=confidence,
            evidence=origins[:MOST_EVIDENCE],
            counter_check=_named(counter_check or self.counter_check, known),
            fix=Fix(
                tuple(_named(step, known) for step in mend.steps),
                _named(mend.risk, known),
                _named(mend.rollback, known),
            ),
            verify=tuple(_named(step, known) for step in self.verify),
            is_trap=self.is_trap,
            node=node,
            pci=pci,
            pod=pod,
        )


class Finding(Struct, frozen=True):
    """One fault that was found."""

    code: str
    layer: Layer
    cause_class: str
    severity: Severity
    effect: Effect
    subject: str  # node, device, pod or component that it is about
    title: str
    cause: str
    confidence: float
    evidence: tuple[Origin, ...]
    counter_check: str
    fix: Fix
    verify: tuple[str, ...]
    is_trap: bool = False
    node: str = ""
    pci: Pci = NO_PCI
    pod: str = ""


class Unconfirmed(Struct, frozen=True):
    """Evidence that a rule would need and that nobody collected."""

    what: str  # "the kernel log of node-3"
    how: str  # the command that gets it
    wanted_for: str  # the code that it would confirm or rule out
    layer: Layer
    node: str = ""


Answer = Finding | Unconfirmed


class Rule(Struct, frozen=True):
    """One file of rules/: the codes that it may answer with, and the question."""

    codes: tuple[Code, ...]
    find: Callable[[Facts], Iterable[Answer]]


_PLACE = re.compile(r"\b(NODE|PCI|RESOURCE|NAMESPACE|POD)\b")


def _named(words: str, known: dict[str, str]) -> str:
    return _PLACE.sub(lambda found: known[found[0]] or found[0], words)


def _origins(evidence: Iterable[Fact | Origin]) -> Iterator[Origin]:
    seen = set[tuple[str, str]]()
    for one in evidence:
        origin = one.origin if isinstance(one, Fact) else one
        if (key := (origin.source, origin.text)) not in seen:
            seen.add(key)
            yield origin


def _subject(node: str, pci: Pci, pod: str) -> str:
    device = f"GPU {pci_words(pci)}" if pci != NO_PCI else ""
    place = f"node {node}" if node else ""
    return " of ".join(part for part in (device, place) if part) or (f"pod {pod}" if pod else "")
