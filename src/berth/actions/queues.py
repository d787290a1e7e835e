"""Writes the status of GPUQueues: at most once in a while, and only what changed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from berth.actions.fence import Fenced
from berth.actions.own_status import write_status
from berth.actions.queue_status import QueueSaid, counted, status_change
from berth.actions.subjects import stamp
from berth.model.queue import Queue
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload
from berth.scheduling.usage import HALF_LIFE_S, decayed

EVERY_S = 60.0  # unless a queue itself changed


class QueueStatuses:
    """`changed` is called with the name of each queue whose status is to be written; `write` writes it. `used` is told
    what queues have used by now: what they hold is counted from one look to the next, and halves in
    `half_life_s`."""

    def __init__(
        self,
        client: Fenced,
        counts: Counter[str],
        *,
        changed: Callable[[str], None],
        clock: Callable[[], float],
        now: Callable[[], float],
        used: Callable[[Mapping[str, float], float], None] = lambda usage, at_s: None,
        half_life_s: float = HALF_LIFE_S,
    ) -> None:
        self._used = used
        self._half_life_s = half_life_s
        self._client = client
        self._counts = counts
        self._changed = changed
        self._clock = clock
        self._now = now
        self._latest: tuple[Snapshot, Sequence[Workload], Mapping[str, float]] | None = None
        self._usage: dict[str, float] = {}
        self._held: tuple[Mapping[str, float], float] | None = None  # and since when it has been counted
        self._said: dict[str, QueueSaid] = {}
        self._queues: tuple[Queue, ...] = ()
        self._task: asyncio.Task[None] | None = None
        self._at_s = float("-inf")

    def take(self, snapshot: Snapshot, waiting: Sequence[Workload], due: Mapping[str, float]) -> None:
        """How it is now. The last state is told, too, if nothing comes after it."""
        self._latest = (snapshot, waiting, due)
        if snapshot.queues != self._queues:
            self._queues, self._at_s = snapshot.queues, float("-inf")
            self._stop()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look())

    def forget(self) -> None:
        """What was told is not known any more."""
        self._said.clear()
        self._held = None  # who led meanwhile has counted
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
        at = stamp(self._now())
        if await write_status(self._client, path, lambda there: status_change(there, said, at)):
            self._counts["queues_written"] += 1

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _look(self) -> None:
        while self._latest is not None:
            await asyncio.sleep(max(0.0, self._at_s + EVERY_S - self._clock()))
            (snapshot, waiting, due), self._latest = self._latest, None
            self._at_s = self._clock()
            count = await counted(snapshot, waiting, due)
            usage = self._counted(snapshot, count.holds)
            for name, said in count.said.items():
                said = replace(said, past=(usage[name], snapshot.now_s) if name in usage else None)
                if self._said.get(name) != said:
                    self._said[name] = said
                    self._changed(name)

    def _counted(self, snapshot: Snapshot, holds: Mapping[str, float]) -> Mapping[str, float]:
        """What queues have used until the snapshot; what they hold counts from now on."""
        at_s = snapshot.now_s
        if self._held is None:  # as whoever led before has written it
            self._usage = dict(snapshot.usage)
        else:
            held, since_s = self._held
            self._usage = decayed(self._usage, held, at_s - since_s, self._half_life_s)
        self._held = (holds, at_s)
        self._used(self._usage, at_s)
        return self._usage
