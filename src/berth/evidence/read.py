"""Pieces of evidence → facts: each piece by every format that it looks like, and every sentence that is known."""

from __future__ import annotations

from collections.abc import Iterable

from berth.evidence.facts import Facts
from berth.evidence.formats.all import FORMATS
from berth.evidence.piece import Piece
from berth.evidence.scan import scanner

PROBE = 64 * 1024  # bytes that decide what a piece is


def read(pieces: Iterable[Piece]) -> Facts:
    """Facts of all pieces. Nothing raises: what cannot be read says nothing."""
    facts = Facts()
    for piece in pieces:
        head = piece.raw[:PROBE]
        if piece.kind:
            facts.kinds.add(piece.kind)
        for known in FORMATS:
            if known.looks_like(head):
                facts.kinds.update(known.kinds)
                for fact in known.read(piece):
                    facts.add(fact)
        for said in scanner().scan(piece):
            facts.add(said)
    return facts
