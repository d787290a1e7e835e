"""What was decided and is not done yet: places that are held, gangs that are not whole, pods that are left alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from berth.model.cluster import Allocation
from berth.model.hold import Hold
from berth.model.workload import Workload
from berth.sources.inventory import Key, PodRecord
from berth.sources.live.decisions import begun, nominated
from berth.sources.live.refusals import Refusals

FIRST_S, MOST_S = 1.0, 300.0  # for which a refused pod is left alone
WHOLE_WITHIN_S = 10.0  # so long may a gang stay partly bound while its rest finds no place


class Promises:
    """`unfinished`: gangs (identities) that were decided and are not whole, and since when (epoch seconds)."""

    def __init__(self) -> None:
        self.unfinished: dict[str, float] = {}
        self._holds: dict[str, Hold] = {}
        self._refused: Refusals[Key] = Refusals(FIRST_S, MOST_S)
        self._off: set[Key] = set()
        self._refused_on: dict[Key, set[str]] = {}

    # ---- holds

    def keep(self, hold: Hold) -> None:
        """Keep places for a workload, instead of those that it had."""
        self._holds[hold.workload] = hold

    def stays(self, workload: str, pod: Key) -> bool:
        """The pod does not leave for the workload. What others leave is kept still; whether that is anything.

        The core finds that the place would not do, and looks for another, this one's room among it.
        """
        hold = self._holds.get(workload)
        if hold is None:
            return False
        leaving = tuple(one for one in hold.leaving if (one.namespace, one.name) != pod)
        if leaving:
            self._holds[workload] = replace(hold, leaving=leaving)
        else:
            del self._holds[workload]
        return bool(leaving)

    def holds(self, waiting: Iterable[Workload], now_s: float) -> tuple[Hold, ...]:
        """Holds whose time is not over, of workloads that wait."""
        if self._holds:
            identities = {w.identity for w in waiting}
            for workload, hold in list(self._holds.items()):
                if hold.until_s <= now_s or workload not in identities:
                    del self._holds[workload]
        return tuple(self._holds.values())

    def go_on(self, workload: Workload, members: Collection[PodRecord], now_s: float) -> None:
        """A gang that was decided and has not become whole: the rest of it goes where it was to go."""
        identity = workload.identity
        bound = [record for record in members if record.node and not record.has_ended]
        hold = begun(workload, bound, now_s) if bound else None
        if hold is None:
            self.unfinished.pop(identity, None)
            return
        self.unfinished.setdefault(identity, now_s)
        if not any(record.key in self._refused for record in members):
            self._holds.setdefault(identity, hold)

    def adopt(
        self, workload: Workload, waiting: Iterable[PodRecord], held: Sequence[Allocation], now_s: float
    ) -> None:
        """Keep what an earlier leader has promised the pods of a workload."""
        if hold := nominated(workload, waiting, held, now_s):
            self._holds.setdefault(workload.identity, hold)

    def done(self, workload: str) -> None:
        """The workload (its identity) waits no more."""
        self.unfinished.pop(workload, None)

    # ---- pods that are left alone

    def hold_off(self, key: Key, why: str, now_s: float) -> None:
        self._refused.add(key, why, now_s)
        self._off.add(key)

    def avoid(self, key: Key, node: str) -> None:
        """The pod was refused on this node: the next try is on another."""
        self._refused_on.setdefault(key, set()).add(node)

    def avoided(self, waiting: Iterable[PodRecord]) -> tuple[str, ...]:
        """Nodes on which any of these pods was refused lately."""
        if not self._refused_on:
            return ()
        nodes: set[str] = set()
        for record in waiting:
            if record.key in self._refused_on and record.waits:
                nodes |= self._refused_on[record.key]
        return tuple(sorted(nodes))

    def forget(self, key: Key) -> None:
        """The pod is gone."""
        self._off.discard(key)
        self._refused_on.pop(key, None)

    def why_off(self, waiting: Iterable[PodRecord], now_s: float) -> str:
        """Why these pods are left alone for now; "" where they are not."""
        if self._off:
            for record in waiting:
                if record.key in self._off and record.waits and (refusal := self._refused.of(record.key, now_s)):
                    return refusal.why
        return ""

    def over(self, now_s: float) -> list[Key]:
        """Pods that need not be left alone any more, or may go where they were refused."""
        ended = [key for key in self._refused.over(now_s) if key in self._off]
        self._off.difference_update(ended)
        # A node that refused is tried again once the refusal is long past.
        past = [key for key in self._refused_on if self._refused.remembered_s(key) <= now_s]
        for key in past:
            del self._refused_on[key]
        return ended + past

    @property
    def next_s(self) -> float:
        """When something of this changes by itself; infinity where nothing will."""
        times = [hold.until_s for hold in self._holds.values()]
        times += [since_s + WHOLE_WITHIN_S for since_s in self.unfinished.values()]
        if self._off:
            times.append(self._refused.next_s)
        times += [self._refused.remembered_s(key) for key in self._refused_on]
        return min(times, default=float("inf"))
