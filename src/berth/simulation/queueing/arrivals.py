"""Workloads that come and run for a while, as jobs over time: columns for the books, workloads for the cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from berth.model.jobs import Jobs, NodeEvent
from berth.model.resources import MIG_PREFIX, get
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, Workload


@dataclass(frozen=True)
class Offered:
    """A cluster and what is offered to it. `workloads` are what the cycle is shown of each job, None where the columns
    say all of it. `begins_s` is the time of day at second 0, `length_s` when it is over: jobs may run on."""

    cluster: Snapshot
    jobs: Jobs
    workloads: tuple[Workload, ...] | None = None
    begins_s: float = 0.0
    length_s: float = float("inf")


def jobs_of(
    name: str,
    workloads: Sequence[Workload],
    runs_s: Sequence[float],
    cluster: Snapshot,
    restart_s: float = 0.0,
    node_events: tuple[NodeEvent, ...] = (),
) -> Jobs:
    """Columns of workloads in order of arrival. Widths are in GPUs, with parts of one where a pod asks for a share or a
    partition. What came before second 0 is there at 0, with its age."""
    queues = tuple(dict.fromkeys([*(q.name for q in cluster.queues), *(w.queue for w in workloads)]))
    index = {queue: i for i, queue in enumerate(queues)}
    parts = _parts_of(cluster)
    count = len(workloads)
    return Jobs(
        name=name,
        names=tuple(w.name for w in workloads),
        submit_s=np.array([max(w.created_s, 0.0) for w in workloads]),
        service_s=np.array(runs_s, float),
        limit_s=np.array([w.time_limit_s for w in workloads]),
        restart_s=np.full(count, restart_s),
        width=np.array([sum(s.count * gpus_of(s.pod_class, parts) for s in w.pod_sets) for w in workloads]),
        pod_gpus=np.zeros(count, np.int64),
        priority=np.array([w.priority for w in workloads], np.int64),
        queue=np.array([index[w.queue] for w in workloads], np.int64),
        owner=np.zeros(count, np.int64),
        gpu_class=np.full(count, -1, np.int64),
        queues=queues,
        node_events=node_events,
    )


def from_the_first(jobs: Jobs) -> Jobs:
    """The same with second 0 at the first submission."""
    first = float(jobs.submit_s[0])
    return replace(
        jobs,
        submit_s=jobs.submit_s - first,
        cancelled_s=jobs.cancelled_s - first,
        deadline_s=jobs.deadline_s - first,
        node_events=tuple(one._replace(at_s=one.at_s - first) for one in jobs.node_events),
    )


def gpus_of(pod_class: PodClass, parts: dict[str, int]) -> float:
    """GPUs that one pod holds. `parts` is into how many of each partition's resource a GPU is cut."""
    whole = get(pod_class.requests, "nvidia.com/gpu") * pod_class.gpu_milli / 1000
    return whole + sum(n / parts.get(name, 1) for name, n in pod_class.requests if name.startswith(MIG_PREFIX))


def _parts_of(cluster: Snapshot) -> dict[str, int]:
    """Partitions of each resource on one GPU, of the first node that has them."""
    found: dict[str, int] = {}
    for node in cluster.nodes:
        for name, amount in node.allocatable:
            if name.startswith(MIG_PREFIX) and node.devices:
                found.setdefault(name, max(1, amount // len(node.devices)))
    return found
