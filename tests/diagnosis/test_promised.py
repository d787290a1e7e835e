"""Nodes whose labels promise GPUs and which offer none: what is a fault, and what only looks like one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from berth.diagnosis.diagnose import diagnose
from berth.diagnosis.ledger import accounts
from berth.evidence.facts import Facts
from berth.evidence.piece import Piece
from berth.evidence.read import read
from berth.model.ledger import Boundary

LABELS = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "8", "nvidia.com/mig.capable": "false"}
PLAIN = {"cpu": "96", "memory": "1Ti", "pods": "110"}


def node(labels: dict[str, str] = LABELS, offers: dict[str, str] = PLAIN) -> dict[str, Any]:
    status = {"capacity": PLAIN | offers, "allocatable": PLAIN | offers}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}, "status": status}


def pod(name: str = "train-0", claims: bool = False) -> dict[str, Any]:
    asks: dict[str, Any] = {"claims": [{"name": "gpu"}]} if claims else {"limits": {"nvidia.com/gpu": "8"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml"}, "spec": {
        "nodeName": "n1", "containers": [{"name": "main", "resources": asks}]},
        "status": {"phase": "Running"}}  # fmt: skip


def slice_of(driver: str) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {
        "driver": driver, "nodeName": "n1", "pool": {"name": "n1"}, "devices": [{"name": "gpu-0"}]}}  # fmt: skip


def facts(*objects: dict[str, Any]) -> Facts:
    return read([Piece(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode(), "dump.json")])


def promises(*objects: dict[str, Any]) -> bool:
    found = [one for one in diagnose(facts(*objects)).findings if one.code == "ResourceNotAdvertised"]
    assert all((one.layer.name, one.node) == ("L3", "n1") and one.confidence <= 0.6 for one in found)
    return bool(found)


@pytest.mark.parametrize(
    "objects",
    [
        (node(),),
        (node(), pod()),
        (node(offers={"nvidia.com/gpu": "0"}),),
        (node(offers={"rdma/hca": "8"}),),
        (node(), slice_of("compute-domain.nvidia.com")),
        (node({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}),),
    ],
)
def test_labels_promise_what_the_node_does_not_offer(objects: tuple[dict[str, Any], ...]) -> None:
    assert promises(*objects)
    (account,) = accounts(facts(*objects))
    assert (account.parts_at, account.host, account.capacity) == (Boundary.Node, None, 0)


@pytest.mark.parametrize(
    "objects",
    [
        (node(offers={"nvidia.com/gpu": "8"}),),
        (node(offers={"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7"}),),
        (node(offers={"nvidia.com/gpu.shared": "32"}),),
        (node(offers={"nvidia.com/GH100_H100_SXM5_80GB": "8"}),),
        (node(offers={"volcano.sh/vgpu-number": "8"}),),
        (node(), slice_of("gpu.nvidia.com")),
        (node(), pod(claims=True)),
        (node(), pod("nvidia-dra-driver-gpu-kubelet-plugin-x7k2p")),
        (node(LABELS | {"nvidia.com/gpu.deploy.device-plugin": "false"}),),
        (node(LABELS | {"nvidia.com/gpu.deploy.operands": "false"}),),
        (node(LABELS | {"nvidia.com/gpu.deploy.device-plugin": "paused-for-mig-change"}),),
        (node(LABELS | {"nvidia.com/gpu.workload.config": "vm-passthrough"}),),
        (node({"nvidia.com/gpu.present": "false"}),),
        (node({"kubernetes.io/hostname": "n1"}),),
    ],
)
def test_what_only_looks_like_it_is_no_fault(objects: tuple[dict[str, Any], ...]) -> None:
    assert not promises(*objects)
    assert all(one.is_equal for one in accounts(facts(*objects)))


def test_the_account_says_what_pods_hold_there() -> None:
    (account,) = accounts(facts(node(), pod()))
    assert account.requested == 8
    assert account.sentence == "by its labels it has 8, the node offers no nvidia.com/gpu; pods hold 8"
    only = [one for one in diagnose(facts(node(), pod())).findings if one.code == "ResourceNotAdvertised"]
    assert "Its pods hold 8." in only[0].cause


@pytest.mark.parametrize(
    ("off", "mend"),
    [
        (("operands",), "kubectl label node n1 nvidia.com/gpu.deploy.operands-"),
        (("dcgm",), "kubectl label node n1 nvidia.com/gpu.deploy.dcgm=true --overwrite"),
        (
            ("operands", "dcgm"),
            "kubectl label node n1 nvidia.com/gpu.deploy.dcgm=true nvidia.com/gpu.deploy.operands- --overwrite",
        ),
    ],
)
def test_a_label_that_keeps_components_away_is_mended_as_it_is_read(off: tuple[str, ...], mend: str) -> None:
    labels = {f"nvidia.com/gpu.deploy.{name}": "false" for name in off}
    (found,) = [one for one in diagnose(facts(node(LABELS | labels))).findings if one.code == "OperandsHeldBackByLabel"]
    assert found.fix.steps[0] == mend
