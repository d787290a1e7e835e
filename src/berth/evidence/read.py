"""Pieces of evidence → facts: each piece by every format that it looks like, and every sentence that is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from berth.evidence.facts import Facts
from berth.evidence.formats import Format
from berth.evidence.formats.all import FORMATS
from berth.evidence.formats.objects import CUT_OUT, OBJECTS
from berth.evidence.piece import Piece
from berth.evidence.scan import scanner

PROBE = 64 * 1024  # bytes that decide what a piece is
MADE_OF_OTHERS = tuple(known for known in FORMATS if known.parts is not None)
SIMPLE = tuple(known for known in FORMATS if known.parts is None)
DEEPEST = 4  # pieces within pieces: a list, in it an event, in it a configuration


def read(pieces: Iterable[Piece], known: Facts | None = None) -> Facts:
    """Facts of all pieces, beside those that are known. Nothing raises: what cannot be read says nothing."""
    facts = Facts() if known is None else known
    for piece in pieces:
        _read(piece, facts, DEEPEST)
    return facts


def _formats_of(piece: Piece) -> Iterator[Format]:
    """By content; what is made of others is read by its parts alone. Objects that were cut out of a list are known to be
    what they are, and there may be very many."""
    if piece.kind == CUT_OUT:
        yield OBJECTS
        return
    head = piece.raw[:PROBE]
    for known in MADE_OF_OTHERS:
        if known.looks_like(head):
            yield known
            return
    for known in SIMPLE:
        if known.looks_like(head):
            yield known


def _read(piece: Piece, facts: Facts, deeper: int) -> None:
    if piece.kind:
        facts.kinds.add(piece.kind)
    parts: list[Piece] = []
    is_whole = True
    for known in _formats_of(piece):
        facts.kinds.update(known.kinds)
        for found in known.read(piece):
            if isinstance(found, Piece):
                parts.append(found)
            else:
                facts.add(found)
        if deeper and (known.parts is not None or known.is_opaque):
            is_whole = False
            for part in known.parts(piece) if known.parts is not None else ():
                _read(part, facts, deeper - 1)  # one by one: parts of a large piece are large
    for part in parts if deeper else ():
        _read(part, facts, deeper - 1)
    if is_whole:
        for said in scanner().scan(piece):
            facts.add(said)
