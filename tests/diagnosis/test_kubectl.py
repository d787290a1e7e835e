"""Tables and descriptions of kubectl, labels, figures and layouts: what the samples say, and what broken text does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from berth.evidence.fact import Fact
from berth.evidence.facts import Facts, Kind
from berth.evidence.formats import dcgm_metrics, gpu_labels, mig_layout
from berth.evidence.formats.cluster_facts import (
    UNSAID,
    Advertised,
    EventSeen,
    NodeSeen,
    ObjectSeen,
    Operand,
    PodSeen,
)
from berth.evidence.piece import Piece
from berth.evidence.read import read

SAMPLES = Path(os.environ.get("BERTH_DATA", "")) / "samples"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="BERTH_DATA has no samples")


def of(text: str) -> Facts:
    return read([Piece(text.encode(), source="text")])


def sample(name: str) -> Facts:
    return read([Piece((SAMPLES / name).read_bytes(), source=name)])


def one(facts: Facts, kind: type[Kind]) -> Kind:
    (found,) = facts.of(kind)
    return found


@needs_samples
def test_pods_of_the_operator() -> None:
    pods = {pod.name: pod for pod in sample("kubectl/mig-get-pods.txt").of(PodSeen)}
    assert len(pods) == 12
    assert pods["nvidia-mig-manager-8d6wz"].phase == "Running"
    assert pods["nvidia-cuda-validator-wt6bc"].phase == "Succeeded"
    assert pods["nvidia-cuda-validator-wt6bc"].states[0].reason == "Completed"


@needs_samples
def test_tables_among_prose() -> None:
    facts = sample("kubectl/gpu-operator_healthy_pods.md")
    assert one(facts, ObjectSeen).body == {"status": {"state": "ready"}}
    pods = {pod.name: pod for pod in facts.of(PodSeen)}
    assert pods["nvidia-driver-daemonset-qc7cg"].on == "gpu-node-1"
    assert pods["nvidia-driver-daemonset-qc7cg"].namespace == "gpu-operator"
    sets = {one.name: one for one in facts.of(Operand)}
    assert (sets["node-feature-discovery-worker"].wanted, sets["node-feature-discovery-worker"].ready) == (3, 3)
    assert sets["nvidia-device-plugin-mps-control-daemon"].wanted == 0
    assert sets["nvidia-device-plugin-mps-control-daemon"].node_selector == {
        "nvidia.com/gpu.deploy.device-plugin": "true",
        "nvidia.com/mps.capable": "true",
    }


@needs_samples
def test_tables_of_a_gang() -> None:
    facts = sample("gang/kai_gang.md")
    deployments = {one.name: (one.ready, one.wanted) for one in facts.of(Operand)}
    assert deployments["kai-scheduler-default"] == (1, 1)
    workers = [pod for pod in facts.of(PodSeen) if pod.name == "gang-worker-0" and pod.on]
    assert [(pod.on, pod.phase, pod.namespace) for pod in workers] == [("node-1", "Succeeded", "gang-scheduling-test")]


@needs_samples
def test_events_in_a_table() -> None:
    events = sample("pod-events/time-slicing-get-events.txt").of(EventSeen)
    assert len(events) == 24
    assert (events[0].kind, events[0].name) == ("Pod", "nvidia-device-plugin-daemonset-cffds")
    assert (events[0].reason, events[0].type, events[0].last) == ("Created", "Normal", "33s")
    assert events[4].message.endswith('gpu-operator-validator:v22.9.1" already present on machine')


@needs_samples
def test_labels_of_a_node_as_one_map() -> None:
    node = one(sample("node-json/mig-mixed-node-labels.json"), NodeSeen)
    assert node.labels["nvidia.com/mig.config"] == "all-balanced"
    assert node.labels["nvidia.com/mig-3g.40gb.memory"] == "40320"
    assert node.labels["nvidia.com/gpu.deploy.mig-manager"] == "true"
    single = one(sample("node-json/mig-node-labels.json"), NodeSeen)
    assert single.labels["nvidia.com/mig.strategy"] == "single"


@needs_samples
def test_labels_that_discovery_must_write() -> None:
    expected = sample("gfd-labels/k8s-device-plugin-mig-mixed.txt").of(gpu_labels.LabelExpected)
    assert len(expected) == 39
    labels = one(sample("node-json/mig-mixed-node-labels.json"), NodeSeen).labels
    strategy = next(one for one in expected if one.key.endswith("sharing-strategy"))
    assert strategy.is_met_by("nvidia.com/gpu.sharing-strategy", labels["nvidia.com/gpu.sharing-strategy"])
    assert not strategy.is_met_by("nvidia.com/gpu.sharing-strategy", "n")
    slices = next(one for one in expected if one.key.endswith("slices\\.gi"))
    assert slices.is_met_by("nvidia.com/mig-1g.10gb.slices.gi", labels["nvidia.com/mig-1g.10gb.slices.gi"])
    assert len(sample("gfd-labels/k8s-device-plugin.txt").of(gpu_labels.LabelExpected)) == 25
    assert len(sample("gfd-labels/k8s-device-plugin-mig-single.txt").of(gpu_labels.LabelExpected)) == 34
    assert len(sample("gfd-labels/k8s-device-plugin-vgpu.txt").of(gpu_labels.LabelExpected)) == 3


@needs_samples
@pytest.mark.parametrize("pattern", [".{99999999999}", "(", "(a+)+b", "a**", "[z-a]"])
def test_a_pattern_that_is_none_is_passed_over(pattern: str) -> None:
    text = f"nvidia\\.com\\/gpu\\.count=[0-9]+\nnvidia\\.com\\/gpu\\.product={pattern}\n"
    assert [one.pattern for one in read([Piece(text.encode(), "labels")]).of(gpu_labels.LabelExpected)] == ["[0-9]+"]


def test_profiles_of_classes_of_nodes() -> None:
    profile = one(sample("gfd-labels/aicr_kwok_p5-h100.yaml"), gpu_labels.NodeProfile)
    assert (profile.product, profile.gpus, profile.memory_mib) == ("NVIDIA-H100-80GB-HBM3", 8, 81920)
    assert (profile.instance_type, profile.driver) == ("p5.48xlarge", "570.86.16")
    assert one(sample("gfd-labels/aicr_kwok_p6-gb200.yaml"), gpu_labels.NodeProfile).memory_mib == 196608


@needs_samples
def test_figures_of_the_exporter() -> None:
    samples = sample("dcgm-metrics/h100_k8s135.prom").of(dcgm_metrics.Sample)
    assert len(samples) == 30
    assert (samples[0].field, samples[0].value, samples[0].gpu) == ("DCGM_FI_DEV_GPU_TEMP", 30.0, "0")
    assert (samples[0].pci, samples[0].host) == ((0, 0x53, 0), "gpu-node-1")
    assert samples[0].pod == "dynamo-workload/vllm-agg-0-vllmdecodeworker-s65j5"
    assert samples[8].value == 113.611
    assert samples[1].pod == ""


@needs_samples
def test_counters_that_are_collected() -> None:
    counters = {one.field: one for one in sample("dcgm-metrics/default-counters.csv").of(dcgm_metrics.CounterListed)}
    assert counters["DCGM_FI_DEV_XID_ERRORS"].is_on
    assert counters["DCGM_FI_DEV_DEC_UTIL"].type == "gauge"
    assert not counters["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"].is_on
    assert not counters["DCGM_EXP_XID_ERRORS_COUNT"].is_on
    assert counters["DCGM_FI_DRIVER_VERSION"].type == "label"


@needs_samples
def test_layouts_of_mig() -> None:
    layouts = {one.name: one for one in sample("mig-parted/examples_config.yaml").of(mig_layout.MigLayout)}
    assert len(layouts) == 9
    assert not layouts["all-disabled"].parts[0].is_enabled
    assert layouts["all-1g.5gb.me"].parts[0].profiles == {"1g.5gb+me": 1}
    custom = layouts["custom-config"].parts
    assert [part.devices for part in custom] == [(0, 1, 2, 3), (4,), (5,), (6,), (7,)]
    assert custom[4].profiles == {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}


DESCRIPTION = """\
Name:               gpu-5
Roles:              worker
Labels:             kubernetes.io/hostname=gpu-5
                    nvidia.com/gpu.product=NVIDIA-L40S
