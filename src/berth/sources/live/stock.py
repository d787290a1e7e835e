"""The storage of a cluster that changes: which pods are to be looked at again, and which claims are left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from berth.kube import wire_volumes as wire
from berth.kube.wire import NO_META
from berth.model.cluster import Node
from berth.model.volumes import ClaimKey
from berth.model.workload import Workload
from berth.sources.inventory import Key, PodRecord
from berth.sources.live.refusals import Refusals
from berth.sources.volumes.mounts import Mount
from berth.sources.volumes.offers import Offers
from berth.sources.volumes.storage import Refused, Storage

# For which a claim is not tried again on a node that it was refused on.
FIRST_S, MOST_S = 5.0, 300.0


class Stock:
    """`again` is told the pods that a change concerns, `wake` that nodes may have more left than before.

    `on_claim` is told each claim of which something has changed, its volume included.
    """

    def __init__(
        self, storage: Storage, offers: Offers, again: Callable[[Iterable[Key]], None], wake: Callable[[], None]
    ) -> None:
        self.storage = storage
        self.offers = offers
        self.on_claim: Callable[[ClaimKey], None] = lambda key: None
        self.again = again
        self.wake = wake
        self._refusals: Refusals[Refused] = Refusals(FIRST_S, MOST_S)
        self._asked: Counter[str] = Counter()
        self._asked_by: dict[object, frozenset[str]] = {}
        self._limited = storage.limited

    # ---- facts

    def put_claim(self, claim: wire.PersistentVolumeClaim) -> None:
        if (made := self.storage.put_claim(claim)) is not None:
            self._claim(made.key)

    def drop_claim(self, key: ClaimKey) -> None:
        if self.storage.drop_claim(key):
            self._claim(key)

    def put_volume(self, volume: wire.PersistentVolume) -> None:
        name = (volume.metadata or NO_META).name or ""
        before = self.storage.volumes.get(name)
        if (made := self.storage.put_volume(volume)) is None:
            return
        claims = {*self.storage.claims_of(made), *(self.storage.claims_of(before) if before is not None else ())}
        for key in claims:
            self._claim(key)
        if not claims:
            self._wake_if(made.shape.storage_class)

    def drop_volume(self, name: str) -> None:
        if (before := self.storage.drop_volume(name)) is not None:
            for key in self.storage.claims_of(before):
                self._claim(key)

    def put_class(self, storage_class: wire.StorageClass) -> None:
        if self.storage.put_class(storage_class):
            self.again(self.storage.mounts.all_pods())

    def drop_class(self, name: str) -> None:
        if self.storage.drop_class(name):
            self.again(self.storage.mounts.all_pods())

    def put_limits(self, node: wire.CsiNode) -> None:
        if self.storage.put_limits(node):
            self._limits()

    def drop_limits(self, node: str) -> None:
        if self.storage.drop_limits(node):
            self._limits()

    def put_driver(self, driver: wire.CsiDriver) -> None:
        if self.storage.put_driver(driver):
            self.again(self.storage.mounts.all_pods())

    def drop_driver(self, name: str) -> None:
        if self.storage.drop_driver(name):
            self.again(self.storage.mounts.all_pods())

    def put_capacity(self, capacity: wire.CsiStorageCapacity) -> None:
        if self.storage.put_capacity(capacity):
            self._wake_if(capacity.storage_class_name or "")

    def drop_capacity(self, key: Key) -> None:
        self.storage.drop_capacity(key)

    def _claim(self, key: ClaimKey) -> None:
        self.again(self.storage.mounts.pods(key))
        self.on_claim(key)

    def _limits(self) -> None:
        if self.storage.limited != self._limited:
            self._limited = self.storage.limited
            self.again(self.storage.mounts.all_pods())
        elif self._asked:
            self.wake()

    def _wake_if(self, storage_class: str) -> None:
        """Somebody waits for something of the class."""
        if any(storage_class in name for name in self._asked):
            self.wake()

    # ---- pods

    def see(self, record: PodRecord) -> None:
        """A pod as it is now, with or without a node."""
        if not record.claims or record.has_ended:
            self.lose(record.key)
            return
        before = self.storage.mounts.claims(record.key)
        if self.storage.mounts.put(Mount(record.key, record.claims, bool(record.node), record.created_s)):
            self._others(record.key, {*before, *record.claims})

    def lose(self, key: Key) -> None:
        """The pod uses nothing any more."""
        if (mount := self.storage.mounts.drop(key)) is not None:
            self._others(key, mount.claims)

    def _others(self, key: Key, claims: Iterable[str]) -> None:
        """Claims that one pod alone may use: who waits for them is to be told."""
        for name in claims:
            claim = self.storage.claims.get((key[0], name))
            if claim is not None and claim.is_single:
                self.again(pod for pod in self.storage.mounts.pods(claim.key) if pod != key)

    # ---- what is asked of nodes

    def asks(self, group: object, workload: Workload | None) -> None:
        """What the pods of a group ask of storage from now on; None: nothing."""
        known = self.offers.known
        names = frozenset(
            name for s in (workload.pod_sets if workload and known else ()) for name, _ in s.pod_class.requests
        )
        names = names.intersection(known) if names else names
        before = self._asked_by.pop(group, frozenset())
        if names:
            self._asked_by[group] = names
        self._asked.update(names)
        self._asked.subtract(before)
        for name in before - names:
            if not self._asked[name]:
                del self._asked[name]

    def stand_on(self, nodes: tuple[Node, ...]) -> None:
        """The nodes as they are now, before anybody is asked what is wished for."""
        if self.offers.stand_on(nodes):
            # A volume that was to be made for a node that is gone has to be made for another.
            for claim in self.storage.selected:
                self.again(self.storage.mounts.pods(claim))

    def put_on(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """The nodes with what is left of what is asked for."""
        return self.offers.put_on(nodes, self._asked) if self._asked or self.offers.known else nodes

    # ---- refusals

    def refuse(self, claim: ClaimKey, node: str, why: str, now_s: float) -> None:
        """Leave a claim alone on a node for a while, twice as long each time."""
        self._refusals.add((claim, node), why, now_s)
        self.storage.refuse(claim, node)
        self.again(self.storage.mounts.pods(claim))

    def let_pass(self, now_s: float) -> None:
        """Refusals whose time is over."""
        if self.storage.refused and (over := self.storage.refused.intersection(self._refusals.over(now_s))):
            self.storage.forgive(over)
            for claim in {claim for claim, _ in over}:
                self.again(self.storage.mounts.pods(claim))

    @property
    def next_s(self) -> float:
        """When a refusal ends; infinity where none is waited for."""
        return self._refusals.next_s if self.storage.refused else float("inf")
