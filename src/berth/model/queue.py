"""Queues: a tree of tenants. `quota` is guaranteed, `limit` is never passed; both in GPUs by GPU class."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

ANY_CLASS = "*"  # all GPUs, whatever their class


# From whom a queue may take back what it is owed: nobody, work of lower priority, work of no higher priority.
Reclaim = Literal["Never", "LowerPriority", "Any"]


class Queue(Struct, frozen=True, gc=False):
    """One node of the tree. A class that `quota` or `limit` does not name has no quota and no limit.

    What stands under `borrowing` is about shares (docs/internals/fair-share.md), what stands under `defaults` about
    the workloads that the queue admits.
    """

    name: str
    parent: str = ""
    weight: int = 1
    quota: tuple[tuple[str, int], ...] = ()  # (GPU class or "*", GPUs)
    limit: tuple[tuple[str, int], ...] = ()
    namespaces: tuple[str, ...] = ()  # whose workloads land here when they name no queue

    borrowing: bool = True  # it may use what others leave idle; False: its quota is its limit, too
    lending: bool = True  # others may use what it leaves idle of its quota
    reclaim: Reclaim = "Any"

    defaults: tuple[tuple[str, str], ...] = ()  # keys of pods (docs/api.md) and the values where a pod says nothing
    max_time_limit_s: float = 0.0  # of a workload, and the limit of one that states none; 0.0: no bound
    preemptible: bool | None = None  # of workloads that say nothing
    allowed_classes: tuple[str, ...] = ()  # GPU classes; () for all
    sharing: tuple[str, ...] = ()  # how GPUs may be had: exclusive, mig, time-slice, mps (sharing.py); () for all
    checkpoint_required: bool = False  # a preemptible workload has to say how often it saves its work
    is_stated: bool = True  # it is an object of the cluster, not only a name on workloads
