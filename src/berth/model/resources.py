"""Amounts of resources, exact and hashable.

Units: `cpu` in milli-cores; `memory`, `ephemeral-storage` and `hugepages-*` in bytes; everything else
(GPUs, MIG partitions, replicas, NICs) in whole things.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from berth.base import quantity

Resources = tuple[tuple[str, int], ...]  # sorted by name, no zeros

CPU = "cpu"
MEMORY = "memory"
STORAGE = "ephemeral-storage"
PODS = "pods"
NVIDIA_GPU = "nvidia.com/gpu"
NVIDIA_SHARED = "nvidia.com/gpu.shared"
MIG_PREFIX = "nvidia.com/mig-"

# Resources whose units are whole physical devices; any other vendor's are counted without devices.
DEVICE_RESOURCES = (NVIDIA_GPU, "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")

_NATIVE = (CPU, MEMORY, STORAGE, PODS)
_GPU_WORDS = ("gpu", "mig-", "gaudi", "npu", "tpu", "dcu", "mlu", "vgpu", "i915", "neuron")


def resources(amounts: Mapping[str, int] | Iterable[tuple[str, int]]) -> Resources:
    """Sorted, without zeros."""
    pairs = amounts.items() if isinstance(amounts, Mapping) else amounts
    return tuple(sorted((name, amount) for name, amount in pairs if amount))


def added(some: Resources, others: Resources) -> Resources:
    """The sum of two, resource by resource."""
    if not others:
        return some
    total = dict(some)
    for name, amount in others:
        total[name] = total.get(name, 0) + amount
    return resources(total)


def amount_of(resource: str, text: str) -> int:
    """The amount in the resource's own unit. Raises QuantityError: extended resources are whole numbers."""
    if resource == CPU:
        return quantity.milli(text)
    if resource in (MEMORY, STORAGE) or resource.startswith(("hugepages-", "attachable-volumes-")):
        return quantity.whole(text)
    return quantity.count(text)


def is_extended(resource: str) -> bool:
    """Advertised by a device plugin or by hand: a domain name, a slash, a name outside kubernetes.io."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


@lru_cache(maxsize=4096)
def is_accelerator(resource: str) -> bool:
    """Reads like a GPU or another accelerator, whoever sells it."""
    if resource in DEVICE_RESOURCES:
        return True
    _domain, slash, name = resource.partition("/")
    return bool(slash) and resource not in _NATIVE and any(word in name for word in _GPU_WORDS)


def get(amounts: Resources, resource: str) -> int:
    """Amount of one resource, 0 where it is absent."""
    for name, amount in amounts:
        if name == resource:
            return amount
    return 0
