"""A realistic dump of a GPU cluster, as `kubectl get nodes,pods -A -o json|yaml` writes it.

Nodes have the labels of node and GPU feature discovery and an image list; pods have managedFields, environments,
mounts, tokens and statuses, about 13 KB each. Written piece by piece, so that a large dump needs no memory.

    python benchmarks/make_dump.py --nodes 1000 --pods 8000 --format yaml > dump.yaml
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import yaml

Object = dict[str, Any]

_STAMP = "2026-11-29T10:{:02}:{:02}Z"
GPUS = 8  # of a node
_SIZES = ((1, 16, 128), (2, 32, 256), (4, 64, 512), (8, 128, 1024))  # GPUs, cores, GiB


def nodes(count: int) -> Iterator[Object]:
    """H100 nodes with eight GPUs, 16 in a rack, four racks in a block."""
    for n in range(count):
        name = f"gpu-{n:05}.cluster.example"
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": "bare-metal-h100",
            "topology.kubernetes.io/zone": f"zone-{n // 512}",
            "topology.kubernetes.io/block": f"block-{n // 64}",
            "topology.kubernetes.io/rack": f"rack-{n // 16}",
            "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
            "nvidia.com/gpu.memory": "81559",
            "nvidia.com/gpu.count": str(GPUS),
            "nvidia.com/gpu.replicas": "1",
            "nvidia.com/gpu.sharing-strategy": "none",
            "nvidia.com/gpu.compute.major": "9",
            "nvidia.com/gpu.compute.minor": "0",
            "nvidia.com/mig.capable": "true",
            "nvidia.com/gpu.present": "true",
            **{f"feature.node.kubernetes.io/cpu-cpuid.FEATURE{i}": "true" for i in range(60)},
        }
        amounts = {
            "cpu": "192",
            "ephemeral-storage": "3650722201Ki",
            "hugepages-1Gi": "0",
            "memory": "2113478752Ki",
            "nvidia.com/gpu": str(GPUS),
            "rdma/rdma_shared_device_a": "63",
            "pods": "110",
        }
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
                "creationTimestamp": "2026-06-01T00:00:00Z",
                "labels": dict(sorted(labels.items())),
                "managedFields": managed("kubelet", 24),
                "name": name,
                "resourceVersion": str(10_000_000 + n),
                "uid": _uid(1, n),
            },
            "spec": {"podCIDR": f"10.{n >> 8 & 255}.{n & 255}.0/24"},
            "status": {
                "addresses": [{"address": f"192.0.2.{n % 250}", "type": "InternalIP"}],
                "allocatable": {**amounts, "cpu": "191450m"},
                "capacity": amounts,
                "conditions": [
                    condition("MemoryPressure", "False", n),
                    condition("DiskPressure", "False", n),
                    condition("PIDPressure", "False", n),
                    condition("Ready", "True", n),
                ],
                "images": [
                    {
                        "names": [f"registry.example/team/image-{i}@sha256:{i:064x}", f"registry.example/i:{i}"],
                        "sizeBytes": 9_000_000_000 + i,
                    }
                    for i in range(40)
                ],
                "nodeInfo": {"kernelVersion": "6.8.0-45-generic", "kubeletVersion": "v1.35.2"},
            },
        }


def pods(count: int, node_count: int, seed: int = 1) -> Iterator[Object]:
    """Jobs of up to 64 pods; nine in ten run where there is room. A few hundred different specs.

    Pods ask for what keeps pace with the GPUs that there are, so that those of 8 pods a node all find a place. A pod
    that finds none waits: no node ever holds more than it has.
    """
    rng = random.Random(seed)
    room = _Room(node_count)
    made = 0
    job = 0
    while made < count:
        size = min(rng.choice((1, 1, 2, 4, 8, 16, 64)), count - made)
        shape = rng.choice(_SIZES)
        team = f"team-{rng.randrange(24)}"
        runs = rng.random() < 0.9
        while runs and shape[0] > 1 and room.taken + shape[0] * size > room.gpus * (made + size) // count:
            shape = _SIZES[_SIZES.index(shape) - 1]
        for i in range(size):
            n = room.place(shape[0]) if runs else None
            node = "" if n is None else f"gpu-{n:05}.cluster.example"
            yield pod(f"train-{job:05}", i, team, shape, node, made + i)
        made += size
        job += 1


class _Room:
    """Free GPUs by node, given out one node after the other."""

    def __init__(self, node_count: int) -> None:
        self._free = [GPUS] * node_count
        self._next = 0
        self._vain = GPUS + 1  # a size that found no place; room only goes
        self.gpus = GPUS * node_count
        self.taken = 0

    def place(self, gpus: int) -> int | None:
        """The node that it is on; None where no node has as many free."""
        for step in range(len(self._free) if gpus < self._vain else 0):
            n = (self._next + step) % len(self._free)
            if self._free[n] >= gpus:
                self._free[n] -= gpus
                self._next, self.taken = n + 1, self.taken + gpus
                return n
        self._vain = min(self._vain, gpus)
        return None


def pod(job: str, index: int, team: str, shape: tuple[int, int, int], node: str, number: int) -> Object:
    """One pod of an indexed Job."""
    gpus, cores, gib = shape
    token = f"kube-api-access-{number:05x}"
    name = f"{job}-{index}-{number % 60466176:05x}"
    amounts = {"cpu": str(cores), "memory": f"{gib}Gi", "nvidia.com/gpu": str(gpus), "rdma/rdma_shared_device_a": "1"}
    spec: Object = {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["40000"]}]}
                    ]
                }
            }
        },
        "containers": [
            {
                "args": ["--config", f"/configs/{job}.yaml", "--rank", str(index)],
                "command": ["/bin/bash", "-c", 'set -e\nsource /opt/env.sh\nexec python -m train "$@"\n'],
                "env": [{"name": f"SETTING_{i}", "value": f"value-{i}-of-{job}"} for i in range(24)]
                + [
                    {
                        "name": "POD_IP",
                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}},
                    }
                ],
                "image": f"registry.example/{team}/train:2026.11",
                "imagePullPolicy": "IfNotPresent",
                "name": "train",
                "resources": {"limits": amounts, "requests": amounts},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "volumeMounts": [
                    {"mountPath": "/dev/shm", "name": "shm"},
                    {"mountPath": "/data", "name": "data", "readOnly": True},
                    {
                        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                        "name": token,
                        "readOnly": True,
                    },
                ],
            },
            {
                "image": "registry.example/platform/log-shipper:1.9",
                "imagePullPolicy": "IfNotPresent",
                "name": "logs",
                "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
                "volumeMounts": [
                    {
                        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                        "name": token,
                        "readOnly": True,
                    }
                ],
            },
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "nodeName": node,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 1000,
        "priorityClassName": "training",
        "restartPolicy": "Never",
        "schedulerName": "default-scheduler",
        "securityContext": {"fsGroup": 2000},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"effect": "NoSchedule", "key": "nvidia.com/gpu", "operator": "Exists"},
            {
                "effect": "NoExecute",
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "tolerationSeconds": 300,
            },
            {
                "effect": "NoExecute",
                "key": "node.kubernetes.io/unreachable",
                "operator": "Exists",
                "tolerationSeconds": 300,
            },
        ],
        "volumes": [
            {"emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}, "name": "shm"},
            {"hostPath": {"path": "/mnt/data", "type": "Directory"}, "name": "data"},
            {
                "name": token,
                "projected": {
                    "defaultMode": 420,
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {
                            "configMap": {
                                "items": [{"key": "ca.crt", "path": "ca.crt"}],
                                "name": "kube-root-ca.crt",
                            }
                        },
                    ],
                },
            },
        ],
    }
    status: Object = {"phase": "Pending", "qosClass": "Burstable"}
    if node:
        status = {
            "conditions": [
                condition(kind, "True", number)
                for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [_container_status(c, number) for c in ("logs", "train")],
            "hostIP": f"192.0.2.{number % 250}",
            "phase": "Running",
            "podIP": f"10.1.{number >> 8 & 255}.{number & 255}",
            "podIPs": [{"ip": f"10.1.{number >> 8 & 255}.{number & 255}"}],
            "qosClass": "Burstable",
            "startTime": _STAMP.format(number % 60, number % 59),
        }
    else:
        del spec["nodeName"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {
                "batch.kubernetes.io/job-completion-index": str(index),
                "cni.projectcalico.org/podIP": f"10.1.{number >> 8 & 255}.{number & 255}/32",
            },
            "creationTimestamp": _STAMP.format(number % 60, number % 57),
            "generateName": f"{job}-{index}-",
            "labels": {
                "app": "train",
                "batch.kubernetes.io/controller-uid": _uid(2, int(job[6:])),
                "batch.kubernetes.io/job-completion-index": str(index),
                "batch.kubernetes.io/job-name": job,
                "team": team,
            },
            "managedFields": managed("kube-controller-manager", 40) + managed("kubelet", 30),
            "name": name,
            "namespace": team,
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": "Job",
                    "name": job,
                    "uid": _uid(2, int(job[6:])),
                }
            ],
            "resourceVersion": str(20_000_000 + number),
            "uid": _uid(3, number),
        },
        "spec": spec,
        "status": status,
    }


def managed(manager: str, fields: int) -> list[Object]:
    """A managedFields entry of about 55 bytes a field."""
    return [
        {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, **{f"f:some.example/label-{i}": {} for i in range(fields // 2)}}},
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"train"}': {".": {}, **{f"f:field{i}": {".": {}} for i in range(fields)}}
                    }
                },
            },
            "manager": manager,
            "operation": "Update",
            "time": "2026-11-29T10:00:00Z",
        }
    ]


def condition(kind: str, status: str, number: int) -> Object:
    return {
        "lastTransitionTime": _STAMP.format(number % 60, number % 53),
        "message": f"{kind} is as the kubelet reports it",
        "reason": "KubeletHasReported",
        "status": status,
        "type": kind,
    }


def _container_status(name: str, number: int) -> Object:
    return {
        "allocatedResources": {"cpu": "16", "memory": "128Gi"},
        "containerID": f"containerd://{number:064x}",
        "image": "registry.example/platform/train:2026.11",
        "imageID": f"registry.example/platform/train@sha256:{number:064x}",
        "lastState": {},
        "name": name,
        "ready": True,
        "restartCount": 0,
        "started": True,
        "state": {"running": {"startedAt": _STAMP.format(number % 60, number % 51)}},
    }


def _uid(kind: int, number: int) -> str:
    return f"{kind:08x}-0000-4000-8000-{number:012x}"


def write(out: TextIO, node_count: int, pod_count: int, style: str) -> None:
    """The List with its items, indented as kubectl does it."""
    things = (*nodes(node_count),) if node_count else ()
    if style == "json":
        _write_json(out, things, pods(pod_count, node_count))
    else:
        _write_yaml(out, things, pods(pod_count, node_count))


def _write_json(out: TextIO, *parts: Any) -> None:
    out.write('{\n    "apiVersion": "v1",\n    "items": [')
    comma = "\n"
    for part in parts:
        for thing in part:
            text = json.dumps(thing, indent=4).replace("\n", "\n        ")
            out.write(f"{comma}        {text}")
            comma = ",\n"
    out.write('\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')


class _Dumper(yaml.CSafeDumper):
    """As kubectl writes: no aliases, and text with line breaks as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _write_yaml(out: TextIO, *parts: Any) -> None:
    out.write("apiVersion: v1\nitems:\n")
    for part in parts:
        for thing in part:
            out.write(yaml.dump([thing], Dumper=_Dumper, width=1_000_000))
    out.write('kind: List\nmetadata:\n  resourceVersion: ""\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=8000)
    parser.add_argument("--format", choices=("json", "yaml"), default="json")
    given = parser.parse_args()
    write(sys.stdout, given.nodes, given.pods, given.format)


if __name__ == "__main__":
    main()
