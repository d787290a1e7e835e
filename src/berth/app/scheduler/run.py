"""The scheduler put together: sources, the decision core and actions, until a signal ends it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from berth.actions.binding import TIMEOUT_S, Binder, Outcome
from berth.actions.evicting import Evictor, Left
from berth.actions.letting_in import LettingIn
from berth.actions.telling import Teller
from berth.actions.volumes import Volumes
from berth.app.compile import warm_up
from berth.app.memory import give_back, keep_small
from berth.app.scheduler.configuration import Configured
from berth.app.scheduler.driver import Driver
from berth.app.scheduler.foreign import Foreign
from berth.app.scheduler.foretelling import Foretelling
from berth.app.scheduler.leader import Leadership, Terms
from berth.app.scheduler.listening import listen
from berth.app.scheduler.move_budget import MoveBudget
from berth.app.scheduler.others import Others
from berth.app.scheduler.server import Server
from berth.app.scheduler.settings import Election
from berth.app.scheduler.shadow import Shadow
from berth.app.scheduler.tenure import SETTLE_S, Tenure
from berth.kube.access import Access
from berth.kube.client import Client
from berth.kube.discover import Served, served
from berth.model.snapshot import Snapshot
from berth.model.topology import Level
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.run_times import RunTimes
from berth.sources.live.follow import Follower
from berth.sources.live.kinds import NEEDED
from berth.sources.live.world import World
from berth.views.metrics import Measures
from berth.views.shadow import lines

log = logging.getLogger("berth.scheduler")

TELL_S = 2.0  # for what people are told; whoever leads next tells the rest
REPORT_S = 600.0  # between two reports of who only looks on
LISTED_S = 120.0  # for the first lists; garbage is looked for again after that in any case
DRAIN_S = 10.0  # for binds that are under way when the process is asked to end


def main(configured: Configured, access: Access, shadow: bool = False) -> int:
    """Schedule until SIGTERM or SIGINT. The exit code."""
    for path, value, source in configured.sources:
        log.info("configuration", extra={"key": path, "value": value, "source": source})
    for sentence in configured.unknown:
        log.warning(sentence)
    warm_up()  # before there is a loop: loading compiled code holds everything up, also from a thread
    gc.collect()
    with suppress(ImportError):
        import uvloop

        return uvloop.run(_run(configured, access, shadow))
    return asyncio.run(_run(configured, access, shadow))


async def _run(configured: Configured, access: Access, shadow: bool) -> int:
    asyncio.get_running_loop().set_exception_handler(_unexpected)
    keep_small()
    sockets = listen(configured)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with Client(access, most_in_flight=configured.value.clients.in_flight) as client:
        kinds = await served(client)
        scheduler = (Beside if shadow else Scheduler)(configured, access, client, kinds, sockets)
        work = asyncio.create_task(scheduler.run())
        stop = asyncio.create_task(ended.wait())
        memory = asyncio.create_task(give_back())
        await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
        await scheduler.close()
        memory.cancel()
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        stop.cancel()
    return 0


def _unexpected(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What a transport could not tell anybody, as one line: connections break, and whoever uses them tries again."""
    said, error = context.get("message"), repr(context.get("exception"))
    log.warning("beside any request", extra={"said": said, "error": error})


