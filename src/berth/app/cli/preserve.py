"""What a repair would erase is kept first: every piece of evidence as it was read, and the diagnosis of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from berth.base.errors import UNREADABLE, BadInput
from berth.evidence.piece import Piece

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
LONGEST_NAME = 120


class Preserved:
    """A folder that gets every piece before it is read. `--from FOLDER` reads them again.

    Raises BadInput, exit code 3, where it cannot be written: nothing is repaired on evidence that is lost.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._written = 0

    def __call__(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """The same pieces, once they are written."""
        for piece in pieces:
            if piece.damage and not piece.raw:
                yield piece
                continue
            self._written += 1
            name = _UNSAFE.sub("_", piece.source or piece.kind or "evidence").strip("_.")[:LONGEST_NAME] or "evidence"
            place = Path(self._folder, f"nodes/{_UNSAFE.sub('_', piece.node)}" if piece.node else "cluster")
            try:
                place.mkdir(parents=True, exist_ok=True)
                (place / f"{self._written:05}-{piece.kind or 'text'}-{name}").write_bytes(piece.raw)
            except OSError as error:
                problem = f"it cannot be written: {error.strerror}."
                raise BadInput(self._folder, problem, "Name another folder.", UNREADABLE) from None
            yield piece
