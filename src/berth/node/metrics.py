"""What the agent shows to Prometheus. Names and labels are public: docs/agent.md lists them.

A device is joined with the pod that was given it and that pod's queue in one series (berth_device_given), so that any
series of a device can be told by who has it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.process_collector import ProcessCollector

from berth import __version__
from berth.evidence.fact import pci_words
from berth.evidence.formats.boundary_facts import Given, Holder
from berth.node.keeper import Report
from berth.node.look import is_device
from berth.node.policy import State

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
disable_created_metrics()  # type: ignore[no-untyped-call]

_BOUNDARIES = ("host", "plugin", "capacity", "allocatable", "given", "visible")
_READINGS = (
    ("temperature_c", "berth_device_temperature_celsius", "Temperature of the GPU"),
    ("memory_temperature_c", "berth_device_memory_temperature_celsius", "Temperature of the GPU's memory"),
    ("power_draw_w", "berth_device_power_watts", "Power that the GPU draws"),
    ("gpu_percent", "berth_device_busy_percent", "Share of time in which a kernel ran, of the last sample"),
    ("pcie_gen", "berth_device_pcie_generation", "PCI Express generation of the link as it is now"),
    ("pcie_width", "berth_device_pcie_width", "Lanes of the link as it is now"),
    ("remapped_uncorrectable", "berth_device_remapped_rows", "Rows remapped for uncorrectable errors"),
)


class Measures:
    """The last report, and what was counted. Safe to ask from any thread."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._lock = threading.Lock()
        self._report: Report | None = None
        self._queues: Mapping[str, str] = {}
        self._writes: Mapping[tuple[str, str], int] = {}
        self._risen: Mapping[tuple[str, str], int] = {}
        self._looks = 0
        self._registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._registry)

    def looked(
        self, report: Report, queues: Mapping[str, str], writes: Mapping[tuple[str, str], int],
        risen: Mapping[tuple[str, str], int],
    ) -> None:  # fmt: skip
        with self._lock:
            self._report, self._queues = report, queues
            self._writes, self._risen = dict(writes), dict(risen)
            self._looks += 1

    @property
    def last_look_s(self) -> float:
        """Unix time; 0.0 before the first."""
        report = self._report
        return report.looked.at_s if report is not None else 0.0

    def exposition(self) -> bytes:
        """Everything in Prometheus' text format."""
        with self._lock:
            report, queues, writes, risen, looks = (
                self._report, self._queues, self._writes, self._risen, self._looks,
            )  # fmt: skip
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Once([*_of_agent(self._node, looks, writes), *_of_report(report, queues, risen)]))
        return generate_latest(self._registry) + generate_latest(registry)


