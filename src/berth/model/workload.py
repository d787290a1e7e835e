"""What is asked for: pod classes, pod sets, workloads.

A *pod class* is everything about a pod that decides where it may run; pods that ask for the same share one
object, so a table has one row for all of them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from berth.model.resources import Resources

WHOLE = 1000  # milli: a whole device
SUSPENDED = "spec.suspend"  # told as a gate: somebody has to open it

# How the pods of a gang may be asked to leave: each by itself, or all together.
Disruption = Literal["single", "all"]


class Requirement(Struct, frozen=True, gc=False):
    """One expression of a node or label selector: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeTerm(Struct, frozen=True, gc=False):
    """Expressions that must all hold; `fields` are over metadata.name. A term without any matches nothing."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class PreferredTerm(Struct, frozen=True, gc=False):
    """A node term that is worth `weight` (1-100)."""

    weight: int
    term: NodeTerm


class Toleration(Struct, frozen=True, gc=False):
    """Empty key with Exists tolerates everything; empty effect tolerates every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class LabelSelector(Struct, frozen=True, gc=False):
    """Labels and expressions that must all hold. Empty matches everything."""

    labels: tuple[tuple[str, str], ...] = ()
    expressions: tuple[Requirement, ...] = ()


class PodTerm(Struct, frozen=True, gc=False):
    """A required inter-pod (anti-)affinity within one value of `topology_key`.

    Without `namespaces` it looks at the pod's own namespace.
    """

    selector: LabelSelector
    topology_key: str
    namespaces: tuple[str, ...] = ()
    all_namespaces: bool = False


class Spread(Struct, frozen=True, gc=False):
    """A topologySpreadConstraint with whenUnsatisfiable DoNotSchedule."""

    selector: LabelSelector
    topology_key: str
    max_skew: int = 1
    min_domains: int = 1


class Capability(Struct, frozen=True, gc=False):
    """The least that a GPU must be. Zero, empty and False mean that it does not matter."""

    memory_bytes: int = 0
    compute: tuple[int, int] = (0, 0)
    products: tuple[str, ...] = ()  # any of these: class names, product names or parts of them
    precision: str = ""
    link: str = ""  # "nvlink": the GPUs of one pod are joined by NVLink
    rdma: bool = False


NO_VOLUME = "has no volume yet"


class Unbound(Struct, frozen=True, gc=False):
    """A volume claim that the pod has to wait for: `CLAIM has no volume yet`. `unlock` is what would end the wait."""

    claim: str
    why: str = NO_VOLUME
    unlock: str = ""


class Unmet(Struct, frozen=True, gc=False):
    """What the pods belong to, and is not known: `what` says so, `unlock` what would end the wait."""

    what: str
    unlock: str


