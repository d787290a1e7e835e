"""The account of a node's devices: five boundaries side by side, and the first at which they part.

Host → plugin → node → request → visible: the value that one passes on is the next one's input. None is a boundary that
nobody looked at; it is not zero.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct


class Boundary(IntEnum):
    """Who says that a device is there, or in use."""

    Host = 0  # NVML, lspci, /proc, /dev
    Plugin = 1  # ListAndWatch: healthy devices
    Node = 2  # capacity and allocatable, as the kubelet reports them
    Request = 3  # what pods asked for and were given
    Visible = 4  # what is inside the container


class DeviceLine(Struct, frozen=True, gc=False):
    """One device, partition or replica at the five boundaries. "" is a boundary that says nothing of it."""

    id: str  # UUID where it is known, else what the plugin calls it
    index: int = -1
    pci: str = ""
    parent: str = ""  # UUID of the device that a partition or replica is of
    kind: str = "device"  # device, partition, replica
    name: str = ""  # product, or MIG profile
    host: str = ""  # "there", "gone", "unfit: Xid 79"
    plugin: str = ""  # "healthy", "unhealthy", "absent"
    node: str = ""  # "offered", "withheld"
    request: str = ""  # namespace/pod that it was given to
    visible: str = ""  # namespace/pod that reaches it
    parts_at: Boundary | None = None
    memory_bytes: int = 0
    memory_used_bytes: int = 0
    holders: tuple[tuple[str, int], ...] = ()  # who holds its memory, and how many bytes
    peaks_bytes: int = 0  # the peaks of all who hold it, together; 0 where nobody remembers
    full_in_s: float = 0.0  # at the rate at which it grows; 0.0: it does not


class Bypass(Struct, frozen=True, gc=False):
    """A pod that reaches devices without asking for them: isolation, health and the account do not hold for it."""

    pod: str
    how: str


class Account(Struct, frozen=True, gc=False):
    """One resource of one node. Counts are of units: devices, partitions or replicas."""

    node: str
    resource: str
    gpu_class: str = ""
    host: int | None = None
    plugin: int | None = None
    capacity: int | None = None
    allocatable: int | None = None
    requested: int | None = None
    visible: int | None = None
    parts_at: Boundary | None = None
    sentence: str = ""  # where they part: numbers and names
    since: str = ""
    devices: tuple[DeviceLine, ...] = ()
    bypasses: tuple[Bypass, ...] = ()

    @property
    def is_equal(self) -> bool:
        return self.parts_at is None
