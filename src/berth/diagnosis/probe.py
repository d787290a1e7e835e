"""A probe that splits a node in two: the smallest container that reaches a GPU past Kubernetes. Offered, never run."""

from __future__ import annotations

from msgspec import Struct

from berth.diagnosis.diagnose import Diagnosis
from berth.diagnosis.words import LIKELY, Layer
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen

IMAGE = "docker.io/nvidia/cuda:12.4.1-base-ubuntu22.04"


class Probe(Struct, frozen=True):
    """A command for somebody to run on the node, and how to read what it prints."""

    command: str
    passes: str
    fails: str


def offered(diagnosis: Diagnosis, facts: Facts) -> Probe | None:
    """Where it is open whether hardware, driver and runtime work; None where that is known, or nothing is wrong."""
    if diagnosis.gate.go or not (diagnosis.findings or diagnosis.unconfirmed):
        return None
    if any(one.layer <= Layer.L2 and one.confidence >= LIKELY for one in diagnosis.findings):
        return None
    runtimes = {node.runtime.partition(":")[0] for node in facts.of(NodeSeen) if node.runtime}
    if "cri-o" in runtimes and "containerd" not in runtimes:
        command = f"sudo podman run --rm --device nvidia.com/gpu=all {IMAGE} nvidia-smi -L"
    else:
        command = f"sudo ctr -n k8s.io run --rm --gpus 0 {IMAGE} gpuprobe nvidia-smi -L"
    return Probe(
        command,
        "lists the GPU: hardware, driver and toolkit work (L0 to L2); look at plugin, node and pod. It says nothing of "
        "the handler that pods name, since it asks for the device directly",
        "mend driver or runtime first. 'no CDI devices found' is a runtime without a CDI specification",
    )
