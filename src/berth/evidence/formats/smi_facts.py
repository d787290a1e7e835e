"""What nvidia-smi says of devices, of the driver and of what joins them, whichever of its forms was printed.

A number that was not printed, or that the device does not have (N/A), is None: nothing is guessed. What the tool prints
in the place of a value when it could not get it (`ERR!`, `Unknown Error`, `GPU is lost`) is kept in `unreadable`.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from berth.evidence.fact import NO_PCI, NOTHING, Fact, Origin, Pci

NO_COUNTS: Mapping[str, int] = {}
NO_QUOTES: Mapping[str, tuple[int, str]] = {}


class MigDevice(Struct, frozen=True, gc=False, kw_only=True):
    """A partition of a device, as nvidia-smi lists it."""

    index: int | None = None  # of the partition, among those of its device
    uuid: str = ""
    profile: str = ""  # "1g.10gb", "1c.3g.40gb"
    gi: int | None = None
    ci: int | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    multiprocessors: int | None = None
    sram_uncorrected: int | None = None


class Process(Struct, frozen=True, gc=False, kw_only=True):
    """A program that holds a device. `name` is as printed: a path, [Not Found], or empty."""

    pid: int
    name: str = ""
    type: str = ""  # C, G, C+G, M+C
    memory_bytes: int | None = None
    gi: int | None = None
    ci: int | None = None


class DeviceSeen(Fact, frozen=True, kw_only=True):
    """One device in one printout. Only what was printed is set: a table says less than `-q`, and `-L` only names."""

    form: str  # which printout: "query", "xml", "csv", "table", "list"
    index: int | None = None
    uuid: str = ""
    name: str = ""
    pci: Pci = NO_PCI
    serial: str = ""
    minor: int | None = None
    architecture: str = ""
    vbios: str = ""
    driver: str = ""
    cuda: str = ""
    gsp_firmware: str = ""

    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_free_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    bar1_total_bytes: int | None = None

    temperature_c: float | None = None
    temperature_shutdown_c: float | None = None  # thresholds as temperatures: up to Ampere
    temperature_slowdown_c: float | None = None
    temperature_max_c: float | None = None
    margin_c: float | None = None  # degrees left until slowdown begins ("T.Limit"): from Ada and Hopper on
    margin_shutdown_c: float | None = None
    margin_slowdown_c: float | None = None
    margin_max_c: float | None = None
    memory_temperature_c: float | None = None
    memory_temperature_max_c: float | None = None

    power_draw_w: float | None = None
    power_limit_w: float | None = None  # in force
    power_default_w: float | None = None
    power_min_w: float | None = None
    power_max_w: float | None = None
    performance_state: str = ""  # P0 … P12
    gpu_percent: float | None = None
    memory_percent: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_mhz: float | None = None
    memory_clock_max_mhz: float | None = None
    slowed_by: tuple[str, ...] | None = None  # clocks event (throttle) reasons that are active: see REASONS
    slowed_us: Mapping[str, int] = NO_COUNTS  # the same reasons: microseconds since the driver was loaded

    ecc_mode: str = ""  # Enabled, Disabled, N/A
    ecc_mode_pending: str = ""
    corrected_volatile: int | None = None  # ECC errors since the driver was loaded, all memories
    uncorrected_volatile: int | None = None
    corrected_aggregate: int | None = None  # for the life of the board
    uncorrected_aggregate: int | None = None
    sram_uncorrected_volatile: int | None = None
    sram_uncorrected_aggregate: int | None = None
    dram_uncorrected_volatile: int | None = None
    dram_uncorrected_aggregate: int | None = None
    is_sram_threshold_exceeded: bool | None = None
    is_channel_repair_pending: bool | None = None
    is_tpc_repair_pending: bool | None = None
    is_memory_unrepairable: bool | None = None
    remapped_correctable: int | None = None  # row remapper: Ampere and newer
    remapped_uncorrectable: int | None = None
    is_remap_pending: bool | None = None
    is_remap_failed: bool | None = None
    remap_banks: Mapping[str, int] = NO_COUNTS  # max, high, partial, low, none → banks with that many spare rows
    retired_single_bit: int | None = None  # pages: before Ampere
    retired_double_bit: int | None = None
    is_retirement_pending: bool | None = None
    recovery_action: str = ""  # None, Reset, Reboot, Drain P2P, Drain and Reset
    is_reset_required: bool | None = None

    mig_mode: str = ""  # Enabled, Disabled, N/A
    mig_mode_pending: str = ""
    mig: tuple[MigDevice, ...] = ()

    pcie_gen: int | None = None  # of the link as it is now: falls at idle
    pcie_gen_max: int | None = None  # of device and slot together
    pcie_gen_device_max: int | None = None
    pcie_gen_host_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_replays: int | None = None

    fabric_state: str = ""  # N/A, Not Started, In Progress, Completed
    fabric_status: str = ""  # N/A, Success, or an error in words
    fabric_clique: str = ""
    fabric_cluster: str = ""
    fabric_health: Mapping[str, str] = NOTHING  # summary, bandwidth, route_unhealthy … → as printed

    persistence_mode: str = ""
    compute_mode: str = ""  # Default, Exclusive_Process, Prohibited
    virtualization: str = ""  # None, Pass-Through, VGPU, Host VGPU
    license_status: str = ""  # of guests with a vGPU: Licensed (Expiry: …), Unlicensed (Restricted), …
    module_id: str = ""
    processes: tuple[Process, ...] | None = None  # None where the printout does not say
    unreadable: Mapping[str, str] = NOTHING  # field of this → the words in the place of its value
    quotes: Mapping[str, tuple[int, str]] = NO_QUOTES  # field of this → line and words that say it

    def quote(self, *fields: str) -> Origin:
        """The exact words that say a field, for evidence: of the first that was printed, else of the device."""
        for field in fields:
            if said := self.quotes.get(field):
                return replace(self.origin, line=said[0], text=said[1])
        return self.origin


# Names of reasons in `slowed_by` and `slowed_us`; the bits are those of clocks_event_reasons.active.
REASONS = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clocks_setting",
}


class DriverSeen(Fact, frozen=True, kw_only=True):
    """Versions as one printout states them. Different ones in different places are what a rule looks for."""

    version: str = ""  # of the kernel driver
    cuda: str = ""  # the newest that the driver serves
    tool: str = ""  # of nvidia-smi itself
    nvml: str = ""  # of the library: `nvidia-smi --version`
    attached: int | None = None  # devices that the driver has


class TopologySeen(Fact, frozen=True, kw_only=True):
    """`nvidia-smi topo -m`: how devices reach one another. Names as printed: GPU0, NIC1, mlx5_0."""

    names: tuple[str, ...]
    links: Mapping[tuple[str, str], str]  # (from, to) → X, NV18, PIX, PXB, PHB, NODE, SYS
    cpus: Mapping[str, str] = NOTHING  # device → CPU affinity, "0-19"
    numa: Mapping[str, str] = NOTHING
    nics: Mapping[str, str] = NOTHING  # NIC0 → mlx5_0


class Link(Struct, frozen=True, gc=False, kw_only=True):
    """One NVLink of a device."""

    number: int
    speed_gbytes_s: float | None = None
    is_active: bool | None = None
    errors: Mapping[str, float] = {}  # replay_errors, recovery_errors, crc_errors, effective_ber … as printed
    abilities: Mapping[str, str] = NOTHING  # of -c: "p2p_is_supported" → "true"


class NvlinkSeen(Fact, frozen=True, kw_only=True):
    """`nvidia-smi nvlink -s`, `-e` or `-c` of one device."""

    index: int | None = None
    uuid: str = ""
    name: str = ""
    links: tuple[Link, ...] = ()
    are_all_inactive: bool = False  # said so instead of a list
    is_supported: bool = True  # the device has NVLink, and is not asked in MIG mode


class MigProfileSeen(Fact, frozen=True, kw_only=True):
    """A line of `nvidia-smi mig -lgip`, with the placements of `-lgipp` where these were printed."""

    gpu: int
    profile: str  # "1g.10gb+me"
    id: int
    free: int | None = None
    total: int | None = None
    memory_gib: float | None = None
    multiprocessors: int | None = None
    starts: tuple[int, ...] = ()  # memory slices at which one may begin
    size: int | None = None


class MigInstanceSeen(Fact, frozen=True, kw_only=True):
    """A line of `nvidia-smi mig -lgi` or `-lci`."""

    gpu: int
    profile: str
    profile_id: int
    gi: int
    ci: int | None = None  # None for a GPU instance
    start: int | None = None
    size: int | None = None
