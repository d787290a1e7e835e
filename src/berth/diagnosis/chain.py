"""Which finding explains which: the deepest cause first, what follows from it under it, independent ones beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from heapq import merge

from berth.diagnosis.finding import Finding
from berth.diagnosis.words import LEADS_TO, LIKELY, POSSIBLE, SET_SO, WEAK, Effect
from berth.evidence.fact import NO_PCI

NO_CAUSE = "diagnosis-rule"  # the class of what is no cause by itself


def explained(findings: Sequence[Finding]) -> dict[int, int]:
    """Index of a consequence → index of the finding that explains it, the deepest of all that do."""
    order = sorted(range(len(findings)), key=lambda index: _depth(findings[index]))
    answer: dict[int, int] = {}
    # Causes so far, by their node: those of other nodes need not be looked at, and a large cluster has very many.
    causes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, upper in enumerate(order):
        node = findings[upper].node
        near = merge(causes[""], causes[node]) if node else merge(*causes.values())
        below = next((lower for _, lower in near if explains(findings[lower], findings[upper])), None)
        if below is None:
            causes[node].append((place, upper))
        else:
            answer[upper] = below
    return answer


def explains(lower: Finding, upper: Finding) -> bool:
    """Would the second go away with the first? A weak finding explains nothing; where both name a node or a device it
    must be the same one, and what is known of a pod alone explains nothing of a node."""
    if lower.confidence <= WEAK or lower.layer > upper.layer or lower.code == upper.code or _is_its_own(upper):
        return False
    if lower.node and upper.node and lower.node != upper.node:
        return False
    if lower.pod and upper.node and not lower.node:  # nobody knows where the pod was
        return False
    if lower.pci != NO_PCI and upper.pci != NO_PCI and lower.pci != upper.pci and lower.layer == upper.layer:
        return False
    if lower.effect == upper.effect:
        # What only says that somebody waited in vain goes away with any reason for it.
        return lower.layer < upper.layer or upper.cause_class == NO_CAUSE != lower.cause_class
    return upper.effect in effects_of(lower.effect)


def _is_its_own(one: Finding) -> bool:
    """Somebody set it so, and the evidence says so: it stays when what is below is mended."""
    return one.cause_class in SET_SO and one.confidence >= LIKELY


@cache
def effects_of(effect: Effect) -> frozenset[Effect]:
    """All that does not work then, the effect itself left out where nothing leads back to it."""
    found: set[Effect] = set()
    ahead = [effect]
    while ahead:
        for following in LEADS_TO.get(ahead.pop(), ()):
            if following not in found:
                found.add(following)
                ahead.append(following)
    return frozenset(found)


def _depth(finding: Finding) -> tuple[bool, int, float, int, str, str]:
    """Hints last; then the deepest layer, the surest, the worst; then by name: order never depends on reading."""
    return (
        finding.confidence <= WEAK,
        int(finding.layer),
        -finding.confidence,
        -int(finding.severity),
        finding.code,
        finding.subject,
    )


def rank(finding: Finding) -> tuple[bool, tuple[bool, int, float, int, str, str]]:
    """What is one of few causes does not go before what is known better, however deep it lies."""
    return finding.confidence <= POSSIBLE, _depth(finding)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=rank)
