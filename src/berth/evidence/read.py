"""Pieces of evidence → facts: each piece by every format that it looks like, and every sentence that is known."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from berth.evidence.damage import Damage
from berth.evidence.fact import Fact, Origin
from berth.evidence.facts import Facts
from berth.evidence.formats import Format
from berth.evidence.formats.all import FORMATS
from berth.evidence.formats.objects import CUT_OUT, OBJECTS
from berth.evidence.host import host_of
from berth.evidence.piece import Piece
from berth.evidence.scan import scanner

PROBE = 64 * 1024  # bytes that decide what a piece is
OPAQUE = tuple(known for known in FORMATS if known.is_opaque)
PLAIN = tuple(known for known in FORMATS if not known.is_opaque)
DEEPEST = 4  # pieces within pieces: a list, in it an event, in it a configuration


def read(pieces: Iterable[Piece], known: Facts | None = None) -> Facts:
    """Facts of all pieces, beside those that are known. Nothing raises: what cannot be read says nothing."""
    facts = Facts() if known is None else known
    for piece in pieces:
        if piece.damage:
            facts.add(Damage(problem=piece.damage, origin=Origin(source=piece.source)))
        _read(piece, facts, DEEPEST)
    return facts


def _read(piece: Piece, facts: Facts, deeper: int) -> None:
    head = piece.raw[:PROBE]
    if not piece.node and piece.kind != CUT_OUT and (host := host_of(head)):
        piece = replace(piece, node=host)
    if piece.kind:
        facts.saw((piece.kind,), piece.node)
    # Objects that were cut out of a list are known to be what they are, and there may be very many.
    if piece.kind == CUT_OUT and _gives(OBJECTS, piece, facts, deeper):
        return
    for known in OPAQUE if deeper else ():
        if known.looks_like(head) and _gives(known, piece, facts, deeper):
            return
    for known in PLAIN:
        if known.looks_like(head):
            _gives(known, piece, facts, deeper)
    for said in scanner().scan(piece):
        facts.add(said)


def _gives(known: Format, piece: Piece, facts: Facts, deeper: int) -> bool:
    """Take in what a format reads, its parts one by one since those of a large piece are large. False for nothing."""
    gives = False
    for found in known.read(piece):
        if isinstance(found, Damage):
            # A log ends where it was turned over, and what others quote is as short as they like.
            if deeper == DEEPEST and not piece.source.endswith(".log"):
                facts.add(found)
            continue
        gives = True
        if isinstance(found, Fact):
            facts.add(found)
        elif deeper:
            _read(found, facts, deeper - 1)
    if gives:
        facts.saw(known.kinds, piece.node)
    return gives
