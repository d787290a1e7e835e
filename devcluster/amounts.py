"""How much a pod asks for and a node has, in thousandths: written from the rules of Kubernetes, not from Berth."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Any

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal("1e3"),
    "M": Decimal("1e6"),
    "G": Decimal("1e9"),
    "T": Decimal("1e12"),
    "P": Decimal("1e15"),
    "E": Decimal("1e18"),
    **{prefix + "i": Decimal(1024) ** power for power, prefix in enumerate("KMGTPE", 1)},
}
PODS = "pods"


@lru_cache(maxsize=4096)
def thousandths(quantity: str) -> int:
    """A Kubernetes quantity in thousandths of its unit, rounded up: "1500m" -> 1500, "2Gi" -> 2147483648000."""
    number = quantity.rstrip("".join(set("".join(_SUFFIXES))))
    suffix = quantity[len(number) :]
    if suffix not in _SUFFIXES:  # "1e3": the exponent is part of the number
        number, suffix = quantity, ""
    return int((Decimal(number) * _SUFFIXES[suffix] * 1000).to_integral_value(ROUND_CEILING))


def asked(pod: Mapping[str, Any]) -> dict[str, int]:
    """What a pod occupies on its node, in thousandths: containers together, or the largest step of its start.

    Init containers run one after the other, before the containers; one that restarts always (a sidecar) stays.
    Source: the API reference on init containers, sidecars, pod-level resources and overhead.
    """
    spec = pod["spec"]
    steady: dict[str, int] = {}
    for container in spec.get("containers", ()):
        _add(steady, _requests(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers", ()):
        step = dict(sidecars)
        _add(step, _requests(container))
        if container.get("restartPolicy") == "Always":
            sidecars = step
        for resource, amount in step.items():
            peak[resource] = max(peak.get(resource, 0), amount)
    _add(steady, sidecars)
    total = {resource: max(steady.get(resource, 0), peak.get(resource, 0)) for resource in {**steady, **peak}}
    total.update(_requests(spec))  # pod-level resources stand for what the containers add up to
    _add(total, {resource: thousandths(str(amount)) for resource, amount in (spec.get("overhead") or {}).items()})
    total[PODS] = 1000
    return total


def allocatable(node: Mapping[str, Any]) -> dict[str, int]:
    """What a node offers to pods, in thousandths."""
    offers = node.get("status", {}).get("allocatable") or {}
    return {resource: thousandths(str(amount)) for resource, amount in offers.items()}


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {resource: thousandths(str(amount)) for resource, amount in requests.items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount
