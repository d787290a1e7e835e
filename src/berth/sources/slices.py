"""Devices that a driver names (dynamic resource allocation), and which pods hold them.

Read are the devices of NVIDIA's driver with type `gpu`, and `mig` as partitions of their parent. A device is
known by (pool, device name); its index on the node is its place in PCI order, as NVML counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from berth.base import quantity
from berth.base.quantity import QuantityError
from berth.kube import wire_devices as wire
from berth.model.cluster import Device, Health, Partition

GPU_DRIVER = "gpu.nvidia.com"
_PCI = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.[0-9a-fA-F]")
_VERSION = re.compile(r"(\d+)\.(\d+)")
NO_PCI = (-1, -1, -1)

DeviceKey = tuple[str, str]  # (pool, device name)


class NamedDevice(Struct, frozen=True, gc=False):
    """A GPU as its driver publishes it."""

    pool: str
    name: str
    uuid: str = ""
    pci: tuple[int, int, int] = NO_PCI
    product: str = ""
    memory_bytes: int = 0
    compute: tuple[int, int] = (0, 0)
    is_tainted: bool = False
    partitions: tuple[Partition, ...] = ()

    def device(self, index: int, island: int, counted: tuple[Device, ...]) -> Device:
        """The model's device; its fitness also from the counted view of the same node, where there is one."""
        health = counted[index].health if index < len(counted) else Health.Fit
        return Device(
            index,
            self.uuid,
            self.pci,
            island,
            health=Health.Unfit if self.is_tainted else health,
            partitions=self.partitions or (counted[index].partitions if index < len(counted) else ()),
            replicas=counted[index].replicas if index < len(counted) else 1,
        )


def devices_by_node(slices: Iterable[wire.ResourceSlice]) -> dict[str, tuple[NamedDevice, ...]]:
    """The GPUs of each node in PCI order, of the newest generation of each pool."""
    newest: dict[str, int] = {}
    kept = [s.spec for s in slices if s.spec and s.spec.driver == GPU_DRIVER and s.spec.node_name]
    for spec in kept:
        pool, generation = _pool(spec)
        newest[pool] = max(newest.get(pool, 0), generation)
    gpus: dict[str, dict[DeviceKey, NamedDevice]] = {}
    cuts: dict[str, list[tuple[str, Partition]]] = {}
    for spec in kept:
        pool, generation = _pool(spec)
        if generation < newest[pool]:
            continue
        node = spec.node_name or ""
        for device in spec.devices or ():
            attributes = _attributes(device)
            kind = _text(attributes, "type")
            if kind == "gpu":
                found = _gpu(pool, device, attributes)
                gpus.setdefault(node, {})[pool, found.name] = found
            elif kind == "mig":
                cut = Partition(_text(attributes, "profile"), "", uuid=_text(attributes, "uuid"))
                cuts.setdefault(node, []).append((_text(attributes, "parentUUID"), cut))
    return {node: _in_order(found.values(), cuts.get(node, ())) for node, found in gpus.items()}


def held_devices(
    claims: Iterable[wire.ResourceClaim], devices: Mapping[str, tuple[NamedDevice, ...]]
) -> dict[tuple[str, str], tuple[int, ...]]:
    """Indexes of the devices that each pod, (namespace, name), holds by its claims."""
    place = {(d.pool, d.name): i for found in devices.values() for i, d in enumerate(found)}
    held: dict[tuple[str, str], set[int]] = {}
    for claim in claims:
        status, meta = claim.status, claim.metadata
        allocation = status.allocation.devices if status and status.allocation else None
        if allocation is None or status is None or meta is None:
            continue
        indexes = {
            place[key]
            for r in allocation.results or ()
            if r.driver == GPU_DRIVER and not r.admin_access and (key := (r.pool or "", r.device or "")) in place
        }
        for consumer in status.reserved_for or ():
            if consumer.resource == "pods":
                held.setdefault((meta.namespace or "default", consumer.name or ""), set()).update(indexes)
    return {pod: tuple(sorted(indexes)) for pod, indexes in held.items() if indexes}


def _pool(spec: wire.ResourceSliceSpec) -> tuple[str, int]:
    pool = spec.pool or wire.ResourcePool()
    return pool.name or "", pool.generation or 0


def _attributes(device: wire.SliceDevice) -> Mapping[str, wire.DeviceAttribute]:
    return device.attributes or (device.basic.attributes if device.basic else None) or {}


def _in_order(gpus: Iterable[NamedDevice], cuts: Iterable[tuple[str, Partition]]) -> tuple[NamedDevice, ...]:
    of: dict[str, list[Partition]] = {}
    for parent, cut in cuts:
        of.setdefault(parent, []).append(cut)
    ordered = sorted(gpus, key=lambda d: (d.pci, d.name))
    return tuple(
        NamedDevice(
            d.pool, d.name, d.uuid, d.pci, d.product, d.memory_bytes, d.compute, d.is_tainted,
            tuple(of.get(d.uuid, ())),
        )
        for d in ordered
    )  # fmt: skip


def _gpu(pool: str, device: wire.SliceDevice, attributes: Mapping[str, wire.DeviceAttribute]) -> NamedDevice:
    pci = _text(attributes, "resource.kubernetes.io/pciBusID") or _text(attributes, "pciBusID")
    version = attributes.get("cudaComputeCapability")
    compute = _VERSION.match((version.version or "") if version else "")
    return NamedDevice(
        pool,
        device.name or "",
        _text(attributes, "uuid"),
        pci_address(pci),
        _text(attributes, "productName"),
        _memory(device),
        (int(compute[1]), int(compute[2])) if compute else (0, 0),
        any(t.effect in ("NoSchedule", "NoExecute") for t in device.taints or ()),
    )


def pci_address(text: str) -> tuple[int, int, int]:
    """`0000:64:00.0` as (domain, bus, device)."""
    shape = _PCI.fullmatch(text)
    return (int(shape[1], 16), int(shape[2], 16), int(shape[3], 16)) if shape else NO_PCI


def _memory(device: wire.SliceDevice) -> int:
    capacity = device.capacity or (device.basic.capacity if device.basic else None) or {}
    value = capacity["memory"].value if "memory" in capacity else None
    try:
        return max(0, quantity.whole(str(value))) if value is not None else 0
    except QuantityError:
        return 0


def _text(attributes: Mapping[str, wire.DeviceAttribute], key: str) -> str:
    found = attributes.get(key)
    return (found.string or found.version or "") if found else ""
