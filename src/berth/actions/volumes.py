"""Volumes for pods that have a place: selected for their claims there, and waited for, before anybody is bound.

A claim that waits for its first consumer is told the node, and its provisioner makes the volume; or a volume that is
there is told the claim, and the controller-manager completes it. All claims of a workload are told at once. What was
told stands on the claims: a leader that follows finds it there and goes on.

A provisioner that cannot takes the node off the claim again. Then, and when it takes too long, the place is given
back, and the claim is not tried there for a while.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec
from msgspec.structs import replace

from berth.actions.fence import Fenced, Sender, Withdrawn
from berth.base.units import duration
from berth.kube.errors import ApiError
from berth.kube.wire_volumes import BOUND_BY_CONTROLLER, SELECTED_NODE
from berth.model.volumes import Claim, ClaimKey, Step, Unmade, Volume
from berth.model.workload import Workload

log = logging.getLogger("berth.volumes")

PATIENCE_S = 600.0  # for all volumes of a workload; kube-scheduler's bindTimeoutSeconds
_MARGIN_S = 60.0  # by which the places are held for longer
_LOOK_S = 5.0  # between two looks at claims of which nothing is heard
_UNSEEN_S = 10.0  # by then what was written is known, or has been taken back
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.2, 5.0  # between tries of a write that was not answered


class Selections(Protocol):
    """What is asked of the world: places that are held for volumes, and what is known of claims and volumes."""

    def __contains__(self, workload: str) -> bool: ...

    def claim(self, key: ClaimKey) -> Claim | None: ...

    def volume(self, name: str) -> Volume | None: ...

    def begin(
        self, workload: Workload, places: Sequence[tuple[str, str]], until_s: float
    ) -> tuple[list[Step], list[Unmade]]: ...

    def made(self, workload: str, now_s: float) -> None: ...

    def unmade(self, workload: str, claims: Iterable[Unmade], now_s: float) -> None: ...

    def end(self, workload: str) -> None: ...


class _Wait:
    """A claim that is waited for. `is_seen`: what was written has been seen on it. `news` is set when it changes."""

    __slots__ = ("is_seen", "news", "step", "written_s")

    def __init__(self, step: Step, news: asyncio.Event) -> None:
        self.step = step
        self.news = news
        self.is_seen = step.is_written
        self.written_s = 0.0


class Volumes:
    """`take` what was placed and has claims without a volume; everything else follows by itself.

    `heard` is to be called with each claim of which something has changed. `clock` is monotonic, `now` since the epoch.
    """

    def __init__(
        self,
        client: Sender,
        selections: Selections,
        *,
        may_write: Callable[[], bool] = lambda: True,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = Fenced(client, may_write)
        self._selections = selections
        self._may_write = may_write
        self._patience_s = patience_s
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._waits: dict[ClaimKey, list[_Wait]] = {}

    @property
    def pending(self) -> int:
        """Workloads whose volumes are waited for."""
        return len(self._under_way)

    def take(self, workload: Workload, places: Sequence[tuple[str, str]]) -> bool:
        """Whether a workload waits for volumes where its pods were placed, (pod, node). Else it can be bound."""
        identity = workload.identity
        until_s = self._now() + self._patience_s + _MARGIN_S
        steps, unmade = self._selections.begin(workload, places, until_s)
        if unmade:
            self._give_back(identity, unmade)
            return True
        if not steps:
            return False
        log.info("volumes selected", extra={"workload": identity, "claims": len(steps)})
        if (before := self._under_way.pop(identity, None)) is not None:
            before.cancel()
        task = asyncio.create_task(self._carry_out(workload, steps))
        self._under_way[identity] = task
        task.add_done_callback(lambda done: self._over(identity, done))
        return True

    def heard(self, claim: ClaimKey) -> None:
        """Something is new about a claim, or about its volume."""
        for wait in self._waits.get(claim, ()):
            self._stands(wait)
            wait.news.set()

    async def close(self) -> None:
        """Stop. What was written stays: whoever leads next goes on."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, identity: str, task: asyncio.Task[None]) -> None:
        if self._under_way.get(identity) is not task:
            return  # another one has begun
        del self._under_way[identity]
        if task.cancelled():
            self._selections.end(identity)
        elif (error := task.exception()) is not None:
            log.error("volumes", exc_info=error)
            self._selections.end(identity)

    # ---- one workload

    async def _carry_out(self, workload: Workload, steps: Sequence[Step]) -> None:
        identity = workload.identity
        news = asyncio.Event()
        waits = [_Wait(step, news) for step in steps]
        for wait in waits:
            self._waits.setdefault(wait.step.claim, []).append(wait)
        try:
            said = await asyncio.gather(*(self._tell(wait) for wait in waits))
            unmade = [one for one in said if one is not None]
            if not unmade:
                unmade = await self._until_bound(identity, waits, news)
        except Withdrawn:
            self._selections.end(identity)
            return
        finally:
            for wait in waits:
                others = self._waits[wait.step.claim]
                others.remove(wait)
                if not others:
                    del self._waits[wait.step.claim]
        if unmade:
            self._give_back(identity, unmade)
        elif identity in self._selections:
            log.info("volumes bound", extra={"workload": identity})
            self._selections.made(identity, self._now())

    def _give_back(self, identity: str, unmade: Sequence[Unmade]) -> None:
        log.info("volumes not made", extra={"workload": identity, "said": unmade[0].why, "claims": len(unmade)})
        self._selections.unmade(identity, unmade, self._now())

    async def _until_bound(self, identity: str, waits: Sequence[_Wait], news: asyncio.Event) -> list[Unmade]:
        """What of it was not made. Returns as soon as all is, as something cannot be, or as nobody waits any more."""
        ends_s = self._clock() + self._patience_s
        while identity in self._selections:
            news.clear()
            if not self._may_write():
                raise Withdrawn(identity)
            looked = [(wait, self._look(wait)) for wait in waits]
            if unmade := [found for _, found in looked if isinstance(found, Unmade)]:
                return unmade
            open_ = [wait for wait, found in looked if found is None]
            if not open_:
                return []
            left_s = ends_s - self._clock()
            if left_s <= 0:
                return await self._give_up(open_)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_LOOK_S, left_s)):
                    await news.wait()
        return []

    def _look(self, wait: _Wait) -> Unmade | bool | None:
        """True once the claim has its volume, None while it may still get it, else why it will not."""
        step = wait.step
        claim = self._selections.claim(step.claim)
        if claim is None or (step.claim_uid and claim.uid != step.claim_uid):
            return self._unmade(wait, f"claim {step.claim[1]} is gone", of_node=False)
        if claim.is_bound:
            return True
        if self._stands(wait) or (not wait.is_seen and self._clock() - wait.written_s < _UNSEEN_S):
            return None
        if step.volume:
            return self._unmade(wait, f"volume {step.volume} went to another claim than {claim.name}", of_node=False)
        return self._unmade(wait, f"the provisioner of claim {claim.name} could not make its volume for {step.node}")

    def _stands(self, wait: _Wait) -> bool:
        """What was written is on the claim, or on its volume, as they are known."""
        step = wait.step
        if step.volume:
            volume = self._selections.volume(step.volume)
            stands = volume is not None and volume.claim == step.claim
        else:
            claim = self._selections.claim(step.claim)
            stands = claim is not None and claim.selected_node == step.node
        wait.is_seen |= stands
        return stands

    async def _give_up(self, open_: Sequence[_Wait]) -> list[Unmade]:
        """Nobody has done anything for too long: the claims are told no node any more."""
        waited = duration(self._patience_s)
        unmade = [
            self._unmade(wait, f"claim {wait.step.claim[1]} had no volume on {wait.step.node} after {waited}")
            for wait in open_
        ]
        for wait in open_:
            if not wait.step.volume:
                with suppress(ApiError):  # it stays, then, and is the first that the next decision looks at
                    await self._client.patch(_claim_path(wait.step.claim), _node(wait.step, None))
        return unmade

    # ---- writes

    async def _tell(self, wait: _Wait) -> Unmade | None:
        """Write a step; why it could not be."""
        step, pause_s = wait.step, _FIRST_PAUSE_S
        while not step.is_written:
            try:
                if step.volume:
                    await self._client.patch(f"/api/v1/persistentvolumes/{step.volume}", _claim_of_volume(step))
                else:
                    await self._client.patch(_claim_path(step.claim), _node(step, step.node))
                break
            except ApiError as error:
                if not error.is_retriable:
                    taken = error.is_conflict or error.is_not_found
                    what = f"volume {step.volume}" if step.volume else f"claim {step.claim[1]}"
                    why = f"{what} has changed meanwhile" if taken else f"{what} cannot be written: {error.message}"
                    return self._unmade(wait, why, of_node=False)
            await self._sleep(pause_s)
            pause_s = min(2 * pause_s, _MOST_PAUSE_S)
        wait.step, wait.written_s = replace(step, is_written=True), self._clock()
        return None

    @staticmethod
    def _unmade(wait: _Wait, why: str, of_node: bool = True) -> Unmade:
        return Unmade(wait.step.claim, wait.step.node, why, wait.step.pod, of_node)


def _claim_path(claim: ClaimKey) -> str:
    return f"/api/v1/namespaces/{claim[0]}/persistentvolumeclaims/{claim[1]}"


def _node(step: Step, node: str | None) -> bytes:
    return msgspec.json.encode({"metadata": {"uid": step.claim_uid, "annotations": {SELECTED_NODE: node}}})


def _claim_of_volume(step: Step) -> bytes:
    """The volume as it was seen, and no other version of it, gets the claim: two never get the same volume."""
    namespace, name = step.claim
    reference = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name,
        "uid": step.claim_uid,
    }  # fmt: skip
    metadata = {
        "uid": step.volume_uid, "resourceVersion": step.volume_version, "annotations": {BOUND_BY_CONTROLLER: "yes"},
    }  # fmt: skip
    return msgspec.json.encode({"metadata": metadata, "spec": {"claimRef": reference}})
