"""Pieces of evidence → facts: each piece by every format that it looks like, and every sentence that is known."""

from __future__ import annotations

from collections.abc import Iterable

from berth.evidence.facts import Facts
from berth.evidence.formats.all import FORMATS
from berth.evidence.piece import Piece
from berth.evidence.scan import scanner

PROBE = 64 * 1024  # bytes that decide what a piece is
DEEPEST = 4  # pieces within pieces: a list, in it an event, in it a configuration


def read(pieces: Iterable[Piece], known: Facts | None = None) -> Facts:
    """Facts of all pieces, beside those that are known. Nothing raises: what cannot be read says nothing."""
    facts = Facts() if known is None else known
    for piece in pieces:
        _read(piece, facts, DEEPEST)
    return facts


def _read(piece: Piece, facts: Facts, deeper: int) -> None:
    head = piece.raw[:PROBE]
    if piece.kind:
        facts.kinds.add(piece.kind)
    is_whole = True
    for known in FORMATS:
        if not known.looks_like(head):
            continue
        facts.kinds.update(known.kinds)
        for fact in known.read(piece):
            facts.add(fact)
        if known.parts is not None and deeper:
            is_whole = False
            for part in known.parts(piece):
                _read(part, facts, deeper - 1)
    if is_whole:
        for said in scanner().scan(piece):
            facts.add(said)
