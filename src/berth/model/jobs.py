"""Jobs over time as columns: what a trace of submissions says, and nothing that a policy decides.

Shapes: J jobs in order of submission. Times are seconds from the trace's begin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Float = NDArray[np.float64]


class NodeEvent(NamedTuple):
    """A node fails, or is back. `where` is the place that says so, for complaints."""

    at_s: float
    node: str
    is_up: bool
    where: str = "node events"


@dataclass(frozen=True)
class Jobs:
    """The jobs in order of submission; what comes in the same instant keeps the order of its file.

    `service_s` is what a job computes alone and undisturbed, `limit_s` the run-time limit that its owner gave (0.0:
    none), `restart_s` what a start costs of what it then computes. A job asks for `width` GPUs in pods of `pod_gpus`
    each, the last of which takes what is left over. Only where workloads are given beside the columns
    (queueing/arrivals.py) a width may be a part of a GPU.
    """

    name: str
    names: tuple[str, ...]
    submit_s: Float
    service_s: Float
    limit_s: Float
    restart_s: Float
    width: Int
    pod_gpus: Int  # 0: as many as a node has, where the trace does not say how a job is made up
    priority: Int
    queue: Int  # indexes `queues`
    owner: Int  # indexes `owners`
    gpu_class: Int  # indexes `classes`; -1 where any will do
    queues: tuple[str, ...] = ("all",)
    owners: tuple[str, ...] = ("",)
    classes: tuple[str, ...] = ()
    node_events: tuple[NodeEvent, ...] = ()
    cancelled_s: Float = field(default_factory=lambda: np.zeros(0))  # (J,) when its owner gave it up, inf: never; (0,)
    min_pods: Int = field(default_factory=lambda: np.zeros(0, np.int64))  # (J,) it runs with so many, too; (0,): all
    deadline_s: Float = field(
        default_factory=lambda: np.zeros(0)
    )  # (J,) when it should have ended, inf: any time; (0,)
    checkpoint_every_s: Float = field(default_factory=lambda: np.zeros(0))  # (J,) 0.0: it does not save; (0,)
    notes: tuple[str, ...] = ()  # what was drawn or chosen and is not in the trace, a sentence each
    remarks: tuple[str, ...] = ()  # on the file that they were read from, a sentence each

    def __len__(self) -> int:
        return len(self.names)
