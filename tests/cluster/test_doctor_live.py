"""The doctor and the ledger on a real API server: what they see with whose rights, and which right they name."""

from __future__ import annotations

import json

from devcluster import Admin
from programs import berth
from test_cli_live import pod, rights  # noqa: F401

NEEDS = "needs list on nodes"


def offers(admin: Admin, node: str, allocatable: int) -> None:
    admin.patch(f"/api/v1/nodes/{node}/status", {"status": {"allocatable": {"nvidia.com/gpu": str(allocatable)}}})


def test_a_node_that_withholds_a_device_is_found(cluster, admin, namespace, make_nodes):
    nodes = make_nodes(3)
    assert berth(cluster.kubeconfig, "ledger").code == 0
    offers(admin, nodes[1], 7)
    ledger = berth(cluster.kubeconfig, "ledger", "-o", "json")
    assert ledger.code == 1
    parted = {one["node"]: (one["capacity"], one["allocatable"], one["partsAt"]) for one in ledger.record["accounts"]}
    assert parted == {nodes[0]: (8, 8, None), nodes[1]: (8, 7, "node"), nodes[2]: (8, 8, None)}
    found = berth(cluster.kubeconfig, "doctor", nodes[1], "-o", "json")
    assert found.code == 1
    assert [one["code"] for one in found.record["findings"]] == ["DevicesWithheld"]
    assert berth(cluster.kubeconfig, "doctor", nodes[0]).code == 0


def test_a_question_about_a_pod_that_waits(cluster, admin, namespace, make_nodes, kube_scheduler):
    """The real scheduler's own words, from the real API server."""
    make_nodes(1)
    waits = pod("large", namespace, 16)
    waits["spec"]["schedulerName"] = "default-scheduler"
    admin.create(waits)
    path = f"/api/v1/namespaces/{namespace}/pods/large"
    admin.until(lambda: admin.get(path)["status"].get("conditions"), 15, "it is said why")
    found = berth(cluster.kubeconfig, "doctor", "large", "-n", namespace, "-o", "json")
    assert found.code == 1
    walk = {step["question"]: step["holds"] for step in found.record["walk"]}
    assert walk == {"asks for GPUs": True, "has a node": False}
    (first, *_) = found.record["findings"]
    assert (first["code"], first["layer"], first["cause_class"]) == ("MoreDevicesThanNode", "L5", "scheduling-policy")
    assert "asks for 16" in first["cause"] and "Insufficient nvidia.com/gpu" in json.dumps(first["evidence"])


def test_a_viewer_of_one_namespace_is_told_what_it_may_not_see(cluster, admin, new_namespace, make_nodes, rights):  # noqa: F811
    hers, his = new_namespace("hers"), new_namespace("his")
    make_nodes(1)
    for namespace in (hers, his):
        admin.create(pod("waits", namespace))
    rights("alice", ["get", "list"], ["pods", "events"], namespace=hers)
    config = cluster.kubeconfig_of("alice")
    seen = berth(config, "doctor", "waits", "-n", hers, "-o", "json")
    assert seen.code in (0, 1)
    assert any(NEEDS in note for note in seen.record["notes"])
    assert any("pods of other namespaces may not be seen" in note for note in seen.record["notes"])
    assert (seen.record["walk"][0]["holds"], seen.record["walk"][0]["answer"]) == (True, "8 × nvidia.com/gpu")
    assert berth(config, "doctor", "waits", "-n", his).code == 3
    rights("bob", ["get"], ["services"])
    blind = berth(cluster.kubeconfig_of("bob"), "doctor")
    assert blind.code == 3 and NEEDS in blind.err


def test_what_is_preserved_of_a_cluster_is_read_again(cluster, admin, namespace, make_nodes, tmp_path):
    (node,) = make_nodes(1)
    offers(admin, node, 6)
    first = berth(cluster.kubeconfig, "doctor", "--preserve", str(tmp_path / "kept"), "-o", "json")
    again = berth(cluster.kubeconfig, "doctor", "--from", str(tmp_path / "kept"), "-o", "json")
    codes = [[one["code"] for one in each.record["findings"]] for each in (first, again)]
    assert codes[0] == codes[1] == ["DevicesWithheld"]
