"""What Kubernetes objects say, whichever way they were written down: JSON or YAML of the API, tables and descriptions
of kubectl, a line that somebody typed. Rules see these kinds and not who printed them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from berth.evidence.fact import NOTHING, Fact

UNSAID = -1  # of a number that was not printed


class Advertised(Fact, frozen=True, kw_only=True):
    """How much of an extended resource a node offers. UNSAID where only the other of the two was printed."""

    name: str = ""  # of the node
    resource: str
    capacity: int = UNSAID
    allocatable: int = UNSAID


class Condition(Struct, frozen=True, gc=False):
    """Of a node or another object."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: str = ""


class NodeSeen(Fact, frozen=True, kw_only=True):
    """A node. What was not printed is empty."""

    name: str
    labels: Mapping[str, str] = NOTHING
    annotations: Mapping[str, str] = NOTHING
    taints: tuple[tuple[str, str, str], ...] = ()  # key, value, effect
    is_cordoned: bool = False
    conditions: tuple[Condition, ...] = ()
    kubelet: str = ""  # "v1.34.2"
    runtime: str = ""  # "containerd://2.1.0"
    kernel: str = ""
    os_image: str = ""
    is_counted: bool = False  # what it offers was printed whole: a resource that is not among it is not there


class Limit(Struct, frozen=True, gc=False):
    """What one container asks for and reaches for."""

    container: str
    image: str = ""
    devices: Mapping[str, int] = {}  # extended resource → how many
    claims: tuple[str, ...] = ()
    visible_devices: str = ""  # NVIDIA_VISIBLE_DEVICES as the manifest sets it
    is_privileged: bool = False
    is_init: bool = False


class ContainerState(Struct, frozen=True, gc=False):
    container: str
    state: str = ""  # waiting, running, terminated
    reason: str = ""
    message: str = ""
    exit_code: int = 0
    restarts: int = 0
    last_reason: str = ""
    last_message: str = ""


class PodSeen(Fact, frozen=True, kw_only=True):
    """A pod as the API server has it."""

    namespace: str
    name: str
    uid: str = ""
    on: str = ""  # node that it is bound to
    phase: str = ""
    reason: str = ""  # of its status: UnexpectedAdmissionError
    message: str = ""
    scheduler: str = ""
    runtime_class: str = ""
    priority_class: str = ""
    owner: str = ""  # Kind/name
    queue: str = ""
    labels: Mapping[str, str] = NOTHING
    annotations: Mapping[str, str] = NOTHING
    node_selector: Mapping[str, str] = NOTHING
    tolerations: tuple[tuple[str, str, str, str], ...] = ()  # key, operator, value, effect
    limits: tuple[Limit, ...] = ()
    states: tuple[ContainerState, ...] = ()
    conditions: tuple[Condition, ...] = ()
    gates: tuple[str, ...] = ()
    host_paths: tuple[str, ...] = ()
    shm_bytes: int = UNSAID  # of a memory-backed volume at /dev/shm
    made: str = ""
    is_ending: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class EventSeen(Fact, frozen=True, kw_only=True):
    """An event. Its message is also read as evidence of its own, for the sentences in it."""

    reason: str
    message: str
    kind: str = ""  # of what it is about
    namespace: str = ""
    name: str = ""
    component: str = ""
    type: str = ""
    count: int = 1
    last: str = ""


class Operand(Fact, frozen=True, kw_only=True):
    """A DaemonSet or Deployment: how many there should be, and how many are ready."""

    kind: str
    namespace: str
    name: str
    wanted: int = UNSAID
    ready: int = UNSAID
    node_selector: Mapping[str, str] = NOTHING
    image: str = ""
    environment: Mapping[str, str] = NOTHING


class ObjectSeen(Fact, frozen=True, kw_only=True):
    """Any other object, as it is: RuntimeClass, ClusterPolicy, ResourceQuota, LimitRange, DeviceClass, ResourceSlice,
    ResourceClaim, PodGroup, Queue, ClusterQueue, ConfigMap …"""

    api_version: str
    kind: str
    namespace: str
    name: str
    body: Mapping[str, Any]
