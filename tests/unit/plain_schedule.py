"""FIFO and SRTF in plain Python, event by event, with exact fractions: what the compiled simulator is held to.

Nothing is shared with it. A job is a small object, the cluster a list of free GPUs, and an event is found by looking at
everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

NEVER = Fraction(10**18)


@dataclass
class Job:
    number: int
    submit: Fraction
    service: Fraction
    width: int
    restart: Fraction
    left: Fraction = NEVER
    debt: Fraction = Fraction(0)
    places: dict[int, int] = field(default_factory=dict)  # node → GPUs; empty while it waits
    start: Fraction = NEVER
    end: Fraction = NEVER
    preemptions: int = 0

    @property
    def ends_at(self) -> Fraction:
        return self.left + self.debt


@dataclass
class Cluster:
    free: list[int]
    node_gpus: int

    def first_fit(self, width: int) -> dict[int, int]:
        """Places for so many GPUs; empty where there are none."""
        if width <= self.node_gpus:
            for node, free in enumerate(self.free):
                if free >= width:
                    return {node: width}
            return {}
        whole, rest = divmod(width, self.node_gpus)
        empty = [node for node, free in enumerate(self.free) if free == self.node_gpus]
        if len(empty) < whole:
            return {}
        places = dict.fromkeys(empty[:whole], self.node_gpus)
        if rest:
            others = [node for node, free in enumerate(self.free) if node not in places and free >= rest]
            if not others:
                return {}
            places[others[0]] = rest
        return places

    def take(self, places: dict[int, int]) -> None:
        for node, gpus in places.items():
            self.free[node] -= gpus
            assert self.free[node] >= 0, "a GPU is given twice"

    def give_back(self, places: dict[int, int]) -> None:
        for node, gpus in places.items():
            self.free[node] += gpus
            assert self.free[node] <= self.node_gpus


def simulate(
    policy: str, jobs: list[Job], nodes: int, node_gpus: int, overhead: str
) -> list[tuple[Fraction, str, int]]:
    """Run to the end. Every start, stop and end as (time, what, job), in order."""
    cluster = Cluster([node_gpus] * nodes, node_gpus)
    coming = sorted(jobs, key=lambda job: (job.submit, job.number))
    active: list[Job] = []
    told: list[tuple[Fraction, str, int]] = []
    now = Fraction(0)
    while coming or active:
        running = [job for job in active if job.places]
        then = min([coming[0].submit if coming else NEVER, *(now + job.ends_at for job in running)])
        lasted = then - now
        for job in running:
            if now + job.ends_at == then:
                job.end = then
                told.append((then, "end", job.number))
                cluster.give_back(job.places)
                active.remove(job)
            else:
                paid = min(job.restart if overhead == "published" else job.debt, lasted)
                job.debt = max(job.debt - paid, Fraction(0))
                job.left -= lasted - paid
        now = then
        while coming and coming[0].submit == now:
            active.append(coming.pop(0))
            active[-1].left = active[-1].service
        if policy == "fifo":
            told += _fifo(active, cluster, now, overhead)
        else:
            active.sort(key=lambda job: job.left)
            cluster.free = [node_gpus] * nodes
            told += _srtf(active, cluster, now, overhead)
    return told


def _fifo(active: list[Job], cluster: Cluster, now: Fraction, overhead: str) -> list[tuple[Fraction, str, int]]:
    told = []
    for job in active:
        if job.places:
            continue
        job.places = cluster.first_fit(job.width)
        if not job.places:
            break
        cluster.take(job.places)
        told.append((now, "start", job.number))
        job.start, job.debt = now, job.restart if overhead == "start" else Fraction(0)
    return told


def _srtf(active: list[Job], cluster: Cluster, now: Fraction, overhead: str) -> list[tuple[Fraction, str, int]]:
    told = []
    for job in active:
        before = job.places
        stays = bool(before) and overhead == "start" and all(cluster.free[n] >= g for n, g in before.items())
        job.places = before if stays else cluster.first_fit(job.width)
        cluster.take(job.places)
        if before and not job.places:
            told.append((now, "stop", job.number))
        if job.places and not before:
            told.append((now, "start", job.number))
            job.start = min(job.start, now)
        if job.places and not stays and overhead == "start":
            job.debt = job.restart
        job.preemptions += bool(before) and not (job.places and (stays or overhead != "start"))
    return told
