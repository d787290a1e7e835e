"""What is known at the boundaries between hardware and container: who names a device, who was given it, who sees it.

Device ids are the plugin's: a UUID of a GPU or MIG instance, an index, or either with `::n` for a replica.
"""

from __future__ import annotations

from msgspec import Struct

from berth.evidence.fact import Fact


class Offered(Struct, frozen=True, gc=False):
    """One device as a plugin lists it."""

    id: str
    is_healthy: bool = True
    numa: int = -1


class PluginAnswer(Fact, frozen=True, kw_only=True):
    """What a device plugin answers on its socket: ListAndWatch's first list, or why there is none."""

    resource: str
    socket: str = ""
    answered: bool = True
    problem: str = ""  # "no answer within 3 s", "refused", "no socket"
    devices: tuple[Offered, ...] = ()


class SocketsSeen(Fact, frozen=True, kw_only=True):
    """The kubelet's folder for device plugins was looked into: what has no socket there serves nothing."""

    sockets: tuple[str, ...] = ()


class KubeletOffers(Fact, frozen=True, kw_only=True):
    """The devices that the kubelet takes for allocatable. Source: PodResources, GetAllocatableResources."""

    resource: str
    ids: tuple[str, ...] = ()


class Given(Fact, frozen=True, kw_only=True):
    """Devices that the kubelet has given to a container. Source: PodResources, List; or its checkpoint."""

    resource: str
    of_pod: str  # namespace/name; a uid where only the checkpoint says it
    container: str = ""
    ids: tuple[str, ...] = ()
    is_checkpoint: bool = False


class Visible(Fact, frozen=True, kw_only=True):
    """Devices that a container reaches: by its environment, device files, or CDI annotations."""

    of_pod: str
    container: str = ""
    ids: tuple[str, ...] = ()  # UUIDs where they are known
    minors: tuple[int, ...] = ()  # of /dev/nvidiaN
    all_of_them: bool = False  # NVIDIA_VISIBLE_DEVICES=all, privileged, or /dev as a host path
    asked_for_none: bool = False  # it reaches devices and never asked: it bypasses the account


class Parted(Fact, frozen=True, kw_only=True):
    """Since when two boundaries do not say the same, as the agent of the node remembers it."""

    resource: str
    at: str  # name of the boundary
    since: str  # RFC 3339


class Holder(Fact, frozen=True, kw_only=True):
    """A process that holds memory of a device."""

    device: str  # UUID
    pid: int = 0
    of_pod: str = ""  # "" for a process of the machine
    container: str = ""
    process: str = ""
    memory_bytes: int = 0
    peak_bytes: int = 0  # the most that the container had; 0 where nobody remembers


class Filling(Fact, frozen=True, kw_only=True):
    """A device whose memory fills up steadily."""

    device: str  # UUID
    full_in_s: float


class HostCount(Fact, frozen=True, kw_only=True):
    """How many devices one way of counting finds on a machine."""

    by: str  # "lspci", "nvml", "/dev", "/proc/driver/nvidia/gpus", "nvidia.com/gpu.count"
    count: int
