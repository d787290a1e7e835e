"""What was refused, and how long it is left alone for it: pods by the API server, nodes by their kubelet.

Each refusal of the same doubles the pause; one that has been over for as long again is forgotten.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

K = TypeVar("K", bound=Hashable)


class Refusal(Struct, frozen=True, gc=False):
    """Why, until when (seconds since the epoch), and after how long a pause it is forgotten."""

    why: str
    until_s: float
    pause_s: float


class Refusals(Generic[K]):
    """By what was refused. `first_s` is the first pause, `most_s` the longest."""

    def __init__(self, first_s: float, most_s: float) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._by_key: dict[K, Refusal] = {}
        self._open: set[K] = set()  # not over yet, as far as was told

    def add(self, key: K, why: str, now_s: float) -> Refusal:
        before = self._by_key.get(key)
        again = before is not None and now_s < before.until_s + before.pause_s
        pause_s = min(2 * before.pause_s, self._most_s) if again and before is not None else self._first_s
        made = self._by_key[key] = Refusal(why, now_s + pause_s, pause_s)
        self._open.add(key)
        return made

    def of(self, key: K, now_s: float) -> Refusal | None:
        """The refusal that still counts."""
        found = self._by_key.get(key)
        return found if found is not None and now_s < found.until_s else None

    def why(self, key: K) -> str:
        """Of the last refusal that is remembered; "" where there is none."""
        found = self._by_key.get(key)
        return found.why if found is not None else ""

    def remembered_s(self, key: K) -> float:
        """Until when it counts as one of a row of refusals; minus infinity where it does not."""
        found = self._by_key.get(key)
        return found.until_s + found.pause_s if found is not None else float("-inf")

    def __contains__(self, key: K) -> bool:
        """It was refused, and that is not long past."""
        return key in self._by_key

    def drop(self, key: K) -> None:
        self._by_key.pop(key, None)
        self._open.discard(key)

    def over(self, now_s: float) -> list[K]:
        """What need not be left alone any more since the last call; forgets what is long past."""
        ended = [key for key in self._by_key if key in self._open and self._by_key[key].until_s <= now_s]
        self._open.difference_update(ended)
        for key, one in list(self._by_key.items()):
            if one.until_s + one.pause_s <= now_s:
                self.drop(key)
        return ended

    @property
    def next_s(self) -> float:
        """When the next of them ends; infinity where there is none."""
        return min((self._by_key[key].until_s for key in self._open), default=float("inf"))

    def __iter__(self) -> Iterator[K]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)
