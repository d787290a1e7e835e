"""What a scheduler shows to Prometheus: what it has counted, and the moment of a scrape.

Names and labels are public: docs/operate.md lists them. Times are seconds, amounts GPUs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.process_collector import ProcessCollector

from berth import __version__
from berth.model.cluster import Health, Node
from berth.model.queue import ANY_CLASS
from berth.model.reasons import Verdict
from berth.model.resources import get
from berth.model.snapshot import Snapshot
from berth.scheduling.lines import QueueLine, lines_of
from berth.scheduling.plan import Plan

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
CYCLE_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
BIND_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)

disable_created_metrics()  # a second series for each histogram, which says when it was made


class Measures:
    """What is counted as it happens. One for a process; safe to tell from any thread."""

    def __init__(self) -> None:
        self.step_seconds: Counter[str] = Counter()
        self.binds: Counter[str] = Counter()
        self.cycles = 0
        self.last_plan: Plan | None = None
        self.last_cycle_s = 0.0
        self.registry = CollectorRegistry(auto_describe=False)
        self._lock = threading.Lock()
        self._cycle_s = Histogram(
            "berth_cycle_seconds", "Length of one cycle of decisions", buckets=CYCLE_BUCKETS, registry=self.registry
        )
        self._bind_s = Histogram(
            "berth_bind_seconds", "From a decision to the API server's answer to its bind", buckets=BIND_BUCKETS,
            registry=self.registry,
        )  # fmt: skip
        ProcessCollector(registry=self.registry)

    def planned(self, plan: Plan, seconds: float | None = None) -> None:
        """A cycle has ended. `seconds` is how long it took, the sum of its steps where it is not told."""
        took = sum(plan.seconds.values()) if seconds is None else seconds
        with self._lock:
            self.cycles += 1
            self.step_seconds.update(plan.seconds)  # type: ignore[arg-type]
            self.last_plan, self.last_cycle_s = plan, took
        self._cycle_s.observe(took)

    def bound(self, result: str, seconds: float | None = None) -> None:
        """A bind has been answered, or given up. `result` is a word; `seconds` since it was decided."""
        with self._lock:
            self.binds[result] += 1
        if seconds is not None:
            self._bind_s.observe(seconds)


@dataclass(frozen=True)
class Watch:
    """One kind that is followed."""

    kind: str
    objects: int
    age_s: float  # since the API server last said anything
    relists: int
    is_synced: bool


@dataclass(frozen=True)
class Moment:
    """What a scrape finds."""

    is_synced: bool = False
    is_leader: bool = False
    epoch: int = 0
    pending_binds: int = 0
    assumed_pods: int = 0
    loop_lag_s: float = 0.0
    requests: Mapping[tuple[str, int], int] = field(default_factory=dict)  # (verb, code): how many
    told: Mapping[str, int] = field(default_factory=dict)  # what was written for people
    watches: tuple[Watch, ...] = ()
    verdicts: Iterable[Verdict] = ()
    snapshot: Snapshot | None = None  # None while nothing has been seen yet


def exposition(measures: Measures, moment: Moment) -> bytes:
    """Everything in Prometheus' text format. Takes milliseconds for each 10,000 pods."""
    at_once = CollectorRegistry(auto_describe=False)
    at_once.register(_Once((*_counted(measures), *_of_moment(moment))))
    return generate_latest(measures.registry) + generate_latest(at_once)