Annotations:        node.alpha.kubernetes.io/ttl: 0
CreationTimestamp:  Mon, 01 Jan 2026 00:00:00 +0000
Taints:             nvidia.com/gpu=present:NoSchedule
                    dedicated:NoExecute
Unschedulable:      true
Conditions:
  Type    Status  LastHeartbeatTime                LastTransitionTime               Reason        Message
  ----    ------  -----------------                ------------------               ------        -------
  Ready   True    Mon, 01 Jan 2026 00:00:00 +0000  Mon, 01 Jan 2026 00:00:00 +0000  KubeletReady  kubelet is ready
Capacity:
  cpu:             96
  hugepages-1Gi:   0
  nvidia.com/gpu:  8
  pods:            110
Allocatable:
  cpu:             95
  nvidia.com/gpu:  7
System Info:
  Kernel Version:             5.15.0-112-generic
  OS Image:                   Ubuntu 22.04.4 LTS
  Container Runtime Version:  containerd://1.7.18
  Kubelet Version:            v1.31.2
Allocated resources:
  Resource        Requests  Limits
  nvidia.com/gpu  3         3
Events:
  Type     Reason    Age    From     Message
  ----     ------    ----   ----     -------
  Warning  Rebooted  5m12s  kubelet  Node gpu-5 has been rebooted, boot id: 1
