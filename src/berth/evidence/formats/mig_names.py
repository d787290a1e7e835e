"""Names of partitions in a text: `nvidia.com/mig-7g.80gb`, and the labels `nvidia.com/mig-7g.80gb.count` about them.

The memory in a profile's name is rounded, and components and their releases have rounded it otherwise. Profiles of one
card differ by much more than a GiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from berth.evidence.fact import Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

LARGEST = 64 * 1024  # bytes: a longer text may be of several kinds of card, whose profiles have names of their own

_NAME = re.compile(r"\bmig-(\d)g\.(\d+)gb\b(\.(?:count|product|memory|replicas|engines|slices|multiprocessors)\b)?")

Profile = tuple[int, int]  # slices, GiB


class MigNamed(Fact, frozen=True, kw_only=True):
    """The profiles that a text names, and those of them that it names in labels alone."""

    profiles: tuple[Profile, ...]
    in_labels: tuple[Profile, ...]


def looks_like(head: bytes) -> object:
    return len(head) <= LARGEST and b"mig-" in head


def read(piece: Piece) -> Iterator[Fact]:
    found = _NAME.findall(piece.text)
    if not found:
        return
    profiles, offered = profiles_in(piece.text), {(int(a), int(b)) for a, b, label in found if not label}
    line = next(line for line in piece.text.splitlines() if _NAME.search(line))
    yield MigNamed(
        origin=Origin(piece.source, piece.kind, line.strip()[:600], node=piece.node, pod=piece.pod),
        profiles=profiles,
        in_labels=tuple(one for one in profiles if one not in offered),
    )


def profiles_in(text: str) -> tuple[Profile, ...]:
    return tuple(sorted({(int(slices), int(gib)) for slices, gib, _ in _NAME.findall(text)}))


def rounded_otherwise(profiles: Iterable[Profile]) -> tuple[Profile, Profile] | None:
    """Two that differ by one GiB and nothing else, the smaller first."""
    for one, other in pairwise(sorted(set(profiles))):
        if one[0] == other[0] and other[1] == one[1] + 1:
            return one, other
    return None


FORMAT = Format("names of partitions", (), looks_like, read)
