"""What the kubelet is told and what it remembers: its configuration (file, `configz`, flags), and the checkpoint of its
device manager.

Versions known: `KubeletConfiguration` v1beta1; checkpoints of Kubernetes 1.10 to 1.35: device ids as a list, from 1.20
on by NUMA node; whole, cut off, or with something else in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from berth.evidence.fact import Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

_CONFIG_HEAD = re.compile(
    rb"(?m)^\s*\"?(?:kind\"?: *\"?KubeletConfiguration|cpuManagerPolicy\"?:|topologyManagerPolicy\"?:)|"
    rb"--(?:root-dir|cpu-manager-policy|topology-manager-policy)[= ]|\"kubeletconfig\":"
)
_OPTION = re.compile(
    r"\"?(?P<key>cpuManagerPolicy|topologyManagerPolicy|topologyManagerScope|memoryManagerPolicy|cgroupDriver|podPidsLimit|"
    r"reservedSystemCPUs|staticPodPath)\"?\s*:\s*\"?(?P<value>[^\s\",]+)"
)
_FLAG = re.compile(
    r"--(?P<key>root-dir|cpu-manager-policy|topology-manager-policy|topology-manager-scope|memory-manager-policy|"
    r"cgroup-driver|reserved-cpus)[= ]\"?(?P<value>[^\s\"]+)"
)
_FLAG_NAMES = {"cpu-manager-policy": "cpuManagerPolicy", "topology-manager-policy": "topologyManagerPolicy",
               "topology-manager-scope": "topologyManagerScope", "memory-manager-policy": "memoryManagerPolicy",
               "cgroup-driver": "cgroupDriver", "reserved-cpus": "reservedSystemCPUs"}  # fmt: skip
_GATE = re.compile(
    r"\b(?P<gate>DevicePlugins|DynamicResourceAllocation|KubeletPodResources\w*)\"?\s*[:=]\s*(?P<on>true|false)"
)
_CHECKPOINT_HEAD = re.compile(rb"\"(?:PodDeviceEntries|RegisteredDevices)\"")
_ENTRY = re.compile(
    r'"PodUID"\s*:\s*"(?P<pod>[^"]*)"\s*,\s*"ContainerName"\s*:\s*"(?P<container>[^"]*)"\s*,\s*'
    r'"ResourceName"\s*:\s*"(?P<resource>[^"]*)"'
)


class KubeletConfig(Fact, frozen=True, kw_only=True):
    """Policies of the kubelet. "" where nothing is said, which mostly means the default."""

    cpu_manager: str = ""
    topology_manager: str = ""
    topology_scope: str = ""
    memory_manager: str = ""
    cgroup_driver: str = ""
    root_dir: str = ""
    gates: Mapping[str, bool] = {}


class DeviceHeld(Struct, frozen=True, gc=False):
    """Devices that the kubelet counts for a container."""

    pod_uid: str
    container: str
    resource: str
    devices: tuple[str, ...] = ()


class Checkpoint(Fact, frozen=True, kw_only=True):
    """The device manager's memory."""

    is_whole: bool  # parses as JSON to its end
    held: tuple[DeviceHeld, ...] = ()
    registered: Mapping[str, tuple[str, ...]] = {}  # resource → devices
    checksum: int = 0

    def twice(self) -> list[tuple[str, str]]:
        """Devices that more than one container of different pods holds: resource, device."""
        holders: dict[tuple[str, str], set[str]] = {}
        for one in self.held:
            for device in one.devices:
                holders.setdefault((one.resource, device), set()).add(one.pod_uid)
        return [key for key, pods in holders.items() if len(pods) > 1]


def read_config(piece: Piece) -> Iterator[Fact]:
    text = piece.text
    said = {found["key"]: found["value"] for found in _OPTION.finditer(text)}
    root = ""
    for found in _FLAG.finditer(text):
        if found["key"] == "root-dir":
            root = found["value"]
        else:
            said[_FLAG_NAMES[found["key"]]] = found["value"]
    gates = {found["gate"]: found["on"] == "true" for found in _GATE.finditer(text)}
    if not (said or root or gates):
        return
    words = ", ".join(f"{key}: {value}" for key, value in [*said.items(), *([("root-dir", root)] if root else [])])
    yield KubeletConfig(
        origin=Origin(piece.source, piece.kind or "kubelet-config", words, node=piece.node),
        cpu_manager=said.get("cpuManagerPolicy", ""),
        topology_manager=said.get("topologyManagerPolicy", ""),
        topology_scope=said.get("topologyManagerScope", ""),
        memory_manager=said.get("memoryManagerPolicy", ""),
        cgroup_driver=said.get("cgroupDriver", ""),
        root_dir=root,
        gates=gates,
    )


def read_checkpoint(piece: Piece) -> Iterator[Fact]:
    text = piece.text
    origin = Origin(piece.source, piece.kind or "kubelet-checkpoint", text.strip()[:200], node=piece.node)
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict):
        held = tuple(DeviceHeld(one["pod"], one["container"], one["resource"]) for one in _ENTRY.finditer(text))
        yield Checkpoint(origin=origin, is_whole=False, held=held)
        return
    data = tree.get("Data", tree)
    data = data if isinstance(data, dict) else {}
    entries, registered = data.get("PodDeviceEntries"), data.get("RegisteredDevices")
    yield Checkpoint(
        origin=origin,
        is_whole=True,
        held=tuple(_held(one) for one in entries if isinstance(one, dict)) if isinstance(entries, list) else (),
        registered={str(name): _ids(ids) for name, ids in registered.items()} if isinstance(registered, dict) else {},
        checksum=tree["Checksum"] if isinstance(tree.get("Checksum"), int) else 0,
    )


def _held(entry: dict[str, Any]) -> DeviceHeld:
    return DeviceHeld(
        str(entry.get("PodUID", "")), str(entry.get("ContainerName", "")), str(entry.get("ResourceName", "")),
        _ids(entry.get("DeviceIDs")),
    )  # fmt: skip


def _ids(some: object) -> tuple[str, ...]:
    """A list, or lists by NUMA node (-1 where there is none)."""
    if isinstance(some, dict):
        return tuple(str(one) for many in some.values() if isinstance(many, list) for one in many)
    return tuple(map(str, some)) if isinstance(some, list) else ()


def _holds_config(head: bytes) -> object:
    said = b"KubeletConfiguration" in head or b"ManagerPolicy" in head or b"-manager-policy" in head
    return (said or b"--root-dir" in head or b'"kubeletconfig":' in head) and _CONFIG_HEAD.search(head)


KUBELET_CONFIG = Format("configuration of the kubelet", ("kubelet-config",), _holds_config, read_config)
KUBELET_CHECKPOINT = Format(
    "checkpoint of the device manager", ("kubelet-checkpoint",), _CHECKPOINT_HEAD.search, read_checkpoint
)
