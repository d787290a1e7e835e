"""What was asked for lately: a memory that stays small however long a process lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST = 2_048  # labels that one template gives come together; each kept for nothing costs half a kilobyte


class Lately(Generic[K, V]):
    """Values by key, made where they are not known. Forgets what was not asked for while `most` others were.

    At most twice `most` are kept: those that were asked for in this round, and those of the round before.
    """

    def __init__(self, make: Callable[[K], V], most: int = MOST) -> None:
        self._make = make
        self._most = most
        self._now: dict[K, V] = {}
        self._before: dict[K, V] = {}

    def __call__(self, key: K) -> V:
        try:
            return self._now[key]
        except KeyError:
            pass
        try:
            found = self._before[key]
        except KeyError:
            found = self._make(key)
        if len(self._now) >= self._most:
            self._before, self._now = self._now, {}
        self._now[key] = found
        return found

    def __len__(self) -> int:
        return len(self._now) + len(self._before)


def itself(thing: K) -> K:
    """For `Lately(itself)`: the one object for all that equal it."""
    return thing
