"""Which nodes a node term means: terms over labels, answered by an index where that is possible."""

from __future__ import annotations

from collections.abc import Sequence

from berth.model.cluster import Node
from berth.model.workload import NodeTerm, Requirement


class Places:
    """Nodes by their labels. Answers are positions in `nodes`, and are kept; `index` has those of names."""

    def __init__(self, nodes: Sequence[Node] = ()) -> None:
        self.nodes = nodes
        self.index = {node.name: i for i, node in enumerate(nodes)}
        self._by_label: dict[str, dict[str, frozenset[int]]] = {}
        self._known: dict[tuple[NodeTerm, ...], frozenset[int]] = {}
        self._everywhere = frozenset(range(len(nodes)))

    def of(self, terms: tuple[NodeTerm, ...]) -> frozenset[int]:
        """Nodes for which one of the terms holds; all of them where there is none."""
        if not terms:
            return self._everywhere
        found = self._known.get(terms)
        if found is None:
            found = self._known[terms] = frozenset[int]().union(*(self._term(term) for term in terms))
        return found

    def _term(self, term: NodeTerm) -> frozenset[int]:
        if not term.expressions and not term.fields:
            return frozenset()
        found = self._everywhere
        for requirement in term.expressions:
            found &= self._with_label(requirement)
        for requirement in term.fields:
            found &= {i for i in found if holds(requirement, self.nodes[i].name)}
        return found

    def _with_label(self, requirement: Requirement) -> frozenset[int]:
        key = requirement.key
        if key not in self._by_label:
            values: dict[str, set[int]] = {}
            for i, node in enumerate(self.nodes):
                if (value := node.labels.get(key)) is not None:
                    values.setdefault(value, set()).add(i)
            self._by_label[key] = {value: frozenset(nodes) for value, nodes in values.items()}
        by_value = self._by_label[key]
        if requirement.operator == "In":
            return frozenset[int]().union(*(by_value.get(value, ()) for value in requirement.values))
        return frozenset(i for i in self._everywhere if holds(requirement, self.nodes[i].labels.get(key)))


def holds(requirement: Requirement, value: str | None) -> bool:
    """Whether an expression holds for the value of a label, None where there is none."""
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            try:
                bound, number = int(requirement.values[0]), int(value or "")
            except (ValueError, IndexError):
                return False
            return number > bound if requirement.operator == "Gt" else number < bound
    return False
