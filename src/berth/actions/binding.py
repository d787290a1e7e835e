"""Binds, sent many at a time, in the order in which they were decided; what became of each is told.

A gang's binds go out together: the first carries the whole decision as an annotation and is waited for, so that
whoever finds a part of the gang bound, after a crash at any moment, finds where the rest was to go.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import Protocol

from msgspec import Struct

from berth.kube import wire
from berth.kube.errors import ApiError

Key = tuple[str, str]  # (namespace, name)

MOST_TRIES = 4  # of one bind whose answer did not arrive
_FIRST_PAUSE_S = 0.1


class Result(Enum):
    """What became of a bind."""

    Bound = "bound"
    Taken = "bound by somebody else"
    Gone = "the pod is gone, or is another one"
    Refused = "refused for good"
    Unheard = "no answer came"
    Withdrawn = "not sent: no longer the leader, or the gang's first bind failed"


class Order(Struct, frozen=True, gc=False):
    """One pod to one node. `uid` is the precondition: another pod of that name is left alone."""

    key: Key
    uid: str
    node: str


class Outcome(Struct, frozen=True, gc=False):
    """`message` is what the API server said, where it refused; `code` its HTTP status, 0 without one."""

    order: Order
    result: Result
    code: int = 0
    message: str = ""


class Sender(Protocol):
    """What is asked of the client."""

    async def bind(
        self, namespace: str, name: str, uid: str, resource_version: str, node: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None: ...  # fmt: skip

    async def get(self, path: str, type: type[wire.Pod]) -> wire.Pod: ...


class _Convoy:
    """The binds of one workload that are decided together."""

    __slots__ = ("annotations", "rest")

    def __init__(self, rest: Sequence[Order], annotations: Mapping[str, str] | None) -> None:
        self.rest = rest
        self.annotations = annotations


class Binder:
    """Sends binds with `in_flight` at a time. `told` gets each outcome, on the event loop.

    `may_write` is asked before each send: a leader that is not sure to be one any more sends nothing.
    """

    def __init__(
        self,
        client: Sender,
        told: Callable[[Outcome], None],
        *,
        in_flight: int = 64,
        may_write: Callable[[], bool] = lambda: True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._told = told
        self._may_write = may_write
        self._sleep = sleep
        self._waiting: deque[tuple[Order, _Convoy | None]] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._busy = 0
        self._in_flight = in_flight
        self._workers: list[asyncio.Task[None]] = []

    @property
    def pending(self) -> int:
        """Binds that are decided and not answered yet."""
        return len(self._waiting) + self._busy

    async def idle(self) -> None:
        """Return once nothing is pending."""
        await self._idle.wait()

    def submit(self, orders: Sequence[Order], decision: Mapping[str, str] | None = None) -> None:
        """Send the binds of one workload, in their order. `decision` goes with the first of several."""
        if not orders:
            return
        self._idle.clear()
        if len(orders) == 1:
            self._waiting.append((orders[0], None))
        else:
            self._waiting.append((orders[0], _Convoy(orders[1:], decision)))
        self._wake.set()
        if not self._workers:
            self._workers = [asyncio.create_task(self._work()) for _ in range(self._in_flight)]

    async def close(self, *, drain_s: float = 0.0) -> None:
        """Send what is pending for `drain_s` seconds at most, then stop; what was not sent is withdrawn."""
        if drain_s and self.pending:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.idle(), drain_s)
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        while self._waiting:
            self._withdraw(*self._waiting.popleft())

    async def _work(self) -> None:
        while True:
            while not self._waiting:
                self._wake.clear()
                if not self._busy:
                    self._idle.set()
                await self._wake.wait()
            order, convoy = self._waiting.popleft()
            if not self._may_write():
                self._withdraw(order, convoy)
                continue
            self._busy += 1
            try:
                outcome = await self._send(order, convoy.annotations if convoy else None)
            finally:
                self._busy -= 1
            self._told(outcome)
            if convoy is None:
                continue
            if outcome.result is Result.Bound:
                # Before all others: a gang that has begun is to be whole as soon as can be.
                self._waiting.extendleft((one, None) for one in reversed(convoy.rest))
                self._wake.set()
            else:
                for one in convoy.rest:
                    self._told(Outcome(one, Result.Withdrawn, 0, outcome.message))

    def _withdraw(self, order: Order, convoy: _Convoy | None) -> None:
        for one in (order, *(convoy.rest if convoy else ())):
            self._told(Outcome(one, Result.Withdrawn))

    async def _send(self, order: Order, annotations: Mapping[str, str] | None) -> Outcome:
        namespace, name = order.key
        pause, heard = _FIRST_PAUSE_S, ""
        for _ in range(MOST_TRIES):
            try:
                await self._client.bind(namespace, name, order.uid, "", order.node, annotations)
            except ApiError as error:
                heard = error.message
                if error.is_not_found or error.is_conflict:
                    return await self._look(order, error)
                if not error.is_retriable:
                    return Outcome(order, Result.Refused, error.status, error.message)
            else:
                return Outcome(order, Result.Bound)
            # It may have arrived all the same: look before it is sent again.
            await self._sleep(pause)
            pause *= 2
            seen = await self._look(order, None)
            if seen.result is not Result.Unheard:
                return seen
            if not self._may_write():
                break
        return Outcome(order, Result.Unheard, 0, heard)

    async def _look(self, order: Order, refusal: ApiError | None) -> Outcome:
        """What the API server shows of the pod now."""
        namespace, name = order.key
        code, message = (refusal.status, refusal.message) if refusal else (0, "")
        try:
            pod = await self._client.get(f"/api/v1/namespaces/{namespace}/pods/{name}", wire.Pod)
        except ApiError as error:
            return Outcome(order, Result.Gone if error.is_not_found else Result.Unheard, error.status, error.message)
        meta, spec = pod.metadata or wire.NO_META, pod.spec or wire.PodSpec()
        if meta.uid != order.uid or meta.deletion_timestamp:
            return Outcome(order, Result.Gone, code, message)
        if spec.node_name:
            mine = spec.node_name == order.node
            return Outcome(order, Result.Bound if mine else Result.Taken, code, message)
        return Outcome(order, Result.Refused if refusal else Result.Unheard, code, message)
