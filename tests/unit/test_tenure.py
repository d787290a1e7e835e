"""Who decides, and when: a leader that could not renew for a moment goes on, also where nobody saw the moment."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from test_leader import Store

from berth.app.scheduler import leader, tenure
from berth.app.scheduler.leader import Leadership, Terms
from berth.app.scheduler.tenure import Tenure
from berth.kube.lease import LeaseSpec

RENEW_S = 10.0


class Lists:
    """What a follower is asked."""

    began_s = float("-inf")
    refreshed = 0

    async def synced(self):
        pass

    async def refresh(self):
        self.refreshed += 1


class Play:
    """A candidate with a clock that tests move. `told` has what the tenure has called, in order."""

    def __init__(self, store):
        self.store = store
        self.clock = 100.0
        self.told = []
        self.lists = Lists()
        self.leadership = Leadership(None, Terms("berth", "it", "one", 15.0, RENEW_S, 2.0), clock=lambda: self.clock)
        self.tenure = Tenure(self.leadership, self.lists, self.begun, lambda: self.told.append("goes on"))

    async def begun(self):
        self.told.append("begins")

    async def turn(self, takes_s=0.0):
        """One look at the Lease; the answer comes after so long."""
        store, before = self.store, self.store.check

        def late():
            self.clock += takes_s / 2  # a read and a write
            before()

        store.check = late
        try:
            with contextlib.suppress(leader.ApiError):
                await self.leadership._turn()
        finally:
            store.check = before
        for _ in range(10):
            await asyncio.sleep(0)


@pytest.fixture
def store(monkeypatch):
    made = Store()
    monkeypatch.setattr(leader, "read_lease", made.read)
    monkeypatch.setattr(leader, "create_lease", made.create)
    monkeypatch.setattr(leader, "write_lease", made.write)
    monkeypatch.setattr(tenure, "SETTLE_S", 0.0)
    return made


def play(store, story):
    async def work():
        one = Play(store)
        running = asyncio.create_task(one.tenure.run())
        try:
            await one.turn()
            assert one.told == ["begins"] and one.tenure.may_write()
            one.told.clear()
            await story(one)
        finally:
            running.cancel()

    asyncio.run(work())


def test_who_renews_in_time_is_told_nothing(store):
    async def story(one):
        for _ in range(5):
            one.clock += 0.9 * RENEW_S
            await one.turn()
        assert one.told == []

    play(store, story)


def test_who_could_not_renew_for_a_while_goes_on_in_its_term(store):
    async def story(one):
        store.is_up = False
        one.clock += RENEW_S + 0.1
        await one.turn()
        assert not one.tenure.may_write() and one.told == []
        store.is_up = True
        await one.turn()
        assert one.tenure.may_write() and one.told == ["goes on"] and one.lists.refreshed == 1

    play(store, story)


def test_a_moment_that_lies_within_one_renewal_is_told_too(store):
    """It led when it asked, and when it had the answer; in between it did not."""

    async def story(one):
        one.clock += 0.5 * RENEW_S
        assert one.tenure.may_write()
        await one.turn(takes_s=0.8 * RENEW_S)
        assert one.tenure.may_write() and one.told == ["goes on"]

    play(store, story)


def test_an_answer_that_comes_when_its_time_is_over_wins_nothing_but_the_next_does(store):
    async def story(one):
        await one.turn(takes_s=1.1 * RENEW_S)
        assert not one.tenure.may_write() and one.told == []
        await one.turn()
        assert one.told == ["goes on"]

    play(store, story)


def test_a_new_term_begins_anew(store):
    async def story(one):
        store.put(LeaseSpec(holder_identity="other", lease_duration_seconds=15, lease_transitions=7))
        await one.turn()
        assert not one.tenure.may_write()
        one.clock += 16
        await one.turn()
        await asyncio.sleep(0.01)
        assert one.told == ["begins"] and one.tenure.epoch == 8 and one.lists.refreshed == 2

    play(store, story)


def test_a_term_that_could_not_begin_for_a_lapse_begins_when_the_lapse_is_over(store):
    async def story(one):
        store.put(LeaseSpec(holder_identity="other", lease_duration_seconds=15, lease_transitions=7))
        await one.turn()
        one.clock += 16

        async def slowly():
            one.clock += RENEW_S + 1  # lists that take longer than a Lease is good for

        one.lists.refresh = slowly
        await one.turn()
        await asyncio.sleep(0.01)
        assert one.told == []
        one.lists.refresh = Lists().refresh
        await one.turn()
        await asyncio.sleep(0.01)
        assert one.told == ["begins"] and one.tenure.may_write()

    play(store, story)
