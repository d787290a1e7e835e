"""Looking with a limit of time: what hangs is told as not seen, and is not started a second time while it hangs.

A driver that does not answer keeps whoever asks in the kernel, where no signal reaches: the thread is left behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from berth.node.seen import NotSeen, Sight


class Bounded:
    """Runs looks by name, each in a thread of its own."""

    def __init__(self) -> None:
        self._hangs: dict[str, tuple[threading.Thread, float]] = {}
        self.seconds: dict[str, float] = {}  # how long each look took the last time

    def run(self, what: str, look: Callable[[], Iterable[Sight]], timeout_s: float) -> list[Sight]:
        """All that it saw; a NotSeen where it did not end in time. What it raises is told, and does not spread."""
        if (before := self._hangs.get(what)) is not None:
            thread, since = before
            if thread.is_alive():
                return [NotSeen(what, f"still no answer after {time.monotonic() - since:.0f} s")]
            del self._hangs[what]
        found: list[Sight] = []
        problem: list[Exception] = []

        def work() -> None:
            try:
                found.extend(look())
            except Exception as error:
                problem.append(error)

        began = time.monotonic()
        thread = threading.Thread(target=work, name=f"look-{what}", daemon=True)
        thread.start()
        thread.join(timeout_s)
        self.seconds[what] = time.monotonic() - began
        if thread.is_alive():
            self._hangs[what] = (thread, began)
            return [NotSeen(what, f"no answer within {timeout_s:g} s")]
        if problem:
            return [*found, NotSeen(what, f"{type(problem[0]).__name__}: {problem[0]}")]
        return found
