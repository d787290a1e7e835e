"""All facts of a diagnosis, by kind. Rules read nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeVar

from berth.evidence.damage import Damage
from berth.evidence.fact import Fact, Said

Kind = TypeVar("Kind", bound=Fact)


class Facts:
    """Facts of everything that was read, in the order of the pieces."""

    def __init__(self, facts: Iterable[Fact] = (), kinds: Iterable[str] = ()) -> None:
        self._by_kind: dict[type[Fact], list[Fact]] = defaultdict(list)
        self._said: dict[str, list[Said]] = defaultdict(list)
        self._nodes: dict[str, set[str]] = defaultdict(set)
        self.kinds: set[str] = set(kinds)  # of evidence that was read, by content: what was looked at at all
        self.damage: dict[str, str] = {}  # source: what of it could not be read, "the JSON ends in the middle …"
        for fact in facts:
            self.add(fact)

    def add(self, fact: Fact) -> None:
        if isinstance(fact, Damage):
            self.damage.setdefault(fact.origin.source, fact.problem)
        elif isinstance(fact, Said):
            self._said[fact.message].append(fact)
        else:
            self._by_kind[type(fact)].append(fact)

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Facts of that very kind."""
        return self._by_kind.get(kind, [])  # type: ignore[return-value]

    def said(self, *messages: str) -> Iterator[Said]:
        """Sentences by name; a name that ends in `.` is a family: `nccl.`."""
        for name in messages:
            if name.endswith("."):
                for known in list(self._said):
                    if known.startswith(name):
                        yield from self._said[known]
            else:
                yield from self._said.get(name, ())

    @property
    def nodes(self) -> set[str]:
        """Whose evidence was read, as far as it names them."""
        told = {one.origin.node for sayings in self._said.values() for one in sayings}
        return told.union(*self._nodes.values()) - {""}

    def saw(self, kinds: Iterable[str], node: str) -> None:
        """Evidence of these kinds was read; "" is a node that nobody names."""
        for kind in kinds:
            self.kinds.add(kind)
            self._nodes[kind].add(node)

    def notes(self) -> list[str]:
        """What could not be read, a sentence for each source."""
        return [f"{source}: {problem}; what can be read was read" for source, problem in self.damage.items()]

    def looked_at(self, *kinds: str, node: str = "") -> bool:
        """Was evidence of one of these kinds read, of that node or of one that nobody names? What was not looked at is
        not known to be absent."""
        return any(kind in self.kinds and self._is_of(kind, node) for kind in kinds)

    def _is_of(self, kind: str, node: str) -> bool:
        nodes = self._nodes.get(kind)
        return not node or not nodes or node in nodes or "" in nodes

    def __iter__(self) -> Iterator[Fact]:
        for said in self._said.values():
            yield from said
        for facts in self._by_kind.values():
            yield from facts

    def __len__(self) -> int:
        return sum(map(len, self._said.values())) + sum(map(len, self._by_kind.values()))
