"""What is known of jobs over time at a moment: who waits, who runs on what, and what has happened.

Shapes: J jobs, Q queues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.base.errors import BadInput
from berth.model.cluster import Allocation, Health, Node
from berth.model.hold import Hold
from berth.model.jobs import Float, Int, Jobs
from berth.model.reasons import Verdict
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload
from berth.scheduling.plan import Rule
from berth.simulation.occupancy import GIVEN_OUT, Occupancy
from berth.simulation.queueing.schedule import Overhead
from berth.simulation.queueing.shown import workloads_of


@dataclass
class Running:
    """A job that runs: its pods, for the snapshot and for the books. With a part of them it computes at that part of
    its speed (`part`), and holds so much of its GPUs."""

    allocations: tuple[Allocation, ...]
    nodes: tuple[int, ...]
    started_s: float
    computes_s: float  # from when on: its start is paid
    ends_s: float  # if nothing keeps it
    kept_s: float = 0.0  # by the events since its start
    part: float = 1.0
    gpus: float = 0.0
    next_pod: int = 0


class Outside(NamedTuple):
    """Something that no policy decides: a job is given up (`job`), or a node (its index) fails or is back."""

    at_s: float
    job: int
    node: int
    is_up: bool


class What(Enum):
    """What can happen to a job or a node, as people say it."""

    Came = "comes"
    Started = "starts"
    Ended = "ends"
    SetAside = "is set aside"
    Lost = "stops with its node"
    GivenUp = "is given up"
    Grew = "grows"
    Shrank = "shrinks"
    Failed = "fails"
    Back = "is back"


class Happened(NamedTuple):
    """One thing that happened to a job or to a node (their indexes; -1 where it is the other). `other` is the job for
    which it was set aside (-1: a reservation), `rule` why it was."""

    what: What
    job: int = -1
    node: int = -1
    other: int = -1
    rule: Rule | None = None


@dataclass
class State:
    """`left_s` (J,) is what each job has to compute that is not running; lost_s, start_s, end_s, stops (J,).
    `row` (3, Q) is GPUs in use, GPUs wanted and jobs that wait, by queue."""

    jobs: Jobs
    cluster: Snapshot
    books: Occupancy
    overhead: Overhead
    workloads: tuple[Workload, ...]
    left_s: Float
    lost_s: Float
    start_s: Float
    end_s: Float
    stops: Int
    row: NDArray[np.float64]
    outside: list[Outside]
    waiting: dict[int, Workload] = field(default_factory=dict)
    running: dict[int, Running] = field(default_factory=dict)
    pods: tuple[Allocation, ...] | None = None  # of all that run, as the cycle is shown them; None: they have changed
    growing: dict[int, Workload] = field(default_factory=dict)  # what those that run with a part still want
    ends: list[tuple[float, int]] = field(default_factory=list)  # heap; those that were stopped are passed over
    holds: dict[str, Hold] = field(default_factory=dict)
    next_job: int = 0
    now_s: float = 0.0
    usage: dict[str, float] = field(default_factory=dict)  # decayed GPU hours by queue
    look_s: float = np.inf  # when the last cycle wants to be asked again
    fruitless: int = 0  # moments at which nothing happened, in a row, while nothing ran
    decide_s: float = 0.0
    ended: int = 0
    gpus_up: int = 0
    happened: list[Happened] = field(default_factory=list)  # in this step
    said: Mapping[int, Verdict] = field(default_factory=dict)  # of who waits since the last cycle, by job
    starts_by: Mapping[int, float] = field(default_factory=dict)  # who has a place in time, by job
    table: list[tuple[float, NDArray[np.float64]]] = field(default_factory=list)  # (time, row) after each step
    up: list[int] = field(default_factory=list)  # GPUs of nodes that are up, after each step

    @classmethod
    def of(
        cls, jobs: Jobs, cluster: Snapshot, overhead: Overhead, workloads: tuple[Workload, ...] | None = None
    ) -> State:
        count, widest = len(jobs), max(len(node.devices) for node in cluster.nodes)
        return cls(
            jobs, cluster, Occupancy(cluster), overhead, workloads or workloads_of(jobs, widest), jobs.service_s.copy(),
            np.zeros(count), np.full(count, np.inf), np.full(count, np.inf), np.zeros(count, np.int64),
            np.zeros((3, len(jobs.queues))), outside_of(jobs, cluster.nodes),
            gpus_up=sum(gpus_of(node) for node in cluster.nodes if node.ready),
        )  # fmt: skip


def gpus_of(node: Node) -> int:
    """GPUs of a node that jobs may be given, whether it is up or not."""
    held_back = node.cordoned or node.health == Health.Unfit
    return 0 if held_back else sum(device.health in GIVEN_OUT for device in node.devices)


def outside_of(jobs: Jobs, nodes: Sequence[Node]) -> list[Outside]:
    """Failures and returns of nodes, and jobs that are given up, by time."""
    index = {node.name: n for n, node in enumerate(nodes)}
    for event in jobs.node_events:
        if event.node not in index:
            known = f"{nodes[0].name} to {nodes[-1].name}" if nodes else "none"
            raise BadInput(event.where, f"there is no node {event.node!r}.", f"The cluster has {known}.")
    found = [Outside(event.at_s, -1, index[event.node], event.is_up) for event in jobs.node_events]
    gives_up: list[int] = np.flatnonzero(np.isfinite(jobs.cancelled_s)).tolist()
    found += [Outside(max(float(jobs.cancelled_s[j]), float(jobs.submit_s[j])), j, -1, False) for j in gives_up]
    return sorted(found, key=lambda one: one.at_s)  # of one moment in the order in which they are told
