"""What a look and its judgement are as the status of a NodeLedger."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from berth import __version__
from berth.evidence.fact import NO_PCI, pci_of, pci_words
from berth.evidence.formats import node_ledger as wire
from berth.evidence.formats.boundary_facts import Given, Holder, HostCount, KubeletOffers, Visible
from berth.evidence.formats.smi_facts import DeviceSeen, DriverSeen
from berth.model.ledger import Account
from berth.node.fitness import NODE, Fault, Memory, Standing
from berth.node.look import Looked, is_device
from berth.node.occupancy import Occupancy
from berth.node.policy import Ruling, State, Until

# The schema's bounds (deploy/crds/berth.dev_nodeledgers.yaml): what is longer would be refused as a whole.
MOST_DEVICES, MOST_PARTITIONS, MOST_ROWS, MOST_IDS = 64, 64, 512, 1024
LONGEST = 600
MOST_FEW = 32  # resources, sockets, what was not seen


def status_of(
    looked: Looked, memory: Memory, found: Sequence[Account], queues: Mapping[str, str] | None = None,
    uuids: Mapping[str, str] | None = None,
) -> wire.Status:  # fmt: skip
    """`queues` are the queues of pods, by namespace/name; `uuids` those of devices, as once seen, by PCI address."""
    node = memory.standings.get(NODE, Standing())
    devices = _devices(looked, memory, uuids or {})
    fit = sum(one.state == State.Fit.value for one in devices)
    drivers = looked.facts.of(DriverSeen)
    driver = next((one for one in drivers if one.nvml), drivers[-1] if drivers else DriverSeen())
    return wire.Status(
        heartbeat=stamp(looked.at_s),
        agent_version=__version__,
        boot_id=memory.boot_id,
        state=node.state.value,
        code=node.code,
        since=stamp(node.since_s),
        message=_cut(node.text),
        gpus=f"{fit}/{len(devices)}" if devices else "0",
        equal=all(one.is_equal for one in found) if found else None,
        driver=wire.DriverSaid(driver.version, driver.cuda, driver.nvml),
        devices=devices,
        counts=tuple(wire.CountSaid(one.by, one.count) for one in looked.facts.of(HostCount))[:16],
        boundaries=tuple(_boundary(one, memory) for one in found)[:MOST_FEW],
        plugins=_plugins(looked),
        offers=tuple(
            wire.KubeletSaid(one.resource, one.ids[:MOST_IDS])
            for one in looked.facts.of(KubeletOffers)
            if is_device(one.resource)
        )[:MOST_FEW],
        given=tuple(
            wire.GivenSaid(one.resource, one.of_pod, one.container, one.ids[:MOST_DEVICES])
            for one in looked.facts.of(Given)
            if is_device(one.resource)
        )[:MOST_ROWS],
        visible=tuple(
            wire.VisibleSaid(
                one.of_pod, one.container, one.ids[:MOST_DEVICES], one.minors[:MOST_DEVICES], one.all_of_them,
                one.asked_for_none,
            )
            for one in looked.facts.of(Visible)
        )[:MOST_ROWS],
        holders=tuple(
            wire.HolderSaid(
                one.device, one.pid, one.of_pod, one.container, one.process[:128], (queues or {}).get(one.of_pod, ""),
                one.memory_bytes,
            )
            for one in sorted(looked.facts.of(Holder), key=lambda one: (-one.memory_bytes, one.pid))
        )[:MOST_ROWS],
        faults=tuple(_fault(one) for one in memory.faults),
        not_seen=tuple(wire.NotSeenSaid(_cut(one.what, 128), _cut(one.why)) for one in looked.not_seen)[:MOST_FEW],
    )  # fmt: skip


def with_occupancy(status: wire.Status, looked: Looked, occupancy: Occupancy) -> wire.Status:
    """With what was remembered of memory: the peak of each holder, and when a device will be full."""
    holders = {(one.device, one.pid): one for one in looked.facts.of(Holder)}
    return replace(
        status,
        devices=tuple(replace(one, full_in_s=round(occupancy.full_in_s(one.uuid))) for one in status.devices),
        holders=tuple(
            replace(one, peak_bytes=occupancy.peak_bytes(holders[one.device, one.pid]))
            if (one.device, one.pid) in holders
            else one
            for one in status.holders
        ),
    )


def memory_of(status: wire.Status) -> Memory:
    """What another start of the agent goes on from."""
    standings = {
        one.pci: Standing(_state(one.state), one.code, seconds(one.since), one.evidence)
        for one in status.devices
        if one.pci
    }
    if status.state:
        standings[NODE] = Standing(_state(status.state), status.code, seconds(status.since), status.message)
    faults = tuple(
        Fault(
            target=one.target,
            code=one.code,
            ruling=Ruling(_state(one.state), _until(one.until)),
            first_s=seconds(one.first_seen),
            last_s=seconds(one.last_seen),
            text=one.evidence,
            source=one.source,
            relapses=one.relapses,
            cleared_s=seconds(one.cleared),
        )
        for one in status.faults
    )
    return Memory(status.boot_id, faults, standings)


def lasting(status: wire.Status) -> wire.Status:
    """The part whose change is worth a write by itself: without the time, and without what is measured."""
    return replace(
        status,
        heartbeat="",
        devices=tuple(
            replace(
                one,
                memory_used_bytes=0,
                full_in_s=0,
                uncorrected_volatile=None,
                partitions=tuple(replace(part, memory_used_bytes=0) for part in one.partitions),
            )
            for one in status.devices
        ),
        holders=tuple(wire.HolderSaid(*who) for who in sorted({(one.device, 0, one.pod) for one in status.holders})),
        faults=tuple(replace(one, last_seen="") for one in status.faults),
    )


def stamp(at_s: float) -> str:
    """RFC 3339, to the second; "" for never."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at_s else ""


def seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0


def _devices(looked: Looked, memory: Memory, uuids: Mapping[str, str]) -> tuple[wire.DeviceSaid, ...]:
    seen = {pci_words(one.pci): one for one in looked.devices if one.pci != NO_PCI}
    listed = {pci_words(pci): uuid for pci, uuid in looked.addresses.items()}
    found = []
    for pci, standing in memory.standings.items():
        if pci == NODE:
            continue
        device = seen.get(pci, DeviceSeen(form="nvml"))
        found.append(
            wire.DeviceSaid(
                pci=pci,
                state=standing.state.value,
                uuid=device.uuid or listed.get(pci, "") or uuids.get(pci, ""),
                index=device.index,
                minor=device.minor,
                name=device.name[:128],
                code=standing.code,
                since=stamp(standing.since_s),
                evidence=_cut(standing.text),
                digest=hashlib.sha256(standing.text.encode()).hexdigest()[:16] if standing.text else "",
                is_gone=pci not in listed,
                memory_bytes=device.memory_total_bytes or 0,
                memory_used_bytes=device.memory_used_bytes or 0,
                mig_mode=device.mig_mode,
                partitions=tuple(
                    wire.PartitionSaid(
                        one.uuid, one.profile, one.gi, one.ci, one.memory_total_bytes or 0, one.memory_used_bytes or 0
                    )
                    for one in device.mig
                )[:MOST_PARTITIONS],
                remap_pending=device.is_remap_pending,
                remap_failed=device.is_remap_failed,
                uncorrected_volatile=device.uncorrected_volatile,
                recovery_action=device.recovery_action,
                fabric_state=device.fabric_state,
                fabric_status=device.fabric_status,
            )
        )
    found.sort(key=lambda one: (one.index is None, one.index or 0, pci_of(one.pci)))
    return tuple(found)[:MOST_DEVICES]


def _boundary(one: Account, memory: Memory) -> wire.BoundarySaid:
    """With the time from which on it parts, where that is remembered as a fault."""
    source = f"ledger of {one.resource}"
    since_s = min((each.first_s for each in memory.faults if each.source == source and not each.cleared_s), default=0.0)
    return wire.BoundarySaid(
        resource=one.resource,
        host=one.host,
        plugin=one.plugin,
        capacity=one.capacity,
        allocatable=one.allocatable,
        given=one.requested,
        visible=one.visible,
        parts_at=one.parts_at.name if one.parts_at is not None else "",
        sentence=_cut(one.sentence),
        since=stamp(since_s) if since_s and one.parts_at is not None else "",
    )


def _plugins(looked: Looked) -> tuple[wire.PluginSaid, ...]:
    return tuple(
        wire.PluginSaid(
            socket=one.asked.socket[:253],
            resource=one.resource,
            problem=_cut(one.asked.problem),
            listed=one.asked.devices is not None,
            devices=tuple(
                wire.OfferSaid(device.id, device.is_healthy, device.numa) for device in one.asked.devices or ()
            )[:MOST_IDS],
        )
        for one in looked.plugins
    )[:MOST_FEW]


def _fault(one: Fault) -> wire.FaultSaid:
    return wire.FaultSaid(
        target=one.target,
        code=one.code,
        state=one.ruling.state.value,
        until=one.ruling.until.value,
        first_seen=stamp(one.first_s),
        last_seen=stamp(one.last_s),
        cleared=stamp(one.cleared_s),
        relapses=one.relapses,
        evidence=_cut(one.text),
        source=_cut(one.source, 253),
    )


def _state(word: str) -> State:
    return State(word) if word in State.__members__ else State.Unknown


def _until(word: str) -> Until:
    return Until(word) if word in Until.__members__ else Until.Gone


def _cut(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
