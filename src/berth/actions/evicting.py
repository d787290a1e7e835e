"""Evictions: pods asked to leave for a workload whose place is held, through the API that heeds disruption budgets.

What they leave for is written down before the first of them is asked: the node of each pod for whom room is made, in
its status. A leader that follows, at whatever moment, keeps what comes free for these pods and asks for the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from berth.actions import conditions
from berth.actions.conditions import PodSaid
from berth.actions.subjects import pod_path
from berth.kube.client import PatchKind
from berth.kube.errors import ApiError

log = logging.getLogger("berth.evicting")

Key = tuple[str, str]  # (namespace, name)

TIMEOUT_TRIES = 4
_FIRST_PAUSE_S = 0.2
_INVALID = 422  # a uid that differs is called invalid, since it may not be changed
_NO_ANSWER = 503


class Leave(Struct, frozen=True, gc=False):
    """One pod is to leave. `beneficiary` is the identity of the workload that has the hold on its place.

    `beyond_budget`: its disruption budget is passed over, as the configuration allows.
    """

    key: Key
    uid: str
    beneficiary: str
    beyond_budget: bool = False


class Promise(Struct, frozen=True, gc=False):
    """A pod that waits gets this node once others have left."""

    key: Key
    uid: str
    node: str


class Left(Struct, frozen=True, gc=False):
    """What became of it. `is_leaving`: it has been told to go, or was gone already.

    Else `refused` is the HTTP status with which the API server did not let it go (429: its budget does not allow it
    now), or 0 where it has not been asked, and `message` says why.
    """

    leave: Leave
    is_leaving: bool
    message: str = ""
    refused: int = 0


class Sender(Protocol):
    """What is asked of the client."""

    async def evict(self, namespace: str, pod: str, uid: str, grace_s: int | None = None) -> None: ...

    async def delete(self, path: str, *, uid: str | None = None) -> bytes: ...

    async def patch(self, path: str, obj: bytes, kind: PatchKind = "merge") -> bytes: ...


class Evictor:
    """Sends evictions, `in_flight` at a time. `told` gets what became of each, on the event loop.

    `may_write` is asked before each request. `promising` hears of each promise before it is written down, `promised`
    whether it has been.
    """

    def __init__(
        self,
        client: Sender,
        told: Callable[[Left], None],
        *,
        promising: Callable[[Promise], None] = lambda promise: None,
        promised: Callable[[Promise, bool], None] = lambda promise, is_written: None,
        in_flight: int = 32,
        may_write: Callable[[], bool] = lambda: True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._told = told
        self._promising = promising
        self._promised = promised
        self._may_write = may_write
        self._sleep = sleep
        self._places = asyncio.Semaphore(in_flight)
        self._under_way: set[asyncio.Task[None]] = set()
        self._asked: set[tuple[Key, str]] = set()

    @property
    def pending(self) -> int:
        """Pods that have been asked to leave, or are to be, without an answer yet."""
        return len(self._asked)

    def submit(self, leaving: Sequence[Leave], promises: Mapping[str, Sequence[Promise]] | None = None) -> None:
        """Ask these pods to leave; one that has been asked and not answered is not asked again.

        `promises` by beneficiary are written down before any of the pods that leave for it is asked.
        """
        rooms: dict[str, list[Leave]] = {}
        for leave in leaving:
            asked = (leave.key, leave.uid)
            if asked not in self._asked:
                self._asked.add(asked)
                rooms.setdefault(leave.beneficiary, []).append(leave)
        for beneficiary, leaves in rooms.items():
            own = (promises or {}).get(beneficiary, ())
            for promise in own:
                self._promising(promise)
            task = asyncio.create_task(self._clear(leaves, own))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _clear(self, leaves: Sequence[Leave], promises: Sequence[Promise]) -> None:
        """Make room for one workload."""
        try:
            said = await asyncio.gather(*(self._promise(promise) for promise in promises))
            why_not = next((why for why in said if why), "")
            if why_not:
                for leave in leaves:
                    self._say(Left(leave, False, why_not))
            else:
                await asyncio.gather(*(self._send(leave) for leave in leaves))
        finally:
            self._asked.difference_update((leave.key, leave.uid) for leave in leaves)

    async def _promise(self, promise: Promise) -> str:
        """Why nobody is to leave for it, "" where all is well."""
        is_written, why_not = await self._write(promise)
        self._promised(promise, is_written)
        return why_not

    async def _write(self, promise: Promise) -> tuple[bool, str]:
        """Write one down: whether it is, and why nobody is to leave for it."""
        body = conditions.change(PodSaid(promise.uid, "", promise.node), ("node",), b"")
        pause, heard = _FIRST_PAUSE_S, "no longer the leader"
        for _ in range(TIMEOUT_TRIES):
            async with self._places:
                if not self._may_write():
                    break
                try:
                    await self._client.patch(f"{pod_path(promise.key)}/status", body, "strategic")
                except ApiError as error:
                    heard = f"the node of {promise.key[1]} could not be written down: {error.message}"
                    if error.is_not_found or error.is_conflict or error.status == _INVALID:
                        return False, f"{promise.key[1]} is gone, or is another one"
                    if not error.is_retriable:
                        # A right is missing, or somebody objects: room is made all the same, without a record.
                        log.warning("room is made without a record", extra={"said": error.sentence})
                        return False, ""
                else:
                    return True, ""
            await self._sleep(pause)
            pause *= 2
        return False, heard

    async def _send(self, leave: Leave) -> None:
        try:
            self._say(await self._ask(leave))
        finally:
            self._asked.discard((leave.key, leave.uid))

    def _say(self, left: Left) -> None:
        try:
            self._told(left)
        except Exception:  # of whoever listens: the others are asked all the same
            log.exception("what became of an eviction could not be told", extra={"pod": "/".join(left.leave.key)})

    async def _ask(self, leave: Leave) -> Left:
        namespace, name = leave.key
        pause, heard, refused = _FIRST_PAUSE_S, "no longer the leader", 0
        for _ in range(TIMEOUT_TRIES):
            async with self._places:
                if not self._may_write():
                    break
                try:
                    if leave.beyond_budget:
                        await self._client.delete(pod_path(leave.key), uid=leave.uid)
                    else:
                        await self._client.evict(namespace, name, leave.uid)
                except ApiError as error:
                    heard, refused = error.message, error.status or _NO_ANSWER
                    if error.is_not_found or error.is_conflict:
                        return Left(leave, True, error.message)  # it is gone, or another pod has its name now
                    if not error.is_retriable or error.is_too_many:  # 429: its budget does not allow it now
                        break
                else:
                    return Left(leave, True)
            await self._sleep(pause)
            pause *= 2
        return Left(leave, False, heard, refused)
