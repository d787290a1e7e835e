"""What a repair would erase is kept first: every piece of evidence as it was read, and the diagnosis of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from berth.base.errors import UNREADABLE, BadInput
from berth.evidence.piece import Piece

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
LONGEST_NAME = 120


def preserved(pieces: Iterable[Piece], folder: str) -> Iterator[Piece]:
    """The same pieces, each written into the folder before it is read. `--from FOLDER` reads them again.

    Raises BadInput, exit code 3, where the folder cannot be written: nothing is repaired on evidence that is lost.
    """
    root = Path(folder)
    for number, piece in enumerate(pieces, 1):
        name = _UNSAFE.sub("_", piece.source or piece.kind or "evidence").strip("_.")[:LONGEST_NAME] or "evidence"
        place = root / (f"nodes/{_UNSAFE.sub('_', piece.node)}" if piece.node else "cluster")
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{number:05}-{piece.kind or 'text'}-{name}").write_bytes(piece.raw)
        except OSError as error:
            problem = f"it cannot be written: {error.strerror}."
            raise BadInput(folder, problem, "Name another folder.", UNREADABLE) from None
        yield piece
