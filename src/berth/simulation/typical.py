"""The typical pods of a trace: which requests the fragmentation of a node is measured against.

Source of the rule: FGD, USENIX ATC 2023 (Weng et al.) and its published simulator.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from berth.model.trace import Int, Trace

# The share of pods that the typical ones must cover; the rest are too rare to plan for.
COVERED_PCT = 95


@dataclass(frozen=True)
class TypicalPods:
    """M classes of requests, most popular first; memory is left out of the grouping.

    `count[m]` pods of the trace ask for class m; the popularity of m is count[m] / count.sum().
    `specs[m]` is the tuple of the allowed GPU models, () for any.
    """

    cpu_milli: Int
    gpu_milli: Int
    num_gpu: Int
    specs: tuple[tuple[str, ...], ...]
    count: Int

    @property
    def weight(self) -> int:
        """How many pods the typical classes hold together: the denominator of every popularity."""
        return int(self.count.sum())


def typical_pods(trace: Trace) -> TypicalPods:
    """The shortest list of the most popular requests that holds at least 95 % of the trace's pods.

    CPU-only pods count as well. Order: count, then (cpu, gpu_milli, num_gpu, spec), all descending. A spec
    that lists one model twice is another class than the one that lists it once: so it is in the original.
    """
    pods = trace.pods
    spelled = ["|".join(spec) for spec in pods.specs]
    groups: Counter[tuple[int, int, int, int]] = Counter(
        zip(pods.cpu_milli.tolist(), pods.gpu_milli.tolist(), pods.num_gpu.tolist(), pods.spec.tolist(), strict=True)
    )
    ranked = sorted(
        groups.items(),
        key=lambda item: (item[1], item[0][0], item[0][1], item[0][2], spelled[item[0][3]]),
        reverse=True,
    )
    total, held, prefix = len(pods.names), 0, 0
    while 100 * held < COVERED_PCT * total:
        held += ranked[prefix][1]
        prefix += 1
    kept = ranked[:prefix]
    columns = np.array([key for key, _ in kept], dtype=np.int64).reshape(prefix, 4)
    return TypicalPods(
        cpu_milli=columns[:, 0].copy(),
        gpu_milli=columns[:, 1].copy(),
        num_gpu=columns[:, 2].copy(),
        specs=tuple(pods.specs[spec] for spec in columns[:, 3].tolist()),
        count=np.array([count for _, count in kept], dtype=np.int64),
    )
