"""Scheduling and admission: what nodes say decides between causes that one event has in common."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from asked import codes, of_text

from berth.diagnosis.diagnose import Diagnosis, diagnose
from berth.diagnosis.finding import Finding
from berth.evidence.fact import Fact
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import Advertised, Condition, Limit, NodeSeen, ObjectSeen, PodSeen
from berth.evidence.piece import piece
from berth.evidence.read import read

SHORT = (
    "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. "
    "preemption: 0/2 nodes are available: 2 No preemption victims found."
)


def with_facts(text: str, more: Iterable[Fact] = ()) -> Diagnosis:
    facts: Facts = read([piece(text, "pod-events")])
    for one in more:
        facts.add(one)
    return diagnose(facts)


def the(diagnosis: Diagnosis, code: str) -> Finding:
    return next(
        one for one in (*diagnosis.findings, *(two.finding for two in diagnosis.consequences)) if one.code == code
    )


def offers(node: str, amount: int, resource: str = "nvidia.com/gpu", capacity: int = 8) -> Advertised:
    return Advertised(name=node, resource=resource, capacity=capacity, allocatable=amount)


def test_used_up_where_nodes_offer_it() -> None:
    one = the(with_facts(SHORT, [offers("a", 8), offers("b", 8)]), "DevicesAllTaken")
    assert "Nodes offer 16 in all, the largest 8." in one.cause
    assert "Preemption finds nobody" in one.cause
    assert one.layer.name == "L5"
    assert "RESOURCE" not in " ".join(one.fix.steps)


def test_not_offered_where_allocatable_is_0_on_all_nodes() -> None:
    diagnosis = with_facts(SHORT, [offers("a", 0), offers("b", 0)])
    assert "DevicesAllTaken" not in codes(diagnosis)
    assert the(diagnosis, "ResourceNotAdvertised").layer.name == "L3"


def test_a_slip_of_a_name_that_is_offered() -> None:
    text = SHORT.replace("nvidia.com/gpu", "nvidia.com/gpus")
    one = the(with_facts(text, [offers("a", 8)]), "ResourceNameNotOffered")
    assert "nodes offer nvidia.com/gpu" in one.cause


def test_a_mig_profile_is_no_slip_of_another() -> None:
    text = SHORT.replace("nvidia.com/gpu", "example.org/fpga")
    assert "ResourceNameNotOffered" not in codes(with_facts(text, [offers("a", 8)]))


def test_the_taint_that_the_event_does_not_name_any_more_is_taken_from_the_nodes() -> None:
    text = "0/2 nodes are available: 2 node(s) had untolerated taint(s)."
    node = NodeSeen(name="a", taints=(("nvidia.com/gpu", "present", "NoSchedule"), ("x", "", "PreferNoSchedule")))
    assert "nvidia.com/gpu=present:NoSchedule" in the(with_facts(text, [node]), "TaintNotTolerated").cause
    tolerant = PodSeen(namespace="n", name="p", tolerations=(("nvidia.com/gpu", "Exists", "", ""),))
    assert "nvidia.com/gpu=present" not in the(with_facts(text, [node, tolerant]), "TaintNotTolerated").cause


def test_control_planes_that_keep_gpu_pods_out_are_no_finding_beside_a_shortage() -> None:
    text = (
        "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
        "2 Insufficient nvidia.com/gpu."
    )
    assert codes(with_facts(text)) == {"DevicesAllTaken"}


def test_the_label_that_nodes_have_instead_is_named() -> None:
    text = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    node = NodeSeen(name="a", labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED"})
    pod = PodSeen(namespace="n", name="p", node_selector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    assert (
        "nodes have NVIDIA-H100-80GB-HBM3-SHARED" in the(with_facts(text, [node, pod]), "NodeSelectorUnmatched").cause
    )


def test_a_pod_that_nobody_schedules() -> None:
    waits = PodSeen(namespace="n", name="p", phase="Pending", scheduler="volcano", made="2026-01-01T00:00:00Z")
    assert "SchedulerNotServing" in codes(with_facts("", [waits]))
    told = PodSeen(
        namespace="n", name="p", phase="Pending", scheduler="volcano", made="2026-01-01T00:00:00Z",
        conditions=(Condition("PodScheduled", "False", "Unschedulable"),),
    )  # fmt: skip
    assert "SchedulerNotServing" not in codes(with_facts("", [told]))
    ordinary = PodSeen(
        namespace="n", name="p", phase="Pending", scheduler="default-scheduler", made="2026-01-01T00:00:00Z"
    )
    assert "SchedulerNotServing" not in codes(with_facts("", [ordinary]))


def test_a_gate_of_a_queue_is_quota_and_another_is_policy() -> None:
    queue = PodSeen(namespace="n", name="p", phase="Pending", gates=("kueue.x-k8s.io/admission",))
    other = PodSeen(namespace="n", name="q", phase="Pending", gates=("example.org/wait",))
    assert [one.cause_class for one in with_facts("", [queue]).findings] == ["quota-gang"]
    assert [one.cause_class for one in with_facts("", [other]).findings] == ["scheduling-policy"]


def test_a_quota_key_that_counts_and_a_default_without_devices_are_no_findings() -> None:
    good = (
        "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: q\n  namespace: a\nspec:\n  hard:\n"
        "    requests.nvidia.com/gpu: 8\n    limits.cpu: 64\n    count/jobs.batch: 10\n    pods: 20\n"
        "    gold.storageclass.storage.k8s.io/requests.storage: 1Ti\n"
    )
    assert codes(of_text(good)) == set()
    limits = (
        "apiVersion: v1\nkind: LimitRange\nmetadata:\n  name: l\n  namespace: a\nspec:\n  limits:\n"
        "  - type: Container\n    default:\n      cpu: 1\n    max:\n      nvidia.com/gpu: 8\n"
    )
    assert codes(of_text(limits)) == set()


@pytest.mark.parametrize(
    "text",
    [
        "Normal  Scheduled  2s  default-scheduler  Successfully assigned default/a to gpu-1",
        "Normal  Admitted  kueue-admission  Admitted by ClusterQueue gpu-cq, wait time since reservation was 0s",
        "Quota reserved in ClusterQueue tas-main, wait time since queued was 1s",
        "type: Active status: True reason: Ready message: Can admit new workloads",
        "webhook vgpu.hami.io registered; failurePolicy: Ignore",
        "schedulerName: volcano\n    image: x\n",
        "podgroup.scheduling.run.ai/gang-test-group created",
        "I0101 node_info.go:1 node gpu-1 in sync",
        "preemption: 1 victims on node gpu-1",
        "IOMMU enabled\nvfio-pci 0000:01:00.0: enabling device (0000 -> 0003)",
        "NAME        STATE                AGE\ngpu-claim   allocated,reserved   11s",
        "gpu.nvidia.com                              10m",
        "cluster-autoscaler TriggeredScaleUp pod triggered scale-up: [{gpu-pool 0->1 (max: 4)}]",
        "pod-security.kubernetes.io/enforce=privileged",
        "coredns-5d78c9869d-6xkqr   1/1   Running   0   12m",
        "compute-domain-daemon-x7k2p   1/1   Running   0   4m",
        "[    1.2] DMAR: IOMMU disabled",
        "Taints:             nvidia.com/gpu=present:NoSchedule",
        "GPU nodes are tainted with nvidia.com/gpu=present:NoSchedule, jobs tolerate it",
        "queue research: capability 8, allocated 8, state Open",
        'E1130 reflector.go:227] "Failed to watch" err="the server could not find the requested resource" '
        'logger="UnhandledError" reflector="k8s.io/client-go/metadata/metadatainformer/informer.go:138"',
    ],
)
def test_healthy_lines_are_no_findings(text: str) -> None:
    assert codes(of_text(text)) == set()


def test_missing_capacity_explains_the_waiting_pod() -> None:
    """An event of the scheduler beside its cause on the node is a consequence, not a second fault."""
    diagnosis = with_facts(
        "NVRM: Xid (PCI:0000:b3:00): 79, pid=1, name=x, GPU has fallen off the bus.\n" + SHORT, [offers("a", 7)]
    )
    assert diagnosis.findings[0].code == "GpuFellOffBus"
    assert "DevicesAllTaken" in {one.finding.code for one in diagnosis.consequences}


def test_a_node_that_is_known_whole_and_lists_no_device_offers_none() -> None:
    node = NodeSeen(name="a", kubelet="v1.34.1", labels={"kubernetes.io/arch": "amd64"})
    assert "ResourceNotAdvertised" in codes(with_facts(SHORT, [node]))
    of_a_list = NodeSeen(name="a", kubelet="v1.34.1")
    assert "DevicesAllTaken" in codes(with_facts(SHORT, [of_a_list]))


def test_who_holds_the_devices_is_named_and_a_pod_that_is_too_large() -> None:
    holder = PodSeen(
        namespace="n", name="old", on="a", phase="Running", limits=(Limit("c", devices={"nvidia.com/gpu": 6}),)
    )
    waits = PodSeen(namespace="n", name="new", phase="Pending", limits=(Limit("c", devices={"nvidia.com/gpu": 4}),))
    assert "held by n/old (6)" in the(with_facts(SHORT, [offers("a", 8), holder, waits]), "DevicesAllTaken").cause
    large = PodSeen(namespace="n", name="new", phase="Pending", limits=(Limit("c", devices={"nvidia.com/gpu": 16}),))
    assert "asks for 16" in the(with_facts(SHORT, [offers("a", 8), large]), "MoreDevicesThanNode").cause


def test_a_claim_that_is_not_allocated_says_what_drivers_publish() -> None:
    body = {
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": "a",
            "devices": [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}, {"name": "gpu-1"}],
        }
    }
    slices = ObjectSeen(api_version="resource.k8s.io/v1", kind="ResourceSlice", namespace="", name="s", body=body)
    text = "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable."
    assert "2 of gpu.nvidia.com on a" in the(with_facts(text, [slices]), "ClaimNotAllocatable").cause
    empty = ObjectSeen(api_version="resource.k8s.io/v1", kind="ResourceSlice", namespace="", name="s", body={})
    assert "no device" in the(with_facts(text, [empty]), "ClaimNotAllocatable").cause


@pytest.mark.parametrize(
    "anything", [None, 0, "x", [], [1], {}, {"limits": 3}, {"hard": [1]}, {"devices": [3, {"name": []}]}]
)
@pytest.mark.parametrize("kind", ["ResourceQuota", "LimitRange", "ResourceSlice", "ResourceClaim"])
def test_objects_that_hold_something_else_raise_nothing(kind: str, anything: object) -> None:
    for body in ({"spec": anything}, {"spec": {"limits": [anything], "hard": anything, "devices": [anything]}}):
        odd = ObjectSeen(api_version="v1", kind=kind, namespace="n", name="o", body=body)
        with_facts("0/1 nodes are available: 1 cannot allocate all claims.", [odd])


@pytest.mark.parametrize(("asked", "is_beyond"), [(8, True), (4, False)])
def test_a_request_above_the_whole_quota_is_told_from_one_that_has_to_wait(asked: int, is_beyond: bool) -> None:
    text = (
        f'pods "c-0" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu={asked}, '
        "used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=4"
    )
    assert ("ever allows" in the(with_facts(text), "QuotaExceeded").cause) == is_beyond


@pytest.mark.parametrize(
    ("key", "is_idle"),
    [
        ("limits.nvidia.com/gpu", True),
        ("requests.nvidia.com/gpumemory", True),
        ("requests.nvidia.com/gpu", False),
        ("limits.nvidia.com/gpumem", False),  # a share scheduler counts it
    ],
)
def test_a_quota_key_counts_where_somebody_counts_it(key: str, is_idle: bool) -> None:
    quota = f"kind: ResourceQuota\nmetadata:\n  name: q\n  namespace: a\nspec:\n  hard: {{{key}: '2'}}\n"
    assert ("QuotaKeyWithoutEffect" in codes(of_text(quota))) == is_idle


def test_a_gate_that_stays_after_kueue_has_admitted_is_somebody_elses() -> None:
    gated = "train-0   0/1   SchedulingGated   0   2m3s"
    admitted = "Normal  Admitted  2m25s  kueue-admission  Admitted by ClusterQueue cq"
    assert the(of_text(gated), "HeldBySchedulingGate").cause_class == "quota-gang"
    assert the(of_text(f"{admitted}\n{gated}"), "HeldBySchedulingGate").cause_class == "scheduling-policy"


@pytest.mark.parametrize(
    ("webhook", "why", "cause_class"),
    [
        ("validatejob.volcano.sh", "duplicated task name worker;", "scheduling-policy"),
        ("vgpu.hami.io", "container main is privileged", "permission"),
        ("policy.example.com", "images of this registry only", "permission"),
    ],
)
def test_what_a_queue_refuses_is_written_wrongly(webhook: str, why: str, cause_class: str) -> None:
    denied = of_text(f'admission webhook "{webhook}" denied the request: {why}')
    assert the(denied, "PolicyDeniesPod").cause_class == cause_class


def test_memory_of_a_guest_that_is_not_pinned_is_of_the_machine() -> None:
    assert of_text("vfio_pin_pages_remote: RLIMIT_MEMLOCK (65536) exceeded").findings[0].cause_class == "passthrough"
    refused = "libvirt: error : cannot limit locked memory of process 111 to 9007199254740991: Operation not permitted"
    assert of_text(refused).findings[0].cause_class == "passthrough"


def test_cards_that_the_plugin_calls_unhealthy_are_of_the_plugin() -> None:
    sick = of_text("1 nodes CardNotHealth(gpu-1)").findings[0]
    assert (sick.layer.name, sick.cause_class) == ("L3", "plugin-health")
    mixed = of_text("1 nodes CardNotHealth(gpu-1)\n1 nodes CardInsufficientMemory(gpu-2)").findings[0]
    assert (mixed.layer.name, mixed.cause_class) == ("L5", "capacity")
