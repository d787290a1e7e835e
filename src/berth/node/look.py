"""One look at the machine: every collector, each with its limit of time, put together.

A look takes as long as its slowest collector, and never longer than the sum of the limits; what has not answered by
then is named as not seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from berth.diagnosis.ledger import is_gpu
from berth.evidence.fact import NO_PCI, Fact, Origin, Pci
from berth.evidence.facts import Facts
from berth.evidence.formats.boundary_facts import Given, Holder, KubeletOffers
from berth.evidence.formats.cluster_facts import Advertised
from berth.evidence.formats.kubelet_files import Checkpoint
from berth.evidence.formats.machine_facts import PciSeen, ProcGpu
from berth.evidence.formats.smi_facts import DeviceSeen
from berth.evidence.read import read
from berth.node import containers, driver_files, kubelet, pci_bus, plugins
from berth.node.bounded import Bounded
from berth.node.driver_files import minors
from berth.node.kernel_log import KernelLog, boot_id, boot_time_s
from berth.node.nvml import WHAT as NVML
from berth.node.nvml import Nvml
from berth.node.places import Places
from berth.node.plugins import Served
from berth.node.seen import NotSeen, Sight, parted
from berth.node.texts import Texts

FILES_S = 5.0
NVML_S = 15.0  # waking up eight devices takes seconds
LOG_S = 10.0
CONTAINERS_S = 10.0


class Looking(Struct, frozen=True):
    """How a look is taken."""

    socket_s: float = plugins.TIMEOUT_S
    lists_plugins: bool = False
    sees_containers: bool = True
    log_window_s: float = 3600.0  # older sentences of the kernel are not looked at again
    operands: tuple[str, ...] = ("kube-system", "gpu-operator", "nvidia-gpu-operator", "nvidia-device-plugin")


class Looked(Struct, frozen=True):
    """What a look found."""

    node: str
    at_s: float
    boot_id: str
    facts: Facts
    not_seen: tuple[NotSeen, ...]
    plugins: tuple[Served, ...] = ()
    has_nvml: bool = False
    took_s: Mapping[str, float] = {}

    @property
    def devices(self) -> list[DeviceSeen]:
        return [one for one in self.facts.of(DeviceSeen) if one.form == "nvml"]

    @property
    def addresses(self) -> dict[Pci, str]:
        """GPUs that anything lists, with the UUID where one is known."""
        found: dict[Pci, str] = {one.pci: "" for one in self.facts.of(PciSeen) if one.is_gpu}
        found.update({one.pci: one.uuid for one in self.facts.of(ProcGpu) if one.pci != NO_PCI and "?" not in one.uuid})
        found.update({one.pci: one.uuid for one in self.devices if one.pci != NO_PCI})
        return found


class Machine:
    """The machine that this process runs on, looked at again and again."""

    def __init__(self, places: Places, node: str = "", looking: Looking | None = None, nvml: Any = None) -> None:
        self.places = places
        self.node = node
        self.looking = looking or Looking()
        self.log = KernelLog(places.dev / "kmsg", node, lambda: boot_time_s(places))
        self._nvml = Nvml(places, node, nvml)
        self._texts = Texts(places, node)
        self._bounded = Bounded()
        self._is_first = True

    def look(self, beside: Iterable[Fact] = ()) -> Looked:
        """`beside` are facts from elsewhere: the node's own object. Blocks; call it in a thread."""
        places, node, looking = self.places, self.node, self.looking
        now_s = time.time()
        seen: list[Sight] = []

        def run(what: str, look: Callable[[], Iterable[Sight]], limit_s: float) -> None:
            seen.extend(self._bounded.run(what, look, limit_s))

        run("the PCI bus", lambda: pci_bus.look(places, node), FILES_S)
        run("the driver's files", lambda: driver_files.look(places, node), FILES_S)
        run(NVML, self._nvml.look, NVML_S)
        run("the kernel log", lambda: self._log(now_s), LOG_S)
        run("the kubelet", lambda: kubelet.look(places, node, looking.socket_s), 3 * looking.socket_s + 1)
        run("configuration files", self._texts.look, LOG_S)
        facts, pieces, not_seen = parted(seen)
        known = Facts([*facts, *beside])
        known.kinds.update(one.origin.kind for one in facts if one.origin.kind)
        read(pieces, known)
        served = self._plugins(known, not_seen)
        if looking.sees_containers:
            more = self._bounded.run("containers", lambda: self._containers(known, not_seen), CONTAINERS_S)
            found, _, missing = parted(more)
            for fact in found:
                known.add(fact)
            not_seen.extend(missing)
        self._is_first = False
        return Looked(
            node=node,
            at_s=now_s,
            boot_id=boot_id(places),
            facts=known,
            not_seen=tuple(dict.fromkeys(not_seen)),
            plugins=tuple(served),
            has_nvml=not any(one.what == NVML for one in not_seen),
            took_s=dict(self._bounded.seconds),
        )

    def close(self) -> None:
        self._nvml.close()
        self.log.close()

    def _log(self, now_s: float) -> Iterator[Sight]:
        """All of the log at the first look, then what is of late."""
        self.log.catch_up()
        if self.log.problem:
            yield NotSeen("the kernel log", self.log.problem)
        yield from self.log.since(0.0 if self._is_first else now_s - self.looking.log_window_s)

    def _plugins(self, known: Facts, not_seen: list[NotSeen]) -> list[Served]:
        found: list[Served] = []

        def look() -> Iterable[Sight]:
            asked, problem = plugins.look(self.places, self.looking.socket_s, self.looking.lists_plugins)
            if problem:
                return [NotSeen("device plugins", problem)]
            found.extend(plugins.served(asked, resources_of(known)))
            return plugins.facts_of(found, self.node)

        # Sockets are few, and each has its own limit.
        facts, _, missing = parted(self._bounded.run("device plugins", look, 10 * self.looking.socket_s))
        for fact in facts:
            known.add(fact)
        not_seen.extend(missing)
        return found

    def _containers(self, known: Facts, not_seen: Collection[NotSeen]) -> Iterator[Sight]:
        try:
            running = containers.containers(self.places)
        except OSError as error:
            yield NotSeen("containers", f"/proc: {error.strerror}")
            return
        devices = [one for one in known.of(DeviceSeen) if one.uuid]
        uuids = {one.minor: one.uuid for one in devices if one.minor is not None}
        uuids.update({one.minor: one.uuid for one in known.of(ProcGpu) if one.minor is not None})
        has_files = bool(minors(self.places.dev))
        askers = {one.of_pod for one in known.of(Given) if is_device(one.resource)}
        knows_given = not any(one.what == "what the kubelet has given to pods" for one in not_seen)
        unreadable = 0
        for container in running:
            found = containers.reach(self.places, container)
            unreadable += not found.is_readable
            namespace = container.pod.partition("/")[0]
            has_asked = container.pod in askers if knows_given and container.pod else None
            is_operand = namespace in self.looking.operands
            seen = containers.visible(found, uuids, has_files, None if is_operand else has_asked, self.node)
            if seen is not None and not (is_operand and not has_asked):
                yield seen
        if unreadable:
            yield NotSeen("what containers reach", f"{unreadable} of {len(running)} could not be looked into")
        yield from _holders(self.places, devices, containers.by_pid(running), self.node)


