"""What a repair would erase is kept first: every piece of evidence as it was read, and the diagnosis of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from berth.base.errors import UNREADABLE, BadInput, unwritten
from berth.base.units import counted
from berth.evidence.damage import ENDING
from berth.evidence.piece import Piece

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
LONGEST_NAME = 120
PRIVATE = 0o700


class Preserved:
    """A folder that gets every piece before it is read. `--from FOLDER` reads them again.

    Raises BadInput: exit code 2 where it holds anything, as two cases in one folder are none; 3 where it cannot be
    written, as nothing is repaired on evidence that is lost.
    """

    def __init__(self, folder: str) -> None:
        if _holds_anything(folder):
            raise BadInput(folder, "it holds something already, another case maybe.", "Name a new folder.")
        self._folder = folder
        self._written = 0

    def __call__(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """The same pieces, once they are written."""
        for piece in pieces:
            self._written += 1
            name = _UNSAFE.sub("_", piece.source or piece.kind or "evidence").strip("_.")[:LONGEST_NAME] or "evidence"
            name += ENDING if piece.damage else ""
            place = Path(self._folder, f"nodes/{_UNSAFE.sub('_', piece.node)}" if piece.node else "cluster")
            try:
                # Logs and environments hold tokens: what is kept is its owner's.
                Path(self._folder).mkdir(PRIVATE, parents=True, exist_ok=True)
                place.mkdir(parents=True, exist_ok=True)
                (place / f"{self._written:05}-{piece.kind or 'text'}-{name}").write_bytes(piece.raw)
            except OSError as error:
                raise unwritten(self._folder, error, "Name another folder.") from None
            yield piece


def kept_in(folder: str) -> str:
    """What was written, for whoever looks for it."""
    count = sum(path.is_file() for path in Path(folder).rglob("*"))
    return f"kept in {folder}: {counted(count, 'piece')} of evidence (berth doctor --from {shlex.quote(folder)})"


def _holds_anything(folder: str) -> bool:
    try:
        return any(Path(folder).iterdir())
    except FileNotFoundError:
        return False
    except OSError as error:
        raise BadInput(folder, f"it cannot be written: {error.strerror}.", "Name another folder.", UNREADABLE) from None
