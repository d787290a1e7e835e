"""Drawn at random: rules about other pods are kept, and who is told that they are in the way is told rightly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.model.cluster import Allocation
from berth.model.reasons import Reason
from berth.model.snapshot import Snapshot
from berth.model.topology import HOST_LABEL
from berth.model.workload import Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan

from .neighbours import Placed, broken_rules, objections, running
from .reading import read, scenario_files, scenario_of

APPS = ("a", "b")


@pytest.mark.parametrize("path", scenario_files(), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_scenarios_keep_the_rules(path: Any) -> None:
    snapshot = read(path).snapshot
    assert not broken_rules(snapshot, cycle(snapshot))


@st.composite
def terms(draw: st.DrawFn) -> dict[str, Any]:
    term = {"pods": {"app": draw(st.sampled_from(APPS))}, "within": draw(st.sampled_from(["node", "rack"]))}
    if draw(st.integers(0, 4)) == 0:
        term["namespaces"] = [draw(st.sampled_from(["default", "other"]))]
    return term


@st.composite
def pods(draw: st.DrawFn, most_rules: int = 1) -> dict[str, Any]:
    pod: dict[str, Any] = {"gpus": draw(st.sampled_from([0, 1, 1, 2])), "labels": {"app": draw(st.sampled_from(APPS))}}
    for rule in draw(
        st.lists(st.sampled_from(["near", "apart", "spread", "hostPorts"]), max_size=most_rules, unique=True)
    ):
        if rule == "spread":
            over, skew = draw(st.sampled_from(["node", "rack"])), draw(st.integers(1, 2))
            pod["spread"] = [{"pods": {"app": draw(st.sampled_from(APPS))}, "over": over, "skew": skew}]
        elif rule == "hostPorts":
            pod["hostPorts"] = [draw(st.sampled_from([80, 81]))]
        else:
            pod[rule] = [draw(terms())]
    if draw(st.integers(0, 3)) == 0:
        pod["namespace"] = "other"
    return pod


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    groups = []
    for _ in range(draw(st.integers(1, 3))):
        group = {"nodes": draw(st.integers(1, 2)), "gpus": draw(st.sampled_from([1, 2, 4]))}
        if draw(st.integers(0, 4)):
            group["rack"] = draw(st.sampled_from(["r0", "r1"]))
        groups.append(group)
    size = sum(g["nodes"] for g in groups)
    old = [
        {**draw(pods()), "name": f"old-{k}", "on": f"node-{draw(st.integers(0, size - 1))}"}
        for k in range(draw(st.integers(0, 3)))
    ]
    new = []
    for k in range(draw(st.integers(1, 4))):
        workload = {**draw(pods(2)), "name": f"new-{k}", "pods": draw(st.sampled_from([1, 1, 2, 3])), "waiting": 9 - k}
        if draw(st.integers(0, 3)) == 0:
            workload["minimum"] = 1
        new.append(workload)
    return {"name": "drawn", "topology": ["rack"], "cluster": groups, "running": old, "submit": new, "expect": {}}


def afterwards(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The cluster once the plan is carried out."""
    started = tuple(
        Allocation(
            bind.node.name,
            bind.workload.namespace,
            f"{bind.workload.name}-{i}",
            bind.workload.pod_sets[bind.pod_set].pod_class,
            bind.workload.pod_sets[bind.pod_set].labels,
            devices=bind.devices,
        )
        for i, bind in enumerate(plan.binds())
    )
    return replace(snapshot, allocations=snapshot.allocations + started, workloads=())


def has_room(snapshot: Snapshot, workload: Workload, node: str) -> bool:
    """The node takes the workload's pod if rules about other pods do not matter."""
    pod_set = workload.pod_sets[0]
    selector = (*pod_set.pod_class.node_selector, (HOST_LABEL, node))
    free = replace(pod_set.pod_class, near=(), apart=(), spread=(), host_ports=(), node_selector=selector)
    alone = replace(workload, pod_sets=(replace(pod_set, pod_class=free, labels=()),))
    # Pods that run may object as well: they are made to have no wishes.
    silent = tuple(
        replace(a, pod_class=replace(a.pod_class, near=(), apart=(), spread=(), host_ports=()))
        for a in snapshot.allocations
    )
    return len(cycle(replace(snapshot, allocations=silent, workloads=(alone,))).placed) > 0


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(scenarios())
def test_drawn_neighbours(written: dict[str, Any]) -> None:
    snapshot = scenario_of(written, "drawn").snapshot
    plan = cycle(snapshot)
    assert not broken_rules(snapshot, plan)
    assert not wrongly_told(snapshot, plan)


def wrongly_told(snapshot: Snapshot, plan: Plan) -> list[str]:
    """Single pods of which a node is open after all, or of which rules are blamed where there is no room."""
    after = afterwards(snapshot, plan)
    there, found = running(after), []
    for w, verdict in plan.verdicts.items():
        workload = snapshot.workloads[w]
        if workload.pod_count != 1:
            continue
        pod_set = workload.pod_sets[0]
        roomy = [n for n in snapshot.nodes if has_room(after, workload, n.name)]
        open_ = [
            n.name
            for n in roomy
            if not objections(
                Placed(n, pod_set.pod_class, dict(pod_set.labels), workload.namespace), there, snapshot.nodes
            )
        ]
        if open_:
            found.append(f"{workload.name} waits and {open_} is open: {verdict.message}")
        if (verdict.reason is Reason.PodsInTheWay) != bool(roomy):
            found.append(f"{workload.name}: nodes with room are {[n.name for n in roomy]}, told is {verdict.message}")
    return found
