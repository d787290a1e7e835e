"""The built-in cluster and its day: what is promised of them, and that they follow the published figures."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import pytest

from berth.model.gpus import gpu_class_of
from berth.model.reasons import Reason
from berth.model.resources import NVIDIA_GPU, get
from berth.scheduling.cycle import cycle
from berth.simulation import builtin, figures, jobs
from berth.simulation.day import gpus_of, kind_of
from berth.simulation.mistakes import mistakes
from berth.simulation.workday import builtin_day


@pytest.fixture(scope="module")
def day():
    return builtin_day(42)


def test_cluster_is_large_and_mixed():
    cluster = builtin.cluster()
    assert len(cluster.nodes) >= 500
    assert len({n.gpu_class for n in cluster.nodes} - {""}) == len(cluster.gpu_classes) == 8
    assert len({n.name for n in cluster.nodes}) == len(cluster.nodes)
    held_back = [n for n in cluster.nodes if n.cordoned or not n.ready or n.health]
    assert 5 <= len(held_back) <= 25
    assert {n.name for n in held_back} == builtin.CORDONED | builtin.NOT_READY | builtin.UNFIT


def test_labels_tell_the_class():
    cluster = builtin.cluster()
    for node in cluster.nodes:
        found = gpu_class_of(node.labels, node.allocatable)
        assert (found.name if found else "") == node.gpu_class
        assert get(node.capacity, NVIDIA_GPU) == len(node.devices)
        assert get(node.allocatable, NVIDIA_GPU) == sum(not d.health for d in node.devices)


def test_racks_nest_in_blocks_and_blocks_in_zones():
    parents: dict[tuple[str, str], set[str]] = {}
    for node in builtin.cluster().nodes:
        zone, block = node.labels[builtin.ZONE_LABEL], node.labels[builtin.BLOCK_LABEL]
        parents.setdefault(("block", block), set()).add(zone)
        parents.setdefault(("class", block), set()).add(node.gpu_class)
    assert all(len(above) == 1 for above in parents.values())


def test_same_seed_same_day(day):
    assert builtin_day(42) == day
    assert builtin_day(43) != day


def test_arrivals_are_in_order_and_names_unique(day):
    created = [w.created_s for w in day.workloads]
    assert created == sorted(created)
    assert max(created) < day.length_s
    assert len({w.key for w in day.workloads}) == len(day.workloads)
    assert len(day.runs_s) == len(day.workloads)
    assert min(day.runs_s) > 0


def test_queues_of_all_workloads_exist(day):
    assert {w.queue for w in day.workloads} <= {q.name for q in day.cluster.queues}


def test_pod_classes_are_few_and_shared(day):
    classes = {id(s.pod_class): s.pod_class for w in day.workloads for s in w.pod_sets}
    assert len(classes) == len(set(classes.values())) < 200


def test_every_kind_occurs(day):
    kinds = Counter(kind_of(w) for w in day.workloads)
    assert min(kinds.values()) > 50
    assert any(w.pod_sets[0].topology for w in day.workloads)
    sizes = Counter(gpus_of(w) for w in day.workloads if w.kind == "PyTorchJob")
    assert {16, 32, 64} <= set(sizes)


def test_kinds_of_pods_are_as_frequent_as_in_openb(day):
    pods: Counter[str] = Counter()
    for workload in day.workloads:
        for pod_set in workload.pod_sets if workload.created_s >= 0 else ():
            gpus, milli = get(pod_set.pod_class.requests, NVIDIA_GPU), pod_set.pod_class.gpu_milli
            pods["none" if not gpus else "share" if milli < 1000 else "one" if gpus == 1 else "several"] += (
                pod_set.count
            )
    shares = {kind: n / pods.total() for kind, n in pods.items()}
    assert shares["none"] == pytest.approx(figures.CPU_ONLY_SHARE, abs=0.03)
    assert shares["share"] == pytest.approx(figures.FRACTION_SHARE, abs=0.03)
    assert shares["one"] == pytest.approx(figures.ONE_GPU_SHARE, abs=0.03)
    assert figures.SEVERAL_GPUS_SHARE < shares["several"] < 1 - figures.GPUS_ITP[1]


def test_demand_is_yesterdays_share(day):
    demand = day.cluster.demand
    assert len(demand.classes) == len(demand.shares)
    assert sum(demand.shares) == pytest.approx(1)
    assert list(demand.shares) == sorted(demand.shares, reverse=True)


def test_durations_follow_their_percentiles():
    rng = np.random.Generator(np.random.PCG64(1))
    drawn = [jobs.from_percentiles(rng, figures.FRACTION_DURATIONS) for _ in range(20_000)]
    measured = np.percentile(drawn, (25, 50, 75, 90))
    assert measured == pytest.approx(figures.FRACTION_DURATIONS[1:5], rel=0.1)
    assert max(drawn) <= jobs.LONGEST_S


def test_arrivals_swing_between_day_and_night():
    rng = np.random.Generator(np.random.PCG64(1))
    times = jobs.times_of_day(rng, 200_000)
    assert (np.diff(times) >= 0).all()
    by_hour = np.bincount((times // 3600).astype(int), minlength=24)
    assert by_hour.max() / by_hour.min() == pytest.approx(figures.PEAK_OVER_TROUGH, rel=0.1)
    assert abs(int(by_hour.argmax()) + 0.5 - figures.BUSIEST_HOUR) <= 1.5


def test_sizes_are_between_the_two_published_ones():
    """Half of the jobs follow Philly, half ITP: the share of one-GPU jobs lies between theirs."""
    drawn = [a.workload for day in range(-3, 1) for a in jobs.jobs(np.random.Generator(np.random.PCG64(day + 9)), day)]
    whole = [gpus_of(w) for w in drawn if w.pod_sets[0].name in ("main", "worker") and gpus_of(w) >= 1]
    share = sum(g == 1 for g in whole) / len(whole)
    assert figures.GPUS_ITP[1] < share < figures.GPUS_PHILLY[1]


SAID = {
    "pretrain-one-rack": Reason.TopologyTooSmall,
    "pretrain-superpod": Reason.UnknownTopologyLevel,
    "train-16-in-one": Reason.LargerThanNode,
    "train-eight-t4": Reason.LargerThanNode,
    "pretrain-b200": Reason.ClassUnavailable,
    "notebook-180g": Reason.ClassUnavailable,
    "eval-zone-3": Reason.NoNodeMatches,
    "finetune-typo": Reason.MisspeltResource,
    "debug-rack-5": Reason.NodesHeldBack,
    "eval-h200": Reason.NotTolerated,
    "sweep-96": Reason.LargerThanLimit,
    "waits-for-approval": Reason.Gated,
    "pretrain-missing-pod": Reason.WaitingForGang,
    "preprocess-62-cores": None,
    "render-one-rack": None,
    "sweep-60": None,
}


def test_each_mistake_is_told_by_its_reason():
    """On the empty cluster, so that nothing but the mistake keeps them waiting."""
    workloads = tuple(a.workload for a in mistakes())
    plan = cycle(msgspec.structs.replace(builtin.cluster(), workloads=workloads))
    said = {w.name: plan.verdicts[i].reason if i in plan.verdicts else None for i, w in enumerate(workloads)}
    assert said == SAID
