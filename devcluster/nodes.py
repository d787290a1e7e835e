"""Fake GPU nodes: what they have and what GPU Feature Discovery would say of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Profile:
    """One kind of node. Sources of the labels: GPU Feature Discovery's documentation; memory as the driver says it."""

    gpus: int
    cpu: int
    memory_gib: int
    product: str = ""
    gpu_memory_mib: int = 0
    family: str = ""
    compute: str = ""  # "9.0"
    resource: str = "nvidia.com/gpu"
    has_mig: bool = False
    nodes_per_clique: int = 0  # nodes in one multi-node NVLink domain; 0 where there is none

    def labels(self) -> dict[str, str]:
        if not self.gpus:
            return {}
        vendor = self.resource.partition("/")[0]
        if vendor != "nvidia.com":
            return {f"{vendor}/gpu.product-name": self.product}
        major, minor = self.compute.split(".")
        return {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": self.product,
            "nvidia.com/gpu.count": str(self.gpus),
            "nvidia.com/gpu.memory": str(self.gpu_memory_mib),
            "nvidia.com/gpu.family": self.family,
            "nvidia.com/gpu.compute.major": major,
            "nvidia.com/gpu.compute.minor": minor,
            "nvidia.com/gpu.replicas": "1",
            "nvidia.com/mig.capable": str(self.has_mig).lower(),
        }


PROFILES: dict[str, Profile] = {
    "h100": Profile(8, 128, 2048, "NVIDIA-H100-80GB-HBM3", 81559, "hopper", "9.0", has_mig=True),
    "h200": Profile(8, 192, 2048, "NVIDIA-H200", 143771, "hopper", "9.0", has_mig=True),
    "b200": Profile(8, 224, 4096, "NVIDIA-B200", 183359, "blackwell", "10.0", has_mig=True),
    "gb200": Profile(4, 144, 960, "NVIDIA-GB200", 189471, "blackwell", "10.0", has_mig=True, nodes_per_clique=18),
    "a100": Profile(8, 128, 1024, "NVIDIA-A100-SXM4-80GB", 81920, "ampere", "8.0", has_mig=True),
    "a100-40": Profile(8, 96, 1024, "NVIDIA-A100-SXM4-40GB", 40960, "ampere", "8.0", has_mig=True),
    "l40s": Profile(4, 64, 512, "NVIDIA-L40S", 46068, "ada-lovelace", "8.9"),
    "l4": Profile(4, 48, 192, "NVIDIA-L4", 23034, "ada-lovelace", "8.9"),
    "t4": Profile(4, 48, 192, "Tesla-T4", 15360, "turing", "7.5"),
    "mi300x": Profile(8, 192, 2048, "AMD_Instinct_MI300X_OAM", resource="amd.com/gpu"),
    "cpu": Profile(0, 64, 256),
}
# Several kinds in one cluster: of each 16 nodes in a row so many are of that kind.
MIXES: dict[str, tuple[tuple[str, int], ...]] = {
    "mixed": (("h100", 6), ("a100", 4), ("l40s", 4), ("cpu", 2)),
    "mixed-large": (("b200", 2), ("h200", 4), ("h100", 6), ("a100", 2), ("t4", 1), ("cpu", 1)),
}

NODES_PER_RACK = 16
NODES_PER_BLOCK = 512
FIRST_BLOCK = 488  # smaller than the others, so that "the first block" is not always right


def fake_nodes(count: int, profile: str = "h100", first: int = 0, **node: Any) -> Iterator[dict[str, Any]]:
    """Node objects n00000, n00001, ... of a profile or a mix, in racks of 16 and blocks of 512 (the first: 488)."""
    for index in range(first, first + count):
        yield fake_node(index, _kind_at(index, profile), **node)


def fake_node(
    index: int,
    profile: str = "h100",
    name: str = "",
    labels: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
) -> dict[str, Any]:
    """One node, ready, as kwok and FakeKubelet serve it. `labels` and `allocatable` go over the profile's."""
    kind = PROFILES[profile]
    name = name or f"n{index:05d}"
    rack, block = _rack_and_block(index)
    amounts = {"cpu": str(kind.cpu), "memory": f"{kind.memory_gib}Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    if kind.gpus:
        amounts[kind.resource] = str(kind.gpus)
    amounts.update(allocatable or {})
    places = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "type": "kwok",
        "example.com/rack": f"r{rack}",
        "example.com/block": f"b{block}",
    }
    if kind.nodes_per_clique:
        places["nvidia.com/gpu.clique"] = f"fabric.{index // kind.nodes_per_clique}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**places, **kind.labels(), **(labels or {})},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": taints} if taints else {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "phase": "Running",
            "addresses": [{"type": "Hostname", "address": name}],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "",
                    "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
            "nodeInfo": {
                "kubeletVersion": "v1.37.2",
                "operatingSystem": "linux",
                "architecture": "amd64",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": "",
                "osImage": "",
                "containerRuntimeVersion": "",
                "kubeProxyVersion": "",
            },
        },
    }


def profile_names() -> list[str]:
    """What may stand for PROFILE."""
    return [*PROFILES, *MIXES]


def _kind_at(index: int, profile: str) -> str:
    if profile in PROFILES:
        return profile
    place = index % sum(count for _, count in MIXES[profile])
    for kind, count in MIXES[profile]:
        if place < count:
            return kind
        place -= count
    raise AssertionError(profile)


def _rack_and_block(index: int) -> tuple[int, int]:
    """No rack lies in two blocks: the first block's last rack is a short one."""
    if index < FIRST_BLOCK:
        return index // NODES_PER_RACK, 0
    racks_before = -(-FIRST_BLOCK // NODES_PER_RACK)
    past = index - FIRST_BLOCK
    return racks_before + past // NODES_PER_RACK, 1 + past // NODES_PER_BLOCK
