"""What people tell of queues, claims, autoscalers, policies and figures: in one line, and in a few lines together."""

from __future__ import annotations

import pytest
from asked import codes, of_text

from berth.diagnosis.words import WEAK
from berth.evidence.piece import Piece
from berth.evidence.read import read

TOLD = (
    ("L5", "permission", "the GPU plugin pods are not created, pod security admission of the namespace is restricted"),
    ("L5", "quota-gang", "our job can't run since the admins set a limit of GPUs on the Volcano queue"),
    ("L5", "quota-gang", "Kueue admits it, the idle GPUs are scattered and no node has eight"),
    ("L5", "capacity", "eight GPUs are free on four nodes and the pod that wants four is Pending, pure fragmentation"),
    ("L5", "capacity", "karpenter believes that this instance family has no GPUs"),
    ("L5", "capacity", "the cluster autoscaler wont add a node for the GPU job"),
    ("L5", "scheduling-policy", "a nodeSelector of the chart leaves the GPU pod Pending"),
    ("L5", "scheduling-policy", "the notebook's PVC lives in another availability zone than the GPU node"),
    ("L4", "node-labels", "the nfd pods crash on both workers, the GPU node gets nothing"),
    ("L4", "monitoring", "dcgm-exporter exits right after its start on the H100 nodes"),
    ("L4", "monitoring", "namespace and pod of the GPU in the metrics: where do they come from"),
    ("L2", "runtime-config", "the exporter pod of DCGM fails, it has no runtimeClassName"),
    ("L5", "scheduling-policy", "a lack of tolerations was what prevented our GPU jobs from running there"),
    ("L5", "scheduling-policy", "karpenter consolidates the node although the GPU pod has do-not-disrupt"),
    ("L5", "capacity", "our account has no quota for more vCPUs of GPU instances in eu-west-1, which is a problem"),
    ("L5", "capacity", "creating the GPU node group fails, the region does not have enough capacity"),
    ("L5", "quota-gang", "the PodGroup of our training GPUs dead-locks with coscheduling"),
    ("L4", "node-labels", "the autoscaler creates too many nodes for one GPU pod"),
    ("L4", "monitoring", "the Grafana dashboard of the GPUs has gaps since Tuesday"),
    ("L4", "host-limits", "nfd-master has a memory leak, the GPU nodes lose nothing yet"),
    ("L3", "kubelet-state", "slurm drained the gpu node after the prolog"),
    ("L3", "plugin-config", "squeue and sinfo list no GPUs at all for the new node"),
    ("L5", "capacity", "the nightly GPU tests wait two hours for a free runner"),
    ("L5", "capacity", "[CI] no GPU runners are online since yesterday"),
    ("L5", "scheduling-policy", "CPU-only workloads land on the GPU machines of team b"),
    ("L5", "scheduling-policy", "the launcher for GPU jobs has no way of adding a toleration"),
    ("L5", "quota-gang", "a higher-priority training with two GPUs stays Pending beside a lower one"),
    ("L4", "image", "gpu-operator does not install, our mirror answers with x509: signed by an unknown CA"),
    ("L4", "node-labels", "[Question]: nvidia.com/gpu.memory should contain MiB and the label has bytes"),
    ("L4", "monitoring", "DCGM exporter shows a wrong profile label for the GPU instances"),
    ("L4", "node-labels", "[MIG on two clusters] labels of the MIG slices are missing"),
    ("L4", "mig-state", "MIG slices of another size than we wanted, which is a problem"),
    ("L5", "quota-gang", "vGPU pods never preempt those of a lower class"),
    ("L5", "capacity", "builds wait for GPU instances since noon"),
)


@pytest.mark.parametrize(("layer", "cause_class", "text"), TOLD)
def test_the_usual_cause_is_answered(layer: str, cause_class: str, text: str) -> None:
    top = of_text(text).findings[0]
    assert (top.layer.name, top.cause_class) == (layer, cause_class), top.code


NOTHING = (
    "pod security admission is set to restricted in this namespace of the GPU cluster",
    "the Volcano queue has a capability of eight GPUs",
    "karpenter made a node with four GPUs, the pod runs on it",
    "our nodes are spread over three availability zones, two of them have GPUs",
    "dcgm-exporter exports metrics of all GPUs to Prometheus",
    "slurm has eight GPUs on each node of the partition",
    "DCGM_FI_DEV_FB_FREE, gauge, Framebuffer memory free (in MiB).",
    "GPUs are given through ResourceClaims, not through a direct mount of devices",
    'DCGM_FI_DEV_GPU_TEMP{gpu="0",device="nvidia0",Hostname="n1"} 30',
    "Changing the 'nvidia.com/mig.config.state' node label to 'pending'",
    "[info] GPU jobs wait for the next free runner",
    "[rank0]: labels of the GPU nodes are missing",
    "MIG slices of one size are on every node of the GPU pool",
    "the runner has two GPUs and begins a job at once",
    "GPU pods tolerate the taint of these nodes",
    "our mirror of nvcr.io has all images of the GPU operator",
    "high-priority jobs run on one node, which has only one task for 8 GPUs",
)


