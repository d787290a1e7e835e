"""Topology wishes, queues, priorities and limits by the keys of every dialect."""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from berth.base.errors import BadInput
from berth.dialects.membership import Memberships, PodFacts, index
from berth.dialects.objects import owner_refs
from berth.dialects.owners import READERS, shapes_of
from berth.dialects.shape import Shape
from berth.model.workload import TopologyWish
from berth.sources.manifests import shapes_in

POD = "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}"


def job(owner: str = "", template: str = "", spec: str = "") -> Shape:
    text = f"""
    apiVersion: batch/v1
    kind: Job
    metadata: {{name: j, {owner}}}
    spec: {{parallelism: 8, completions: 8, {spec} template: {{metadata: {{{template}}}, spec: {POD}}}}}
    """
    (shape,) = shapes_in(textwrap.dedent(text).encode(), "a.yaml")
    return shape


# ---- topology


@pytest.mark.parametrize(
    ("annotations", "wishes"),
    [
        ("berth.dev/topology-required: rack", [TopologyWish("rack")]),
        (
            "berth.dev/topology-required: block, berth.dev/topology-preferred: rack",
            [TopologyWish("block"), TopologyWish("rack", False)],
        ),
        ("berth.dev/topology-required: rack, berth.dev/topology-preferred: rack", [TopologyWish("rack")]),
        ("kai.scheduler/topology-required-placement: zone", [TopologyWish("zone")]),
        ("kai.scheduler/topology-preferred-placement: zone", [TopologyWish("zone", False)]),
    ],
)
def test_wishes_of_the_whole_workload(annotations: str, wishes: list[TopologyWish]) -> None:
    assert list(job(f"annotations: {{{annotations}}}").topology) == wishes


KUEUE = "kueue.x-k8s.io/podset-"


@pytest.mark.parametrize(
    ("annotations", "wishes"),
    [
        ("berth.dev/pod-set-topology-required: rack", [TopologyWish("rack")]),
        (f"{KUEUE}required-topology: cloud.example.com/rack", [TopologyWish("cloud.example.com/rack")]),
        (f"{KUEUE}preferred-topology: rack", [TopologyWish("rack", False)]),
        (f'{KUEUE}unconstrained-topology: "true"', []),
        (f'{KUEUE}slice-required-topology: host, {KUEUE}slice-size: "4"', [TopologyWish("host", True, 4)]),
        (
            f'{KUEUE}required-topology: block, {KUEUE}slice-required-topology: rack, {KUEUE}slice-size: "2"',
            [TopologyWish("block"), TopologyWish("rack", True, 2)],
        ),
        (
            f"{KUEUE}slice-required-topology-constraints: "
            """'[{"topology": "rack", "size": 4}, {"topology": "host", "size": 2}]'""",
            [TopologyWish("rack", True, 4), TopologyWish("host", True, 2)],
        ),
        (
            'kai.scheduler/segment-size: "4", kai.scheduler/segment-topology-required-placement: rack',
            [TopologyWish("rack", True, 4)],
        ),
    ],
)
def test_wishes_of_a_pod_set(annotations: str, wishes: list[TopologyWish]) -> None:
    assert list(job(template=f"annotations: {{{annotations}}}").sets[0].topology) == wishes


