"""When those that wait are expected to start: worked out beside the loop that decides, once in a while."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from berth.model.history import Ended
from berth.model.queue import Queue
from berth.model.snapshot import Snapshot
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.starts import Start
from berth.scheduling.starts_watch import EVERY_S, Watch

log = logging.getLogger("berth.scheduler")

WIDTH = "berth.dev/forecast-width"  # annotation of the Lease: the factor that steers how wide intervals are
AGAIN_S = 300.0  # while somebody waits and nothing changes

Expect = Callable[[Mapping[str, tuple[float, float, float]]], None]


class Foretelling:
    """`offer` is given each plan once it was told, and returns at once. `expect` is told of what is expected, by
    identity, at most every `every_s`; the work is done in a thread of its own, never twice at a time. What the next
    leader should know is put into `leaves`."""

    def __init__(
        self, expect: Expect, policy: Policy, *, leaves: dict[str, str] | None = None, every_s: float = EVERY_S,
        again_s: float = AGAIN_S, now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._expect = expect
        self._leaves = {} if leaves is None else leaves
        self._watch = Watch(policy)
        self._every_s, self._again_s = every_s, again_s
        self._now = now
        self._latest: tuple[Plan, Snapshot] | None = None
        self._ended: tuple[list[Ended], Sequence[Queue]] | None = None
        self._is_new = asyncio.Event()

    def offer(self, plan: Plan, snapshot: Snapshot) -> None:
        """The latest plan; of what was offered before and not looked at only who started is remembered."""
        self._watch.notice(plan, snapshot.now_s)
        self._latest = (plan, snapshot) if plan.verdicts else None
        if self._latest is not None:
            self._is_new.set()

    def inherit(self, left: Mapping[str, str]) -> None:
        """What the last leader has left for us."""
        with suppress(KeyError, ValueError):
            self._watch.resume(float(left[WIDTH]))

    def remember(self, ended: list[Ended], queues: Sequence[Queue]) -> None:
        """What has run and ended before anything was offered."""
        self._ended = ended, queues

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            waits = self._latest is not None
            try:
                async with asyncio.timeout(self._again_s if waits else None):
                    await self._is_new.wait()
            except TimeoutError:
                pass
            self._is_new.clear()
            if self._latest is not None:
                await self._look(*self._latest)
                await asyncio.sleep(self._every_s)

    async def _look(self, plan: Plan, snapshot: Snapshot) -> None:
        began = time.perf_counter()
        try:
            found = await asyncio.to_thread(self._looked, replace(snapshot, now_s=self._now()), plan)
        except Exception:  # whatever it is: who decides goes on without a forecast
            log.exception("no expected starts")
            return
        log.debug("expected starts", extra={"seconds": round(time.perf_counter() - began, 4), "workloads": len(found)})
        self._leaves[WIDTH] = f"{self._watch.wider:.3f}"
        self._expect({
            snapshot.workloads[w].identity: (start.p10_s, start.p50_s, start.p90_s) for w, start in found.items()
        })  # fmt: skip

    def _looked(self, snapshot: Snapshot, plan: Plan) -> Mapping[int, Start]:
        """In the thread that the watch is used from."""
        ended, self._ended = self._ended, None
        if ended is not None:
            self._watch.remember(*ended)
        return self._watch.look(snapshot, plan)
