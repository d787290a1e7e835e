"""What a machine says of itself: PCI functions, kernel modules, the board, the driver's own files."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from berth.evidence.fact import NO_PCI, Fact, Pci

NVIDIA = "10de"


class Region(Struct, frozen=True, gc=False):
    """A BAR as lspci prints it."""

    number: int  # -1 where it is not printed
    size_bytes: int = 0  # 0 where it is not printed
    is_assigned: bool = True  # not <unassigned>, <ignored> or [disabled]
    is_64bit: bool = False


class PciSeen(Fact, frozen=True, kw_only=True):
    """A PCI function. Speeds in GT/s; 0 where they were not printed."""

    pci: Pci
    function: int = 0
    kind: str = ""  # "3D controller"
    kind_id: str = ""  # "0302"
    name: str = ""
    vendor: str = ""  # "10de"
    device: str = ""
    revision: str = ""
    is_dead: bool = False  # all ones: rev ff, unknown header type 7f
    driver: str = ""  # in use
    modules: tuple[str, ...] = ()
    speed_max_gts: float = 0.0
    width_max: int = 0
    speed_gts: float = 0.0
    width: int = 0
    regions: tuple[Region, ...] = ()
    acs: str = ""  # ACSCtl as printed: "SrcValid+ TransBlk- …"
    power_state: str = ""  # D0, D3

    @property
    def is_nvidia(self) -> bool:
        return self.vendor == NVIDIA or "nvidia" in self.name.lower()

    @property
    def is_gpu(self) -> bool:
        """Of NVIDIA, and no switch, audio or USB function. A virtual function counts."""
        return self.is_nvidia and (self.kind_id in ("0300", "0302") or self.kind.startswith(("3D", "VGA")))


class ModulesSeen(Fact, frozen=True, kw_only=True):
    """Kernel modules that are loaded: a whole listing, from which what is not in it is not loaded."""

    loaded: Mapping[str, tuple[str, ...]]  # name → modules that use it
    references: Mapping[str, int]  # name → how many users
    is_whole: bool = True  # false where the listing was filtered or shortened


class ModuleNoted(Fact, frozen=True, kw_only=True):
    """Somebody wrote down that a module is loaded, or that it is not."""

    name: str
    is_loaded: bool


class MachineSeen(Fact, frozen=True, kw_only=True):
    """dmidecode: maker, product and firmware."""

    maker: str = ""
    product: str = ""
    bios: str = ""
    bios_date: str = ""


class KernelDriver(Fact, frozen=True, kw_only=True):
    """/proc/driver/nvidia/version, or modinfo: the driver in the kernel."""

    version: str
    is_open: bool = False
    is_loaded: bool = True  # false: on disk (modinfo)
    compiler: str = ""


class ProcGpu(Fact, frozen=True, kw_only=True):
    """/proc/driver/nvidia/gpus/*/information."""

    pci: Pci = NO_PCI
    model: str = ""
    uuid: str = ""  # with question marks where the device could not be read
    vbios: str = ""
    minor: int | None = None
    firmware: str = ""  # of GSP
