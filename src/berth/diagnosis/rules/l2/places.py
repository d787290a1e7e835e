"""Sentences by the node that they are of: one fault of one node is one finding, however many pods feel it."""

from __future__ import annotations

from collections.abc import Iterable

from berth.evidence.fact import Said


def by_node(said: Iterable[Said]) -> dict[str, list[Said]]:
    """Node → its sentences, in the order of reading; "" holds those whose node nobody named."""
    found: dict[str, list[Said]] = {}
    for one in said:
        found.setdefault(one.node, []).append(one)
    return found


def first(said: Iterable[Said], *names: str) -> str:
    """The first value that one of the sentences has under one of the names; "" where none has."""
    return next((value for one in said for name in names if (value := one.get(name))), "")


def values(said: Iterable[Said], *names: str) -> tuple[str, ...]:
    """All different values under these names, in the order of reading."""
    return tuple(dict.fromkeys(value for one in said for name in names if (value := one.get(name))))
