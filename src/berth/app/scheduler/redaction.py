"""Objects reduced to what decides, so that a snapshot can be handed on: no environment, no command lines, no secrets.

What is decoded into Structs of `berth.kube` has lost everything else already. Of plain objects (owners, groups)
numbers and flags stay, since they hold no secrets, text only where dialects read it, pod specs by the same Structs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from berth.kube import wire

# Annotations that are read, by how their keys begin.
ANNOTATIONS = (
    "berth.dev/", "kai.scheduler/", "runai/", "scheduling.k8s.io/", "scheduling.volcano.sh/", "scheduling.x-k8s.io/",
    "pod-group", "volcano.sh/", "kueue.x-k8s.io/", "jobset.sigs.k8s.io/", "alpha.jobset.sigs.k8s.io/",
    "leaderworkerset.sigs.k8s.io/", "ray.io/", "training.kubeflow.org/", "trainer.kubeflow.org/",
    "volume.kubernetes.io/selected-node", "volume.beta.kubernetes.io/storage-class", "pv.kubernetes.io/bind-completed",
    "storageclass.kubernetes.io/is-default-class", "batch.kubernetes.io/", "gpu-", "priorityClassName",
)  # fmt: skip

# Keys of plain objects whose text is read, or says what the object is.
_TEXTS = frozenset((
    "apiVersion", "kind", "name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp",
    "deletionTimestamp", "type", "status", "reason", "queue", "queueName", "priorityClassName", "priorityClass",
    "schedulerName", "completionMode", "groupName", "templateName", "workloadName", "podGroupName",
    "parentCompositePodGroupName", "parent", "preemptibility", "preemptionPolicy", "submissionMode",
    "launcherCreationPolicy", "mode", "level", "key", "topologyKey", "topology", "requiredTopologyLevel",
    "preferredTopologyLevel", "tierName", "highestTierName", "startupPolicy", "startupPolicyOrder",
    "podManagementPolicy", "partitionPolicy", "operator", "role", "apiGroup", "restartPolicy",
))  # fmt: skip
# Mappings and lists whose every text stays: labels and what is matched against them, quantities.
_WHOLE = frozenset((
    "labels", "matchLabels", "matchExpressions", "clusterSelector", "nodeSelector", "requests", "limits",
    "resourcesPerNode", "minResources", "exactMatch", "labelMatch", "dependsOn", "schedulingGates",
))  # fmt: skip
_NEVER = frozenset((
    "env", "envFrom", "command", "args", "data", "stringData", "managedFields", "rayStartParams", "entrypoint",
    "runtimeEnvYAML", "initializer", "volumes", "volumeMounts", "imagePullSecrets", "message",
))  # fmt: skip


def typed(thing: msgspec.Struct) -> dict[str, Any]:
    """A Struct of `berth.kube` as the mapping that it came from, without what is null and what is not read."""
    found: dict[str, Any] = _without_nulls(msgspec.to_builtins(thing))
    meta = found.get("metadata")
    if isinstance(meta, dict) and "annotations" in meta:
        meta["annotations"] = _read(meta["annotations"])
    status = found.get("status")
    if isinstance(status, dict):
        status.pop("message", None)
        for condition in status.get("conditions") or ():
            condition.pop("message", None)
    return found


def plain(thing: Mapping[str, Any]) -> dict[str, Any]:
    """An owner or a group, as far as dialects read it."""
    found: dict[str, Any] = _inside(thing, "")
    return found


def _inside(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        if isinstance(value.get("containers"), list | tuple):
            return _pod_spec(value)
        kept = {}
        for name, below in value.items():
            if name in _NEVER:
                continue
            if name == "annotations" and isinstance(below, Mapping):
                kept[name] = _read(below)
            elif name in _WHOLE:
                kept[name] = below
            elif (reduced := _inside(below, name)) is not None or below is None:
                kept[name] = reduced
        return kept
    if isinstance(value, list | tuple):
        return [reduced for one in value if (reduced := _inside(one, key)) is not None]
    if isinstance(value, str):
        return value if key in _TEXTS else None
    return value


def _pod_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """By the Struct that is read anyway; containers keep their names. What cannot be read keeps those alone."""
    try:
        found: dict[str, Any] = _without_nulls(msgspec.to_builtins(msgspec.convert(spec, wire.PodSpec)))
    except (msgspec.ValidationError, TypeError):
        found = {"containers": [{} for _ in spec["containers"]]}
    for which in ("containers", "initContainers"):
        for reduced, container in zip(found.get(which) or (), spec.get(which) or (), strict=False):
            if isinstance(container, Mapping) and isinstance(container.get("name"), str):
                reduced["name"] = container["name"]
    return found


def _read(annotations: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in annotations.items() if str(key).startswith(ANNOTATIONS)}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(below) for key, below in value.items() if below is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(one) for one in value]
    return value