class _Once:
    """A collector of what is there already."""

    def __init__(self, found: tuple[Metric, ...]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        yield from self._found


def _counted(measures: Measures) -> Iterator[Metric]:
    yield InfoMetricFamily("berth_build", "Version of Berth", {"version": __version__})
    steps = CounterMetricFamily("berth_step_seconds", "Time spent in each step of all cycles", labels=["step"])
    for step, seconds in sorted(measures.step_seconds.items()):
        steps.add_metric([step], seconds)
    yield steps
    binds = CounterMetricFamily("berth_binds", "Binds by what became of them", labels=["result"])
    for result, number in sorted(measures.binds.items()):
        binds.add_metric([result], number)
    yield binds


def _of_moment(moment: Moment) -> Iterator[Metric]:
    yield _gauge("berth_leader", "1 where this replica decides", float(moment.is_leader))
    yield _gauge("berth_epoch", "Changes of leader so far, as this replica knows", moment.epoch)
    yield _gauge("berth_synced", "1 once every kind has been listed", float(moment.is_synced))
    yield _gauge("berth_binds_pending", "Binds that are decided and not answered yet", moment.pending_binds)
    yield _gauge("berth_assumed_pods", "Pods whose bind the watch has not shown yet", moment.assumed_pods)
    yield _gauge("berth_loop_lag_seconds", "Longest delay of the event loop in the last minute", moment.loop_lag_s)
    requests = CounterMetricFamily(
        "berth_api_requests", "Requests to the API server; code 0 is no answer", labels=["verb", "code"]
    )
    for (verb, code), number in sorted(moment.requests.items()):
        requests.add_metric([verb, str(code)], number)
    yield requests
    told = CounterMetricFamily("berth_told", "What was written for people, dropped or refused", labels=["what"])
    for what, number in sorted(moment.told.items()):
        told.add_metric([what], number)
    yield told
    yield from _watches(moment.watches)
    yield from _waiting(moment.verdicts)
    if moment.snapshot is not None:
        yield from _gpus(moment.snapshot)
        yield from _health(moment.snapshot.nodes)
        yield from _queues(lines_of(moment.snapshot)[0])


def _watches(watches: Iterable[Watch]) -> Iterator[Metric]:
    objects = GaugeMetricFamily("berth_watch_objects", "Objects of a kind that are known", labels=["kind"])
    age = GaugeMetricFamily("berth_watch_age_seconds", "Since the API server last said anything", labels=["kind"])
    relists = CounterMetricFamily("berth_watch_relists", "Lists made anew after a gap", labels=["kind"])
    for watch in watches:
        objects.add_metric([watch.kind], watch.objects)
        age.add_metric([watch.kind], watch.age_s)
        relists.add_metric([watch.kind], watch.relists)
    yield from (objects, age, relists)


def _waiting(verdicts: Iterable[Verdict]) -> Iterator[Metric]:
    counts = Counter((v.answer.value, v.reason.name if v.reason else "") for v in verdicts)
    waiting = GaugeMetricFamily(
        "berth_waiting_workloads", "Workloads that wait, by verdict and dominant reason", labels=["verdict", "reason"]
    )
    for labels, number in sorted(counts.items()):
        waiting.add_metric(labels, number)
    yield waiting


def _gpus(snapshot: Snapshot) -> Iterator[Metric]:
    """Devices that are there and what of them is given out whole or in shares, by GPU class; as `berth nodes` counts
    them, partitions and replicas left out."""
    there: Counter[str] = Counter()
    fit: Counter[str] = Counter()
    unfit: Counter[str] = Counter()
    suspect: Counter[str] = Counter()
    allocated: Counter[str] = Counter()
    with_devices = {node.name: node for node in snapshot.nodes if node.devices}
    for node in with_devices.values():
        there[node.gpu_class] += len(node.devices)
        may_be_given = sum(d.health in (Health.Fit, Health.Suspect) for d in node.devices)
        fit[node.gpu_class] += may_be_given
        unfit[node.gpu_class] += sum(d.health == Health.Unfit for d in node.devices)
        suspect[node.gpu_class] += may_be_given if node.is_suspect else 0
        allocated[node.gpu_class] += 0
    for a in snapshot.allocations:
        on = with_devices.get(a.node)
        if on is not None and on.device_resource:
            allocated[on.gpu_class] += get(a.pod_class.requests, on.device_resource) * a.pod_class.gpu_milli
    yield _gauge("berth_nodes", "Nodes that are known", len(snapshot.nodes))
    for name, words, numbers, unit in (
        ("berth_gpus", "GPUs by class", there, 1),
        ("berth_gpus_healthy", "GPUs that may be given out, by class", fit, 1),
        ("berth_gpus_unfit", "GPUs that are given to nobody, by class", unfit, 1),
        ("berth_gpus_suspect", "GPUs on suspect nodes, which come last, by class", suspect, 1),
        ("berth_gpus_allocated", "GPUs given out whole or in shares, by class", allocated, 1000),
    ):
        family = GaugeMetricFamily(name, words, labels=["gpu_class"])
        for gpu_class, number in sorted(numbers.items()):
            family.add_metric([gpu_class], number / unit)
        yield family


def _health(nodes: Iterable[Node]) -> Iterator[Metric]:
    """Nodes whose agents found something, by what it makes of them; and who of the agents is heard."""
    found: Counter[tuple[str, str]] = Counter()
    agents: Counter[str] = Counter({"heard": 0, "silent": 0, "absent": 0})
    for node in nodes:
        agents[node.agent or "absent"] += 1
        if node.code:
            is_unfit = node.health == Health.Unfit or node.unsafe
            found["unfit" if is_unfit else "suspect" if node.is_suspect else "usable", node.code] += 1
    findings = GaugeMetricFamily(
        "berth_node_findings", "Nodes whose agents found something, by state and code", labels=["state", "code"]
    )
    for labels, number in sorted(found.items()):
        findings.add_metric(labels, number)
    heard = GaugeMetricFamily("berth_node_agents", "Nodes by whether their agent is heard", labels=["state"])
    for state, number in agents.items():
        heard.add_metric([state], number)
    yield from (findings, heard)


def _queues(queues: Iterable[QueueLine]) -> Iterator[Metric]:
    waiting = GaugeMetricFamily("berth_queue_waiting_workloads", "Workloads that wait", labels=["queue"])
    needed = GaugeMetricFamily("berth_queue_waiting_gpus", "GPUs that they need to start", labels=["queue"])
    used = GaugeMetricFamily("berth_queue_gpus_used", "GPUs held; * is all classes", labels=["queue", "gpu_class"])
    quota = GaugeMetricFamily("berth_queue_gpus_quota", "GPUs guaranteed", labels=["queue", "gpu_class"])
    limit = GaugeMetricFamily("berth_queue_gpus_limit", "GPUs never passed", labels=["queue", "gpu_class"])
    for q in queues:
        waiting.add_metric([q.name], q.waiting)
        needed.add_metric([q.name], q.waiting_milli / 1000)
        for gpu_class, milli in q.used_milli.items() or ((ANY_CLASS, 0),):
            used.add_metric([q.name, gpu_class], milli / 1000)
        for family, amounts in ((quota, q.quota), (limit, q.limit)):
            for gpu_class, gpus in amounts.items():
                family.add_metric([q.name, gpu_class], gpus)
    yield from (waiting, needed, used, quota, limit)


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, words, value=value)
