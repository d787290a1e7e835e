"""Connections for small writes: HTTP/1.1 with nothing but what a write to the API server needs.

A bind through aiohttp's session costs three times as much CPU as through a lane, and binding is most of what a
scheduler sends. Reads, watches and proxies go through aiohttp. A lane carries one request at a time; after an
answer that is not understood it is closed, and the request counts as unanswered.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

from berth.kube.errors import Unreachable
from berth.kube.http1 import Answered, is_last, parse
from berth.kube.tls import ResumingContext
from berth.kube.unreached import as_said, in_words

CONNECT_S = 10.0
_TARGET = re.compile(r"[!-~]+")
# Seconds, seconds, probes, milliseconds; what a platform does not have is left out.
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60_000))


class Lane(asyncio.Protocol):
    """One connection. `ask` writes a request and gives the future of its answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.idle_since_s = 0.0
        self.is_usable = True
        self.is_new = True
        self.context: ssl.SSLContext | None = None
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answered] | None = None
        self._got = b""
        self._more: list[bytes] = []
        self._wanted = 0

    def ask(self, request: bytes) -> asyncio.Future[Answered]:
        if self._transport is None or self._answer is not None:
            raise RuntimeError("a lane carries one request at a time")
        self._answer = answer = self._loop.create_future()
        self._transport.write(request)
        return answer

    @property
    def tls(self) -> ssl.SSLObject | None:
        return None if self._transport is None else self._transport.get_extra_info("ssl_object")

    def close(self) -> None:
        self.is_usable = False
        if self._transport is not None:
            self._transport.abort()

    # ---- what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_usable = False
        self._fail(str(error) if error else "the connection was closed before the answer")

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            # An answer that nobody waits for (the request was given up), or a farewell: not to be used again.
            self.close()
            return
        if self._wanted:
            self._more.append(data)
            self._wanted -= len(data)
            if self._wanted > 0:
                return
            data = self._got + b"".join(self._more)
            self._more.clear()
            self._wanted = 0
        elif self._got:
            data = self._got + data
        self._got = data
        try:
            taken = parse(data)
        except ValueError as error:
            self._fail(f"not HTTP as it should be: {error}")
            self.close()
            return
        if isinstance(taken, int):
            self._wanted = taken
            return
        answered, used = taken
        if used != len(data) or is_last(answered):
            self.is_usable = False
        self._got = b""
        answer, self._answer = self._answer, None
        if not answer.done():
            answer.set_result(answered)

    def _fail(self, said: str) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(Unreachable(said))


class Lanes:
    """Lanes to one server, opened as they are needed and kept while they are used."""

    def __init__(self, server: str, server_name: str | None, clock: Callable[[], float], idle_s: float) -> None:
        address = urlsplit(server)
        self._host = address.hostname or ""
        self._port = address.port or (443 if address.scheme == "https" else 80)
        self._prefix = address.path.rstrip("/")
        self._authority = address.netloc.rpartition("@")[2]
        self._server_name = server_name or self._host
        self._clock = clock
        self._idle_s = idle_s
        self._idle: deque[Lane] = deque()  # the one that was used last is on the right
        self._fixed: dict[tuple[int, str], bytes] = {}

    async def send(
        self,
        verb: str,
        target: str,
        headers: tuple[tuple[str, str], ...],
        version: int,
        data: bytes,
        content_type: str,
        context: ResumingContext | None,
    ) -> Answered:
        """The answer to one write. Raises Unreachable. `version` changes whenever `headers` do."""
        if not _TARGET.fullmatch(target):
            raise ValueError(f"{target!r} is not a path")
        fixed = self._fixed.get((version, content_type))
        if fixed is None:
            fixed = self._remember(headers, version, content_type)
        request = b"".join(
            (f"{verb} {self._prefix}{target}".encode(), fixed, str(len(data)).encode(), b"\r\n\r\n", data)
        )
        lane = self._pick(context) or await self._open(context)
        answer = lane.ask(request)
        try:
            answered = await answer
        except BaseException:
            # Given up or broken: an answer that comes late must not be taken for that of the next request.
            lane.close()
            raise
        if context is not None and lane.is_new:
            # With TLS 1.3 the ticket comes after the handshake: it is there once an answer was read.
            context.remember(lane.tls)
            lane.is_new = False
        if lane.is_usable:
            lane.idle_since_s = self._clock()
            self._idle.append(lane)
            self._let_go()
        else:
            lane.close()
        return answered

    def close(self) -> None:
        for lane in self._idle:
            lane.close()
        self._idle.clear()

    def _remember(self, headers: tuple[tuple[str, str], ...], version: int, content_type: str) -> bytes:
        """What all requests with these credentials have in common, as bytes."""
        lines = [f"Host: {self._authority}", *(f"{name}: {value}" for name, value in headers)]
        lines.append(f"Content-Type: {content_type}")
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a header with a line break")
        fixed = " HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\nContent-Length: "
        self._fixed = {key: value for key, value in self._fixed.items() if key[0] == version}
        self._fixed[version, content_type] = encoded = fixed.encode("latin-1")
        return encoded

    def _let_go(self) -> None:
        """Close what a burst has opened and nobody has used since: each costs as much as a hundred pods."""
        oldest_s = self._clock() - self._idle_s
        while self._idle and self._idle[0].idle_since_s < oldest_s:
            self._idle.popleft().close()

    def _pick(self, context: ssl.SSLContext | None) -> Lane | None:
        """The lane that was used last, so that the others grow old."""
        oldest_s = self._clock() - self._idle_s
        while self._idle:
            lane = self._idle.pop()
            if lane.is_usable and lane.context is context and lane.idle_since_s >= oldest_s:
                return lane
            lane.close()
        return None

    async def _open(self, context: ResumingContext | None) -> Lane:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S):
                transport, lane = await loop.create_connection(
                    lambda: Lane(loop),
                    self._host,
                    self._port,
                    ssl=context,
                    server_hostname=self._server_name if context is not None else None,
                )
        except TimeoutError as error:
            raise Unreachable(f"no connection within {CONNECT_S:g} s", may_have_arrived=False) from error
        except OSError as error:  # ssl.SSLError is one
            raise Unreachable(in_words(error) or as_said(error), may_have_arrived=False) from error
        lane.context = context
        if (connected := transport.get_extra_info("socket")) is not None:
            keep_alive(connected)
        return lane


def keep_alive(connected: socket.socket) -> None:
    """Notice within a minute that the other side is gone without a word (a node or a NAT that died)."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        if hasattr(socket, option):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
