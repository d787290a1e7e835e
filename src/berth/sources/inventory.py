"""What a cluster's objects say, sorted by kind and reduced to what is needed until all have been seen.

Pods become records at once: of 100,000 pods no object, spec or list of labels is kept twice.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

from msgspec import Struct

from berth.base.errors import UNREADABLE, BadInput
from berth.base.lately import Lately, itself
from berth.base.units import counted
from berth.dialects.membership import OwnerRef
from berth.kube import wire, wire_budgets, wire_devices, wire_ledger, wire_queues, wire_state, wire_volumes
from berth.kube.wire_reservations import GPUReservation
from berth.model.budget import Budget
from berth.model.paying import Payers
from berth.model.workload import PodClass
from berth.sources.budgets import budget_of
from berth.sources.device_classes import DeviceClasses
from berth.sources.dump import Found
from berth.sources.pod_class import PodReader, PodReading
from berth.sources.volumes.offers import Offers
from berth.sources.volumes.storage import Storage

T = TypeVar("T")
_Named = wire.Node | wire.Pod | wire_queues.GPUQueue | wire_queues.GPUClass | GPUReservation
Pairs = tuple[tuple[str, str], ...]
Key = tuple[str, str]  # (namespace, name)

ENDED = ("Succeeded", "Failed")
NEVER = "Never"  # a preemptionPolicy
GRACE_S = 30.0  # where a pod says nothing, as the API server fills it in
# Annotations that network plugins write on every pod, each with other addresses.
_PASSED_OVER = ("k8s.v1.cni.cncf.io/", "cni.projectcalico.org/", "k8s.ovn.org/", "kubectl.kubernetes.io/",
                "openshift.io/", "kubernetes.io/config.", "ovn.kubernetes.io/")  # fmt: skip
NOTHING_READ = PodReading(PodClass())
_SAMPLES = 3  # names in a note; the rest is a number


class PodRecord(Struct, frozen=True, gc=False):
    """A pod. `claims` are the PersistentVolumeClaims that it mounts, `made_for_it` those of them that go with it.

    Of a pod that has ended only what says where it belonged: its gang needs it no more.
    """

    namespace: str
    name: str
    uid: str
    reading: PodReading
    node: str = ""
    labels: Pairs = ()
    annotations: Pairs = ()
    owners: tuple[OwnerRef, ...] = ()
    scheduling_group: str = ""
    scheduler: str = ""
    priority: int | None = None
    priority_class: str = ""
    gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    spec: wire.PodSpec | None = None  # kept only where volumes have to be looked up first
    created_s: float = 0.0
    started_s: float = 0.0
    is_ending: bool = False
    has_ended: bool = False
    ends_s: float = 0.0  # by when, where it is being deleted
    grace_s: float = GRACE_S
    preempts: bool = True
    nominated: str = ""  # the node that it has been promised
    made_for_it: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        return not (self.node or self.is_ending or self.has_ended)

    @property
    def key(self) -> Key:
        return self.namespace, self.name


class Inventory:
    """Objects by kind. `add` takes them in any order; where one is there twice, the first is kept.

    `called` is where they are from, for notes. `listed` are kinds that were looked for: where none is there, none is.
    """

    def __init__(self, called: str = "the dump", listed: Container[str] = ()) -> None:
        self.called = called
        self.listed = listed
        self.nodes: dict[str, wire.Node] = {}
        self.pods: dict[Key, PodRecord] = {}
        self.storage = Storage()
        self.offers = Offers(self.storage)
        self.priorities: dict[str, int] = {}
        self.default_priority = 0
        self.never_preempt: set[str] = set()  # priority classes whose preemptionPolicy is Never
        self.budgets: dict[Key, Budget] = {}
        self.slices: list[wire_devices.ResourceSlice] = []
        self.claims: list[wire_devices.ResourceClaim] = []
        self.device_classes = DeviceClasses()
        self.queues: dict[str, wire_queues.GPUQueue] = {}
        self.reservations: dict[str, GPUReservation] = {}
        self.gpu_classes: dict[str, Mapping[str, Any]] = {}  # rules, by the object's name
        self.ledgers: dict[str, wire_ledger.NodeLedger] = {}  # by node
        self.topologies: list[tuple[str, wire_queues.Topology]] = []  # (API group, topology)
        self.state: wire_state.BerthState | None = None  # where a scheduler gave the dump
        self.plain: list[Mapping[str, Any]] = []
        self.reader = PodReader()
        self.seen_pods = 0
        self._shared: Lately[Any, Any] = Lately(itself)
        self._classes: dict[str, wire_queues.GPUClass] = {}
        self._repeated: list[str] = []
        self._conflicting: list[str] = []

    @property
    def priority_values(self) -> dict[str, int]:
        """Values of priority classes by name, "" for what names none."""
        return {**self.priorities, "": self.default_priority}

    def payers(self) -> Payers:
        """Which queue pays for whom, by the queues that are known now."""
        return Payers({name: (q.spec.namespaces if q.spec else None) or () for name, q in self.queues.items()})

    def share(self, thing: T) -> T:
        """The one object for all that equal this one."""
        found: T = self._shared(thing)
        return found

    def add(self, found: Found) -> None:
        """Raises BadInput for an object without a name."""
        value = found.value
        if isinstance(value, wire.Pod):
            self._pod(value, found)
        elif isinstance(value, wire.Node):
            name = _name(value.metadata, found)
            if self._is_first(self.nodes, name, value, f"node {name}"):
                self.nodes[name] = value
        elif isinstance(value, wire_volumes.PersistentVolume):
            if _name(value.metadata, found) not in self.storage.volumes:
                self.storage.put_volume(value)
        elif isinstance(value, wire_volumes.PersistentVolumeClaim):
            if (_namespace(value.metadata), _name(value.metadata, found)) not in self.storage.claims:
                self.storage.put_claim(value)
        elif isinstance(value, wire_volumes.StorageClass):
            if _name(value.metadata, found) not in self.storage.classes:
                self.storage.put_class(value)
        elif isinstance(value, wire_volumes.CsiNode):
            self.storage.put_limits(value)
        elif isinstance(value, wire_volumes.CsiDriver):
            self.storage.put_driver(value)
        elif isinstance(value, wire_volumes.CsiStorageCapacity):
            self.storage.put_capacity(value)
        elif isinstance(value, wire.PriorityClass):
            self.add_priority(_name(value.metadata, found), value)
        elif isinstance(value, wire_budgets.PodDisruptionBudget):
            key = _namespace(value.metadata), _name(value.metadata, found)
            if budget := budget_of(value):
                self.budgets.setdefault(key, budget)
        elif isinstance(value, wire_devices.ResourceSlice):
            self.slices.append(value)
            self.device_classes.put_slice(value)
        elif isinstance(value, wire_devices.DeviceClass):
            self.device_classes.put_class(value)
        elif isinstance(value, wire_devices.ResourceClaim):
            self.claims.append(value)
        elif isinstance(value, wire_queues.GPUQueue):
            name = _name(value.metadata, found)
            if self._is_first(self.queues, name, value, f"GPUQueue {name}"):
                self.queues[name] = value
        elif isinstance(value, GPUReservation):
            name = _name(value.metadata, found)
            if self._is_first(self.reservations, name, value, f"GPUReservation {name}"):
                self.reservations[name] = value
        elif isinstance(value, wire_queues.GPUClass):
            name = _name(value.metadata, found)
            if self._is_first(self._classes, name, value, f"GPUClass {name}"):
                self._classes[name] = value
                self.gpu_classes[name] = value.spec or {}
        elif isinstance(value, wire_ledger.NodeLedger):
            self.ledgers.setdefault(_name(value.metadata, found), value)
        elif isinstance(value, wire_queues.Topology):
            self.topologies.append((found.api_version.rpartition("/")[0], value))
        elif isinstance(value, wire_state.BerthState):
            self.state = self.state or value
        elif isinstance(value, Mapping):
            self.plain.append(value)

    def notes(self) -> tuple[str, ...]:
        """What is doubtful about the objects as a whole."""
        told = []
        if not self.nodes:
            told.append(f"{self.called} holds no nodes: nothing can be placed")
        if not self.seen_pods and "Pod" not in self.listed:
            told.append(f"{self.called} holds no pods: every node looks empty")
        if self._repeated:
            number = counted(len(self._repeated), "object is", "objects are")
            told.append(f"{number} in {self.called} more than once, the first of each was read: {some(self._repeated)}")
        if self._conflicting:
            names = some(self._conflicting)
            told.append(f"different objects have the same name, the first of each was read: {names}")
        return tuple(told)

    # ---- kinds

    def add_priority(self, name: str, value: wire.PriorityClass) -> None:
        self.priorities.setdefault(name, value.value or 0)
        if value.global_default:
            self.default_priority = value.value or 0
        if value.preemption_policy == NEVER:
            self.never_preempt.add(name)

    def _pod(self, pod: wire.Pod, found: Found) -> None:
        self.seen_pods += 1
        meta, spec, status = pod.metadata or wire.NO_META, pod.spec, pod.status or wire.PodStatus()
        if not meta.name:
            raise _nameless(found)
        key = self.share(meta.namespace or "default"), meta.name
        if spec is None or not spec.containers:
            where = f"{found.file}: pod {key[0]}/{key[1]}: spec.containers"
            raise BadInput(where, "missing: a pod has one container at least.", "Dump again.", UNREADABLE)
        if self._is_first(self.pods, key, pod, "pod"):
            self.pods[key] = self.record(key, meta, spec, status)

    def record(self, key: Key, meta: wire.ObjectMeta, spec: wire.PodSpec, status: wire.PodStatus) -> PodRecord:
        has_ended = status.phase in ENDED
        claims, made_for_it = ((), ()) if has_ended else _claims(spec.volumes, meta.name or "")
        return PodRecord(
            key[0],
            key[1],
            meta.uid or "",
            NOTHING_READ if has_ended else self.reader.read(spec, meta.labels, meta.annotations),
            self.share(spec.node_name) if spec.node_name else "",
            self._pairs(meta.labels),
            self._annotations(meta.annotations),
            self._owners(meta.owner_references),
            (spec.scheduling_group.pod_group_name or "") if spec.scheduling_group else "",
            self.share(spec.scheduler_name or "default-scheduler"),
            spec.priority,
            self.share(spec.priority_class_name or ""),
            tuple(g.name or "" for g in spec.scheduling_gates or ()),
            claims,
            spec if claims and not spec.node_name else None,
            seconds(meta.creation_timestamp),
            seconds(status.start_time),
            bool(meta.deletion_timestamp),
            has_ended,
            seconds(meta.deletion_timestamp),
            GRACE_S if spec.termination_grace_period_seconds is None else spec.termination_grace_period_seconds,
            spec.preemption_policy != NEVER,
            self.share(status.nominated_node_name or ""),
            made_for_it,
        )

    def _pairs(self, labels: wire.Labels) -> Pairs:
        if not labels:
            return ()
        share = self.share
        return share(tuple(sorted((share(k), share(v or "")) for k, v in labels.items())))

    def _annotations(self, annotations: wire.Labels) -> Pairs:
        if not annotations:
            return ()
        kept = [(k, v or "") for k, v in annotations.items() if not k.startswith(_PASSED_OVER)]
        return self.share(tuple(sorted(kept))) if kept else ()

    def _owners(self, owners: tuple[wire.OwnerReference, ...] | None) -> tuple[OwnerRef, ...]:
        if not owners:
            return ()
        return self.share(
            tuple(
                OwnerRef(o.api_version or "", o.kind or "", o.name or "", o.uid or "", bool(o.controller))
                for o in owners
            )
        )

    def _is_first(self, known: Mapping[Any, Any], key: Any, thing: _Named, what: str) -> bool:
        before = known.get(key)
        if before is None:
            return True
        uid = before.uid if isinstance(before, PodRecord) else (before.metadata or wire.NO_META).uid
        same = not uid or not thing.metadata or uid == thing.metadata.uid
        name = f"{what} {key[0]}/{key[1]}" if isinstance(key, tuple) else what
        (self._repeated if same else self._conflicting).append(name)
        return False


def some(names: Iterable[str]) -> str:
    """The first names and how many more there are."""
    listed = list(names)
    more = len(listed) - _SAMPLES
    return ", ".join(listed[:_SAMPLES]) + (f" and {more:,} more" if more > 0 else "")


@lru_cache(maxsize=4096)
def seconds(text: str | None) -> float:
    """RFC 3339 as seconds since the epoch; 0.0 where it is absent or no time."""
    if not text:
        return 0.0
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _claims(volumes: tuple[wire.Volume, ...] | None, pod: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Claims by name, in the order of the volumes; and those of them that are made for the pod."""
    found: list[str] = []
    made: list[str] = []
    for volume in volumes or ():
        if volume.persistent_volume_claim:
            found.append(volume.persistent_volume_claim.claim_name or "")
        elif volume.ephemeral is not None:
            found.append(f"{pod}-{volume.name}")  # the name that Kubernetes gives the claim
            made.append(found[-1])
    return tuple(found), tuple(made)


def _name(metadata: wire.ObjectMeta | None, found: Found) -> str:
    if metadata is None or not metadata.name:
        raise _nameless(found)
    return metadata.name


def _nameless(found: Found) -> BadInput:
    where = f"{found.file}: object {found.number}, a {found.kind}: metadata.name"
    return BadInput(where, "missing: every object has a name.", "Dump again with kubectl.", UNREADABLE)


def _namespace(metadata: wire.ObjectMeta | None) -> str:
    return (metadata.namespace if metadata else None) or "default"
