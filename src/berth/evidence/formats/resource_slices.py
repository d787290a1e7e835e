"""Devices that drivers of dynamic resource allocation publish, taken from ResourceSlices of v1, v1beta1 and v1beta2."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from berth.evidence.fact import NO_PCI, Fact, Pci, pci_of
from berth.evidence.formats.cluster_facts import ObjectSeen

KIND = "ResourceSlice"
_UNITS = {
    "": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
}  # fmt: skip
_QUANTITY = re.compile(r"(\d+)([KMGT]i|[kMGT])?$")


class SliceDevice(Fact, frozen=True, kw_only=True):
    """A device that a driver offers on a node."""

    driver: str  # gpu.nvidia.com
    name: str  # gpu-1
    on: str = ""  # node
    pool: str = ""
    kind: str = ""  # gpu, mig, vfio, channel, daemon
    uuid: str = ""
    product: str = ""
    pci: Pci = NO_PCI
    driver_version: str = ""
    memory_bytes: int = -1


def devices_of(one: ObjectSeen) -> Iterator[SliceDevice]:
    """Devices of a slice; nothing for another object. Of one that was cut off, node and driver come from its names."""
    spec = _mapping(one.body.get("spec")) if one.kind == KIND else {}
    known: dict[str, Any] = {**_from_names(_mapping(one.body.get("metadata"))), **spec}
    pool = _mapping(known.get("pool"))
    driver, node = str(known.get("driver") or ""), str(known.get("nodeName") or "")
    for device in map(_mapping, _list(known.get("devices"))):
        if not device.keys() & {"name", "attributes", "basic"}:
            continue
        basic = _mapping(device.get("basic")) or device  # v1beta1 has one level more
        values = {str(key): _value(value) for key, value in _mapping(basic.get("attributes")).items()}
        memory = _mapping(basic.get("capacity")).get("memory")
        yield SliceDevice(
            driver=driver,
            name=str(device.get("name") or ""),
            on=node,
            pool=str(pool.get("name", "")),
            kind=values.get("type", ""),
            uuid=values.get("uuid", ""),
            product=values.get("productName", ""),
            pci=pci_of(values.get("resource.kubernetes.io/pciBusID", "")),
            driver_version=values.get("driverVersion", ""),
            memory_bytes=_bytes(memory.get("value") if isinstance(memory, Mapping) else memory),
            origin=one.origin,
        )


def _from_names(metadata: Mapping[str, Any]) -> dict[str, str]:
    owners = [one for one in map(_mapping, _list(metadata.get("ownerReferences"))) if one.get("kind") == "Node"]
    node = str(owners[0].get("name", "")) if owners else ""
    prefix = str(metadata.get("generateName") or "")
    driver = prefix.removeprefix(f"{node}-").rstrip("-") if node and prefix.startswith(f"{node}-") else ""
    return {"nodeName": node, "driver": driver}


def _mapping(value: Any) -> Mapping[str, Any]:
    """Objects come as they were found: a field may hold anything."""
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _value(value: Any) -> str:
    """Attributes are typed: {string: x}, {int: 0}, {bool: true}, {version: 1.2.3}; null in what was cut off."""
    found = next(iter(value.values()), "") if isinstance(value, Mapping) else value
    return "" if found is None else str(found)


def _bytes(quantity: Any) -> int:
    found = _QUANTITY.match(str(quantity or ""))
    return int(found[1]) * _UNITS[found[2] or ""] if found else -1
