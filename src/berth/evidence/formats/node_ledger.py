"""The NodeLedger object: what the node agent writes of its node, and the facts that this is read back as.

The shape is here, so that who writes it (node/) and who reads it agree. Group berth.dev, version v1alpha1; everything
stands in the status. Times are RFC 3339.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from berth.evidence.fact import NO_PCI, Fact, Origin, pci_of
from berth.evidence.formats.boundary_facts import (
    Filling,
    Given,
    Holder,
    HostCount,
    KubeletOffers,
    Offered,
    Parted,
    PluginAnswer,
    SocketsSeen,
    Visible,
)
from berth.evidence.formats.smi_facts import DeviceSeen, DriverSeen, MigDevice
from berth.evidence.piece import Piece

GROUP, VERSION, KIND, RESOURCE = "berth.dev", "v1alpha1", "NodeLedger", "nodeledgers"
OF_NODE = "node"  # the target of a fault that is not of one device
STALE_S = 300.0  # without a heartbeat for so long nothing but a fault is still believed


class _Part(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base: camelCase, what is empty is left out."""


class DriverSaid(_Part, frozen=True):
    version: str = ""
    cuda: str = ""
    nvml: str = ""


class PartitionSaid(_Part, frozen=True):
    """A MIG instance of a device."""

    uuid: str
    profile: str = ""
    gi: int | None = None
    ci: int | None = None
    memory_bytes: int = 0
    memory_used_bytes: int = 0


class DeviceSaid(_Part, frozen=True):
    """One device, judged. `evidence` are the words that its state rests on, `digest` tells two of them apart."""

    pci: str
    state: str  # Fit, Suspect, Unfit, Unknown
    uuid: str = ""
    index: int | None = None
    minor: int | None = None
    name: str = ""
    code: str = ""
    since: str = ""
    evidence: str = ""
    digest: str = ""
    is_gone: bool = False  # it was there since the machine was started, and is not any more
    memory_bytes: int = 0
    memory_used_bytes: int = 0
    full_in_s: int = 0  # its memory is full then if it goes on to grow like this; 0: it does not
    mig_mode: str = ""
    partitions: tuple[PartitionSaid, ...] = ()
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    uncorrected_volatile: int | None = None
    recovery_action: str = ""
    fabric_state: str = ""
    fabric_status: str = ""


class CountSaid(_Part, frozen=True):
    by: str
    count: int


class BoundarySaid(_Part, frozen=True):
    """One resource at the five boundaries; what nobody looked at is left out, and is not zero."""

    resource: str
    host: int | None = None
    plugin: int | None = None
    capacity: int | None = None
    allocatable: int | None = None
    given: int | None = None
    visible: int | None = None
    parts_at: str = ""
    sentence: str = ""
    since: str = ""  # RFC 3339: from when on they part


class OfferSaid(_Part, frozen=True):
    id: str
    healthy: bool = True
    numa: int = -1


class PluginSaid(_Part, frozen=True):
    """A device plugin's socket. `listed` is whether its own list was asked for."""

    socket: str
    resource: str = ""
    problem: str = ""
    listed: bool = False
    devices: tuple[OfferSaid, ...] = ()


class KubeletSaid(_Part, frozen=True):
    """What the kubelet takes for allocatable of one resource."""

    resource: str
    ids: tuple[str, ...] = ()


class GivenSaid(_Part, frozen=True):
    resource: str
    pod: str
    container: str = ""
    ids: tuple[str, ...] = ()


class VisibleSaid(_Part, frozen=True):
    pod: str
    container: str = ""
    ids: tuple[str, ...] = ()
    minors: tuple[int, ...] = ()
    all: bool = False
    asked_for_none: bool = False


class HolderSaid(_Part, frozen=True):
    """A process that holds memory of a device."""

    device: str
    pid: int = 0
    pod: str = ""
    container: str = ""
    process: str = ""
    queue: str = ""
    memory_bytes: int = 0
    peak_bytes: int = 0  # the most that it had, with the other processes of its container