def test_dialects_that_disagree_on_topology_are_told() -> None:
    shape = job("annotations: {berth.dev/topology-required: rack, kai.scheduler/topology-required-placement: zone}")
    assert shape.topology == (TopologyWish("rack"),)
    assert shape.contradictions == (
        "Topology is rack (required) by annotation berth.dev/topology-required of Job j, but zone (required) by "
        "annotation kai.scheduler/topology-required-placement of Job j; the first was taken.",
    )


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        (f"{KUEUE}slice-required-topology: rack", "it needs kueue.x-k8s.io/podset-slice-size beside it"),
        (f"{KUEUE}slice-required-topology: rack, {KUEUE}slice-size: few", "a whole number is needed"),
        (f'{KUEUE}slice-required-topology: rack, {KUEUE}slice-size: "0"', "it must be 1 or more"),
        (f"{KUEUE}slice-required-topology-constraints: rack", "it is not JSON"),
    ],
)
def test_topology_that_cannot_be_read(annotations: str, sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        job(template=f"annotations: {{{annotations}}}")
    assert caught.value.sentence.startswith("a.yaml: spec.template.metadata.annotations[")
    assert sentence in caught.value.sentence


# ---- queue, priority, limits


@pytest.mark.parametrize(
    ("owner", "template", "queue"),
    [
        ("labels: {berth.dev/queue: a}", "", "a"),
        ("labels: {kai.scheduler/queue: a}", "", "a"),
        ("labels: {runai/queue: a}", "", "a"),
        ("annotations: {scheduling.volcano.sh/queue-name: a}", "", "a"),
        ("labels: {volcano.sh/queue-name: a}", "", "a"),
        ("labels: {kueue.x-k8s.io/queue-name: a}", "", "a"),
        ("labels: {berth.dev/queue: owner}", "labels: {berth.dev/queue: pod}", "pod"),
        ("labels: {berth.dev/queue: a}", "labels: {kueue.x-k8s.io/queue-name: b}", "a"),
        ("labels: {kueue.x-k8s.io/queue-name: b, kai.scheduler/queue: a}", "", "a"),
        ("annotations: {berth.dev/queue: a}", "", "a"),  # people put it there, too
        ("", "", ""),
    ],
)
def test_who_pays(owner: str, template: str, queue: str) -> None:
    assert job(owner, template).queue == queue


def test_queues_that_disagree_are_told() -> None:
    shape = job("labels: {berth.dev/queue: a, kueue.x-k8s.io/queue-name: b}")
    assert shape.contradictions == (
        "The queue is a by label berth.dev/queue of Job j, but b by label kueue.x-k8s.io/queue-name of Job j; "
        "the first was taken.",
    )
    assert dict(shape.provenance)["queue"] == "label berth.dev/queue of Job j"
    assert job("labels: {berth.dev/queue: a, kueue.x-k8s.io/queue-name: a}").contradictions == ()


def test_priority() -> None:
    assert job("labels: {priorityClassName: train}").priority_class == "train"
    assert job("labels: {kueue.x-k8s.io/priority-class: low}").priority_class == "low"


@pytest.mark.parametrize(
    ("owner", "preemptible"),
    [
        ('annotations: {berth.dev/preemptible: "true"}', True),
        ("labels: {kai.scheduler/preemptibility: preemptible}", True),
        ("labels: {kai.scheduler/preemptibility: non-preemptible}", False),
        ('annotations: {volcano.sh/preemptable: "false"}', False),
        ("", None),
    ],
)
def test_preemptible(owner: str, preemptible: bool | None) -> None:
    assert job(owner).preemptible is preemptible


def test_time_limits() -> None:
    assert job('labels: {kueue.x-k8s.io/max-exec-time-seconds: "90"}').time_limit_s == 90
    assert job(spec="activeDeadlineSeconds: 30,").time_limit_s == 30
    both = job("annotations: {berth.dev/time-limit: 1h}", spec="activeDeadlineSeconds: 30,")
    assert both.time_limit_s == 3600


# ---- nothing that people write breaks a reader

TEMPLATE: dict[str, Any] = yaml.safe_load(f"""
metadata:
  labels: {{kueue.x-k8s.io/queue-name: q, scheduling.x-k8s.io/pod-group: g}}
  annotations: {{kueue.x-k8s.io/podset-required-topology: rack, berth.dev/min-count: "2"}}
spec: {{schedulerName: berth, priority: 5, priorityClassName: p, schedulingGates: [{{name: g}}], {POD[1:-1]}}}
""")
JOB = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "suspend": False, "template": TEMPLATE}
ROLES = {"Master": {"replicas": 1, "template": TEMPLATE}, "Worker": {"replicas": 2, "template": TEMPLATE}}
POLICY = {"schedulingPolicy": {"minAvailable": 2, "queue": "q"}, "activeDeadlineSeconds": 5, "suspend": False}
RAY = {
    "headGroupSpec": {"template": TEMPLATE},
    "workerGroupSpecs": [{"groupName": "g", "replicas": 2, "minReplicas": 1, "numOfHosts": 1, "template": TEMPLATE}],
    "enableInTreeAutoscaling": True,
}
SPECS: dict[str, dict[str, Any]] = {
    "Pod": TEMPLATE["spec"],
    "Job": JOB,
    "CronJob": {"jobTemplate": {"spec": JOB}},
    "PyTorchJob": {"pytorchReplicaSpecs": ROLES, "runPolicy": POLICY},
    "MPIJob": {"mpiReplicaSpecs": ROLES, "launcherCreationPolicy": "WaitForWorkersReady"},
    "JobSet": {
        "startupPolicy": {"startupPolicyOrder": "InOrder"},
        "replicatedJobs": [{"name": "w", "replicas": 2, "dependsOn": [{"name": "x"}], "template": {"spec": JOB}}],
    },
    "LeaderWorkerSet": {
        "replicas": 2,
        "leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE, "subGroupPolicy": {"subGroupSize": 2}},
    },
    "RayCluster": RAY,
    "RayJob": {"rayClusterSpec": RAY, "submissionMode": "HTTPMode", "activeDeadlineSeconds": 9},
    "RayService": {"rayClusterConfig": RAY},
    "TrainJob": {"runtimeRef": {"name": "r"}, "trainer": {"numNodes": 2, "resourcesPerNode": {"limits": {}}}},
}
VOLCANO = {
    "minAvailable": 2,
    "queue": "q",
    "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    "tasks": [
        {"name": "t", "replicas": 2, "minAvailable": 1, "template": TEMPLATE, "partitionPolicy": {"partitionSize": 1}}
    ],
}