@pytest.mark.parametrize("text", NOTHING)
def test_what_tells_of_no_fault_gives_none(text: str) -> None:
    assert [(one.code, one.cause) for one in of_text(text).findings] == []


def test_a_title_and_the_line_below_it_are_one_thought() -> None:
    (top, *_) = of_text("Trouble with our Kueue setup for the GPU team\nThe new Job stays suspended for hours").findings
    assert (top.layer.name, top.cause_class, top.confidence) == ("L5", "quota-gang", WEAK)


def test_a_line_that_was_only_wrapped_goes_on_in_the_next() -> None:
    text = (
        "We saw this on two clusters now, with the same release: the cluster-autoscaler makes too\nmany nodes for a GPU"
    )
    (top, *_) = of_text(text).findings
    assert top.code == "AutoscalerMakesTooMany"
    assert top.evidence[0].text == text.replace("\n", " ")


def test_the_kind_of_gpu_is_a_matter_of_the_selector_and_not_of_rights() -> None:
    text = (
        "GKE Warden rejected the request because it violates one or more constraints: [denied by "
        "autogke-gpu-limitation]: You must specify a GPU type with node selector"
    )
    (top,) = of_text(text).findings
    assert (top.layer.name, top.cause_class) == ("L5", "scheduling-policy")
    assert (
        of_text("GKE Warden rejected it: denied by autogke-disallow-privilege").findings[0].cause_class == "permission"
    )


def test_lines_of_a_long_story_are_not_put_together() -> None:
    filler = "\n".join(f"Then team {n} restarted the node and looked again" for n in range(8))
    assert of_text(f"We have a Kueue setup for the GPU team\n{filler}\nThe new Job stays suspended").findings == ()


SHARES = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n"


def test_a_state_is_told_beside_the_document_that_it_is_about() -> None:
    from berth.diagnosis.diagnose import diagnose

    story = Piece(b"I applied this ConfigMap and it is simply not taking effect", "report", "report")
    found = diagnose(read([Piece(SHARES.encode(), "config", ""), story])).findings
    assert [(one.code, one.confidence) for one in found] == [("ReplicasNotInEffect", WEAK)]
    assert diagnose(read([story])).findings == ()


@pytest.mark.parametrize(
    ("numbers", "cause_class"),
    [
        ("requested: 2, used: 7, capacity: 8", "capacity"),
        ("requested: 1, used: 8, capacity: 8", "capacity"),
        ("requested: 1, used: 2, capacity: 8", "scheduling-policy"),
    ],
)
def test_a_node_that_is_full_is_a_matter_of_room(numbers: str, cause_class: str) -> None:
    (top,) = of_text(f"Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, {numbers}").findings
    assert (top.code, top.cause_class) == ("NodeOutOfResource", cause_class)


def test_an_amount_that_nodes_do_offer_is_short_in_the_ordinary_way() -> None:
    text = (
        "Warning  FailedScheduling  default-scheduler  0/1 nodes are available: 1 Insufficient example.com/gpumem.\n"
        "Capacity:\n  example.com/gpumem: 4000\nAllocatable:\n  example.com/gpumem: 4000\n"
    )
    assert "ResourceNameNotOffered" not in codes(of_text(text))


@pytest.mark.parametrize(
    "text",
    [
        "sbatch: Submitted batch job 4711 on 2 GPUs",
        "sbatch: error: Unable to open file job.sh",
        "  4711   gpu  train  ada PD  0:00  2 (Priority)",
        "quota of the namespace: requests.nvidia.com/gpu 4",
        "NodePool a100 requires karpenter.k8s.aws/instance-gpu-manufacturer",
        "all zones of the region have the requested VM size",
    ],
)
def test_what_comes_near_is_none(text: str) -> None:
    assert not codes(of_text(text)) & {
        "SlurmRequestRefused", "SlurmNoNodeFits", "QuotaKeyWithoutEffect", "NoNodeTypeFits", "CloudHasNoCapacity"
    }  # fmt: skip
