"""Dynamic resource allocation: what each Kubernetes minor serves, and what NVIDIA's driver needs."""

from __future__ import annotations

from msgspec import Struct

from berth.diagnosis.versions.number import is_below


class Served(Struct, frozen=True):
    """resource.k8s.io of one minor."""

    kubernetes: str
    versions: tuple[str, ...]  # that can be served; all of structured parameters
    is_default: bool  # the newest of them is, without a setting


# Source: Kubernetes documentation, set up DRA in a cluster, and its changelogs.
SERVED: tuple[Served, ...] = (
    Served("1.31", ("v1alpha3",), False),
    Served("1.32", ("v1beta1",), False),
    Served("1.33", ("v1beta1", "v1beta2"), False),
    Served("1.34", ("v1beta1", "v1beta2", "v1"), True),
)


class Need(Struct, frozen=True):
    """Of NVIDIA's driver for claims."""

    what: str
    kubernetes: str
    driver: str
    source: str


_PREREQUISITES = "dra-driver-nvidia-gpu, docs/prerequisites.md"
GPUS = Need("GPUs", "1.32", "565", _PREREQUISITES)  # the GPU Operator's guide asks for 1.34.2 and 580
COMPUTE_DOMAINS = Need("ComputeDomains (IMEX)", "1.32", "570.158.01", _PREREQUISITES)
NEEDS: tuple[Need, ...] = (GPUS, COMPUTE_DOMAINS)


class Gate(Struct, frozen=True):
    """A feature gate of Kubernetes by minor; "" where it has not got there."""

    name: str
    alpha: str
    beta: str
    stable: str


# Source: Kubernetes documentation, feature gates; KEP 4381, 4033.
GATES: tuple[Gate, ...] = (
    Gate("DynamicResourceAllocation (structured parameters)", "1.30", "1.32", "1.34"),
    Gate("KubeletCgroupDriverFromCRI", "1.28", "1.31", "1.34"),
)


def has_api(kubelet: str) -> bool:
    """Can a cluster with this kubelet serve what the driver asks for? True where it is not known."""
    return not is_below(kubelet, GPUS.kubernetes)
