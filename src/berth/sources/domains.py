"""In which domain a gang has begun: what is left of it has to follow where its topology is required."""

from __future__ import annotations

from collections.abc import Iterable

from berth.model.cluster import Node
from berth.model.topology import HOST_LABEL, Topology
from berth.model.workload import NodeTerm, Requirement, TopologyWish

HOST_NAMES = ("host", "hostname", HOST_LABEL)


class Domains:
    """The nodes of a cluster by their place in its topology."""

    def __init__(self, topology: Topology, nodes: Iterable[Node]) -> None:
        self._topology = topology
        self._labels = {node.name: node.labels for node in nodes}

    def of(self, wishes: Iterable[TopologyWish], nodes: Iterable[str]) -> NodeTerm | None:
        """The domain of these nodes at the narrowest required level, as a term over node labels.

        None where nothing is required of all pods, the level or the nodes are not known, or the nodes lie
        apart already: then there is no domain to follow.
        """
        terms = [self._domain(wish.level, nodes) for wish in wishes if wish.required and not wish.slice_size]
        found = [t for t in terms if t is not None]
        return max(found, key=lambda t: len(t.expressions)) if found else None

    def _domain(self, level: str, nodes: Iterable[str]) -> NodeTerm | None:
        keys = self._keys(level)
        paths = {tuple(self._labels.get(node, {}).get(key, "") for key in keys) for node in nodes}
        if len(paths) != 1 or not keys:
            return None
        path = paths.pop()
        if not path[-1]:
            return None
        # A rack's name may repeat in another block: the levels above belong to its name.
        return NodeTerm(tuple(Requirement(key, "In", (v,)) for key, v in zip(keys, path, strict=True) if v))

    def _keys(self, level: str) -> tuple[str, ...]:
        """Labels from the widest level down to this one."""
        at = self._topology.find(level)
        if at < 0:
            return (HOST_LABEL,) if level in HOST_NAMES else ()
        return tuple(above.label for above in self._topology.levels[: at + 1])
