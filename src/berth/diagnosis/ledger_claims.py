"""Accounts of devices that are given by name (DRA): what a driver publishes of a node, and whose claims hold it.

Source: resource.k8s.io, ResourceSlice and ResourceClaim. There is no plugin and no allocatable: the driver's slice is
what the node offers, and the claim names the device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from berth.evidence.fact import pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import ObjectSeen
from berth.evidence.formats.resource_slices import SliceDevice, devices_of
from berth.evidence.formats.smi_facts import DeviceSeen
from berth.model.ledger import Account, Boundary, DeviceLine

Place = tuple[str, str, str]  # driver, pool, name of the device


def claim_accounts(facts: Facts) -> Iterator[Account]:
    """One for each node and driver of GPUs that publishes anything."""
    published: dict[tuple[str, str], list[SliceDevice]] = defaultdict(list)
    for one in facts.of(ObjectSeen):
        if one.kind == "ResourceSlice":
            for device in devices_of(one):
                if device.on and "gpu" in device.driver:
                    published[device.on, device.driver].append(device)
    if not published:
        return
    held = _held(facts)
    uuids: dict[str, dict[str, DeviceSeen]] = defaultdict(dict)
    for seen in facts.of(DeviceSeen):
        uuids[seen.node][seen.uuid] = seen
        for part in seen.mig:
            uuids[seen.node][part.uuid] = seen
    for (node, driver), devices in sorted(published.items()):
        yield _account(node, driver, devices, held, uuids.get(node, {}))


def _account(
    node: str, driver: str, devices: list[SliceDevice], held: Mapping[Place, str], hardware: Mapping[str, DeviceSeen]
) -> Account:
    lines = tuple(_line(device, held, hardware) for device in devices)
    whole = [device for device in devices if device.kind in ("", "gpu")]
    cards = {seen.uuid for seen in hardware.values() if seen.mig_mode != "Enabled"}
    gone = [line.id for line in lines if line.parts_at is Boundary.Host]
    host = len(cards) if hardware else None
    at, words = None, ""
    if gone:
        at, words = Boundary.Host, f"the driver publishes {', '.join(gone[:4])}, which the hardware does not have"
    elif host is not None and host != len(whole):
        at, words = Boundary.Node, f"the hardware has {host}, the driver publishes {len(whole)}"
    return Account(
        node=node,
        resource=driver,
        gpu_class=next((device.product for device in devices if device.product), ""),
        host=host,
        capacity=len(devices),
        allocatable=len(devices),
        requested=sum(bool(line.request) for line in lines),
        parts_at=at,
        sentence=words,
        devices=lines,
    )


def _line(device: SliceDevice, held: Mapping[Place, str], hardware: Mapping[str, DeviceSeen]) -> DeviceLine:
    seen = hardware.get(device.uuid)
    is_gone = bool(hardware) and bool(device.uuid) and seen is None
    return DeviceLine(
        id=device.uuid or device.name,
        index=seen.index if seen and seen.index is not None else -1,
        pci=pci_words(device.pci),
        parent=seen.uuid if seen and seen.uuid != device.uuid else "",
        kind="partition" if device.kind == "mig" else "device",
        name=device.product or device.name,
        host="" if not hardware else "gone" if is_gone else "there",
        node="offered",
        request=held.get((device.driver, device.pool, device.name), ""),
        parts_at=Boundary.Host if is_gone else None,
        memory_bytes=max(device.memory_bytes, 0),
    )


def _held(facts: Facts) -> dict[Place, str]:
    """Device → the pods that a claim reserves it for; the claim's own name where none is named."""
    found: dict[Place, str] = {}
    for one in facts.of(ObjectSeen):
        if one.kind != "ResourceClaim":
            continue
        status = _mapping(one.body.get("status"))
        pods = [f"{one.namespace}/{_mapping(user).get('name')}" for user in _list(status.get("reservedFor"))]
        devices = _mapping(_mapping(status.get("allocation")).get("devices"))
        for result in map(_mapping, _list(devices.get("results"))):
            place = (str(result.get("driver")), str(result.get("pool")), str(result.get("device")))
            found[place] = ", ".join(pods) or f"claim {one.namespace}/{one.name}"
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
