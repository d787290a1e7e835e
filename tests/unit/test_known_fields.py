"""A field that nobody reads changes what a job asks for: one that looks like a known one is refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_runs import CLUSTER, ROOT, here

from berth.base.errors import BadInput
from berth.kube import wire
from berth.sources.known_fields import _SPECS, PLACES, refuse_misspelt, refuse_misspelt_in_pod
from berth.sources.manifests import shapes_in

CONTAINER = "{name: c, image: x, resources: {limits: {nvidia.com/gpu: 8}}}"
POD = f"{{restartPolicy: Never, nodeSelector: {{a: b}}, containers: [{CONTAINER}]}}"
TEMPLATE = f"{{metadata: {{labels: {{a: b}}}}, spec: {POD}}}"
JOB = f"{{apiVersion: batch/v1, kind: Job, metadata: {{name: j}}, spec: {{parallelism: 4, template: {TEMPLATE}}}}}"
CRON = (
    "{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {schedule: '* * * * *', jobTemplate: "
    f"{{spec: {{parallelism: 4, template: {TEMPLATE}}}}}}}}}"
)
SET = (
    "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j}, spec: {replicatedJobs: [{name: w, "
    f"replicas: 2, template: {{spec: {{parallelism: 4, template: {TEMPLATE}}}}}}}]}}}}"
)
TORCH = (
    "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, spec: {pytorchReplicaSpecs: {Worker: "
    f"{{replicas: 2, template: {TEMPLATE}}}}}}}}}"
)
RAY = (
    "{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: j}, spec: {headGroupSpec: {rayStartParams: {}, "
    f"template: {TEMPLATE}}}}}}}"
)
VOLCANO = (
    "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j}, spec: {minAvailable: 1, tasks: [{name: w, "
    f"replicas: 2, template: {TEMPLATE}}}]}}}}"
)
LWS = (
    "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: j}, spec: {replicas: 2, "
    f"leaderWorkerTemplate: {{size: 2, workerTemplate: {TEMPLATE}}}}}}}"
)
DEPLOYMENT = (
    f"{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: j}}, spec: {{replicas: 3, template: {TEMPLATE}}}}}"
)
BARE = f"{{apiVersion: v1, kind: Pod, metadata: {{name: j}}, spec: {POD}}}"
AFFINITY = (
    "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
    "[{key: a, operator: In, values: [b]}]}]}}}"
)
PLACED = BARE.replace("restartPolicy: Never", f"restartPolicy: Never, affinity: {AFFINITY}")


@pytest.mark.parametrize("manifest", [JOB, CRON, SET, TORCH, RAY, VOLCANO, LWS, DEPLOYMENT, BARE, PLACED])
def test_what_is_right_passes(manifest: str) -> None:
    assert shapes_in(manifest.encode(), "a.yaml")


@pytest.mark.parametrize(
    ("manifest", "right", "wrong", "place"),
    [
        (JOB, "limits", "limit", "spec.template.spec.containers[0].resources"),
        (JOB, "parallelism", "paralellism", "spec"),
        (JOB, "nodeSelector", "nodeselector", "spec.template.spec"),
        (JOB, "resources", "resource", "spec.template.spec.containers[0]"),
        (JOB, "containers", "container", "spec.template.spec"),
        (JOB, "labels", "label", "spec.template.metadata"),
        (JOB, "template", "tempalte", "spec"),
        (JOB, "metadata: {name", "metdata: {name", ""),
        (JOB, "name: j", "nmae: j", "metadata"),
        (BARE, "spec", "sepc", ""),
        (BARE, "limits", "Limits", "spec.containers[0].resources"),
        (CRON, "parallelism", "parallellism", "spec.jobTemplate.spec"),
        (CRON, "limits", "limit", "spec.jobTemplate.spec.template.spec.containers[0].resources"),
        (SET, "parallelism", "Parallelism", "spec.replicatedJobs[0].template.spec"),
        (SET, "replicas", "replica", "spec.replicatedJobs[0]"),
        (TORCH, "replicas", "replica", "spec.pytorchReplicaSpecs.Worker"),
        (TORCH, "limits", "limit", "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resources"),
        (RAY, "nodeSelector", "nodeSelectors", "spec.headGroupSpec.template.spec"),
        (VOLCANO, "minAvailable", "minavailable", "spec"),
        (VOLCANO, "replicas", "replcas", "spec.tasks[0]"),
        (LWS, "size", "Size", "spec.leaderWorkerTemplate"),
        (DEPLOYMENT, "replicas", "replica", "spec"),
        (PLACED, "matchExpressions", "matchExpression", "spec.affinity.nodeAffinity."
         "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"),
    ],
)  # fmt: skip
def test_a_near_miss_is_refused_with_its_place(manifest: str, right: str, wrong: str, place: str) -> None:
    with pytest.raises(BadInput) as caught:
        shapes_in(manifest.replace(right, wrong, 1).encode(), "a.yaml")
    wrong, right = wrong.partition(":")[0], right.partition(":")[0]
    assert caught.value.exit_code == 2
    assert caught.value.where == f"a.yaml: {f'{place}.' if place else ''}{wrong}"
    assert caught.value.problem.startswith("it is no field of ")
    assert caught.value.problem.endswith(f"; close to it: {right}.")


def test_what_resembles_nothing_passes() -> None:
    text = JOB.replace("parallelism", "gizmo: {limit: 1}, parallelism").replace("image: x", "image: x, zzz: 1")
    text = text.replace("limits: {", "limits: {limit/a: 1, ").replace(
        "labels: {", "labels: {nodeselector: a, label: b, "
    )
    assert shapes_in(text.encode(), "a.yaml")


def test_known_are_all_fields_that_are_read() -> None:
    for struct, place in (
        (wire.PodSpec, PLACES["a pod's spec"]),
        (wire.Container, PLACES["a container"]),
        (wire.ResourceRequirements, PLACES["resources"]),
        (wire.ObjectMeta, PLACES["metadata"]),
        (wire.Toleration, PLACES["a toleration"]),
        (wire.TopologySpreadConstraint, PLACES["a topology spread constraint"]),
        (wire.PodAffinityTerm, PLACES["a pod affinity term"]),
        (wire.PodAffinity, PLACES["pod affinity"]),
        (wire.NodeAffinity, PLACES["node affinity"]),
        (wire.ContainerPort, PLACES["a port"]),
        (wire.Volume, PLACES["a volume"]),
    ):
        assert set(struct.__struct_encode_fields__) <= set(place), struct
    assert {inside for place in PLACES.values() for inside in place.values()} - {""} <= set(PLACES)
    assert set(_SPECS.values()) <= set(PLACES)


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda file: file.name)
def test_no_example_is_refused(file: Path) -> None:
    for thing in yaml.safe_load_all(file.read_text()):
        for one in thing.get("items", [thing]) if thing else ():
            before: Any = copy.deepcopy(one)
            refuse_misspelt(one, file.name)
            template = one if one["kind"] == "Pod" else one.get("spec", {}).get("template", {})
            refuse_misspelt_in_pod(template, file.name, "")
            assert one == before


def test_the_command_names_file_field_and_the_right_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.argv", ["berth"])
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("nodeSelector", "nodeselector"))
    ran = here("check", "-f", str(file), "--from", CLUSTER)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"berth: {file}: spec.template.spec.nodeselector: it is no field of a pod's spec; close to it: nodeSelector. "
        "Write nodeSelector.\n"
    )
