"""Requests to the API server: typed answers, typed refusals, bounded retries."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, overload
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

import berth
from berth.base.errors import BadInput
from berth.kube.access import Access
from berth.kube.binding import binding_body, eviction_body
from berth.kube.credentials import Credentials
from berth.kube.errors import UNAUTHORIZED, ApiError, Unreachable, refusal
from berth.kube.lanes import Answered, Lanes, keep_alive
from berth.kube.retry import Backoff, may_repeat

T = TypeVar("T")
Body = bytes | msgspec.Struct | dict[str, Any] | list[Any]
PatchKind = Literal["merge", "strategic", "json", "apply"]

JSON = "application/json"
PATCHES: dict[PatchKind, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "PATCH"})
# The server closes a connection that was idle for longer (90 s); closing first means never writing into a dying one.
IDLE_S = 60.0
READ_BUFFER_BYTES = 1 << 20
MOST_ATTEMPTS = 6


class Client:
    """One API server, one identity, a pool of connections. Use it as `async with Client(access) as client`.

    At most `most_in_flight` requests are under way at a time; watches and requests marked `urgent` (a Lease)
    do not queue behind them. `counts` has how often each verb got each status (0: no answer). `delay_s` makes
    each request wait first, given verb and path: for tests.
    """

    def __init__(
        self,
        access: Access,
        *,
        user_agent: str = "",
        most_in_flight: int = 64,
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
        self._most_in_flight = most_in_flight
        self._places = asyncio.Semaphore(most_in_flight)
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
            auto_decompress=False,
            read_bufsize=READ_BUFFER_BYTES,
            # The API server answers in plain JSON where nobody asks for compression: on a LAN that is faster.
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
            repeatable = verb in IDEMPOTENT and content_type != PATCHES["json"]
        ends_at_s = 0.0
        backoff: Backoff | None = None
        renewed = False
        attempts = 0
        while True:
            attempts += 1
            version = await self._fresh(verb, path)
            if not urgent:
                await self._places.acquire()
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
                    self._places.release()
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
            yield _pieces(answer, silence_s, path)
        finally:
            # A stream is never read to its end on purpose: the connection goes with it.
            answer.close()

    # ---- by verb

    @overload
    async def get(self, path: str, type: type[T], *, params: Mapping[str, str | int] | None = None) -> T: ...
    @overload
    async def get(
        self, path: str, type: None = None, *, params: Mapping[str, str | int] | None = None
    ) -> dict[str, Any]: ...
    async def get(self, path: str, type: Any = None, *, params: Mapping[str, str | int] | None = None) -> Any:
        """The object at `path`, decoded into `type` (a mapping where none is given)."""
        return _decode(await self.request("GET", path, params=params), type, "GET", path)

    @overload
    async def post(self, path: str, obj: Body, type: type[T], *, urgent: bool = False) -> T: ...
    @overload
    async def post(self, path: str, obj: Body, type: None = None, *, urgent: bool = False) -> bytes: ...
    async def post(self, path: str, obj: Body, type: Any = None, *, urgent: bool = False) -> Any:
        """Create. The answer's bytes, or decoded where a type is given."""
        answer = await self.request("POST", path, obj, urgent=urgent)
        return answer if type is None else _decode(answer, type, "POST", path)

    async def put(self, path: str, obj: Body) -> bytes:
        """Replace. A `metadata.resourceVersion` in `obj` is its precondition."""
        return await self.request("PUT", path, obj)

    async def patch(
        self,
        path: str,
        obj: Body,
        kind: PatchKind = "merge",
        field_manager: str = "berth",
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> bytes:
        """Change. `force` takes over fields of other managers (only with `apply`).

        A `metadata.resourceVersion` or `metadata.uid` in `obj` is a precondition.
        """
        params = {"fieldManager": field_manager}
        if force and kind == "apply":
            params["force"] = "true"
        if dry_run:
            params["dryRun"] = "All"
        return await self.request("PATCH", path, obj, content_type=PATCHES[kind], params=params)

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_s: int | None = None,
        dry_run: bool = False,
    ) -> bytes:
        """Delete, if uid and resourceVersion are still these."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        conditions = {"uid": uid, "resourceVersion": resource_version}
        if given := {key: value for key, value in conditions.items() if value is not None}:
            options["preconditions"] = given
        if dry_run:
            options["dryRun"] = ["All"]
        return await self.request("DELETE", path, options)

    async def bind(
        self,
        namespace: str,
        pod: str,
        uid: str,
        resource_version: str | None,
        node: str,
        annotations: Mapping[str, str] | None = None,
        *,
        timeout_s: float = 30.0,
    ) -> None:
        """Give the pod to the node, if it is still the pod with this uid (and resourceVersion, where given).

        `annotations` are added to the pod in the same write. Raises ApiError: `is_conflict` where the pod is
        another one, is bound already or is being deleted. Unreachable with `may_have_arrived` leaves open
        whether it is bound.
        """
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/binding"
        await self.request(
            "POST", path, binding_body(namespace, pod, uid, resource_version, node, annotations), timeout_s=timeout_s
        )

    async def evict(
        self, namespace: str, pod: str, uid: str, grace_s: int | None = None, dry_run: bool = False
    ) -> None:
        """Ask the pod to leave, as its PodDisruptionBudgets allow. `is_too_many`: they do not allow it now.

        That answer is not retried here: whether to wait or to choose another victim is a decision.
        """
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
        await self.request("POST", path, eviction_body(namespace, pod, uid, grace_s, dry_run), most_attempts=1)


async def _pieces(answer: aiohttp.ClientResponse, silence_s: Callable[[], float], path: str) -> AsyncIterator[bytes]:
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
        said = str(error) or type(error).__name__
    return Unreachable(said, verb=verb, path=path, may_have_arrived=not isinstance(error, aiohttp.ClientConnectorError))


def _decode(body: bytes, type: Any, verb: str, path: str) -> Any:
    try:
        return msgspec.json.decode(body, type=type or dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = f"the answer is not what it should be: {error}"
        raise ApiError(200, "Undecodable", problem, verb=verb, path=path) from None


def _live_socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    keep_alive(made)
    return made
