"""A fault that a component states in so many words: the sentence is the finding. Most rules of the upper layers begin
here, and add what other facts know."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from berth.diagnosis.finding import Answer, Code
from berth.diagnosis.words import CauseClass, Layer
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

MOST_NUMBERS = 6  # of like groups in one pattern: resource, resource2, resource3


def value(said: Said, name: str, otherwise: str = "") -> str:
    """A value of a sentence, whichever of its wordings named it: groups of one pattern are numbered."""
    for number in ("", *map(str, range(2, MOST_NUMBERS + 1))):
        if found := said.get(f"{name}{number}"):
            return found
    return otherwise


def values(sayings: Iterable[Said], name: str) -> list[str]:
    """All different ones, in order."""
    return list(dict.fromkeys(found for said in sayings if (found := value(said, name))))


def listed(names: Iterable[str], most: int = 4) -> str:
    """`a, b and 3 more`"""
    known = list(dict.fromkeys(names))
    rest = len(known) - most
    return ", ".join(known[:most]) + (f" and {rest} more" if rest > 0 else "")


def by_place(sayings: Iterable[Said]) -> Iterator[tuple[str, str, list[Said]]]:
    """Node, pod, and what was said there."""
    places: dict[tuple[str, str], list[Said]] = defaultdict(list)
    for said in sayings:
        places[said.origin.node, said.origin.pod].append(said)
    for (node, pod), found in places.items():
        yield node, pod, found


def heard(
    facts: Facts,
    code: Code,
    messages: tuple[str, ...],
    cause: str,
    confidence: float,
    *,
    layer: Layer | None = None,
    cause_class: CauseClass | None = None,
) -> Iterator[Answer]:
    """One finding for each node or pod where one of the messages was said."""
    for node, pod, found in by_place(facts.said(*messages)):
        yield code.finding(cause, confidence, found, node=node, pod=pod, layer=layer, cause_class=cause_class)
