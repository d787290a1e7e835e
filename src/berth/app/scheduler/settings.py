"""What can be configured of a scheduler, with the defaults."""

from __future__ import annotations

from msgspec import Struct

API_VERSION, KIND = "berth.dev/v1alpha1", "SchedulerConfiguration"


class Part(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of all parts: camelCase in the file."""


class Election(Part, frozen=True, forbid_unknown_fields=True):
    enabled: bool = True
    namespace: str = ""  # "" is the namespace that the scheduler runs in
    name: str = "berth"
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


class Clients(Part, frozen=True, forbid_unknown_fields=True):
    in_flight: int = 64


class Server(Part, frozen=True, forbid_unknown_fields=True):
    address: str = "0.0.0.0"
    port: int = 8090


class Preemption(Part, frozen=True, forbid_unknown_fields=True):
    enabled: bool = True
    beyond_budgets: bool = False


class LevelOf(Part, frozen=True, forbid_unknown_fields=True):
    name: str
    label: str


class TopologyOf(Part, frozen=True, forbid_unknown_fields=True):
    levels: tuple[LevelOf, ...] = ()


class Batch(Part, frozen=True, forbid_unknown_fields=True):
    window_ms: float = 5.0
    most_ms: float = 50.0


class NodeAgents(Part, frozen=True, forbid_unknown_fields=True):
    """`silent_seconds` without a heartbeat, and an agent counts as silent."""

    silent_seconds: float = 300.0


class Configuration(Part, frozen=True, forbid_unknown_fields=True):
    """Times in the unit of their name. `gpu_classes` is a mapping as `--gpu-classes` takes it, in line."""

    api_version: str = API_VERSION
    kind: str = KIND
    scheduler_names: tuple[str, ...] = ("berth",)
    leader_election: Election = Election()
    clients: Clients = Clients()
    server: Server = Server()
    preemption: Preemption = Preemption()
    topology: TopologyOf = TopologyOf()
    gpu_classes: str = ""
    batch: Batch = Batch()
    node_agents: NodeAgents = NodeAgents()
    log_level: str = "info"
    log_format: str = "json"
