"""What was decided and is not done: read back after a crash, kept, left alone, given up."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from berth.app.scheduler.shadow import Opinion, compare
from berth.kube import wire
from berth.model.volumes import VOLUMES
from berth.scheduling.cycle import cycle
from berth.sources.live.decisions import KEY, written
from berth.sources.live.ground import standing_of
from berth.sources.live.promises import WHOLE_WITHIN_S
from berth.sources.live.refusals import Refusals
from berth.sources.live.world import World
from berth.views.shadow import lines

NOW = 1_800_000_000.0


def node(name, gpus=8):
    has = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return msgspec.convert(
        {"metadata": {"name": name}, "status": {"capacity": has, "allocatable": has}}, wire.Node
    )


def pod(name, gang="", on="", annotations=None, nominated="", phase="Pending", reason=None, ending=False):
    meta = {"name": name, "namespace": "a", "uid": f"uid-{name}", "annotations": annotations or {},
            "creationTimestamp": "2026-01-01T00:00:00Z"}  # fmt: skip
    if ending:
        meta["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    if gang:
        meta["labels"] = {"berth.dev/gang": gang}
        meta["annotations"]["berth.dev/min-count"] = "4"
    spec = {"schedulerName": "berth", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]}
    if on:
        spec["nodeName"] = on
    status = {"phase": phase, "nominatedNodeName": nominated or None, "reason": reason}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, wire.Pod)


def world(*pods, nodes=5):
    made = World({"berth"}, now=lambda: NOW)
    for i in range(nodes):
        made.put_node(node(f"n{i}"))
    for one in pods:
        made.put_pod(one)
    return made


def gang(bound, decision):
    """Four pods of one gang; the first `bound` are on their nodes, the first of all carries the decision."""
    pods = []
    for i in range(4):
        on = f"n{i + 1}" if i < bound else ""
        pods.append(pod(f"g{i}", "g", on, dict(decision) if i == 0 and on else None))
    return pods


DECISION = written([(f"g{i}", f"n{i + 1}") for i in range(4)])


def places(hold):
    return {(place.node, place.count) for place in hold.places}


def test_the_rest_of_a_gang_is_kept_where_it_was_to_go():
    here = world(*gang(2, DECISION))
    snapshot = here.snapshot(NOW)
    (hold,) = snapshot.holds
    assert hold.workload == snapshot.workloads[0].identity
    assert places(hold) == {("n3", 1), ("n4", 1)}
    assert snapshot.workloads[0].has_begun
    assert list(here.promises.unfinished) == [hold.workload]


def test_a_gang_without_a_decision_or_that_is_whole_is_kept_nothing():
    assert not world(*gang(2, {})).snapshot(NOW).holds
    assert not world(*gang(4, DECISION)).snapshot(NOW).holds
    assert not world(*gang(2, {KEY: "no json"})).snapshot(NOW).holds


def test_a_refused_pod_of_the_gang_is_not_sent_to_the_same_place_again():
    here = world(*gang(2, DECISION))
    here.hold_off(("a", "g2"), "a policy says no", NOW)
    snapshot = here.snapshot(NOW)
    assert not snapshot.holds
    assert snapshot.workloads[0].held_off == "a policy says no"
    assert here.changes_by_itself_s == NOW + 1.0
    assert here.snapshot(NOW + 1.1).workloads[0].held_off == ""


def test_a_gang_that_stays_partial_makes_itself_heard():
    here = world(*gang(2, DECISION))
    here.snapshot(NOW)
    assert here.changes_by_itself_s == NOW + WHOLE_WITHIN_S


def test_nominations_of_an_earlier_leader_are_holds_with_who_is_leaving():
    pods = [pod(f"h{i}", "h", nominated=f"n{i}") for i in range(4)]
    leaving = pod("old", on="n0", phase="Running", ending=True)
    here = world(*pods, leaving)
    here.adopt(NOW)
    (hold,) = here.snapshot(NOW).holds
    assert places(hold) == {(f"n{i}", 1) for i in range(4)}
    assert [one.name for one in hold.leaving] == ["old"]


def test_half_a_nomination_is_none():
    here = world(*[pod(f"h{i}", "h", nominated="n0" if i < 2 else "") for i in range(4)])
    here.adopt(NOW)
    assert not here.snapshot(NOW).holds


def test_a_pod_counts_from_the_moment_at_which_its_bind_is_sent():
    here = world(pod("p"))
    assert here.assume(("a", "p"), "n3")
    assert [a.node for a in here.snapshot(NOW).allocations] == ["n3"]
    here.put_pod(pod("p"))  # the watch is behind
    assert [a.node for a in here.snapshot(NOW).allocations] == ["n3"]
    here.forget(("a", "p"))
    snapshot = here.snapshot(NOW)
    assert not snapshot.allocations
    assert [w.name for w in snapshot.workloads] == ["p"]


def test_what_others_bound_meanwhile_is_believed():
    here = world(pod("p"))
    here.assume(("a", "p"), "n3")
    here.put_pod(pod("p", on="n1"))
    here.forget(("a", "p"))
    assert [a.node for a in here.snapshot(NOW).allocations] == ["n1"]


def test_pauses_double_up_to_the_longest_and_are_forgotten():
    refused: Refusals[str] = Refusals(1.0, 5.0)
    at, pauses = NOW, []
    for _ in range(4):
        one = refused.add("x", "why", at)
        pauses.append(one.until_s - at)
        at = one.until_s
    assert pauses == [1.0, 2.0, 4.0, 5.0]
    assert refused.add("x", "why", at + 5.1).pause_s == 1.0


def test_a_shadow_tells_agreement_from_difference():
    opinions = {
        ("a", "same"): Opinion("Pod a/same", False, 1.0, "n1", 1.0, bound_to="n1", bound_s=3.0),
        ("a", "other"): Opinion("Pod a/other", False, 1.0, "n1", 1.0, bound_to="n2", bound_s=1.5),
        ("a", "theirs"): Opinion("Pod a/theirs", True, 1.0, "", 0.0, "WaitingForGang", "3 of 4", "n2", 2.0),
        ("a", "ours"): Opinion("Pod a/ours", False, 1.0, "n1", 1.0),
        ("a", "none"): Opinion("Pod a/none", False, 1.0, "", 0.0, "NotEnoughGpus", "8 asked for"),
        ("a", "gone"): Opinion("Pod a/gone", False, 1.0, "n1", 1.0, is_gone=True),
    }
    found = compare(opinions.items(), evictions=3, partial_gangs=1)
    assert (found.same_node, found.other_node, found.only_they, found.only_berth, found.both_wait, found.gone) == (
        1, 1, 1, 1, 1, 1,
    )  # fmt: skip
    assert found.earlier_s == (0.5, 2.0)
    report = "\n".join(lines(found))
    for words in ("nothing was written", "a/theirs is on n2", "WaitingForGang: 3 of 4", "3 pods of lower priority",
                  "1 gang was partly bound"):  # fmt: skip
        assert words in report


def test_the_next_try_after_a_refusal_is_on_another_node():
    here = world(pod("p"), nodes=2)
    here.hold_off(("a", "p"), "a policy says no", NOW)
    here.promises.avoid(("a", "p"), "n0")
    plan = cycle(here.snapshot(NOW + 1.1))
    assert [one.node.name for one in plan.binds()] == ["n1"]
    assert here.changes_by_itself_s == NOW + 2.0
    assert [one.node.name for one in cycle(here.snapshot(NOW + 2.1)).binds()] == ["n0"]
    assert [one.node.name for one in cycle(world(pod("p"), nodes=2).snapshot(NOW)).binds()] == ["n0"]


def test_a_node_that_is_cordoned_after_it_was_chosen_has_another_standing():
    here = world(nodes=1)
    (chosen,) = here.snapshot(NOW).nodes
    assert here.standing("n0") == standing_of(chosen)
    cordoned = {"metadata": {"name": "n0"}, "spec": {"unschedulable": True}, "status": {"allocatable": {"cpu": "1"}}}
    here.put_node(msgspec.convert(cordoned, wire.Node))
    assert here.standing("n0") != standing_of(chosen)
    here.drop_node("n0")
    assert here.standing("n0") is None


def gpu_node(gpus="8", of="nvidia.com/gpu", product="NVIDIA-H100-80GB-HBM3", heartbeat="1", **allocatable):
    has = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8", **allocatable}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:00:0{heartbeat}Z"}
    return msgspec.convert({
        "metadata": {"name": "n0", "resourceVersion": heartbeat, "labels": {"nvidia.com/gpu.product": product}},
        "status": {"capacity": has, "allocatable": {**has, of: gpus}, "conditions": [ready]},
    }, wire.Node)  # fmt: skip


@pytest.mark.parametrize(
    "after",
    [
        gpu_node("0"),
        gpu_node("7"),
        gpu_node("2", "nvidia.com/mig-1g.10gb"),
        gpu_node(product="NVIDIA-A100-SXM4-80GB"),
        gpu_node("8", "rdma/hca"),
    ],
    ids=["no devices", "one device less", "MIG", "another GPU", "RDMA"],
)
def test_a_node_that_offers_other_devices_after_it_was_chosen_has_another_standing(after):
    here = world(nodes=0)
    here.put_node(gpu_node())
    (chosen,) = here.snapshot(NOW).nodes
    here.put_node(gpu_node(heartbeat="9"))
    here.put_node(gpu_node(heartbeat="9", memory="255Gi"))
    assert here.standing("n0") == standing_of(chosen)
    here.put_node(after)
    assert here.standing("n0") != standing_of(chosen)


def test_what_is_left_of_storage_is_no_part_of_a_node_s_standing():
    here = world(nodes=0)
    here.put_node(gpu_node())
    (chosen,) = here.snapshot(NOW).nodes
    volumes = (VOLUMES + "local labelled example.com/gpu=yes", 3)
    assert standing_of(replace(chosen, allocatable=(*chosen.allocatable, volumes))) == here.standing("n0")
