"""A small cluster and a day on it, to be watched: 32 nodes, 220 GPUs, five queues, from eight in the morning.

Who comes is partly drawn from a seed and partly written down, the same for every seed, so that a day always shows what
a scheduler is for: a gang that starts whole or not at all, work of lower priority that leaves for it, a node that fails
under it, a gang that waits for one rack while small work passes it, GPUs that are shared and cut, a queue that uses
what another leaves idle and gives it back, and requests that can never run, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from berth.base.units import GIB
from berth.model.cluster import Device, GpuClass, Node, Partition
from berth.model.gpus import gpu_class_of
from berth.model.jobs import NodeEvent
from berth.model.queue import ANY_CLASS, Queue
from berth.model.resources import CPU, MEMORY, MIG_PREFIX, NVIDIA_GPU, PODS, resources
from berth.model.snapshot import Snapshot
from berth.model.topology import HOST_LABEL, Level, Topology
from berth.model.workload import Capability, PodClass, PodSet, TopologyWish, Workload
from berth.simulation.jobs import JOB_PRIORITY, SERVICE_PRIORITY, SPARE_PRIORITY, Arrival, Names
from berth.simulation.queueing.arrivals import Offered, jobs_of

NAME = "builtin:harbour"
HOUR_S, DAY_S = 3600.0, 86_400.0
BEGINS_S = 8 * HOUR_S  # of the day
RESTART_S = 120.0
CHECKPOINT_S = 1800.0
URGENT = 500  # between jobs and services
SPARE_RUNTIME_S = 1200.0  # what has started computes at least so long before it leaves for others
FAILING, FAILS_S, BACK_S = "h100-06", 6.2 * HOUR_S, 8.0 * HOUR_S

RACK_LABEL = "topology.kubernetes.io/rack"
TOPOLOGY = Topology((Level("rack", RACK_LABEL),))
SLICE = "3g.40gb"
SLICES = 2  # of one GPU
SLICE_RESOURCE = f"{MIG_PREFIX}{SLICE}"


class Pool(NamedTuple):
    """Like nodes, so many to a rack."""

    name: str
    product: str
    nodes: int
    gpus: int  # of one node
    per_rack: int
    is_cut: bool = False  # into MIG partitions


POOLS = (
    Pool("h100", "NVIDIA-H100-80GB-HBM3", 12, 8, 4),
    Pool("a100", "NVIDIA-A100-SXM4-80GB", 10, 8, 5),
    Pool("l40s", "NVIDIA-L40S", 9, 4, 9),
    Pool("mig", "NVIDIA-A100-SXM4-80GB", 1, 8, 1, is_cut=True),
)
QUEUES = (
    Queue("llm", weight=4, quota=(("H100-80GB", 64),)),
    Queue("vision", weight=3, quota=(("A100-80GB", 56),)),
    Queue("serving", weight=3, quota=(("L40S-48GB", 36), ("A100-80GB", 12))),
    Queue("batch", weight=1, preemptible=True),
    Queue("interns", weight=1, limit=((ANY_CLASS, 16),)),
)

ANY = Capability()
H100, A100, L40S = (Capability(products=(name,)) for name in ("H100", "A100-80GB", "L40S"))
LARGE = Capability(memory_bytes=70 * GIB, link="nvlink")


def offered(seed: int = 42) -> Offered:
    """The cluster and its day. The same seed gives the same day."""
    rng = np.random.Generator(np.random.PCG64(seed))
    names = Names(0)
    arrivals = [*_running(rng, names), *_services(rng), *_drawn(rng, names), *_told(), *_mistakes()]
    arrivals.sort(key=lambda one: one.workload.created_s)  # stable: of one moment in the order in which they are made
    there, workloads = cluster(), tuple(one.workload for one in arrivals)
    fails = (NodeEvent(FAILS_S, FAILING, False), NodeEvent(BACK_S, FAILING, True))
    jobs = jobs_of(NAME, workloads, [one.runs_s for one in arrivals], there, RESTART_S, fails)
    return Offered(there, jobs, workloads, BEGINS_S, DAY_S)


def cluster() -> Snapshot:
    """The nodes with nothing on them, and the queues."""
    classes: dict[str, GpuClass] = {}
    nodes = []
    for pool in POOLS:
        found = gpu_class_of({"nvidia.com/gpu.product": pool.product})
        part = gpu_class_of({"nvidia.com/gpu.product": f"{pool.product}-MIG-{SLICE}"}) if pool.is_cut else None
        assert found is not None
        classes |= {one.name: one for one in (found, part) if one is not None}
        nodes += [_node(pool, i, found) for i in range(pool.nodes)]
    return Snapshot(nodes=tuple(nodes), gpu_classes=tuple(classes.values()), queues=QUEUES, topology=TOPOLOGY)


def _node(pool: Pool, i: int, gpu_class: GpuClass) -> Node:
    name = f"{pool.name}-{i + 1:02d}"
    gpus = {SLICE_RESOURCE: SLICES * pool.gpus} if pool.is_cut else {NVIDIA_GPU: pool.gpus}
    amounts = resources({CPU: 24_000 * pool.gpus, MEMORY: 240 * GIB * pool.gpus, PODS: 250, **gpus})
    cut = tuple(Partition(SLICE, SLICE_RESOURCE, 40 * GIB) for _ in range(SLICES)) if pool.is_cut else ()
    return Node(
        name=name,
        labels={HOST_LABEL: name, RACK_LABEL: f"{pool.name}-rack-{i // pool.per_rack + 1}"},
        allocatable=amounts,
        capacity=amounts,
        gpu_class=gpu_class.name,
        device_resource="" if pool.is_cut else NVIDIA_GPU,
        devices=tuple(
            Device(g, f"GPU-{name}-{g}", island=0 if gpu_class.link == "nvlink" else -1, partitions=cut)
            for g in range(pool.gpus)
        ),
        named_devices=not pool.is_cut,
    )


# ---- drawn


class Kind(NamedTuple):
    """Jobs of one queue that come over the day."""

    queue: str
    word: str
    jobs: int
    sizes: tuple[tuple[int, float], ...]  # (GPUs, share); beyond a node they are pods of eight
    least: Capability
    half_s: float  # half of them run no longer
    priority: int = JOB_PRIORITY


KINDS = (
    Kind("llm", "finetune", 26, ((4, 0.25), (8, 0.55), (16, 0.2)), H100, 2.2 * HOUR_S),
    Kind("vision", "train", 60, ((1, 0.25), (2, 0.25), (4, 0.25), (8, 0.25)), A100, 1.6 * HOUR_S),
    Kind("batch", "render", 170, ((1, 0.3), (2, 0.25), (4, 0.25), (8, 0.2)), ANY, 1.2 * HOUR_S, SPARE_PRIORITY),
    Kind("interns", "try", 40, ((1, 1.0),), ANY, 0.5 * HOUR_S, SPARE_PRIORITY),
)
NOTEBOOKS = 18  # on a partition each
LIMITS = (1.1, 1.5, 2.0, 3.0)  # what owners give, times what a job takes


def _drawn(rng: np.random.Generator, names: Names) -> Iterator[Arrival]:
    for kind in KINDS:
        for at in np.sort(rng.uniform(0.0, DAY_S, kind.jobs)):
            yield _job(rng, names, kind, float(at), 1.0)
    for at in np.sort(rng.uniform(0.5 * HOUR_S, 10 * HOUR_S, NOTEBOOKS)):
        runs_s = float(rng.uniform(1.0, 5.0)) * HOUR_S
        asked = PodClass(resources({CPU: 4000, MEMORY: 16 * GIB, SLICE_RESOURCE: 1}))
        yield _one(names.next("notebook"), "interns", float(at), runs_s, asked, runs_s * 1.5)


def _running(rng: np.random.Generator, names: Names) -> Iterator[Arrival]:
    """What began in the night and still runs at eight."""
    for kind, count in zip(KINDS, (5, 14, 26, 4), strict=True):
        for _ in range(count):
            yield _job(rng, names, kind, -float(rng.uniform(0.1, 3.0)) * HOUR_S, float(rng.uniform(0.3, 1.3)))


def _job(rng: np.random.Generator, names: Names, kind: Kind, at: float, part: float) -> Arrival:
    shares = np.array([share for _, share in kind.sizes])
    gpus = int(rng.choice([size for size, _ in kind.sizes], p=shares / shares.sum()))
    runs_s = float(np.clip(kind.half_s * rng.lognormal(0.0, 0.8) * part, 300.0, 10 * HOUR_S))
    limit_s = runs_s * float(rng.choice(LIMITS)) + RESTART_S
    name = names.next(kind.word)
    asked = whole(min(gpus, 8), kind.least)
    return _one(name, kind.queue, at, runs_s, asked, limit_s, kind.priority, pods=max(1, gpus // 8))


# ---- services: by day more of them than by night


class Service(NamedTuple):
    """Replicas that are always there, and those that come in the morning."""

    name: str
    base: int
    by_day: int
    asked: PodClass


def whole(gpus: int, least: Capability = ANY, milli: int = 1000) -> PodClass:
    """A pod of so many GPUs, or of a share of one, with what CPU and memory go with it."""
    size = gpus * milli / 1000
    amounts = {CPU: max(2000, int(16_000 * size)), MEMORY: max(8, int(160 * size)) * GIB, NVIDIA_GPU: gpus}
    return PodClass(resources(amounts), gpu_milli=milli, least=least)


SERVICES = (
    Service("chat", 8, 8, whole(1, L40S)),
    Service("voice", 10, 10, whole(1, L40S, 500)),
    Service("rank", 6, 6, whole(1, L40S, 250)),
    Service("embed", 6, 4, PodClass(resources({CPU: 3000, MEMORY: 12 * GIB, SLICE_RESOURCE: 1}))),
)


def _services(rng: np.random.Generator) -> Iterator[Arrival]:
    for service in SERVICES:
        for i in range(service.base + service.by_day):
            at, runs_s = -HOUR_S, 3 * DAY_S
            if i >= service.base:
                at, runs_s = float(rng.uniform(0.2, 2.5)) * HOUR_S, float(rng.uniform(8.0, 12.0)) * HOUR_S
            made = _one(f"{service.name}-{i + 1:02d}", "serving", at, runs_s, service.asked, 0.0, SERVICE_PRIORITY)
            yield made._replace(workload=_deployed(made.workload))


def _deployed(workload: Workload) -> Workload:
    from msgspec.structs import replace

    return replace(workload, kind="Deployment")


# ---- written down


def _told() -> Iterator[Arrival]:
    rack = (TopologyWish("rack"),)
    # Eight whole nodes at once: work of lower priority leaves, and it starts with all of its pods. At 14:12 one of its
    # nodes fails; it comes back whole, from its last checkpoint.
    yield _gang("pretrain-70b", "llm", 1.4, 11.0, 8, H100, priority=URGENT)
    # All of a rack; small work passes it as long as that delays it by nothing.
    yield _gang("train-one-rack", "vision", 3.1, 3.0, 5, A100, rack)
    # A sweep that fills what others leave idle in the evening, and gives it back in the morning.
    for i in range(1, 5):
        yield _one(f"sweep-{i}", "batch", 12.0 * HOUR_S, 9 * HOUR_S, whole(8), 11 * HOUR_S, SPARE_PRIORITY, pods=3)
    yield _gang("train-night", "vision", 15.5, 4.0, 4, A100)
    yield _gang("pretrain-7b", "llm", 17.0, 4.0, 4, H100, rack)


def _mistakes() -> Iterator[Arrival]:
    typo = PodClass(resources({CPU: 4000, MEMORY: 16 * GIB, "nvidia.com/gpus": 1}))
    yield _one("try-typo", "interns", 0.7 * HOUR_S, HOUR_S, typo, HOUR_S)
    yield _gang("render-b200", "batch", 2.6, 6.0, 4, Capability(products=("B200",)))
    yield _one("train-16-in-one", "vision", 9.0 * HOUR_S, HOUR_S, whole(16, A100), HOUR_S)
    yield _gang("render-5-in-a-rack", "batch", 12.6, 6.0, 5, H100, (TopologyWish("rack"),))


def _gang(
    name: str, queue: str, hour: float, hours: float, pods: int, least: Capability, wish: tuple[TopologyWish, ...] = (),
    priority: int = JOB_PRIORITY,
) -> Arrival:  # fmt: skip
    limit_s = 1.5 * hours * HOUR_S
    return _one(name, queue, hour * HOUR_S, hours * HOUR_S, whole(8, least), limit_s, priority, pods, wish)


def _one(
    name: str,
    queue: str,
    at: float,
    runs_s: float,
    asked: PodClass,
    limit_s: float,
    priority: int = JOB_PRIORITY,
    pods: int = 1,
    wish: tuple[TopologyWish, ...] = (),
) -> Arrival:
    workload = Workload(
        name=name,
        pod_sets=(PodSet("worker", asked, pods, pods, wish),),
        namespace=queue,
        kind="PyTorchJob" if pods > 1 else "Job",
        queue=queue,
        priority=priority,
        created_s=round(at, 1),
        time_limit_s=round(limit_s, 1),
        checkpoint_every_s=CHECKPOINT_S,
        min_runtime_s=SPARE_RUNTIME_S if priority == SPARE_PRIORITY else 0.0,
        preemptible=False if priority == SERVICE_PRIORITY else None,
    )
    return Arrival(workload, round(runs_s, 1))