"""


def test_description_of_a_node() -> None:
    facts = of(DESCRIPTION)
    node = one(facts, NodeSeen)
    assert (node.name, node.kubelet, node.runtime) == ("gpu-5", "v1.31.2", "containerd://1.7.18")
    assert (node.kernel, node.os_image, node.is_cordoned) == ("5.15.0-112-generic", "Ubuntu 22.04.4 LTS", True)
    assert node.taints == (("nvidia.com/gpu", "present", "NoSchedule"), ("dedicated", "", "NoExecute"))
    assert node.labels == {"kubernetes.io/hostname": "gpu-5", "nvidia.com/gpu.product": "NVIDIA-L40S"}
    assert [(one.type, one.status, one.reason) for one in node.conditions] == [("Ready", "True", "KubeletReady")]
    offer = one(facts, Advertised)
    assert (offer.name, offer.resource, offer.capacity, offer.allocatable) == ("gpu-5", "nvidia.com/gpu", 8, 7)
    assert offer.node == "gpu-5"
    event = one(facts, EventSeen)
    assert (event.kind, event.name, event.reason, event.component) == ("Node", "gpu-5", "Rebooted", "kubelet")


def test_description_of_a_pod() -> None:
    text = """\
Name:             train-0
Namespace:        ml
Priority:         0
Node:             gpu-5/10.0.0.5
Labels:           app=train
Status:           Failed
Reason:           UnexpectedAdmissionError
Message:          Pod was rejected: Allocate failed
Controlled By:    Job/train
Init Containers:
  warm-up:
    Image:          busybox
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
    Restart Count:  0
Containers:
  main:
    Image:          nvcr.io/nvidia/pytorch:24.05-py3
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Restart Count:  4
    Limits:
      cpu:             8
      nvidia.com/gpu:  2
Node-Selectors:              nvidia.com/gpu.product=NVIDIA-L40S
Tolerations:                 node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
                             nvidia.com/gpu=present:NoSchedule
