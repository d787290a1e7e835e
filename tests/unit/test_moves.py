"""The packing experiment with moves: sliced equals whole, the budget holds, and the replay checks every change."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from berth.scheduling.policy import Policy
from berth.simulation import moves, own
from berth.simulation.inflation import offer, prepare
from berth.simulation.offer import Changes, Placements
from berth.simulation.packing import run
from berth.simulation.replay import BrokenPlacement, measure
from berth.simulation.tiny import TINY
from berth.sources.traces import read_trace

needs_data = pytest.mark.skipif(not os.environ.get("BERTH_DATA"), reason="BERTH_DATA is not set: no public traces")


def many(copies):
    """The smallest trace with more nodes and pods of the same kinds."""
    cluster, pods = TINY.cluster, TINY.pods
    nodes = {name: np.tile(getattr(cluster, name), copies) for name in ("cpu_milli", "memory_mib", "gpus", "model")}
    columns = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "spec")
    asked = {name: np.tile(getattr(pods, name), copies) for name in columns}
    return replace(
        TINY,
        cluster=replace(cluster, names=tuple(f"node-{i}" for i in range(3 * copies)), **nodes),
        pods=replace(pods, names=tuple(f"pod-{i}" for i in range(5 * copies)), **asked),
    )


@pytest.fixture(scope="module")
def offered():
    return offer(prepare(many(6)), 1)


def same(some, others):
    return np.array_equal(some.node, others.node) and np.array_equal(some.gpus, others.gpus)


@pytest.mark.parametrize("arrivals", [1, 7, 100])
@pytest.mark.parametrize("learn", [False, True])
def test_slices_without_moves_are_one_cycle(offered, arrivals, learn):
    policy = Policy(learn_arrivals=learn, refresh=10)
    sliced = moves.placements(offered, 0.0, policy, arrivals)
    assert same(sliced, own.placements(offered, policy))
    assert not len(sliced.changes.pod)


@needs_data
@pytest.mark.parametrize("learn", [False, True])
def test_slices_of_a_public_trace_are_one_cycle(learn):
    offered = offer(prepare(read_trace("openb:default")), 3)
    policy = Policy(learn_arrivals=learn)
    assert same(moves.placements(offered, 0.0, policy), own.placements(offered, policy))


@needs_data
def test_moves_on_a_public_trace_stay_within_one_percent_and_place_more():
    prepared = prepare(read_trace("openb:gpuspec33"))
    offered = offer(prepared, 3)
    one = run("berth+moves", moves.placements, "gpuspec33", offered)
    without = run("berth", own.placements, "gpuspec33", offered)
    assert 0 < one.moved_pct <= 1
    assert one.unallocated_gpu_pct["100"] < without.unallocated_gpu_pct["100"]
    assert within_budget(offered, moves.placements(offered), 1.0)


def within_budget(offered, placements, percent):
    """At each change, what was moved so far is at most so much of what was placed before it."""
    asked = (offered.classes.num_gpu * offered.classes.gpu_milli)[offered.class_of]
    runs = placements.node >= 0
    late = moved = 0
    changes = placements.changes
    for before, pod in zip(changes.before.tolist(), changes.pod.tolist(), strict=True):
        if runs[pod]:
            moved += int(asked[pod])
            placed = int(asked[:before][placements.node[:before] >= 0].sum()) + late
            if 100 * moved > percent * placed:
                return False
        else:
            late += int(asked[pod])
            runs[pod] = True
    return True


@pytest.mark.parametrize("seed", range(8))
def test_moves_are_legal_and_within_the_budget(seed):
    offered = offer(prepare(many(6)), seed)
    placed = moves.placements(offered, 10.0, arrivals=5)
    curves = measure(offered, placed)  # raises where a change is impossible
    assert within_budget(offered, placed, 10.0)
    assert curves.moved_milli <= 0.1 * curves.placed_milli
    changes = placed.changes
    assert all(a <= b for a, b in pairwise(changes.before.tolist()))
    saved = {int(p) for p in changes.pod if placed.node[p] < 0}
    assert curves.failed == int((placed.node < 0).sum()) - len(saved)
    again = moves.placements(offered, 10.0, arrivals=5)
    assert same(placed, again)
    assert all(np.array_equal(a, b) for a, b in zip(changes, again.changes, strict=True))


def change(before, pod, node, gpus):
    return Changes(*(np.array([x], np.int64) for x in (before, pod, node, gpus)))


@pytest.fixture
def two_pods():
    """A pod on one GPU of the first node of two GPUs, and one that was given nothing."""
    offered = offer(prepare(TINY), 0)
    whole = int(np.flatnonzero((offered.classes.num_gpu == 1) & (offered.classes.gpu_milli == 1000))[0])
    offered = replace(offered, class_of=np.array([whole, whole]))
    return offered, int(np.flatnonzero(offered.nodes.gpus == 2)[0])


@pytest.mark.parametrize(
    ("before", "pod", "gpus", "says"),
    [
        (1, 0, 0b01, "has less free"),  # its own device: it would have to leave before it comes
        (1, 0, 0b11, "another number of GPUs"),
        (1, 0, 0b100000, "does not exist"),
        (1, 1, 0b10, "has not arrived"),
        (3, 0, 0b10, "out of order"),
        (2, 1, 0b01, "has less free"),
    ],
)
def test_impossible_changes_are_refused(two_pods, before, pod, gpus, says):
    offered, n = two_pods
    placed = Placements(np.array([n, -1]), np.array([1, 0]), change(before, pod, n, gpus))
    with pytest.raises(BrokenPlacement, match=says):
        measure(offered, placed)


def test_a_move_frees_what_the_pod_held(two_pods):
    offered, n = two_pods
    placed = Placements(np.array([n, n]), np.array([1, 1]), change(1, 0, n, 2))
    curves = measure(offered, placed)
    assert (curves.failed, curves.placed_milli, curves.moved_milli) == (0, 2000, 1000)
    late = measure(offered, Placements(np.array([n, -1]), np.array([1, 0]), change(2, 1, n, 2)))
    assert (late.failed, late.placed_milli, late.moved_milli) == (0, 2000, 0)
