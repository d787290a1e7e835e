"""Services of the built-in day: replicas that answer requests, more of them by day than by night.

Each replica is a workload of its own, as the pods of a Deployment are. The base runs from before midnight to
the end of the day; the rest follows the users: it comes in the morning and leaves in the evening.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from berth.base.units import GIB
from berth.model.workload import Capability, PodSet, Workload
from berth.simulation.asks import ANY, BF16, pod_class
from berth.simulation.jobs import DAY_S, SERVICE_PRIORITY, Arrival

T4 = Capability(products=("T4",))
SMALL = Capability(products=("T4", "A10", "V100"))
MIDDLE = Capability(products=("A10", "L40S"))
LARGE = Capability(memory_bytes=38 * GIB, precision="bf16")


class Service(NamedTuple):
    """Replicas that run all day, and those that come by day; CPU milli, memory MiB and GPUs of one."""

    name: str
    team: str
    base: int
    by_day: int
    cpu: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    least: Capability


# Requests are openb's commonest again, those of its latency-sensitive pods.
SERVICES: tuple[Service, ...] = (
    Service("chat-large", "assistant", 22, 16, 32200, 132096, 4, 1000, LARGE),
    Service("chat-small", "assistant", 92, 122, 11400, 48128, 1, 1000, MIDDLE),
    Service("transcribe", "assistant", 54, 74, 11300, 49152, 1, 1000, BF16),
    Service("voice", "assistant", 70, 100, 4000, 15258, 1, 320, SMALL),
    Service("embed", "search", 92, 100, 9810, 41560, 1, 1000, SMALL),
    Service("rerank", "search", 80, 96, 3152, 5600, 1, 810, SMALL),
    Service("spell", "search", 70, 62, 3152, 5600, 1, 590, ANY),
    Service("rank", "ads", 114, 100, 8000, 30517, 1, 470, SMALL),
    Service("score", "ads", 54, 48, 12000, 24576, 1, 1000, Capability(products=("V100",))),
    Service("detect", "vision", 46, 40, 9810, 41560, 1, 1000, SMALL),
    Service("frontend", "search", 138, 122, 8000, 30517, 0, 1000, ANY),
)

# Where in the day the replicas of the day come, and how long they stay, at least and at most.
FROM_H, UNTIL_H = 6.5, 11.0
STAYS_H = (8.0, 13.0)


def replicas(rng: np.random.Generator) -> Iterator[Arrival]:
    """One workload a replica. The base began up to two days before midnight and outlives the day."""
    for service in SERVICES:
        asked = pod_class(service.cpu, service.memory_mib, service.gpus, service.gpu_milli, service.least)
        for i in range(service.base + service.by_day):
            if i < service.base:
                at, runs_s = -float(rng.uniform(0.1, 2.0)) * DAY_S, 2 * DAY_S
            else:
                at = float(rng.uniform(FROM_H, UNTIL_H)) * 3600
                runs_s = float(rng.uniform(*STAYS_H)) * 3600
            workload = Workload(
                name=f"{service.name}-{i:03d}",
                pod_sets=(PodSet("replica", asked),),
                namespace=service.team,
                kind="Deployment",
                queue=service.team,
                priority=SERVICE_PRIORITY,
                created_s=round(at, 1),
            )
            yield Arrival(workload, round(runs_s, 1))
