"""Workloads that have a place and wait there for their volumes: the place is held until all of them are bound."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from berth.base.units import counted
from berth.model.hold import Hold
from berth.model.volumes import Claim, ClaimKey, Step, Unmade, Volume
from berth.model.workload import Workload
from berth.sources.inventory import Key, PodRecord
from berth.sources.live.decisions import HELD_S, hold_of
from berth.sources.live.stock import Stock
from berth.sources.volumes.matching import steps_on
from berth.sources.volumes.wishes import waits_for_consumer

_NAMED = 3  # claims in a sentence; the rest is a number


class Selection(Struct, frozen=True, gc=False):
    """`nodes` by pod. `claims` are those that had no volume when it was made. `until_s`: the place is held so long."""

    workload: str
    namespace: str
    nodes: Mapping[str, str]
    claims: tuple[ClaimKey, ...]
    until_s: float


class Selections:
    """By the identity of the workload. `record` looks a pod up, `hold_off` leaves one alone for a while."""

    def __init__(
        self,
        stock: Stock,
        record: Callable[[Key], PodRecord | None],
        hold_off: Callable[[Key, str, float], None],
    ) -> None:
        self._stock = stock
        self._record = record
        self._hold_off = hold_off
        self._kept: dict[str, Selection] = {}

    def __contains__(self, workload: str) -> bool:
        return workload in self._kept

    def claim(self, key: ClaimKey) -> Claim | None:
        """The claim as it is known now."""
        return self._stock.storage.claims.get(key)

    def volume(self, name: str) -> Volume | None:
        """The volume as it is known now."""
        return self._stock.storage.volumes.get(name)

    def begin(
        self, workload: Workload, places: Sequence[tuple[str, str]], until_s: float
    ) -> tuple[list[Step], list[Unmade]]:
        """Of (pod, node): what makes the claims get their volumes there, and claims that cannot get any.

        With the former, and none of the latter, the places are held until `until_s`, and the pods go on waiting.
        """
        storage, shelves = self._stock.storage, self._stock.offers.shelves
        if not storage.claims:
            return [], []
        steps: list[Step] = []
        unmade: list[Unmade] = []
        seen: set[ClaimKey] = set()
        nodes: dict[str, str] = {}
        for pod, node in places:
            record = self._record((workload.namespace, pod))
            if record is None or not record.waits:
                continue
            nodes[pod] = node
            claims = [claim for claim in self._without_volume(record) if claim.key not in seen]
            seen.update(claim.key for claim in claims)
            n = shelves.places.index.get(node)
            if n is None or not claims:
                unmade += [Unmade(c.key, node, f"{node} is gone", record.key, of_node=False) for c in claims]
                continue
            own, cannot = steps_on(claims, n, shelves, storage)
            steps += [replace(one, pod=record.key) for one in own]
            unmade += [replace(one, pod=record.key) for one in cannot]
        if unmade:
            storage.unchoose(step.claim for step in steps)
            return [], unmade
        if steps:
            kept = Selection(
                workload.identity, workload.namespace, nodes, tuple(step.claim for step in steps), until_s
            )
            if (before := self._kept.get(workload.identity)) is not None:
                self._selected(before)
            self._kept[workload.identity] = kept
            storage.selecting.update({step.claim: step.node for step in steps if not step.volume})
            self._look_again(kept)
        return steps, []

    def made(self, workload: str, now_s: float) -> None:
        """All volumes are there: the place is held until the workload is on it, but not for long."""
        if (kept := self._kept.get(workload)) is not None:
            self._kept[workload] = replace(kept, claims=(), until_s=now_s + HELD_S)
            self._selected(kept)
            self._look_again(kept)

    def unmade(self, workload: str, claims: Iterable[Unmade], now_s: float) -> None:
        """These claims did not get their volumes: the place is given back, and who waits for them is left alone."""
        self.end(workload)
        for one in claims:
            if one.of_node:
                self._stock.refuse(one.claim, one.node, one.why, now_s)
            self._hold_off(one.pod, one.why, now_s)
        self._stock.wake()

    def end(self, workload: str) -> None:
        """The place is not held any more; volumes that were chosen and not given are anybody's again."""
        if (kept := self._kept.pop(workload, None)) is not None:
            self._stock.storage.unchoose(kept.claims)
            self._selected(kept)
            self._look_again(kept)

    def _selected(self, kept: Selection) -> None:
        """What the claims say themselves counts from now on."""
        for claim in kept.claims:
            self._stock.storage.selecting.pop(claim, None)

    def _look_again(self, kept: Selection) -> None:
        self._stock.again((kept.namespace, pod) for pod in kept.nodes)

    def _without_volume(self, record: PodRecord) -> Iterable[Claim]:
        storage = self._stock.storage
        for name in record.claims:
            claim = storage.claims.get((record.namespace, name))
            if claim is not None and waits_for_consumer(claim, storage):
                yield claim

    def awaiting(self, workload: Workload) -> Workload:
        """The workload, with what it waits for on the place that it has."""
        kept = self._kept.get(workload.identity)
        if kept is None:
            return workload
        claims = [key[1] for key in kept.claims if not self._has_volume(key)]
        if not claims:
            return workload
        on = sorted(set(kept.nodes.values()))
        where = on[0] if len(on) == 1 else counted(len(on), "node")
        more = f" and {len(claims) - _NAMED:,} more" if len(claims) > _NAMED else ""
        named = f"claim {claims[0]}" if len(claims) == 1 else f"claims {', '.join(claims[:_NAMED])}{more}"
        waits = "waits for its volume" if len(claims) == 1 else "wait for their volumes"
        return replace(
            workload, held_off=f"its place on {where} is held, and the volume {named} {waits} there",
            awaited=tuple(claims),
        )  # fmt: skip

    def _has_volume(self, key: ClaimKey) -> bool:
        claim = self._stock.storage.claims.get(key)
        return claim is not None and claim.is_bound

    def holds(self, waiting: Collection[Workload], now_s: float) -> tuple[Hold, ...]:
        """The places, for the pods that still wait."""
        if not self._kept:
            return ()
        found: list[Hold] = []
        for workload in waiting:
            kept = self._kept.get(workload.identity)
            if kept is None:
                continue
            if kept.until_s <= now_s:
                self.end(workload.identity)
            elif hold := hold_of(workload, kept.nodes, kept.until_s):
                found.append(hold)
        return tuple(found)

    @property
    def next_s(self) -> float:
        """When the first of them ends; infinity where there is none."""
        return min((kept.until_s for kept in self._kept.values()), default=float("inf"))
