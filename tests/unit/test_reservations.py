"""Reservations by people: when their windows open, how objects are read, what their status says, and in simulations."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from berth.actions.reservation_status import ReservationSaid, said_of, status_change
from berth.kube.wire_reservations import GPUReservation
from berth.model.as_written import booking_problem
from berth.model.booking import FOR_EVER, Booking, Repeat, Share, Standing, next_change_s
from berth.model.cluster import Node
from berth.model.queue import Queue
from berth.model.snapshot import Snapshot
from berth.model.topology import Level, Topology
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.queueing.cluster import emptied, like_nodes
from berth.simulation.queueing.engine import run
from berth.simulation.queueing.schedule import Overhead
from berth.sources.bookings import booking_of
from berth.sources.job_traces import jobs_of
from berth.sources.live.reservations import Reservations

BERLIN = ZoneInfo("Europe/Berlin")


def berlin(*moment: int) -> float:
    return datetime(*moment, tzinfo=BERLIN).timestamp()


def window(booking: Booking, at_s: float) -> tuple[float, float] | None:
    found = booking.window(at_s)
    return None if found is None else (found.opens_s, found.closes_s)


# ---- windows


def test_one_window_is_from_its_begin_to_its_end() -> None:
    one = Booking("one", from_s=100.0, until_s=200.0)
    assert window(one, 0.0) == window(one, 150.0) == (100.0, 200.0)
    assert window(one, 200.0) is None  # at its end it is over
    assert window(Booking("always"), 5.0) == (0.0, FOR_EVER)


def test_hours_of_working_days_are_by_the_clock_on_the_wall() -> None:
    day = Booking("day", repeat=Repeat((0, 1, 2, 3, 4), 9 * 60, 18 * 60, "Europe/Berlin"))
    friday, monday = berlin(2026, 3, 27, 12), berlin(2026, 3, 30, 9)  # the clocks change in the night to Sunday
    assert window(day, friday) == (berlin(2026, 3, 27, 9), berlin(2026, 3, 27, 18))
    assert window(day, berlin(2026, 3, 27, 18)) == (monday, berlin(2026, 3, 30, 18))
    assert monday - berlin(2026, 3, 27, 9) == 3 * 86_400 - 3600  # an hour less than three days


def test_nights_end_on_the_next_day() -> None:
    night = Booking("night", repeat=Repeat((0,), 22 * 60, 6 * 60, "Europe/Berlin"))
    monday = (berlin(2026, 11, 30, 22), berlin(2026, 12, 1, 6))
    assert window(night, berlin(2026, 11, 30, 12)) == monday
    assert window(night, berlin(2026, 12, 1, 5, 59)) == monday  # opened yesterday
    assert window(night, berlin(2026, 12, 1, 6)) == (berlin(2026, 12, 7, 22), berlin(2026, 12, 8, 6))
    whole_day = Booking("all", repeat=Repeat((1,), 0, 24 * 60, "Europe/Berlin"))
    assert window(whole_day, berlin(2026, 11, 30, 12)) == (berlin(2026, 12, 1), berlin(2026, 12, 2))


def test_what_repeats_begins_and_ends_where_it_says() -> None:
    day = Repeat((), 9 * 60, 18 * 60, "Europe/Berlin")
    some = Booking("some", from_s=berlin(2026, 12, 1, 12), until_s=berlin(2026, 12, 2, 10), repeat=day)
    assert window(some, 0.0) == (berlin(2026, 12, 1, 12), berlin(2026, 12, 1, 18))
    assert window(some, berlin(2026, 12, 1, 20)) == (berlin(2026, 12, 2, 9), berlin(2026, 12, 2, 10))
    assert window(some, berlin(2026, 12, 2, 10)) is None


def test_an_hour_that_is_skipped_comes_as_much_later() -> None:
    early = Booking("early", repeat=Repeat((6,), 2 * 60 + 30, 4 * 60, "Europe/Berlin"))
    opens_s, closes_s = window(early, berlin(2026, 3, 29, 0)) or (0.0, 0.0)
    assert (opens_s, closes_s) == (berlin(2026, 3, 29, 3, 30), berlin(2026, 3, 29, 4))


def test_the_next_change_is_the_first_of_all() -> None:
    some = (Booking("open", until_s=50.0), Booking("ahead", from_s=30.0), Booking("always"))
    assert next_change_s(some, 10.0) == 30.0
    assert next_change_s(some, 30.0) == 50.0
    assert next_change_s(some, 60.0) == FOR_EVER


# ---- objects


def an_object(**spec: Any) -> GPUReservation:
    return msgspec.convert({"metadata": {"name": "r", "uid": "u"}, "spec": spec}, GPUReservation)


def test_an_object_is_read_as_it_is_written() -> None:
    thing = msgspec.convert(
        {
            "metadata": {"name": "nightly"},
            "spec": {
                "queue": "research", "gpus": 16, "gpuClass": "H100-80GB", "domain": {"level": "rack", "name": "r1"},
                "from": "2026-12-01T00:00:00Z", "until": "2026-12-24T00:00:00Z",
                "repeat": {"days": ["Mon", "Fri"], "start": "20:00", "end": "06:30", "timeZone": "Europe/Berlin"},
            },
            "status": {"nodes": [{"name": "a", "gpus": 8}, {"name": "b"}]},
        },
        GPUReservation,
    )  # fmt: skip
    assert booking_of("nightly", thing) == Booking(
        "nightly", "research", nodes=(), level="rack", domain="r1", gpu_class="H100-80GB", gpus=16,
        from_s=1796083200.0, until_s=1798070400.0, repeat=Repeat((0, 4), 1200, 390, "Europe/Berlin"),
        shares=(Share("a", 8), Share("b")),
    )  # fmt: skip


@pytest.mark.parametrize(
    "spec",
    [
        {"gpus": 8},  # for nobody
        {"queue": "q"},  # of nothing
        {"queue": "q", "gpus": 8, "from": "soon"},
        {"queue": "q", "gpus": 8, "repeat": {"start": "25:00"}},
        {"queue": "q", "gpus": 8, "repeat": {"days": ["Monday"]}},
    ],
)
def test_what_cannot_be_understood_keeps_nothing(spec: dict[str, Any]) -> None:
    assert booking_of("r", an_object(**spec)) is None


def test_what_was_decided_counts_until_the_object_is_another() -> None:
    live = Reservations()
    assert live.put(an_object(queue="q", gpus=8))
    assert not live.put(an_object(queue="q", gpus=8)), "nothing new"
    live.stand([Standing("r", (Share("a", 8),), 0.0, FOR_EVER, True, 8, 8, 0), Standing("other", (), 0.0, 1.0, True)])
    assert [one.shares for one in live.now()] == [(Share("a", 8),)]
    assert live.put(an_object(queue="q", gpus=4))
    assert [one.shares for one in live.now()] == [()]
    assert live.drop("r") and not live.now() and not live.drop("r")


# ---- status


def said(**standing: Any) -> ReservationSaid:
    whole = {"opens_s": 0.0, "closes_s": FOR_EVER, "is_open": True, "gpus": 8, "held": 8, "used": 0}
    return ReservationSaid(Standing("r", (Share("a", 8),), **{**whole, **standing}))


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}


def test_the_status_says_where_and_how_much() -> None:
    thing = {"metadata": {"name": "r", "generation": 3}}
    status = status_change(thing, said(used=2), "2026-12-01T00:00:00Z")
    assert status is not None
    assert (status["nodes"], status["gpus"], status["held"], status["used"]) == ([{"name": "a", "gpus": 8}], 8, 8, 2)
    assert conditions(status) == {
        "Accepted": ("True", "Accepted"), "Open": ("True", "WindowOpen"), "Held": ("True", "AllHeld"),
    }  # fmt: skip
    there = {**thing, "status": {**status, "window": {"from": None, "until": None}}}
    assert status_change(there, said(used=2), "2026-12-02T00:00:00Z") is None
    later = status_change(there, said(used=2, held=4), "2026-12-02T00:00:00Z")
    assert later is not None
    assert conditions(later)["Held"] == ("False", "NotAllHeld")
    since = {c["type"]: c["lastTransitionTime"] for c in later["conditions"]}
    assert since == {"Accepted": "2026-12-01T00:00:00Z", "Open": "2026-12-01T00:00:00Z", "Held": "2026-12-02T00:00:00Z"}


def test_what_is_over_says_so() -> None:
    status = status_change({"metadata": {}}, ReservationSaid(None), "2026-12-01T00:00:00Z")
    assert status is not None
    assert conditions(status)["Open"] == ("False", "Over")


def test_a_reservation_that_cannot_be_kept_as_written_says_why() -> None:
    rack = Level("rack", "example.com/rack")
    snapshot = Snapshot(
        (Node("a", {"example.com/rack": "r1"}),), queues=(Queue("q"),), topology=Topology((rack,)),
        bookings=(Booking("r", "q"),),
    )  # fmt: skip
    wrong = {
        "QueueNotFound": Booking("r", "other", gpus=1),
        "NodeNotFound": Booking("r", "q", nodes=("a", "b")),
        "LevelNotFound": Booking("r", "q", level="block", domain="r1"),
        "DomainNotFound": Booking("r", "q", level="rack", domain="r2"),
        "UnknownClass": Booking("r", "q", gpus=1, gpu_class="H100-80GB"),
        "UnknownTimeZone": Booking("r", "q", gpus=1, repeat=Repeat(zone="Mars/Olympus")),
    }
    assert {booking_problem(booking, snapshot)[0]: booking for booking in wrong.values()} == wrong
    assert booking_problem(Booking("r", "q", level="rack", domain="r1"), snapshot) == ("", "")
    assert said_of((), snapshot)["r"].standing is None


# ---- simulations


def simulated(rows: list[tuple[Any, ...]], booking: Booking) -> dict[str, float]:
    """When each job starts on two nodes of four GPUs, the second of which is what the booking keeps."""
    cluster = like_nodes(2, 4)
    kept = replace(booking, nodes=(cluster.nodes[1].name,))
    cluster = replace(cluster, queues=(Queue("ours"), Queue("theirs")), bookings=(kept,))
    policy, tables, jobs = Policy(explains=False), Tables(), jobs_of("some", rows)
    got = run("berth", jobs, cluster, Overhead.Nothing, lambda snapshot: cycle(snapshot, policy, tables))
    return dict(zip(jobs.names, got.start_s.tolist(), strict=True))


def test_in_a_simulation_windows_open_and_close() -> None:
    start = simulated([
        ("long", 0.0, 150.0, 4, 0.0, "theirs"), ("late", 10.0, 30.0, 8, 0.0, "theirs"),
        ("team", 120.0, 20.0, 4, 0.0, "ours"), ("next", 121.0, 20.0, 4, 0.0, "theirs"),
    ], Booking("sprint", "ours", from_s=100.0, until_s=200.0))  # fmt: skip
    assert start["long"] == 0.0
    assert start["team"] == 120.0, "its place was there"
    assert start["next"] == 150.0, "not on what is kept"
    assert start["late"] == 200.0, "on two nodes only after the window"


def test_windows_that_open_for_ever_keep_no_run_going() -> None:
    nights = Booking("nights", "ours", repeat=Repeat((), 20 * 60, 6 * 60))
    assert not np.isfinite(simulated([("wide", 0.0, 10.0, 8, 0.0, "theirs")], nights)["wide"])


def test_a_dump_brings_its_reservations_on_a_clock_that_begins_with_it() -> None:
    seen = replace(like_nodes(2, 4), now_s=1000.0, bookings=(Booking("r", "q", gpus=2, from_s=1500.0, until_s=1600.0),))
    [found] = emptied(seen, "dump").snapshot.bookings
    assert (found.from_s, found.until_s) == (500.0, 600.0)


def test_a_repetition_from_the_end_of_time_never_opens() -> None:
    nightly = Repeat(start_min=20 * 60, end_min=6 * 60, zone="UTC")
    never = Booking("x", gpus=8, repeat=nightly, from_s=datetime(9999, 12, 31, 23, 59, tzinfo=BERLIN).timestamp())
    assert window(never, 0.0) is None
