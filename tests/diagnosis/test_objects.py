"""Kubernetes objects are read however they were written down, whole or cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import (
    UNSAID,
    Advertised,
    EventSeen,
    NodeSeen,
    ObjectSeen,
    Operand,
    PodSeen,
)
from berth.evidence.piece import Piece, piece
from berth.evidence.read import read

NODE = {
    "apiVersion": "v1", "kind": "Node",
    "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "H100"}},
    "spec": {"unschedulable": True, "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"cpu": "8", "nvidia.com/gpu": "8"}, "allocatable": {"cpu": "8", "nvidia.com/gpu": "7"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"kubeletVersion": "v1.34.2", "containerRuntimeVersion": "containerd://2.1.0"},
    },
}  # fmt: skip
POD = {
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "p", "namespace": "x", "uid": "u", "ownerReferences": [
        {"kind": "Job", "name": "train", "controller": True}]},
    "spec": {
        "nodeName": "n1", "schedulerName": "berth", "runtimeClassName": "nvidia",
        "containers": [{
            "name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "1"}},
            "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
            "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
                    {"name": "dev", "hostPath": {"path": "/dev/nvidia0"}}],
    },
    "status": {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message":
               "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
               "nvidia.com/gpu, which is unexpected"},
}  # fmt: skip
EVENT = {
    "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "x"},
    "involvedObject": {"kind": "Pod", "namespace": "x", "name": "p"}, "type": "Warning", "reason": "FailedScheduling",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "count": 4,
}  # fmt: skip
DAEMONS = {
    "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "plugin", "namespace": "gpu-operator"},
    "spec": {"template": {"spec": {"nodeSelector": {"nvidia.com/gpu.deploy.device-plugin": "true"},
                                   "containers": [{"image": "plugin:v1"}]}}},
    "status": {"desiredNumberScheduled": 3, "numberReady": 2},
}  # fmt: skip
POLICY = {
    "apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu-cluster-policy"},
    "status": {"state": "notReady"},
}  # fmt: skip
ALL = [NODE, POD, EVENT, DAEMONS, POLICY]


def facts(text: str | bytes, kind: str = "") -> Facts:
    return read([Piece(text if isinstance(text, bytes) else text.encode(), "dump", kind)])


def looked_over(found: Facts) -> None:
    (node,) = found.of(NodeSeen)
    assert (node.name, node.is_cordoned, node.kubelet, node.runtime) == ("n1", True, "v1.34.2", "containerd://2.1.0")
    assert node.taints == (("nvidia.com/gpu", "present", "NoSchedule"),)
    (offer,) = found.of(Advertised)
    assert (offer.name, offer.resource, offer.capacity, offer.allocatable) == ("n1", "nvidia.com/gpu", 8, 7)
    (pod,) = found.of(PodSeen)
    assert (pod.key, pod.on, pod.owner) == ("x/p", "n1", "Job/train")
    assert (pod.scheduler, pod.runtime_class) == ("berth", "nvidia")
    assert (pod.limits[0].devices, pod.limits[0].visible_devices) == ({"nvidia.com/gpu": 2}, "all")
    assert (pod.shm_bytes, pod.host_paths, pod.reason) == (2**30, ("/dev/nvidia0",), "UnexpectedAdmissionError")
    (event,) = found.of(EventSeen)
    assert (event.reason, event.name, event.count, event.type) == ("FailedScheduling", "p", 4, "Warning")
    (operand,) = found.of(Operand)
    assert (operand.name, operand.wanted, operand.ready, operand.image) == ("plugin", 3, 2, "plugin:v1")
    (policy,) = found.of(ObjectSeen)
    assert (policy.kind, policy.body["status"]) == ("ClusterPolicy", {"state": "notReady"})


def as_list(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(as_list(ALL)),
        json.dumps(as_list(ALL), indent=4),
        json.dumps(ALL),
        "\n".join(json.dumps(one) for one in ALL),
        "\n".join(json.dumps(one, indent=2) for one in ALL),
        yaml.safe_dump(as_list(ALL)),
        yaml.safe_dump_all(ALL),
    ],
    ids=["list", "list as kubectl prints it", "array", "JSON lines", "in a row", "YAML list", "YAML documents"],
)
def test_every_form_is_read(text: str) -> None:
    looked_over(facts(text))


def test_items_of_a_typed_list_have_its_kind() -> None:
    bare = {name: value for name, value in NODE.items() if name not in ("kind", "apiVersion")}
    found = facts(json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [bare]}))
    assert [one.name for one in found.of(NodeSeen)] == ["n1"]


def test_what_is_cut_off_gives_what_is_whole() -> None:
    text = json.dumps(as_list(ALL), indent=4)
    found = facts(text[: text.index("FailedScheduling")])
    assert (len(found.of(NodeSeen)), len(found.of(PodSeen)), len(found.of(EventSeen))) == (1, 1, 0)


def test_what_stands_between_and_after_objects_is_read_too() -> None:
    log = "[ 1.5] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
    found = facts(f"{json.dumps(NODE)}\n{log}{json.dumps(POD)}\n")
    assert (len(found.of(NodeSeen)), len(found.of(PodSeen))) == (1, 1)
    assert [one.get("pci") for one in found.said("kernel.off_bus")] == ["0000:3b:00.0"]
    found = facts(f"{yaml.safe_dump(NODE)}\n{log}")
    assert [one.get("pci") for one in found.said("kernel.off_bus")] == ["0000:3b:00.0"]


def test_a_node_without_its_kind_is_known_by_what_it_offers() -> None:
    found = facts(json.dumps({"status": NODE["status"]}))
    assert [(one.capacity, one.allocatable) for one in found.of(Advertised)] == [(8, 7)]


def test_what_objects_say_is_found_once_and_with_whom_it_is_about() -> None:
    found = facts(json.dumps(as_list([POD, EVENT])))
    said = [one for one in found.said("kubelet.") if "no healthy devices" in one.origin.text]
    assert {(one.origin.pod, one.origin.kind) for one in said} == {("x/p", "pod-events")}
    assert len({one.message for one in said}) == len(said)


def test_configuration_inside_a_map_is_read_as_what_it_is() -> None:
    text = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n"
    one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"any": text}}
    found = facts(json.dumps(one))
    assert "configmap" in found.kinds
    assert any(type(each).__name__ not in ("ObjectSeen", "Said") for each in found)


def test_values_that_are_none_and_quantities_that_are_no_numbers() -> None:
    odd = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": None}, "spec": None,
           "status": {"capacity": {"nvidia.com/gpu": "many", "a/b": None}, "conditions": None}}  # fmt: skip
    offers = {one.resource: one.capacity for one in facts(json.dumps(odd)).of(Advertised)}
    assert offers == {"nvidia.com/gpu": UNSAID, "a/b": UNSAID}


def test_a_quotation_of_an_object_holds_what_is_wrong_with_it() -> None:
    node = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
                                   "message": "Kubelet stopped posting node status."}]},
    }  # fmt: skip
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []},
        "status": {"phase": "Running", "containerStatuses": [
            {"name": "plugin", "restartCount": 9, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
    }  # fmt: skip
    facts = read([piece(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, pod]}))])
    assert facts.of(NodeSeen)[0].origin.text == "Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status."
    assert facts.of(PodSeen)[0].origin.text == "Running; plugin: CrashLoopBackOff"
