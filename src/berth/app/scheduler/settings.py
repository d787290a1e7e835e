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


class Shares(Part, frozen=True, forbid_unknown_fields=True):
    """Whether queues take back what they are due, how much the past counts, and in what time half of it is forgotten
    (0: never)."""

    reclaim: bool = True
    usage_weight: float = 1.0
    usage_half_life_hours: float = 168.0


class Order(Part, frozen=True, forbid_unknown_fields=True):
    """Who goes first within a queue, at equal priority: who came first (`age`), or who has least left to do
    (`least-left`); then who runs and saves its work may be set aside for who has less left."""

    by: str = "age"
    sets_aside: bool = False
    stop_wait_seconds: float = 1000.0  # for which those who should run wait, in all, for each that is set aside
    aging: float = 0.02  # of what is left to do, for each 10^6 s of age


class Defragmentation(Part, frozen=True, forbid_unknown_fields=True):
    """Moves of work that saves what it does, where what is free is scattered; 0 GPU hours: none."""

    gpu_hours_per_day: float = 0.0
    days: tuple[str, ...] = ()  # Mon to Sun; () for all
    start: str = ""  # 02:00, by the clock on the wall of time_zone; "" for midnight
    end: str = ""
    time_zone: str = "UTC"


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
    shares: Shares = Shares()
    order: Order = Order()
    defragmentation: Defragmentation = Defragmentation()
    topology: TopologyOf = TopologyOf()
    gpu_classes: str = ""
    batch: Batch = Batch()
    node_agents: NodeAgents = NodeAgents()
    log_level: str = "info"
    log_format: str = "json"
