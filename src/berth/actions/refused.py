"""What the API server did not take, in the log by lane and kind of failure: how many, and one as an example."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from berth.kube.errors import ApiError

log = logging.getLogger("berth.telling")

_GATHER_S = 1.0  # after the first, so that a server that goes away is one line and not one for each write
_QUIET_S = 60.0  # between two lines of the same kind


@dataclass(slots=True)
class _Kind:
    """`count` of them since the last line, which was at `told_s`."""

    count: int = 0
    item: Any = None
    said: str = ""
    told_s: float = float("-inf")
    timer: asyncio.TimerHandle | None = None


class Refused:
    """`take` each failure, on the event loop. The lines come by themselves, the last ones with `close`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kinds: dict[tuple[str, int, str], _Kind] = {}

    def take(self, lane: str, item: Any, error: ApiError) -> None:
        key = (lane, error.status, error.reason)
        kind = self._kinds.setdefault(key, _Kind())
        kind.count += 1
        kind.item, kind.said = item, error.sentence
        if kind.timer is None:
            pause = max(_GATHER_S, kind.told_s + _QUIET_S - self._clock())
            kind.timer = asyncio.get_running_loop().call_later(pause, self._tell, lane, kind)

    def close(self) -> None:
        for (lane, _, _), kind in self._kinds.items():
            if kind.timer is not None:
                kind.timer.cancel()
                self._tell(lane, kind)

    def _tell(self, lane: str, kind: _Kind) -> None:
        said = {"lane": lane, "count": kind.count, "item": str(kind.item), "said": kind.said}
        log.info("writes were refused", extra=said)
        kind.count, kind.told_s, kind.timer = 0, self._clock(), None
