"""From a pod's spec to its class: everything about the pod that decides where it may run.

A reader keeps what it has made: pods with the same spec cost one encoding and one look-up, and share one
`PodClass` object, so that 100,000 pods of a cluster are a few hundred classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import Struct

from berth.base import quantity
from berth.base.quantity import QuantityError
from berth.kube import wire
from berth.model.resources import added
from berth.model.sharing import ANY_WAY, KINDS, SHARING_KEY
from berth.model.workload import Capability, PodClass
from berth.sources import selectors
from berth.sources.dump_refusals import unreadable_manifest
from berth.sources.requests import Problems, requests_of
from berth.sources.selectors import Labels
from berth.sources.volumes.wishes import Wishes

PREFIX = "berth.dev/"
MEMORY, COMPUTE, PRODUCT = PREFIX + "gpu-memory", PREFIX + "gpu-compute", PREFIX + "gpu-product"
PRECISION, LINK, RDMA = PREFIX + "gpu-precision", PREFIX + "gpu-link", PREFIX + "rdma"
CAPABILITY_KEYS = (MEMORY, COMPUTE, PRODUCT, PRECISION, LINK, RDMA)

# A share of a GPU by the rules of KAI (annotations) and HAMi (resources), whose accounts Berth does not keep.
SHARE_KEYS = ("gpu-fraction", "gpu-memory")
SHARE_RESOURCES = frozenset(f"nvidia.com/{name}" for name in ("gpumem", "gpumem-percentage", "gpucores"))

_COMPUTE = re.compile(r"(\d{1,3})(?:\.(\d{1,3}))?", re.ASCII)
_READ_KEYS = (*CAPABILITY_KEYS, *SHARE_KEYS, SHARING_KEY)
_NO_WISHES = (None,) * len(_READ_KEYS)
_NO_LABELS: dict[str, str | None] = {}
NO_WISH = Wishes()


class PodReading(Struct, frozen=True):
    """A pod's class, and the rules of Kubernetes that its spec breaks: a sentence each, path first.

    With problems the class is the nearest lawful one. They are in `pod_class.problems` as well.
    """

    pod_class: PodClass
    problems: tuple[str, ...] = ()


class PodReader:
    """Turns specs into classes and remembers them. Bounded: it forgets all once `most` specs were seen."""

    def __init__(self, most: int = 50_000) -> None:
        self._most = most
        self._encode = msgspec.msgpack.Encoder().encode
        self._by_spec: dict[bytes, PodReading] = {}
        self._classes: dict[PodClass, PodClass] = {}

    def __len__(self) -> int:
        return len(self._classes)

    def read(
        self,
        spec: wire.PodSpec,
        labels: Labels | None = None,
        annotations: Labels | None = None,
        volumes: Wishes = NO_WISH,
        path: str = "spec",
    ) -> PodReading:
        """The class of a pod. `volumes` is what its claims mean for it."""
        wishes = tuple(annotations.get(key) for key in _READ_KEYS) if annotations else _NO_WISHES
        parts = (
            spec.containers,
            spec.init_containers,
            spec.resources,
            spec.overhead,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.host_network,
            bool(spec.resource_claims),
            wishes,
            _labels_that_decide(spec, labels or _NO_LABELS),
            volumes,
            path,
        )
        try:
            key = self._encode(parts)
        except OverflowError:  # a number that does not fit into 64 bits
            key = repr(parts).encode()
        reading = self._by_spec.get(key)
        if reading is None:
            if len(self._by_spec) >= self._most:
                self._by_spec.clear()
                self._classes.clear()
            made = _read(spec, labels or _NO_LABELS, wishes, volumes, path)
            pod_class = self._classes.setdefault(made, made)
            reading = self._by_spec[key] = PodReading(pod_class, pod_class.problems)
        return reading

    def share(self, pod_class: PodClass) -> PodClass:
        """The one object for all classes that equal this one."""
        return self._classes.setdefault(pod_class, pod_class)


def with_inherited(pod_class: PodClass, annotations: Mapping[str, str]) -> PodClass:
    """The class with the capabilities that these annotations ask for, a pod's own and its owners'."""
    problems = Problems(pod_class.problems)
    least = capability(tuple(annotations.get(key) for key in CAPABILITY_KEYS), problems)
    ways = _sharing(annotations.get(SHARING_KEY), problems)
    return msgspec.structs.replace(pod_class, least=least, sharing=ways, problems=tuple(dict.fromkeys(problems)))


def read_template(template: Mapping[str, Any], where: str = "", path: str = "spec.template") -> PodReading:
    """The class of a pod template or pod as plain mappings. Raises BadInput for a field of the wrong type.

    `where` is the file, `path` the template's place in its manifest ("" for a pod).
    """
    try:
        pod = msgspec.convert(template, wire.PodTemplate)
    except msgspec.ValidationError as error:
        raise unreadable_manifest(error, where, path, template) from None
    meta = pod.metadata or wire.NO_META
    spec = pod.spec or wire.PodSpec()
    inner = f"{path}.spec" if path else "spec"
    reading = PodReader().read(spec, meta.labels, meta.annotations, path=inner)
    if spec.node_name:
        pod_class = msgspec.structs.replace(reading.pod_class, node_name=spec.node_name)
        return PodReading(pod_class, reading.problems)
    return reading


def _labels_that_decide(spec: wire.PodSpec, labels: Labels) -> tuple[tuple[str, str | None], ...]:
    """The pod's own labels, as far as its affinity or spread refers to them by key."""
    if not labels or not (spec.affinity or spec.topology_spread_constraints):
        return ()
    keys: set[str] = set()
    for constraint in spec.topology_spread_constraints or ():
        keys.update(constraint.match_label_keys or ())
    if spec.affinity:
        for side in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            for term in (side.required if side else None) or ():
                keys.update(term.match_label_keys or ())
                keys.update(term.mismatch_label_keys or ())
    return tuple((key, labels[key]) for key in sorted(keys) if key in labels)


