"""The words of a diagnosis: layers, severities, classes of causes, and what a fault does to the layers above."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Literal, get_args


class Layer(IntEnum):
    """Where a cause sits; what breaks lower shows higher."""

    L0 = 0  # hardware and PCIe
    L1 = 1  # kernel driver
    L2 = 2  # container runtime and CDI
    L3 = 3  # device plugin and kubelet
    L4 = 4  # what the node reports, and the operator that prepares it
    L5 = 5  # scheduling and admission
    L6 = 6  # inside the container

    @property
    def words(self) -> str:
        return LAYER_WORDS[self]


LAYER_WORDS = {
    Layer.L0: "hardware and PCIe",
    Layer.L1: "kernel driver",
    Layer.L2: "container runtime and CDI",
    Layer.L3: "device plugin and kubelet",
    Layer.L4: "node and operator",
    Layer.L5: "scheduling and admission",
    Layer.L6: "inside the container",
}


class Severity(IntEnum):
    """How bad it is for whoever wants to compute."""

    Info = 0  # worth knowing
    Warning = 1  # it works, worse than it should or not for long
    Error = 2  # something asked for does not work
    Critical = 3  # work is lost, or a node or device is out


CauseClass = Literal[
    "hw-fault", "hw-firmware",
    "driver-build", "driver-bug", "driver-conflict", "driver-in-use", "version-mismatch",
    "fabric", "p2p-acs-iommu", "passthrough",
    "runtime-install", "runtime-config", "cdi", "cgroup", "path-mount", "permission",
    "plugin-config", "plugin-health", "kubelet-state", "mig-state", "node-labels",
    "scheduling-policy", "quota-gang", "capacity", "dra",
    "network", "host-limits", "image", "app", "monitoring", "diagnosis-rule",
]  # fmt: skip
CAUSE_CLASSES: tuple[str, ...] = get_args(CauseClass)  # by what has to be mended

# What somebody has chosen or allowed: it does not come about by a fault below.
SET_SO: frozenset[CauseClass] = frozenset((
    "host-limits", "image", "permission", "version-mismatch", "plugin-config", "node-labels", "quota-gang",
    "scheduling-policy",
))  # fmt: skip

# How sure a finding is. Of those at 0.9 and more, at least 95 in 100 must be right.
ESTABLISHED = 0.95  # the component itself says so, and nothing else is known to make it say so
LIKELY = 0.85  # the usual cause of what was seen
POSSIBLE = 0.6  # one of few causes
WEAK = 0.4  # a hint; it does not outrank what is stronger
GUESSED = 0.3  # by who says it and what sort of error it is; left out where anything else was found


class Effect(Enum):
    """What does not work as long as a fault lasts. `LEADS_TO` says what else does not work then."""

    DeviceGone = "a device does not answer"
    DeviceUnfit = "a device computes or remembers wrongly"
    LinkSlow = "a device is reached slower than it should be"
    FabricDown = "NVLink between devices is not ready"
    DriverAbsent = "no kernel driver serves the devices"
    DriverBusy = "the driver cannot be replaced"
    NvmlFails = "nobody can ask the driver"
    DeviceNodesMissing = "the device files are not there"
    RuntimeAbsent = "the container runtime cannot add devices"
    CdiUnresolved = "a device name leads nowhere"
    ContainersDoNotStart = "containers do not start"
    DevicesNotInjected = "a container runs without the devices that it should have"
    DevicesRevoked = "a running container has lost its devices"
    PluginDown = "no device plugin serves the kubelet"
    DevicesUnhealthy = "devices are reported unhealthy"
    AccountStale = "the kubelet's account is not what is there"
    CapacityMissing = "the node offers fewer devices than it has"
    LabelsMissing = "the node's labels do not say what it has"
    OperandsHeldBack = "components of the operator do not run"
    MigNotApplied = "partitions are not as asked for"
    BlindMonitoring = "faults and figures are not seen"
    PodsWait = "pods wait for devices"
    PodsRejected = "the kubelet refuses pods"
    PodsNotMade = "pods are not created"
    HeldByPolicy = "pods wait for a quota, a queue or a rule"
    ClaimsUnprepared = "resource claims are not prepared"
    NoDeviceInContainer = "the program sees no device"
    CudaFails = "CUDA does not begin"
    MemoryShort = "memory is used up"
    CollectiveFails = "a collective operation fails or hangs"
    CollectiveSlow = "a collective operation is slow"
    ProgramFails = "the program fails by itself"


LEADS_TO: dict[Effect, tuple[Effect, ...]] = {
    Effect.DeviceGone: (
        Effect.NvmlFails, Effect.DevicesUnhealthy, Effect.CapacityMissing, Effect.ContainersDoNotStart,
        Effect.CudaFails, Effect.FabricDown, Effect.PodsRejected,
    ),
    Effect.DeviceUnfit: (Effect.DevicesUnhealthy, Effect.CudaFails, Effect.CollectiveFails, Effect.ProgramFails),
    Effect.LinkSlow: (Effect.CollectiveSlow, Effect.DeviceGone),
    Effect.FabricDown: (Effect.CudaFails, Effect.CollectiveFails, Effect.CollectiveSlow, Effect.ClaimsUnprepared),
    Effect.DriverAbsent: (Effect.NvmlFails, Effect.DeviceNodesMissing, Effect.OperandsHeldBack, Effect.DeviceGone),
    Effect.DriverBusy: (Effect.OperandsHeldBack, Effect.MigNotApplied),
    Effect.NvmlFails: (
        Effect.PluginDown, Effect.CapacityMissing, Effect.LabelsMissing, Effect.BlindMonitoring,
        Effect.ContainersDoNotStart, Effect.NoDeviceInContainer, Effect.FabricDown, Effect.CdiUnresolved,
    ),
    Effect.DeviceNodesMissing: (Effect.CdiUnresolved, Effect.ContainersDoNotStart, Effect.NoDeviceInContainer),
    Effect.RuntimeAbsent: (
        Effect.ContainersDoNotStart, Effect.DevicesNotInjected, Effect.PluginDown, Effect.OperandsHeldBack,
        Effect.CdiUnresolved,
    ),
    Effect.CdiUnresolved: (Effect.ContainersDoNotStart, Effect.OperandsHeldBack, Effect.ClaimsUnprepared),
    Effect.ContainersDoNotStart: (Effect.PluginDown, Effect.OperandsHeldBack, Effect.LabelsMissing),
    Effect.DevicesNotInjected: (Effect.NoDeviceInContainer, Effect.NvmlFails, Effect.PluginDown, Effect.LabelsMissing),
    Effect.DevicesRevoked: (Effect.NoDeviceInContainer, Effect.CudaFails),
    Effect.PluginDown: (Effect.CapacityMissing, Effect.PodsRejected, Effect.AccountStale, Effect.OperandsHeldBack),
    Effect.DevicesUnhealthy: (Effect.CapacityMissing, Effect.PodsRejected),
    Effect.AccountStale: (Effect.CapacityMissing, Effect.PodsRejected, Effect.PodsWait),
    Effect.CapacityMissing: (Effect.PodsWait, Effect.PodsRejected),
    Effect.LabelsMissing: (Effect.PodsWait, Effect.OperandsHeldBack),
    Effect.OperandsHeldBack: (
        Effect.PluginDown, Effect.LabelsMissing, Effect.CapacityMissing, Effect.BlindMonitoring, Effect.MigNotApplied,
    ),
    Effect.MigNotApplied: (Effect.CapacityMissing, Effect.NoDeviceInContainer, Effect.PodsWait),
    Effect.ClaimsUnprepared: (Effect.ContainersDoNotStart,),
    Effect.NoDeviceInContainer: (Effect.CudaFails, Effect.ProgramFails),
    Effect.CudaFails: (Effect.CollectiveFails, Effect.ProgramFails),
    Effect.MemoryShort: (Effect.CollectiveFails, Effect.ProgramFails),
    Effect.CollectiveFails: (Effect.ProgramFails,),
}  # fmt: skip