class _Once:
    def __init__(self, found: list[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        yield from self._found


def _of_agent(node: str, looks: int, writes: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
    yield InfoMetricFamily("berth_agent", "Version of the agent, and its node", {"version": __version__, "node": node})
    done = CounterMetricFamily("berth_agent_looks", "Looks at the machine")
    done.add_metric([], looks)
    yield done
    text = "Requests by what they do and how they ended"
    told = CounterMetricFamily("berth_agent_requests", text, labels=["what", "result"])
    for (what, result), count in sorted(writes.items()):
        told.add_metric([what, result], count)
    yield told


def _of_report(
    report: Report | None, queues: Mapping[str, str], risen: Mapping[tuple[str, str], int]
) -> Iterator[Metric]:
    if report is None:
        return
    node = report.looked.node
    last = GaugeMetricFamily("berth_agent_last_look_timestamp_seconds", "When the machine was looked at last")
    last.add_metric([], report.looked.at_s)
    yield last
    took = GaugeMetricFamily("berth_agent_look_seconds", "How long each part of the last look took", labels=["what"])
    for what, seconds in sorted(report.looked.took_s.items()):
        took.add_metric([what], seconds)
    yield took
    text = "1 for what the last look could not see"
    unseen = GaugeMetricFamily("berth_agent_not_seen", text, labels=["node", "what"])
    for what in sorted({one.what for one in report.looked.not_seen}):
        unseen.add_metric([node, what], 1)
    yield unseen
    yield _states("berth_node_state", "1 for the state of the node", ["node"], [([node], report.status.state)])
    yield from _of_devices(report, node, queues, risen)
    yield from _of_ledger(report, node)


def _states(name: str, text: str, labels: list[str], rows: Iterable[tuple[list[str], str]]) -> GaugeMetricFamily:
    """One series for each state, of which one is 1, so that a change of state ends no series."""
    family = GaugeMetricFamily(name, text, labels=[*labels, "state"])
    for values, state in rows:
        for known in State:
            family.add_metric([*values, known.value], float(known.value == state))
    return family


def _of_devices(
    report: Report, node: str, queues: Mapping[str, str], risen: Mapping[tuple[str, str], int]
) -> Iterator[Metric]:
    said = report.status.devices
    name_of = {one.pci: one.uuid or one.pci for one in said}
    labels = ["node", "device", "pci", "index", "product"]
    rows = []
    for one in said:
        index = "" if one.index is None else str(one.index)
        rows.append(([node, name_of[one.pci], one.pci, index, one.name], one.state))
    yield _states("berth_device_state", "1 for the state of the device", labels, rows)
    text = "1 for a fault that lasts; device is empty where it is the node's"
    fault = GaugeMetricFamily("berth_fault", text, labels=["node", "device", "code"])
    for lasting in report.status.faults:
        if not lasting.cleared:
            fault.add_metric([node, name_of.get(lasting.target, ""), lasting.code], 1)
    yield fault
    total = GaugeMetricFamily("berth_device_memory_total_bytes", "Memory of the device", labels=["node", "device"])
    used = GaugeMetricFamily("berth_device_memory_used_bytes", "Memory that is in use", labels=["node", "device"])
    for device in said:
        if device.memory_bytes:
            total.add_metric([node, name_of[device.pci]], device.memory_bytes)
            used.add_metric([node, name_of[device.pci]], device.memory_used_bytes)
    yield total
    yield used
    for field, name, text in _READINGS:
        family = GaugeMetricFamily(name, text, labels=["node", "device"])
        for seen in report.looked.devices:
            if seen.uuid and (value := getattr(seen, field)) is not None:
                family.add_metric([node, seen.uuid], float(value))
        yield family
    errors = CounterMetricFamily(
        "berth_device_ecc_errors", "ECC errors since the agent runs; a reset of the device does not set it back",
        labels=["node", "device", "kind"],
    )  # fmt: skip
    for seen in report.looked.devices:
        for kind in ("corrected", "uncorrected"):
            if seen.uuid and getattr(seen, f"{kind}_volatile") is not None:
                count = risen.get((pci_words(seen.pci), f"{kind}_volatile"), 0)
                errors.add_metric([node, seen.uuid, kind], count)
    yield errors
    yield from _of_pods(report, node, queues)


def _of_pods(report: Report, node: str, queues: Mapping[str, str]) -> Iterator[Metric]:
    who = ["namespace", "pod", "container", "queue"]
    given = GaugeMetricFamily(
        "berth_device_given", "1 for a device that the kubelet has given to a container",
        labels=["node", "device", "resource", *who],
    )  # fmt: skip
    for one in report.looked.facts.of(Given):
        if is_device(one.resource):
            for id in one.ids:
                given.add_metric([node, id, one.resource, *_who(one.of_pod, one.container, queues)], 1)
    yield given
    held = GaugeMetricFamily(
        "berth_device_memory_bytes", "Memory of a device by who holds it; pod is empty for the machine's own processes",
        labels=["node", "device", *who],
    )  # fmt: skip
    sums: dict[tuple[str, ...], int] = {}
    for holder in report.looked.facts.of(Holder):
        key = (node, holder.device, *_who(holder.of_pod, holder.container, queues))
        sums[key] = sums.get(key, 0) + holder.memory_bytes
    for values, size in sorted(sums.items()):
        held.add_metric(list(values), size)
    yield held


def _who(pod: str, container: str, queues: Mapping[str, str]) -> tuple[str, str, str, str]:
    namespace, slash, name = pod.partition("/")
    return (namespace if slash else "", name if slash else pod, container, queues.get(pod, namespace if slash else ""))


def _of_ledger(report: Report, node: str) -> Iterator[Metric]:
    units = GaugeMetricFamily(
        "berth_ledger_units", "Units of a resource at each boundary; one that was not seen has no series",
        labels=["node", "resource", "boundary"],
    )  # fmt: skip
    parted = GaugeMetricFamily(
        "berth_ledger_parted", "1 where the boundaries do not say the same", labels=["node", "resource", "at"]
    )
    for one in report.status.boundaries:
        for boundary in _BOUNDARIES:
            if (value := getattr(one, boundary)) is not None:
                units.add_metric([node, one.resource, boundary], value)
        if one.parts_at:
            parted.add_metric([node, one.resource, one.parts_at.lower()], 1)
    yield units
    yield parted
    bypass = GaugeMetricFamily(
        "berth_ledger_bypasses", "Pods that reach devices without having been given any", labels=["node"]
    )
    bypass.add_metric([node], len({one.pod for one in report.status.visible if one.asked_for_none}))
    yield bypass
