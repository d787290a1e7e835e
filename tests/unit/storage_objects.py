"""Objects of a cluster with storage, as the API server writes them."""

from __future__ import annotations

from typing import Any

Thing = dict[str, Any]

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
EBS, TOPOLVM, NONE = "ebs.csi.aws.com", "topolvm.io", "kubernetes.io/no-provisioner"


def node(name: str, zone: str = "a", gpus: int = 8, **labels: str) -> Thing:
    has = {"cpu": "64", "memory": "256Gi", "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    told = {HOSTNAME: name, ZONE: zone, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", **labels}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": told},
        "status": {"capacity": has, "allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip


def pod(name: str, *claims: str, on: str = "", gpus: int = 1, ephemeral: tuple[str, ...] = (), **spec: Any) -> Thing:
    volumes = [{"name": f"d{i}", "persistentVolumeClaim": {"claimName": c}} for i, c in enumerate(claims)]
    volumes += [{"name": e, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}} for e in ephemeral]
    asked = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"schedulerName": "berth", "containers": [{"resources": asked}], "volumes": volumes,
                 **({"nodeName": on} if on else {}), **spec},
        "status": {"phase": "Running" if on else "Pending"},
    }  # fmt: skip


def claim(
    name: str, storage_class: str = "", size: str = "1Gi", volume: str = "", selected: str = "", phase: str = "",
    modes: tuple[str, ...] = ("ReadWriteOnce",), of_pod: str = "", selector: Thing | None = None, **meta: Any,
) -> Thing:  # fmt: skip
    spec: Thing = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, "volumeMode": "Filesystem"}
    if storage_class:
        spec["storageClassName"] = storage_class
    if volume:
        spec["volumeName"] = volume
    if selector:
        spec["selector"] = selector
    found: Thing = {"name": name, "namespace": "a", "uid": f"uid-{name}", **meta}
    if selected:
        found["annotations"] = {"volume.kubernetes.io/selected-node": selected}
    if of_pod:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": of_pod, "uid": f"uid-{of_pod}", "controller": True}
        found["ownerReferences"] = [owner]
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": found, "spec": spec,
        "status": {"phase": phase or ("Bound" if volume else "Pending")},
    }  # fmt: skip


def volume(
    name: str, storage_class: str = "", size: str = "1Gi", on: str = "", of: str = "", driver: str = "",
    phase: str = "", modes: tuple[str, ...] = ("ReadWriteOnce",), uid_of: str | None = None,
    labels: Thing | None = None, key: str = HOSTNAME, **spec: Any,
) -> Thing:  # fmt: skip
    made: Thing = {"capacity": {"storage": size}, "accessModes": list(modes), "volumeMode": "Filesystem", **spec}
    if storage_class:
        made["storageClassName"] = storage_class
    if on:
        expressions = [{"key": key, "operator": "In", "values": on.split("|")}]
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    if of:
        made["claimRef"] = {"namespace": "a", "name": of, "uid": f"uid-{of}" if uid_of is None else uid_of}
    if driver:
        made["csi"] = {"driver": driver, "volumeHandle": f"handle-{name}"}
    return {
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", "labels": labels or {}},
        "spec": made, "status": {"phase": phase or ("Bound" if of else "Available")},
    }  # fmt: skip


def storage_class(name: str, provisioner: str = EBS, waits: bool = True, zones: tuple[str, ...] = ()) -> Thing:
    made: Thing = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }  # fmt: skip
    if zones:
        made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    return made


def csi_node(name: str, **counts: int | None) -> Thing:
    """Keywords are drivers, with _ for dots; None is a driver that names no limit."""
    drivers = [
        {"name": driver.replace("_", "."), "nodeID": name, **({} if n is None else {"allocatable": {"count": n}})}
        for driver, n in counts.items()
    ]
    return {
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}
    }  # fmt: skip


def csi_driver(name: str, **spec: Any) -> Thing:
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def capacity(name: str, of: str, size: str | None, topology: Thing | None, most: str | None = None) -> Thing:
    made: Thing = {
        "apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "topolvm-system"}, "storageClassName": of,
    }  # fmt: skip
    for key, value in (("capacity", size), ("nodeTopology", topology), ("maximumVolumeSize", most)):
        if value is not None:
            made[key] = value
    return made


def local(name: str, on: str, size: str = "100Gi", **more: Any) -> Thing:
    """A volume on a disk of one node."""
    return volume(name, "local", size, on=on, **more)


LOCAL = storage_class("local", NONE)
NODES = (node("n1", "a"), node("n2", "b"))
