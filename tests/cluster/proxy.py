"""A proxy in front of an API server, in which what may happen between two programs can be made to happen.

Requests can be delayed, answered by the proxy itself (429, 409, 503, ...), carried out without their answer arriving,
held back and let go later; connections can be cut; watches can fall silent or be told that their position is gone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from devcluster import Cluster
from devcluster.access import free_ports
from devcluster.background import BackgroundLoop

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "upgrade", "te", "trailer"}
GONE = {
    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410, "reason": "Expired",
    "message": "too old resource version",
}  # fmt: skip
BINDS = r"/pods/[^/]+/binding"


@dataclass
class Passed:
    """A request that came by: `status` is 0 until an answer goes back."""

    method: str
    path: str
    status: int
    at_s: float  # time.monotonic(), when it came


@dataclass
class _Rule:
    """What befalls requests of this method ("" is any) whose path, with its query, matches. `left` None: always."""

    method: str
    path: re.Pattern[str]
    left: int | None = None
    delay_s: float | Callable[[], float] = 0.0
    status: int = 0  # answered so by the proxy
    reason: str = ""
    message: str = ""
    retry_after_s: int | None = None
    loses_answer: bool = False
    until: asyncio.Event | None = None  # held back until then
    met: int = 0  # how many requests it has befallen

    def befalls(self, method: str, path: str) -> bool:
        if self.left == 0 or self.method not in ("", method) or not self.path.search(path):
            return False
        self.left = self.left - 1 if self.left is not None else None
        self.met += 1
        return True


@dataclass(eq=False)
class _Watch:
    path: str
    speaks: asyncio.Event
    ends_with: bytes = b""  # a last line
    task: asyncio.Task[object] | None = None


class Proxy:
    """`with Proxy(cluster) as proxy:` and `proxy.kubeconfig()` for whoever is to be disturbed; it speaks plain HTTP."""

    def __init__(self, cluster: Cluster) -> None:
        self.passed: list[Passed] = []
        self._cluster = cluster
        self._rules: list[_Rule] = []
        self._watches: set[_Watch] = set()
        self._transports: set[asyncio.BaseTransport] = set()
        self._loop: BackgroundLoop | None = None
        (self._port,) = free_ports(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def kubeconfig(self, user: str = "admin") -> Path:
        """For a user, through the proxy."""
        known = yaml.safe_load(self._cluster.kubeconfig_of(user).read_text())
        known["clusters"][0]["cluster"] = {"server": self.url}
        path = self._cluster.state / f"kubeconfig-{user}-by-proxy-{self._port}"
        path.write_text(yaml.safe_dump(known))
        path.chmod(0o600)
        return path

    def __enter__(self) -> Proxy:
        self._loop = BackgroundLoop("proxy")
        self._loop.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        self._loop.run(self._stop())
        self._loop.close()

    # --- what is made to happen, as long as the block lasts

    @contextmanager
    def delay(self, seconds: float | Callable[[], float], path: str = "", method: str = "") -> Iterator[_Rule]:
        """Requests wait so long before they are passed on; one whose sender has given up by then never is."""
        with self._rule(method, path, delay_s=seconds) as rule:
            yield rule

    @contextmanager
    def answer(
        self, status: int, path: str = "", method: str = "", *, times: int | None = None, reason: str = "",
        message: str = "injected", retry_after_s: int | None = None,
    ) -> Iterator[_Rule]:  # fmt: skip
        """Requests are not passed on, but answered so; at most `times` of them."""
        with self._rule(method, path, times, status=status, reason=reason, message=message,
                        retry_after_s=retry_after_s) as rule:  # fmt: skip
            yield rule

    @contextmanager
    def lose_answers(self, path: str = "", method: str = "", times: int | None = None) -> Iterator[_Rule]:
        """Requests are carried out, and the connection is cut instead of an answer."""
        with self._rule(method, path, times, loses_answer=True) as rule:
            yield rule

    @contextmanager
    def hold(self, path: str = "", method: str = "", times: int | None = None) -> Iterator[_Rule]:
        """Requests get no answer until the block ends; then they are carried out, whoever waits for it still."""
        ended = asyncio.Event()
        with self._rule(method, path, times, until=ended) as rule:
            try:
                yield rule
            finally:
                assert self._loop is not None
                self._loop.run(_set(ended))

    @contextmanager
    def silence(self, path: str = "") -> Iterator[None]:
        """Watches of these paths stay open and say nothing; all of it comes when the block ends."""
        quiet = [watch for watch in self._watches if re.search(path, watch.path)]
        for watch in quiet:
            watch.speaks.clear()
        try:
            yield
        finally:
            assert self._loop is not None
            for watch in quiet:
                self._loop.run(_set(watch.speaks))

    def cut(self) -> int:
        """All connections break off now; how many there were."""
        assert self._loop is not None
        return self._loop.run(self._cut())

    def expire(self, path: str = "") -> int:
        """Watches of these paths are told that their position is gone (410); how many there were."""
        assert self._loop is not None
        return self._loop.run(self._expire(path))

    def requests(self, method: str = "", path: str = "", since_s: float = 0.0) -> list[Passed]:
        """What came by."""
        wanted = re.compile(path)
        return [
            each
            for each in list(self.passed)
            if each.method in (method or each.method,) and wanted.search(each.path) and each.at_s >= since_s
        ]

    # --- inside: on the loop

    @contextmanager
    def _rule(self, method: str, path: str, times: int | None = None, **what: object) -> Iterator[_Rule]:
        rule = _Rule(method, re.compile(path), times, **what)  # type: ignore[arg-type]
        self._rules.append(rule)
        try:
            yield rule
        finally:
            self._rules.remove(rule)

    async def _start(self) -> None:
        context = ssl.create_default_context(cadata=self._cluster.ca.read_text())
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, limit=0), auto_decompress=False, read_bufsize=1 << 20,
            timeout=aiohttp.ClientTimeout(total=None), cookie_jar=aiohttp.DummyCookieJar(),
        )  # fmt: skip
        quiet = logging.getLogger("proxy")
        quiet.disabled = True  # that a connection was cut on purpose is no news
        self._runner = web.ServerRunner(web.Server(self._handle, logger=quiet), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()

    async def _stop(self) -> None:
        await self._cut()
        await self._session.close()
        await self._runner.cleanup()

    async def _cut(self) -> int:
        known = list(self._transports)
        self._transports.clear()
        for transport in known:
            transport.abort()  # type: ignore[attr-defined]
        return len(known)

    async def _expire(self, path: str) -> int:
        told = [watch for watch in self._watches if re.search(path, watch.path)]
        for watch in told:
            watch.ends_with = json.dumps({"type": "ERROR", "object": GONE}).encode() + b"\n"
            if watch.task is not None:
                watch.task.cancel()
        return len(told)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        passed = Passed(request.method, path := request.path_qs, 0, time.monotonic())
        if request.transport is not None:
            self._transports.add(request.transport)
        body = await request.read()
        self.passed.append(passed)  # before it is passed on: what the server has done was counted by then
        rules = [rule for rule in list(self._rules) if rule.befalls(request.method, path)]
        for rule in rules:
            await _wait(rule)
            if rule.delay_s and (request.transport is None or request.transport.is_closing()):
                raise ConnectionResetError
            if rule.status:
                passed.status = rule.status
                return _own_answer(rule)
        answer = await self._pass_on(request, body, any(rule.loses_answer for rule in rules))
        passed.status = answer.status
        return answer

    async def _pass_on(self, request: web.BaseRequest, body: bytes, loses_answer: bool) -> web.StreamResponse:
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _HOP]
        is_watch = "watch=" in request.query_string
        try:
            async with self._session.request(
                request.method, self._cluster.url + request.path_qs, headers=headers, data=body or None,
                allow_redirects=False, skip_auto_headers=("Accept-Encoding", "User-Agent", "Content-Type", "Accept"),
            ) as answer:  # fmt: skip
                back = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
                if is_watch and answer.status == 200 and not loses_answer:
                    return await self._stream(request, answer, back)
                text = await answer.read()
        except aiohttp.ClientError:
            loses_answer, text, back, status = True, b"", {}, 0
        else:
            status = answer.status
        if loses_answer:
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError
        return web.Response(status=status, headers=back, body=text)

    async def _stream(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse, headers: dict[str, str]
    ) -> web.StreamResponse:
        """The lines of a watch, whole ones."""
        response = web.StreamResponse(status=200, headers=headers)
        await response.prepare(request)
        speaks = asyncio.Event()
        speaks.set()
        watch = _Watch(request.path_qs, speaks)
        self._watches.add(watch)
        rest = b""
        try:
            while not watch.ends_with:  # it may be told to end while a chunk is passed on
                watch.task = asyncio.create_task(answer.content.readany())  # type: ignore[arg-type]
                chunk = await watch.task
                if not chunk:
                    break
                rest += chunk  # type: ignore[operator]
                await watch.speaks.wait()
                end = rest.rfind(b"\n") + 1
                if end:
                    await response.write(rest[:end])
                    rest = rest[end:]
            await response.write(watch.ends_with)
        except asyncio.CancelledError:
            if not watch.ends_with:
                raise
            await response.write(watch.ends_with)
        except (aiohttp.ClientError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError from None
        finally:
            self._watches.discard(watch)
        await response.write_eof()
        return response


async def _set(event: asyncio.Event) -> None:
    event.set()


async def _wait(rule: _Rule) -> None:
    seconds = rule.delay_s() if callable(rule.delay_s) else rule.delay_s
    if seconds:
        await asyncio.sleep(seconds)
    if rule.until is not None:
        await rule.until.wait()


def _own_answer(rule: _Rule) -> web.Response:
    status = {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": rule.status,
        "reason": rule.reason, "message": rule.message,
    }  # fmt: skip
    headers = {"Retry-After": str(rule.retry_after_s)} if rule.retry_after_s is not None else {}
    return web.json_response(status, status=rule.status, headers=headers)
