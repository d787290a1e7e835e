"""The time in which this replica decides: from the moment at which it knows what the last leader did."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from berth.app.scheduler.leader import Leadership
from berth.sources.live.follow import Follower

log = logging.getLogger("berth.leader")

SETTLE_S = 1.0  # beside the time between the last leader's last write and the end of its Lease


class Tenure:
    """`may_write` is asked before every write. `begun` is called whenever a tenure begins.

    `goes_on` is called whenever this replica may write again within its tenure: it could not renew its Lease for a
    moment, and what was asked of `may_write` then has not been done. Without an election the only replica writes
    from the first list on.
    """

    def __init__(
        self,
        leadership: Leadership | None,
        follower: Follower,
        begun: Callable[[], Awaitable[None]],
        goes_on: Callable[[], None] = lambda: None,
    ) -> None:
        self._leadership = leadership
        self._follower = follower
        self._begun = begun
        self._goes_on = goes_on
        self._epoch = -1

    @property
    def epoch(self) -> int:
        """The number of this tenure: every leader's is higher than that of the one before."""
        return self._leadership.epoch if self._leadership is not None else 0

    def may_write(self) -> bool:
        if self._leadership is None:
            return self._epoch == 0
        return self._epoch == self._leadership.epoch and self._leadership.is_leader()

    async def run(self) -> None:
        """Until cancelled."""
        await self._follower.synced()
        log.info("synced")
        leadership = self._leadership
        if leadership is None:
            await self._begin(0)
            return
        while True:
            leadership.won.clear()
            if leadership.epoch != self._epoch:
                await self._take_over(leadership)
            elif leadership.is_leader():
                self._goes_on()
            await leadership.won.wait()

    async def _take_over(self, leadership: Leadership) -> None:
        """Wait until what the last leader sent must have arrived, look at it, and only then begin."""
        if not leadership.is_leader():
            return
        epoch = leadership.epoch
        if self._follower.began_s < leadership.won_s:
            if leadership.has_predecessor:
                await asyncio.sleep(SETTLE_S)
            await self._follower.refresh()
        if leadership.is_leader() and leadership.epoch == epoch:  # else it is told of the next that it wins
            await self._begin(epoch)

    async def _begin(self, epoch: int) -> None:
        self._epoch = epoch
        log.info("decides", extra={"epoch": epoch})
        await self._begun()
