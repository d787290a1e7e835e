"""Documents with a structure: one file a format, each with its parser and its kinds of facts, and the list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from berth.evidence.fact import Fact
from berth.evidence.piece import Piece


class Format(Struct, frozen=True):
    """A format that is read.

    `looks_like` decides by content, cheaply: it sees the first 64 KiB, in bytes. `read` takes the whole piece, whatever
    it holds: truncated, mixed, or something else after all; it never raises, and what it cannot read it leaves out.
    Where a format holds other evidence, `read` gives that as pieces among its facts. An opaque one is read by these
    alone, so that a sentence inside it is found once, unescaped, and with the node and pod that it is about.
    """

    name: str
    kinds: tuple[str, ...]  # of evidence that this is: what Facts.looked_at knows afterwards
    looks_like: Callable[[bytes], object]  # truthy where it is
    read: Callable[[Piece], Iterable[Fact | Piece]]
    is_opaque: bool = False
