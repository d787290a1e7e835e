"""Lines out of a stream of bytes that is cut anywhere."""

from __future__ import annotations


class Lines:
    """Takes pieces as they arrive, gives whole lines; what follows the last newline waits for the next piece."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def take(self, piece: bytes) -> list[bytes]:
        """The lines that `piece` completes, without their newlines; empty lines are left out."""
        whole, newline, rest = piece.rpartition(b"\n")
        if not newline:
            # Only collected, not joined: a large object that comes in many pieces would be copied each time.
            self._begun.append(piece)
            return []
        if self._begun:
            self._begun.append(whole)
            whole = b"".join(self._begun)
            self._begun.clear()
        if rest:
            self._begun.append(rest)
        return [line for line in whole.split(b"\n") if line]
