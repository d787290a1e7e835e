"""A client for who asks the API server a few times a minute: one connection, of the standard library.

A node agent runs on every node; what the HTTP client of the scheduler costs in memory it would pay there for
nothing. The same access, credentials, errors and rules of repetition; requests go one after the other, each in a
thread.
"""

from __future__ import annotations

import asyncio
import http.client
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from berth.base.errors import BadInput
from berth.kube.access import Access
from berth.kube.credentials import Credentials
from berth.kube.errors import UNAUTHORIZED, ApiError, Unreachable, refusal
from berth.kube.retry import Backoff, may_repeat
from berth.kube.unreached import as_said, in_words

T = TypeVar("T")

_JSON = "application/json"
PATCHES = {"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json"}
_REPEATABLE = frozenset({"GET", "PUT", "PATCH", "DELETE"})
_MOST_ATTEMPTS = 3
_TIMEOUT_S = 15.0


class FewRequests:
    """Use it with `async with`. Raises ApiError for a refusal, Unreachable where there was no answer."""

    def __init__(self, access: Access, *, user_agent: str = "berth") -> None:
        self._access = access
        self._user_agent = user_agent
        self._credentials = Credentials(access)
        self._connection: http.client.HTTPConnection | None = None
        self._version = -1  # of the credentials that the connection was opened with
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    async def get(self, path: str, type: type[T]) -> T:
        body = await self.request("GET", path)
        try:
            return msgspec.json.decode(body, type=type)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = f"the answer is not what it should be: {error}"
            raise ApiError(200, "Undecodable", problem, verb="GET", path=path) from None

    async def post(self, path: str, obj: bytes) -> bytes:
        return await self.request("POST", path, obj)

    async def patch(self, path: str, obj: bytes, kind: str = "merge", field_manager: str = "berth") -> bytes:
        """`kind` is merge or strategic. A `metadata.resourceVersion` or `metadata.uid` in `obj` is a precondition."""
        params = {"fieldManager": field_manager}
        return await self.request("PATCH", path, obj, content_type=PATCHES[kind], params=params)

    async def request(
        self,
        verb: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = _JSON,
        params: Mapping[str, str] | None = None,
        timeout_s: float = _TIMEOUT_S,
        most_attempts: int = _MOST_ATTEMPTS,
    ) -> bytes:
        """The body of the answer. `timeout_s` bounds each attempt."""
        target = f"{path}?{urlencode(params, quote_via=quote)}" if params else path
        backoff = Backoff(first_s=0.5)
        attempts, renewed = 0, False
        async with self._turn:
            while True:
                attempts += 1
                version = await self._fresh(verb, path)
                try:
                    return await asyncio.to_thread(self._exchange, verb, target, body, content_type, timeout_s)
                except ApiError as error:
                    if error.is_unauthorized and not renewed:
                        renewed = True
                        if await self._credentials.renew(version):
                            continue
                    if attempts >= most_attempts or not may_repeat(error, verb in _REPEATABLE):
                        raise
                    wait_s = backoff.next_s(error.retry_after_s)
                await asyncio.sleep(wait_s)

    async def _fresh(self, verb: str, path: str) -> int:
        try:
            if time.monotonic() >= self._credentials.check_at_s:
                await self._credentials.refresh()
        except BadInput as error:
            raise ApiError(UNAUTHORIZED, "NoCredentials", error.sentence, verb=verb, path=path) from error
        return self._credentials.version

    def _exchange(self, verb: str, target: str, body: bytes | None, content_type: str, timeout_s: float) -> bytes:
        path = target.partition("?")[0]
        headers = dict(self._credentials.headers)
        headers |= {"Accept": _JSON, "User-Agent": self._user_agent}
        if body is not None:
            headers["Content-Type"] = content_type
        # A server closes what has been idle for long: what fails on a connection that was kept is tried on a new one.
        for is_kept in (True, False):
            if is_kept and (self._connection is None or self._version != self._credentials.version):
                continue
            sent = False
            try:
                connection = self._connection if is_kept and self._connection else self._open(timeout_s)
                connection.timeout = timeout_s
                connection.request(verb, target, body, headers)
                sent = True
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self._close()
                is_stale = isinstance(error, (http.client.RemoteDisconnected, ConnectionError))
                if is_kept and is_stale and verb in _REPEATABLE:
                    continue
                words = in_words(error) or as_said(error)
                raise Unreachable(words, verb=verb, path=path, may_have_arrived=sent) from error
            if answer.will_close:
                self._close()
            if answer.status >= 300:
                raise refusal(answer.status, answer.headers.get("Retry-After"), text, verb, path)
            return text
        raise Unreachable("the connection was closed", verb=verb, path=path)

    def _open(self, timeout_s: float) -> http.client.HTTPConnection:
        self._close()
        server, proxy = urlsplit(self._access.server), urlsplit(self._access.proxy_url or "")
        host, port = server.hostname or "", server.port or (443 if server.scheme == "https" else 80)
        to, at = (proxy.hostname, proxy.port or 3128) if proxy.hostname else (host, port)
        context = self._credentials.context
        if context is not None:
            name = self._access.tls_server_name or host
            made: http.client.HTTPConnection = _Named(to, at, timeout=timeout_s, context=context, name=name)
        else:
            made = http.client.HTTPConnection(to, at, timeout=timeout_s)
        if proxy.hostname:
            made.set_tunnel(host, port)
        self._connection, self._version = made, self._credentials.version
        return made

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _Named(http.client.HTTPSConnection):
    """A connection whose certificate is held against a name that need not be that of the host."""

    def __init__(self, host: str, port: int, *, timeout: float, context: Any, name: str) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._name, self._tls = name, context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)
