"""What is handed on in a snapshot says the same to every dialect, and nothing that is secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec.structs import replace

from berth.app.scheduler.redaction import plain, typed
from berth.dialects.objects import index
from berth.dialects.owners import is_read, shapes_of
from berth.kube import wire
from berth.sources.manifests import workloads_of

ROOT = Path(__file__).parents[2]
SECRET = "hunter2"


def manifests() -> list[Any]:
    found = []
    for file in sorted(ROOT.glob("examples/*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            things = document.get("items", [document]) if isinstance(document, dict) else []
            found += [t for t in things if isinstance(t, dict) and t.get("kind") != "Pod" and is_read(t)]
    return found


CONTAINER = {
    "name": "c", "image": f"registry/{SECRET}", "command": [SECRET], "args": [SECRET], "workingDir": f"/{SECRET}",
    "env": [{"name": "A", "value": SECRET}], "envFrom": [{"secretRef": {"name": SECRET}}],
    "resources": {"limits": {"nvidia.com/gpu": 8, "cpu": "500m"}},
    "volumeMounts": [{"name": "v", "mountPath": f"/{SECRET}"}], "livenessProbe": {"exec": {"command": [SECRET]}},
}  # fmt: skip
TEMPLATE = {
    "metadata": {"labels": {"app": "x"}, "annotations": {"berth.dev/gpu-memory": "80Gi", "note": SECRET}},
    "spec": {
        "containers": [CONTAINER], "initContainers": [{**CONTAINER, "name": "i"}], "priorityClassName": "high",
        "nodeSelector": {"zone": "a"}, "tolerations": [{"key": "gpu", "operator": "Equal", "value": "yes"}],
        "volumes": [{"name": "v", "secret": {"secretName": SECRET}},
                    {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}],
        "imagePullSecrets": [{"name": SECRET}], "schedulerName": "berth", "serviceAccountName": SECRET,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}}},
    },
}  # fmt: skip
META = {
    "name": "train", "namespace": "ml", "uid": "u", "managedFields": [{"manager": SECRET}],
    "labels": {"berth.dev/queue": "q"},
    "annotations": {"berth.dev/min-count": "2", "kubectl.kubernetes.io/last-applied-configuration": SECRET},
}  # fmt: skip


def owner(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    status = {"conditions": [{"type": "X", "status": "True", "message": SECRET}]}
    return {"apiVersion": api_version, "kind": kind, "metadata": META, "spec": spec, "status": status}


OWNERS = [
    owner("batch/v1", "Job", parallelism=4, completions=4, completionMode="Indexed", template=TEMPLATE, suspend=True,
          activeDeadlineSeconds=60),
    owner("apps/v1", "StatefulSet", replicas=3, podManagementPolicy="Parallel", template=TEMPLATE),
    owner("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={
        "Master": {"replicas": 1, "template": TEMPLATE}, "Worker": {"replicas": 3, "template": TEMPLATE}},
        elasticPolicy={"minReplicas": 2, "maxReplicas": 3},
        runPolicy={"schedulingPolicy": {"minAvailable": 3, "queue": "q", "priorityClass": "high"}}),
    owner("kubeflow.org/v2beta1", "MPIJob", launcherCreationPolicy="WaitForWorkersReady", mpiReplicaSpecs={
        "Launcher": {"replicas": 1, "template": TEMPLATE}, "Worker": {"replicas": 2, "template": TEMPLATE}},
        sshAuthMountPath=f"/{SECRET}"),
    owner("jobset.x-k8s.io/v1alpha2", "JobSet", startupPolicy={"startupPolicyOrder": "InOrder"}, replicatedJobs=[
        {"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 2, "completions": 2, "template": TEMPLATE}}},
        {"name": "b", "replicas": 1, "dependsOn": [{"name": "a", "status": "Ready"}],
         "template": {"spec": {"parallelism": 1, "template": TEMPLATE}}}]),
    owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", replicas=2, startupPolicy="LeaderReady",
          leaderWorkerTemplate={"size": 3, "leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE,
                                "subGroupPolicy": {"subGroupSize": 3}}),
    owner("ray.io/v1", "RayJob", entrypoint=f"python {SECRET}", runtimeEnvYAML=SECRET, submissionMode="HTTPMode",
          rayClusterSpec={"headGroupSpec": {"rayStartParams": {"redis-password": SECRET}, "template": TEMPLATE},
                          "workerGroupSpecs": [{"groupName": "w", "replicas": 2, "minReplicas": 1, "maxReplicas": 4,
                                                "rayStartParams": {"p": SECRET}, "template": TEMPLATE}]}),
    owner("batch.volcano.sh/v1alpha1", "Job", minAvailable=2, queue="q", priorityClassName="high",
          schedulerName="volcano", plugins={"env": [SECRET]},
          networkTopology={"mode": "hard", "highestTierAllowed": 2},
          tasks=[{"name": "t", "replicas": 2, "minAvailable": 2, "template": TEMPLATE}]),
]  # fmt: skip


def meaning(thing: Any) -> Any:
    """All that dialects and sources make of it, down to pod classes; templates themselves left out."""
    shapes = shapes_of(thing, "", index([thing]))
    bare = [replace(s, sets=tuple(replace(one, template={}) for one in s.sets)) for s in shapes]
    return bare, workloads_of(shapes)


@pytest.mark.parametrize("thing", [*OWNERS, *manifests()], ids=lambda t: f"{t['kind']}-{t['metadata']['name']}")
def test_a_dialect_reads_the_same(thing):
    reduced = plain(thing)
    assert SECRET not in json.dumps(reduced)
    assert meaning(reduced) == meaning(thing)
    assert reduced["metadata"]["name"] == thing["metadata"]["name"]


@pytest.mark.parametrize("thing", [
    owner("scheduling.k8s.io/v1beta1", "PodGroup", schedulingPolicy={"gang": {"minCount": 4}}, priority=5,
          schedulingConstraints={"topology": [{"key": "rack"}]}, disruptionMode={"all": {}}),
    owner("scheduling.run.ai/v2alpha2", "PodGroup", minMember=2, queue="q", preemptibility="non-preemptible",
          subGroups=[{"name": "a", "minMember": 2, "parent": "p"}, {"name": "p"}],
          topologyConstraint={"requiredTopologyLevel": "rack", "topology": "t"}),
    owner("scheduling.volcano.sh/v1beta1", "PodGroup", minMember=3, minTaskMember={"w": 2}, priorityClassName="high",
          networkTopology={"mode": "soft", "highestTierName": "block"}, minResources={"nvidia.com/gpu": "8"}),
    owner("topology.volcano.sh/v1alpha1", "HyperNode", tier=1, tierName="rack",
          members=[{"type": "Node", "selector": {"exactMatch": {"name": "n-1"}}}]),
    owner("kueue.x-k8s.io/v1beta1", "Workload", queueName="q", podSets=[{"name": "main", "count": 3,
          "template": TEMPLATE}]),
], ids=lambda t: t["apiVersion"].partition("/")[0])  # fmt: skip
def test_a_group_keeps_what_its_dialect_reads(thing):
    reduced = plain(thing)
    assert SECRET not in json.dumps(reduced)
    spec = {k: v for k, v in thing["spec"].items() if k != "podSets"}
    assert {k: v for k, v in reduced["spec"].items() if k != "podSets"} == spec


def test_a_pod_and_a_node_keep_what_is_read():
    pod = {"metadata": META, "spec": TEMPLATE["spec"], "status": {"phase": "Pending", "message": SECRET}}
    reduced = typed(msgspec.convert(pod, wire.Pod))
    assert SECRET not in json.dumps(reduced)
    assert reduced["spec"]["volumes"] == [{"name": "v"}, {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    assert reduced["metadata"]["annotations"] == {"berth.dev/min-count": "2"}
    again = msgspec.convert(reduced, wire.Pod)
    assert again.spec == msgspec.convert(pod, wire.Pod).spec
    node = {"metadata": {"name": "n", "labels": {"a": "b"}, "annotations": {"x": SECRET}},
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": SECRET}],
                       "allocatable": {"cpu": "1"}}}  # fmt: skip
    assert typed(msgspec.convert(node, wire.Node)) == {
        "metadata": {"name": "n", "labels": {"a": "b"}, "annotations": {}},
        "status": {"conditions": [{"type": "Ready", "status": "False"}], "allocatable": {"cpu": "1"}},
    }  # fmt: skip
