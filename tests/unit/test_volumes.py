"""What claims mean for where a pod may run, from a dump: where it goes, what it waits for, what it is told."""

from __future__ import annotations

import json

import pytest
from storage_objects import (
    EBS,
    HOSTNAME,
    LOCAL,
    NODES,
    TOPOLVM,
    ZONE,
    capacity,
    claim,
    csi_driver,
    csi_node,
    local,
    node,
    pod,
    storage_class,
    volume,
)  # fmt: skip

from berth.model.reasons import Answer, Reason
from berth.model.snapshot import Snapshot
from berth.scheduling.cycle import cycle
from berth.sources.assemble import read_snapshot


@pytest.fixture
def dump(tmp_path):
    def read(*things) -> Snapshot:
        file = tmp_path / "dump.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(things)}))
        return read_snapshot(str(file), now_s=1.0)

    return read


@pytest.fixture
def places(dump):
    """Where the waiting pods go: {workload: nodes}; and the causes of the others: {workload: cause}."""

    def decide(*things):
        snapshot = dump(*things)
        plan = cycle(snapshot)
        nodes: dict[str, list[str]] = {}
        for w, n in zip(plan.workload.tolist(), plan.node.tolist(), strict=True):
            nodes.setdefault(plan.workloads[w].name, []).append(plan.nodes[n].name)
        return nodes, {plan.workloads[w].name: verdict.causes[0] for w, verdict in plan.verdicts.items()}

    return decide


def waits_for(cause) -> tuple[str, str]:
    assert cause.reason is Reason.WaitingForVolume
    return cause.where, cause.sentence


LIMITS = (csi_node("n1", ebs_csi_aws_com=25), csi_node("n2", ebs_csi_aws_com=25))


# ---- bound claims


def test_a_bound_volume_ties_the_pod_to_its_place(places):
    v = volume("v", driver=EBS, on="b", key=ZONE, of="c")
    nodes, _ = places(*NODES, *LIMITS, pod("p", "c"), claim("c", volume="v"), v, storage_class("s"))
    assert nodes == {"p": ["n2"]}


@pytest.mark.parametrize(
    "labels, goes",
    [
        ({ZONE: "b"}, "n2"),
        ({"failure-domain.beta.kubernetes.io/zone": "b"}, "n2"),  # the node has only the newer label
        ({"failure-domain.beta.kubernetes.io/zone": "x__b"}, "n2"),  # in both zones
        ({"topology.kubernetes.io/region": "r"}, None),  # no node names that region, and every node a zone
        ({}, "n1"),
    ],
)
def test_zone_labels_of_old_volumes(places, labels, goes):
    v = volume("v", of="c", labels=labels)
    nodes, causes = places(*NODES, pod("p", "c"), claim("c", volume="v"), v, storage_class("s"))
    assert nodes == ({"p": [goes]} if goes else {})
    if not goes:
        assert causes["p"].reason is Reason.NoNodeMatches


def test_a_node_that_names_no_zone_is_taken_to_be_in_it(places):
    bare = node("n1")
    del bare["metadata"]["labels"][ZONE]
    nodes, _ = places(bare, pod("p", "c"), claim("c", volume="v"), volume("v", of="c", labels={ZONE: "b"}))
    assert nodes == {"p": ["n1"]}


@pytest.mark.parametrize(
    "thing, says",
    [
        (None, "does not exist"),
        (claim("c", volume="v", phase="Lost"), "has lost its volume v"),
        (claim("c", volume="v", phase="Pending"), "is to have volume v, which is not bound to it yet"),
        (claim("c", volume="gone"), "is bound to volume gone, which does not exist"),
        (claim("c", volume="v", deletionTimestamp="2026-01-01T00:00:00Z"), "is being deleted"),
        (claim("c"), "has no volume yet"),
        (claim("c", "fast"), "has no volume yet"),
        (claim("c", "gone"), "has no volume yet; its storage class gone does not exist"),
    ],
)
def test_what_is_waited_for_is_named(places, thing, says):
    others = (claim("other"), volume("v"), storage_class("fast", waits=False))
    _, causes = places(*NODES, pod("p", "c"), *others, *([thing] if thing else []))
    assert waits_for(causes["p"]) == ("c", f"the volume claim c {says}")


