"""Workloads of the built-in day that wait for a reason worth telling: mostly requests that people get wrong.

None is drawn: they are the same whatever the seed, so that the day's report always shows what a verdict says.
Each was seen in public issue trackers of schedulers in one form or another.
"""

from __future__ import annotations

from collections.abc import Iterator

from berth.base.units import GIB
from berth.model.resources import CPU, MEMORY, resources
from berth.model.workload import Capability, PodClass, PodSet, TopologyWish, Workload
from berth.simulation.asks import HOPPER, pod_class
from berth.simulation.builtin import BLOCK_LABEL, DEDICATED, RACK_LABEL, ZONE_LABEL
from berth.simulation.figures import SEVERAL
from berth.simulation.jobs import JOB_PRIORITY, Arrival

RUNS_S = 6 * 3600.0


def mistakes() -> Iterator[Arrival]:
    """One workload for each mistake, spread over the day."""
    cpu, memory = SEVERAL[8]
    whole_node = pod_class(cpu, memory, 8, least=HOPPER)

    # 64 GPUs in one rack; a rack of these holds 32.
    rack = (TopologyWish("rack"),)
    yield _one(2.0, "llm", "pretrain-one-rack", PodSet("worker", whole_node, 8, 8, rack), "PyTorchJob")
    # A level that no node is labelled with.
    pod = (TopologyWish("superpod"),)
    yield _one(3.2, "vision", "pretrain-superpod", PodSet("worker", whole_node, 2, 2, pod), "PyTorchJob")
    # 16 GPUs in one pod: two pods of eight were meant.
    yield _one(5.1, "speech", "train-16-in-one", PodSet("main", pod_class(cpu, memory, 16)))
    # Eight T4 in one pod; the largest T4 node has four.
    t4 = Capability(products=("T4",))
    yield _one(6.3, "ads", "train-eight-t4", PodSet("main", pod_class(32000, 131072, 8, least=t4)))
    # A product that the cluster does not have.
    b200 = pod_class(cpu, memory, 8, least=Capability(products=("B200",)))
    yield _one(8.4, "frontier", "pretrain-b200", PodSet("worker", b200, 8, 8), "PyTorchJob")
    # More memory than any GPU has.
    vast = Capability(memory_bytes=180 * GIB)
    yield _one(9.0, "interns", "notebook-180g", PodSet("main", pod_class(8000, 30517, 1, least=vast)))
    # A zone that is not there.
    elsewhere = pod_class(11400, 48128, 1, node_selector=((ZONE_LABEL, "zone-3"),))
    yield _one(9.5, "batch", "eval-zone-3", PodSet("main", elsewhere))
    # One letter too many.
    amounts = {CPU: 8000, MEMORY: 30 * GIB, "nvidia.com/gpus": 1}
    yield _one(10.2, "interns", "finetune-typo", PodSet("main", PodClass(resources(amounts))))
    # Pinned to the rack that is being upgraded.
    block = (BLOCK_LABEL, "h200-block-2")
    pinned = pod_class(cpu, memory, 8, tolerated=DEDICATED, node_selector=(block, (RACK_LABEL, "rack-5")))
    yield _one(11.0, "frontier", "debug-rack-5", PodSet("main", pinned))
    # The dedicated block, without its toleration.
    h200 = pod_class(11400, 48128, 1, node_selector=(block,))
    yield _one(12.0, "vision", "eval-h200", PodSet("main", h200))
    # More than the queue may ever use at once.
    one = pod_class(8000, 30517, 1)
    yield _one(13.0, "interns", "sweep-96", PodSet("worker", one, 96, 96), "RayJob")
    # A gate that nobody opens, and a gang of which one pod was never created.
    gated = _one(15.0, "batch", "waits-for-approval", PodSet("main", one))
    yield Arrival(_with(gated.workload, gates=("example.com/approval",)), gated.runs_s)
    partial = _one(16.0, "vision", "pretrain-missing-pod", PodSet("worker", whole_node, 4, 4), "MPIJob")
    yield Arrival(_with(partial.workload, missing_pods=1), partial.runs_s)

    # Three that are in order, and that only an empty cluster has room for: nodes whose GPUs and CPU are
    # free at once, a rack with room for nearly a rack, a queue that uses nothing else.
    greedy = pod_class(62_000, 65536, 1, least=Capability(products=("V100",)))
    yield _one(14.0, "speech", "preprocess-62-cores", PodSet("main", greedy, 4, 4), "MPIJob")
    halves = pod_class(32000, 131072, 4, least=Capability(products=("L40S",)))
    yield _one(17.0, "batch", "render-one-rack", PodSet("worker", halves, 13, 13, rack), "RayJob")
    yield _one(20.0, "interns", "sweep-60", PodSet("worker", one, 60, 60), "RayJob")


def _one(hour: float, team: str, name: str, pod_set: PodSet, kind: str = "Job") -> Arrival:
    workload = Workload(
        name=name,
        pod_sets=(pod_set,),
        namespace=team,
        kind=kind,
        queue=team,
        priority=JOB_PRIORITY,
        created_s=hour * 3600,
    )
    return Arrival(workload, RUNS_S)


def _with(workload: Workload, gates: tuple[str, ...] = (), missing_pods: int = 0) -> Workload:
    return Workload(
        name=workload.name,
        pod_sets=workload.pod_sets,
        namespace=workload.namespace,
        kind=workload.kind,
        queue=workload.queue,
        priority=workload.priority,
        created_s=workload.created_s,
        gates=gates,
        missing_pods=missing_pods,
    )
