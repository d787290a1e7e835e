"""containerd: versions of its configuration, and the releases that a Kubernetes minor asks for."""

from __future__ import annotations

from msgspec import Struct

from berth.diagnosis.versions.number import is_below


class Configuration(Struct, frozen=True):
    """A version of the configuration, and the oldest containerd that reads it. Older ones are migrated when they are
    read; `containerd config dump` answers in the newest that the daemon knows."""

    version: int
    containerd: str


# Source: containerd, RELEASES.md, daemon configuration; for version 4 kata-containers#12936 and gardener#14856.
CONFIGURATIONS: tuple[Configuration, ...] = (
    Configuration(1, "1.0"),
    Configuration(2, "1.3"),
    Configuration(3, "2.0"),
    Configuration(4, "2.3"),
)


class Recommended(Struct, frozen=True):
    kubernetes: str
    containerd: tuple[str, ...]  # oldest patch of each series


# Source: containerd, RELEASES.md, Kubernetes support.
RECOMMENDED: tuple[Recommended, ...] = (
    Recommended("1.30", ("1.6.28", "1.7.13", "2.0.0")),
    Recommended("1.31", ("1.6.34", "1.7.20", "2.0.0")),
    Recommended("1.32", ("1.6.36", "1.7.24", "2.0.1")),
    Recommended("1.33", ("1.6.36", "1.7.24", "2.0.4")),
)

# The RuntimeConfig call, by which a kubelet learns the cgroup driver. Source: KEP 4033. From which Kubernetes minor on
# containerd 1.x is not supported any more is told in two ways, and left out.
RUNTIME_CONFIG_SINCE = "2.0"


def reads(containerd: str, configuration: int) -> bool:
    """Does this containerd read a configuration of that version? True where it is not known."""
    oldest = next((one.containerd for one in CONFIGURATIONS if one.version == configuration), "")
    return not (oldest and is_below(containerd, oldest))
