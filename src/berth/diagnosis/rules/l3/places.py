"""Facts by the node that they are about: one fault on three nodes is three findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from berth.evidence.fact import Fact

Kind = TypeVar("Kind", bound=Fact)


def by_node(facts: Iterable[Kind]) -> dict[str, list[Kind]]:
    """In the order of their first mention; facts of no known node under ""."""
    found: dict[str, list[Kind]] = {}
    for fact in facts:
        found.setdefault(fact.node, []).append(fact)
    return found


def said_of(values: Iterable[str]) -> str:
    """The first that says something: a sentence may name its resource in one place and not in another."""
    return next((value for value in values if value), "")