class Scheduler:
    """All parts of one replica."""

    def __init__(
        self, configured: Configured, access: Access, client: Client, kinds: Served,
        sockets: Sequence[socket.socket] = (),
    ) -> None:  # fmt: skip
        value = configured.value
        election = value.leader_election
        half_life_s = value.shares.usage_half_life_hours * 3600
        levels = tuple(Level(level.name, level.label) for level in value.topology.levels)
        self.foreign = Foreign(client, value.scheduler_names, self._serve)
        self.world = World(
            self.foreign.served, mapping=configured.mapping, levels=levels, silent_s=value.node_agents.silent_seconds,
            half_life_s=half_life_s,
        )  # fmt: skip
        self.follower = Follower(client, self.world, kinds, changed=self._installed)
        terms = _terms(configured, access)
        self.others = Others(client, value.scheduler_names, (terms.namespace, terms.name) if election.enabled else None)
        self.leadership = Leadership(client, terms) if election.enabled else None
        self.tenure = Tenure(self.leadership, self.follower, self._begin, lambda: self.driver.wake())
        self.binder = Binder(
            client, self._heard, in_flight=value.clients.in_flight, may_write=self.tenure.may_write,
            timeout_s=_bind_timeout_s(election), still=lambda order: self.driver.stands(order),
        )  # fmt: skip
        self.volumes = Volumes(client, self.world.selections, may_write=self.tenure.may_write)
        self.world.stock.on_claim = self.volumes.heard
        self.measures = Measures()
        self.teller = Teller(
            client, kinds, may_write=self.tenure.may_write, busy=lambda: self.binder.pending > 0,
            schedulers=value.scheduler_names, used=self.world.usage.count,
            half_life_s=half_life_s,
        )  # fmt: skip
        self.evictor = Evictor(
            client, self._left, promising=self.teller.promising, promised=self.teller.promised,
            may_write=self.tenure.may_write,
        )  # fmt: skip
        self.follower.on_served = self.teller.serve
        self.letting_in = LettingIn(client, kinds, self.foreign.served, may_write=self.tenure.may_write)
        self.server = Server(value, self, client, sockets)
        policy = Policy(
            evicts=value.preemption.enabled, beyond_budgets=value.preemption.beyond_budgets,
            reclaims=value.shares.reclaim, usage_weight=value.shares.usage_weight,
            least_left=value.order.by == "least-left", savers_leave=value.order.sets_aside,
            stop_wait_s=value.order.stop_wait_seconds, aging=value.order.aging,
        )  # fmt: skip
        self.run_times = RunTimes() if policy.least_left else None
        leaves = self.leadership.leaves if self.leadership is not None else None
        self.foretelling = Foretelling(self.teller.expect, policy, leaves=leaves)
        self.driver: Driver = Driver(
            self.world,
            self.binder,
            self.evictor if value.preemption.enabled else None,
            self.volumes,
            policy=policy,
            moves=MoveBudget(value.defragmentation),
            run_times=self.run_times,
            told=self._told,
            leads=self.tenure.may_write,
            window_s=value.batch.window_ms / 1000,
            most_s=value.batch.most_ms / 1000,
        )

    async def run(self) -> None:
        """Until cancelled, or until a part of it fails. Raises BadInput where another Berth serves the same name."""
        await self.others.look_before()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.server.run())
            tasks.create_task(self.others.run())
            if self.leadership is not None:
                tasks.create_task(self.leadership.run())
                await self.leadership.tried.wait()
                if self.leadership.is_leader() and self.leadership.has_predecessor:
                    await asyncio.sleep(SETTLE_S)
            tasks.create_task(self._keep_listed())
            tasks.create_task(self.follower.run())
            tasks.create_task(self.foreign.run())
            tasks.create_task(self.letting_in.run())
            tasks.create_task(self.tenure.run())
            tasks.create_task(self.driver.run())
            tasks.create_task(self.teller.run())
            tasks.create_task(self.foretelling.run())

    async def close(self) -> None:
        """Send what was decided, give the Lease back."""
        await self.volumes.close()
        await self.binder.close(drain_s=DRAIN_S)
        await self.evictor.close()
        await self.teller.close(TELL_S)
        await self.letting_in.close()
        if self.leadership is not None:
            await self.leadership.release()

    async def _begin(self) -> None:
        self.binder.begin()
        await self.world.catch_up(time.time())
        self.world.adopt(time.time())
        await self.teller.adopt()
        self._remember()
        if self.leadership is not None:
            self.foretelling.inherit(self.leadership.inherited)
        gc.freeze()
        self.driver.wake()

    async def _keep_listed(self) -> None:
        """What was listed stays: looking through it for what is garbage, again and again, would hold the loop up."""
        gc.disable()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(LISTED_S):
                    await self.follower.synced()
            gc.freeze()
        finally:
            gc.enable()

    def _remember(self) -> None:
        """How long it takes, of what ended before we looked."""
        ended, queues = self.world.ended()
        self.foretelling.remember(ended, queues)
        if self.run_times is not None:
            self.run_times.remember(ended, queues)

    def _serve(self, names: frozenset[str]) -> None:
        self.world.serve(names)
        self.letting_in.serve(names)

    def _installed(self, kinds: Served) -> None:
        self.teller.serve(kinds)
        self.letting_in.install(kinds)

    def _heard(self, outcome: Outcome) -> None:
        self.driver.heard(outcome)
        self.teller.heard(outcome)
        self.measures.bound(outcome.result.name, outcome.seconds)

    def _left(self, left: Left) -> None:
        self.driver.asked_to_leave(left)
        self.teller.asked_to_leave(left)

    def _told(self, plan: Plan, snapshot: Snapshot, seconds: float) -> None:
        self.measures.planned(plan, seconds)
        self.teller.tell(plan, snapshot, self.world)
        self.foretelling.offer(plan, snapshot)


