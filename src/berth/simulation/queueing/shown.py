"""What the cycle is shown of a job over time: its pods; of a gang that runs with some of them, those it still wants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from berth.model.cluster import Allocation
from berth.model.jobs import Jobs
from berth.model.resources import NVIDIA_GPU, resources
from berth.model.workload import Capability, PodClass, PodSet, Toleration, Workload

# As the API server adds it to pods that ask for the resource (ExtendedResourceToleration).
_TOLERATED = (Toleration(NVIDIA_GPU, "Exists"),)


def workloads_of(jobs: Jobs, node_gpus: int, *, heeds_class: bool = False) -> tuple[Workload, ...]:
    """What the cycle is shown of each job on nodes of so many GPUs. Jobs of one shape share their pod sets. With
    `heeds_class` GPUs are of the class that the job names."""
    shapes: dict[tuple[int, int, int, str], tuple[PodSet, ...]] = {}
    pod_gpus = np.where(jobs.pod_gpus > 0, jobs.pod_gpus, node_gpus)
    least = jobs.min_pods if len(jobs.min_pods) else np.zeros(len(jobs), np.int64)
    saves = jobs.checkpoint_every_s if len(jobs.checkpoint_every_s) else np.zeros(len(jobs))
    named = [jobs.classes[c] if heeds_class and c >= 0 else "" for c in jobs.gpu_class.tolist()]
    shown = []
    for name, queue, priority, submit, limit, every, *shape in zip(
        jobs.names, jobs.queue.tolist(), jobs.priority.tolist(), jobs.submit_s.tolist(), jobs.limit_s.tolist(),
        saves.tolist(), jobs.width.tolist(), pod_gpus.tolist(), least.tolist(), named, strict=True,
    ):  # fmt: skip
        key = (shape[0], shape[1], shape[2], shape[3])
        sets = shapes.get(key) or shapes.setdefault(key, pod_sets(*key))
        queue_name = jobs.queues[queue]
        shown.append(
            Workload(
                name=name, namespace=queue_name, kind="Job", queue=queue_name, priority=priority, created_s=submit,
                time_limit_s=limit, checkpoint_every_s=every, pod_sets=sets,
            )
        )  # fmt: skip
    return tuple(shown)


def pod_sets(width: int, pod_gpus: int, min_pods: int = 0, gpu_class: str = "") -> tuple[PodSet, ...]:
    """Pods of `pod_gpus` GPUs each, and one for what is left over. `min_pods`: it runs with so many of them; 0: all."""
    whole, rest = divmod(width, pod_gpus)
    sets = [PodSet("workers", _pod_class(pod_gpus, gpu_class), whole, min_pods or whole)] if whole else []
    return (*sets, PodSet("rest", _pod_class(rest, gpu_class))) if rest else tuple(sets)


def wish_of(gpu_class: str) -> Capability:
    """A class as a trace names it, or several of which any will do: `H100|H200`."""
    return Capability(products=tuple(part.strip() for part in gpu_class.split("|") if part.strip()))


def _pod_class(gpus: int, gpu_class: str) -> PodClass:
    least = wish_of(gpu_class) if gpu_class else Capability()
    return PodClass(requests=resources({NVIDIA_GPU: gpus}), least=least, tolerations=_TOLERATED)


def is_elastic(workload: Workload) -> bool:
    """It runs with fewer pods than it wants."""
    return any(one.min_count < one.count for one in workload.pod_sets)


def least_of(workload: Workload) -> int:
    """Pods without which it does not run."""
    return sum(one.min_count for one in workload.pod_sets)


def may_run_with(workload: Workload, pods: Sequence[Allocation]) -> bool:
    """These are enough of its pods: the minimum of each set."""
    there = Counter(pod.pod_set for pod in pods)
    return bool(pods) and all(there[one.name] >= one.min_count for one in workload.pod_sets)


def still_wanted(workload: Workload, pods: Sequence[Allocation]) -> Workload | None:
    """What a gang that runs with these pods would have beside them, as the cycle knows the rest of a gang that has
    begun. It has a name of its own: what the gang has left to compute is told of those who run."""
    there = Counter(pod.pod_set for pod in pods)
    wanted = [(one, one.count - there[one.name]) for one in workload.pod_sets if there[one.name] < one.count]
    if not wanted:
        return None
    sets = tuple(msgspec.structs.replace(one, count=more, min_count=int(not i)) for i, (one, more) in enumerate(wanted))
    return msgspec.structs.replace(
        workload, name=f"{workload.name}+", pod_sets=sets, has_begun=True, topology=(), missing_pods=0
    )