class PodClass(Struct, frozen=True, gc=False):
    """What one pod needs of a node. Equal classes are interchangeable for placement.

    `requests` hold cpu, memory, …, and GPUs by their resource name. `gpu_milli` below 1000 is a fraction of
    one device: in simulation and for dialects that have fractions, never for plain `nvidia.com/gpu`.
    """

    requests: Resources = ()
    gpu_milli: int = WHOLE
    least: Capability = Capability()
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[NodeTerm, ...] = ()  # any of them; () for no wish
    preferred_nodes: tuple[PreferredTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    node_name: str = ""
    host_ports: tuple[tuple[str, str, int], ...] = ()  # (host IP or "0.0.0.0", protocol, port)
    near: tuple[PodTerm, ...] = ()  # required pod affinity
    apart: tuple[PodTerm, ...] = ()  # required pod anti-affinity
    spread: tuple[Spread, ...] = ()
    unbound: tuple[Unbound, ...] = ()  # volume claims without which nobody knows where it may run
    unsupported: tuple[str, ...] = ()  # what the pod asks for and Berth refuses, a phrase each
    problems: tuple[str, ...] = ()  # rules of Kubernetes that the pod breaks, a sentence each
    queue_classes: tuple[str, ...] | None = None  # GPU classes that its queue allows; None for all
    queue_sharing: tuple[str, ...] | None = None  # how its queue lets it have GPUs (sharing.py); None for all
    sharing: tuple[str, ...] = ()  # how it wants to have them itself; () for any way
    refused_by: tuple[str, ...] = ()  # nodes that refused one lately: for these pods they are unfit

    @property
    def ways(self) -> tuple[str, ...] | None:
        """How it may have GPUs, by its own wish and by its queue; None for all."""
        if self.queue_sharing is None or not self.sharing:
            return self.sharing or self.queue_sharing
        return tuple(way for way in self.sharing if way in self.queue_sharing)

    @property
    def depends_on_pods(self) -> bool:
        """Where it may go depends on other pods, so no table over nodes alone can answer."""
        return bool(self.near or self.apart or self.spread or self.host_ports)


class TopologyWish(Struct, frozen=True, gc=False):
    """All pods in one domain of `level` (a level's name or its label key)."""

    level: str
    required: bool = True
    slice_size: int = 0  # > 0: each slice of so many pods in one domain, instead of all of them


class PodSet(Struct, frozen=True, gc=False):
    """Identical pods of a workload. It starts with `min_count` of them at least, and wants `count`."""

    name: str
    pod_class: PodClass
    count: int = 1
    min_count: int = 1
    topology: tuple[TopologyWish, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


class Workload(Struct, frozen=True, gc=False):
    """What is admitted together. More than one pod makes it a gang: all minimum counts, or nothing."""

    name: str
    pod_sets: tuple[PodSet, ...]
    namespace: str = "default"
    kind: str = "Pod"
    queue: str = ""  # "" is the queue of the namespace
    priority: int = 0
    created_s: float = 0.0
    waits_since_s: float = 0.0  # it has been stopped then; 0.0: it waits since it was created
    topology: tuple[TopologyWish, ...] = ()  # of the whole workload, beside those of its sets
    scheduler: str = ""  # whose rules apply in the cluster: spec.schedulerName
    gates: tuple[str, ...] = ()  # scheduling gates that are still closed
    unmet: tuple[Unmet, ...] = ()  # its group or owners of its pods, without which its size is not known
    pods: tuple[tuple[str, ...], ...] = ()  # by pod set, the names of the pods that wait, where they exist
    missing_pods: int = 0  # pods of the gang that nobody has created yet
    has_begun: bool = False  # some of its pods have a node already: the rest goes before all that has not begun
    held_off: str = ""  # why it is left alone for a while: "the API server refused its bind: …"
    awaited: tuple[str, ...] = ()  # volume claims for which it is: its place is held until their volumes are there
    provenance: tuple[tuple[str, str], ...] = ()  # where a value came from: ("gang", "PodGroup train/pg")
    api_version: str = ""  # of the object that makes its pods one workload; "" where there is none
    uid: str = ""  # of that object, of the pod itself where it stands alone; "" where it is not known
    preempts: bool = True  # others may be asked to leave for it: False by preemptionPolicy Never
    preemptible: bool | None = None  # once it runs; None where nobody says, then its priority alone decides
    disruption: Disruption = "single"
    min_runtime_s: float = 0.0  # protected for so long after each start
    time_limit_s: float = 0.0  # 0.0: runs until it ends
    checkpoint_every_s: float = 0.0  # it loses so much at most; 0.0: it is not known
    findings: tuple[str, ...] = ()  # what its dialects disagree on, values that cannot be read; a sentence each

    @property
    def key(self) -> str:
        """As people name it: `team-a/train`. Two workloads of different kinds may share it."""
        return f"{self.namespace}/{self.name}"

    @property
    def identity(self) -> str:
        """What tells it from every other workload: `PodGroup team-a/train`."""
        return identity_of(self.kind, self.key)

    @property
    def pod_count(self) -> int:
        return sum(s.count for s in self.pod_sets)

    @property
    def is_gang(self) -> bool:
        return self.pod_count > 1


def identity_of(kind: str, key: str) -> str:
    """`PodGroup team-a/train`: a PodGroup and a Job of one name are two workloads."""
    return f"{kind} {key}"
