"""What a look at the machine gives: facts, texts to be read for facts, and what could not be seen."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from berth.evidence.fact import Fact
from berth.evidence.piece import Piece


class NotSeen(Struct, frozen=True):
    """Something that was looked for and gave no answer. It is told, and never taken for an absence."""

    what: str  # "NVML", "the kernel log"
    why: str  # "no libnvidia-ml.so.1 on this machine", "no answer within 5 s"


Sight = Fact | Piece | NotSeen


def parted(seen: Iterable[Sight]) -> tuple[list[Fact], list[Piece], list[NotSeen]]:
    facts: list[Fact] = []
    pieces: list[Piece] = []
    missing: list[NotSeen] = []
    for one in seen:
        if isinstance(one, Piece):
            pieces.append(one)
        elif isinstance(one, NotSeen):
            missing.append(one)
        else:
            facts.append(one)
    return facts, pieces, missing


def because(error: OSError) -> str:
    """Why a file could not be read, in words."""
    return (error.strerror or type(error).__name__).lower()
