"""Expected starts and who is ahead, as people read them."""

from __future__ import annotations

import time

import pytest

from berth.views.starts import Ahead, ahead_words, expected

NOON_S = 1_796_036_400.0


@pytest.fixture(autouse=True)
def in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(*minutes: float) -> tuple[float, ...]:
    return tuple(NOON_S + 60 * m for m in minutes)


@pytest.mark.parametrize(
    ("starts_s", "words"),
    [
        ((0.0, 0.0, 0.0), ""),
        (at(0.1, 0.3, 0.9), "within a minute"),
        (at(0.5, 4, 20), "within 20 min, probably {4}"),
        (at(10, 12, 10.2), "in 10 min, {12}"),
        (at(120, 140, 300), "in 2 h to 5 h, probably {140}"),
        (at(35, 140, 4 * 1440), "in 35 min to 4 d, probably {140}"),
        ((*at(120, 140), float("inf")), "in 2 h or more, probably {140}"),
        ((0.0, *at(140), 0.0), "probably {140}"),
    ],
)
def test_an_interval_reads_as_people_say_it(starts_s, words):
    moments = {f"{m:g}": time.strftime("%H:%M", time.gmtime(NOON_S + 60 * m)) for m in (4, 12, 140)}
    for minutes, clock in moments.items():
        words = words.replace(f"{{{minutes}}}", clock)
    assert expected(starts_s, NOON_S) == words


def test_who_is_ahead_is_told_by_owner_the_largest_first():
    some = [Ahead("a", 1, 8_000), Ahead("b", 2, 1_000), Ahead("c", 5, 40_000), Ahead("d", 1, 500), Ahead("", 3, 4_000)]
    assert ahead_words(some) == "c 5 for 40 GPUs, a 1 for 8 GPUs, b 2 for 1 GPU, 4 others for 4.5 GPUs"


def test_whose_names_may_not_be_known_are_counted():
    assert ahead_words([Ahead("", 3, 4_000)]) == "3 for 4 GPUs"
    assert ahead_words([]) == ""
