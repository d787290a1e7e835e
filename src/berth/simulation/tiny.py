"""The smallest trace that has everything: two GPU models, shares, whole GPUs, several GPUs, CPU-only pods."""

from __future__ import annotations

import numpy as np

from berth.model.trace import Trace, TraceCluster, TracePods


def _column(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


TINY = Trace(
    "tiny",
    TraceCluster(
        ("node-0", "node-1", "node-2"),
        _column(32_000, 32_000, 64_000),
        _column(131_072, 131_072, 262_144),
        _column(2, 2, 4),
        _column(0, 0, 1),
        ("T4", "V100"),
    ),
    TracePods(
        ("pod-0", "pod-1", "pod-2", "pod-3", "pod-4"),
        _column(4_000, 2_000, 8_000, 1_000, 4_000),
        _column(8_192, 4_096, 16_384, 1_024, 8_192),
        _column(1, 1, 2, 0, 1),
        _column(1_000, 300, 1_000, 0, 500),
        _column(0, 0, 0, 0, 1),
        ((), ("T4",)),
    ),
)
