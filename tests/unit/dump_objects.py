"""Objects of a small cluster, to be dumped in one form or another."""

from __future__ import annotations

from pathlib import Path

from berth.model.snapshot import Snapshot
from berth.sources.assemble import read_snapshot

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "gpu-1",
        "uid": "n1",
        "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"},
        "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
    },
    "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "191500m", "memory": "2Ti", "nvidia.com/gpu": "8", "pods": "110"},
        "capacity": {"cpu": "192", "memory": "2Ti", "nvidia.com/gpu": "8", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True", "message": "fine: - really\n---\nkind: no"}],
    },
}


def pod(name: str, node: str | None = "gpu-1", gpus: object = "2", **more) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "train",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-11-29T10:00:00Z",
            "labels": {"app": "train", "on": "off"},
            "annotations": {"note": "a: b\n- apiVersion: v1\n---\n  kind: Node\n", "empty": ""},
        },
        "spec": {
            "containers": [
                {
                    "args": ["-c", "for i in 1; do\n  echo ---\ndone\n"],
                    "image": "registry.example/a:1",
                    "name": "main",
                    "resources": {"limits": {"nvidia.com/gpu": gpus, "cpu": "4"}},
                }
            ],
            "nodeName": node,
            "volumes": [{"name": "token", "projected": {"sources": [{"configMap": {"name": "ca"}}]}}],
        },
        "status": {"phase": "Running" if node else "Pending", "startTime": "2026-11-29T10:01:00Z"},
        **more,
    }


OBJECTS = [NODE, pod("a"), pod("b"), pod("c", None)]


def as_list(items: list) -> dict:
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def read(path: Path) -> Snapshot:
    return read_snapshot(str(path), now_s=7.0)


def write(folder, name: str, content: str | bytes):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file
