"""Of scenarios drawn at random: plans hold against reality, sentences read well, and *never* means never."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.model.cluster import Allocation, Health
from berth.model.reasons import Answer, Reason, Verdict
from berth.model.snapshot import Snapshot
from berth.model.workload import PodSet, Workload
from berth.scheduling.answer import what_if
from berth.scheduling.cycle import cycle

from .judging import against_plain_english, against_reality
from .reading import level_named, scenario_of

RACKS = ("r0", "r1", "r2")
# Rules about other pods are told as they are now: whether they could ever be kept is not asked.
ABOUT_PODS = {Reason.PodsInTheWay}


@st.composite
def groups(draw: st.DrawFn) -> dict[str, Any]:
    gpus = draw(st.sampled_from([0, 1, 2, 4, 8]))
    nodes = draw(st.integers(1, 3))
    group: dict[str, Any] = {
        "nodes": nodes,
        "gpus": gpus,
        "class": draw(st.sampled_from(["H100-80GB", "A100-80GB", "T4-16GB"])),
        "cpu": draw(st.sampled_from([8, 64])),
        "rack": draw(st.sampled_from(RACKS)),
    }
    cut = draw(st.sampled_from(["whole", "whole", "whole", "mig", "shared"]))
    if gpus and cut == "mig" and group["class"] != "T4-16GB":
        group["mig"] = {"1g.10gb": 7}
    elif gpus and cut == "shared":
        group["shared"] = 4
    elif gpus:
        group["used"] = [draw(st.integers(0, gpus)) for _ in range(nodes)]
        group["islands"] = draw(st.sampled_from([1, 1, 2])) if gpus > 1 else 1
    held = draw(st.sampled_from(["", "", "", "cordoned", "notReady", "unfit"]))
    if held:
        group[held] = [draw(st.integers(0, nodes - 1))]
    if draw(st.integers(0, 5)) == 0:
        group["taints"] = ["dedicated=ml:NoSchedule"]
    return group


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["gpus", "gpus", "gpus", "gpus", "fraction", "cpu", "mig", "shared"]))
    pod: dict[str, Any] = {}
    if kind == "gpus":
        pod["gpus"] = draw(st.sampled_from([1, 2, 3, 4, 8]))
    elif kind == "fraction":
        pod["fraction"] = draw(st.sampled_from([0.25, 0.5, 0.7]))
    elif kind == "mig":
        pod["ask"] = {"nvidia.com/mig-1g.10gb": draw(st.integers(1, 8))}
    elif kind == "shared":
        pod["ask"] = {"nvidia.com/gpu.shared": draw(st.integers(1, 4))}
    if kind == "cpu" or draw(st.booleans()):
        pod["cpu"] = draw(st.sampled_from([1, 4, 16, 100]))
    if kind == "gpus" and draw(st.integers(0, 3)) == 0:
        pod["needs"] = draw(st.sampled_from([{"memory": "40Gi"}, {"product": "H100"}, {"link": "nvlink"}]))
    return pod


@st.composite
def workloads(draw: st.DrawFn, name: str) -> dict[str, Any]:
    workload: dict[str, Any] = {"name": name, "waiting": draw(st.integers(0, 3)), "priority": draw(st.integers(0, 1))}
    if draw(st.integers(0, 3)) == 0:
        workload["sets"] = [
            {**draw(pods()), "name": f"set-{s}", "pods": draw(st.integers(1, 3))}
            for s in range(draw(st.integers(2, 3)))
        ]
    else:
        workload |= draw(pods())
        workload["pods"] = draw(st.integers(1, 5))
        if draw(st.booleans()):
            workload["minimum"] = draw(st.integers(1, workload["pods"]))
        if draw(st.integers(0, 4)) == 0:
            workload["slices"] = {"pods": draw(st.integers(1, 2)), "inOne": "rack"}
    if draw(st.integers(0, 2)) == 0 and "slices" not in workload:
        workload[draw(st.sampled_from(["inOne", "ratherInOne"]))] = draw(st.sampled_from(["rack", "rack", "node"]))
    if draw(st.integers(0, 3)) == 0:
        workload["queue"] = "team"
    return workload


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "name": "drawn",
        "topology": ["rack"],
        "cluster": draw(st.lists(groups(), min_size=1, max_size=3)),
        "queues": [{"name": "team", **draw(st.sampled_from([{}, {"limit": 4}, {"limit": {"H100-80GB": 2}}]))}],
        "submit": [draw(workloads(f"job-{w}")) for w in range(draw(st.integers(1, 4)))],
        "expect": {},
    }


def as_built(snapshot: Snapshot, w: int) -> Snapshot:
    """The cluster with nothing running, all nodes in service, and one workload that is ready."""
    nodes = tuple(replace(n, cordoned=False, ready=True, health=Health.Fit) for n in snapshot.nodes)
    ready = replace(snapshot.workloads[w], gates=(), missing_pods=0)
    return replace(snapshot, nodes=nodes, allocations=(), workloads=(ready,))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(scenarios())
def test_drawn(written: dict[str, Any]) -> None:
    snapshot = scenario_of(written, "drawn").snapshot
    plan = cycle(snapshot)
    found = against_reality(snapshot, plan)
    for w, verdict in plan.verdicts.items():
        found += against_plain_english(verdict)
        if any(c.reason in ABOUT_PODS or not c.proven for c in verdict.causes):
            continue
        ever = len(cycle(as_built(snapshot, w)).placed) > 0
        if ever and verdict.answer is Answer.Never:
            found.append(f"{verdict.workload} is told it never fits, and the empty cluster holds it: {verdict.message}")
        if not ever and verdict.answer is Answer.NotYet:
            found.append(
                f"{verdict.workload} is told it waits, and even the empty cluster has no place: {verdict.message}"
            )
    assert not found, "\n".join(found)


MOVING = re.compile(r"moving ([\d.]+) GPUs? frees (\S+)")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(scenarios())
def test_what_would_help_helps(written: dict[str, Any]) -> None:
    """A workload alone, that is told which nodes, GPUs or moves would help, is placed once that is done."""
    drawn = scenario_of(written, "drawn").snapshot
    snapshot = replace(drawn, workloads=drawn.workloads[:1])
    plan = cycle(snapshot)
    if 0 not in plan.verdicts:
        return
    verdict = plan.verdicts[0]
    first = verdict.causes[0]
    if len(verdict.causes) == 1 and first.reason is Reason.NodesHeldBack:
        mended = tuple(replace(n, cordoned=False, ready=True, health=Health.Fit) for n in snapshot.nodes)
        assert len(cycle(replace(snapshot, nodes=mended)).placed), verdict.message
    _assert_unlocks(verdict, snapshot)


@st.composite
def crowded(draw: st.DrawFn) -> dict[str, Any]:
    """Plain nodes of one kind in two racks, nearly full, and one workload whose pods ask for several GPUs."""
    gpus = draw(st.sampled_from([2, 4, 8]))
    nodes = [
        {"gpus": gpus, "rack": draw(st.sampled_from(RACKS[:2])), "cpu": draw(st.sampled_from([8, 64])),
         "used": draw(st.integers(0, gpus)), "name": f"n{n}"}
        for n in range(draw(st.integers(1, 5)))
    ]  # fmt: skip
    job: dict[str, Any] = {"name": "job", "cpu": draw(st.sampled_from([0, 0, 1, 4]))}
    sizes = [g for g in (1, 2, 3, 5, 8) if g <= gpus]
    if draw(st.booleans()):
        job |= {"pods": draw(st.integers(1, 4)), "gpus": draw(st.sampled_from(sizes))}
    else:
        one = draw(st.sampled_from(sizes))
        job["sets"] = [
            {"name": f"set-{s}", "pods": draw(st.integers(1, 2)), "gpus": draw(st.sampled_from([one, *sizes]))}
            for s in range(2)
        ]
    if draw(st.integers(0, 2)) == 0:
        job["inOne"] = draw(st.sampled_from(["rack", "rack", "node"]))
    return {"name": "drawn", "topology": ["rack"], "cluster": nodes, "submit": [job], "expect": {}}


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(crowded())
def test_what_would_help_on_a_crowded_cluster_helps(written: dict[str, Any]) -> None:
    """Both what a cycle says, and what somebody is told who asks."""
    snapshot = scenario_of(written, "drawn").snapshot
    plan = cycle(snapshot)
    (asked,) = what_if(replace(snapshot, workloads=()), snapshot.workloads)
    for verdict in (*plan.verdicts.values(), asked.verdict):
        _assert_unlocks(verdict, snapshot)


MOVING = re.compile(r"moving ([\d.]+) GPUs? frees (\S+)")
RELEASED = re.compile(r"(\d+) (?:more GPUs? |whole GPUs? )?(?:released )?on (\S+?)(?:,|$| and)")
ANYWHERE = re.compile(r"(\d+) (?:more|whole) GPUs? released(?: in rack (\S+))?")


def _assert_unlocks(verdict: Verdict, snapshot: Snapshot) -> None:
    for text in verdict.causes[0].unlock if verdict.causes else ():
        told = f"{verdict.message}; {text}"
        if move := MOVING.search(text):
            _assert_move_is_possible(snapshot, int(move[1]), move[2], told)
        elif "GPU" not in text or "nodes that would do" in text or "in queue" in text:
            continue
        elif some := ANYWHERE.fullmatch(text):
            _assert_any_will_do(snapshot, int(some[1]), some[2], told)
        elif "released on" in text and "one GPU" not in text:
            places = {node: int(gpus) for gpus, node in RELEASED.findall(text)}
            assert places and set(places) <= {n.name for n in snapshot.nodes}, told
            gone = [a for node, gpus in places.items() for a in _on(snapshot, {node})[:gpus]]
            assert len(gone) == sum(places.values()), f"{told}: so many are not in use there"
            _assert_starts_without(snapshot, gone, told)


def _assert_any_will_do(snapshot: Snapshot, gpus: int, rack: str | None, told: str) -> None:
    there = {n.name for n in snapshot.nodes if rack is None or n.labels.get(level_named("rack").label) == rack}
    if any(n.gpu_class != snapshot.nodes[0].gpu_class for n in snapshot.nodes):
        return  # which of them would do is not told again here
    held = _on(snapshot, there)
    assert len(held) >= gpus, f"{told}: so many are not in use"
    for seed in range(6):
        _assert_starts_without(snapshot, Random(seed).sample(held, gpus), told)


def _on(snapshot: Snapshot, nodes: set[str]) -> list[Allocation]:
    """The pods of some nodes, which have a GPU each here."""
    return [a for a in snapshot.allocations if a.node in nodes]


def _assert_starts_without(snapshot: Snapshot, gone: list[Allocation], told: str) -> None:
    without = {id(a) for a in gone}
    kept = tuple(a for a in snapshot.allocations if id(a) not in without)
    assert len(cycle(replace(snapshot, allocations=kept)).placed), told


def _assert_move_is_possible(snapshot: Snapshot, gpus: int, node: str, told: str) -> None:
    """So many of the node's pods, which have a GPU each here, leave it, and everybody has a place."""
    there = [a for a in snapshot.allocations if a.node == node][:gpus]
    assert len(there) == gpus, f"{told}: there are {len(there)} pods to move"
    kept = tuple(a for a in snapshot.allocations if a not in there)
    # Who moves finds its place after the workload; which queue lets it do so is nothing that the line tells.
    for queue in ("moved", snapshot.workloads[0].queue):
        moved = tuple(Workload(a.name, (PodSet("main", a.pod_class),), queue=queue, priority=-1) for a in there)
        again = cycle(replace(snapshot, allocations=kept, workloads=snapshot.workloads + moved))
        if len(again.placed) == 1 + gpus:
            return
    raise AssertionError(told)