# ---- claims of one pod alone


def test_a_claim_of_one_pod_alone(places):
    things = (*NODES, claim("c", volume="v", modes=("ReadWriteOncePod",)), volume("v", of="c"))
    nodes, causes = places(*things, pod("new", "c"), pod("old", "c", on="n1"))
    assert nodes == {}
    assert waits_for(causes["new"]) == ("c", "the volume claim c can be used by one pod alone, and is by old")
    assert causes["new"].unlock == ("old ended",)
    ended = pod("old", "c", on="n1")
    ended["status"]["phase"] = "Succeeded"
    assert places(*things, pod("new", "c"), ended)[0] == {"new": ["n1"]}


def test_of_several_that_wait_the_oldest_gets_it(places):
    older = pod("z-older", "c")
    older["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    things = (*NODES, claim("c", volume="v", modes=("ReadWriteOncePod",)), volume("v", of="c"))
    nodes, causes = places(*things, pod("a", "c"), older)
    assert nodes == {"z-older": ["n1"]}
    assert "is by z-older" in causes["a"].sentence


# ---- claims that come with the pod


def test_a_claim_that_is_made_for_the_pod_may_not_be_there_yet(places):
    things = (*NODES, storage_class("s"), claim("other"))
    _, causes = places(*things, pod("p", ephemeral=("scratch",)))
    assert waits_for(causes["p"])[0] == "p-scratch"
    assert "the controller-manager makes it for the pod" in causes["p"].sentence
    assert places(*things, *LIMITS, pod("p", ephemeral=("scratch",)), claim("p-scratch", "s", of_pod="p"))[0]
    _, causes = places(*things, pod("p", ephemeral=("scratch",)), claim("p-scratch", "s", of_pod="q"))
    assert "was not made for this pod" in causes["p"].sentence


# ---- claims that wait for their first consumer


def test_the_first_consumer_goes_where_the_class_makes_volumes(places):
    things = (*NODES, *LIMITS, pod("p", "c"), claim("c", "s"))
    assert places(*things, storage_class("s"))[0] == {"p": ["n1"]}
    assert places(*things, storage_class("s", zones=("b", "c")))[0] == {"p": ["n2"]}
    nodes, causes = places(*things, storage_class("s", zones=("c",)))
    assert nodes == {} and causes["p"].reason is Reason.NoNodeMatches


def test_a_class_by_the_annotation_of_old_claims(places):
    old = claim("c", annotations={"volume.beta.kubernetes.io/storage-class": "s"})
    assert places(*NODES, *LIMITS, pod("p", "c"), old, storage_class("s", zones=("b",)))[0] == {"p": ["n2"]}


def test_a_node_that_was_selected_stays_selected_while_it_is_there(places):
    things = (*NODES, *LIMITS, pod("p", "c"), storage_class("s"))
    assert places(*things, claim("c", "s", selected="n2"))[0] == {"p": ["n2"]}
    assert places(*things, claim("c", "s", selected="gone"))[0] == {"p": ["n1"]}


def test_a_driver_that_says_what_it_has_left(places):
    topolvm = csi_driver(TOPOLVM, storageCapacity=True)
    things = (*NODES, pod("p", "c"), claim("c", "s", size="100Gi"), storage_class("s", TOPOLVM), csi_node("n1"))
    on = {"n1": {"matchLabels": {HOSTNAME: "n1"}}, "n2": {"matchLabels": {HOSTNAME: "n2"}}}
    left = (capacity("1", "s", "50Gi", on["n1"]), capacity("2", "s", "100Gi", on["n2"]))
    assert places(*things, topolvm, *left)[0] == {"p": ["n2"]}
    assert places(*things, *left)[0] == {"p": ["n1"]}  # the driver does not say that its word is to count
    assert places(*things, topolvm, capacity("1", "s", "100Gi", {}))[0] == {"p": ["n1"]}
    for none in (
        capacity("1", "s", "100Gi", None),
        capacity("1", "other", "100Gi", {}),
        capacity("1", "s", None, {}),
        capacity("1", "s", "200Gi", {}, most="99Gi"),
    ):
        nodes, causes = places(*things, topolvm, none)
        assert nodes == {}
        assert causes["p"].reason is Reason.NotEnoughResources and causes["p"].reason.answer is Answer.NotYet
        assert causes["p"].where == "room for a volume of class s of 100 GiB"
    assert places(*things, topolvm, capacity("1", "s", "1Gi", {}, most="100Gi"))[0] == {"p": ["n1"]}


# ---- local volumes


def test_a_local_volume_is_where_the_pod_goes(places):
    things = (*NODES, LOCAL, pod("p", "c"), claim("c", "local", "100Gi"))
    assert places(*things, local("v1", "n1", of="other"), local("v2", "n2"))[0] == {"p": ["n2"]}
    for taken in (
        local("v2", "n2", of="other"),
        local("v2", "n2", size="99Gi"),
        local("v2", "n2", phase="Released"),
        local("v2", "n2", volumeMode="Block"),
        local("v2", "n2", modes=("ReadOnlyMany",)),
        volume("v2", "other", "100Gi", on="n2"),
    ):
        nodes, causes = places(*things, taken)
        assert nodes == {}
        assert causes["p"].reason is Reason.NotEnoughResources
        assert causes["p"].where.startswith("volumes of class local")


def test_each_pod_takes_one(places):
    pods = [pod(f"p{i}", f"c{i}") for i in range(4)]
    claims = [claim(f"c{i}", "local", "100Gi") for i in range(4)]
    volumes = (local("v1", "n1"), local("v2", "n2"), local("v3", "n2"))
    nodes, causes = places(*NODES, LOCAL, *pods, *claims, *volumes)
    assert sorted(n for on in nodes.values() for n in on) == ["n1", "n2", "n2"]
    (waits,) = causes.values()
    assert waits.reason is Reason.NotEnoughResources


def test_small_claims_take_from_the_large_ones_share(places):
    """Two volumes of 1 TiB on one node: a small claim that takes one leaves a single one to the large."""
    volumes = (local("v1", "n1", "1Ti"), local("v2", "n1", "1Ti"))
    pods = (pod("small", "s", priority=2), pod("large1", "l1", priority=1), pod("large2", "l2"))
    claims = (claim("s", "local", "1Gi"), claim("l1", "local", "1Ti"), claim("l2", "local", "1Ti"))
    nodes, causes = places(*NODES, LOCAL, *pods, *claims, *volumes)
    assert nodes == {"small": ["n1"], "large1": ["n1"]} and list(causes) == ["large2"]


def test_a_pod_with_two_local_claims_needs_both_on_one_node(places):
    things = (*NODES, LOCAL, pod("p", "c1", "c2"), claim("c1", "local"), claim("c2", "local"))
    assert places(*things, local("v1", "n1"), local("v2", "n2"))[0] == {}
    assert places(*things, local("v1", "n1"), local("v2", "n2"), local("v3", "n2"))[0] == {"p": ["n2"]}


def test_a_selector_of_the_claim(places):
    picky = claim("c", "local", selector={"matchLabels": {"disk": "fast"}})
    things = (*NODES, LOCAL, pod("p", "c"), picky, local("v1", "n1"))
    assert places(*things)[0] == {}
    assert places(*things, local("v2", "n2", labels={"disk": "fast"}))[0] == {"p": ["n2"]}


def test_a_volume_that_names_its_claim(places):
    """By name alone, as an administrator writes it, or with the uid, as Berth does before the claim is bound."""
    things = (*NODES, LOCAL, pod("p", "c"), claim("c", "local", "1Gi"), local("v1", "n1"))
    for uid in ("", "uid-c"):
        own = local("v2", "n2", "5Gi", of="c", uid_of=uid, phase="Available")
        assert places(*things, own)[0] == {"p": ["n2"]}
    another = local("v2", "n2", "5Gi", of="c", uid_of="uid-of-one-that-is-gone")
    assert places(*things, another)[0] == {"p": ["n1"]}


# ---- what nodes attach


def test_a_node_attaches_so_many_and_no_more(places):
    things = (node("n1"), csi_node("n1", ebs_csi_aws_com=1), storage_class("s"), pod("p", "c"), claim("c", "s"))
    assert places(*things)[0] == {"p": ["n1"]}
    held = (pod("q", "d", on="n1"), claim("d", volume="v"), volume("v", driver=EBS, of="d"))
    nodes, causes = places(*things, *held)
    assert nodes == {}
    assert causes["p"].reason is Reason.NotEnoughResources and causes["p"].where == f"attachable-volumes-csi-{EBS}"
    assert "1 attachable" in causes["p"].sentence
    two = (node("n2"), csi_node("n2", ebs_csi_aws_com=None))  # a driver that names no limit
    assert places(*things, *held, *two)[0] == {"p": ["n2"]}
    assert places(*things, *held, node("n2"))[0] == {"p": ["n2"]}  # nobody says anything of it


def test_a_volume_that_several_pods_use_counts_once(places):
    shared = (claim("d", volume="v"), volume("v", driver=EBS, of="d", modes=("ReadWriteMany",)))
    held = tuple(pod(f"q{i}", "d", on="n1") for i in range(3))
    things = (node("n1"), csi_node("n1", ebs_csi_aws_com=2), storage_class("s"), *shared, *held)
    assert places(*things, pod("p", "c"), claim("c", "s"))[0] == {"p": ["n1"]}
    assert places(*things, pod("p", "c", "e"), claim("c", "s"), claim("e", "s"))[0] == {}


def test_volumes_of_plugins_that_are_drivers_now(places):
    old = volume("v", of="d", awsElasticBlockStore={"volumeID": "vol-1"})
    things = (node("n1"), csi_node("n1", ebs_csi_aws_com=1), storage_class("s", "kubernetes.io/aws-ebs"))
    assert places(*things, pod("q", "d", on="n1"), claim("d", volume="v"), old, pod("p", "c"), claim("c", "s"))[0] == {}
    assert places(*things, pod("p", "c"), claim("c", "s"))[0] == {"p": ["n1"]}


def test_a_driver_that_has_to_be_on_the_node(places):
    needed = csi_driver(EBS, preventPodSchedulingIfMissing=True)
    things = (*NODES, csi_node("n2", ebs_csi_aws_com=None), storage_class("s"), pod("p", "c"), claim("c", "s"))
    assert places(*things, needed)[0] == {"p": ["n2"]}
    assert places(*things)[0] == {"p": ["n1"]}


# ---- what could not be seen


@pytest.mark.parametrize(
    "things, says",
    [
        ([claim("c", volume="v")], "holds no volumes, so that where these are was not looked at; dump pv as well"),
        ([claim("c", "s")], "holds no storage classes, so that whether these wait for the pod is not known; dump "
         "storageclasses as well"),
        ([claim("c", "s"), storage_class("s")], "holds no CSINodes, so that how many a node can attach was not looked "
         "at; dump csinodes as well"),
    ],
)  # fmt: skip
def test_kinds_that_the_dump_lacks_are_told(dump, things, says):
    found = dump(*NODES, pod("p", "c"), *things)
    assert [note for note in found.notes if says in note and note.endswith("a/p")], found.notes


def test_nothing_is_told_where_nothing_lacks(dump):
    things = (claim("c", "s"), storage_class("s"), *LIMITS, volume("v"))
    assert dump(*NODES, pod("p", "c"), *things).notes == ()


def test_nodes_say_nothing_of_storage_that_nobody_asks_for(dump):
    found = dump(*NODES, *LIMITS, storage_class("s"), LOCAL, local("v", "n1"), pod("p"), pod("q", "c", on="n1"))
    assert all("volume" not in name for n in found.nodes for name, _ in n.allocatable)
