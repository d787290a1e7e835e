"""A loopback server that plays the API server: each path answers what a test put there, in order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from aiohttp import web

from berth.kube.access import Access
from berth.kube.client import Client


class Answer:
    """One answer: a status with a body, or a stream of pieces that then ends, stays open, or is cut."""

    def __init__(
        self,
        body: Any = None,
        status: int = 200,
        headers: dict[str, str] | None = None,
        *,
        pieces: list[bytes] | None = None,
        then: str = "end",
        wait_s: float = 0.0,
    ) -> None:
        self.body = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self.status = status
        self.headers = headers or {}
        self.pieces = pieces
        self.then = then
        self.wait_s = wait_s


class Seen(msgspec.Struct):
    verb: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class StandIn:
    """The last answer of a path repeats. What nobody put there is a 404 Status."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer | Callable[[Seen], Answer]]] = defaultdict(list)
        self.seen: list[Seen] = []
        self.connections = 0
        self.url = ""

    def on(self, path: str, *answers: Answer | Callable[[Seen], Answer]) -> None:
        self.answers[path].extend(answers)

    def asked(self, path: str) -> list[Seen]:
        return [each for each in self.seen if each.path == path]

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        seen = Seen(request.method, request.path, dict(request.query), dict(request.headers), await request.read())
        self.seen.append(seen)
        queue = self.answers[request.path]
        if not queue:
            return web.json_response(status_of(404, "NotFound", "not here"), status=404)
        chosen = queue.pop(0) if len(queue) > 1 else queue[0]
        if callable(chosen):
            chosen = chosen(seen)
        await asyncio.sleep(chosen.wait_s)
        if chosen.pieces is None:
            if chosen.then == "cut":
                assert request.transport is not None
                request.transport.abort()
            return web.Response(
                body=chosen.body, status=chosen.status, headers=chosen.headers, content_type="application/json"
            )
        response = web.StreamResponse(status=chosen.status, headers=chosen.headers)
        await response.prepare(request)
        for piece in chosen.pieces:
            await response.write(piece)
            await asyncio.sleep(0.001)
        if chosen.then == "stay":
            await asyncio.sleep(60)
        elif chosen.then == "cut":
            assert request.transport is not None
            request.transport.abort()
        return response

    async def __aenter__(self) -> StandIn:
        self.runner = web.ServerRunner(web.Server(self.answer, access_log=None), shutdown_timeout=0.01)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        host, port = self.runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runner.cleanup()


def status_of(code: int, reason: str, message: str = "", **details: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        "details": details,
    }


def refused(code: int, reason: str, message: str = "", headers: dict[str, str] | None = None, **details: Any) -> Answer:
    return Answer(status_of(code, reason, message, **details), code, headers)


def live(story: Callable[[StandIn, Client], Coroutine[Any, Any, None]], longest_s: float = 20.0, **access: Any) -> None:
    """Run a story against a stand-in of its own."""

    async def run() -> None:
        async with (
            asyncio.timeout(longest_s),
            StandIn() as server,
            Client(Access(server=server.url, **access)) as client,
        ):
            await story(server, client)

    asyncio.run(run())
