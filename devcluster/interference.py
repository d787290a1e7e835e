"""A proxy before the API server that misbehaves when it is told to: slow, refusing, deaf, cut off."""

from __future__ import annotations

import asyncio
import json
import random
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

from devcluster import access
from devcluster.access import Access
from devcluster.background import BackgroundLoop
from devcluster.certificates import make_certificate
from devcluster.cluster import Cluster

_REASONS = {403: "Forbidden", 409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}
_KEPT_OUT = {"host", "content-length", "transfer-encoding", "connection", "content-encoding"}


@dataclass
class Refusal:
    """Requests that are answered with an error; a share of those that match, and at most so many.

    `path` is a regular expression that is searched in path and query, `method` the verb. With `is_done` the request
    is carried out first and only the answer is lost: status 0 closes the connection without one.
    """

    status: int
    path: str = ""
    method: str = ""
    share: float = 1.0
    at_most: int | None = None
    is_done: bool = False
    retry_after_s: int = 0  # with 429
    count: int = field(default=0, init=False)  # how many it has hit

    def hits(self, method: str, path: str, dice: random.Random) -> bool:
        if self.at_most is not None and self.count >= self.at_most:
            return False
        if self.method not in ("", method) or not re.search(self.path, path) or dice.random() >= self.share:
            return False
        self.count += 1
        return True


class Interference:
    """Stands before a cluster's API server from `start` to `stop`. Give `access_of(user)` or `kubeconfig_of(user)`
    to what is to suffer; everything else talks to the server itself.

    `delay_s` is a number, or a function of method and path. `refusals` may be changed at any time.
    """

    def __init__(self, cluster: Cluster, seed: int = 0) -> None:
        self.delay_s: float | Callable[[str, str], float] = 0.0
        self.refusals: list[Refusal] = []
        self._cluster = cluster
        self._dice = random.Random(seed)
        (self._port,) = access.free_ports(1)
        self._loop: BackgroundLoop | None = None
        self._watches: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def access_of(self, user: str = "admin", token: str = "") -> Access:
        return Access(self.url, token or self._cluster.token_of(user), self._cluster.ca.read_text())

    def kubeconfig_of(self, user: str = "admin", token: str = "") -> Path:
        """A kubeconfig that leads through here."""
        path = self._cluster.state / f"kubeconfig-interference-{self._port}-{user.replace(':', '-').replace('/', '-')}"
        path.write_text(access.kubeconfig(self.url, self._cluster.ca, user, token or self._cluster.token_of(user)))
        path.chmod(0o600)
        return path

    def start(self) -> Interference:
        self._loop = BackgroundLoop("interference")
        self._loop.run(self._serve(), 10)
        return self

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.run(self._close(), 10)
            self._loop.close()
            self._loop = None

    def __enter__(self) -> Interference:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def open_watches(self) -> int:
        return len(self._watches)

    def cut_watches(self) -> int:
        """End all open watches in the middle, without a word; how many there were."""
        assert self._loop is not None, "start() comes first"
        return self._loop.run(self._cut())

    def hold_watches(self) -> None:
        """Watches stay open and say nothing until `release_watches`; then all that was held comes."""
        assert self._loop is not None, "start() comes first"
        self._loop.run(self._set_flowing(False))

    def release_watches(self) -> None:
        assert self._loop is not None, "start() comes first"
        self._loop.run(self._set_flowing(True))

    # --- inside: on the loop

    async def _serve(self) -> None:
        self._flowing.set()
        pki = self._cluster.state / "pki"
        make_certificate(pki, "interference", "/CN=interference", names="IP:127.0.0.1")
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server.load_cert_chain(pki / "interference.crt", pki / "interference.key")
        trust = ssl.create_default_context(cafile=str(self._cluster.ca))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        application = web.Application(client_max_size=1 << 30)
        application.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=server).start()

    async def _close(self) -> None:
        await self._cut()
        await self._runner.cleanup()
        await self._session.close()

    async def _cut(self) -> int:
        watches = list(self._watches)
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        return len(watches)

    async def _set_flowing(self, flows: bool) -> None:
        if flows:
            self._flowing.set()
        else:
            self._flowing.clear()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        method, path = request.method, request.raw_path
        body = await request.read()
        delay_s = self.delay_s(method, path) if callable(self.delay_s) else self.delay_s
        if delay_s:
            await asyncio.sleep(delay_s)
        refusal = next((each for each in self.refusals if each.hits(method, path, self._dice)), None)
        if refusal is not None and not refusal.is_done:
            return self._refuse(request, refusal)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _KEPT_OUT}
        try:
            sent = self._session.request(
                method, f"{self._cluster.url}{path}", data=body or None, headers=headers, allow_redirects=False
            )
            async with sent as answer:
                if "watch=" in request.query_string and answer.status == 200:
                    return await self._stream(request, answer)
                content = await answer.read()
                status, answered = answer.status, answer.headers
        except aiohttp.ClientError:
            return self._refuse(request, Refusal(0))  # the server is not there: neither is this
        if refusal is not None:
            return self._refuse(request, refusal)
        kept = {name: value for name, value in answered.items() if name.lower() not in _KEPT_OUT}
        if "Content-Encoding" in answered:
            kept["Content-Encoding"] = answered["Content-Encoding"]
        return web.Response(status=status, body=content, headers=kept)

    def _refuse(self, request: web.Request, refusal: Refusal) -> web.StreamResponse:
        if not refusal.status:
            if request.transport is not None:
                request.transport.abort()
            raise asyncio.CancelledError
        reason = _REASONS.get(refusal.status, "ServiceUnavailable")
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "the answer of an interfering proxy",
            "reason": reason,
            "code": refusal.status,
        }
        headers = {"Retry-After": str(refusal.retry_after_s)} if refusal.retry_after_s else {}
        return web.Response(
            status=refusal.status, body=json.dumps(status).encode(), content_type="application/json", headers=headers
        )

    async def _stream(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=200, headers={"Content-Type": answer.headers["Content-Type"]})
        if "Content-Encoding" in answer.headers:
            response.headers["Content-Encoding"] = answer.headers["Content-Encoding"]
        response.enable_chunked_encoding()
        await response.prepare(request)
        copying = asyncio.get_running_loop().create_task(self._copy(answer, response))
        self._watches.add(copying)
        try:
            await copying
        except (asyncio.CancelledError, aiohttp.ClientError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()
        finally:
            copying.cancel()
            self._watches.discard(copying)
        return response

    async def _copy(self, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        async for chunk in answer.content.iter_any():
            await self._flowing.wait()
            await response.write(chunk)
