"""What can be configured of the node agent, with the defaults."""

from __future__ import annotations

from berth.app.scheduler.settings import Part

API_VERSION, KIND = "berth.dev/v1alpha1", "AgentConfiguration"


class Paths(Part, frozen=True, forbid_unknown_fields=True):
    """Where the machine's files are as this process reaches them; "" is the usual place below `root`."""

    root: str = "/host"
    kubelet: str = ""
    device_plugins: str = ""
    logs: str = ""
    run: str = ""
    proc: str = ""


class Looks(Part, frozen=True, forbid_unknown_fields=True):
    seconds: float = 30.0  # between two looks
    socket_seconds: float = 3.0  # how long the kubelet or a device plugin may take for an answer
    containers: bool = True  # which GPUs containers reach: by their control groups, environment and open files
    list_plugins: bool = False  # ask device plugins for their lists, too: see node/plugins.py
    log_window_seconds: float = 3600.0  # older sentences of the kernel count only where they latch


class Writes(Part, frozen=True, forbid_unknown_fields=True):
    ledger: bool = True
    condition: bool = True
    events: bool = True
    taint: bool = False  # berth.dev/unfit on a node that is unfit
    cordon: bool = False
    heartbeat_seconds: float = 60.0
    queues: bool = True  # read the queue of a pod that holds a device off the pod


class Server(Part, frozen=True, forbid_unknown_fields=True):
    address: str = "0.0.0.0"
    port: int = 8091


class Configuration(Part, frozen=True, forbid_unknown_fields=True):
    """Times in the unit of their name. `node` is the name of the Node; "" is that of this machine."""

    api_version: str = API_VERSION
    kind: str = KIND
    node: str = ""
    paths: Paths = Paths()
    looks: Looks = Looks()
    writes: Writes = Writes()
    server: Server = Server()
    operand_namespaces: tuple[str, ...] = ("kube-system", "gpu-operator", "nvidia-gpu-operator", "nvidia-device-plugin")
    log_level: str = "info"
    log_format: str = "json"
