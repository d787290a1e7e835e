"""Pods and gangs to load a cluster with."""

from __future__ import annotations

from typing import Any


def gpu_pod(
    name: str,
    namespace: str = "default",
    gpus: int = 1,
    *,
    scheduler: str = "berth",
    group: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    resource: str = "nvidia.com/gpu",
    priority_class: str = "",
    grace_s: int = 30,
    **spec: Any,
) -> dict[str, Any]:
    """A pod that asks for whole GPUs, with 4 CPUs and 16 GiB for each. `group` names its PodGroup; `spec` is merged."""
    asks = {"cpu": str(4 * gpus or 1), "memory": f"{16 * gpus or 1}Gi"}
    limits = {resource: str(gpus)} if gpus else {}
    container = {"name": "main", "image": "none", "resources": {"requests": {**asks, **limits}, "limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": grace_s,
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "containers": [container],
            **({"priorityClassName": priority_class} if priority_class else {}),
            **({"schedulingGroup": {"podGroupName": group}} if group else {}),
            **spec,
        },
    }


def pod_group(name: str, namespace: str = "default", minimum: int = 1, topology: str = "") -> dict[str, Any]:
    """A PodGroup of upstream Kubernetes: all or nothing from `minimum` up, on nodes that share the label `topology`."""
    constraints = {"schedulingConstraints": {"topology": [{"key": topology}]}} if topology else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}, **constraints},
    }