class FaultSaid(_Part, frozen=True):
    """One fault as the agent remembers it, so that another start of the agent goes on from there."""

    target: str  # a PCI address, or "node"
    code: str
    state: str  # what it makes of the target
    until: str  # Gone, Reset, Reboot
    first_seen: str = ""
    last_seen: str = ""
    cleared: str = ""
    relapses: int = 0
    evidence: str = ""
    source: str = ""


class NotSeenSaid(_Part, frozen=True):
    what: str
    why: str = ""


class Status(_Part, frozen=True):
    heartbeat: str = ""
    agent_version: str = ""
    boot_id: str = ""
    state: str = ""
    code: str = ""
    since: str = ""
    message: str = ""
    gpus: str = ""  # for people: "7/8" fit
    equal: bool | None = None  # do the boundaries agree, as far as they were seen
    driver: DriverSaid = DriverSaid()
    devices: tuple[DeviceSaid, ...] = ()
    counts: tuple[CountSaid, ...] = ()
    boundaries: tuple[BoundarySaid, ...] = ()
    plugins: tuple[PluginSaid, ...] = ()
    offers: tuple[KubeletSaid, ...] = ()
    given: tuple[GivenSaid, ...] = ()
    visible: tuple[VisibleSaid, ...] = ()
    holders: tuple[HolderSaid, ...] = ()
    faults: tuple[FaultSaid, ...] = ()
    not_seen: tuple[NotSeenSaid, ...] = ()


class AgentHeard(Fact, frozen=True, kw_only=True):
    """The agent of a node has written its ledger. `is_silent`: it had not for STALE_S when that was read; what it
    saw of boundaries is then left out, since it may be otherwise by now."""

    name: str  # of the node
    heartbeat: str = ""
    version: str = ""
    state: str = ""
    code: str = ""
    is_silent: bool = False


class _Object(Struct, frozen=True):
    status: Status | None = None


def status_in(raw: bytes | Raw) -> Status | None:
    """None where the object has none, or one of another shape."""
    try:
        return msgspec.json.decode(raw, type=_Object).status
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def facts_of(raw: bytes | Raw, node: str, origin: Origin, taken_s: float = 0.0) -> Iterator[Fact | Piece]:
    """What the agent saw, as if it was seen here; the words that a fault rests on come as evidence of their own.

    `taken_s` is when the object was read, 0.0 where nobody says: then the agent is believed.
    """
    status = status_in(raw)
    if status is None:
        return
    said = replace(origin, kind="node-ledger", node=node, time=status.heartbeat)
    is_silent = bool(taken_s) and taken_s - _seconds(status.heartbeat) >= STALE_S
    words = f"the agent of {node} wrote its ledger last at {status.heartbeat or 'no time'}"
    yield AgentHeard(
        origin=replace(said, text=words), name=node, heartbeat=status.heartbeat, version=status.agent_version,
        state=status.state, code=status.code, is_silent=is_silent,
    )  # fmt: skip
    yield from _faults(status, said, node)
    if not is_silent:
        yield from _hardware(status, said)
        yield from _boundaries(status, said)


