"""Queues: a tree of tenants. `quota` is guaranteed, `limit` is never passed; both in GPUs by GPU class."""

from __future__ import annotations

from msgspec import Struct

ANY_CLASS = "*"  # all GPUs, whatever their class


class Queue(Struct, frozen=True, gc=False):
    """One node of the tree. A class that `quota` or `limit` does not name has no quota and no limit."""

    name: str
    parent: str = ""
    weight: int = 1
    quota: tuple[tuple[str, int], ...] = ()  # (GPU class or "*", GPUs)
    limit: tuple[tuple[str, int], ...] = ()
    namespaces: tuple[str, ...] = ()  # whose workloads land here when they name no queue
