"""What a scheduler answers over HTTP: whether it lives, whether it is ready, its metrics, a snapshot for who may."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Sequence

from aiohttp import web

from berth.app.scheduler import debug
from berth.app.scheduler.settings import Configuration
from berth.app.scheduler.state import State
from berth.kube.client import Client
from berth.kube.errors import ApiError
from berth.model.reasons import Verdict
from berth.views.metrics import CONTENT_TYPE, Moment, Watch, exposition

log = logging.getLogger("berth.server")

TICK_S = 0.25
LAG_WINDOW_S = 60.0
STUCK_S = 10.0  # an event loop that stood still for so long is told as sick
MOST_HEADER_BYTES = 16_384  # a token of many groups


class Server:
    """Serves on `sockets`, which listen already, until `run` is cancelled. `address` is where: (host, port)."""

    def __init__(
        self, configuration: Configuration, state: State, client: Client, sockets: Sequence[socket.socket] = ()
    ) -> None:
        self._sockets = sockets
        self.address: tuple[str, int] = ("", 0)
        self.listens = asyncio.Event()
        self._configuration = configuration
        self._state = state
        self._client = client
        self._lags: deque[tuple[float, float]] = deque()  # (when, seconds late)
        self._ticked_s = time.monotonic()
        self._gives_snapshot = False

    async def run(self) -> None:
        """Until cancelled."""
        application = web.Application(handler_args={"max_field_size": MOST_HEADER_BYTES})
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/livez", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get(debug.PATH, self._snapshot)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            for one in self._sockets:
                await web.SockSite(runner, one).start()
            host, port = runner.addresses[0][:2]
            self.address = (host, port)
            self.listens.set()
            log.info("serves", extra={"address": f"{host}:{port}"})
            await self._tick()
        finally:
            await runner.cleanup()

    async def _tick(self) -> None:
        """Measure by how much the event loop is late."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(TICK_S)
            now = self._ticked_s = time.monotonic()
            self._lags.append((now, max(0.0, now - began - TICK_S)))
            while self._lags and self._lags[0][0] < now - LAG_WINDOW_S:
                self._lags.popleft()

    # ---- probes

    async def _healthz(self, _: web.Request) -> web.Response:
        still = time.monotonic() - self._ticked_s
        if still > STUCK_S:
            return web.Response(text=f"the event loop stood still for {still:.1f} s\n", status=503)
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        said = self.unready()
        return web.Response(text=f"{said}\n" if said else "ok\n", status=503 if said else 200)

    def unready(self) -> str:
        """Why this replica is not ready; "" where it is. One that stands by for a leader it has seen is ready, too."""
        leadership = self._state.leadership
        if leadership is not None and not leadership.is_leader() and leadership.holder:
            return ""
        waited_for = [
            kind.called
            for kind, reflector in self._state.follower.reflectors.items()
            if not (reflector.synced.is_set() or reflector.answered.is_set())
        ]
        if waited_for:
            return f"not listed yet: {', '.join(sorted(waited_for))}"
        if leadership is not None and not leadership.is_leader():
            return "no leader has been seen yet"
        return ""

    # ---- figures

    async def _metrics(self, _: web.Request) -> web.Response:
        await self._state.world.catch_up(time.time())
        moment = self.moment()
        # Thousands of pods are added up: not on the event loop.
        body = await asyncio.to_thread(exposition, self._state.measures, moment)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    def moment(self) -> Moment:
        """Everything as it is now."""
        state, now = self._state, time.monotonic()
        leadership = state.leadership
        watches = tuple(
            Watch(
                kind.called, len(reflector),
                now - reflector.last_heard_s if reflector.last_heard_s else 0.0,
                reflector.relists, reflector.synced.is_set(),
            )
            for kind, reflector in state.follower.reflectors.items()
        )  # fmt: skip
        is_synced = bool(watches) and all(watch.is_synced for watch in watches)
        return Moment(
            is_synced=is_synced,
            is_leader=leadership is None or leadership.is_leader(),
            epoch=leadership.epoch if leadership is not None else 0,
            pending_binds=state.binder.pending if state.binder is not None else 0,
            assumed_pods=len(state.world.assumed),
            loop_lag_s=max((late for _, late in self._lags), default=0.0),
            requests=dict(self._client.counts),
            told=dict(state.teller.counts) if state.teller is not None else {},
            watches=watches,
            verdicts=self._verdicts(),
            snapshot=state.world.snapshot(time.time()) if is_synced else None,
        )

    def _verdicts(self) -> tuple[Verdict, ...]:
        plan = self._state.measures.last_plan
        return tuple(plan.verdicts.values()) if plan is not None else ()

    # ---- the snapshot

    async def _snapshot(self, request: web.Request) -> web.StreamResponse:
        try:
            user = await debug.admitted(self._client, request.headers.get("Authorization", ""))
        except debug.NotAllowed as refused:
            headers = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
            return web.Response(text=f"{refused}\n", status=refused.status, headers=headers)
        except ApiError as error:
            log.warning("a token could not be checked", extra={"error": error.sentence})
            return web.Response(text="The API server could not be asked who you are.\n", status=503)
        if self._gives_snapshot:
            return web.Response(text="Another snapshot is on its way.\n", status=429, headers={"Retry-After": "5"})
        self._gives_snapshot = True
        try:
            return await self._stream(request, user.username or "?")
        finally:
            self._gives_snapshot = False

    async def _stream(self, request: web.Request, who: str) -> web.StreamResponse:
        log.info("gives a snapshot", extra={"user": who})
        pieces = debug.snapshot(self._client, self._state, self._configuration)
        try:
            first = await anext(pieces)
        except ApiError as error:
            return web.Response(text=f"{error.sentence}\n", status=503)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            await response.write(first)
            async for piece in pieces:
                await response.write(piece)
        except ApiError as error:
            # Half a list must not be taken for a whole one: the connection is cut, and so is the JSON.
            log.warning("a snapshot broke off", extra={"error": error.sentence})
            if request.transport is not None:
                request.transport.abort()
            return response
        await response.write_eof()
        return response
