"""Binds, sent many at a time, in the order in which they were decided; what became of each is told.

A gang's binds go out together, with the whole decision as an annotation, so that whoever finds a part of the gang
bound, after a crash at any moment, finds where the rest was to go. Of a small gang each bind carries it; of a large one
the first, which is waited for. A small gang begins once there is room for all of its binds at once, and the slower the
server answers the fewer are under way (window.py): what has begun is not to wait for the others' answers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from itertools import islice
from typing import NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from berth.actions.window import LEAST, Window
from berth.kube import wire
from berth.kube.errors import ApiError

log = logging.getLogger("berth.binding")

Key = tuple[str, str]  # (namespace, name)

FIRST_PAUSE_S, MOST_PAUSE_S = 0.1, 5.0  # between tries of a bind whose answer did not arrive
TOGETHER = 16  # pods of a gang whose binds do not wait for the first: each of them carries the decision
LOST_S = 1.0  # without an answer: no measure any more of how busy the server is
TIMEOUT_S = 4.0  # less than what a Lease is still good for when its holder stops writing


class Result(Enum):
    """What became of a bind."""

    Bound = "bound"
    Taken = "bound by somebody else"
    Gone = "the pod is gone, or is another one"
    Refused = "refused for good"
    Withdrawn = "not sent: no longer the leader, its node is not what it was, or the gang's first bind failed"


class Order(Struct, frozen=True, gc=False):
    """One pod to one node. `uid` is the precondition: another pod of that name is left alone.

    `standing` is the node's when it was chosen, for whoever asks whether the order makes sense still.
    """

    key: Key
    uid: str
    node: str
    standing: Hashable = None


class Outcome(Struct, frozen=True, gc=False):
    """`message` is what the API server said, where it refused; `code` its HTTP status, 0 without one.

    `seconds` is from the decision to the answer; None where nothing was sent.
    """

    order: Order
    result: Result
    code: int = 0
    message: str = ""
    seconds: float | None = None


class Sender(Protocol):
    """What is asked of the client."""

    async def bind(
        self, namespace: str, pod: str, uid: str, resource_version: str | None, node: str,
        annotations: Mapping[str, str] | None = None, *, timeout_s: float = ...,
    ) -> None: ...  # fmt: skip

    async def get(self, path: str, type: type[wire.Pod]) -> wire.Pod: ...


class _Decided(NamedTuple):
    """The binds of one workload, with the decision that goes with them and the moment it was made."""

    orders: Sequence[Order]
    annotations: Mapping[str, str] | None
    at_s: float


class _Next(NamedTuple):
    """A bind to send, and those of its gang that wait until it is bound."""

    order: Order
    annotations: Mapping[str, str] | None
    rest: Sequence[Order]
    decided_s: float


class Binder:
    """Sends binds with at most `in_flight` at a time, fewer while answers are slow.

    `told` gets each outcome, on the event loop.
    `may_write` is asked before each send: a leader that is not sure to be one any more sends nothing. So is `still`,
    whether the order makes sense still: its node may have gone, or take nothing new, since it was chosen.
    """

    def __init__(
        self,
        client: Sender,
        told: Callable[[Outcome], None],
        *,
        in_flight: int = 64,
        timeout_s: float = TIMEOUT_S,
        may_write: Callable[[], bool] = lambda: True,
        still: Callable[[Order], bool] = lambda order: True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._told = told
        self._may_write = may_write
        self._still = still
        self._sleep = sleep
        self._timeout_s = timeout_s
        self._waiting: deque[_Decided] = deque()
        self._begun: deque[_Next] = deque()  # of workloads of which some are sent
        self._beginning = 0  # pods that wait for the first of their gang, which is under way
        self._under_way: dict[str, float] = {}  # by uid, when it was sent for the first time; the oldest comes first
        self._window = Window(in_flight)
        self._timer: asyncio.TimerHandle | None = None
        self._resting: list[asyncio.Future[None]] = []  # workers that found nothing to send
        self._idle = asyncio.Event()
        self._idle.set()
        self._pending = 0
        self._in_flight = in_flight
        self._tenure = 0
        self._workers: list[asyncio.Task[None]] = []

    @property
    def pending(self) -> int:
        """Binds that are decided and not answered yet."""
        return self._pending

    async def idle(self) -> None:
        """Return once nothing is pending."""
        await self._idle.wait()

    def submit(self, orders: Sequence[Order], decision: Mapping[str, str] | None = None) -> None:
        """Send the binds of one workload, in their order. `decision` goes with the first of several, or with all."""
        if not orders:
            return
        self._idle.clear()
        self._pending += len(orders)
        self._waiting.append(_Decided(orders, decision if len(orders) > 1 else None, time.monotonic()))
        if not self._workers:
            self._workers = [asyncio.create_task(self._work()) for _ in range(self._in_flight)]
        self._rouse()

    def begin(self) -> None:
        """A new tenure: what was sent in an earlier one and not answered is known now from what was listed for it."""
        self._tenure += 1
        self._withdraw_all()

    async def close(self, *, drain_s: float = 0.0) -> None:
        """Send what is pending for `drain_s` seconds at most, then stop; what was not sent is withdrawn."""
        if drain_s and self.pending:
            with suppress(TimeoutError):
                async with asyncio.timeout(drain_s):
                    await self.idle()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        self._withdraw_all()

    async def _work(self) -> None:
        while True:
            while (one := self._next()) is None:
                if not self._pending:
                    self._idle.set()
                self._resting.append(nap := asyncio.get_running_loop().create_future())
                await nap
            self._rouse()
            if not self._may_write() or not self._still(one.order):
                self._withdraw((one.order, *one.rest))
                continue
            self._beginning += len(one.rest)
            try:
                outcome = await self._send(one.order, one.annotations)
            finally:
                self._beginning -= len(one.rest)
            self._say(replace(outcome, seconds=time.monotonic() - one.decided_s))
            if outcome.result is Result.Bound:
                self._begun.extend(_Next(order, None, (), one.decided_s) for order in one.rest)
            else:
                for order in one.rest:
                    self._say(Outcome(order, Result.Withdrawn, 0, outcome.message))

    def _next(self) -> _Next | None:
        """What is to be sent now: a gang that has begun is to be whole as soon as can be, so few begin at a time.

        None of a workload is sent if one of its binds makes no sense any more when it is to begin.
        """
        while not self._begun:
            if not self._waiting:
                return None
            orders, annotations, at_s = self._waiting[0]
            waits_for_first = len(orders) > TOGETHER
            if waits_for_first and self._beginning >= self._in_flight:
                return None
            if not self._has_room_for(1 if waits_for_first else len(orders)):
                return None  # whoever is answered next looks again
            self._waiting.popleft()
            if not self._may_write() or not all(map(self._still, orders)):
                self._withdraw(orders)
            elif waits_for_first:
                return _Next(orders[0], annotations, orders[1:], at_s)
            else:
                self._begun.extend(_Next(order, annotations, (), at_s) for order in orders)
        return self._begun.popleft()

    def _has_room_for(self, pods: int) -> bool:
        """Whether so many more may be under way. What has no answer for long is in trouble of its own, and not counted.

        Where nothing is under way there is room for any gang.
        """
        now_s = time.monotonic()
        while self._under_way:
            uid, sent_s = next(iter(self._under_way.items()))
            if now_s - sent_s < LOST_S:
                # Of many a few are always late.
                *_, of_several_s = islice(self._under_way.values(), LEAST)
                has_room = len(self._under_way) + pods <= self._window.room(now_s - of_several_s)
                if not has_room and self._timer is None:
                    self._timer = asyncio.get_running_loop().call_later(sent_s + LOST_S - now_s, self._look_again)
                return has_room
            del self._under_way[uid]
        return True

    def _look_again(self) -> None:
        self._timer = None
        self._rouse()

    def _rouse(self) -> None:
        """As many workers as there may be something for."""
        wanted = len(self._begun) + min(len(self._waiting), max(1, self._window.size - len(self._under_way)))
        while wanted > 0 and self._resting:
            nap = self._resting.pop()
            if not nap.done():
                nap.set_result(None)
                wanted -= 1

    def _withdraw_all(self) -> None:
        while self._begun:
            self._withdraw((self._begun.popleft().order,))
        while self._waiting:
            self._withdraw(self._waiting.popleft().orders)

    def _withdraw(self, orders: Sequence[Order]) -> None:
        for order in orders:
            self._say(Outcome(order, Result.Withdrawn))

    def _say(self, outcome: Outcome) -> None:
        self._pending -= 1
        try:
            self._told(outcome)
        except Exception:  # of whoever listens: the other binds go on
            log.exception("an outcome could not be told", extra={"pod": "/".join(outcome.order.key)})

    async def _send(self, order: Order, annotations: Mapping[str, str] | None) -> Outcome:
        """Until something is known of it: what may have arrived is not given to anybody else meanwhile.

        Nor while we may not write for a moment: the pod is looked at until the answer is known, or we may again.
        """
        pause, tenure, is_first = FIRST_PAUSE_S, self._tenure, True
        while self._tenure == tenure:
            if self._may_write():
                try:
                    await self._ask(order, annotations, is_first)
                except ApiError as error:
                    if error.is_not_found or error.is_conflict:
                        seen = await self._look(order, error)
                        if seen is not None:
                            return seen
                    elif not error.is_retriable:
                        return Outcome(order, Result.Refused, error.status, error.message)
                else:
                    return Outcome(order, Result.Bound)
                is_first = False
            await self._sleep(pause)
            pause = min(2 * pause, MOST_PAUSE_S)
            # It may have arrived all the same: look before it is sent again.
            if (seen := await self._look(order, None)) is not None:
                return seen
        return Outcome(order, Result.Withdrawn)

    async def _ask(self, order: Order, annotations: Mapping[str, str] | None, is_first: bool) -> None:
        """One request. How soon the first one is answered says how many there may be under way."""
        namespace, name = order.key
        sent_s = time.monotonic()
        if is_first:
            self._under_way[order.uid] = sent_s
        try:
            await self._client.bind(
                namespace, name, order.uid, None, order.node, annotations, timeout_s=self._timeout_s
            )
        except BaseException:
            if self._under_way.pop(order.uid, None) is not None:
                self._rouse()  # this worker stays with its bind
            raise
        self._under_way.pop(order.uid, None)
        if is_first:
            self._window.heard(sent_s, time.monotonic())

    async def _look(self, order: Order, refusal: ApiError | None) -> Outcome | None:
        """What the API server shows of the pod now; None where it cannot be asked, or the pod still waits."""
        namespace, name = order.key
        code, message = (refusal.status, refusal.message) if refusal else (0, "")
        try:
            pod = await self._client.get(f"/api/v1/namespaces/{namespace}/pods/{name}", wire.Pod)
        except ApiError as error:
            return Outcome(order, Result.Gone, error.status, error.message) if error.is_not_found else None
        meta, spec = pod.metadata or wire.NO_META, pod.spec or wire.PodSpec()
        if meta.uid != order.uid or meta.deletion_timestamp:
            return Outcome(order, Result.Gone, code, message)
        if spec.node_name:
            return Outcome(order, Result.Bound if spec.node_name == order.node else Result.Taken, code, message)
        return Outcome(order, Result.Refused, code, message) if refusal else None
