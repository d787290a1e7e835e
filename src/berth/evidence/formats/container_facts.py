"""What container runtimes are configured to do, whichever of them, and in whichever version of its format."""

from __future__ import annotations

from msgspec import Struct

from berth.evidence.fact import Fact

# containerd's three spellings of one thing: the table of its CRI plugin, by version of the configuration.
V1_TABLE = "cri"
V2_TABLE = "io.containerd.grpc.v1.cri"
V3_TABLE = "io.containerd.cri.v1.runtime"
TABLE_OF_VERSION = {1: V1_TABLE, 2: V2_TABLE, 3: V3_TABLE, 4: V3_TABLE}


class Handler(Struct, frozen=True, gc=False):
    """One runtime that a pod may name by its RuntimeClass. What was not printed is empty or None."""

    name: str
    runtime_type: str = ""  # "io.containerd.runc.v2"; for CRI-O "oci" or "vm"
    binary: str = ""  # BinaryName, runtime_path, path
    systemd_cgroup: bool | None = None
    shadow: str = ""  # another program under the same key in another spelling: which one counts is left to chance

    @property
    def is_nvidia(self) -> bool:
        return "nvidia" in self.name or "nvidia-container-runtime" in self.binary


class RuntimeConfig(Fact, frozen=True, kw_only=True):
    """The configuration of containerd, CRI-O or Docker: a whole file, a drop-in, a dump, or the lines that somebody
    quoted. What was not printed is empty or None."""

    engine: str  # "containerd", "cri-o", "docker"
    path: str = ""  # of the file, where the text or its source names it
    version: int = 0  # of the format; 0 where it does not say
    tables: tuple[str, ...] = ()  # of the CRI plugin that occur: V1_TABLE, V2_TABLE, V3_TABLE
    handlers: tuple[Handler, ...] = ()
    default_handler: str = ""
    enable_cdi: bool | None = None
    cdi_dirs: tuple[str, ...] | None = None
    imports: tuple[str, ...] = ()
    disabled_plugins: tuple[str, ...] = ()
    cgroup_driver: str = ""  # "systemd", "cgroupfs": of CRI-O and Docker
    hooks_dirs: tuple[str, ...] | None = None  # of CRI-O
    is_template: bool = False
    is_in_effect: bool = False  # what the daemon itself answers: crictl info, `containerd config dump`
    problem: str = ""  # of a whole file: why it cannot be read at all
    is_whole: bool = False  # it parses, and begins as a file does: what it does not hold is not there

    def handler(self, name: str) -> Handler | None:
        return next((one for one in self.handlers if one.name == name), None)

    @property
    def nvidia_handlers(self) -> tuple[Handler, ...]:
        return tuple(one for one in self.handlers if one.is_nvidia)


class ToolkitConfig(Fact, frozen=True, kw_only=True):
    """config.toml of the NVIDIA container runtime, as a file or as its installer prints it."""

    path: str = ""
    mode: str = ""  # auto, legacy, cdi, jit-cdi, csv
    driver_root: str = ""
    ldconfig: str = ""
    no_cgroups: bool | None = None
    accepts_volume_mounts: bool | None = None
    accepts_environment_unprivileged: bool | None = None
    disables_requirements: bool | None = None
    low_level_runtimes: tuple[str, ...] = ()
    cdi_default_kind: str = ""
    cdi_annotation_prefixes: tuple[str, ...] = ()
    cdi_dirs: tuple[str, ...] = ()


class CdiDevice(Struct, frozen=True, gc=False):
    name: str
    nodes: tuple[str, ...] = ()  # device nodes, as the container sees them


class CdiSpec(Fact, frozen=True, kw_only=True):
    """A CDI specification: which device names there are and what each adds to a container."""

    kind: str  # "nvidia.com/gpu"
    version: str = ""  # "0.5.0"
    path: str = ""
    devices: tuple[CdiDevice, ...] = ()
    nodes: tuple[str, ...] = ()  # added whichever device is asked for
    mounts: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()  # programs that run
    environment: tuple[str, ...] = ()
    driver: str = ""  # version, as the names of libraries or the hooks' arguments say
    is_broken: bool = False  # a file of a specification that no parser takes: what is said here is of its lines

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.kind}={device.name}" for device in self.devices)

    @property
    def all_nodes(self) -> tuple[str, ...]:
        return (*self.nodes, *(node for device in self.devices for node in device.nodes))


class CdiListed(Fact, frozen=True, kw_only=True):
    """Device names that a tool found: `nvidia-ctk cdi list`, `docker info`. None found is an answer as well."""

    names: tuple[str, ...]