def manifests() -> Iterator[dict[str, Any]]:
    for group, kind in READERS:
        api = f"{group}/v1" if group else "v1"
        plain = {"replicas": 2, "template": TEMPLATE}
        spec = VOLCANO if group == "batch.volcano.sh" else SPECS.get(kind, plain)
        if kind not in SPECS and group == "kubeflow.org":
            field = {"TFJob": "tf", "XGBoostJob": "xgb", "JAXJob": "jax", "PaddleJob": "paddle"}[kind]
            spec = {f"{field}ReplicaSpecs": ROLES}
        metadata = {"name": "x", "namespace": "ml", "labels": {"a": "b"}, "annotations": {"c": "d"}}
        if kind == "Pod":
            metadata |= TEMPLATE["metadata"]
        yield {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value, itself included."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, (*path, i))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    value = copy.deepcopy(value)
    here = value
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = new
    return value


WRONG = (None, 0, -1, 5, 1.5, True, "", "x", "3", [], [None], [1], {}, {"a": None}, {1: 2}, 2**70)


@pytest.mark.parametrize("manifest", list(manifests()), ids=lambda m: f"{m['apiVersion']} {m['kind']}")
def test_any_wrong_value_is_a_shape_or_a_sentence(manifest: dict[str, Any]) -> None:
    assert shapes_of(manifest)
    for path in places(manifest):
        for wrong in WRONG:
            broken = replaced(manifest, path, wrong)
            try:
                shapes_of(broken, "a.yaml")
            except BadInput as error:
                assert error.where.startswith("a.yaml")
                assert error.exit_code == 2


@pytest.mark.parametrize("manifest", list(manifests()), ids=lambda m: f"{m['apiVersion']} {m['kind']}")
def test_any_wrong_value_in_a_dump_still_gives_a_membership(manifest: dict[str, Any]) -> None:
    refs = [{"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "name": "x", "controller": True}]
    for path in places(manifest):
        if len(path) == 1:
            continue
        for wrong in (None, -1, "x", [1], {"a": None}, 2**70):
            broken = replaced(manifest, path, wrong)
            facts = PodFacts("p", "ml", {"a": "b"}, {}, owner_refs(refs))
            assert Memberships(index([broken])).of(facts).namespace == "ml"
