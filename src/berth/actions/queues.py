"""Writes the status of GPUQueues: at most once in a while, and only what changed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from berth.actions.fence import Fenced
from berth.actions.queue_status import QueueSaid, status_change, statuses
from berth.actions.subjects import stamp
from berth.kube.errors import ApiError
from berth.model.queue import Queue
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload

EVERY_S = 60.0  # unless a queue itself changed


class QueueStatuses:
    """`changed` is called with the name of each queue whose status is to be written; `write` writes it."""

    def __init__(
        self,
        client: Fenced,
        counts: Counter[str],
        *,
        changed: Callable[[str], None],
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self._client = client
        self._counts = counts
        self._changed = changed
        self._clock = clock
        self._now = now
        self._latest: tuple[Snapshot, Sequence[Workload]] | None = None
        self._said: dict[str, QueueSaid] = {}
        self._queues: tuple[Queue, ...] = ()
        self._task: asyncio.Task[None] | None = None
        self._at_s = float("-inf")

    def take(self, snapshot: Snapshot, waiting: Sequence[Workload]) -> None:
        """How it is now. The last state is told, too, if nothing comes after it."""
        self._latest = (snapshot, waiting)
        if snapshot.queues != self._queues:
            self._queues, self._at_s = snapshot.queues, float("-inf")
            self._stop()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look())

    def forget(self) -> None:
        """What was told is not known any more."""
        self._said.clear()
        self._at_s = float("-inf")
        self._stop()

    async def close(self) -> None:
        self._stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def write(self, name: str) -> None:
        """Raises ApiError, Withdrawn; then it is looked at anew the next time."""
        said = self._said.get(name)
        if said is None:
            return
        path = f"/apis/berth.dev/v1alpha1/gpuqueues/{name}"
        try:
            there = await self._client.get(path)
            status = status_change(there, said, stamp(self._now()))
            if status is not None:
                uid = (there.get("metadata") or {}).get("uid")
                body = msgspec.json.encode({"metadata": {"uid": uid}, "status": status})
                await self._client.patch(f"{path}/status", body)
                self._counts["queues_written"] += 1
        except ApiError as error:
            if not error.is_not_found:
                raise

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _look(self) -> None:
        while self._latest is not None:
            await asyncio.sleep(max(0.0, self._at_s + EVERY_S - self._clock()))
            (snapshot, waiting), self._latest = self._latest, None
            self._at_s = self._clock()
            for name, said in (await statuses(snapshot, waiting)).items():
                if self._said.get(name) != said:
                    self._said[name] = said
                    self._changed(name)