def _read(
    spec: wire.PodSpec,
    labels: Labels,
    wishes: tuple[str | None, ...],
    volumes: Wishes,
    path: str,
) -> PodClass:
    problems, unsupported = Problems(), list[str]()
    affinity = spec.affinity or wire.Affinity()
    nodes = affinity.node_affinity or wire.NodeAffinity()
    base = f"{path}.affinity"
    during = "DuringSchedulingIgnoredDuringExecution"
    if not spec.containers:
        problems.append(f"{path}.containers is empty: a pod has one container at least.")
    if spec.resource_claims:
        unsupported.append("resource claims (dynamic allocation of devices)")
    required = selectors.node_terms(nodes.required, f"{base}.nodeAffinity.required{during}", problems)
    requests = requests_of(spec, path, problems)
    shares = [key for key, wish in zip(_READ_KEYS, wishes, strict=True) if wish and key in SHARE_KEYS]
    shares += [name for name, _ in requests if name in SHARE_RESOURCES]
    unsupported += [f"a share of a GPU ({said})" for said in shares]
    return PodClass(
        requests=added(requests, volumes.requests),
        least=capability(wishes[: len(CAPABILITY_KEYS)], problems),
        sharing=_sharing(wishes[-1], problems),
        node_selector=selectors.pairs(spec.node_selector),
        node_affinity=selectors.both(required, volumes.terms),
        preferred_nodes=selectors.preferred_terms(nodes.preferred, f"{base}.nodeAffinity.preferred{during}", problems),
        tolerations=selectors.tolerations(spec.tolerations, unsupported),
        host_ports=host_ports(spec),
        near=selectors.pod_terms(affinity.pod_affinity, f"{base}.podAffinity", problems, unsupported, labels),
        apart=selectors.pod_terms(affinity.pod_anti_affinity, f"{base}.podAntiAffinity", problems, unsupported, labels),
        spread=selectors.spreads(
            spec.topology_spread_constraints,
            f"{path}.topologySpreadConstraints",
            problems,
            unsupported,
            labels,
        ),
        unbound=volumes.waits,
        unsupported=tuple(dict.fromkeys(unsupported)),
        problems=tuple(dict.fromkeys(problems)),
    )


def host_ports(spec: wire.PodSpec) -> tuple[tuple[str, str, int], ...]:
    """(host IP, protocol, port) of containers and sidecars. On the host's network every port is a host port."""
    ports: set[tuple[str, str, int]] = set()
    sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
    for container in (*(spec.containers or ()), *sidecars):
        for port in container.ports or ():
            number = port.host_port or (port.container_port if spec.host_network else 0) or 0
            if number > 0:
                ports.add((port.host_ip or "0.0.0.0", port.protocol or "TCP", number))
    return tuple(sorted(ports))


def capability(wishes: tuple[str | None, ...], problems: Problems) -> Capability:
    """The least that a GPU must be, from the values of CAPABILITY_KEYS in their order."""
    memory, compute, product, precision, link, rdma = (w.strip() if w else "" for w in wishes)
    return Capability(
        memory_bytes=_memory(memory, problems) if memory else 0,
        compute=_compute(compute, problems) if compute else (0, 0),
        products=tuple(part.strip() for part in product.split("|") if part.strip()),
        precision=precision.lower(),
        link=_link(link, problems),
        rdma=_rdma(rdma, problems),
    )


def _sharing(said: str | None, problems: Problems) -> tuple[str, ...]:
    """How a pod wants to have GPUs; () for any way."""
    parts = [part.strip().lower() for part in (said or "").split("|") if part.strip()]
    if unknown := [part for part in parts if part not in (*KINDS, ANY_WAY)]:
        close = get_close_matches(unknown[0], (*KINDS, ANY_WAY), 1, 0.6)
        meant = f" Did you mean {close[0]}?" if close else ""
        problems.say(_annotation(SHARING_KEY), said, f"it is {', '.join(KINDS)} or {ANY_WAY}.{meant}")
    return () if ANY_WAY in parts else tuple(kind for kind in KINDS if kind in parts)


def _annotation(key: str) -> str:
    return f'metadata.annotations["{key}"]'


def _memory(text: str, problems: Problems) -> int:
    try:
        amount = quantity.whole(text)
    except QuantityError:
        amount = -1
    if amount < 0:
        problems.say(_annotation(MEMORY), text, "not an amount of memory. Write 80Gi, for example.")
    return max(0, amount)


def _compute(text: str, problems: Problems) -> tuple[int, int]:
    shape = _COMPUTE.fullmatch(text)
    if shape is None:
        problems.say(_annotation(COMPUTE), text, "not a compute capability. Write 9.0, for example.")
        return (0, 0)
    return int(shape[1]), int(shape[2] or 0)


def _link(text: str, problems: Problems) -> str:
    if text not in ("", "nvlink", "any"):
        problems.say(_annotation(LINK), text, "it is nvlink or any.")
    return "nvlink" if text == "nvlink" else ""


def _rdma(text: str, problems: Problems) -> bool:
    if text not in ("", "required"):
        problems.say(_annotation(RDMA), text, "the only value is required.")
    return text == "required"
