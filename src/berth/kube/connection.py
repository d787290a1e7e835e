"""Requests and streams: one identity at one API server, typed refusals, bounded retries."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

import berth
from berth.base.errors import BadInput
from berth.kube.access import Access
from berth.kube.credentials import Credentials
from berth.kube.errors import UNAUTHORIZED, ApiError, Unreachable, refusal
from berth.kube.http1 import Answered
from berth.kube.lanes import Lanes, keep_alive
from berth.kube.retry import Backoff, may_repeat
from berth.kube.unreached import as_said, in_words

Body = bytes | msgspec.Struct | dict[str, Any] | list[Any]

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "PATCH"})
# The server closes a connection that was idle for longer (90 s); closing first means never writing into a dying one.
IDLE_S = 60.0
READ_BUFFER_BYTES = 1 << 20
MOST_ATTEMPTS = 6


class Connection:
    """One API server, one identity, a pool of connections. Use it as `async with Client(access) as client`.

    At most `most_in_flight` requests are under way at a time, and as many binds beside them; watches and requests
    marked `urgent` (a Lease) do not queue behind either. `is_far` asks for compressed lists: a tenth of the bytes,
    for more CPU on both sides; on the network of the cluster plain JSON is faster. `counts` has how often each verb
    got each status (0: no answer). `delay_s` makes each request wait first, given verb and path: for tests.
    """

    def __init__(
        self,
        access: Access,
        *,
        user_agent: str = "",
        most_in_flight: int = 64,
        is_far: bool = False,
        delay_s: Callable[[str, str], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.access = access
        self.counts: Counter[tuple[str, int]] = Counter()
        self.in_flight = 0
        self.delay_s = delay_s
        self._clock = clock
        self._base = access.server
        self._user_agent = user_agent or f"berth/{berth.__version__}"
        self._is_far = is_far
        self._places = asyncio.Semaphore(most_in_flight)
        self._places_of_binds = asyncio.Semaphore(most_in_flight)  # a gang's do not wait for what people are told
        self._credentials = Credentials(access, clock)
        self._session: aiohttp.ClientSession | None = None
        self._lanes = None if access.proxy_url else Lanes(access.server, access.tls_server_name, clock, IDLE_S)

    async def __aenter__(self) -> Self:
        await self._credentials.refresh()
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=IDLE_S, socket_factory=_live_socket, ttl_dns_cache=30, happy_eyeballs_delay=0.1
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER_BYTES,
            skip_auto_headers=("Accept-Encoding", "Accept", "User-Agent", "Content-Type"),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._lanes is not None:
            self._lanes.close()

    # ---- requests

    async def request(
        self,
        verb: str,
        path: str,
        body: Body | None = None,
        *,
        content_type: str = JSON,
        params: Mapping[str, str | int] | None = None,
        timeout_s: float = 30.0,
        most_attempts: int = MOST_ATTEMPTS,
        urgent: bool = False,
        is_bind: bool = False,
        repeatable: bool | None = None,
        accept: str = JSON,
    ) -> bytes:
        """The body of the answer. Raises ApiError for a refusal, Unreachable where there was no answer.

        `timeout_s` bounds the call with all its attempts and waits, counted from when its turn comes. A request
        that may not be carried out twice (POST, a JSON patch; `repeatable` says otherwise) is sent again only
        where the first was certainly not carried out.
        """
        data = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        target = f"{path}?{urlencode(params, quote_via=quote)}" if params else path
        if repeatable is None:
            repeatable = verb in IDEMPOTENT and content_type != JSON_PATCH
        ends_at_s = 0.0
        backoff: Backoff | None = None
        renewed = False
        attempts = 0
        places = self._places_of_binds if is_bind else self._places
        while True:
            attempts += 1
            version = await self._fresh(verb, path)
            if not urgent:
                await places.acquire()
            try:
                ends_at_s = ends_at_s or self._clock() + timeout_s
                return await self._exchange(verb, target, data, content_type, accept, ends_at_s)
            except ApiError as error:
                if error.is_unauthorized and not renewed:
                    renewed = True
                    if await self._renewed(version):
                        continue
                if attempts >= most_attempts or not may_repeat(error, repeatable):
                    raise
                backoff = backoff or Backoff()
                wait_s = backoff.next_s(error.retry_after_s)
                if self._clock() + wait_s >= ends_at_s:
                    raise
            finally:
                if not urgent:
                    places.release()
            await asyncio.sleep(wait_s)

    async def _exchange(
        self, verb: str, target: str, data: bytes | None, content_type: str, accept: str, ends_at_s: float
    ) -> bytes:
        """One attempt."""
        status = 0
        retry_after: str | None = None
        self.in_flight += 1
        try:
            if self.delay_s is not None:
                await asyncio.sleep(self.delay_s(verb, target))
            async with asyncio.timeout(max(0.0, ends_at_s - self._clock())):
                if data is not None and self._lanes is not None:
                    written = await self._write(verb, target, data, content_type)
                    status, body = written.status, written.body
                    if status >= 300:
                        retry_after = written.header("retry-after")
                else:
                    async with self._open(verb, target, data, content_type, accept) as answer:
                        body = await answer.read()
                        status, retry_after = answer.status, answer.headers.get("Retry-After")
        except Unreachable as error:
            raise Unreachable(error.message, verb=verb, path=target, may_have_arrived=error.may_have_arrived) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise unreachable(error, verb, target) from error
        finally:
            self.in_flight -= 1
            self.counts[verb, status] += 1
        if status >= 300:
            raise refusal(status, retry_after, body, verb, target)
        return body

    async def _write(self, verb: str, target: str, data: bytes, content_type: str) -> Answered:
        credentials = self._credentials
        assert self._lanes is not None
        headers = (("User-Agent", self._user_agent), ("Accept", JSON), *credentials.headers)
        return await self._lanes.send(
            verb, target, headers, credentials.version, data, content_type, credentials.context
        )

    async def _fresh(self, verb: str, path: str) -> int:
        """The version of the credentials that the next request goes out with."""
        if self._clock() >= self._credentials.check_at_s:
            try:
                await self._credentials.refresh()
            except BadInput as error:  # at start it is what somebody must mend; later it may pass
                raise ApiError(UNAUTHORIZED, "NoCredentials", error.sentence, verb=verb, path=path) from error
        return self._credentials.version

    async def _renewed(self, version: int) -> bool:
        try:
            return await self._credentials.renew(version)
        except BadInput:
            return False

    def _open(
        self, verb: str, target: str, data: bytes | None, content_type: str, accept: str
    ) -> aiohttp.client._RequestContextManager:
        if self._session is None:
            raise RuntimeError("the client is not open: use it with `async with`")
        headers: CIMultiDict[str] = CIMultiDict(self._credentials.headers)
        headers["User-Agent"] = self._user_agent
        headers["Accept"] = accept
        if self._is_far:
            headers["Accept-Encoding"] = "gzip"
        if data is not None:
            headers["Content-Type"] = content_type
        context = self._credentials.context
        return self._session.request(
            verb,
            URL(self._base + target, encoded=True),
            data=data,
            headers=headers,
            ssl=context if context is not None else True,
            server_hostname=self.access.tls_server_name,
            proxy=self.access.proxy_url,
            allow_redirects=False,
        )

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str | int], *, silence_s: Callable[[], float], open_s: float = 60.0
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of a GET as it arrives, in pieces as large as have come. For watches.

        Ends when the server ends it. Raises Unreachable when it is cut, when the answer does not begin within
        `open_s`, or when nothing has come for `silence_s`; ApiError when it is refused. A 401 is tried once
        more with fresh credentials.
        """
        target = f"{path}?{urlencode(params, quote_via=quote)}"
        renewed = False
        while True:
            version = await self._fresh("WATCH", path)
            try:
                if self.delay_s is not None:
                    await asyncio.sleep(self.delay_s("WATCH", target))
                async with asyncio.timeout(open_s):
                    answer = await self._open("GET", target, None, JSON, JSON)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                self.counts["WATCH", 0] += 1
                raise unreachable(error, "WATCH", path) from error
            self.counts["WATCH", answer.status] += 1
            if answer.status < 300:
                break
            async with answer:
                try:
                    async with asyncio.timeout(open_s):
                        body = await answer.read()
                except (aiohttp.ClientError, OSError, TimeoutError):
                    body = b""
            error_said = refusal(answer.status, answer.headers.get("Retry-After"), body, "WATCH", path)
            if not error_said.is_unauthorized or renewed or not await self._renewed(version):
                raise error_said
            renewed = True
        try:
            async with aclosing(_pieces(answer, silence_s, path)) as pieces:
                yield pieces
        finally:
            # A stream is never read to its end on purpose: the connection goes with it.
            answer.close()


async def _pieces(
    answer: aiohttp.ClientResponse, silence_s: Callable[[], float], path: str
) -> AsyncGenerator[bytes, None]:
    content = answer.content
    while True:
        longest_s = silence_s()
        try:
            # Around the read alone: what the reader does with a piece is not the server's silence.
            async with asyncio.timeout(longest_s):
                piece = await content.readany()
        except TimeoutError as error:
            raise Unreachable(f"silent for {longest_s:g} s", verb="WATCH", path=path) from error
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(error, "WATCH", path) from error
        if not piece:
            return
        yield piece


def unreachable(error: BaseException, verb: str, path: str) -> Unreachable:
    """What went wrong below HTTP, as one of our errors."""
    if type(error) is TimeoutError and error.errno is None:
        said = "no answer in time"
    elif isinstance(error, aiohttp.ServerDisconnectedError):
        said = "the connection was closed before the answer"
    else:
        said = in_words(error) or as_said(error)
    return Unreachable(said, verb=verb, path=path, may_have_arrived=not isinstance(error, aiohttp.ClientConnectorError))


def _live_socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    keep_alive(made)
    return made