"""
    pod = one(of(text), PodSeen)
    assert (pod.key, pod.on, pod.phase, pod.reason, pod.owner) == (
        "ml/train-0", "gpu-5", "Failed", "UnexpectedAdmissionError", "Job/train",
    )  # fmt: skip
    assert [(one.container, one.state, one.reason, one.last_reason, one.restarts) for one in pod.states] == [
        ("warm-up", "terminated", "Completed", "", 0),
        ("main", "waiting", "CrashLoopBackOff", "OOMKilled", 4),
    ]
    assert [(one.container, dict(one.devices), one.is_init) for one in pod.limits] == [
        ("warm-up", {}, True),
        ("main", {"nvidia.com/gpu": 2}, False),
    ]
    assert pod.tolerations[1] == ("nvidia.com/gpu", "Equal", "present", "NoSchedule")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("allocatable nvidia.com/gpu: 7 (capacity 8)", {"nvidia.com/gpu": (8, 7)}),
        ("Capacity: nvidia.com/gpu: 1", {"nvidia.com/gpu": (1, UNSAID)}),
        ("capacity nvidia.com/gpu: 0, nvidia.com/gpu.shared: 4",
         {"nvidia.com/gpu": (0, UNSAID), "nvidia.com/gpu.shared": (4, UNSAID)}),
        ('capacity: {"nvidia.com/gpu":"0","nvidia.com/mig-3g.20gb":"2"}',
         {"nvidia.com/gpu": (0, UNSAID), "nvidia.com/mig-3g.20gb": (2, UNSAID)}),
        ("allocatable: map[cpu:96 nvidia.com/gpu:8 pods:110]", {"nvidia.com/gpu": (UNSAID, 8)}),
        ("amd.com/gpu capacity=4 allocatable=3", {"amd.com/gpu": (4, 3)}),
    ],
)  # fmt: skip
def test_what_somebody_writes_down(line: str, said: dict[str, tuple[int, int]]) -> None:
    offers = of(line).of(Advertised)
    assert {one.resource: (one.capacity, one.allocatable) for one in offers} == said


@pytest.mark.parametrize(
    "line",
    [
        "Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 8, capacity: 8",
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "I0101 12:00:00.000001 1 manager.go:1] allocatable of nvidia.com/gpu computed in 12 ms",
        "we talked about capacity for nvidia.com/gpu nodes",
    ],
)
def test_what_is_no_offer(line: str) -> None:
    assert of(line).of(Advertised) == []


def test_columns_of_ones_own() -> None:
    offers = of("NODE     CAP   ALLOC\ngpu-1    8     8\ngpu-2    8     0\ncpu-1    <none>   <none>\n").of(Advertised)
    assert [(one.name, one.capacity, one.allocatable) for one in offers] == [
        ("gpu-1", 8, 8), ("gpu-2", 8, 0), ("cpu-1", 0, 0),
    ]  # fmt: skip


def test_labels_as_columns_and_as_lines() -> None:
    table = of(
        "NAME    STATUS                     ROLES    AGE   VERSION   MIG.CONFIG.STATE\n"
        "g1      Ready,SchedulingDisabled   <none>   3d    v1.34.1   pending\n"
    )
    node = one(table, NodeSeen)
    assert (node.is_cordoned, dict(node.labels)) == (True, {"nvidia.com/mig.config.state": "pending"})
    lines = one(of("nvidia.com/gpu.count=8\nnvidia.com/gpu.product: NVIDIA-L40S\nnvidia.com/gpu: 1\n"), NodeSeen)
    assert dict(lines.labels) == {"nvidia.com/gpu.count": "8", "nvidia.com/gpu.product": "NVIDIA-L40S"}


@pytest.mark.parametrize("cut", [0, 1, 17, 100, 400, 900])
def test_text_that_is_cut_off_or_no_text_at_all_says_less_and_breaks_nothing(cut: int) -> None:
    for raw in (DESCRIPTION.encode()[:cut], DESCRIPTION.encode()[cut:], b"\xff\xfe\x00" * cut, b"{" * cut):
        assert all(isinstance(fact, Fact) for fact in read([Piece(raw)]))
