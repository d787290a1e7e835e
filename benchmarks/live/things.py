"""The objects of the scenarios: pods of so many GPUs, alone or as a gang by an upstream PodGroup."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
BLOCK = "example.com/block"


def pod(name: str, namespace: str, scheduler: str, gpus: int, gang: str = "", priority: str = "") -> Object:
    spec: Object = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 30,
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "tolerations": [{"operator": "Exists"}],
        "containers": [{
            "name": "c",
            "image": "x",
            "resources": {
                "limits": {"nvidia.com/gpu": str(gpus)},
                "requests": {"cpu": str(4 * gpus), "memory": f"{16 * gpus}Gi", "nvidia.com/gpu": str(gpus)},
            },
        }],
    }  # fmt: skip
    if gang:
        spec["schedulingGroup"] = {"podGroupName": gang}
    if priority:
        spec["priorityClassName"] = priority
    meta = {"name": name, "namespace": namespace, "labels": {"app": "load", "gang": gang or name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def gang(
    name: str, namespace: str, scheduler: str, pods: int, gpus: int, level: str = "", priority: str = ""
) -> tuple[Object, list[Object]]:
    """A PodGroup and its pods. `level`: the node label whose value all of them must share."""
    spec: Object = {"schedulingPolicy": {"gang": {"minCount": pods}}}
    if level:
        spec["schedulingConstraints"] = {"topology": [{"key": level}]}
    if priority:
        spec["priorityClassName"] = priority
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    }  # fmt: skip
    return group, [pod(f"{name}-{i:04d}", namespace, scheduler, gpus, name, priority) for i in range(pods)]


def priority_class(name: str, value: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
    }  # fmt: skip
