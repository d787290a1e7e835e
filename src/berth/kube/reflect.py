"""A kind as it is now and as it changes: list, watch, resume, and never miss that something is gone."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from berth.kube.changes import Change, Identity, Key, Known, Trouble, identity_of, key_of
from berth.kube.client import Client
from berth.kube.errors import ApiError, Unreachable, refusal_in_stream
from berth.kube.lines import Lines
from berth.kube.listing import PAGE_OBJECTS, pages
from berth.kube.retry import Backoff

__all__ = ["Change", "Key", "Reflector", "Trouble"]

T = TypeVar("T")

WATCH_S = (240, 360)
"""A watch asks to be ended after a time drawn from here, so that many do not come back at once."""
GRACE_S = 15.0
LOOK_AGAIN_S = 60.0
"""A kind that is not served, or that we may not see, is asked for again this often."""
MOST_HELD_S = 0.005
SHORTEST_S = 1.0
MOST_ERRORS_IN_PLACE = 3
FIRST_ANSWER_S = 20.0
"""A server that takes no notice of `sendInitialEvents` stays silent on an empty kind: then pages are asked for."""
INITIAL_END = "k8s.io/initial-events-end"


class Event(Struct, frozen=True, gc=False):
    """One line of a watch; the object stays undecoded until its type is known."""

    type: str
    object: msgspec.Raw


_EVENT = msgspec.json.Decoder(Event)
_IDENTITY = msgspec.json.Decoder(Identity)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)


class Reflector(Generic[T]):
    """Tells `sink` every object of a kind and every change, in batches, on the event loop, in order.

    `type` is a Struct with `metadata: ObjectMeta`, or `dict`. What is kept here of an object is its uid and its
    resourceVersion. After a gap (410) the kind is listed again and the sink is told the difference: what is new
    or changed as `put`, what vanished as `gone`; of an object that was made anew under its old name, both.

    Where a path that has been there answers 404, `has_gone` is asked, with the seconds since it first did: False
    tries it again, True tells that all objects are gone. `after` is a reflector of the same kind at another path, which
    has ended: what it has told of is not told as new, and what vanished since is.

    `synced` is set when the first list is whole, or the kind is known to be absent. `answered` is also set when
    we know that we may not see it. `is_current`: all that the server has said by now was heard, as far as can be
    known; not while a list is under way or nothing can be watched. `last_heard_s` is monotonic: when the server
    last said anything.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        type: type[T],
        sink: Callable[[list[Change[T]]], None],
        *,
        label_selector: str = "",
        field_selector: str = "",
        page_limit: int = PAGE_OBJECTS,
        troubles: Callable[[Trouble], None] | None = None,
        failures: Callable[[ApiError], None] | None = None,
        has_gone: Callable[[float], Awaitable[bool]] | None = None,
        after: Reflector[Any] | None = None,
        watch_s: tuple[float, float] = WATCH_S,
        grace_s: float = GRACE_S,
        look_again_s: float = LOOK_AGAIN_S,
        first_answer_s: float = FIRST_ANSWER_S,
        stream_lists: bool = True,
        backoff: Backoff | None = None,
    ) -> None:
        self.path = path
        self.synced = asyncio.Event()
        self.answered = asyncio.Event()
        self.resource_version = ""
        self.last_heard_s = 0.0
        self.is_absent = False
        self.is_forbidden = False
        self.is_current = False
        self.relists = 0
        self._client = client
        self._type = type
        self._decode = msgspec.json.Decoder(type).decode
        self._sink = sink
        self._selectors: dict[str, str | int] = {}
        if label_selector:
            self._selectors["labelSelector"] = label_selector
        if field_selector:
            self._selectors["fieldSelector"] = field_selector
        self._page_limit = page_limit
        self._troubles = troubles or (lambda trouble: None)
        self._failures = failures or (lambda error: None)
        self._has_gone = has_gone
        self._missing_since_s: float | None = None
        self._watch_s = watch_s
        self._grace_s = grace_s
        self._look_again_s = look_again_s
        self._first_answer_s = first_answer_s
        self._errors_in_place = 0
        self._stream_lists = stream_lists
        self._backoff = backoff or Backoff(0.2, 30.0)
        self._known: Known[T] = Known()
        if after is not None:
            self._known.begin_with(after._known)
        # Keys seen by the streaming list that is under way; None outside one.
        self._seen: set[Key] | None = None
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        """How many objects there are, as far as is known."""
        return len(self._known)

    def look_again(self) -> None:
        """End a wait now: for an absent kind when its CustomResourceDefinition was seen, for instance."""
        self._wake.set()

    async def run(self) -> None:
        """List and watch until cancelled. Nothing that the API server does ends it."""
        while True:
            before = self.resource_version
            began_s = time.monotonic()
            try:
                if not self.resource_version and not self._stream_lists:
                    await self._list()
                await self._watch()
            except ApiError as error:
                self.is_current = False
                await self._after(error)
                continue
            if self.resource_version == before and time.monotonic() - began_s < SHORTEST_S:
                # Ended at once with nothing said: a server that does that is not asked in a loop.
                await self._sleep(self._backoff.next_s())

    def begin_anew(self) -> None:
        """Forget how far was heard: the next `run` lists everything. Only while none is under way.

        A run that is about to be cancelled still takes what has reached it, and the position with it.
        """
        self.synced.clear()
        self.resource_version = ""

    # ---- after a failure

    async def _after(self, error: ApiError) -> None:
        """Wait as long as this failure deserves, and forget the position where it is of no use."""
        self._seen = None
        if error.is_gone or error.is_too_new:
            self.resource_version = ""
            self.relists += 1
            # The first relist comes at once; a server that answers 410 to each is not asked in a loop.
            await self._sleep(self._backoff.next_s() if self._backoff.failures else 0.0)
            self._backoff.failures += 1
            return
        if error.is_not_found:
            if len(self._known) and self._has_gone is not None:
                self._missing_since_s = self._missing_since_s or time.monotonic()
                if not await self._has_gone(time.monotonic() - self._missing_since_s):
                    await self._sleep(self._backoff.next_s())
                    return
            self.is_absent, self.is_forbidden = True, False
            self.resource_version = ""
            await self._forget(set())
            self.synced.set()
            self.answered.set()
            await self._sleep(self._look_again_s * random.uniform(0.8, 1.2))
            return
        self._failures(error)
        if self._errors_in_place >= MOST_ERRORS_IN_PLACE:
            # The same error at the same position each time: the position is what is wrong.
            self._errors_in_place, self.resource_version = 0, ""
        if error.is_forbidden:
            self.is_forbidden = True
            self.answered.set()
            await self._sleep(self._look_again_s * random.uniform(0.8, 1.2))
            return
        if self._stream_lists and not self.resource_version and error.status in (400, 422):
            # The gate WatchList is off: this server lists in pages.
            self._stream_lists = False
            return
        await self._sleep(self._backoff.next_s(error.retry_after_s))

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
        # Cleared after the wait: a call that comes while a request is under way is not lost.
        self._wake.clear()

    # ---- list

    async def _list(self) -> None:
        """Page by page; what vanished is told at the end."""
        seen: set[Key] = set()
        version = ""
        async for page in pages(
            self._client, self.path, self._type, self._page_limit, params=self._selectors, is_lenient=True
        ):
            if page.is_first:
                seen.clear()
            self._heard()
            version = page.resource_version
            changes: list[Change[T]] = []
            for broken in page.undecodable:
                self._skip(broken.problem, broken.raw, seen)
            for item in page.items:
                identity = identity_of(item)
                if identity is None:
                    self._troubles(Trouble(self.path, None, "an object without a name"))
                    continue
                key = key_of(identity)
                seen.add(key)
                self._known.put(key, identity, item, changes)
            if changes:
                self._sink(changes)
            await asyncio.sleep(0)
        await self._whole(seen, version)

    async def _whole(self, seen: set[Key], version: str) -> None:
        """The list is complete: what it did not have is gone."""
        await self._forget(seen)
        self.resource_version = version
        self.is_absent = self.is_forbidden = False
        self.is_current = True
        self._backoff.succeeded()
        self.synced.set()
        self.answered.set()

    async def _forget(self, but: set[Key]) -> None:
        gone = self._known.all_but(but)
        for start in range(0, len(gone), 2000):
            changes: list[Change[T]] = []
            for key in gone[start : start + 2000]:
                self._known.drop(key, changes)
            self._sink(changes)
            await asyncio.sleep(0)

    # ---- watch

    async def _watch(self) -> None:
        """One watch from where we are, from the beginning where we are nowhere. Returns when the server ends it."""
        lasts_s = random.uniform(*self._watch_s)
        params: dict[str, str | int] = {
            **self._selectors,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": max(1, round(lasts_s)),
        }
        is_list = not self.resource_version
        if is_list:
            params["sendInitialEvents"] = "true"
            params["resourceVersionMatch"] = "NotOlderThan"
            self._seen = set()
        else:
            params["resourceVersion"] = self.resource_version
        lines = Lines()
        try:
            async with self._client.stream(self.path, params, silence_s=lambda: self._silence_s(lasts_s)) as pieces:
                self._heard()
                self.is_absent = self.is_forbidden = False
                self.is_current = not is_list
                async for piece in pieces:
                    self._heard()
                    if whole := lines.take(piece):
                        await self._take(whole)
        except Unreachable:
            if self._seen is not None and time.monotonic() - self.last_heard_s >= self._first_answer_s:
                self._stream_lists = False
            raise
        if self._seen is not None:
            raise ApiError(500, "Incomplete", "the list ended before it was whole", verb="WATCH", path=self.path)

    def _silence_s(self, lasts_s: float) -> float:
        """How long the server may say nothing: while it lists not long, else as long as the watch was to last."""
        return self._first_answer_s if self._seen is not None else lasts_s + self._grace_s

    async def _take(self, lines: list[bytes]) -> None:
        """Tell what these lines say, in slices short enough for everybody else on the loop."""
        changes: list[Change[T]] = []
        ends_s = time.perf_counter() + MOST_HELD_S
        for number, line in enumerate(lines):
            try:
                event = _EVENT.decode(line)
            except _UNREADABLE as error:
                self._troubles(Trouble(self.path, None, f"a line of the watch is no event: {error}"))
                continue
            if event.type in ("ADDED", "MODIFIED"):
                self._take_put(event.object, changes)
            elif event.type == "DELETED":
                self._take_gone(event.object, changes)
            else:
                if changes:  # told before the position moves past them
                    self._sink(changes)
                    changes = []
                if event.type == "BOOKMARK":
                    await self._take_bookmark(event.object)
                elif event.type == "ERROR":
                    self._errors_in_place += 1
                    raise refusal_in_stream(event.object, self.path)
            if number + 1 < len(lines) and time.perf_counter() >= ends_s:
                if changes:
                    self._sink(changes)
                    changes = []
                await asyncio.sleep(0)
                ends_s = time.perf_counter() + MOST_HELD_S
        if changes:
            self._sink(changes)

    def _take_put(self, raw: msgspec.Raw, changes: list[Change[T]]) -> None:
        try:
            item = self._decode(raw)
        except _UNREADABLE as error:
            self._skip(str(error), raw, self._seen)
            return
        identity = identity_of(item)
        if identity is None:
            self._troubles(Trouble(self.path, None, "an object without a name"))
            return
        key = key_of(identity)
        if self._seen is not None:
            self._seen.add(key)
        else:
            self._advance(identity.resource_version)
        self._known.put(key, identity, item, changes)

    def _take_gone(self, raw: msgspec.Raw, changes: list[Change[T]]) -> None:
        try:
            identity = _IDENTITY.decode(raw).metadata
        except _UNREADABLE as error:
            self._troubles(Trouble(self.path, None, f"a deleted object cannot be read: {error}"))
            return
        if identity is None or not identity.name:
            return
        key = key_of(identity)
        if self._seen is None:
            self._advance(identity.resource_version)
        self._known.drop(key, changes)

    async def _take_bookmark(self, raw: msgspec.Raw) -> None:
        try:
            meta = _IDENTITY.decode(raw).metadata
        except _UNREADABLE:
            return
        if meta is None or not meta.resource_version:
            return
        if self._seen is None:
            self._advance(meta.resource_version)
        elif (meta.annotations or {}).get(INITIAL_END) == "true":
            seen, self._seen = self._seen, None
            await self._whole(seen, meta.resource_version)

    def _advance(self, version: str | None) -> None:
        if version:
            self.resource_version = version
        self._errors_in_place = 0
        if self._backoff.failures:
            self._backoff.succeeded()

    def _skip(self, problem: str, raw: bytes | msgspec.Raw, seen: set[Key] | None) -> None:
        """Tell of an object that could not be decoded; it is there all the same."""
        key: Key | None = None
        try:
            identity = _IDENTITY.decode(raw).metadata
        except _UNREADABLE:
            identity = None
        if identity is not None and identity.name:
            key = key_of(identity)
            if seen is not None:
                seen.add(key)
            else:
                self._advance(identity.resource_version)
        self._troubles(Trouble(self.path, key, problem))

    def _heard(self) -> None:
        self.last_heard_s = time.monotonic()
        self._missing_since_s = None