class Beside(Scheduler):
    """A replica that only looks on: it decides for the names that it is given, whoever serves them, and writes nothing.

    How its decisions compare with what happened it prints every ten minutes and at its end, and a line in the log for
    what another scheduler decided otherwise.
    """

    def __init__(
        self, configured: Configured, access: Access, client: Client, kinds: Served,
        sockets: Sequence[socket.socket] = (),
    ) -> None:  # fmt: skip
        super().__init__(configured, access, client, kinds, sockets)
        self.world.serve(configured.value.scheduler_names)
        batch = configured.value.batch
        self.driver = self.shadow = Shadow(
            self.world, self.binder, now=time.time, told=self._told, window_s=batch.window_ms / 1000,
            most_s=batch.most_ms / 1000,
        )  # fmt: skip

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.server.run())
            tasks.create_task(self.follower.run())
            tasks.create_task(self._report_now_and_then())
            await self.follower.synced()
            log.info("looks on", extra={"names": ",".join(sorted(self.world.schedulers))})
            tasks.create_task(self.driver.run())
            self.driver.wake()

    def _told(self, plan: Plan, snapshot: Snapshot, seconds: float) -> None:
        self.measures.planned(plan, seconds)

    async def _report_now_and_then(self) -> None:
        told: list[str] = []
        while True:
            await asyncio.sleep(REPORT_S)
            now = self._report()
            if now != told:
                print("\n".join(now), flush=True)
            told = now

    def _report(self) -> list[str]:
        hidden = [kind for kind, reflector in self.follower.reflectors.items() if reflector.is_forbidden]
        found = msgspec.structs.replace(
            self.shadow.comparison(),
            blind=tuple(sorted(kind.called for kind in hidden if kind in NEEDED)),
            unread=tuple(sorted(kind.called for kind in hidden if kind not in NEEDED)),
        )
        return list(lines(found))

    async def close(self) -> None:
        print("\n".join(self._report()), flush=True)


def _bind_timeout_s(election: Election) -> float:
    """Well below the time between a leader's last write and the end of its Lease."""
    if not election.enabled:
        return TIMEOUT_S
    return min(TIMEOUT_S, 0.8 * (election.lease_seconds - election.renew_seconds))


def _terms(configured: Configured, access: Access) -> Terms:
    election = configured.value.leader_election
    return Terms(
        namespace=election.namespace or access.namespace or "default",
        name=election.name,
        identity=f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}",
        lease_s=election.lease_seconds,
        renew_s=election.renew_seconds,
        retry_s=election.retry_seconds,
        serves=configured.value.scheduler_names,
    )