def _boundaries(status: Status, said: Origin) -> Iterator[Fact]:
    for boundary in status.boundaries:
        if boundary.parts_at and boundary.since:
            yield Parted(
                origin=replace(said, text=boundary.sentence, time=boundary.since),
                resource=boundary.resource, at=boundary.parts_at, since=boundary.since,
            )  # fmt: skip
    if not any("device plugins" in one.what for one in status.not_seen):
        sockets = tuple(plugin.socket for plugin in status.plugins)
        words = f"sockets of device plugins: {', '.join(sockets) or 'none'}"
        yield SocketsSeen(origin=replace(said, text=words), sockets=sockets)
    for plugin in status.plugins:
        # One that answers and was not asked for its list says nothing of devices.
        if plugin.resource and (plugin.problem or plugin.listed):
            yield PluginAnswer(
                origin=replace(said, text=f"plugin {plugin.socket}: {plugin.problem or 'answers'}"),
                resource=plugin.resource,
                socket=plugin.socket,
                answered=not plugin.problem,
                problem=plugin.problem,
                devices=tuple(Offered(one.id, one.healthy, one.numa) for one in plugin.devices),
            )
    for offer in status.offers:
        words = f"the kubelet takes {len(offer.ids)} {offer.resource} for allocatable"
        yield KubeletOffers(origin=replace(said, text=words), resource=offer.resource, ids=offer.ids)
    for given in status.given:
        words = f"{given.pod} {given.container} was given {' '.join(given.ids)}"
        yield Given(
            origin=replace(said, text=words), resource=given.resource, of_pod=given.pod, container=given.container,
            ids=given.ids,
        )  # fmt: skip
    for seen in status.visible:
        yield Visible(
            origin=replace(said, text=f"{seen.pod} {seen.container} reaches {' '.join(seen.ids) or seen.minors}"),
            of_pod=seen.pod,
            container=seen.container,
            ids=seen.ids,
            minors=seen.minors,
            all_of_them=seen.all,
            asked_for_none=seen.asked_for_none,
        )
    for holder in status.holders:
        yield Holder(
            origin=replace(said, text=f"process {holder.pid} {holder.process} of {holder.pod or 'the machine'}"),
            device=holder.device,
            pid=holder.pid,
            of_pod=holder.pod,
            container=holder.container,
            process=holder.process,
            memory_bytes=holder.memory_bytes,
            peak_bytes=holder.peak_bytes,
        )


def _faults(status: Status, said: Origin, node: str) -> Iterator[Piece]:
    """A fault outlives the one who saw it: nothing mends itself while nobody looks."""
    for fault in status.faults:
        if fault.evidence and not fault.cleared:
            kind = "dmesg" if "kmsg" in fault.source else ""
            yield Piece(fault.evidence.encode(), f"{said.source}: {fault.source}", kind, node)


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0


def _hardware(status: Status, said: Origin) -> Iterator[Fact]:
    driver = status.driver
    if driver.version:
        yield DriverSeen(
            origin=replace(said, text=f"driver {driver.version}"), version=driver.version, cuda=driver.cuda,
            nvml=driver.nvml,
        )  # fmt: skip
    for count in status.counts:
        yield HostCount(origin=replace(said, text=f"{count.by}: {count.count}"), by=count.by, count=count.count)
    for device in status.devices:
        if device.is_gone or not device.uuid:
            continue
        if device.full_in_s:
            used = f"{device.memory_used_bytes / 2**30:.1f} of {device.memory_bytes / 2**30:.1f} GiB"
            text = f"{device.uuid}: {used} used, full in {device.full_in_s / 3600:.1f} h at this rate"
            yield Filling(origin=replace(said, text=text), device=device.uuid, full_in_s=float(device.full_in_s))
        words = f"{device.name} {device.uuid}: {device.state} {device.code}".strip()
        pci = pci_of(device.pci)
        yield DeviceSeen(
            origin=replace(said, text=f"{words}: {device.evidence}" if device.evidence else words),
            form="nvml",
            index=device.index,
            uuid=device.uuid,
            name=device.name,
            pci=pci if device.pci else NO_PCI,
            minor=device.minor,
            driver=driver.version,
            memory_total_bytes=device.memory_bytes or None,
            memory_used_bytes=device.memory_used_bytes if device.memory_bytes else None,
            mig_mode=device.mig_mode,
            mig=tuple(
                MigDevice(
                    index=number, uuid=one.uuid, profile=one.profile, gi=one.gi, ci=one.ci,
                    memory_total_bytes=one.memory_bytes or None,
                    memory_used_bytes=one.memory_used_bytes if one.memory_bytes else None,
                )
                for number, one in enumerate(device.partitions)
            ),
            is_remap_pending=device.remap_pending,
            is_remap_failed=device.remap_failed,
            uncorrected_volatile=device.uncorrected_volatile,
            recovery_action=device.recovery_action,
            fabric_state=device.fabric_state,
            fabric_status=device.fabric_status,
        )  # fmt: skip
