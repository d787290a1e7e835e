"""Fields of Kubernetes in the places that decide, and manifests in which one of them is misspelt.

What nobody reads changes the answer: `limit: {nvidia.com/gpu: 8}` asks for no GPUs. The API server refuses each field
that it does not know; here only one that looks like a known one is refused, since a cluster may be newer than this
list. Source: k8s.io/api (core/v1, batch/v1, apps/v1) up to 1.35, and the types of JobSet, LeaderWorkerSet, Kubeflow's
training operator and Volcano.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from berth.base.errors import BadInput
from berth.dialects.objects import group_of

_ALIKE = 0.8
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))

Place = dict[str, str]  # field: the place that its value is, each of its items for a list, each value for "*"; or ""


def _place(names: str, **inside: str) -> Place:
    return {**dict.fromkeys(names.split(), ""), **inside}


_WORKLOAD = "apiVersion kind status"
_REPLICATED = "replicas selector minReadySeconds"
POD, CONTAINER, METADATA, TEMPLATE = "a pod's spec", "a container", "metadata", "a pod template"
# By what sentences call it.
PLACES: dict[str, Place] = {
    METADATA: _place(
        "name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp "
        "deletionGracePeriodSeconds labels annotations ownerReferences finalizers managedFields clusterName"
    ),
    TEMPLATE: _place("apiVersion kind", metadata=METADATA, spec=POD),
    POD: _place(
        "ephemeralContainers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector "
        "serviceAccountName serviceAccount automountServiceAccountToken nodeName hostNetwork hostPID hostIPC "
        "shareProcessNamespace securityContext imagePullSecrets hostname hostnameOverride subdomain schedulerName "
        "hostAliases priorityClassName priority dnsConfig readinessGates runtimeClassName enableServiceLinks "
        "preemptionPolicy overhead setHostnameAsFQDN os hostUsers schedulingGates resourceClaims workloadRef "
        "schedulingGroup",
        containers=CONTAINER, initContainers=CONTAINER, resources="resources", affinity="affinity",
        tolerations="a toleration", topologySpreadConstraints="a topology spread constraint", volumes="a volume",
    ),
    CONTAINER: _place(
        "name image command args workingDir envFrom env resizePolicy restartPolicy restartPolicyRules volumeMounts "
        "volumeDevices livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath "
        "terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty",
        resources="resources", ports="a port",
    ),
    "resources": _place("limits requests claims"),
    "a port": _place("name hostPort containerPort protocol hostIP"),
    "a toleration": _place("key operator value effect tolerationSeconds"),
    "a topology spread constraint": _place(
        "maxSkew topologyKey whenUnsatisfiable minDomains nodeAffinityPolicy nodeTaintsPolicy matchLabelKeys",
        labelSelector="a label selector",
    ),
    "affinity": _place("", nodeAffinity="node affinity", podAffinity="pod affinity", podAntiAffinity="pod affinity"),
    "node affinity": {_REQUIRED: "a node selector", _PREFERRED: "a preferred node"},
    "a node selector": _place("", nodeSelectorTerms="a node selector term"),
    "a node selector term": _place("", matchExpressions="an expression", matchFields="an expression"),
    "a preferred node": _place("weight", preference="a node selector term"),
    "pod affinity": {_REQUIRED: "a pod affinity term", _PREFERRED: "a preferred pod"},
    "a preferred pod": _place("weight", podAffinityTerm="a pod affinity term"),
    "a pod affinity term": _place(
        "namespaces topologyKey matchLabelKeys mismatchLabelKeys",
        labelSelector="a label selector", namespaceSelector="a label selector",
    ),
    "a label selector": _place("matchLabels", matchExpressions="an expression"),
    "an expression": _place("key operator values"),
    "a volume": _place(
        "name hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs rbd "
        "flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume quobyte azureDisk "
        "photonPersistentDisk projected portworxVolume scaleIO storageos csi image",
        persistentVolumeClaim="the claim of a volume", ephemeral="an ephemeral volume",
    ),
    "the claim of a volume": _place("claimName readOnly"),
    "an ephemeral volume": _place("volumeClaimTemplate readOnly"),
    # ---- what makes pods
    "a Job's spec": _place(
        "parallelism completions activeDeadlineSeconds podFailurePolicy successPolicy backoffLimit "
        "backoffLimitPerIndex maxFailedIndexes selector manualSelector ttlSecondsAfterFinished completionMode suspend "
        "podReplacementPolicy managedBy scheduling",
        template=TEMPLATE,
    ),
    "a Job template": _place("apiVersion kind", metadata=METADATA, spec="a Job's spec"),
    "a CronJob's spec": _place(
        "schedule timeZone startingDeadlineSeconds concurrencyPolicy suspend successfulJobsHistoryLimit "
        "failedJobsHistoryLimit",
        jobTemplate="a Job template",
    ),
    "a Deployment's spec": _place(
        f"{_REPLICATED} strategy revisionHistoryLimit paused progressDeadlineSeconds", template=TEMPLATE
    ),
    "a ReplicaSet's spec": _place(_REPLICATED, template=TEMPLATE),
    "a StatefulSet's spec": _place(
        f"{_REPLICATED} volumeClaimTemplates serviceName podManagementPolicy updateStrategy revisionHistoryLimit "
        "persistentVolumeClaimRetentionPolicy ordinals",
        template=TEMPLATE,
    ),
    "a DaemonSet's spec": _place(
        "selector updateStrategy minReadySeconds revisionHistoryLimit", template=TEMPLATE
    ),
    "a JobSet's spec": _place(
        "network successPolicy failurePolicy startupPolicy suspend coordinator managedBy ttlSecondsAfterFinished "
        "volumeClaimPolicies",
        replicatedJobs="a replicated job",
    ),
    "a replicated job": _place("name groupName replicas dependsOn", template="a Job template"),
    "a LeaderWorkerSet's spec": _place(
        "replicas rolloutStrategy startupPolicy networkConfig", leaderWorkerTemplate="a leaderWorkerTemplate"
    ),
    "a leaderWorkerTemplate": _place(
        "size restartPolicy subGroupPolicy resizePolicy volumeClaimTemplates persistentVolumeClaimRetentionPolicy",
        leaderTemplate=TEMPLATE, workerTemplate=TEMPLATE,
    ),
    "replica specs": {"*": "a replica spec"},
    "a replica spec": _place("replicas restartPolicy", template=TEMPLATE),
    "a Volcano Job's spec": _place(
        "schedulerName minAvailable volumes policies plugins runningEstimate queue maxRetry ttlSecondsAfterFinished "
        "priorityClassName minSuccess networkTopology",
        tasks="a task",
    ),
    "a task": _place(
        "name replicas minAvailable policies topologyPolicy maxRetry dependsOn partitionPolicy", template=TEMPLATE
    ),
}  # fmt: skip
# (group, kind): what its spec is. Of other kinds only metadata and the pod templates are looked at.
_SPECS = {
    ("", "Pod"): POD,
    ("", "ReplicationController"): "a ReplicaSet's spec",
    ("apps", "DaemonSet"): "a DaemonSet's spec",
    ("apps", "Deployment"): "a Deployment's spec",
    ("apps", "ReplicaSet"): "a ReplicaSet's spec",
    ("apps", "StatefulSet"): "a StatefulSet's spec",
    ("batch", "CronJob"): "a CronJob's spec",
    ("batch", "Job"): "a Job's spec",
    ("batch.volcano.sh", "Job"): "a Volcano Job's spec",
    ("jobset.x-k8s.io", "JobSet"): "a JobSet's spec",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "a LeaderWorkerSet's spec",
}
# Only what is below these fields of a spec is known of Kubeflow's jobs.
_REPLICA_SPECS = frozenset(
    f"{name}ReplicaSpecs" for name in ("jax", "mpi", "paddle", "pytorch", "tf", "xgb")
)  # fmt: skip


def refuse_misspelt(manifest: Mapping[str, Any], where: str) -> None:
    """Raises BadInput for the first field of a workload that is none and looks like one. `where` is its file."""
    kind = str(manifest.get("kind"))
    below = _SPECS.get((group_of(str(manifest.get("apiVersion"))), kind), "")
    _look(manifest, f"a {kind}", _place(_WORKLOAD, metadata=METADATA, spec=below), where, "")
    spec = manifest.get("spec")
    for key in sorted(_REPLICA_SPECS.intersection(spec)) if isinstance(spec, Mapping) else ():
        _look(spec[key], "replica specs", PLACES["replica specs"], where, f"spec.{key}")


def refuse_misspelt_in_pod(template: Mapping[str, Any], where: str, path: str) -> None:
    """The same of a pod template, which stands at `path`; of a Pod at ""."""
    for key, place in (("metadata", METADATA), ("spec", POD)):
        _look(template.get(key), place, PLACES[place], where, _below(path, key))


def _look(value: Any, called: str, known: Place, where: str, path: str) -> None:
    if isinstance(value, list):
        for i, one in enumerate(value):
            _look(one, called, known, where, f"{path}[{i}]")
    if not isinstance(value, Mapping):
        return
    each = known.get("*", "")
    for written, inside in value.items():
        key = str(written)
        below = _below(path, key)
        if not each and key not in known and (meant := _meant(key, known)):
            raise BadInput(f"{where}: {below}", f"it is no field of {called}; close to it: {meant}.", f"Write {meant}.")
        if place := each or known.get(key, ""):
            _look(inside, place, PLACES[place], where, below)


def _meant(key: str, known: Place) -> str:
    """The field that is meant: of other capitals, of two letters that changed places, or much alike; or ""."""
    lower = {name.lower(): name for name in known}
    found = next((name for low, name in lower.items() if sorted(low) == sorted(key.lower())), "")
    close = get_close_matches(key.lower(), lower, 1, _ALIKE)
    return found or (lower[close[0]] if close else "")


def _below(path: str, key: str) -> str:
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key
