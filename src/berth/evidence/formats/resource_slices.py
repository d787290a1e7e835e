"""Devices that drivers of dynamic resource allocation publish: ResourceSlices of v1, v1beta1 and v1beta2, from the YAML
of `kubectl get resourceslices -o yaml`, whole or cut off."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from berth.evidence.fact import NO_PCI, Fact, Origin, Pci, pci_of
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

MIB = 2**20
_UNITS = {"": 1, "Ki": 2**10, "Mi": MIB, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_QUANTITY = re.compile(r"(\d+)([KMGT]i|[kMGT])?$")
_SLICE = re.compile(
    r"^- apiVersion: resource\.k8s\.io/|^apiVersion: resource\.k8s\.io/\S+\nkind: ResourceSlice\b", re.MULTILINE
)
_END = re.compile(r"\n(?:```|---\s*\n)")  # of a document, in a report or before the next
MOST_CUTS = 40  # lines that are given up at the end of a document that was cut off


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


def looks_like(head: bytes) -> bool:
    return b"kind: ResourceSlice" in head and b"resource.k8s.io/" in head


def read(piece: Piece) -> Iterator[Fact]:
    text = piece.text
    starts = [found.start() for found in _SLICE.finditer(text)]
    for begin, end in zip(starts, [*starts[1:], len(text)], strict=True):
        body = _loaded(_END.split(text[begin:end], maxsplit=1)[0])
        spec = body.get("spec")
        if isinstance(spec, dict):
            line = text.count("\n", 0, begin) + 1
            yield from _devices(piece, {**_from_names(body.get("metadata")), **spec}, line)


def _loaded(text: str) -> dict[str, Any]:
    """One slice. Where the document ends in the middle of a device, its last lines are given up."""
    lines = text.splitlines()
    for cut in range(MOST_CUTS):
        try:
            found = yaml.safe_load("\n".join(lines[: len(lines) - cut]))
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        if isinstance(found, list):
            found = found[0] if found else None
        return found if isinstance(found, dict) else {}
    return {}


def _from_names(metadata: Any) -> dict[str, str]:
    """Node and driver by the owner and the name of the slice: in a document that was cut off they are all that is "
    "left."""
    if not isinstance(metadata, dict):
        return {}
    owners = [
        one for one in metadata.get("ownerReferences") or () if isinstance(one, dict) and one.get("kind") == "Node"
    ]
    node = str(owners[0].get("name", "")) if owners else ""
    prefix = str(metadata.get("generateName", ""))
    driver = prefix.removeprefix(f"{node}-").rstrip("-") if node and prefix.startswith(f"{node}-") else ""
    return {"nodeName": node, "driver": driver}


def _devices(piece: Piece, spec: Mapping[str, Any], line: int) -> Iterator[SliceDevice]:
    pool = spec.get("pool")
    driver, node = str(spec.get("driver", "")), str(spec.get("nodeName", ""))
    for device in spec.get("devices") or ():
        if not isinstance(device, dict) or "name" not in device:
            continue
        nested = device.get("basic")  # v1beta1 has one level more
        basic: Mapping[str, Any] = nested if isinstance(nested, dict) else device
        values = {key: _value(value) for key, value in (basic.get("attributes") or {}).items()}
        memory = (basic.get("capacity") or {}).get("memory")
        yield SliceDevice(
            driver=driver,
            name=str(device["name"]),
            on=node,
            pool=str(pool.get("name", "")) if isinstance(pool, dict) else "",
            kind=values.get("type", ""),
            uuid=values.get("uuid", ""),
            product=values.get("productName", ""),
            pci=pci_of(values.get("resource.kubernetes.io/pciBusID", "")),
            driver_version=values.get("driverVersion", ""),
            memory_bytes=_bytes(memory.get("value") if isinstance(memory, dict) else memory),
            origin=Origin(piece.source, piece.kind, f"{driver} {device['name']}", line=line, node=node or piece.node),
        )


def _value(value: Any) -> str:
    return str(next(iter(value.values()), "")) if isinstance(value, dict) else str(value)


def _bytes(quantity: Any) -> int:
    found = _QUANTITY.match(str(quantity or ""))
    return int(found[1]) * _UNITS[found[2] or ""] if found else -1


FORMAT = Format("resource-slices", ("resource-slices",), looks_like, read)
