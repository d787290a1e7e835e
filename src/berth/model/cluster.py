"""What the cluster is made of: nodes, devices, partitions, replicas, GPU classes, and who holds them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from msgspec import Struct

from berth.model.resources import Resources
from berth.model.workload import Disruption, PodClass, identity_of

NO_ISLAND = -1


class Health(IntEnum):
    """Fitness of a device or node to be given out."""

    Fit = 0
    Suspect = 1  # used where nothing fit is left, and by no new gang
    Unfit = 2  # given to nobody
    Unknown = 3


class GpuClass(Struct, frozen=True, gc=False):
    """Devices that are interchangeable for some purpose. Unknown capabilities are 0 or ""."""

    name: str  # short and stable: "H100-80GB"
    vendor: str = "nvidia.com"
    product: str = ""  # as GPU Feature Discovery says it: "NVIDIA-H100-80GB-HBM3"
    memory_bytes: int = 0  # of one device, or of one partition where the class is a MIG profile
    compute: tuple[int, int] = (0, 0)  # CUDA compute capability
    link: str = ""  # "nvlink" or "pcie": how the GPUs of one node are joined
    precisions: tuple[str, ...] = ()
    profile: str = ""  # MIG profile, where the class is one
    value_per_hour: float = 1.0  # relative: makes hours of different cards add up


class Partition(Struct, frozen=True, gc=False):
    """A MIG instance of a device."""

    profile: str  # "1g.10gb"
    resource: str  # what a pod asks for: "nvidia.com/mig-1g.10gb", or "nvidia.com/gpu" (strategy single)
    memory_bytes: int = 0
    start: int = -1  # first memory slice; -1 where it is not known
    uuid: str = ""


class Device(Struct, frozen=True, gc=False):
    """One physical GPU. Sources: GPU Feature Discovery, ResourceSlice, NodeLedger; index is its place."""

    index: int
    uuid: str = ""
    pci: tuple[int, int, int] = (-1, -1, -1)  # (domain, bus, device) as numbers: tools spell it differently
    island: int = NO_ISLAND  # NVLink island on its node
    numa: int = -1
    health: Health = Health.Fit
    partitions: tuple[Partition, ...] = ()
    replicas: int = 1  # time-slices or MPS clients that it is advertised as
    code: str = ""  # what a health agent found: "Xid79"; "" where it found nothing, or nobody looked


class Taint(Struct, frozen=True, gc=False):
    """A node's refusal of pods that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Node(Struct, frozen=True, gc=False):
    """A node as the API server and its labels tell it. `allocatable` is what the kubelet admits."""

    name: str
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    cordoned: bool = False
    ready: bool = True
    health: Health = Health.Fit  # what a health agent says; Unfit keeps new pods away
    code: str = ""  # what it found, of the node or of the device that is worst: "Xid79"
    unsafe: tuple[str, ...] = ()  # resources of which the kubelet may give out an unfit device: nobody new gets one
    agent: str = ""  # "heard", "silent" for too long, "" where no agent tells of the node
    allocatable: Resources = ()
    capacity: Resources = ()
    gpu_class: str = ""  # key of Snapshot.gpu_classes; "" where there is no GPU or it is not known
    device_resource: str = ""  # resource whose units are `devices`, one each; "" where none is
    devices: tuple[Device, ...] = ()
    named_devices: bool = False  # the scheduler names the device (DRA); else the kubelet picks it
    rdma: bool = False
    dynamic_resources: tuple[str, ...] = ()  # that pods may ask for and only dynamic resource allocation gives here

    @property
    def is_suspect(self) -> bool:
        """The node or a device of it is: it comes last, and gets no new gang."""
        return self.health == Health.Suspect or any(d.health == Health.Suspect for d in self.devices)


class Allocation(Struct, frozen=True, gc=False):
    """A pod that holds capacity on a node, whoever scheduled it.

    `devices` are indexes into the node's devices; () where the kubelet chose and nobody told.
    """

    node: str
    namespace: str
    name: str
    pod_class: PodClass
    labels: tuple[tuple[str, str], ...] = ()
    workload: str = ""  # key of the workload that it belongs to
    workload_kind: str = ""
    pod_set: str = ""
    queue: str = ""
    devices: tuple[int, ...] = ()
    priority: int = 0
    scheduler: str = ""
    is_daemon: bool = False
    started_s: float = 0.0
    uid: str = ""
    is_ending: bool = False  # it is being deleted: it holds capacity still, and will free it
    ends_s: float = 0.0  # by when, where it is being deleted; 0.0 where nobody says
    grace_s: float = 30.0  # from the order to leave to the end, at most
    is_controlled: bool = False  # a controller makes it again once it is gone
    preemptible: bool | None = None  # None where nobody says: then its priority alone decides
    disruption: Disruption = "single"
    gang_minimum: int = 0  # with disruption "all": pods of its workload that must stay; 0: all of them
    set_minimum: int = 0  # the same of its pod set; 0: nothing beside the gang's
    min_runtime_s: float = 0.0  # protected for so long after its start
    time_limit_s: float = 0.0  # 0.0: runs until it ends
    checkpoint_every_s: float = 0.0  # it loses so much at most; 0.0: it is not known
    last_checkpoint_s: float = 0.0  # what came before is safe; 0.0: it is not known

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def workload_identity(self) -> str:
        """The workload that it belongs to, as `Workload.identity` names it."""
        if not self.workload:
            return identity_of("Pod", self.key)
        return identity_of(self.workload_kind, self.workload)
