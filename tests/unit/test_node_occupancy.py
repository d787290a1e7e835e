"""Peaks of those who hold a device's memory, and when it will be full."""

from __future__ import annotations

import pytest

from berth.evidence.fact import Fact, Origin
from berth.evidence.facts import Facts
from berth.evidence.formats.boundary_facts import Holder
from berth.evidence.formats.smi_facts import DeviceSeen
from berth.node.look import Looked
from berth.node.occupancy import Occupancy, line_through

GIB = 2**30


def looked(at_s: float, used: int, *holders: Holder) -> Looked:
    device = DeviceSeen(form="nvml", uuid="GPU-0", memory_total_bytes=80 * GIB, memory_used_bytes=used)
    facts: list[Fact] = [device, *holders]
    return Looked(node="n1", at_s=at_s, boot_id="b", facts=Facts(facts), not_seen=())


def holder(pod: str, held: int, pid: int = 1) -> Holder:
    return Holder(origin=Origin(node="n1"), device="GPU-0", of_pod=pod, container="main", pid=pid, memory_bytes=held)


def test_the_peak_of_a_container_is_that_of_its_processes_together() -> None:
    occupancy = Occupancy()
    occupancy.take(looked(0, 0, holder("x/a", 3), holder("x/a", 4, 2), holder("x/b", 5, 3)))
    occupancy.take(looked(30, 0, holder("x/a", 1), holder("x/b", 6, 3)))
    assert occupancy.peak_bytes(holder("x/a", 1)) == 7
    assert occupancy.peak_bytes(holder("x/b", 6)) == 6
    assert occupancy.peak_bytes(holder("x/new", 2)) == 2


def test_who_is_gone_for_an_hour_is_forgotten() -> None:
    occupancy = Occupancy()
    occupancy.take(looked(0, 0, holder("x/a", 9)))
    occupancy.take(looked(3601, 0))
    assert occupancy.peak_bytes(holder("x/a", 1)) == 1


def test_a_device_that_fills_up_steadily_says_when_it_is_full() -> None:
    occupancy = Occupancy()
    for minute in range(20):
        occupancy.take(looked(60.0 * minute, (40 + minute) * GIB))
    assert occupancy.full_in_s("GPU-0") == pytest.approx(21 * 60)


@pytest.mark.parametrize("used", [lambda minute: 40, lambda minute: 60 - minute, lambda minute: 40 + 20 * (minute % 2)])
def test_what_does_not_grow_steadily_is_no_trend(used) -> None:
    occupancy = Occupancy()
    for minute in range(20):
        occupancy.take(looked(60.0 * minute, used(minute) * GIB))
    assert occupancy.full_in_s("GPU-0") == 0.0


def test_a_trend_needs_ten_minutes() -> None:
    occupancy = Occupancy()
    for look in range(100):
        occupancy.take(looked(5.0 * look, (10 + look) * 2**20))
    assert occupancy.full_in_s("GPU-0") == 0.0


def test_a_line_through_points() -> None:
    assert line_through([0, 1, 2], [1, 3, 5]) == (2.0, 1.0)
    assert line_through([0, 1], [4, 4]) == (0.0, 0.0)
