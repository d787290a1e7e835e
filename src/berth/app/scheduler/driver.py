"""The loop around the decision core: wait for a change, take a snapshot, decide, send what was decided."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable

import msgspec

from berth.actions.binding import Binder, Order, Outcome, Result
from berth.actions.evicting import Evictor, Leave, Left, Promise
from berth.actions.pods import kept_nodes
from berth.actions.volumes import Volumes
from berth.app.scheduler.journal import Journal
from berth.app.scheduler.move_budget import MoveBudget
from berth.app.scheduler.settings import Defragmentation
from berth.kube.errors import TOO_MANY
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan, Rule
from berth.scheduling.policy import Policy
from berth.scheduling.run_times import RunTimes
from berth.scheduling.tables import Tables
from berth.sources.live.decisions import written
from berth.sources.live.ground import standing_of
from berth.sources.live.promises import WHOLE_WITHIN_S
from berth.sources.live.world import World

log = logging.getLogger("berth.scheduler")

_FOREVER_S = 86_400.0
_AGAIN_S = 0.5  # at the least, before a cycle that nothing but time asks for
RESERVATION = "GPUReservation"
_REST = 3.0  # times the length of the last cycle that pass before the next at the least


class Driver:
    """Decides as long as `leads` says so. Whoever leads again after a time in which it did not says so by `wake`.

    `window_s`: how long a change is waited upon for others to join it; `most_s`: the longest that a burst is let
    grow before it is decided upon. `told` gets each plan with its snapshot, after its binds and evictions were handed
    over, and the seconds that it took. With `run_times` the order knows how
    long workloads still take, as far as anybody does. Without an `evictor` nobody is asked to leave, and without
    `volumes` pods are bound before their claims have any.
    """

    def __init__(
        self,
        world: World,
        binder: Binder,
        evictor: Evictor | None = None,
        volumes: Volumes | None = None,
        *,
        policy: Policy | None = None,
        moves: MoveBudget | None = None,
        run_times: RunTimes | None = None,
        leads: Callable[[], bool] = lambda: True,
        told: Callable[[Plan, Snapshot, float], None] = lambda plan, snapshot, seconds: None,
        window_s: float = 0.005,
        most_s: float = 0.05,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._world = world
        self._binder = binder
        self._evictor = evictor
        self._volumes = volumes
        self._policy = policy or Policy()
        self._moves = moves or MoveBudget(Defragmentation())
        self._run_times = run_times
        self._tables = Tables()
        self._leads = leads
        self._told = told
        self._window_s = window_s
        self._most_s = most_s
        self._now = now
        self._journal = Journal()
        self._vacating: dict[tuple[str, str], str] = {}  # pods that have been asked to leave for reservations
        self._wake = asyncio.Event()
        self._changes = 0
        self._look_s = math.inf  # when another cycle may decide otherwise though nothing has happened by then
        self._had_waiting = True  # of the last plan: when nobody waits any more, that is told once
        world.on_change = self.wake

    def wake(self) -> None:
        """Something changed that may let a pod be placed."""
        self._changes += 1
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        took = 0.0
        while True:
            await self._something()
            await self._gather(max(self._window_s, min(_REST * took, self._most_s)))
            self._wake.clear()
            if self._leads():
                took = await self._decide()

    async def _something(self) -> None:
        """Until something changed, or is about to by itself: a pause that ends. Who does not lead has no pauses."""
        wanted_s = min(self._world.changes_by_itself_s, self._look_s)
        pause_s = wanted_s - self._now() if self._leads() else _FOREVER_S
        try:
            async with asyncio.timeout(max(0.0, pause_s) if pause_s < _FOREVER_S else None):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _gather(self, least_s: float) -> None:
        """Let a burst grow: until nothing more comes for a window, or it has taken long enough."""
        began = time.monotonic()
        await asyncio.sleep(least_s)
        seen = -1
        while seen != self._changes and time.monotonic() - began < self._most_s:
            seen = self._changes
            await asyncio.sleep(self._window_s)

    async def _decide(self) -> float:
        """One cycle; its seconds of decision."""
        self._look_s = math.inf
        await self._world.catch_up(self._now())
        snapshot = self._world.snapshot(self._now())
        if (hours := self._moves.left(snapshot.now_s)) > 0:
            snapshot = msgspec.structs.replace(snapshot, moves_hours=hours)
        if not snapshot.workloads and not self._had_waiting and not snapshot.bookings:
            return 0.0
        self._had_waiting = bool(snapshot.workloads)
        began = time.perf_counter()
        snapshot, plan = await asyncio.to_thread(self._cycle, snapshot)
        took = time.perf_counter() - began
        self._look_s = max(min(plan.look_s, self._moves.next_s(snapshot.now_s)), snapshot.now_s + _AGAIN_S)
        self._moves.spend(snapshot.now_s, sum(e.gpu_hours for e in plan.evictions if e.rule is Rule.Moved))
        sent = self._send(plan)
        self._make_room(plan)
        self._world.reservations.stand(plan.bookings)
        self._vacate(plan)
        self._give_back(plan, snapshot.now_s)
        log.debug("decided", extra={"seconds": round(took, 4), "binds": sent, "waiting": len(plan.verdicts)})
        self._told(plan, snapshot, took)
        return took

    def _cycle(self, snapshot: Snapshot) -> tuple[Snapshot, Plan]:
        """Decide, with what is known of run times where the order goes by them. In a thread."""
        if self._run_times is None:
            return snapshot, cycle(snapshot, self._policy, self._tables)
        snapshot = self._run_times.of(snapshot)
        plan = cycle(snapshot, self._policy, self._tables)
        self._run_times.told(plan)
        return snapshot, plan

    def _make_room(self, plan: Plan) -> None:
        """Hold the places that were won, and ask those who stand there to leave, once that is written down."""
        if self._evictor is None:
            return
        for hold in plan.holds:
            self._world.keep(hold)
        promises: dict[str, list[Promise]] = {}
        by_identity = {plan.workloads[e.beneficiary].identity: plan.workloads[e.beneficiary] for e in plan.evictions}
        for hold in plan.holds:
            workload = by_identity.get(hold.workload)
            for key, (node, _) in kept_nodes([hold], [workload] if workload is not None else []).items():
                record = self._world.record(key)
                if record is not None and record.waits and record.nominated != node:
                    promises.setdefault(hold.workload, []).append(Promise(key, record.uid, node))
        self._evictor.submit([
            Leave(
                (e.allocation.namespace, e.allocation.name), e.allocation.uid, plan.workloads[e.beneficiary].identity,
                e.rule is Rule.BeyondBudget,
            )
            for e in plan.evictions
        ], promises)  # fmt: skip

    def _vacate(self, plan: Plan) -> None:
        """Ask those to leave on whose place a reservation's window has opened; nobody twice who is on the way."""
        if self._evictor is None:
            return
        asked = {(v.allocation.namespace, v.allocation.name): v for v in plan.vacating}
        self._vacating = {key: uid for key, uid in self._vacating.items() if key in asked}
        leaves = [
            Leave(key, one.allocation.uid, f"{RESERVATION} {one.booking}")
            for key, one in asked.items()
            if self._vacating.get(key) != one.allocation.uid
        ]
        self._vacating.update((leave.key, leave.uid) for leave in leaves)
        if leaves:
            self._evictor.submit(leaves)

    def _give_back(self, plan: Plan, now_s: float) -> None:
        """Gangs that were decided and could not be made whole in time leave the places that they hold for nothing."""
        if self._evictor is None or not self._world.promises.unfinished:
            return
        for w in plan.verdicts:
            workload = plan.workloads[w]
            since_s = self._world.promises.unfinished.get(workload.identity)
            if since_s is None or now_s - since_s < WHOLE_WITHIN_S or not sum(s.min_count for s in workload.pod_sets):
                continue
            if workload.awaited:  # it has its places, and takes them as soon as its volumes are there
                self._world.promises.unfinished[workload.identity] = now_s
                continue
            bound = [r for r, _ in self._world.members_of(workload) if r.node and not r.has_ended and not r.is_ending]
            why_not = self._world.lost_for_good(bound)
            log.warning("a gang could not be made whole", extra={
                "workload": workload.identity, "bound": len(bound), "kept": why_not or "no, its pods are made again",
            })  # fmt: skip
            self._world.promises.unfinished[workload.identity] = now_s  # not again at once
            if not why_not:
                self._evictor.submit([Leave(r.key, r.uid, workload.identity) for r in bound])

    def asked_to_leave(self, left: Left) -> None:
        """What became of an eviction. Who was not let go is left alone for a while, and another way is looked for."""
        key, beneficiary = left.leave.key, left.leave.beneficiary
        if not left.is_leaving:
            self._vacating.pop(key, None)
        if left.is_leaving:
            record = self._world.record(key)
            self._journal.asked_to_leave("/".join(key), record.node if record is not None else "", beneficiary)
            return
        log.info("eviction refused" if left.refused else "eviction not sent", extra={
            "pod": "/".join(key), "for": beneficiary, "code": left.refused, "said": left.message,
        })  # fmt: skip
        if not left.refused:
            self._world.stays(key, beneficiary)
            return
        why = f"pod {'/'.join(key)} was to leave for it, and the API server did not let it go: {left.message}"
        all_alike = left.refused == TOO_MANY  # a budget speaks for all pods of a workload
        self._world.refuses_to_leave(key, beneficiary, why, self._now(), all_alike)

    def _send(self, plan: Plan) -> int:
        """Hand the binds over, workload by workload, as far as their pods are still there to be bound."""
        sent = 0
        standing = {node.name: standing_of(node) for node in (plan.nodes[n] for n in set(plan.node.tolist()))}
        for workload, places in by_workload(plan):
            if self._volumes is not None and self._volumes.take(workload, places):
                continue  # its places are held until its volumes are there
            orders = []
            for name, node in places:
                key = (workload.namespace, name)
                record = self._world.assume(key, node)
                if record is not None:
                    orders.append(Order(key, record.uid, node, standing[node]))
            if len(orders) < len(places) and len(orders) < sum(s.min_count for s in workload.pod_sets):
                for order in orders:  # some of its pods went while it was decided: whole or not at all
                    self._world.forget(order.key)
                continue
            decision = written((order.key[1], order.node) for order in orders) if len(orders) > 1 else None
            self._binder.submit(orders, decision)
            if orders:
                self._journal.placed(workload.identity, [order.node for order in orders])
            sent += len(orders)
        return sent

    def stands(self, order: Order) -> bool:
        """Whether a decided bind makes sense still: its node is as it was, its pod's scheduler is one that we serve."""
        record = self._world.record(order.key)
        if record is None or record.scheduler not in self._world.schedulers:
            return False
        return self._world.standing(order.node) == order.standing

    def heard(self, outcome: Outcome) -> None:
        """What became of a bind. A refused one makes its pod wait again."""
        if outcome.result is Result.Bound:
            return
        order, pod = outcome.order, "/".join(outcome.order.key)
        log.info("bind failed", extra={
            "pod": pod, "node": order.node, "result": outcome.result.value, "code": outcome.code,
            "said": outcome.message,
        })  # fmt: skip
        self._world.forget(order.key)
        if outcome.result is Result.Withdrawn:
            self.wake()
            return
        # Whoever bound or deleted it, the watch will tell; until then it is not asked for again.
        if outcome.result is Result.Refused:
            self._world.promises.avoid(order.key, order.node)
        why = f"the bind of {order.key[1]} to {order.node} was refused: {outcome.message or outcome.result.value}"
        self._world.hold_off(order.key, why, self._now())
        self.wake()


def by_workload(plan: Plan) -> list[tuple[Workload, list[tuple[str, str]]]]:
    """For each workload that was placed: (pod, node), pods that do not exist yet left out."""
    found: dict[int, list[tuple[str, str]]] = {}
    taken: dict[tuple[int, int], int] = {}
    for w, s, n in zip(plan.workload.tolist(), plan.pod_set.tolist(), plan.node.tolist(), strict=True):
        names = plan.workloads[w].pods[s]
        at = taken.get((w, s), 0)
        taken[w, s] = at + 1
        if at < len(names):
            found.setdefault(w, []).append((names[at], plan.nodes[n].name))
    return [(plan.workloads[w], places) for w, places in found.items()]
