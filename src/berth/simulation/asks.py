"""What one pod asks for, and which team sends it: the requests of the built-in day.

CPU, memory and shares of a GPU are openb's commonest (`figures.py`). Teams and the capabilities that they ask
of a GPU are ours: about a third of the pods say what it must be, as in openb's gpuspec33.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from berth.base.units import GIB
from berth.model.cluster import Taint
from berth.model.resources import CPU, MEMORY, NVIDIA_GPU, resources
from berth.model.workload import WHOLE, Capability, PodClass, Toleration
from berth.simulation.figures import Ask

MIB = 2**20


class Choice(NamedTuple):
    """Alternatives with their shares."""

    names: tuple[str, ...]
    shares: tuple[float, ...]

    def draw(self, rng: np.random.Generator) -> str:
        total = sum(self.shares)
        return self.names[int(np.searchsorted(np.cumsum(self.shares) / total, rng.random(), side="right"))]


SMALL_TEAMS = Choice(("vision", "speech", "batch", "ads", "interns", "ci"), (30, 20, 25, 10, 10, 5))
SHARING_TEAMS = Choice(("batch", "vision", "speech", "search", "ads", "ci", "interns"), (30, 20, 15, 15, 10, 5, 5))
MIDDLE_TEAMS = Choice(("vision", "speech", "llm", "batch"), (40, 25, 20, 15))
LARGE_TEAMS = Choice(("llm", "vision", "frontier", "speech", "batch"), (42, 30, 12, 10, 6))
GANG_TEAMS = Choice(("llm", "frontier", "vision", "speech"), (50, 20, 20, 10))
CPU_TEAMS = Choice(("batch", "ci", "search", "vision"), (40, 25, 20, 15))

ANY = Capability()
HOPPER = Capability(products=("H100", "H200"))
LARGE_MEMORY = Capability(memory_bytes=70 * GIB, link="nvlink")
BF16 = Capability(precision="bf16")
# What pods of up to one GPU need: about a third of them say so (openb's gpuspec33).
SMALL_NEEDS: tuple[tuple[float, Capability], ...] = (
    (0.65, ANY),
    (0.12, Capability(products=("T4",))),
    (0.09, Capability(memory_bytes=20 * GIB)),
    (0.07, BF16),
    (0.04, Capability(products=("A10", "L40S"))),
    (0.03, Capability(memory_bytes=38 * GIB)),
)
MIDDLE_NEEDS: tuple[tuple[float, Capability], ...] = (
    (0.40, ANY),
    (0.25, Capability(link="nvlink")),
    (0.20, BF16),
    (0.15, Capability(memory_bytes=38 * GIB)),
)
LARGE_NEEDS: tuple[tuple[float, Capability], ...] = (
    (0.35, HOPPER),
    (0.45, LARGE_MEMORY),
    (0.20, Capability(memory_bytes=38 * GIB, precision="bf16")),
)
GANG_NEEDS: tuple[tuple[float, Capability], ...] = (
    (0.50, HOPPER),
    (0.20, Capability(products=("A100-80GB",))),
    (0.30, LARGE_MEMORY),
)


def need(rng: np.random.Generator, needs: Sequence[tuple[float, Capability]]) -> Capability:
    level = rng.random()
    for share, least in needs:
        level -= share
        if level < 0:
            return least
    return needs[-1][1]


def common(rng: np.random.Generator, asks: Sequence[Ask]) -> Ask:
    weights = np.cumsum([a.pods for a in asks])
    return asks[int(np.searchsorted(weights, rng.random() * weights[-1], side="right"))]


def pod_class(
    cpu: int,
    memory_mib: int,
    gpus: int,
    gpu_milli: int = WHOLE,
    least: Capability = ANY,
    tolerated: Taint | None = None,
    node_selector: tuple[tuple[str, str], ...] = (),
) -> PodClass:
    """One object for equal requests: what schedules and what is counted then share one row."""
    return _shared(
        PodClass(
            requests=resources({CPU: cpu, MEMORY: memory_mib * MIB, NVIDIA_GPU: gpus}),
            gpu_milli=gpu_milli,
            least=least,
            tolerations=(Toleration(tolerated.key, value=tolerated.value),) if tolerated else (),
            node_selector=node_selector,
        )
    )


@lru_cache(maxsize=4096)
def _shared(asked: PodClass) -> PodClass:
    return asked
