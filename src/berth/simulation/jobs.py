"""Jobs of one day: when they arrive, how large they are, how long they run.

Sizes, durations and the swing between day and night are published figures (`figures.py`). How many jobs come
in a day is ours, set so that the built-in cluster is nearly full by day and far from empty at night.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from berth.model.workload import PodClass, PodSet, TopologyWish, Workload
from berth.simulation import asks, builtin
from berth.simulation.figures import (
    BUSIEST_HOUR,
    CPU_ONLY,
    CPU_ONLY_DURATIONS,
    DURATIONS,
    FRACTION_DURATIONS,
    FRACTIONS,
    GPUS_ITP,
    GPUS_PHILLY,
    ONE_GPU,
    PEAK_OVER_TROUGH,
    PERCENTILES,
    SEVERAL,
)

DAY_S = 86_400.0

# Days drawn before midnight. Runs are cut to as long, so that none that began earlier is missing at midnight.
DAYS_BEFORE = 4
LONGEST_S = DAYS_BEFORE * DAY_S

# Arrivals in a day.
WHOLE_GPU_JOBS = 3100
FRACTION_JOBS = 2700
CPU_ONLY_JOBS = 900
RAY_JOBS = 60

SERVICE_PRIORITY, JOB_PRIORITY, SPARE_PRIORITY = 1000, 100, 0


class Arrival(NamedTuple):
    """A workload that comes at `workload.created_s` and runs for `runs_s` once it has started."""

    workload: Workload
    runs_s: float


def jobs(rng: np.random.Generator, day: int) -> Iterator[Arrival]:
    """All jobs that arrive on one day, 0 being the day that is replayed."""
    start = day * DAY_S
    names = Names(day)
    for at in start + times_of_day(rng, CPU_ONLY_JOBS):
        ask = asks.common(rng, CPU_ONLY)
        asked = asks.pod_class(ask.cpu, ask.memory_mib, 0)
        yield _single(names, "etl", asks.CPU_TEAMS.draw(rng), at, from_percentiles(rng, CPU_ONLY_DURATIONS), asked)
    for at in start + times_of_day(rng, FRACTION_JOBS):
        ask = asks.common(rng, FRACTIONS)
        asked = asks.pod_class(ask.cpu, ask.memory_mib, 1, ask.gpu_milli, asks.need(rng, asks.SMALL_NEEDS))
        team = asks.SHARING_TEAMS.draw(rng)
        yield _single(names, "eval", team, at, from_percentiles(rng, FRACTION_DURATIONS), asked, SPARE_PRIORITY)
    for at in start + times_of_day(rng, WHOLE_GPU_JOBS):
        yield _whole_gpus(rng, names, at)
    for at in start + times_of_day(rng, RAY_JOBS):
        yield _ray(rng, names, at)


def _whole_gpus(rng: np.random.Generator, names: Names, at: float) -> Arrival:
    """A training job; its size is Philly's or ITP's, by the toss of a coin."""
    sizes = GPUS_PHILLY if rng.random() < 0.5 else GPUS_ITP
    gpus = int(asks.Choice(tuple(map(str, sizes)), tuple(sizes.values())).draw(rng))
    runs_s = run_time(rng, gpus)
    if gpus == 1:
        ask = asks.common(rng, ONE_GPU)
        asked = asks.pod_class(ask.cpu, ask.memory_mib, 1, least=asks.need(rng, asks.SMALL_NEEDS))
        return _single(names, "finetune", asks.SMALL_TEAMS.draw(rng), at, runs_s, asked)
    if gpus <= 4:
        cpu, memory = SEVERAL[gpus]
        asked = asks.pod_class(cpu, memory, gpus, least=asks.need(rng, asks.MIDDLE_NEEDS))
        return _single(names, "train", asks.MIDDLE_TEAMS.draw(rng), at, runs_s, asked)
    team = (asks.LARGE_TEAMS if gpus == 8 else asks.GANG_TEAMS).draw(rng)
    cpu, memory = SEVERAL[8]
    least = asks.need(rng, asks.LARGE_NEEDS if gpus == 8 else asks.GANG_NEEDS)
    if team == "frontier":
        asked = asks.pod_class(cpu, memory, 8, least=asks.HOPPER, tolerated=builtin.DEDICATED)
    else:
        asked = asks.pod_class(cpu, memory, 8, least=least)
    if gpus == 8:
        return _single(names, "train", team, at, runs_s, asked)
    workers = PodSet("worker", asked, gpus // 8, gpus // 8, _wish(rng, gpus))
    return Arrival(_workload(names, "pretrain", team, at, (workers,), "PyTorchJob"), runs_s)


def _wish(rng: np.random.Generator, gpus: int) -> tuple[TopologyWish, ...]:
    """Up to 32 GPUs fit a rack, more ask for a block; some must have it, some would rather."""
    level = "rack" if gpus <= 32 else "block"
    draw = rng.random()
    if draw < 0.40:
        return (TopologyWish(level, required=True),)
    return (TopologyWish(level, required=False),) if draw < 0.80 else ()


def _ray(rng: np.random.Generator, names: Names, at: float) -> Arrival:
    """A head without a GPU and many workers of one GPU each."""
    count = int(rng.choice((8, 12, 16, 24, 32), p=(0.35, 0.25, 0.2, 0.12, 0.08)))
    head = PodSet("head", asks.pod_class(8000, 30517, 0))
    worker = PodSet("worker", asks.pod_class(8000, 30517, 1, least=asks.need(rng, asks.SMALL_NEEDS)), count, count)
    team = asks.SMALL_TEAMS.draw(rng)
    return Arrival(_workload(names, "sweep", team, at, (head, worker), "RayJob"), run_time(rng, 1))


def times_of_day(rng: np.random.Generator, count: int) -> np.ndarray:
    """(count,) seconds since midnight, ascending: a cosine with its peak at BUSIEST_HOUR."""
    minutes = np.arange(1441) / 60
    swing = (PEAK_OVER_TROUGH - 1) / (PEAK_OVER_TROUGH + 1)
    rate = 1 + swing * np.cos(2 * np.pi * (minutes - BUSIEST_HOUR) / 24)
    share = np.concatenate(([0.0], np.cumsum((rate[1:] + rate[:-1]) / 2)))
    times = np.interp(rng.random(count), share / share[-1], minutes * 3600)
    return np.sort(times)


def from_percentiles(rng: np.random.Generator, seconds: Sequence[float]) -> float:
    """A duration with these percentiles, log-linear in between; the ends reach a little further."""
    levels = (0.0, *(p / 100 for p in PERCENTILES), 1.0)
    values = (max(10.0, seconds[0] / 4), *seconds, seconds[-1] * 1.5)
    drawn = float(np.exp(np.interp(rng.random(), levels, np.log(values))))
    return min(round(drawn, 1), LONGEST_S)


def run_time(rng: np.random.Generator, gpus: int) -> float:
    """Seconds that a job of so many GPUs runs: Philly's or ITP's figures, by the toss of a coin."""
    row = next(d for d in DURATIONS if gpus <= d.gpus)
    return from_percentiles(rng, row.philly if rng.random() < 0.5 else row.itp)


class Names:
    """Names that count up within a day and a word: `train-0042`; those of earlier days say which."""

    def __init__(self, day: int) -> None:
        self._suffix = f"-d{-day}" if day < 0 else ""
        self._counts: Counter[str] = Counter()

    def next(self, word: str) -> str:
        self._counts[word] += 1
        return f"{word}-{self._counts[word]:04d}{self._suffix}"


def _single(
    names: Names,
    word: str,
    team: str,
    at: float,
    runs_s: float,
    asked: PodClass,
    priority: int = JOB_PRIORITY,
) -> Arrival:
    pod_sets = (PodSet("main", asked),)
    return Arrival(_workload(names, word, team, at, pod_sets, "Job", priority), runs_s)


def _workload(
    names: Names,
    word: str,
    team: str,
    at: float,
    pod_sets: tuple[PodSet, ...],
    kind: str,
    priority: int = JOB_PRIORITY,
) -> Workload:
    return Workload(
        name=names.next(word),
        pod_sets=pod_sets,
        namespace=team,
        kind=kind,
        queue=team,
        priority=priority,
        created_s=round(float(at), 1),
    )
