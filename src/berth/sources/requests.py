"""What one pod requests, by Kubernetes' own rules.

Containers add up; an init container needs its own on top of the sidecars before it, and the largest of these
moments counts; a request that is absent is its limit; pod-level cpu, memory and huge pages replace the sum;
overhead comes on top. Source: k8s.io/component-helpers/resource (PodRequests), the defaults of core/v1, and
KEP-753 (sidecar containers). Not read: a running resize (status.containerStatuses[].resources).
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from berth.base import quantity
from berth.base.quantity import QuantityError
from berth.kube import wire
from berth.model.resources import (
    CPU,
    MEMORY,
    NVIDIA_GPU,
    STORAGE,
    Resources,
    amount_of,
    is_accelerator,
    is_extended,
    resources,
)

# Sums stay far from 64 bits even when every pod of a node asks for the most that can be written.
MOST = 2**53

_NATIVE = (CPU, MEMORY, STORAGE)

Amounts = dict[str, int]


class Problems(list[str]):
    """Rules of Kubernetes that a pod breaks, one sentence each, with the path of the field."""

    def say(self, path: str, value: object, rule: str) -> None:
        self.append(f'{path} is "{value}": {rule}' if isinstance(value, str) else f"{path} is {value}: {rule}")


def requests_of(spec: wire.PodSpec, path: str, problems: Problems) -> Resources:
    """Everything that the pod needs of a node, apart from its place in the count of pods."""
    total: Amounts = {}
    for i, container in enumerate(spec.containers or ()):
        _add(total, _container(container.resources, f"{path}.containers[{i}].resources", problems))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for i, container in enumerate(spec.init_containers or ()):
        needs = _container(container.resources, f"{path}.initContainers[{i}].resources", problems)
        if container.restart_policy == "Always":
            _add(total, needs)
            _add(sidecars, needs)
            _raise_to(peak, sidecars)
        else:
            _add(needs, sidecars)
            _raise_to(peak, needs)
    _raise_to(total, peak)
    _pod_level(total, spec.resources, f"{path}.resources", problems)
    _add(total, _amounts(spec.overhead, f"{path}.overhead", problems))
    return resources({name: min(amount, MOST) for name, amount in total.items()})


def _container(asked: wire.ResourceRequirements | None, path: str, problems: Problems) -> Amounts:
    """A container's requests, defaulted from its limits and checked against them."""
    if asked is None:
        return {}
    limits = _amounts(asked.limits, f"{path}.limits", problems)
    if not asked.requests:
        return limits
    requests = _amounts(asked.requests, f"{path}.requests", problems)
    for name, amount in requests.items():
        limit = limits.get(name)
        if is_extended(name) or name.startswith("hugepages-"):
            if limit is None:
                if amount:
                    problems.say(
                        field_path(f"{path}.requests", name),
                        amount,
                        "such a resource needs a limit of the same amount. Write it under limits.",
                    )
            elif limit != amount:
                problems.say(
                    field_path(f"{path}.requests", name),
                    amount,
                    f"its limit is {limit}, and both must be equal for such a resource. Write only the limit.",
                )
        elif limit is not None and amount > limit:
            problems.say(
                field_path(f"{path}.requests", name),
                _written(asked.requests[name]),
                f'more than its limit "{_written((asked.limits or {})[name])}". Raise the limit.',
            )
    for name, limit in limits.items():
        requests.setdefault(name, limit)
    return requests


def _pod_level(total: Amounts, asked: wire.ResourceRequirements | None, path: str, problems: Problems) -> None:
    """Pod-level amounts take the place of the containers' sum; a lone limit counts only where no sum is."""
    if asked is None:
        return
    requests = _amounts(asked.requests, f"{path}.requests", problems)
    for name, limit in _amounts(asked.limits, f"{path}.limits", problems).items():
        requests.setdefault(name, total.get(name, limit))
    for name, amount in requests.items():
        if name in (CPU, MEMORY) or name.startswith("hugepages-"):
            total[name] = amount
        else:
            rule = "only cpu, memory and huge pages can be asked for by the whole pod. Ask in a container."
            problems.say(field_path(path, name), amount, rule)


def _amounts(written: wire.Quantities, path: str, problems: Problems) -> Amounts:
    for name, value in (written or {}).items():
        if "/" not in name and name not in _NATIVE and not name.startswith("hugepages-"):
            problems.say(field_path(path, name), value, _no_resource(name))
    return {name: amount(name, value, path, problems) for name, value in (written or {}).items()}


def _no_resource(name: str) -> str:
    rule = (
        f"a resource without a domain is one of {', '.join(_NATIVE)} and hugepages-<size>, and GPUs are {NVIDIA_GPU}."
    )
    close = get_close_matches(name.lower(), (*_NATIVE, "gpu", "gpus", "nvidia-gpu"), 1, 0.7)
    return f"{rule} Write {close[0] if close and close[0] in _NATIVE else NVIDIA_GPU}." if close else rule


def amount(name: str, value: wire.Quantity, path: str, problems: Problems) -> int:
    """One amount in the resource's own unit. What breaks a rule is told, and counted as the nearest lawful."""
    if value is None:
        return 0
    text = _written(value)
    try:
        found = amount_of(name, text)
    except QuantityError:
        return _unlawful(name, text, path, problems)
    if found < 0:
        problems.say(field_path(path, name), text, "an amount is never negative. Write 0 or more.")
        return 0
    return found


def _unlawful(name: str, text: str, path: str, problems: Problems) -> int:
    where = field_path(path, name)
    try:
        rounded_up = quantity.whole(text)
    except QuantityError:
        problems.say(where, text, "not a quantity. Write a number with a unit, such as 500m, 2 or 80Gi.")
        return 0
    if rounded_up < 0:
        problems.say(where, text, "an amount is never negative. Write 0 or more.")
        return 0
    if is_accelerator(name):
        rule = "GPUs are whole numbers. Ask for a MIG profile or a shared resource instead."
    else:
        rule = "this resource comes in whole numbers only. Write one."
    problems.say(where, text, rule)
    return rounded_up


def field_path(path: str, key: str) -> str:
    """`limits.cpu`, but `limits["nvidia.com/gpu"]`."""
    return f"{path}.{key}" if key.isidentifier() else f'{path}["{key}"]'


def _written(value: wire.Quantity) -> str:
    return value if isinstance(value, str) else repr(value)


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        if amount > total.get(name, -1):
            total[name] = amount
