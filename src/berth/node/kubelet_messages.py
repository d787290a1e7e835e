"""The kubelet's two local protocols, as far as they are read: PodResources v1 and device plugins v1beta1.

Source: k8s.io/kubelet, pkg/apis/podresources/v1/api.proto and pkg/apis/deviceplugin/v1beta1/api.proto.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from berth.evidence.formats.boundary_facts import Offered
from berth.node.protobuf import Message, decode, messages, number, text, texts

LIST = "/v1.PodResourcesLister/List"
ALLOCATABLE = "/v1.PodResourcesLister/GetAllocatableResources"
OPTIONS = "/v1beta1.DevicePlugin/GetDevicePluginOptions"
LIST_AND_WATCH = "/v1beta1.DevicePlugin/ListAndWatch"


class GivenDevices(Struct, frozen=True):
    """Devices of one resource that a container has."""

    pod: str  # namespace/name
    container: str
    resource: str
    ids: tuple[str, ...]


def given_in(answer: bytes) -> list[GivenDevices]:
    """ListPodResourcesResponse. Devices of claims have their driver's name as the resource, pool/device as id."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for pod in messages(decode(answer), 1):
        key = f"{text(pod, 2)}/{text(pod, 1)}"
        for container in messages(pod, 3):
            name = text(container, 1)
            for resource, ids in _devices(container, 2):
                found.setdefault((key, name, resource), []).extend(ids)
            for claim in messages(container, 5):
                for one in messages(claim, 4):
                    device = f"{text(one, 3)}/{text(one, 4)}"
                    found.setdefault((key, name, text(one, 2)), []).append(device)
    return [GivenDevices(*key, tuple(dict.fromkeys(ids))) for key, ids in found.items()]


def allocatable_in(answer: bytes) -> dict[str, tuple[str, ...]]:
    """AllocatableResourcesResponse: resource → device ids, one entry a NUMA node on the wire."""
    found: dict[str, list[str]] = {}
    for resource, ids in _devices(decode(answer), 1):
        found.setdefault(resource, []).extend(ids)
    return {resource: tuple(dict.fromkeys(ids)) for resource, ids in found.items()}


def offered_in(answer: bytes) -> tuple[Offered, ...]:
    """ListAndWatchResponse."""
    return tuple(
        Offered(text(device, 1), text(device, 2) == "Healthy", _numa(device)) for device in messages(decode(answer), 1)
    )


def _devices(message: Message, field: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    for devices in messages(message, field):
        yield text(devices, 1), texts(devices, 2)


def _numa(device: Message) -> int:
    nodes = [number(node, 1) for topology in messages(device, 3) for node in messages(topology, 1)]
    return nodes[0] if nodes else -1
