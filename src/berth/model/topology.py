"""Levels of domains, from wide to narrow: zone, block, rack, NVLink clique, host.

A domain is the set of nodes that carry the same label values from the widest level down to its own, so that
`rack-1` of two blocks stays two racks. Source of the default labels: docs/concepts.md, "Topology".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

HOST_LABEL = "kubernetes.io/hostname"
CLIQUE_LABEL = "nvidia.com/gpu.clique"


class Level(Struct, frozen=True, gc=False):
    """One level: the word that people use, and the node label that carries its value."""

    name: str
    label: str


class Topology(Struct, frozen=True, gc=False):
    """Levels from wide to narrow. The host is always the narrowest and need not be listed."""

    levels: tuple[Level, ...] = ()

    def find(self, wish: str) -> int:
        """Index of the level with that name or label; -1 where there is none."""
        for i, level in enumerate(self.levels):
            if wish in (level.name, level.label):
                return i
        return -1


# Label keys seen in clusters, from wide to narrow. Of each level the first key that a node carries is used.
WELL_KNOWN: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("region", ("topology.kubernetes.io/region",)),
    ("zone", ("topology.kubernetes.io/zone",)),
    ("spine", ("network.topology.nvidia.com/spine", "topology.k8s.aws/network-node-layer-1")),
    (
        "block",
        (
            "cloud.provider.com/topology-block",
            "network.topology.nvidia.com/block",
            "cloud.google.com/gce-topology-block",
            "topology.k8s.aws/network-node-layer-2",
            "topology.kubernetes.io/block",
        ),
    ),
    (
        "rack",
        (
            "cloud.provider.com/topology-rack",
            "network.topology.nvidia.com/leaf",
            "cloud.google.com/gce-topology-subblock",
            "topology.k8s.aws/network-node-layer-3",
            "topology.kubernetes.io/rack",
        ),
    ),
    ("clique", (CLIQUE_LABEL, "network.topology.nvidia.com/accelerator")),
)


def discover(
    labels_of_nodes: Sequence[Mapping[str, str]], extra: Sequence[Level] = (), asked: Collection[str] = ()
) -> Topology:
    """The levels that these nodes carry: `extra` where given, else those of `WELL_KNOWN`.

    `asked` are levels that workloads name: one that is a label of nodes is a level too, even if nobody declared it.
    It goes where its number of domains puts it.
    """
    levels = list(extra)
    if not levels:
        seen: set[str] = set()
        for labels in labels_of_nodes:
            seen.update(labels)
        for name, keys in WELL_KNOWN:
            for key in keys:
                if key in seen:
                    levels.append(Level(name, key))
                    break
    known = {text for level in levels for text in (level.name, level.label)}
    new = sorted(key for key in asked if key not in known and key != HOST_LABEL)
    sizes = {key: len({labels[key] for labels in labels_of_nodes if key in labels}) for key in new}
    for key in sorted((key for key in new if sizes[key]), key=lambda key: sizes[key]):
        wider = [i for i, level in enumerate(levels) if _domains(level, labels_of_nodes) <= sizes[key]]
        levels.insert(wider[-1] + 1 if wider else 0, Level(key, key))
    return Topology(tuple(levels))


def _domains(level: Level, labels_of_nodes: Sequence[Mapping[str, str]]) -> int:
    return len({labels[level.label] for labels in labels_of_nodes if level.label in labels})
