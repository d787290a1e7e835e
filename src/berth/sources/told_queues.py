"""Queues by what the scheduler has written of them, for whoever cannot see the pods that they pay for."""

from __future__ import annotations

from collections.abc import Iterator

from berth.kube.client import Client
from berth.kube.discover import Served
from berth.kube.errors import ApiError
from berth.kube.listing import pages
from berth.kube.wire import ObjectMeta, Wire
from berth.kube.wire_queues import GPUQueue, QueueSpec
from berth.model.queue import Queue
from berth.scheduling.lines import QueueLine
from berth.sources.live.kinds import Kind
from berth.sources.queues_read import queues_in


class QueueStatus(Wire, frozen=True, gc=False):
    used: dict[str, int] | None = None
    running: int | None = None
    waiting: int | None = None
    waiting_gpus: int | None = None
    due_share: float | None = None
    past_usage: float | None = None


class QueueObject(Wire, frozen=True, gc=False):
    """gpuqueues.berth.dev with what the scheduler writes into its status."""

    metadata: ObjectMeta | None = None
    spec: QueueSpec | None = None
    status: QueueStatus | None = None


QUEUES = Kind("berth.dev", "gpuqueues", "GPUQueue", QueueObject)


async def queues(client: Client, served: Served) -> tuple[list[QueueLine], tuple[Queue, ...]]:
    """Queues by what the scheduler last wrote of them, as a tree, and as they are stated; none where they may not be
    seen.

    `used_milli` is empty and `running` -1 where it has written nothing yet.
    """
    resource = served.preferred(QUEUES.group, QUEUES.resource)
    found: dict[str, QueueObject] = {}
    try:
        if resource is not None:
            async for page in pages(client, resource.path(), QueueObject, is_lenient=True):
                found.update(((q.metadata.name if q.metadata else None) or "", q) for q in page.items)
    except ApiError as error:
        if not (error.is_forbidden or error.is_not_found):
            raise
    stated = queues_in({name: GPUQueue(thing.metadata, thing.spec) for name, thing in found.items()})
    return list(_tree(found)), stated


def _tree(found: dict[str, QueueObject]) -> Iterator[QueueLine]:
    """Parents before their children, both by name; queues that are each other's parents stand at the end."""
    parents = {name: (thing.spec.parent if thing.spec else None) or "" for name, thing in found.items()}
    children: dict[str, list[str]] = {}
    for name in sorted(found, reverse=True):
        children.setdefault(parents[name] if parents[name] in found else "", []).append(name)
    todo = [(name, 0) for name in children.get("", ())]
    left = set(found)
    while todo:
        name, depth = todo.pop()
        left.discard(name)
        yield _line(name, depth, found[name])
        todo.extend((child, depth + 1) for child in children.get(name, ()))
    for name in sorted(left):
        yield _line(name, 0, found[name])


def _line(name: str, depth: int, thing: QueueObject) -> QueueLine:
    spec, status = thing.spec or QueueSpec(), thing.status or QueueStatus()
    return QueueLine(
        name=name,
        parent=spec.parent or "",
        depth=depth,
        weight=1 if spec.weight is None else spec.weight,
        is_object=True,
        used_milli={gpu_class: gpus * 1000 for gpu_class, gpus in (status.used or {}).items()},
        quota=spec.quota or {},
        limit=spec.limit or {},
        running=-1 if status.running is None else status.running,
        waiting=status.waiting or 0,
        waiting_milli=(status.waiting_gpus or 0) * 1000,
        due_milli=-1 if status.due_share is None else round(status.due_share * 1000),
        used_hours=status.past_usage or 0.0,
    )
