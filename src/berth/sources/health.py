"""What the agent of a node says of its devices (NodeLedger), and what follows for who may go there.

Where the scheduler names the device, an unfit one is not given out. Where the kubelet picks, an unfit device that its
plugin has withdrawn leaves the rest of the node usable; one that the plugin still offers makes the resource *unsafe*:
the kubelet may give out just that one, so nobody new gets any. An agent that has been silent for too long counts as if
there were none, but for what it found unfit: a GPU does not mend itself while nobody looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from berth.base.units import counted
from berth.kube.wire_ledger import LedgerDevice, LedgerPlugin, NodeLedger, NodeLedgerStatus
from berth.model.cluster import Device, Health, Node
from berth.model.resources import get, is_accelerator
from berth.sources.slices import NO_PCI, pci_address

SILENT_S = 300.0  # without a heartbeat an agent counts as silent

_STATES = {health.name: health for health in Health}
_SAMPLES = 3


class Finding(Struct, frozen=True, gc=False):
    """A device as the agent sees it. `index` -1 where it does not say; `offered` are the resources as which its plugin
    calls it, or a part of it, healthy."""

    uuid: str = ""
    pci: tuple[int, int, int] = NO_PCI
    index: int = -1
    health: Health = Health.Fit
    code: str = ""
    offered: tuple[str, ...] = ()


class Report(Struct, frozen=True, gc=False):
    """What an agent says of its node, without when it said so: a heartbeat alone changes nothing."""

    health: Health = Health.Fit
    code: str = ""
    devices: tuple[Finding, ...] = ()

    def of(self, health: Health) -> tuple[Finding, ...]:
        return tuple(d for d in self.devices if d.health == health)


NOTHING_FOUND = Report()


def report_of(ledger: NodeLedger) -> Report:
    """A state that is not known counts as Unknown, which is neither good nor bad."""
    status = ledger.status or NodeLedgerStatus()
    found = (_finding(device, status.plugins or ()) for device in status.devices or ())
    devices = sorted(found, key=lambda d: (d.index < 0, d.index, d.pci))
    return Report(_state(status.state), status.code or "", tuple(devices))


def heartbeat_of(ledger: NodeLedger) -> str | None:
    return ledger.status.heartbeat if ledger.status else None


def is_silent(heard_s: float, now_s: float, silent_s: float = SILENT_S) -> bool:
    """No heartbeat for so long; one that cannot be read is none."""
    return now_s - heard_s >= silent_s


def heed(node: Node, report: Report, silent: bool = False) -> Node:
    """The node with what its agent says of it; `silent`: has not said so lately."""
    suspect = () if silent else report.of(Health.Suspect)
    unfit = report.of(Health.Unfit)
    devices: tuple[Device, ...] = node.devices
    unsafe: tuple[str, ...] = ()
    if unfit or suspect:
        if node.named_devices:
            devices = _named(node.devices, (*unfit, *suspect))
        else:
            devices, unsafe = _counted(node, report, unfit, suspect)
    health, code = _of_node(node, report, unfit, suspect, silent)
    if unsafe and health != Health.Unfit:
        code = next((f.code for f in unfit if f.code), code)
    return replace(
        node, devices=devices, unsafe=unsafe, health=health, code=code, agent="silent" if silent else "heard"
    )


def silent_note(silent: Iterable[str], silent_s: float = SILENT_S) -> tuple[str, ...]:
    """A note on the nodes whose agents are silent; none where all speak."""
    names = sorted(silent)
    if not names:
        return ()
    some = ", ".join(names[:_SAMPLES]) + (f" and {len(names) - _SAMPLES:,} more" if len(names) > _SAMPLES else "")
    agents = counted(len(names), "agent has", "agents have")
    return (
        f"{agents} said nothing for more than {silent_s / 60:g} min ({some}): what was found unfit there still counts, "
        "all else does as if there were no agent",
    )


# ---- devices


def _finding(device: LedgerDevice, plugins: Iterable[LedgerPlugin]) -> Finding:
    index, health = -1 if device.index is None else device.index, _state(device.state)
    offered = _offered(device, plugins) if health == Health.Unfit else ()
    return Finding(device.uuid or "", pci_address(_full(device.pci or "")), index, health, device.code or "", offered)


def _offered(device: LedgerDevice, plugins: Iterable[LedgerPlugin]) -> tuple[str, ...]:
    """Resources of which the device, a partition or a replica of it (`UUID::1`) is a healthy unit for its plugin."""
    ids = {one for one in (device.uuid, *(p.uuid for p in device.partitions or ())) if one}
    return tuple(
        plugin.resource
        for plugin in plugins
        if plugin.resource
        and any(o.healthy is not False and (o.id or "").partition("::")[0] in ids for o in plugin.devices or ())
    )


def _full(pci: str) -> str:
    """`65:00.0` is of domain 0; the kernel spells no function."""
    pci = f"0000:{pci}" if pci.count(":") == 1 else pci
    return pci if "." in pci or not pci else f"{pci}.0"


def _state(text: str | None) -> Health:
    return _STATES.get(text or Health.Unknown.name, Health.Unknown)


def _named(devices: tuple[Device, ...], findings: tuple[Finding, ...]) -> tuple[Device, ...]:
    """Devices that have names: each by its UUID, else by its PCI address, else by its index."""
    by_uuid = {f.uuid: f for f in findings if f.uuid}
    by_pci = {f.pci: f for f in findings if f.pci != NO_PCI}
    by_index = {f.index: f for f in findings if f.index >= 0 and not f.uuid and f.pci == NO_PCI}
    found = []
    for device in devices:
        of = by_uuid.get(device.uuid) if device.uuid else None
        of = of or by_pci.get(device.pci) or by_index.get(device.index)
        if of is None and not device.uuid and device.pci == NO_PCI:  # only its place is known
            of = next((f for f in findings if f.index == device.index), None)
        found.append(_as_found(device, of) if of is not None else device)
    return tuple(found)


def _as_found(device: Device, of: Finding) -> Device:
    """Unfit stays unfit, whoever said so."""
    health = Health.Unfit if device.health == Health.Unfit else of.health
    return replace(device, health=health, code=of.code)


def _counted(
    node: Node, report: Report, unfit: tuple[Finding, ...], suspect: tuple[Finding, ...]
) -> tuple[tuple[Device, ...], tuple[str, ...]]:
    """Devices of which the kubelet picks; and the resources of which it may pick an unfit one.

    Which devices its plugin has withdrawn is not in a node's object: it is taken to be those that the agent found
    unfit, as far as the numbers allow.
    """
    devices = node.devices
    whole = bool(devices) and all(not d.partitions and d.replicas == 1 for d in devices)
    # What the agent sees and the plugin does not offer at all was withdrawn, too.
    not_offered = max(len(report.devices) - len(devices), 0) if devices else 0
    if len(report.devices) == len(devices):
        at = {i: f for i, f in enumerate(report.devices) if f in unfit or f in suspect}
    else:
        rest = (*suspect, *unfit[not_offered:])[: len(devices)]
        at = {len(devices) - len(rest) + i: f for i, f in enumerate(rest)}
    withdrawn = _withdrawn(node) + not_offered
    if whole:
        lost = len(devices) - get(node.allocatable, node.device_resource)
        devices = _whole(devices, at, lost)
    else:
        devices = tuple(_as_found(d, at[i]) if i in at else d for i, d in enumerate(devices))
    given_out = [name for name, _ in node.allocatable if is_accelerator(name)]
    if len(unfit) <= withdrawn:  # of this many; where the plugin says which, and it is another, it says so
        offered = {name for f in unfit for name in f.offered}
        given_out = [name for name in given_out if name in offered]
    return devices, tuple(given_out)


def _whole(devices: tuple[Device, ...], at: Mapping[int, Finding], lost: int) -> tuple[Device, ...]:
    """Devices given out whole, of which the kubelet holds `lost` for unhealthy: first those that the agent found
    unfit, then the last of the others."""
    found = [_as_found(replace(d, health=Health.Fit), at[i]) if i in at else replace(d, health=Health.Fit)
             for i, d in enumerate(devices)]  # fmt: skip
    more = lost - sum(d.health == Health.Unfit for d in found)
    for i in range(len(found) - 1, -1, -1):
        if more > 0 and found[i].health != Health.Unfit:
            found[i] = replace(found[i], health=Health.Unfit)
            more -= 1
    return tuple(found)


def _withdrawn(node: Node) -> int:
    """How many devices the plugin has withdrawn, from what `capacity` has and `allocatable` lacks. Which partitions a
    device had is not known: where some are withdrawn, it is taken for all that are to be."""
    lacks = {n: c - get(node.allocatable, n) for n, c in node.capacity if is_accelerator(n)}
    lacks = {name: number for name, number in lacks.items() if number > 0}
    if not lacks:
        return 0
    if any("mig-" in name for name in lacks) or any(d.partitions for d in node.devices):
        return 2**31
    replicas = max((d.replicas for d in node.devices), default=1)
    return sum(number // replicas for number in lacks.values())


# ---- the node


def _of_node(
    node: Node, report: Report, unfit: tuple[Finding, ...], suspect: tuple[Finding, ...], silent: bool
) -> tuple[Health, str]:
    """State and code of the node as a whole. A node is neither unfit nor suspect because one of its devices is unfit:
    where the agent says no more of the node than of that device, the device it is."""
    of_devices = {f.code for f in unfit}
    says_more = not unfit or (report.code != "" and report.code not in of_devices)
    first = next((f.code for f in unfit if f.code), "")
    if report.health == Health.Unfit and (says_more or len(unfit) == len(report.devices)):
        return Health.Unfit, report.code or first
    if node.health == Health.Unfit:
        return Health.Unfit, first or report.code
    own = report.health == Health.Suspect and says_more and not silent
    if own or suspect:
        return Health.Suspect, report.code if own else next((f.code for f in suspect if f.code), "")
    return node.health, first
