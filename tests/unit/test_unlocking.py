"""What somebody who asks is told would let a workload start: by node, proven, and nothing where nothing is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from berth.model.cluster import Allocation, Node
from berth.model.queue import Queue
from berth.model.reasons import Reason
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, Workload
from berth.scheduling import unlocking
from berth.scheduling.answer import what_if

GPU = "nvidia.com/gpu"


def pod(gpus, cpu=0, **more):
    return PodClass(resources({"cpu": cpu, GPU: gpus}), **more)


def cluster(used, gpus=8, cpu=64_000, queues=()):
    """A node n0, n1, … for each of `used`: the pods that run there, by the GPUs that each holds."""
    nodes = tuple(Node(f"n{i}", allocatable=resources({"cpu": cpu, "pods": 20, GPU: gpus})) for i in range(len(used)))
    running = tuple(
        Allocation(f"n{i}", "old", f"{i}-{k}", pod(held)) for i, here in enumerate(used) for k, held in enumerate(here)
    )
    return Snapshot(nodes, allocations=running, queues=tuple(queues))


def gang(*sets, **more):
    """Pods by set: (pods, GPUs of each)."""
    pod_sets = tuple(PodSet(f"set-{s}", pod(gpus), pods, pods) for s, (pods, gpus) in enumerate(sets))
    return Workload("train", pod_sets, **more)


def told(snapshot, workload):
    (answer,) = what_if(snapshot, [workload])
    assert answer.verdict.causes, "it fits"
    return answer.verdict.causes[0].unlock


@pytest.mark.parametrize(
    ("used", "sets", "lines"),
    [
        pytest.param([[4], [], [6], []], [(3, 8)], ("4 more GPUs released on n0",), id="one pod of a gang lacks"),
        pytest.param([[6], [3]], [(1, 8)], ("3 more GPUs released on n1",), id="one pod"),
        pytest.param([[4], [6], [5]], [(2, 8)], ("4 more GPUs released on n0 and 5 on n2",), id="two pods lack"),
        pytest.param([[4], [], [6], []], [(1, 8), (2, 8)], ("4 more GPUs released on n0",), id="sets of like pods"),
        pytest.param([[], [4]], [(1, 8), (2, 4)], ("4 more GPUs released on n1",), id="sets of unlike pods"),
        pytest.param([[4, 4], [1]], [(9, 1)], ("2 more GPUs released",), id="pods of one GPU: whichever they are"),
        pytest.param([[3, 3], [1, 7]], [(2, 3)], ("4 more GPUs released on n0",), id="not what lacks in all"),
    ],
)  # fmt: skip
def test_what_is_told_is_by_the_shape_of_the_pods(used, sets, lines):
    assert told(cluster(used), gang(*sets)) == lines


def test_a_move_of_a_gang_is_told_where_it_starts_then():
    # n0 has to be freed, and its pod finds room on n2, which the gang does not need then.
    lines = told(cluster([[4], [], [4], [6]]), gang((2, 8)))
    assert lines[0] == "moving 4 GPUs frees n0"


def test_a_move_to_where_the_gang_has_to_be_is_not_told():
    # Three pods of five need every node: whoever moves off one takes what another has to give.
    lines = told(cluster([[3], [3], [2, 2]]), gang((3, 5)))
    assert lines == ("1 more GPU released on n2",)


def test_gpus_that_a_limit_keeps_from_it_are_not_told():
    # With eight more its queue would hold twelve.
    snapshot = cluster([[8], [4]], queues=[Queue("q", limit=(("*", 8),))])
    full = Allocation("n1", "old", "own", pod(4), queue="q")
    snapshot = replace(snapshot, allocations=(*snapshot.allocations, full))
    assert told(replace(snapshot, queues=()), gang((1, 8))) == ("8 more GPUs released on n0",)
    assert told(snapshot, gang((1, 8), queue="q")) == ()


def test_gpus_are_not_told_where_something_else_lacks():
    # All CPU of n0 is held by a pod without GPUs, so GPUs of n1 alone would help.
    snapshot = cluster([[2, 2], [8]], cpu=8_000)
    loader = Allocation("n0", "old", "loader", pod(0, 8_000))
    snapshot = replace(snapshot, allocations=(*snapshot.allocations, loader))
    assert told(snapshot, Workload("train", (PodSet("pods", pod(8, 1_000), 1, 1),))) == ("8 more GPUs released on n1",)


def test_what_cannot_be_proven_is_not_told(monkeypatch):
    monkeypatch.setattr(unlocking._Asked, "starts", lambda *_: False)
    (answer,) = what_if(cluster([[6], [3]]), [gang((1, 8))])
    assert answer.verdict.reason is Reason.NotEnoughGpus and answer.verdict.causes[0].unlock == ()
