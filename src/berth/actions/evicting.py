"""Evictions: pods asked to leave for a workload whose place is held, through the API that heeds disruption budgets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from berth.kube.errors import ApiError

Key = tuple[str, str]  # (namespace, name)

TIMEOUT_TRIES = 4
_FIRST_PAUSE_S = 0.2


class Leave(Struct, frozen=True, gc=False):
    """One pod is to leave. `beneficiary` is the identity of the workload that has the hold on its place.

    `beyond_budget`: its disruption budget is passed over, as the configuration allows.
    """

    key: Key
    uid: str
    beneficiary: str
    beyond_budget: bool = False


class Left(Struct, frozen=True, gc=False):
    """What became of it. `is_leaving`: it has been told to go, or was gone already."""

    leave: Leave
    is_leaving: bool
    message: str = ""


class Sender(Protocol):
    """What is asked of the client."""

    async def evict(self, namespace: str, pod: str, uid: str, grace_s: int | None = None) -> None: ...

    async def delete(self, path: str, *, uid: str | None = None) -> bytes: ...


class Evictor:
    """Sends evictions, `in_flight` at a time. `told` gets what became of each, on the event loop."""

    def __init__(
        self,
        client: Sender,
        told: Callable[[Left], None],
        *,
        in_flight: int = 32,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client = client
        self._told = told
        self._may_write = may_write
        self._places = asyncio.Semaphore(in_flight)
        self._under_way: set[asyncio.Task[None]] = set()
        self._asked: set[tuple[Key, str]] = set()

    @property
    def pending(self) -> int:
        return len(self._under_way)

    def submit(self, leaving: Sequence[Leave]) -> None:
        """Ask these pods to leave; one that has been asked and not answered is not asked again."""
        for leave in leaving:
            asked = (leave.key, leave.uid)
            if asked not in self._asked:
                self._asked.add(asked)
                task = asyncio.create_task(self._send(leave))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _send(self, leave: Leave) -> None:
        try:
            async with self._places:
                self._told(await self._ask(leave))
        finally:
            self._asked.discard((leave.key, leave.uid))

    async def _ask(self, leave: Leave) -> Left:
        namespace, name = leave.key
        pause, heard = _FIRST_PAUSE_S, "no longer the leader"
        for _ in range(TIMEOUT_TRIES):
            if not self._may_write():
                break
            try:
                if leave.beyond_budget:
                    await self._client.delete(f"/api/v1/namespaces/{namespace}/pods/{name}", uid=leave.uid)
                else:
                    await self._client.evict(namespace, name, leave.uid)
            except ApiError as error:
                heard = error.message
                if error.is_not_found or error.is_conflict:
                    return Left(leave, True, error.message)  # it is gone, or another pod has its name now
                if not error.is_retriable or error.is_too_many:  # 429: its budget does not allow it now
                    break
            else:
                return Left(leave, True)
            await asyncio.sleep(pause)
            pause *= 2
        return Left(leave, False, heard)
