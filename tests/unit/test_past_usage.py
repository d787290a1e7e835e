"""What queues have used comes back from their status, and is not told older than it is."""

from __future__ import annotations

import msgspec
import pytest

from berth.kube.wire_queues import GPUQueue
from berth.scheduling.usage import HALF_LIFE_S
from berth.sources.past_usage import Usage

AT, AT_S = "2026-12-01T00:00:00Z", 1796083200.0


def queue(hours: float, at: str = AT) -> GPUQueue:
    return msgspec.convert({"metadata": {"name": "q"}, "status": {"pastUsage": hours, "pastUsageAt": at}}, GPUQueue)


def test_half_of_it_counts_after_a_half_life() -> None:
    usage = Usage()
    usage.put(queue(100.0))
    assert usage.now(AT_S) == {"q": 100.0}
    assert usage.now(AT_S + HALF_LIFE_S)["q"] == pytest.approx(50.0)


def test_what_half_of_it_is_forgotten_in_can_be_said() -> None:
    day = Usage(half_life_s=86_400.0)
    day.put(queue(100.0))
    assert day.now(AT_S + 2 * 86_400.0)["q"] == pytest.approx(25.0)
    for_ever = Usage(half_life_s=0.0)
    for_ever.put(queue(100.0))
    assert for_ever.now(AT_S + 365 * 86_400.0) == {"q": 100.0}


def test_the_latest_word_counts() -> None:
    usage = Usage()
    usage.count({"q": 120.0, "none": 0.0}, AT_S + 60)
    usage.put(queue(100.0))  # what was written before comes back late
    assert usage.now(AT_S + 60) == {"q": 120.0}
    usage.put(queue(200.0, "2026-12-01T00:02:00Z"))
    assert usage.now(AT_S + 120) == {"q": 200.0}
    usage.drop("q")
    assert usage.now(AT_S + 120) == {}


def test_a_status_without_it_says_nothing() -> None:
    usage = Usage()
    usage.put(msgspec.convert({"metadata": {"name": "q"}, "status": {"pastUsage": 5.0}}, GPUQueue))
    usage.put(msgspec.convert({"metadata": {"name": "r"}}, GPUQueue))
    assert usage.now(AT_S) == {}
