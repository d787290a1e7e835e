"""The devices of an account one by one: a row for each device or partition, and under it one for each replica."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from berth.diagnosis.node_facts import MIG, NodeFacts, plain
from berth.evidence.fact import pci_words
from berth.evidence.formats.smi_facts import DeviceSeen
from berth.model.ledger import Boundary, DeviceLine

REPLICA = "::"  # between a device's id and the number of a replica, as the NVIDIA plugin writes it


class _Known(Struct, frozen=True):
    """What the boundaries say, by the id that they use. None: nobody looked."""

    healthy: Mapping[str, bool] | None
    is_silent: bool
    offered: frozenset[str] | None
    given: Mapping[str, str]
    visible: Mapping[str, str]
    has_hardware: bool


def lines_of(node: NodeFacts, resource: str, labels: Mapping[str, str]) -> tuple[DeviceLine, ...]:
    """In the order of the hardware; then what others name and the hardware does not have."""
    answers = node.plugins.get(resource, [])
    healthy = {device.id: device.is_healthy for answer in answers if answer.answered for device in answer.devices}
    known = _Known(
        healthy=healthy if answers else None,
        is_silent=bool(answers) and not any(answer.answered for answer in answers),
        offered=frozenset(node.offers[resource].ids) if resource in node.offers else None,
        given={id: one.of_pod for one in node.given if one.resource == resource for id in one.ids},
        visible={id: one.of_pod for one in node.visible for id in one.ids},
        has_hardware=bool(node.devices),
    )
    hardware = _hardware(node, resource, labels)
    replicas: dict[str, list[str]] = defaultdict(list)
    for id in dict.fromkeys((*healthy, *(known.offered or ()), *known.given)):
        replicas[bare(id)].append(id)
    holders = _holders(node)
    found: list[DeviceLine] = []
    peaks = _peaks(node)
    for id in dict.fromkeys((*hardware, *sorted(replicas))):
        names = [name for name in replicas.get(id, ()) if name != id]
        line = _line(id, names, hardware.get(id), known, holders.get(id, {}))
        found.append(replace(line, peaks_bytes=peaks.get(id, 0), full_in_s=node.filling.get(id, 0.0)))
        found.extend(_replica(name, known) for name in sorted(names))
    return tuple(found)


def bare(id: str) -> str:
    """Of the device that a replica is of."""
    return id.partition(REPLICA)[0]


def _line(
    id: str, replicas: list[str], device: DeviceSeen | None, known: _Known, holders: Mapping[str, int]
) -> DeviceLine:
    names = (*replicas, id)
    is_partition = id.startswith("MIG-")
    part = next((one for one in device.mig if one.uuid == id), None) if device and is_partition else None
    total = part.memory_total_bytes if part else device.memory_total_bytes if device else None
    used = part.memory_used_bytes if part else device.memory_used_bytes if device else None
    return _parted(
        DeviceLine(
            id=id,
            index=device.index if device and device.index is not None else -1,
            pci=pci_words(device.pci) if device else "",
            parent=device.uuid if device and device.uuid != id else "",
            kind="partition" if is_partition else "device",
            name=(part.profile if part else device.name) if device else "",
            host=("there" if device else "gone") if known.has_hardware else "",
            plugin=_plugin(names, known),
            node=_node(names, known),
            request=", ".join(dict.fromkeys(known.given[name] for name in names if name in known.given)),
            visible=", ".join(dict.fromkeys(known.visible[name] for name in names if name in known.visible)),
            memory_bytes=total or 0,
            memory_used_bytes=used or 0,
            holders=tuple(sorted(holders.items(), key=lambda one: (-one[1], one[0]))),
        )
    )


def _replica(id: str, known: _Known) -> DeviceLine:
    return _parted(
        DeviceLine(
            id=id,
            parent=bare(id),
            kind="replica",
            plugin=_plugin((id,), known),
            node=_node((id,), known),
            request=known.given.get(id, ""),
            visible=known.visible.get(id, ""),
        )
    )


def _plugin(names: tuple[str, ...], known: _Known) -> str:
    if known.healthy is None:
        return ""
    if known.is_silent:
        return "no answer"
    states = [known.healthy[name] for name in names if name in known.healthy]
    if not states:
        return "absent" if known.healthy else ""
    return "healthy" if all(states) else "unhealthy"


def _node(names: tuple[str, ...], known: _Known) -> str:
    if known.offered is None:
        return ""
    return "offered" if any(name in known.offered for name in names) else "withheld"


def _parted(line: DeviceLine) -> DeviceLine:
    """With the first boundary that breaks."""
    at = None
    if line.host == "gone":
        at = Boundary.Host
    elif line.plugin in ("unhealthy", "absent", "no answer"):
        at = Boundary.Plugin
    elif line.node == "withheld":
        at = Boundary.Node
    elif line.request and line.visible and line.request != line.visible:
        at = Boundary.Visible
    return line if at is None else replace(line, parts_at=at)


def _hardware(node: NodeFacts, resource: str, labels: Mapping[str, str]) -> dict[str, DeviceSeen]:
    """Id → device. Partitions stand for themselves."""
    found: dict[str, DeviceSeen] = {}
    for key, device in node.devices.items():
        if device.mig_mode != "Enabled":
            if not resource.startswith(MIG):
                found[key] = device
            continue
        for part in device.mig:
            if resource == f"{MIG}{plain(part.profile)}" or labels.get("nvidia.com/mig.strategy") == "single":
                found[part.uuid] = device
    return found


def _holders(node: NodeFacts) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for device, who, held in _held(node):
        found[device][who] = found[device].get(who, 0) + held
    return found


def _peaks(node: NodeFacts) -> dict[str, int]:
    """The peaks of those who hold a device, added up: what it would need if all had theirs at once."""
    of_holder: dict[tuple[str, str], int] = {}
    for holder in node.holders:
        who = (holder.device, f"{holder.of_pod}/{holder.container}" if holder.of_pod else f"process {holder.pid}")
        of_holder[who] = max(of_holder.get(who, 0), holder.peak_bytes)
    found: dict[str, int] = defaultdict(int)
    for (device, _), peak in of_holder.items():
        found[device] += peak
    return found


def _held(node: NodeFacts) -> Iterator[tuple[str, str, int]]:
    for holder in node.holders:
        yield holder.device, holder.of_pod or f"process {holder.pid} {holder.process}".strip(), holder.memory_bytes
