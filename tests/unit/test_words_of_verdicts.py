"""Words of verdicts that stand for themselves: what is not capitalised, what is said once, what would help."""

from __future__ import annotations

import pytest

from berth.base.units import capital
from berth.model.cluster import Node
from berth.model.reasons import Answer
from berth.model.snapshot import Snapshot
from berth.model.topology import Level, Topology
from berth.model.workload import PodClass, PodSet, TopologyWish, Workload
from berth.scheduling.admission import not_ready
from berth.scheduling.cycle import cycle

HAS = (("cpu", 64_000), ("memory", 2**40), ("nvidia.com/gpu", 8), ("pods", 110))
GPU = PodClass(requests=(("nvidia.com/gpu", 1),))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("no node has it", "No node has it"),
        ('metadata.annotations["k"] is "lots"', 'metadata.annotations["k"] is "lots"'),
        ("containers[0] is wrong", "containers[0] is wrong"),
        ("node-0 has room", "node-0 has room"),
        ("8 GPUs asked for", "8 GPUs asked for"),
        ("", ""),
    ],
)
def test_names_and_fields_keep_their_letters(words: str, said: str) -> None:
    assert capital(words) == said


@pytest.mark.parametrize(
    ("problem", "unlock"),
    [
        ('metadata.annotations["berth.dev/gpu-memory"] is "lots": not an amount. Write 80Gi, for example.',
         "a value such as 80Gi"),
        ('metadata.annotations["berth.dev/gpu-link"] is "x": it is nvlink or any.', "a value that can be read"),
        ("spec.containers is empty: a pod has one container at least.", "a request that Kubernetes allows"),
    ],
)  # fmt: skip
def test_what_would_help_is_what_can_be_written(problem: str, unlock: str) -> None:
    cause = not_ready(Workload("train", (PodSet("pods", PodClass(problems=(problem,))),)))
    assert cause is not None and cause.unlock == (unlock,)


def said_of(wish: str, topology: Topology) -> tuple[list[str], str]:
    nodes = tuple(Node(f"n{i}", allocatable=HAS) for i in range(2))
    sets = tuple(PodSet(name, GPU, 1, 1) for name in ("master", "worker", "evaluator"))
    workload = Workload("llm", sets, topology=(TopologyWish(wish),))
    (verdict,) = cycle(Snapshot(nodes, workloads=(workload,), topology=topology)).verdicts.values()
    assert verdict.answer is Answer.Never
    return [cause.sentence for cause in verdict.causes], verdict.causes[0].unlock[0]


def test_a_level_that_is_not_known_is_said_once_and_nobody_is_told_to_label_nodes_with_its_name() -> None:
    assert said_of("rack", Topology()) == (
        ["no node carries the level rack; levels known: none"],
        "a GPUTopology, or --topology, that names the label of rack",
    )
    assert said_of("rack", Topology((Level("rack", "example.com/rak"),))) == (
        ["no node carries the label example.com/rak of the level rack; levels known: none"],
        "nodes with the label example.com/rak, or a level whose label they carry",
    )
