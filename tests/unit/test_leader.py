"""Leadership: never two at once, whatever clocks say; a Lease is judged by how long it was seen unchanged."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest

from berth.app.scheduler import leader
from berth.app.scheduler.leader import Leadership, Terms
from berth.kube.errors import ApiError, Unreachable
from berth.kube.lease import Lease, LeaseMeta, LeaseSpec, marked, serves

TERMS = Terms("berth", "berth", "", lease_s=15.0, renew_s=10.0, retry_s=2.0)


class Store:
    """One Lease with versions, as the API server keeps it."""

    def __init__(self):
        self.lease: Lease | None = None
        self.version = 0
        self.is_up = True

    def put(self, spec, meta=None):
        self.version += 1
        meta = msgspec.structs.replace(
            meta or LeaseMeta(name="berth", namespace="berth"), resource_version=str(self.version)
        )  # fmt: skip
        self.lease = Lease(meta, spec)
        return self.lease

    async def read(self, client, namespace, name, timeout_s=0):
        self.check()
        if self.lease is None:
            raise ApiError(404, "NotFound", "", verb="GET", path="")
        return self.lease

    async def create(self, client, namespace, name, spec, serves=(), timeout_s=0):
        self.check()
        if self.lease is not None:
            raise ApiError(409, "AlreadyExists", "", verb="POST", path="")
        return self.put(spec, marked(LeaseMeta(name=name, namespace=namespace), serves))

    async def write(self, client, lease, timeout_s=0):
        self.check()
        if lease.metadata.resource_version != str(self.version):
            raise ApiError(409, "Conflict", "", verb="PUT", path="")
        return self.put(lease.spec, lease.metadata)

    def check(self):
        if not self.is_up:
            raise Unreachable("down", verb="", path="")


@pytest.fixture
def store(monkeypatch):
    made = Store()
    monkeypatch.setattr(leader, "read_lease", made.read)
    monkeypatch.setattr(leader, "create_lease", made.create)
    monkeypatch.setattr(leader, "write_lease", made.write)
    return made


class Candidate:
    def __init__(self, name, clock):
        terms = Terms(TERMS.namespace, TERMS.name, name, TERMS.lease_s, TERMS.renew_s, TERMS.retry_s)
        self.leadership = Leadership(None, terms, clock=lambda: clock[0])

    def turn(self):
        with contextlib.suppress(ApiError):
            asyncio.run(self.leadership._turn())
        return self.leadership.is_leader()


def two(offset=0.0):
    first, second = [0.0], [offset]
    return Candidate("one", first), Candidate("two", second), first, second


def pass_time(seconds, *clocks):
    for clock in clocks:
        clock[0] += seconds


def test_the_first_leads_and_the_second_waits(store):
    one, two_, *_ = two()
    assert one.turn()
    assert not two_.turn()
    assert two_.leadership.holder == "one"


def test_the_lease_says_which_names_are_served(store):
    one = Leadership(None, Terms("berth", "berth", "one", serves=("berth", "volcano")))
    asyncio.run(one._turn())
    assert serves(store.lease) == {"berth", "volcano"}
    store.put(store.lease.spec)  # as one of an earlier version has it
    asyncio.run(one._turn())
    assert one.is_leader() and serves(store.lease) == {"berth", "volcano"}


def test_what_a_leader_leaves_is_there_for_the_next_one(store):
    terms = Terms("berth", "berth", "one", serves=("berth",))
    one = Leadership(None, terms)
    asyncio.run(one._turn())
    assert one.inherited == {}
    one.leaves["berth.dev/forecast-width"] = "1.2"
    asyncio.run(one._turn())
    asyncio.run(one.release())
    other = Leadership(None, Terms("berth", "berth", "two", serves=("berth",)))
    asyncio.run(other._turn())
    assert other.is_leader() and other.inherited["berth.dev/forecast-width"] == "1.2"
    asyncio.run(other._turn())
    assert store.lease.metadata.annotations["berth.dev/forecast-width"] == "1.2", "also while it has nothing to say"


def test_a_leader_that_cannot_renew_stops_before_another_can_begin(store):
    one, other, a, b = two(offset=1_000_000.0)  # clocks need not agree
    assert one.turn()
    assert not other.turn()
    store_is_down_for = 0.0
    while not other.leadership.is_leader():
        pass_time(0.5, a, b)
        store_is_down_for += 0.5
        store.is_up = False
        one.turn()
        store.is_up = True
        other.turn()
        assert not (one.leadership.is_leader() and other.leadership.is_leader())
        assert store_is_down_for < 30
    assert store_is_down_for > TERMS.lease_s
    assert other.leadership.epoch == one.leadership.epoch + 1
    assert other.leadership.has_predecessor


def test_a_leader_that_renews_keeps_its_epoch(store):
    one, other, a, b = two()
    one.turn()
    for _ in range(40):
        pass_time(2.0, a, b)
        assert one.turn()
        assert not other.turn()
    assert one.leadership.epoch == 1


def test_a_lease_that_is_given_back_is_taken_at_once(store):
    one, other, *_ = two()
    one.turn()
    asyncio.run(one.leadership.release())
    assert not one.leadership.is_leader()
    assert other.turn()
    assert other.leadership.epoch == 2
    assert not other.leadership.has_predecessor


def test_a_lease_that_was_taken_by_force_ends_the_leadership_as_soon_as_it_is_seen(store):
    one, *_ = two()
    one.turn()
    store.put(LeaseSpec(holder_identity="thief", lease_duration_seconds=15, lease_transitions=7))
    assert not one.turn()


def test_of_two_that_ask_at_the_same_moment_one_wins(store):
    one, other, a, b = two()
    one.turn()
    pass_time(60.0, a, b)
    third = Candidate("three", b)
    other.turn(), third.turn()  # both have seen it now for the first time
    pass_time(16.0, a, b)

    async def both():
        return await asyncio.gather(other.leadership._turn(), third.leadership._turn(), return_exceptions=True)

    asyncio.run(both())
    assert [other.leadership.is_leader(), third.leadership.is_leader()].count(True) == 1


def test_the_time_of_the_question_counts_not_that_of_the_answer(store):
    clock = [0.0]
    one = Candidate("one", clock)

    async def slowly(client, namespace, name, spec, serves=(), timeout_s=0):
        clock[0] += 9.0
        return store.put(spec)

    leader.create_lease = slowly
    assert one.turn()
    clock[0] += 1.5
    assert not one.leadership.is_leader()


# ---- what is told


def told(store, caplog, steps, failure=None, name="one"):
    """(message, fields) of the log while a candidate takes a turn at each of these times."""
    clock, times = [0.0], iter(steps)
    terms = Terms("berth", "berth", name)
    candidate = Leadership(None, terms, clock=lambda: clock[0])

    async def turn_at_the_next_time():
        clock[0] = next(times)
        if failure is not None:
            raise failure
        await before()

    before, candidate._turn = candidate._turn, turn_at_the_next_time

    async def no_sleep(seconds):
        if clock[0] == steps[-1]:
            raise asyncio.CancelledError

    async def work():
        with pytest.MonkeyPatch.context() as patched, contextlib.suppress(asyncio.CancelledError):
            patched.setattr(leader.asyncio, "sleep", no_sleep)
            await candidate.run()

    with caplog.at_level("INFO", "berth.leader"):
        asyncio.run(work())
    return [record.message for record in caplog.records]


def test_who_stands_by_says_for_whom_once(store, caplog):
    store.put(LeaseSpec(holder_identity="other", lease_duration_seconds=15, lease_transitions=3))
    assert told(store, caplog, (0.0, 2.0, 4.0)) == ["stands by"]
    assert (caplog.records[0].leads, caplog.records[0].lease) == ("other", "berth/berth")
    caplog.clear()
    assert told(store, caplog, (0.0, 2.0, 16.0, 18.0)) == ["stands by", "leads"]


@pytest.mark.parametrize(("failure", "said"), [
    (ApiError(403, "Forbidden", 'leases is forbidden: User "x" cannot get resource "leases"'),
     "this replica cannot lead: it needs get, create and update on leases.coordination.k8s.io in namespace berth, "
     "for Lease berth"),
    (ApiError(404, "NotFound", 'namespaces "berth" not found'),
     "this replica cannot lead: the namespace berth does not exist. Make it, or set leaderElection.namespace"),
    (Unreachable("the connection was refused"), "the Lease could not be read or renewed"),
])  # fmt: skip
def test_a_trouble_is_told_once_and_then_each_minute(store, caplog, failure, said):
    assert told(store, caplog, (0.0, 2.0, 58.0, 61.0, 63.0), failure) == [said, said]