def is_device(resource: str) -> bool:
    """A resource of GPUs; a driver of claims whose name says so."""
    return is_gpu(resource) or resource.startswith("gpu.")


def resources_of(known: Facts) -> dict[str, set[str]]:
    """Resources that the kubelet or the node knows, with their devices."""
    found: dict[str, set[str]] = {}
    for advertised in known.of(Advertised):
        found.setdefault(advertised.resource, set())
    for offers in known.of(KubeletOffers):
        found.setdefault(offers.resource, set()).update(offers.ids)
    for given in known.of(Given):
        found.setdefault(given.resource, set()).update(given.ids)
    for checkpoint in known.of(Checkpoint):
        for resource, ids in checkpoint.registered.items():
            found.setdefault(resource, set()).update(ids)
    return found


def _holders(
    places: Places, devices: Iterable[DeviceSeen], by_pid: Mapping[int, containers.Container], node: str
) -> Iterator[Holder]:
    for device in devices:
        for process in device.processes or ():
            container = by_pid.get(process.pid)
            pod = (container.pod or container.pod_uid) if container else ""
            part = next((one.uuid for one in device.mig if one.uuid and one.gi == process.gi), "")
            name = process.name or _command(places, process.pid)
            words = f"{part or device.uuid} is held by process {process.pid} {name}"
            yield Holder(
                origin=Origin("NVML", "nvidia-smi", words, node=node),
                device=part or device.uuid,
                pid=process.pid,
                of_pod=pod,
                container=container.name if container else "",
                process=name,
                memory_bytes=process.memory_bytes or 0,
            )


def _command(places: Places, pid: int) -> str:
    try:
        return (places.proc / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return ""
