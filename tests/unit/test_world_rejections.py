"""Pods that kubelets do not admit: whom it tells of, who is kept off which node for it, and until when."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.app.scheduler.driver import by_workload
from berth.kube import wire
from berth.model.reasons import Reason
from berth.scheduling.cycle import cycle
from berth.sources.live.decisions import written
from berth.sources.live.rejections import MOST_S
from berth.sources.live.world import World

NOW = 1_800_000_000.0
GPU_LOST = ("UnexpectedAdmissionError", "Pod was rejected: Allocate failed due to rpc error: GPU is lost")
UNALIGNED = ("TopologyAffinityError", "Pod was rejected: Resources cannot be allocated with Topology locality")
STARTED = "2027-01-15T08:00:00Z"


def node(name: str, gpus: int = 8) -> wire.Node:
    has = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return msgspec.convert({"metadata": {"name": name}, "status": {"capacity": has, "allocatable": has}}, wire.Node)


class Played:
    """A world with nodes n0, n1, ... and a clock; pods come, are refused by kubelets, or admitted."""

    def __init__(self, nodes: int = 4) -> None:
        self.now_s = NOW
        self.world = World({"berth"}, now=lambda: self.now_s)
        for number in range(nodes):
            self.world.put_node(node(f"n{number}"))
        self._count = 0

    def pod(
        self, name: str, owner: str = "", on: str = "", status: dict[str, Any] | None = None, *, gpus: int = 2,
        namespace: str = "a", annotations: dict[str, str] | None = None, scheduler: str = "berth",
    ) -> None:  # fmt: skip
        meta: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}",
                                "annotations": annotations or {}}  # fmt: skip
        if owner.startswith("gang"):
            meta["labels"] = {"berth.dev/gang": owner}
        elif owner:
            ref = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
            meta["ownerReferences"] = [ref]
        limits = {"limits": {"nvidia.com/gpu": str(gpus)}}
        spec: dict[str, Any] = {"schedulerName": scheduler, "containers": [{"resources": limits}]}
        if on:
            spec["nodeName"] = on
        made = {"metadata": meta, "spec": spec, "status": {"phase": "Pending", **(status or {})}}
        self.world.put_pod(msgspec.convert(made, wire.Pod))

    def refused(self, owner: str, on: str, why: tuple[str, str] = GPU_LOST, **pod: Any) -> None:
        """Another pod of the owner was bound and is refused."""
        self._count += 1
        name = f"{owner or 'bare'}-x{self._count}"
        self.pod(name, owner, on, **pod)
        self.pod(name, owner, on, {"phase": "Failed", "reason": why[0], "message": why[1]}, **pod)

    def admitted(self, owner: str, on: str, **pod: Any) -> None:
        self._count += 1
        name = f"{owner}-x{self._count}"
        self.pod(name, owner, on, **pod)
        self.pod(name, owner, on, {"phase": "Running", "startTime": STARTED}, **pod)

    def off(self) -> list[str]:
        """Nodes that get nothing new from anybody."""
        return [each.name for each in self.world.snapshot(self.now_s).nodes if each.health.name == "Unfit"]

    def kept_off(self, workload: str) -> tuple[str, ...]:
        """Nodes that a waiting workload is kept off by itself."""
        (found,) = [w for w in self.world.snapshot(self.now_s).workloads if w.name == workload]
        return found.pod_sets[0].pod_class.refused_by

    def held_off(self, workload: str) -> str:
        (found,) = [w for w in self.world.snapshot(self.now_s).workloads if w.name == workload]
        return found.held_off

    def places(self) -> dict[str, str]:
        plan = cycle(self.world.snapshot(self.now_s))
        return {name: node for _, places in by_workload(plan) for name, node in places}


def test_a_node_whose_kubelet_refuses_what_its_account_has_room_for_is_left_alone_for_a_while() -> None:
    p = Played()
    p.refused("serve", "n0")
    assert p.off() == ["n0"]
    assert p.world.changes_by_itself_s == NOW + 2.0
    p.now_s += 2.0
    assert p.off() == []


def test_each_witness_more_doubles_the_pause() -> None:
    p = Played()
    for number, pause_s in enumerate((2.0, 4.0, 8.0)):
        p.refused(f"serve-{number}", "n0", gpus=1 + number)
        p.now_s += pause_s - 0.1
        assert p.off() == ["n0"]
        p.now_s += 0.1
        assert p.off() == []


def test_who_is_refused_on_one_node_again_and_again_does_not_take_it_away_from_others() -> None:
    p = Played()
    p.refused("serve", "n0")
    p.now_s += 2.0
    p.refused("serve", "n0")
    p.pod("next", "serve")
    assert p.off() == []
    assert p.kept_off("next") == ("n0",)


@pytest.mark.parametrize("why", [UNALIGNED, ("NodeAffinity", "Predicate NodeAffinity failed"),
                                 ("SysctlForbidden", "Pod was rejected: forbidden sysctl")])  # fmt: skip
def test_how_pod_and_node_go_together_says_nothing_of_the_node(why: tuple[str, str]) -> None:
    p = Played()
    for owner in ("one", "other"):
        p.refused(owner, "n0", why)
    assert p.off() == []
    p.pod("one-next", "one")
    p.pod("third", "third")
    assert p.kept_off("one-next") == ("n0",)
    assert p.kept_off("third") == ()
    assert p.places()["one-next"] != "n0"


@pytest.mark.parametrize("why", [GPU_LOST, UNALIGNED])
def test_who_is_refused_on_node_after_node_is_itself_left_alone_and_the_nodes_are_trusted(why: tuple[str, str]) -> None:
    p = Played(nodes=20)
    pauses: list[float] = []
    for number in range(12):
        p.refused("bad", f"n{number}", why)
        p.pod("bad-next", "bad")
        p.pod("good", "good", gpus=4)
        assert number == 0 or p.off() == []
        began_s = p.now_s
        while p.held_off("bad-next"):
            assert "bad-next" not in p.places() and "good" in p.places()
            p.now_s = p.world.changes_by_itself_s
        pauses.append(p.now_s - began_s)
        p.world.drop_pod(("a", "bad-next"))
    assert pauses[0] == 0.0, "the first time it may be the node's"
    assert pauses[1:] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, MOST_S, MOST_S]


def test_two_owners_that_no_kubelet_admits_take_no_node_away_either() -> None:
    p = Played()
    for number in range(4):
        p.refused("bad", f"n{number}", gpus=1)
        p.refused("worse", f"n{number}", gpus=3)
    assert p.off() == []


def test_pods_that_are_refused_at_once_are_one_failure_of_their_owner() -> None:
    p = Played(nodes=10)
    for number in range(10):
        p.refused("gang", f"n{number}", UNALIGNED)
    p.pod("next", "gang")
    assert p.held_off("gang")
    p.now_s += 1.0
    assert not p.held_off("gang")


def test_an_owner_of_which_a_pod_runs_after_all_is_not_left_alone_any_longer() -> None:
    p = Played(nodes=10)
    p.pod("late", "bad", "n9")
    for number in range(6):
        p.refused("bad", f"n{number}", UNALIGNED)
        p.pod("next", "bad")
        while number < 5 and p.held_off("next"):
            p.now_s = p.world.changes_by_itself_s
    p.now_s += 5.0  # the nodes are forgotten by now
    assert p.held_off("next") and not p.kept_off("next")
    p.pod("late", "bad", "n9", {"phase": "Running", "startTime": STARTED})
    assert not p.held_off("next")


def test_two_broken_nodes_are_found_out_by_who_runs_elsewhere() -> None:
    p = Played()
    p.refused("serve", "n0")
    p.refused("serve", "n1")
    assert p.off() == []
    p.admitted("serve", "n2")
    assert p.off() == ["n0", "n1"]
    p.pod("next", "serve")
    assert not p.held_off("next")


def test_a_node_that_admits_who_was_refused_there_is_trusted_again() -> None:
    p = Played()
    p.pod("late", "serve", "n0")
    p.refused("serve", "n0")
    p.pod("next", "serve")
    assert p.off() == ["n0"] and p.kept_off("next") == ("n0",)
    p.pod("late", "serve", "n0", {"phase": "Running", "startTime": STARTED})
    assert p.off() == [] and p.kept_off("next") == ()


def test_who_ran_before_the_refusal_proves_nothing_afterwards() -> None:
    p = Played()
    p.admitted("serve", "n0")
    p.refused("serve", "n0")
    p.pod("serve-x1", "serve", "n0", {"phase": "Running", "startTime": STARTED}, annotations={"touched": "yes"})
    assert p.off() == ["n0"]


def test_a_refusal_that_our_own_account_explains_says_nothing() -> None:
    """Somebody else was there first: the pod goes elsewhere, since the node is full."""
    p = Played(nodes=2)
    p.pod("foreign", on="n0", scheduler="another", gpus=7)
    p.refused("serve", "n0", ("OutOfnvidia.com/gpu", "Pod was rejected: Node didn't have enough resource"))
    p.pod("small", gpus=1)
    p.pod("next", "serve")
    assert p.off() == [] and p.kept_off("next") == ()
    assert p.places() == {"small": "n0", "next": "n1"}


def test_the_like_of_another_namespace_is_not_kept_off() -> None:
    p = Played()
    p.refused("serve", "n0")
    p.refused("serve", "n1")
    p.pod("same", "other-owner")
    p.pod("elsewhere", "other-owner", namespace="b")
    assert p.kept_off("same") == ("n0", "n1")
    assert p.kept_off("elsewhere") == ()


def test_what_fails_otherwise_or_failed_before_we_saw_it_is_no_refusal() -> None:
    p = Played()
    p.refused("serve", "n0", ("", ""))
    p.refused("serve", "n0", ("Evicted", "The node was low on resource: memory"))
    p.pod("old", "serve", "n0", {"phase": "Failed", "reason": GPU_LOST[0], "message": GPU_LOST[1]})
    assert p.off() == [] and not p.world.rejections


def test_it_is_told_who_refused_it_and_that_it_is_tried_again() -> None:
    p = Played(nodes=2)
    p.refused("bad", "n0", UNALIGNED)
    p.pod("next", "bad", gpus=2)
    (waits,) = p.world.snapshot(p.now_s).workloads
    assert waits.findings == (
        "The kubelet of n0 did not admit a pod like this: TopologyAffinityError: Resources cannot be allocated with "
        "Topology locality. For now it is placed elsewhere.",
    )
    p.refused("bad", "n1", UNALIGNED)
    (verdict,) = cycle(p.world.snapshot(p.now_s)).verdicts.values()
    assert verdict.reason is Reason.BindRefused and "n1 did not admit" in verdict.causes[0].sentence
    p.now_s += 1.0
    (verdict,) = cycle(p.world.snapshot(p.now_s)).verdicts.values()
    assert verdict.reason is Reason.NodesHeldBack, "they are fit for others, and for it again in a moment"
    p.now_s += 1.0
    assert "next" in p.places()


def test_a_gang_of_which_one_pod_was_refused_is_completed_on_another_node() -> None:
    p = Played(nodes=5)
    decision = written([(f"gang-{i}", f"n{i}") for i in range(4)])
    for i in range(4):
        p.pod(f"gang-{i}", "gang", f"n{i}", gpus=8, annotations={"berth.dev/min-count": "4", **decision})
    p.pod("gang-2", "gang", "n2", {"phase": "Failed", "reason": UNALIGNED[0]}, gpus=8)
    p.world.drop_pod(("a", "gang-2"))
    p.pod("gang-2", "gang", gpus=8, annotations={"berth.dev/min-count": "4"})
    assert p.places() == {"gang-2": "n4"}


def test_nothing_is_remembered_for_ever() -> None:
    p = Played()
    p.refused("bad", "n0")
    p.refused("bad", "n1", UNALIGNED)
    assert p.world.rejections
    for _ in range(10):
        p.now_s = min(p.world.changes_by_itself_s, p.now_s + 60.0)
        p.world.snapshot(p.now_s)
    assert not p.world.rejections and p.world.changes_by_itself_s == float("inf")
