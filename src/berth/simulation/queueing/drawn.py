"""Traces of jobs that need no file: drawn from published figures, the same for the same name and seed.

Sizes and durations are those of Philly and of ITP by the toss of a coin, the hour of a submission follows their swing
between day and night (simulation/figures.py has the figures and where they are from). Teams, owners, priorities and
how many jobs state a limit are ours; so is a quieter weekend. Jobs come until they have asked for LOAD of the cluster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from berth.base.errors import BadInput
from berth.model.jobs import Float, Int, Jobs
from berth.simulation.figures import GPUS_ITP, GPUS_PHILLY
from berth.simulation.jobs import run_time, times_of_day
from berth.simulation.queueing.limits import FACTORS

DAY_S = 86400.0
LOAD = 0.9  # of the GPUs over the whole time: what comes together does not fit, and is through by night
SEED = 42
RESTART_S = 30.0
TEAMS = (("language", 0.4), ("vision", 0.3), ("speech", 0.2), ("interns", 0.1))
OWNERS = 4  # of each team
URGENT, URGENT_PART = 100, 0.04
LIMITED_PART = 0.6  # of the jobs state a run-time limit
ELASTIC_PART = 0.5  # of the gangs run with half of their pods, too
WEEKEND = 0.5  # of the jobs of a working day
WIDEST = 0.5  # of the cluster, of one job


class Drawn(NamedTuple):
    """A built-in trace, and the cluster that it is made for."""

    days: int
    nodes: int
    node_gpus: int
    words: str


BUILTIN = {
    "small": Drawn(1, 4, 8, "a day on 4 nodes of 8 GPUs"),
    "week": Drawn(7, 8, 8, "a week on 8 nodes of 8 GPUs"),
    "month": Drawn(30, 32, 8, "a month on 32 nodes of 8 GPUs"),
}
PREFIX = "builtin:"


def drawn_jobs(name: str) -> Jobs:
    """`builtin:week`, or with another seed `builtin:week:7`. Raises BadInput."""
    found, seed = _named(name)
    rng = np.random.Generator(np.random.PCG64(seed))
    gpus, length_s = found.nodes * found.node_gpus, found.days * DAY_S
    widths: list[int] = []
    durations: list[float] = []
    asked = 0.0
    while asked < LOAD * gpus * length_s:
        widths.append(min(_size(rng), int(gpus * WIDEST)))
        # What would run for most of the time says more about chance than about a policy.
        durations.append(min(run_time(rng, widths[-1]), length_s / 4))
        asked += widths[-1] * durations[-1]
    width, service = np.array(widths, np.int64), np.round(np.array(durations), 1)
    submit = _submissions(rng, found.days, len(width))
    return _jobs(name, rng, submit, service, width, found)


def cluster_of(name: str) -> tuple[int, int]:
    """Nodes, and GPUs of each, that a built-in trace is made for."""
    found, _ = _named(name)
    return found.nodes, found.node_gpus


def _named(name: str) -> tuple[Drawn, int]:
    kind, has_seed, seed = name.removeprefix(PREFIX).partition(":")
    if kind not in BUILTIN or (has_seed and not (seed.isascii() and seed.isdigit() and len(seed) < 19)):
        there = ", ".join(f"{PREFIX}{one} ({drawn.words})" for one, drawn in BUILTIN.items())
        raise BadInput(f"trace {name!r}", f"is not built in. There are: {there}.", "A seed may follow: builtin:week:7.")
    return BUILTIN[kind], int(seed) if seed else SEED


def _size(rng: np.random.Generator) -> int:
    sizes = GPUS_PHILLY if rng.random() < 0.5 else GPUS_ITP
    shares = np.array(list(sizes.values()))
    return int(rng.choice(list(sizes), p=shares / shares.sum()))


def _submissions(rng: np.random.Generator, days: int, count: int) -> Float:
    """(count,) ascending, from 0."""
    weight = np.array([WEEKEND if day % 7 in (5, 6) else 1.0 for day in range(days)])
    by_day = rng.multinomial(count, weight / weight.sum())
    at = np.concatenate([day * DAY_S + times_of_day(rng, int(n)) for day, n in enumerate(by_day)])
    submit: Float = np.round(at - at[0], 1)
    return submit


def _jobs(name: str, rng: np.random.Generator, submit: Float, service: Float, width: Int, of: Drawn) -> Jobs:
    count = len(submit)
    queue = rng.choice(len(TEAMS), count, p=[part for _, part in TEAMS]).astype(np.int64)
    owner = queue * OWNERS + rng.integers(0, OWNERS, count)
    limit = np.round(rng.choice(FACTORS, count) * (service + RESTART_S), 0)
    pods = np.maximum(width // of.node_gpus, 1)
    is_elastic = (pods > 1) & (rng.random(count) < ELASTIC_PART)
    return Jobs(
        name=name,
        names=tuple(f"job-{i:05d}" for i in range(count)),
        submit_s=submit,
        service_s=service,
        limit_s=np.where(rng.random(count) < LIMITED_PART, limit, 0.0),
        restart_s=np.full(count, RESTART_S),
        width=width,
        pod_gpus=np.minimum(width, of.node_gpus),
        priority=np.where(rng.random(count) < URGENT_PART, URGENT, 0).astype(np.int64),
        queue=queue,
        owner=owner.astype(np.int64),
        gpu_class=np.full(count, -1, np.int64),
        queues=tuple(team for team, _ in TEAMS),
        owners=tuple(f"{team}-{i + 1}" for team, _ in TEAMS for i in range(OWNERS)),
        min_pods=np.where(is_elastic, (pods + 1) // 2, pods),
        notes=(f"the trace is drawn: sizes, durations and hours follow Philly and ITP; made for {of.words}",),
    )
