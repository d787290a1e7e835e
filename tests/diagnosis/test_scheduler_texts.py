"""`0/N nodes are available` taken apart: every reason that releases 1.20 to 1.37 print, with its count."""

from __future__ import annotations

import pytest

from berth.evidence.formats.failed_scheduling import Unplaced, unplaced
from berth.evidence.piece import piece
from berth.evidence.read import read


def of(text: str) -> Unplaced:
    (said,) = read([piece(text, "pod-events")]).said("scheduler.unplaced")
    return unplaced(said.get("total"), said.get("reasons"))


def test_counts_and_reasons_and_what_preemption_says() -> None:
    why = of(
        "Warning  FailedScheduling  default-scheduler  0/24 nodes are available: 1 node(s) had untolerated taint "
        "{nvidia.com/gpu: present}, 2 node(s) didn't match Pod's node affinity/selector, "
        "21 Insufficient nvidia.com/gpu. preemption: 0/24 nodes are available: 21 No preemption victims found for "
        "incoming pod, 3 Preemption is not helpful for scheduling."
    )
    assert why.total == 24
    assert [(one.nodes, one.kind) for one in why.reasons] == [(1, "taint"), (2, "affinity"), (21, "resource")]
    assert why.reasons[0].taint == "nvidia.com/gpu=present"
    assert why.reasons[2].resource == "nvidia.com/gpu"
    assert why.is_preemption_useless


def test_a_taint_without_a_value_and_a_taint_that_is_not_named() -> None:
    named = of("0/3 nodes are available: 3 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }.")
    assert [one.taint for one in named.reasons] == ["node-role.kubernetes.io/control-plane"]
    unnamed = of("0/3 nodes are available: 3 node(s) had untolerated taint(s). no new claims to deallocate.")
    assert [(one.kind, one.taint) for one in unnamed.reasons] == [("taint", "")]
    assert unnamed.preemption == "no new claims to deallocate."


def test_the_old_text_of_taints_with_its_comma() -> None:
    why = of("0/4 nodes are available: 1 node(s) had taint {a: b}, that the pod didn't tolerate, 3 Insufficient cpu.")
    assert [(one.nodes, one.kind, one.taint) for one in why.reasons] == [(1, "taint", "a=b"), (3, "resource", "")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Insufficient nvidia.com/mig-1g.10gb", "resource"),
        ("Too many pods", "resource"),
        ("node(s) didn't have enough resource: GPU memory", "resource"),
        ("node(s) had untolerated taint {dedicated: gpu}", "taint"),
        ("node(s) had untolerated taint(s)", "taint"),
        ("node(s) had taints that the pod didn't tolerate", "taint"),
        ("node(s) were unschedulable", "cordoned"),
        ("node(s) had unknown conditions", "cordoned"),
        ("node(s) didn't match Pod's node affinity/selector", "affinity"),
        ("node(s) didn't match scheduler-enforced node affinity", "affinity"),
        ("node(s) didn't match node selector", "affinity"),
        ("node(s) didn't match the requested node name", "affinity"),
        ("pod affinity terms conflict", "affinity"),
        ("node(s) didn't match Pod's required features", "affinity"),
        ("node(s) didn't match pod topology spread constraints", "spread"),
        ("node(s) didn't match pod topology spread constraints (missing required label)", "spread"),
        ("node(s) didn't match pod affinity rules", "neighbours"),
        ("node(s) didn't match pod anti-affinity rules", "neighbours"),
        ("node(s) didn't satisfy existing pods anti-affinity rules", "neighbours"),
        ("node(s) didn't have free ports for the requested pod ports", "ports"),
        ("node(s) exceed max volume count", "volume"),
        ("node(s) had volume node affinity conflict", "volume"),
        ("node(s) had no available volume zone", "volume"),
        ("node(s) did not have enough free storage", "volume"),
        ("node(s) didn't find available persistent volumes to bind", "volume"),
        ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", "volume"),
        ("cannot allocate all claims", "claims"),
        ("resourceclaim in use", "claims"),
        ("resourceclaim not available on the node", "claims"),
        ("request gpu: device class gpu.nvidia.com does not exist", "claims"),
        ("node gpu-1: timed out trying to allocate devices", "claims"),
        ("cannot schedule extended resource claim", "claims"),
        ("cannot fit resource", "claims"),
        ("waiting for minCount pods from a gang to be scheduled", "gang"),
        ("ExceedsGPUQuota", "quota"),
        ("something that a plugin out of tree says", ""),
    ],
)
def test_each_reason_has_its_kind_and_keeps_its_count(text: str, kind: str) -> None:
    why = of(
        f"0/7 nodes are available: 2 {text}, 5 Insufficient example.com/foo. preemption: 0/7 nodes are available: 7 x."
    )
    first, second = why.reasons
    assert (first.nodes, first.text, first.kind) == (2, text, kind)
    assert (second.nodes, second.resource) == (5, "example.com/foo")


@pytest.mark.parametrize("text", ["", ":", "0", "x 1 y, 2", "., ,", "9" * 400, "1 " * 3000])
def test_nothing_raises(text: str) -> None:
    assert isinstance(unplaced("x", text), Unplaced)
    assert isinstance(unplaced("3", text), Unplaced)


@pytest.mark.parametrize(
    ("reasons", "beside"),
    [
        # After the account of resources: these nodes have the devices.
        ("1 node(s) didn't match pod affinity rules, 3 Insufficient nvidia.com/gpu", ["neighbours"]),
        ("2 node(s) had volume node affinity conflict, 2 Insufficient nvidia.com/gpu", ["volume"]),
        # Before it: only a taint of GPUs says that devices are there.
        ("1 node(s) had untolerated taint {nvidia.com/gpu: present}, 3 Insufficient nvidia.com/gpu", ["taint"]),
        ("1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 3 Insufficient amd.com/gpu", []),
        ("1 node(s) didn't match Pod's node affinity/selector, 3 Insufficient nvidia.com/gpu", []),
        # As many reasons as nodes: none is short of both.
        ("2 Insufficient cpu, 2 Insufficient nvidia.com/gpu", ["resource"]),
        ("2 Insufficient cpu, 3 Insufficient nvidia.com/gpu", []),
    ],
)
def test_what_keeps_a_pod_off_the_nodes_that_are_not_short_of_devices(reasons: str, beside: list[str]) -> None:
    assert [one.kind for one in of(f"0/4 nodes are available: {reasons}.").beside_shortage] == beside
