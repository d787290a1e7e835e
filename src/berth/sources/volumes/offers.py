"""What nodes have left of storage, as amounts of resources, for those who wait: see berth.model.volumes.

Only what somebody asks for is worked out, and again only when what it depends on has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from berth.model.cluster import Node
from berth.model.resources import Resources
from berth.model.volumes import ATTACHED, NO_LIMIT, ROOM, VOLUMES, ClaimKey, Shape
from berth.sources.volumes.matching import Shelves, could_have
from berth.sources.volumes.places import Places
from berth.sources.volumes.storage import Storage

Amounts = Mapping[int, int]  # by position of the node


class Offer(Protocol):
    """One resource. `on` gives the amounts of nodes, and that of all that it does not name."""

    @property
    def name(self) -> str: ...

    @property
    def depends_on(self) -> tuple[str, ...]: ...

    def on(self, storage: Storage, shelves: Shelves) -> tuple[Amounts, int]: ...


class Slots(Struct, frozen=True):
    """Volumes that a driver can attach to a node."""

    driver: str

    @property
    def name(self) -> str:
        return ATTACHED + self.driver

    @property
    def depends_on(self) -> tuple[str, ...]:
        return ("limits",)

    def on(self, storage: Storage, shelves: Shelves) -> tuple[Amounts, int]:
        return {i: storage.limit(node.name, self.driver) for i, node in enumerate(shelves.places.nodes)}, NO_LIMIT


class Ready(Struct, frozen=True):
    """Volumes of a class that are there and free: all of them, or those that a claim of a shape could have."""

    storage_class: str
    shape: Shape | None = None

    @property
    def name(self) -> str:
        words = self.shape.words if self.shape is not None else ""
        return f"{VOLUMES}{self.storage_class}{f' {words}' if words else ''}"

    @property
    def depends_on(self) -> tuple[str, ...]:
        return f"volumes {self.storage_class}", "chosen"

    def on(self, storage: Storage, shelves: Shelves) -> tuple[Amounts, int]:
        found = {
            n: sum(v.name not in storage.chosen and (self.shape is None or could_have(self.shape, v)) for v in shelf)
            for n, shelf in shelves.of(self.storage_class).items()
        }
        return found, 0


class RoomOfDriver(Struct, frozen=True):
    """A driver that says what it has left can make a volume of this size there."""

    storage_class: str
    bytes: int

    @property
    def name(self) -> str:
        return f"{ROOM}a volume of class {self.storage_class} {Shape(bytes=self.bytes).words}".rstrip()

    @property
    def depends_on(self) -> tuple[str, ...]:
        return ("capacities",)

    def on(self, storage: Storage, shelves: Shelves) -> tuple[Amounts, int]:
        reached = frozenset[int]().union(
            *(shelves.places.of(c.reach) for c in storage.capacities(self.storage_class, self.bytes))
        )
        return dict.fromkeys(reached, NO_LIMIT), 0


class RoomOfClaim(Struct, frozen=True):
    """A claim has not been refused its volume there a moment ago."""

    claim: ClaimKey

    @property
    def name(self) -> str:
        # Without a slash: what has one is read as a device plugin's.
        return f"{ROOM}the volume of claim {self.claim[1]} in {self.claim[0]}"

    @property
    def depends_on(self) -> tuple[str, ...]:
        return ("refused",)

    def on(self, storage: Storage, shelves: Shelves) -> tuple[Amounts, int]:
        nodes = {node for claim, node in storage.refused if claim == self.claim}
        return {i: 0 for i, node in enumerate(shelves.places.nodes) if node.name in nodes}, NO_LIMIT


class Offers:
    """Puts on nodes what is asked for. Whoever asks makes it known first, and names it."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.shelves = Shelves(storage)
        self._known: dict[str, Offer] = {}
        self._amounts: dict[str, tuple[tuple[object, ...], tuple[Amounts, int]]] = {}
        self._nodes: tuple[Node, ...] = ()
        self._with: list[tuple[str, tuple[Amounts, int]]] = []
        self._more: list[Resources] = []
        self._made: tuple[Node, ...] = ()

    def know(self, offer: Offer) -> str:
        """The name of the resource. It is forgotten again where nobody asks for it."""
        self._known[offer.name] = offer
        return offer.name

    @property
    def known(self) -> Collection[str]:
        return self._known.keys()

    def stand_on(self, nodes: tuple[Node, ...]) -> bool:
        """The nodes as they are now; whether others came or went. Before pods are asked what they wish."""
        before = self.shelves.places
        if not _same_places(nodes, before.nodes):
            self.shelves.stand_on(Places(nodes))
        return self.shelves.places.index.keys() != before.index.keys()

    def put_on(self, nodes: tuple[Node, ...], asked: Collection[str]) -> tuple[Node, ...]:
        """The nodes with the amounts of what is asked for. A node of which nothing has changed is the same object."""
        self._known = {name: offer for name, offer in self._known.items() if name in asked}
        self.stand_on(nodes)
        found = [(name, self._of(self._known[name])) for name in sorted(self._known)]
        is_same = len(found) == len(self._with) and all(
            one == other and amounts is before
            for (one, amounts), (other, before) in zip(found, self._with, strict=True)
        )
        if is_same and nodes is self._nodes:
            return self._made
        before = dict(zip(map(id, self._nodes), zip(self._more, self._made, strict=True), strict=True))
        more = [tuple((name, amounts.get(i, other)) for name, (amounts, other) in found) for i in range(len(nodes))]
        made: list[Node] = []
        for node, extra in zip(nodes, more, strict=True):
            known = before.get(id(node))
            made.append(known[1] if known is not None and known[0] == extra else _with_more(node, extra))
        self._nodes, self._with, self._more, self._made = nodes, found, more, tuple(made)
        return self._made

    def _of(self, offer: Offer) -> tuple[Amounts, int]:
        versions = self._storage.versions
        now = (self.shelves.places, *(versions.get(what, 0) for what in offer.depends_on))
        known = self._amounts.get(offer.name)
        if known is None or known[0] != now:
            amounts = offer.on(self._storage, self.shelves)
            # What is equal stays the same object: it is compared by identity.
            known = self._amounts[offer.name] = (now, known[1] if known and known[1] == amounts else amounts)
        return known[1]


def _with_more(node: Node, more: Resources) -> Node:
    """An amount of zero is told, too: the resource is known, and there is none of it here."""
    return replace(node, allocatable=tuple(sorted({**dict(node.allocatable), **dict(more)}.items()))) if more else node


def _same_places(some: Sequence[Node], others: Sequence[Node]) -> bool:
    return len(some) == len(others) and all(
        a is b or (a.name == b.name and a.labels == b.labels) for a, b in zip(some, others, strict=True)
    )
